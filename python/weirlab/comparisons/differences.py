"""The difference of a quantity between two results, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weirlab.comparisons.quantities import Quantity
from weirlab.stats import mean_interval, t_quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How much more a quantity is in one result than in the first."""

    before: Quantity
    after: Quantity
    first: float
    """Mean of the first result; of a search the middle of its bounds. NaN without values."""
    second: float
    change: float
    """`second - first`."""
    low: float
    """The change lies from here to `high` with 95 % confidence; NaN where there are fewer than two values. Of
    a search, from bounds to bounds: without chance, as far as the bounds are right."""
    high: float
    pairs: int
    """Seeds that both results share, where the interval is of differences by seed; else 0."""
    exact: bool = False
    """Whether all replicates of each result are the same: the change is what it is, without chance."""

    @property
    def relative(self) -> float:
        """The change as a share of the first mean; NaN where that is 0."""
        return self.change / abs(self.first) if self.first else math.nan

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def difference(before: Quantity, after: Quantity) -> Difference:
    """See `Difference`."""
    change, low, high, pairs = contrast(before, after, 1.0)
    return Difference(
        before=before,
        after=after,
        first=_mean(before),
        second=_mean(after),
        change=change,
        low=low,
        high=high,
        pairs=pairs,
    )


def contrast(before: Quantity, after: Quantity, factor: float) -> tuple[float, float, float, int]:
    """`after - factor x before`: the estimate, its interval, and the number of pairs it is of.

    Where the results share two seeds or more, and each has no other: Student's t of the differences by seed.
    Else the interval of Welch 1947, for unequal variances. NaN as bounds where one result has fewer than two
    values.
    """
    if before.bounds is not None and after.bounds is not None:
        least, most = sorted(factor * bound for bound in before.bounds)
        middle = _mean(after) - factor * _mean(before)
        return middle, after.bounds[0] - most, after.bounds[1] - least, 0
    a, b = before.values, after.values
    if not a or not b:
        return math.nan, math.nan, math.nan, 0
    if a.keys() == b.keys():
        interval = mean_interval([b[seed] - factor * a[seed] for seed in a], confidence=CONFIDENCE)
        assert interval is not None
        return interval.mean, interval.low, interval.high, interval.count if interval.count > 1 else 0
    x, y = [factor * value for value in a.values()], list(b.values())
    estimate = math.fsum(y) / len(y) - math.fsum(x) / len(x)
    half = _welch(x, y)
    return estimate, estimate - half, estimate + half, 0


def _mean(quantity: Quantity) -> float:
    if quantity.bounds is not None:
        return sum(quantity.bounds) / 2
    interval = mean_interval(list(quantity.values.values()))
    return math.nan if interval is None else interval.mean


def _welch(x: Sequence[float], y: Sequence[float]) -> float:
    """Half the length of the interval of the difference of two means; NaN with fewer than two values."""
    if min(len(x), len(y)) < 2:
        return math.nan
    parts = [variance(values) / len(values) for values in (x, y)]
    total = sum(parts)
    if total == 0:
        return 0.0
    degrees = total**2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, (x, y), strict=True))
    # Student's quantile is of whole degrees here: the smaller one is on the safe side.
    return t_quantile((1 + CONFIDENCE) / 2, max(1, math.floor(degrees))) * math.sqrt(total)


def variance(values: Sequence[float]) -> float:
    """NaN of fewer than two values."""
    if len(values) < 2:
        return math.nan
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
