"""What is delivered in a time, and in which time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Need, Streams, Subject, WindowedFlowMeasure
from weirlab.measures.rows import Totals, Window, by_replicate, traffic_intervals

if TYPE_CHECKING:
    from weirlab.records import Records


class DeliveredRate(WindowedFlowMeasure):
    """Bits of frames delivered per second, over all flows: 8 x bytes / time, framing excluded."""

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["delivered-rate"]

    def needs(self) -> Iterator[Need]:
        if self.window is not None:
            yield FlowSeries(by_flow=False)

    def values(self, subject: Subject) -> pl.DataFrame:
        return delivered_rate(subject.records, subject.ids, self.window_ps)


def delivered_rate(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Bits of frames delivered per second, over all flows [bit/s]: 8 x bytes / time, framing excluded."""
    if window is None:
        chosen = Totals.of_flows(records, traffic)
        sizes = chosen.sum("delivered_bytes")
        return chosen.values(lambda each: 8e12 * sizes[each] / chosen.time_ps(each), sizes)
    rows = traffic_intervals(records, traffic, window)
    bits = 8.0 * pl.col("bytes").cast(pl.Float64).sum()
    return by_replicate(records, rows, bits * 1e12, per_ps=True, window=window)


class Goodput(FlowMeasure):
    """Bits of streams that the receivers of TCP connections got in order, per second, over all of them."""

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["goodput"]

    def needs(self) -> Iterator[Need]:
        yield Streams()

    def values(self, subject: Subject) -> pl.DataFrame:
        return goodput(subject.records, subject.ids)


def goodput(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Bits of streams delivered in order per second of the run, over all TCP connections [bit/s]: headers,
    retransmissions and what waits for something before it do not count. Null where there is no connection.
    """
    bits = 8.0 * pl.col("delivered_bytes").cast(pl.Float64).sum()
    return by_replicate(records, _connections(records, traffic), bits * 1e12, per_ps=True)


class CompletionTime(FlowMeasure):
    """Time from the start of a TCP transfer until its last byte was delivered, of those that ended."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["completion-time"]
    take: Literal["mean", "median", "longest"] = "mean"
    """Of all of them."""

    def needs(self) -> Iterator[Need]:
        yield Streams()

    def values(self, subject: Subject) -> pl.DataFrame:
        return completion_time(subject.records, subject.ids, self.take)


def completion_time(
    records: Records, traffic: Sequence[int], take: Literal["mean", "median", "longest"]
) -> pl.DataFrame:
    """Time [ps] from the opening of a TCP connection until its last byte was delivered: mean, median or
    maximum of the connections that ended. Null where none did."""
    rows = _connections(records, traffic).drop_nulls(["opened_ps", "delivered_ps"])
    each = pl.col("delivered_ps") - pl.col("opened_ps")
    of_all = {"mean": each.mean(), "median": each.median(), "longest": each.max()}
    return by_replicate(records, rows, of_all[take])


def _connections(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `connections` that belong to these entries of traffic."""
    names = records["connection_names"].filter(pl.col("traffic").is_in(list(traffic)))
    return records["connections"].join(
        names.select("connection"), on="connection", how="semi", maintain_order="left"
    )
