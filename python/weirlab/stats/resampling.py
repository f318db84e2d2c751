"""How far a statistic of some runs lies from that of other runs of the same thing: means, deviations,
quantiles and extremes alike.

The distribution behind a sample is taken to be the sample itself in its middle, and a generalized Pareto
distribution in each tail, so that a greatest value of other runs can lie above all that were seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from weirlab.heavy import np
from weirlab.stats.arrays import Array, sample
from weirlab.stats.distributions import t_quantile

CONFIDENCE = 0.99
"""Of all margins, unless they say another."""
_TAIL_SHARE, _LEAST_TAIL = 0.1, 10
"""Of the values each tail is fitted to: a tenth, and ten at least (of small samples nearly half)."""
_SHAPES = (0.0, 10.0)
"""Least and greatest shape of a tail: none is heavier than an exponential one. That a tenth of a few hundred
values told it to be heavier would leave their extremes open to any extent."""
_DRAWS = 1000
_CHUNK = 100
"""Of the draws at a time, to bound the memory."""


@dataclass(frozen=True)
class Margin:
    """How far below and above the same statistic of other runs one may lie, in its unit."""

    below: float
    above: float
    error: float = math.nan
    """Its own standard error."""


def mean_margin(
    deviation: float,
    count: int,
    other_deviation: float,
    other_count: int,
    *,
    confidence: float = CONFIDENCE,
) -> Margin:
    """How far two means of independent values may lie apart: t(v) sqrt(s1^2 / n1 + s2^2 / n2), with v = (s1^2
    / n1 + s2^2 / n2)^2 / ((s1^2 / n1)^2 / (n1 - 1) + (s2^2 / n2)^2 / (n2 - 1)).

    Both standard deviations in the unit of the values. Raises ValueError with a count below 2.
    Source: Welch 1947.
    """
    if min(count, other_count) < 2:
        raise ValueError(f"a mean's margin needs two values or more (got {count} and {other_count})")
    one, two = deviation**2 / count, other_deviation**2 / other_count
    if one + two == 0:
        return Margin(0.0, 0.0, 0.0)
    degrees = (one + two) ** 2 / (one**2 / (count - 1) + two**2 / (other_count - 1))
    half = t_quantile((1 + confidence) / 2, max(1, math.floor(degrees))) * math.sqrt(one + two)
    return Margin(half, half, math.sqrt(one))


def statistic_margin(
    values: Iterable[float],
    other_count: int,
    statistic: Callable[[Array], Array],
    *,
    confidence: float = CONFIDENCE,
    low: float = -math.inf,
    high: float = math.inf,
) -> Margin:
    """How far `statistic` of `values` may lie from that of `other_count` independent values of the same
    distribution.

    A bootstrap of the prediction: a sample is drawn like `values`, and other values are drawn like that
    sample, so that what is not known of the distribution counts, too. The statistic takes samples [draws,
    count] to numbers [draws]. No value lies below `low` or above `high`. The numbers are the same whenever
    they are asked for. Raises ValueError with fewer than five values. Source: Efron & Tibshirani 1993,
    chapter 6 and section 25.7.
    """
    given = sample(values, "margin", least=5)
    mine, other = _drawn(given.tobytes(), other_count, low, high)
    part = (1.0 - confidence) / 2.0
    least, most = (float(value) for value in np.quantile(statistic(other), [part, 1.0 - part]))
    here = float(statistic(given[np.newaxis])[0])
    return Margin(max(0.0, most - here), max(0.0, here - least), float(statistic(mine).std(ddof=1)))


@lru_cache(maxsize=2)
def _drawn(values: bytes, other_count: int, low: float, high: float) -> tuple[Array, Array]:
    """Samples like the values, and other values like these samples: kept for the next statistic."""
    given = np.frombuffer(values, dtype=np.float64)
    rng = np.random.default_rng(0)
    mine, other = [], []
    for _ in range(_DRAWS // _CHUNK):
        mine.append(np.clip(drawn_like(np.tile(given, (_CHUNK, 1)), given.size, rng), low, high))
        other.append(np.clip(drawn_like(mine[-1], other_count, rng), low, high))
    return np.concatenate(mine), np.concatenate(other)


STATISTICS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "min": lambda x: np.asarray(x.min(axis=1)),
        "mean": lambda x: np.asarray(x.mean(axis=1)),
        "max": lambda x: np.asarray(x.max(axis=1)),
        "std": lambda x: np.asarray(x.std(axis=1, ddof=1)),
        "median": lambda x: np.asarray(np.median(x, axis=1)),
        "iqr": lambda x: np.asarray(np.subtract(*np.quantile(x, [0.75, 0.25], axis=1))),
    }
)
"""Those that tables print, by the name of their column."""


def drawn_like(samples: Array, count: int, rng: np.random.Generator) -> Array:
    """Values [draws, count] of the distributions behind `samples` [draws, n], n at least 5."""
    ordered = np.sort(samples, axis=1)
    size = ordered.shape[1]
    many = min(max(_LEAST_TAIL, round(_TAIL_SHARE * size)), (size - 1) // 2)
    chance = rng.random((samples.shape[0], count))
    # Between its order statistics the middle is linear.
    share, last = many / size, size - 2 * many - 1
    place = np.clip((chance - share) / (1.0 - 2.0 * share), 0.0, 1.0) * last
    lower = np.minimum(place.astype(np.int64), max(0, last - 1))
    step = place - lower
    first = np.take_along_axis(ordered, many + lower, axis=1)
    second = np.take_along_axis(ordered, np.minimum(many + lower + 1, size - many - 1), axis=1)
    made = first + step * (second - first)
    tiny = np.finfo(np.float64).tiny
    low, high = ordered[:, many : many + 1], ordered[:, size - many - 1 : size - many]
    below = low - _excess(low - ordered[:, :many], np.clip(chance / share, tiny, 1.0))
    above = high + _excess(ordered[:, -many:] - high, np.clip((1.0 - chance) / share, tiny, 1.0))
    return np.where(chance < share, below, np.where(chance > 1.0 - share, above, made))


def _excess(excesses: Array, beyond: Array) -> Array:
    """The excess that is exceeded with the probabilities `beyond` [draws, count], of the generalized Pareto
    distributions behind `excesses` [draws, n]: x = scale (1 - beyond^shape) / shape.

    By probability-weighted moments: a0 = mean of x, a1 = mean of (1 - p) x with p = (i - 0.35) / n of the
    i-th smallest; shape = a0 / (a0 - 2 a1) - 2, scale = (1 + shape) a0.
    Source: Hosking & Wallis 1987, section 3.2.
    """
    ordered = np.sort(excesses, axis=1)
    weights = 1.0 - (np.arange(1, ordered.shape[1] + 1) - 0.35) / ordered.shape[1]
    zeroth, first = ordered.mean(axis=1, keepdims=True), (weights * ordered).mean(axis=1, keepdims=True)
    apart = zeroth - 2.0 * first
    shape = np.clip(np.where(apart > 0, zeroth / np.where(apart > 0, apart, 1.0) - 2.0, 0.0), *_SHAPES)
    shape = np.maximum(shape, 1e-6)
    return np.asarray(zeroth * (1.0 + shape) * (1.0 - beyond**shape) / shape)
