"""Bursts: how long they take, and how evenly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import Window as Limits
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Need, Subject
from weirlab.measures.rows import MissingRecordError, by_replicate, jain_index, windowed

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

    def needs(self) -> Iterator[Need]:
        if self.window is not None:
            yield FlowSeries(recorded_by_flow=True)

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.window is not None and self.take == "longest":
            yield "window", "the longest is known of the whole run only; take the mean, or leave this out"

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where no burst arrived whole. Source: ZRL benchmark, 'Simulation Overview' (latency measured
        per burst)."""
        records, longest, window = subject.records, self.take == "longest", self.window_ps
        rows = _bursts(records, subject.ids)
        if window is not None:
            if longest:
                raise MissingRecordError("the longest delay of bursts is recorded of the whole run only")
            chosen = records["flow_names"].filter(pl.col("traffic").is_in(list(subject.ids)))
            flows = chosen.get_column("flow").to_list()
            windowed(records, "flow_deliveries", "flow", flows, window)
            inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
            rows = records["burst_intervals"].filter(pl.col("flow").is_in(flows) & inside)
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
        """Flows without a whole burst do not count. This index is our own: the benchmark names a latency
        fairness index, ALFI, which is defined nowhere that we know."""
        whole = _bursts(subject.records, subject.ids).filter(pl.col("bursts") > 0)
        mean = pl.col("delay_sum_ps").cast(pl.Float64) / pl.col("bursts")
        rows = whole.select("replicate", delay=mean)
        return by_replicate(subject.records, rows, jain_index("delay"))


def _bursts(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `bursts` of these entries of traffic. Raises MissingRecordError where there are none."""
    flows = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic))).select("flow")
    if "bursts" not in records or records["bursts"].is_empty():
        raise MissingRecordError("bursts were not recorded: they need sources of the kind 'bursts'")
    return records["bursts"].join(flows, on="flow", how="inner", maintain_order="left")
