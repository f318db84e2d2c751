"""Frames that are lost, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, Need, PortMeasure, PortSeries, Subject, WindowedPortMeasure
from weirlab.measures.rows import Totals, Window, by_replicate, summed_series

if TYPE_CHECKING:
    from weirlab.records import Records


class LossRatio(FlowMeasure):
    """Dropped frames over sent frames of the whole run; frames in transit at the end are not lost."""

    kind: Literal["loss-ratio"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return loss_ratio(subject.records, subject.ids)


def loss_ratio(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Dropped frames over sent frames, in [0, 1]. Frames still under way at the end are not lost.

    Null where nothing was sent. Source: RFC 1242, section 3.6, there a percentage.
    """
    chosen = Totals.of_flows(records, traffic)
    sent, dropped = chosen.sum("sent_frames"), chosen.sum("dropped_frames")
    return chosen.values(lambda each: dropped[each] / sent[each] if sent[each] else None, sent)


class Drops(PortMeasure):
    """Frames dropped at the ports; 0 where operation was lossless."""

    kind: Literal["drops"]
    cause: (
        Literal["queue-full", "limiter-full", "queue-early", "input-overrun", "buffer-full", "watchdog"]
        | None
    ) = None
    """Data that the queue of the port had no room for, that the queues of rate limiters before the port of a
    host had no room for, that the management of the queue dropped before it was full, or that was lost at an
    input before the queue. Absent: all that the port counts, notifications in the lane of the data too; what
    is lost at an input it does not count."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return drops(subject.records, subject.ids, self.cause)


def drops(records: Records, ports: Sequence[int], cause: str | None = None) -> pl.DataFrame:
    """Frames dropped at the ports, or those of data for this cause; 0 where operation was lossless."""
    if cause is not None:
        rows = records.named("drops").filter(pl.col("port").is_in(list(ports)), pl.col("cause_name") == cause)
        counts = by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum())
        return counts.with_columns(pl.col("value").fill_null(0.0))
    chosen = Totals.of_ports(records, ports, None)
    frames = chosen.sum("drops")
    return chosen.values(frames.__getitem__, frames)


class DropTime(WindowedPortMeasure):
    """Time in which frames are dropped at the ports; needs a `queue` record."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["drop-time"]
    take: Literal["total", "longest"] = "total"
    """All intervals with drops together, or the longest stretch of them."""

    def needs(self) -> Iterator[Need]:
        yield PortSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        return drop_time(subject.records, subject.ids, self.window_ps, longest=self.take == "longest")


def drop_time(
    records: Records, ports: Sequence[int], window: Window | None = None, *, longest: bool = False
) -> pl.DataFrame:
    """Time in which frames are dropped at one of the ports [ps]: the lengths of all recorded intervals with
    drops, or of the `longest` stretch of such intervals that follow one another."""
    rows = summed_series(records, ports, window)
    length = pl.when(pl.col("drops") > 0).then(pl.col("length_ps")).otherwise(0.0)
    if not longest:
        return by_replicate(records, rows, length.sum())
    stretch = (pl.col("drops") == 0).cum_sum().over("replicate")
    stretches = rows.with_columns(stretch=stretch, dropping_ps=length).group_by(
        "replicate", "stretch", maintain_order=True
    )
    return by_replicate(records, stretches.agg(pl.col("dropping_ps").sum()), pl.col("dropping_ps").max())


class LastDrop(PortMeasure):
    """Time of the last drop at the ports."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["last-drop"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return last_drop(subject.records, subject.ids)


def last_drop(records: Records, ports: Sequence[int]) -> pl.DataFrame:
    """Time of the last drop at the ports [ps]; null where nothing was dropped."""
    chosen = Totals.of_ports(records, ports, None)
    latest = chosen.max("last_drop_ps")
    return chosen.values(latest.__getitem__, latest)
