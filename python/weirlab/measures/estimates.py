"""Estimators: what they report of a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import PositiveRate, Window as Limits
from weirlab.heavy import pl
from weirlab.measures.base import Estimates, FlowMeasure, Need, Subject
from weirlab.measures.rows import MissingRecordError, by_replicate

if TYPE_CHECKING:
    from weirlab.records import Records


class Estimate(FlowMeasure):
    """What estimators report of the path: ranges of `pathload` and `pbprobe`, or values of the probe streams
    of `rapid` (needs a `p_streams` record). Of those that ended in the window."""

    UNIT: ClassVar[str] = "bit/s"

    kind: Literal["estimate"]
    take: Literal["mean", "median", "low", "high", "spread"] = "mean"
    """Mean or median of their middles; the tenth part of their lower ends is less than `low`, that of their
    upper ends more than `high`; `spread`: standard deviation of the middles."""
    target: PositiveRate | None = None
    """The true value: results are then relative to it, all but `spread` less 1. Absent: rates."""
    window: Limits | None = None
    """Absent: the whole run."""

    @property
    def unit(self) -> str:
        return "bit/s" if self.target is None else "1"

    def needs(self) -> Iterator[Need]:
        yield Estimates()

    def values(self, subject: Subject) -> pl.DataFrame:
        """`low`: the 10 % quantile of the lower ends; `high`: the 90 % quantile of the upper ends. With a
        target T, x / T - 1 instead of x, and x / T for `spread`. Null where nothing was estimated (or once,
        for `spread`)."""
        window = self.window_ps
        rows = estimates(subject.records, subject.ids)
        if window is not None:
            rows = rows.filter((pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1]))
        middle = (pl.col("low_bps") + pl.col("high_bps")) / 2
        value = {
            "mean": middle.mean(),
            "median": middle.median(),
            "low": pl.col("low_bps").quantile(0.1, "linear"),
            "high": pl.col("high_bps").quantile(0.9, "linear"),
            "spread": middle.std(),
        }[self.take]
        if self.target is not None:
            value = value * (1 / self.target.bps) - (0.0 if self.take == "spread" else 1.0)
        return by_replicate(subject.records, rows, value)


def estimates(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Everything that the estimators of some traffic reported, in the order of time: columns
    `replicate t_ps low_bps high_bps`. `t_ps`: when it was known. What came to nothing is left out."""
    probers = records["prober_names"].filter(pl.col("traffic").is_in(list(traffic)))
    ranges = (
        records.named("bandwidth_estimates")
        .join(probers.select("prober"), on="prober", how="semi", maintain_order="left")
        .filter(~pl.col("ending_name").is_in(["unusable", "below-least"]))
    )
    connections = records["connection_names"].filter(pl.col("traffic").is_in(list(traffic)))
    streams = (
        records["probe_streams"]
        .join(connections.select("connection"), on="connection", how="semi", maintain_order="left")
        .drop_nulls("available_bps")
        .select("replicate", t_ps="closed_ps", low_bps="available_bps", high_bps="available_bps")
    )
    if not probers.height and connections.height and records["probe_streams"].is_empty():
        raise MissingRecordError("probe streams were not recorded: add {p_streams: NAME} to 'record'")
    columns = ["replicate", "t_ps", "low_bps", "high_bps"]
    return pl.concat([ranges.select(columns), streams], how="vertical_relaxed").sort("replicate", "t_ps")
