"""Fits of one quantity to another by least squares, and how good they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from weirlab.heavy import np
from weirlab.stats.arrays import Array, paired
from weirlab.stats.distributions import t_quantile


def r_squared(observed: Iterable[float], predicted: Iterable[float], *, about: float | None = None) -> float:
    """Share of the variation of `observed` that `predicted` explains: 1 - sum (y - f)^2 / sum (y - m)^2.

    m is the mean of the observed values, or `about`: 0 for fits through the origin. At most 1; negative
    where m itself would predict better. NaN where nothing varies. Source: Draper & Smith 1998, sections 1.3
    and 5.1.
    """
    y, f = paired(observed, predicted, "R^2", least=1)
    centre = float(y.mean()) if about is None else about
    total = float(np.sum((y - centre) ** 2))
    return 1 - float(np.sum((y - f) ** 2)) / total if total > 0 else math.nan


@dataclass(frozen=True)
class Line:
    """y = slope x + intercept."""

    slope: float
    intercept: float
    r_squared: float
    """About the mean; see `r_squared`."""
    slope_error: float
    """Standard error of the slope; NaN with two points."""
    intercept_error: float
    """Standard error of the intercept; NaN with two points."""
    count: int

    def at(self, x: float) -> float:
        """The value of the line at x."""
        return self.slope * x + self.intercept

    def slope_interval(self, *, confidence: float = 0.95) -> tuple[float, float]:
        """slope +- t(n - 2) times its error: holds the true slope with this confidence when errors are
        normal and alike. Raises ValueError with fewer than three points.
        """
        half = t_quantile((1 + confidence) / 2, self.count - 2) * self.slope_error
        return self.slope - half, self.slope + half


def fit_line(x: Iterable[float], y: Iterable[float]) -> Line:
    """The line of least squares: slope = sum (x - mx)(y - my) / sum (x - mx)^2, through the means (mx, my).

    Raises ValueError with fewer than two different x. Source: Draper & Smith 1998, sections 1.2 and 1.4.
    """
    a, b = paired(x, y, "line")
    mean_x, mean_y = float(a.mean()), float(b.mean())
    sxx = float(np.sum((a - mean_x) ** 2))
    if sxx == 0:
        raise ValueError(f"line: two different x are needed (got {mean_x} only)")
    slope = float(np.sum((a - mean_x) * (b - mean_y))) / sxx
    intercept = mean_y - slope * mean_x
    slope_error = intercept_error = math.nan
    if a.size > 2:
        residual = math.sqrt(float(np.sum((b - slope * a - intercept) ** 2)) / (a.size - 2))
        slope_error = residual / math.sqrt(sxx)
        intercept_error = residual * math.sqrt(1 / a.size + mean_x**2 / sxx)
    return Line(slope, intercept, r_squared(b, slope * a + intercept), slope_error, intercept_error, a.size)


@dataclass(frozen=True)
class Proportion:
    """y = factor x."""

    factor: float
    r_squared_origin: float
    """About the origin: 1 - SSE / sum y^2. Not to be compared with that of a line with intercept."""
    r_squared: float
    """About the mean: 1 - SSE / sum (y - my)^2; negative where the mean would predict better."""
    count: int


def fit_proportion(x: Iterable[float], y: Iterable[float]) -> Proportion:
    """The line of least squares through the origin: factor = sum x y / sum x^2.

    Raises ValueError when every x is 0. Source: Draper & Smith 1998, section 5.1.
    """
    a, b = paired(x, y, "proportion", least=1)
    squares = float(np.sum(a**2))
    if squares == 0:
        raise ValueError("proportion: an x other than 0 is needed")
    factor = float(np.sum(a * b)) / squares
    return Proportion(factor, r_squared(b, factor * a, about=0.0), r_squared(b, factor * a), a.size)


@dataclass(frozen=True)
class Exponential:
    """y = scale e^(rate x)."""

    scale: float
    rate: float
    r_squared: float
    """Of ln y against its line where the fit is one of logarithms; otherwise of y."""
    count: int
    """Points used."""


def fit_exponential(x: Iterable[float], y: Iterable[float]) -> Exponential:
    """y = A e^(k x) by the line of least squares through ln y, over the points with y > 0: a spreadsheet's
    exponential trend line, R^2 included.

    Raises ValueError with fewer than two different x that have y > 0. Source: SLAC 2000, distribution of
    the rate variability.
    """
    a, b = paired(x, y, "exponential")
    used = b > 0
    line = fit_line(a[used], np.log(b[used]))
    return Exponential(math.exp(line.intercept), line.slope, line.r_squared, line.count)


def fit_exponential_counts(x: Iterable[float], counts: Iterable[float]) -> Exponential:
    """The exponential under which these counts are likeliest, if each has a Poisson distribution with mean
    A e^(k x).

    Bins without a count say something, too, and large counts more than small ones: other than in
    `fit_exponential`. Solved by Newton steps on (ln A, k); R^2 is that of the counts. Raises ValueError
    with negative counts, with fewer than two different x, and where no counts or those at one end only
    leave the likelihood without a maximum. Source: McCullagh & Nelder 1989, sections 2.5 and 6.2.
    """
    a, n = paired(x, counts, "exponential")
    if n.min() < 0:
        raise ValueError(f"exponential: counts are not negative (got {n.min()})")
    seen = np.unique(a[n > 0])
    if seen.size == 0 or np.unique(a).size < 2 or (seen.size == 1 and seen[0] in (a.min(), a.max())):
        raise ValueError("exponential: counts at two different x, or at one between others, are needed")
    # Centred and scaled, so that both parameters are of the same order.
    centre, width = float(a.mean()), float(a.max() - a.min())
    z = (a - centre) / width
    beta = np.array([math.log(float(n.mean())), 0.0])
    design = np.stack([np.ones_like(z), z], axis=1)

    def log_likelihood(trial: Array) -> float:
        with np.errstate(over="ignore"):
            return float(np.sum(n * (design @ trial) - np.exp(design @ trial)))

    for _ in range(200):
        mean = np.exp(design @ beta)
        step = np.linalg.solve(design.T @ (mean[:, None] * design), design.T @ (n - mean))
        # The likelihood is concave: a step that is too long is halved, and the maximum is found.
        while log_likelihood(beta + step) < log_likelihood(beta) and np.abs(step).max() > 1e-12:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() < 1e-12:
            break
    rate = float(beta[1]) / width
    scale = math.exp(float(beta[0]) - rate * centre)
    return Exponential(scale, rate, r_squared(n, np.exp(design @ beta)), a.size)


@dataclass(frozen=True)
class Logarithm:
    """y = factor ln x + offset."""

    factor: float
    offset: float
    r_squared: float
    count: int
    """Points used."""


def fit_logarithm(x: Iterable[float], y: Iterable[float]) -> Logarithm:
    """y = a ln x + b by least squares, over the points with x > 0: a spreadsheet's logarithmic trend line.

    Raises ValueError with fewer than two different x > 0. Source: SLAC 2000, distribution of the rate
    variability.
    """
    a, b = paired(x, y, "logarithm")
    used = a > 0
    line = fit_line(np.log(a[used]), b[used])
    return Logarithm(line.slope, line.intercept, line.r_squared, line.count)
