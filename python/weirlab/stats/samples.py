"""One sample: quantiles, spread, frequencies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weirlab.heavy import np
from weirlab.stats.arrays import Array, sample


def quantile(values: Iterable[float], probability: float) -> float:
    """The quantile x_(j) + (h - j)(x_(j+1) - x_(j)) of sorted values x_(1..n), h = (n - 1) p + 1, j =
    floor(h).

    Type 7, which spreadsheets use (`QUARTILE`). Raises ValueError without values, and with p outside of [0,
    1]. Source: Hyndman & Fan 1996, definition 7.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"quantile: the probability must lie in [0, 1] (got {probability})")
    return float(np.quantile(sample(values, "quantile"), probability, method="linear"))


def median(values: Iterable[float]) -> float:
    """The quantile of probability 1/2."""
    return quantile(values, 0.5)


def interquartile_range(values: Iterable[float]) -> float:
    """Third quartile less first quartile, both of type 7; see `quantile`."""
    array = sample(values, "interquartile range")
    return quantile(array, 0.75) - quantile(array, 0.25)


@dataclass(frozen=True)
class Spread:
    """What tables say of a sample; in the unit of its values."""

    mean: float
    deviation: float
    """Standard deviation, with n - 1; NaN of a single value."""
    median: float
    interquartile_range: float
    low: float
    """Least value."""
    high: float
    """Greatest value."""
    count: int


def spread(values: Iterable[float]) -> Spread:
    """Mean, standard deviation, median, interquartile range and extremes. Source: SLAC 2000, rate
    variability.
    """
    array = sample(values, "spread")
    return Spread(
        mean=float(array.mean()),
        deviation=float(array.std(ddof=1)) if array.size > 1 else float("nan"),
        median=median(array),
        interquartile_range=interquartile_range(array),
        low=float(array.min()),
        high=float(array.max()),
        count=array.size,
    )


def ecdf(values: Iterable[float], at: float) -> float:
    """Share of the values that are not above `at`: the empirical distribution function F(at), in [0, 1]."""
    array = sample(values, "distribution function")
    return float(np.count_nonzero(array <= at)) / array.size


@dataclass(frozen=True)
class Frequencies:
    """How many values lie in each of several bins (lower edge, upper edge]."""

    edges: Array
    """Edges [bins + 1] in ascending order; the first belongs to the first bin."""
    counts: Array
    """Values in each bin [bins]: whole numbers."""

    @property
    def centres(self) -> Array:
        """Middle of each bin [bins]."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    @property
    def cumulative(self) -> Array:
        """Share of the values up to the upper edge of each bin [bins], ending with 1."""
        return np.asarray(np.cumsum(self.counts) / self.counts.sum())


def frequencies(values: Iterable[float], width: float, *, origin: float = 0.0) -> Frequencies:
    """Values counted in bins of equal width from `origin` on, up to the bin of the greatest value.

    Bin k holds origin + (k - 1) width < x <= origin + k width, as spreadsheets count (`FREQUENCY`); the
    first one holds `origin`, too. Raises ValueError with a width that is not positive, and with values
    below `origin`.
    """
    array = sample(values, "frequencies")
    if not 0 < width < np.inf:
        raise ValueError(f"frequencies: bins must be wider than 0 (got {width})")
    if array.min() < origin:
        raise ValueError(f"frequencies: no value may lie below {origin} (got {array.min()})")
    edges = origin + width * np.arange(np.ceil((array.max() - origin) / width) + 2)
    bins = max(int(np.searchsorted(edges, array.max())), 1)
    places = np.maximum(np.searchsorted(edges, array) - 1, 0)
    counts = np.bincount(places, minlength=bins).astype(np.float64)
    return Frequencies(edges=edges[: bins + 1], counts=counts)
