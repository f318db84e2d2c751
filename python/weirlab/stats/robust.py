"""Lines that outliers do not move, and intervals of shares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from weirlab.heavy import np
from weirlab.stats.arrays import paired
from weirlab.stats.distributions import t_quantile

_MANY = 10**9
"""Degrees of freedom with which Student's t is the normal distribution."""


@dataclass(frozen=True)
class RobustLine:
    """y = slope x + intercept, with intervals."""

    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    intercept_low: float
    intercept_high: float
    residual: float
    """Median distance of the points from the line, in the unit of y."""
    count: int

    def at(self, x: float) -> float:
        """The value of the line at x."""
        return self.slope * x + self.intercept

    @property
    def half_width(self) -> float:
        """Half the width of the slope's interval."""
        return (self.slope_high - self.slope_low) / 2


def fit_robust_line(x: Iterable[float], y: Iterable[float], *, confidence: float = 0.95) -> RobustLine:
    """The line whose slope is the median of the slopes between all pairs of points with different x, and
    whose intercept is the median of y - slope x.

    Up to 29 % of the points may be wrong by any amount. The interval of the slope holds the true one with
    this confidence when errors are independent and alike, whatever their distribution: its ends are the
    slopes at the ranks (N -+ z sqrt(n (n - 1)(2 n + 5) / 18)) / 2 of N pairs, corrected for ties. Those
    of the intercept are the intercepts of the lines with these slopes.

    Raises ValueError with fewer than three different x. Source: Theil 1950, part I; Sen 1968, sections 2
    and 3.
    """
    a, b = paired(x, y, "robust line", least=3)
    if np.unique(a).size < 3:
        raise ValueError(f"robust line: three different x are needed (got {np.unique(a).size})")
    steps = np.subtract.outer(a, a)
    slopes = np.sort(np.subtract.outer(b, b)[steps > 0] / steps[steps > 0])
    ties = sum(_pairs_variance(np.unique(values, return_counts=True)[1]).sum() for values in (a, b))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(_pairs_variance(a.size) - ties)
    slope = float(np.median(slopes))
    low = float(slopes[max(round((slopes.size - reach) / 2) - 1, 0)])
    high = float(slopes[min(round((slopes.size + reach) / 2), slopes.size - 1)])

    def intercept(of: float) -> float:
        return float(np.median(b - of * a))

    ends = sorted((intercept(low), intercept(high)))
    residual = float(np.median(np.abs(b - slope * a - intercept(slope))))
    return RobustLine(slope, low, high, intercept(slope), ends[0], ends[1], residual, a.size)


def _pairs_variance(count: Any) -> Any:
    """Variance of Kendall's sum of signs over all pairs. Source: Sen 1968, equation 2.6."""
    return count * (count - 1) * (2 * count + 5) / 18


def wilson_interval(part: int, whole: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """An interval of the probability behind `part` of `whole` independent trials:
    (p + z^2/2n +- z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n).

    Unlike p +- z s it has a width where p is 0 or 1. Raises ValueError unless 0 <= part <= whole and
    whole > 0. Source: Wilson 1927.
    """
    if not 0 <= part <= whole or whole < 1:
        raise ValueError(f"share: {part} of {whole} cannot be")
    return _wilson(part / whole, whole, t_quantile((1 + confidence) / 2, _MANY))


def mean_share_interval(
    shares: Sequence[float], trials: Sequence[int], *, confidence: float = 0.95
) -> tuple[float, float]:
    """An interval of the mean of some shares, each found in its own number of trials.

    Wilson's, of the effective number of trials p (1 - p) / se^2, where p is the mean of the shares and se its
    standard error from their scatter, and with Student's quantile for as many shares. In the middle it is
    that of the mean of values; it lies within [0, 1] and has a width at both ends. Where the shares scatter
    less than those of all trials together would, as shares that are all 0 or all 1, or a single one, it is
    Wilson's of all trials. Of few small shares that scatter widely it holds the mean less often than it says:
    of eight around 6 % in 90 cases of 100, that of the mean of values in 82.

    Raises ValueError without shares, and for what is none. Source: Franco 2019, Wilson's interval with the
    effective sample size. DEVIATION: Student's quantile, as few shares leave their scatter uncertain.
    """
    count, whole = len(shares), sum(trials)
    if not count or count != len(trials) or min(trials) < 1:
        raise ValueError(f"share: {count} shares of {list(trials)} trials cannot be")
    if not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"share: from 0 to 1 (got {list(shares)})")
    mean = math.fsum(shares) / count
    spread = math.fsum((share - mean) ** 2 for share in shares)
    probability = (1 + confidence) / 2
    if count == 1 or spread * whole <= mean * (1 - mean) * count * (count - 1):
        return _wilson(mean, whole, t_quantile(probability, _MANY))
    effective = mean * (1 - mean) * count * (count - 1) / spread
    return _wilson(mean, effective, t_quantile(probability, count - 1))


def _wilson(share: float, trials: float, quantile: float) -> tuple[float, float]:
    middle = share + quantile**2 / (2 * trials)
    half = quantile * math.sqrt(share * (1 - share) / trials + quantile**2 / (4 * trials**2))
    scale = 1 + quantile**2 / trials
    # At 0 and 1 the ends are exact; rounding would leave 1e-17.
    low = 0.0 if share == 0 else (middle - half) / scale
    high = 1.0 if share == 1 else (middle + half) / scale
    return low, high


def ratio_interval(
    above: tuple[float, float, float], below: tuple[float, float, float]
) -> tuple[float, float]:
    """An interval of the ratio of two independent positive quantities from their own: each is an estimate
    with the ends of its interval.

    With a, (l1, u1) above and b, (l2, u2) below: (ab -+ sqrt((ab)^2 - l1 u2 (2a - l1)(2b - u2))) over
    u2 (2b - u2), with u1 and l2 for the upper end. Source: Donner & Zou 2012, method of variance estimates
    recovery.
    """
    (a, low_a, high_a), (b, low_b, high_b) = above, below
    if not (b > 0 and low_b > 0):
        raise ValueError(f"ratio: a divisor that may be 0 (got {b} from {low_b} to {high_b})")

    def end(of_a: float, of_b: float, sign: int) -> float:
        under = (a * b) ** 2 - of_a * of_b * (2 * a - of_a) * (2 * b - of_b)
        scale = of_b * (2 * b - of_b)
        return math.inf if scale <= 0 else (a * b + sign * math.sqrt(max(0.0, under))) / scale

    return max(0.0, end(low_a, high_b, -1)), end(high_a, low_b, +1)
