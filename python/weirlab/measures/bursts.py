"""Bursts: how long they take, and how evenly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import Window as Limits
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Need, Subject
from weirlab.measures.rows import MissingRecordError, Window, by_replicate, jain_index, windowed

if TYPE_CHECKING:
    from weirlab.records import Records


class BurstDelay(FlowMeasure):
    """Time from the making of the first frame of a burst to the arrival of its last one; needs sources of the
    kind `bursts`."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["burst-delay"]
    take: Literal["mean", "longest"] = "mean"
    """Of all bursts that arrived whole: their mean, or the longest."""
    window: Limits | None = None
    """Time in which their last frames arrive; needs a `flow` record by flow, and takes the mean. Absent: the
    whole run."""

    @property
    def limits(self) -> Limits | None:
        return self.window

    def needs(self) -> Iterator[Need]:
        if self.window is not None:
            yield FlowSeries(recorded_by_flow=True)

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.window is not None and self.take == "longest":
            yield "window", "the longest is known of the whole run only; take the mean, or leave this out"

    def values(self, subject: Subject) -> pl.DataFrame:
        return burst_delay(
            subject.records, subject.ids, longest=self.take == "longest", window=self.window_ps
        )


def burst_delay(
    records: Records, traffic: Sequence[int], *, longest: bool = False, window: Window | None = None
) -> pl.DataFrame:
    """Time [ps] from the first frame of a burst, when it is made, to its last one, when it arrives: the mean
    over all bursts that arrived whole, in the window if there is one, or the `longest` of the run. Null where
    none did. Raises MissingRecordError where the series of a flow is missing, and for the longest of a
    window.

    Source: ZRL benchmark, 'Simulation Overview' (latency measured per burst).
    """
    rows = _bursts(records, traffic)
    if window is not None:
        if longest:
            raise MissingRecordError("the longest delay of bursts is recorded of the whole run only")
        chosen = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic))).get_column("flow")
        windowed(records, "flow_deliveries", "flow", chosen.to_list(), window)
        inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
        rows = records["burst_intervals"].filter(pl.col("flow").is_in(chosen.to_list()) & inside)
    if longest:
        return by_replicate(records, rows, pl.col("delay_max_ps").max())
    count = pl.col("bursts").sum()
    mean = pl.col("delay_sum_ps").cast(pl.Float64).sum() / count
    return by_replicate(records, rows, pl.when(count > 0).then(mean))


class DelayFairness(FlowMeasure):
    """Jain's index of the flows' mean burst delays, (sum d)^2 / (n sum d^2); 1 is fair."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["delay-fairness"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return delay_fairness(subject.records, subject.ids)


def delay_fairness(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Jain's index of the mean burst delays of flows, in [1/n, 1]; 1 is fair. See `jain_index`.

    Flows without a whole burst do not count. This index is our own: the benchmark names a latency fairness
    index, ALFI, which is defined nowhere that we know.
    """
    whole = _bursts(records, traffic).filter(pl.col("bursts") > 0)
    mean = pl.col("delay_sum_ps").cast(pl.Float64) / pl.col("bursts")
    rows = whole.select("replicate", delay=mean)
    return by_replicate(records, rows, jain_index("delay"))


def _bursts(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `bursts` of these entries of traffic. Raises MissingRecordError where there are none."""
    flows = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic))).select("flow")
    if "bursts" not in records or records["bursts"].is_empty():
        raise MissingRecordError("bursts were not recorded: they need sources of the kind 'bursts'")
    return records["bursts"].join(flows, on="flow", how="inner", maintain_order="left")
