"""How much a result hangs on each parameter, from points that fill a space of parameters.

Points may lie in strata, such as the combinations of the factors of a study: ranks are then those within
each stratum, so that what the strata do to the result does not count as an effect of a parameter.

Both measures see ranks only: a result that saturates, as throughput does, needs no transformation. The rank
correlation sees what grows or falls, PAWN any effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from weirlab.heavy import np
from weirlab.stats.arrays import Array

SLICES = 10
"""Equal parts of a parameter's values, in each of which PAWN looks at the result."""


@dataclass(frozen=True)
class RankCorrelation:
    """A rank correlation, and where it lies with 95 % confidence."""

    rho: float
    low: float
    high: float


def within_strata(values: Sequence[float] | Array, strata: Sequence[int] | None = None) -> np.ndarray:
    """Ranks of the values within their stratum, from -1 to 1, equal values with the mean of theirs; all 0 in
    a stratum whose values are the same. Shape: that of `values`."""
    given = np.asarray(values, dtype=float)
    if not np.isfinite(given).all():
        raise ValueError("ranks need finite values")
    groups = np.zeros(len(given), dtype=int) if strata is None else np.asarray(strata)
    order = np.lexsort((given, groups))
    of, value = groups[order], given[order]
    ranks = np.empty(len(given))
    ranks[order] = _scaled(_ends(of[1:] != of[:-1]), _ends((of[1:] != of[:-1]) | (value[1:] != value[:-1])))
    return ranks


def _ends(changes: np.ndarray) -> np.ndarray:
    """Of sorted places, cut where something changes, the first and the last of the part of each, shape (2,
    places)."""
    count = len(changes) + 1
    cuts = np.concatenate([[0], np.flatnonzero(changes) + 1, [count]])
    parts = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    return np.stack([cuts[parts], cuts[parts + 1] - 1])


def _scaled(stratum: np.ndarray, same: np.ndarray) -> np.ndarray:
    """The mean of the ranks of those with the same value, by the places of these and of the stratum."""
    mean = (same[0] + same[1]) / 2 - stratum[0]
    most = stratum[1] - stratum[0]
    ranks: np.ndarray = np.divide(2 * mean - most, most, out=np.zeros(len(mean)), where=most > 0)
    return ranks


def rank_correlation(
    x: Sequence[float], y: Sequence[float], strata: Sequence[int] | None = None
) -> RankCorrelation:
    """Spearman's rank correlation of x and y, within strata; NaN where all x or all y are the same.

    The interval is that of Fisher's transformation with the variance (1 + rho^2/2)/(n - 3).
    Source: Spearman 1904; Bonett & Wright 2000.
    """
    if len(x) != len(y) or len(x) < 4:
        raise ValueError(f"a rank correlation needs 4 pairs of values (got {len(x)} and {len(y)})")
    u, v = within_strata(x, strata), within_strata(y, strata)
    if not (u.any() and v.any()):
        return RankCorrelation(math.nan, math.nan, math.nan)
    rho = float(np.clip(u @ v / math.sqrt((u @ u) * (v @ v)), -1.0, 1.0))
    if abs(rho) == 1.0:
        return RankCorrelation(rho, rho, rho)
    half = NormalDist().inv_cdf(0.975) * math.sqrt((1 + rho * rho / 2) / (len(u) - 3))
    return RankCorrelation(rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))


def pawn(
    x: Sequence[float], y: Sequence[float], strata: Sequence[int] | None = None, *, slices: int = SLICES
) -> float:
    """PAWN index of x for y, 0 to 1: the median, over slices of x that hold equally many points, of the
    greatest difference between the distribution of y (ranked within strata) in the slice and everywhere.

    Source: Pianosi & Wagener 2018.
    """
    _enough(len(x), slices)
    parts = np.array_split(np.argsort(within_strata(x, strata), kind="stable"), slices)
    return _indices(within_strata(y, strata), [parts])[0]


def pawn_of_chance(
    y: Sequence[float],
    strata: Sequence[int] | None = None,
    *,
    slices: int = SLICES,
    draws: int = 200,
    seed: int = 1,
) -> float:
    """The PAWN index that a parameter without any effect exceeds in one case of 20: the 95 % quantile over
    random orders of the points. Source: Pianosi & Wagener 2018, the dummy parameter."""
    _enough(len(y), slices)
    chance = np.random.default_rng(seed)
    orders = (chance.permutation(len(y)) for _ in range(draws))
    found = _indices(within_strata(y, strata), (np.array_split(order, slices) for order in orders))
    return float(np.quantile(found, 0.95))


def _indices(ranks: np.ndarray, divisions: Iterable[Sequence[np.ndarray]]) -> list[float]:
    """For each division into parts the median of the Kolmogorov-Smirnov distances between the values of each
    part and all of them."""
    levels, places, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    everywhere = np.cumsum(counts) / len(ranks)

    def distance(part: np.ndarray) -> float:
        here = np.cumsum(np.bincount(places[part], minlength=len(levels))) / len(part)
        return float(np.abs(here - everywhere).max())

    return [float(np.median(list(map(distance, parts)))) for parts in divisions]


def _enough(points: int, slices: int) -> None:
    if points < 2 * slices:
        raise ValueError(f"{slices} slices need at least {2 * slices} points (got {points})")
