"""Several streams at once: what they carry together, how evenly, and how that grows with their number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weirlab.heavy import np
from weirlab.stats.arrays import Array, paired, sample
from weirlab.stats.distributions import t_tails
from weirlab.stats.fits import Line, Proportion, fit_line, fit_proportion
from weirlab.stats.samples import median
from weirlab.stats.sensitivity import within_strata


def aggregate_goodput(delivered_bytes: Iterable[int], duration_s: float) -> float:
    """What all streams of a measurement delivered together [bit/s]: sum of 8 bytes / duration, at the
    receiver.
    """
    if not duration_s > 0:
        raise ValueError(f"goodput: the duration must be positive (got {duration_s})")
    return 8 * math.fsum(delivered_bytes) / duration_s


def window_bound(window_bytes: float, rtt_s: float) -> float:
    """What a window lets one stream carry [bit/s]: 8 W / RTT. Source: RFC 7323, section 1.1."""
    return 8 * window_bytes / rtt_s


def effective_window(rate_bps: float, rtt_s: float) -> float:
    """The window that a stream behaved as if it had [bytes]: rate RTT / 8, by Little's law.

    The window asked for is another one: systems round it, double it and charge their own overhead to it.
    """
    return rate_bps * rtt_s / 8


def shares(rates: Iterable[float]) -> Array:
    """Share of each stream in their sum [n]; adds up to 1. Raises ValueError where nothing was delivered."""
    array = _rates(rates)
    total = array.sum()
    if total == 0:
        raise ValueError("shares: nothing was delivered")
    return np.asarray(array / total)


def jain_index(rates: Iterable[float]) -> float:
    """(sum x)^2 / (n sum x^2), in [1/n, 1]; 1 is even. NaN where nothing was delivered.

    Source: Jain 1984.
    """
    array = _rates(rates)
    if array.max() == 0:
        return math.nan
    # As parts of the greatest, so that no square is too small or too large to be held.
    array = array / array.max()
    return float(array.sum() ** 2 / (array.size * np.sum(array**2)))


def unevenness(rates: Iterable[float]) -> float:
    """Greatest rate over least rate, 1 or more; infinite where a stream delivered nothing, NaN where all
    did.
    """
    array = _rates(rates)
    low, high = float(array.min()), float(array.max())
    if low == 0:
        return math.inf if high > 0 else math.nan
    return high / low


@dataclass(frozen=True)
class LinearRange:
    """Up to which number of streams the goodput grows in proportion to it."""

    streams: float
    """The greatest such number among those measured."""
    growth: Proportion
    """The fit of goodput = factor x streams up to there."""
    saturation: float | None
    """Least measured number of streams beyond, with less than (1 - tolerance) factor x streams; None: none.
    """


def linear_range(
    streams: Iterable[float], goodputs: Iterable[float], *, tolerance: float = 0.1
) -> LinearRange:
    """The longest run of stream numbers, from the least on, in which goodput = beta N fits.

    The run grows by the next number of streams as long as its median goodput is not below (1 -
    tolerance) beta N, beta being the fit of all measurements of the run so far. `streams`, `goodputs`
    [n]: one value per measurement. Source: SLAC 2000, effect of streams ("grows roughly linearly").
    """
    counts, rates = paired(streams, goodputs, "linear range", least=1)
    if not 0 < tolerance < 1:
        raise ValueError(f"linear range: the tolerance must lie in (0, 1) (got {tolerance})")
    levels = np.unique(counts)
    upto = float(levels[0])
    growth = _growth(counts, rates, upto)
    saturation = None
    for level in levels[1:].tolist():
        if median(rates[counts == level]) < (1 - tolerance) * growth.factor * level:
            saturation = level
            break
        upto = level
        growth = _growth(counts, rates, upto)
    return LinearRange(upto, growth, saturation)


def saturates_at(
    streams: Iterable[float], goodputs: Iterable[float], *, linear_until: float, tolerance: float = 0.1
) -> float | None:
    """Least measured N whose median goodput is below (1 - tolerance) beta N; None if none is.

    beta fits the measurements with N <= `linear_until`.
    """
    counts, rates = paired(streams, goodputs, "saturation", least=1)
    factor = _growth(counts, rates, linear_until).factor
    for level in np.unique(counts).tolist():
        if median(rates[counts == level]) < (1 - tolerance) * factor * level:
            return float(level)
    return None


@dataclass(frozen=True)
class DurationTrend:
    """Whether goodput depends on how long is measured."""

    line: Line
    """Goodput against ln(duration)."""
    slope_interval: tuple[float, float]
    """Of the slope, at the confidence asked for."""
    rank_correlation: float
    """Spearman's rho of goodput and duration, in [-1, 1]; NaN where either does not vary."""
    rank_probability: float
    """How likely a rho at least as far from 0 is without any dependence, by Student's t."""


def duration_trend(
    durations_s: Iterable[float], goodputs: Iterable[float], *, confidence: float = 0.95
) -> DurationTrend:
    """Goodput against the logarithm of the duration: slope, its interval, and Spearman's rank
    correlation.

    Raises ValueError with fewer than three measurements, with one duration only, and with one that is not
    positive. Source: SLAC 2000, effect of duration; Spearman 1904.
    """
    durations, rates = paired(durations_s, goodputs, "duration", least=3)
    if durations.min() <= 0:
        raise ValueError(f"duration: durations must be positive (got {durations.min()})")
    line = fit_line(np.log(durations), rates)
    rho, probability = math.nan, math.nan
    if rates.min() < rates.max():
        ranks = within_strata(durations), within_strata(rates)
        rho = float(np.corrcoef(*ranks)[0, 1])
        degrees = len(rates) - 2
        probability = t_tails(rho * math.sqrt(degrees / (1 - rho**2)), degrees) if abs(rho) < 1 else 0.0
    return DurationTrend(line, line.slope_interval(confidence=confidence), rho, probability)


def cpu_percent(cpu_s: float, wall_s: float) -> float:
    """CPU time over wall-clock time x 100: per cent of one CPU, above 100 with several."""
    if not wall_s > 0 or cpu_s < 0:
        raise ValueError(f"CPU: {cpu_s} s of {wall_s} s is no share")
    return 100 * cpu_s / wall_s


@dataclass(frozen=True)
class CpuCost:
    """CPU against goodput, both ways in which it is reported; their R^2 are different numbers."""

    proportion: Proportion
    """% = alpha x goodput; `factor` is alpha."""
    line: Line
    """% = slope x goodput + intercept."""


def cpu_cost(goodputs: Sequence[float], cpu_percents: Sequence[float]) -> CpuCost:
    """CPU in per cent of one CPU against goodput, through the origin and with an intercept.

    The unit of alpha is per cent per unit of goodput. Source: SLAC 2000, effect on CPU utilisation.
    """
    return CpuCost(fit_proportion(goodputs, cpu_percents), fit_line(goodputs, cpu_percents))


def _growth(counts: Array, rates: Array, upto: float) -> Proportion:
    used = counts <= upto
    if not used.any():
        raise ValueError(f"streams: no measurement with {upto} or fewer (least: {counts.min()})")
    return fit_proportion(counts[used], rates[used])


def _rates(values: Iterable[float]) -> Array:
    array = sample(values, "rates of streams")
    if array.min() < 0:
        raise ValueError(f"rates of streams are not negative (got {array.min()})")
    return array
