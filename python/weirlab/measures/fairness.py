"""How evenly flows are served: distances of their rates from each other, and from a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from weirlab.fields.values import PositiveFraction, PositiveRate, PositiveSpan
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Need, Subject, WindowedFlowMeasure
from weirlab.measures.rows import Window, by_replicate, flow_intervals, flow_rows, jain_index, quotient
from weirlab.units import Span

if TYPE_CHECKING:
    from weirlab.records import Records


class JainFairness(WindowedFlowMeasure):
    """Jain's index of the flows' delivered rates, (sum x)^2 / (n sum x^2); 1 is fair."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["jain-fairness"]

    def values(self, subject: Subject) -> pl.DataFrame:
        return jain_fairness(subject.records, subject.ids, self.window_ps)


def jain_fairness(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Jain's index of the delivered rates of flows, in [1/n, 1]; 1 is fair. Null where nothing was
    delivered. See `jain_index`."""
    return by_replicate(records, _flow_rates(records, traffic, window), jain_index("rate_bps"))


class RmsFairness(WindowedFlowMeasure):
    """RMS distance of the flows' delivered rates x from their fair share T, relative to it:
    sqrt(mean(((x - T) / T)^2)); 0 is fair."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["rms-fairness"]
    target: PositiveRate
    """Fair share of each flow."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return rms_fairness(subject.records, subject.ids, float(self.target.bps), self.window_ps)


def rms_fairness(
    records: Records, traffic: Sequence[int], target_bps: float, window: Window | None = None
) -> pl.DataFrame:
    """RMS distance of the delivered rates x_i of n flows from their fair share T, relative to it; 0 is fair.

    sqrt(sum ((x_i - T) / T)^2 / n). Source: BCN Calibration 2006, "Simulation Statistics".
    """
    distance = (pl.col("rate_bps") - target_bps) * (1 / target_bps)
    return by_replicate(records, _flow_rates(records, traffic, window), (distance**2).mean().sqrt())


class RateError(WindowedFlowMeasure):
    """Distance of the flows' delivered rates from a target, relative to it: |x - T| / T."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["rate-error"]
    target: PositiveRate
    """Rate that each flow should have."""
    take: Literal["max", "mean"] = "max"
    """Of all flows: the greatest distance, or their mean."""

    def values(self, subject: Subject) -> pl.DataFrame:
        return rate_error(
            subject.records, subject.ids, float(self.target.bps), self.window_ps, mean=self.take == "mean"
        )


def rate_error(
    records: Records,
    traffic: Sequence[int],
    target_bps: float,
    window: Window | None = None,
    *,
    mean: bool = False,
) -> pl.DataFrame:
    """Distance of the delivered rate x of a flow from a target T, relative to it, |x - T| / T: the greatest
    of all flows, or their `mean`. Source: BCN Calibration 2006, "Simulation Statistics"."""
    error = ((pl.col("rate_bps") - target_bps) * (1 / target_bps)).abs()
    return by_replicate(records, _flow_rates(records, traffic, window), error.mean() if mean else error.max())


class TimeToConverge(FlowMeasure):
    """Time from which on the RMS distance of the flows' rates from their fair share stays below a bound."""

    UNIT: ClassVar[str] = "ps"
    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["time-to-converge"]
    target: PositiveRate
    """Fair share of each flow."""
    within: PositiveFraction
    """That bound, relative to the fair share. Judged in each interval of the `flow` record that is needed."""

    def needs(self) -> Iterator[Need]:
        yield FlowSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        return time_to_converge(subject.records, subject.ids, float(self.target.bps), self.within)


def time_to_converge(
    records: Records, traffic: Sequence[int], target_bps: float, bound: float
) -> pl.DataFrame:
    """Time [ps] from which on the RMS fairness index, worked out in each recorded interval, does not exceed
    `bound` any more; null where it still does in the last one. See `rms_fairness`."""
    rows = flow_intervals(records, traffic)
    start = pl.col("t_ps").shift(1).over("replicate", "flow", order_by="t_ps").fill_null(0)
    rate = quotient(8e12 * pl.col("bytes").cast(pl.Float64), pl.col("t_ps") - pl.col("start_ps"))
    distance = (pl.col("rate_bps") - target_bps) * (1 / target_bps)
    series = (
        rows.with_columns(start_ps=start)
        .with_columns(rate_bps=rate)
        .group_by("replicate", "t_ps", maintain_order=True)
        .agg(index=(distance**2).mean().sqrt())
    )
    last_beyond = pl.col("t_ps").filter(pl.col("index") > bound).max().fill_null(0)
    return by_replicate(
        records, series, pl.when(last_beyond < pl.col("t_ps").max()).then(last_beyond.cast(pl.Float64))
    )


class SettlingTime(FlowMeasure):
    """Time from `after` until the rates of all flows are within a bound of their fair share and stay there
    for some time."""

    UNIT: ClassVar[str] = "ps"
    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["settling-time"]
    target: PositiveRate
    """Fair share of each flow."""
    within: PositiveFraction = 0.1
    """That bound, relative to the fair share. Judged in each interval of the `flow` record that is needed."""
    after: Span = Span(0)
    """When it was disturbed, such as by flows that came."""
    hold: PositiveSpan
    """For how long they have to stay."""

    def needs(self) -> Iterator[Need]:
        yield FlowSeries()

    def values(self, subject: Subject) -> pl.DataFrame:
        return settling_time(
            subject.records,
            subject.ids,
            float(self.target.bps),
            self.within,
            after_ps=self.after.ps,
            hold_ps=self.hold.ps,
        )


def settling_time(
    records: Records,
    traffic: Sequence[int],
    target_bps: float,
    bound: float,
    *,
    after_ps: int,
    hold_ps: int,
) -> pl.DataFrame:
    """Time [ps] from `after_ps` until the start of the first intervals, `hold_ps` long together, in all of
    which no flow's rate differs from the target by more than `bound` of it; null where there are none."""
    rows = flow_intervals(records, traffic)
    start = pl.col("t_ps").shift(1).over("replicate", "flow", order_by="t_ps").fill_null(0)
    rate = quotient(8e12 * pl.col("bytes").cast(pl.Float64), pl.col("t_ps") - pl.col("start_ps"))
    distance = ((pl.col("rate_bps") - target_bps) * (1 / target_bps)).abs()
    series = (
        rows.with_columns(start_ps=start)
        .filter(pl.col("start_ps") >= after_ps)
        .with_columns(rate_bps=rate)
        .group_by("replicate", "t_ps", "start_ps")
        .agg(near=(distance <= bound).all())
        .sort("replicate", "t_ps")
        .with_columns(run=pl.col("near").rle_id().over("replicate"))
    )
    calm = (
        series.filter("near")
        .group_by("replicate", "run", maintain_order=True)
        .agg(pl.col("start_ps").min(), pl.col("t_ps").max())
        .filter(pl.col("t_ps").cast(pl.Int64) - pl.col("start_ps").cast(pl.Int64) >= hold_ps)
    )
    return by_replicate(records, calm, pl.col("start_ps").cast(pl.Float64).min() - after_ps)


def _flow_rates(records: Records, traffic: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Columns `replicate`, `rate_bps`: delivered rate of each flow."""
    if window is None:
        rows = flow_rows(records, traffic)
        ends = records["runs"].select("replicate", "end_ps")
        rate = quotient(8e12 * pl.col("delivered_bytes").cast(pl.Float64), pl.col("end_ps"))
        return rows.join(ends, on="replicate", maintain_order="left").select("replicate", rate_bps=rate)
    series = flow_intervals(records, traffic, window)
    bits = series.group_by("replicate", "flow", maintain_order=True).agg(
        rate_bps=8e12 * pl.col("bytes").cast(pl.Float64).sum()
    )
    return bits.with_columns(rate_bps=quotient(pl.col("rate_bps"), pl.lit(float(window[1] - window[0]))))
