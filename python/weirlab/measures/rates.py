"""What is delivered in a time, and in which time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Need, Streams, Subject, WindowedFlowMeasure
from weirlab.measures.rows import Totals, by_replicate, traffic_intervals


class DeliveredRate(WindowedFlowMeasure):
    """Bits of frames delivered per second, over all flows: 8 x bytes / time, framing excluded."""

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["delivered-rate"]

    def needs(self) -> Iterator[Need]:
        if self.window is not None:
            yield FlowSeries(by_flow=False)

    def values(self, subject: Subject) -> pl.DataFrame:
        window = self.window_ps
        if window is None:
            chosen = Totals.of_flows(subject.records, subject.ids)
            sizes = chosen.sum("delivered_bytes")
            return chosen.values(sizes, lambda each: 8e12 * sizes[each] / chosen.time_ps(each))
        rows = traffic_intervals(subject.records, subject.ids, window)
        bits = 8.0 * pl.col("bytes").cast(pl.Float64).sum()
        return by_replicate(subject.records, rows, bits * 1e12, per_ps=True, window=window)


class Goodput(FlowMeasure):
    """Bits of streams that the receivers of TCP connections got in order, per second, over all of them."""

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["goodput"]

    def needs(self) -> Iterator[Need]:
        yield Streams()

    def values(self, subject: Subject) -> pl.DataFrame:
        """Headers, retransmissions and what waits for something before it do not count. Null where there is
        no connection."""
        bits = 8.0 * pl.col("delivered_bytes").cast(pl.Float64).sum()
        return by_replicate(subject.records, _connections(subject), bits * 1e12, per_ps=True)


class CompletionTime(FlowMeasure):
    """Time from the start of a TCP transfer until its last byte was delivered, of those that ended."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["completion-time"]
    take: Literal["mean", "median", "longest"] = "mean"
    """Of all of them."""

    def needs(self) -> Iterator[Need]:
        yield Streams()

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where none ended."""
        rows = _connections(subject).drop_nulls(["opened_ps", "delivered_ps"])
        each = pl.col("delivered_ps") - pl.col("opened_ps")
        of_all = {"mean": each.mean(), "median": each.median(), "longest": each.max()}
        return by_replicate(subject.records, rows, of_all[self.take])


def _connections(subject: Subject) -> pl.DataFrame:
    """Rows of `connections` that belong to these entries of traffic."""
    chosen = subject.records["connection_names"].filter(pl.col("traffic").is_in(list(subject.ids)))
    return subject.records["connections"].join(chosen, on="connection", how="semi", maintain_order="left")
