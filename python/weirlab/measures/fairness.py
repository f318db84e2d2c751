"""How evenly flows are served: distances of their rates from each other, and from a target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from weirlab.fields.values import PositiveFraction, PositiveRate, PositiveSpan
from weirlab.heavy import pl
from weirlab.measures.base import FlowMeasure, FlowSeries, Need, Subject, WindowedFlowMeasure
from weirlab.measures.rows import Window, by_replicate, flow_intervals, flow_rows, jain_index, quotient
from weirlab.units import Rate, Span


class JainFairness(WindowedFlowMeasure):
    """Jain's index of the flows' delivered rates, (sum x)^2 / (n sum x^2); 1 is fair."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["jain-fairness"]

    def values(self, subject: Subject) -> pl.DataFrame:
        rates = _flow_rates(subject, self.window_ps)
        return by_replicate(subject.records, rates, jain_index("rate_bps"))


class RmsFairness(WindowedFlowMeasure):
    """RMS distance of the flows' delivered rates x from their fair share T, relative to it:
    sqrt(mean(((x - T) / T)^2)); 0 is fair."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["rms-fairness"]
    target: PositiveRate
    """Fair share of each flow."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """Source: BCN Calibration 2006, "Simulation Statistics"."""
        rates = _flow_rates(subject, self.window_ps)
        return by_replicate(subject.records, rates, _rms_distance(self.target))


class RateError(WindowedFlowMeasure):
    """Distance of the flows' delivered rates from a target, relative to it: |x - T| / T."""

    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["rate-error"]
    target: PositiveRate
    """Rate that each flow should have."""
    take: Literal["max", "mean"] = "max"
    """Of all flows: the greatest distance, or their mean."""

    def values(self, subject: Subject) -> pl.DataFrame:
        """Source: BCN Calibration 2006, "Simulation Statistics"."""
        rates, error = _flow_rates(subject, self.window_ps), _distance(self.target).abs()
        return by_replicate(subject.records, rates, error.mean() if self.take == "mean" else error.max())


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
        """Null where the distance still exceeds the bound in the last interval."""
        series = _interval_rates(subject).group_by("replicate", "t_ps", maintain_order=True)
        last_beyond = pl.col("t_ps").filter(pl.col("index") > self.within).max().fill_null(0)
        return by_replicate(
            subject.records,
            series.agg(index=_rms_distance(self.target)),
            pl.when(last_beyond < pl.col("t_ps").max()).then(last_beyond.cast(pl.Float64)),
        )


class SettlingTime(FlowMeasure):
    """Time from `after` until the rates of all flows are within a bound of their fair share, or of what they
    had before, and stay there for some time: convergence after arrivals, or after links have failed."""

    UNIT: ClassVar[str] = "ps"
    JOINS_PARTS: ClassVar[bool] = True

    kind: Literal["settling-time"]
    target: PositiveRate | None = None
    """Fair share of each flow. Absent: its mean rate in the time `hold` before `after`, from its first frame
    on."""
    within: PositiveFraction = 0.1
    """That bound, relative to the target. Judged in each interval of the `flow` record that is needed."""
    after: Span = Span(0)
    """When it was disturbed, such as by flows that came."""
    hold: PositiveSpan
    """For how long they have to stay."""

    def needs(self) -> Iterator[Need]:
        yield FlowSeries()

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.target is None and self.after.ps == 0:
            yield "target", "is missing: a rate, or a time 'after' which flows come back to what they had"

    def values(self, subject: Subject) -> pl.DataFrame:
        """Until the start of the first intervals, `hold` long together, in all of which no flow's rate
        differs from the target by more than the bound; null where there are none. Without a target it is the
        mean rate of each flow in intervals that start in the time `hold` before `after`, from that of its
        first bytes on; flows without any there do not count."""
        after_ps = self.after.ps
        before = (
            (pl.col("t_ps") <= after_ps)
            & (pl.col("start_ps") >= max(0, after_ps - self.hold.ps))
            & (pl.col("t_ps") >= pl.col("t_ps").filter(pl.col("bytes") > 0).min())
        )
        lasted = (pl.col("t_ps") - pl.col("start_ps")).filter(before).sum()
        own = 8e12 * pl.col("bytes").cast(pl.Float64).filter(before).sum() / lasted  # NaN without any
        target = own.over("replicate", "flow") if self.target is None else pl.lit(float(self.target.bps))
        distance = (pl.col("rate_bps") - pl.col("target")).abs() / pl.col("target")
        series = (
            _interval_rates(subject)
            .with_columns(target=target)
            .filter(pl.col("start_ps") >= after_ps, pl.col("target").is_finite() & (pl.col("target") > 0))
            .group_by("replicate", "t_ps", "start_ps")
            .agg(near=(distance <= self.within).all())
            .sort("replicate", "t_ps")
            .with_columns(run=pl.col("near").rle_id().over("replicate"))
        )
        calm = (
            series.filter("near")
            .group_by("replicate", "run", maintain_order=True)
            .agg(pl.col("start_ps").min(), pl.col("t_ps").max())
            .filter(pl.col("t_ps").cast(pl.Int64) - pl.col("start_ps").cast(pl.Int64) >= self.hold.ps)
        )
        return by_replicate(subject.records, calm, pl.col("start_ps").cast(pl.Float64).min() - after_ps)


def _distance(target: Rate) -> pl.Expr:
    """Of a rate from its target, relative to it."""
    return (pl.col("rate_bps") - target.bps) * (1 / target.bps)


def _rms_distance(target: Rate) -> pl.Expr:
    """sqrt(sum ((x_i - T) / T)^2 / n) of the rates x_i of n flows."""
    return (_distance(target) ** 2).mean().sqrt()


def _interval_rates(subject: Subject) -> pl.DataFrame:
    """Recorded intervals of each flow, with the columns `start_ps` and `rate_bps`."""
    start = pl.col("t_ps").shift(1).over("replicate", "flow", order_by="t_ps").fill_null(0)
    rate = quotient(8e12 * pl.col("bytes").cast(pl.Float64), pl.col("t_ps") - pl.col("start_ps"))
    rows = flow_intervals(subject.records, subject.ids)
    return rows.with_columns(start_ps=start).with_columns(rate_bps=rate)


def _flow_rates(subject: Subject, window: Window | None) -> pl.DataFrame:
    """Columns `replicate`, `rate_bps`: delivered rate of each flow."""
    if window is None:
        rows = flow_rows(subject.records, subject.ids)
        ends = subject.records["runs"].select("replicate", "end_ps")
        rate = quotient(8e12 * pl.col("delivered_bytes").cast(pl.Float64), pl.col("end_ps"))
        return rows.join(ends, on="replicate", maintain_order="left").select("replicate", rate_bps=rate)
    series = flow_intervals(subject.records, subject.ids, window)
    bits = series.group_by("replicate", "flow", maintain_order=True).agg(
        rate_bps=8e12 * pl.col("bytes").cast(pl.Float64).sum()
    )
    return bits.with_columns(rate_bps=quotient(pl.col("rate_bps"), pl.lit(float(window[1] - window[0]))))
