"""Statistics of replicates, without a dependency on scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Interval", "mean_interval", "t_quantile"]


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float
    count: int
    """Number of values."""

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """Mean of independent values and the interval that holds the true mean with this confidence.

    mean +- t(n - 1, (1 + confidence) / 2) s / sqrt(n), with s^2 = sum (x - mean)^2 / (n - 1): exact where
    values are normal, good where there are many. None without values; a single value has no interval: low =
    high = NaN. Source: Student 1908.
    """
    count = len(values)
    if count == 0:
        return None
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, math.nan, math.nan, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = t_quantile((1 + confidence) / 2, count - 1) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half, count)


def t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t distribution, by bisection of its distribution function; error below 1e-9
    relative.

    Raises ValueError unless probability lies in (0, 1) and degrees of freedom are 1 or more.
    """
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(f"no quantile {probability} of Student's t with {degrees} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    low, high = 0.0, 1.0
    while _t_distribution(high, degrees) < probability:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _t_distribution(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return high


def _t_distribution(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0. Source: Abramowitz & Stegun 1964, 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(degrees))
    cosine_squared = math.cos(theta) ** 2
    odd = degrees % 2
    term = total = (math.cos(theta) if odd else 1.0) if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    inside = math.sin(theta) * total
    return 0.5 + (theta + inside) / math.pi if odd else 0.5 + inside / 2
