"""What the network signals: marks, PAUSE, and control frames."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from weirlab.fields.values import Natural
from weirlab.heavy import pl
from weirlab.measures.base import PortMeasure, Subject, WindowedPortMeasure
from weirlab.measures.rows import MissingRecordError, by_replicate, port_rows, windowed

ControlFrameType = Literal["bcn+", "bcn-", "bcn(0,0)", "bcn(max)", "qcn", "cnp", "xoff", "xon"]
"""Kinds of control frames: positive and negative Fb of BCN, BCN(0,0), BCN(MAX), notifications of QCN and
DCQCN, and PAUSE frames that stop and release."""


class Marks(PortMeasure):
    """ECN-capable frames that the queues of the ports mark."""

    kind: Literal["marks"]
    take: Literal["frames", "share"] = "frames"
    """How many, or as a share of all frames that the ports send."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """The share is null where the ports send nothing."""
        records = subject.records
        if "marks" not in records:
            raise MissingRecordError("marks were not recorded")
        rows = records["marks"].filter(pl.col("port").is_in(list(subject.ids)))
        frames = pl.col("frames").cast(pl.Float64).sum()
        counts = by_replicate(records, rows, frames, empty=0.0)
        if self.take == "frames":
            return counts
        sent = by_replicate(records, port_rows(records, subject.ids, None), frames)
        both = counts.join(sent.rename({"value": "sent"}), on="replicate", maintain_order="left")
        value = pl.when(pl.col("sent") > 0).then(pl.col("value") / pl.col("sent"))
        return both.select("replicate", value=value)


class PauseTime(PortMeasure):
    """Time for which PAUSE holds the ports."""

    UNIT: ClassVar[str] = "ps"

    kind: Literal["pause-time"]
    take: Literal["total", "longest", "end"] = "total"
    """The sum of all pauses, mean over the ports; the longest single pause; or the end of the last one."""
    class_: Natural | None = Field(None, alias="class")
    """The traffic class that flow control (PFC, or PAUSE) holds. Absent: ports as a whole."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """The end is null where there was no pause."""
        records, ports = subject.records, list(subject.ids)
        if self.class_ is None:
            rows, held = port_rows(records, ports, None), "paused"
        elif "holds" in records:
            mine = pl.col("port").is_in(ports), pl.col("class") == self.class_
            rows, held = records["holds"].filter(mine), "held"
        else:
            raise MissingRecordError("holds of classes were not recorded")
        column = {"total": f"{held}_ps", "longest": f"{held}_longest_ps", "end": f"{held}_last_ps"}
        time = pl.col(column[self.take]).cast(pl.Float64)
        if self.class_ is None:  # Each port has a row, a class only where it was held.
            return by_replicate(records, rows, time.mean() if self.take == "total" else time.max())
        value = time.sum() / len(ports) if self.take == "total" else time.max()
        return by_replicate(records, rows, value, empty=None if self.take == "end" else 0.0)


class ControlFrames(WindowedPortMeasure):
    """Control frames that the queues of the ports cause to be sent."""

    kind: Literal["control-frames"]
    type: ControlFrameType | None = None
    """Which. Absent: all."""

    def values(self, subject: Subject) -> pl.DataFrame:
        records, window = subject.records, self.window_ps
        if window is None:
            rows = records["control_frames"]
        else:
            windowed(records, "intervals", "port", subject.ids, window)
            inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
            rows = records["control_intervals"].filter(inside)
        rows = rows.filter(pl.col("queue_port").is_in(list(subject.ids)))
        if self.type is not None:
            known = records["kind_names"].filter(name=self.type)
            rows = rows.join(known, on="kind", how="semi", maintain_order="left")
        return by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum(), empty=0.0)
