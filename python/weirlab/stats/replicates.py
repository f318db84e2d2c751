"""Means of replicates and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weirlab.stats.distributions import t_quantile


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
    # Rounding puts the mean of equal values beside them.
    mean = min(max(math.fsum(values) / count, min(values)), max(values))
    if count == 1:
        return Interval(mean, math.nan, math.nan, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = t_quantile((1 + confidence) / 2, count - 1) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half, count)
