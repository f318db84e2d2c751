"""How long jobs of messages that wait for each other take, and what their collective operations carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import PositiveFraction
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, MessageRows, Need, Subject
from weirlab.measures.messages import statistic
from weirlab.measures.rows import by_replicate

if TYPE_CHECKING:
    from weirlab.records import Records


class JobTime(FlowMeasure):
    """Time from the start of a job until the last of its messages and computations is over (job completion
    time); of several jobs the longest. Unknown where one has not ended."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["job-time"]

    def needs(self) -> Iterator[Need]:
        yield MessageRows(("collective", "goal"))

    def values(self, subject: Subject) -> pl.DataFrame:
        return job_time(subject.records, subject.ids)


def job_time(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """The longest time [ps] from the start of entries of traffic until the last of their tasks was over."""
    rows = records["message_totals"].filter(pl.col("traffic").is_in(list(traffic)))
    longest = pl.col("job_ps").cast(pl.Float64).fill_null(float("inf")).max()
    return by_replicate(records, rows, pl.when(longest.is_finite()).then(longest))


class BusBandwidth(FlowMeasure):
    """Bus bandwidth of collective operations: what each rank has to send at best, over the time from the
    first message until the last is delivered. With S the size and n ranks it is 2 S (n - 1)/n of all-reduce,
    S (n - 1)/n of others, whatever the algorithm: the bandwidth of a rank's link that would give this time. A
    percentile over iterations, or the mean. Operations that have not ended count as slower than all others.

    Source: NCCL tests, PERFORMANCE.md, "Bus bandwidth".
    """

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["bus-bandwidth"]
    at: PositiveFraction | None = None
    """The share of iterations that have no more. Absent: the mean."""

    def needs(self) -> Iterator[Need]:
        yield MessageRows(("collective",))

    def values(self, subject: Subject) -> pl.DataFrame:
        return bus_bandwidth(subject.records, subject.ids, self.at)


def bus_bandwidth(records: Records, traffic: Sequence[int], at: float | None = None) -> pl.DataFrame:
    """Bus bandwidth [bit/s] of rounds of entries of traffic: one that a share `at` of them does not exceed,
    or the mean; 0 of a round that has not ended."""
    rows = records["rounds"].filter(pl.col("traffic").is_in(list(traffic)))
    time = pl.col("over_ps").cast(pl.Float64) - pl.col("start_ps").cast(pl.Float64)
    rate = (8e12 * pl.col("carried_bytes").cast(pl.Float64) / time).fill_null(0.0)
    return by_replicate(records, rows, statistic(rate, at))
