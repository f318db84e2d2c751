"""Frames that are lost, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, Need, PortMeasure, PortSeries, Subject, WindowedPortMeasure
from weirlab.measures.rows import Totals, by_replicate, summed_series


class LossRatio(FlowMeasure):
    """Dropped frames over sent frames of the whole run; frames in transit at the end are not lost."""

    kind: Literal["loss-ratio"]

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where nothing was sent. Source: RFC 1242, section 3.6, there a percentage."""
        chosen = Totals.of_flows(subject.records, subject.ids)
        sent, dropped = chosen.sum("sent_frames"), chosen.sum("dropped_frames")
        return chosen.values(sent, lambda each: dropped[each] / sent[each] if sent[each] else None)


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
        if self.cause is not None:
            rows = subject.records.named("drops").filter(
                pl.col("port").is_in(list(subject.ids)), pl.col("cause_name") == self.cause
            )
            return by_replicate(subject.records, rows, pl.col("frames").cast(pl.Float64).sum(), empty=0.0)
        chosen = Totals.of_ports(subject.records, subject.ids, None)
        return chosen.values(chosen.sum("drops"))


class DropTime(WindowedPortMeasure):
    """Time in which frames are dropped at the ports; needs a `queue` record."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["drop-time"]
    take: Literal["total", "longest"] = "total"
    """All intervals with drops together, or the longest stretch of them."""

    def needs(self) -> Iterator[Need]:
        yield PortSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        rows = summed_series(subject.records, subject.ids, self.window_ps)
        length = pl.when(pl.col("drops") > 0).then(pl.col("length_ps")).otherwise(0.0)
        if self.take == "total":
            return by_replicate(subject.records, rows, length.sum())
        stretch = (pl.col("drops") == 0).cum_sum().over("replicate")
        rows = rows.with_columns(stretch=stretch, dropping_ps=length)
        stretches = rows.group_by("replicate", "stretch", maintain_order=True)
        lasted = stretches.agg(pl.col("dropping_ps").sum())
        return by_replicate(subject.records, lasted, pl.col("dropping_ps").max())


class LastDrop(PortMeasure):
    """Time of the last drop at the ports."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["last-drop"]

    def values(self, subject: Subject) -> pl.DataFrame:
        """Null where nothing was dropped."""
        chosen = Totals.of_ports(subject.records, subject.ids, None)
        return chosen.values(chosen.max("last_drop_ps"))
