"""What the network signals: marks, PAUSE, and control frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from weirlab.fields.values import Natural
from weirlab.heavy import pl
from weirlab.measures.base import PortMeasure, Subject, WindowedPortMeasure
from weirlab.measures.rows import MissingRecordError, Window, by_replicate, port_rows, windowed

if TYPE_CHECKING:
    from weirlab.records import Records


ControlFrameType = Literal["bcn+", "bcn-", "bcn(0,0)", "bcn(max)", "qcn", "cnp", "xoff", "xon"]
"""Kinds of control frames: positive and negative Fb of BCN, BCN(0,0), BCN(MAX), notifications of QCN and
DCQCN, and PAUSE frames that stop and release."""


class Marks(PortMeasure):
    """ECN-capable frames that the queues of the ports mark."""

    kind: Literal["marks"]
    take: Literal["frames", "share"] = "frames"
    """How many, or as a share of all frames that the ports send."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return marks(subject.records, subject.ids, share=self.take == "share")


def marks(records: Records, ports: Sequence[int], *, share: bool = False) -> pl.DataFrame:
    """Frames that the queues of the ports marked, or that number over all frames that the ports sent; null
    where they sent none.

    Raises MissingRecordError for records of a time before there were marks."""
    if "marks" not in records:
        raise MissingRecordError("marks were not recorded")
    rows = records["marks"].filter(pl.col("port").is_in(list(ports)))
    counts = by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum())
    counts = counts.with_columns(pl.col("value").fill_null(0.0))
    if not share:
        return counts
    sent = by_replicate(records, port_rows(records, ports, None), pl.col("frames").cast(pl.Float64).sum())
    both = counts.join(sent.rename({"value": "sent"}), on="replicate", maintain_order="left")
    value = pl.when(pl.col("sent") > 0).then(pl.col("value") / pl.col("sent"))
    return both.select("replicate", value=value)


class PauseTime(PortMeasure):
    """Time for which PAUSE holds the ports."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["pause-time"]
    take: Literal["total", "longest", "end"] = "total"
    """All pauses together, mean over the ports; the longest single one; or the time at which the last one
    ends."""
    class_: Natural | None = Field(None, alias="class")
    """The traffic class that flow control (PFC, or PAUSE) holds. Absent: ports as a whole."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return pause_time(subject.records, subject.ids, self.take, self.class_)


def pause_time(
    records: Records, ports: Sequence[int], take: str = "total", number: int | None = None
) -> pl.DataFrame:
    """Time for which PAUSE holds ports [ps], or flow control the class `number` of them: `total` of all
    pauses, as a mean over the ports; the `longest` single pause of one of them; or the `end` of the last one,
    null where there was none. Raises MissingRecordError for records of a time before classes were held."""
    if number is not None:
        return _hold_time(records, ports, take, number)
    rows = port_rows(records, ports, None)
    values = {
        "total": pl.col("paused_ps").cast(pl.Float64).mean(),
        "longest": pl.col("paused_longest_ps").cast(pl.Float64).max(),
        "end": pl.col("paused_last_ps").cast(pl.Float64).max(),
    }
    return by_replicate(records, rows, values[take])


def _hold_time(records: Records, ports: Sequence[int], take: str, number: int) -> pl.DataFrame:
    if "holds" not in records:
        raise MissingRecordError("holds of classes were not recorded")
    rows = records["holds"].filter(pl.col("port").is_in(list(ports)), pl.col("class") == number)
    values = {
        "total": pl.col("held_ps").cast(pl.Float64).sum() / len(ports),
        "longest": pl.col("held_longest_ps").cast(pl.Float64).max(),
        "end": pl.col("held_last_ps").cast(pl.Float64).max(),
    }
    found = by_replicate(records, rows, values[take])
    return found if take == "end" else found.with_columns(pl.col("value").fill_null(0.0))


class ControlFrames(WindowedPortMeasure):
    """Control frames that the queues of the ports cause to be sent."""

    kind: Literal["control-frames"]
    type: ControlFrameType | None = None
    """Which. Absent: all."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return control_frames(subject.records, subject.ids, self.type, self.window_ps)


def control_frames(
    records: Records, ports: Sequence[int], kind: str | None = None, window: Window | None = None
) -> pl.DataFrame:
    """Control frames of a kind, or all, that the queues of the ports caused to be sent, in the window if
    there is one. Raises MissingRecordError where a window needs a series that was not recorded."""
    if window is None:
        rows = records["control_frames"]
    else:
        windowed(records, "intervals", "port", ports, window)
        inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
        rows = records["control_intervals"].filter(inside)
    rows = rows.filter(pl.col("queue_port").is_in(list(ports)))
    if kind is not None:
        rows = rows.join(
            records["kind_names"].filter(pl.col("name") == kind), on="kind", how="semi", maintain_order="left"
        )
    counts = by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum())
    return counts.with_columns(pl.col("value").fill_null(0.0))
