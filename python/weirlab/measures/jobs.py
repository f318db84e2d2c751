"""How long jobs of messages that wait for each other take, and what their collective operations carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from weirlab.fields.values import PositiveFraction
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, MessageRows, Need, Subject
from weirlab.measures.messages import percentile
from weirlab.measures.rows import by_replicate


class JobTime(FlowMeasure):
    """Time from the start of a job until the last of its messages and computations is over (job completion
    time); of several jobs the longest. Unknown where one has not ended."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["job-time"]

    def needs(self) -> Iterator[Need]:
        yield MessageRows(("collective", "goal", "chakra"))

    def values(self, subject: Subject) -> pl.DataFrame:
        rows = subject.records["message_totals"].filter(pl.col("traffic").is_in(list(subject.ids)))
        longest = pl.col("job_ps").cast(pl.Float64).fill_null(float("inf")).max()
        return by_replicate(subject.records, rows, pl.when(longest.is_finite()).then(longest))


class BusBandwidth(FlowMeasure):
    """Bus bandwidth of collective operations: what the link of a rank has to carry at least, over the time
    from the first message until the last is delivered. With S the size and n ranks it is 2 S (n - 1)/n of
    all-reduce, S of broadcast and reduce, S (n - 1)/n of others, whatever the algorithm: the bandwidth of a
    rank's link that would give this time. A percentile over iterations, or the mean. An iteration that the
    end of the run cut short counts only if it has taken longer than all others: as slower than these, so that
    the mean is unknown.

    Source: NCCL tests, PERFORMANCE.md, "Bus bandwidth".
    """

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["bus-bandwidth"]
    at: PositiveFraction | None = None
    """The share of iterations that have no more. Absent: the mean."""

    def needs(self) -> Iterator[Need]:
        yield MessageRows(("collective",))

    def values(self, subject: Subject) -> pl.DataFrame:
        """An iteration that was cut short counts as 0. Null where none has ended."""
        begun = pl.col("start_ps").is_not_null()
        rows = subject.records["rounds"].filter(pl.col("traffic").is_in(list(subject.ids)), begun)
        ends = subject.records["runs"].select("replicate", "end_ps")
        over = pl.col("over_ps").fill_null(pl.col("end_ps"))
        time = over.cast(pl.Float64) - pl.col("start_ps").cast(pl.Float64)
        ended = pl.col("over_ps").is_not_null()
        longest = pl.col("time").filter(ended).max().over("replicate", "traffic")
        counted = (
            rows.join(ends, on="replicate", maintain_order="left")
            .with_columns(time=time)
            .filter(ended | (pl.col("time") > longest))
        )
        rate = pl.when(ended).then(8e12 * pl.col("carried_bytes").cast(pl.Float64) / pl.col("time"))
        found = rate.mean() if self.at is None else percentile(rate.fill_null(0.0), self.at)
        known = ended.all() | pl.lit(self.at is not None)
        return by_replicate(subject.records, counted, pl.when(known).then(found))
