"""The measure `slowest-flow`: what the flow that got least got."""

from __future__ import annotations

from typing import ClassVar, Literal

import polars as pl

from weirlab.measures.base import Subject, WindowedFlowMeasure
from weirlab.measures.rows import by_replicate, flow_intervals, flow_rows

__all__ = ["SlowestFlow"]


class SlowestFlow(WindowedFlowMeasure):
    """Delivered rate of the flow that got least, min(8 x bytes / time) over the flows."""

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["slowest-flow"]

    def values(self, subject: Subject) -> pl.DataFrame:
        records, window = subject.records, self.window_ps
        if window is None:
            rows = flow_rows(records, subject.ids).select("replicate", "flow", bytes="delivered_bytes")
        else:
            rows = flow_intervals(records, subject.ids, window)
        each = rows.group_by("replicate", "flow").agg(pl.col("bytes").cast(pl.Float64).sum())
        return by_replicate(records, each, 8e12 * pl.col("bytes").min(), per_ps=True, window=window)
