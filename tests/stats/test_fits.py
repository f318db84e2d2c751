"""Fits, held against scipy and against what they must find."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy import optimize, stats

from weirlab.stats import (
    fit_exponential,
    fit_exponential_counts,
    fit_line,
    fit_logarithm,
    fit_proportion,
    r_squared,
)

POINTS = st.lists(
    st.tuples(st.floats(-100, 100), st.floats(-100, 100)),
    min_size=3,
    max_size=30,
    unique_by=lambda p: round(p[0], 3),
)


@given(POINTS)
def test_a_line_is_that_of_scipy(points):
    x, y = zip(*points, strict=True)
    line, other = fit_line(x, y), stats.linregress(x, y)
    assert line.slope == pytest.approx(other.slope, rel=1e-6, abs=1e-6)
    assert line.intercept == pytest.approx(other.intercept, rel=1e-6, abs=1e-6)
    assert line.slope_error == pytest.approx(other.stderr, rel=1e-5, abs=1e-6)
    assert line.intercept_error == pytest.approx(other.intercept_stderr, rel=1e-5, abs=1e-5)
    if max(y) - min(y) > 1e-3:
        assert line.r_squared == pytest.approx(other.rvalue**2, abs=1e-6)


def test_the_slopes_of_many_lines_lie_in_their_intervals_as_often_as_they_say():
    rng = np.random.default_rng(5)
    x = np.arange(8.0)
    held = 0
    for _ in range(1000):
        low, high = fit_line(x, 2 * x + rng.normal(size=8)).slope_interval()
        held += low <= 2 <= high
    # 95 % of 1000; four standard deviations are 28.
    assert abs(held - 950) < 28


def test_a_line_needs_two_places():
    with pytest.raises(ValueError, match="two different x"):
        fit_line([2.0, 2.0], [1.0, 3.0])
    with pytest.raises(ValueError, match=r"in pairs \(got 2 and 3\)"):
        fit_line([2.0, 1.0], [1.0, 3.0, 4.0])


@given(POINTS)
def test_nothing_through_the_origin_is_nearer_than_the_proportion(points):
    x, y = map(np.array, zip(*points, strict=True))
    assume(np.sum(x**2) > 1e-3)
    fit = fit_proportion(x, y)
    near = [fit.factor, fit.factor + 0.01, fit.factor - 0.01]
    squares = [np.sum((y - factor * x) ** 2) for factor in near]
    assert squares[0] <= min(squares) + 1e-9
    assert fit.r_squared <= fit.r_squared_origin + 1e-9 or math.isnan(fit.r_squared)
    assert fit.r_squared <= fit_line(x, y).r_squared + 1e-9 or math.isnan(fit.r_squared)


def test_r_squared_of_a_proportion_depends_on_what_it_is_compared_with():
    # y = 10 + x: better than "always 0" by far, and worse than "always the mean".
    x = np.arange(1.0, 6.0)
    fit = fit_proportion(x, 10 + x)
    assert fit.r_squared_origin > 0.8
    assert fit.r_squared < 0


def test_r_squared_is_one_for_the_truth_and_unknown_where_nothing_varies():
    assert r_squared([1.0, 2.0], [1.0, 2.0]) == 1
    assert r_squared([1.0, 3.0], [2.0, 2.0]) == 0
    assert math.isnan(r_squared([2.0, 2.0], [2.0, 2.0]))


@given(st.floats(0.1, 1000), st.floats(-5, 5))
def test_an_exponential_is_found_again(scale, rate):
    x = np.linspace(0, 2, 9)
    fit = fit_exponential(x, scale * np.exp(rate * x))
    assert fit.scale == pytest.approx(scale, rel=1e-9)
    assert fit.rate == pytest.approx(rate, rel=1e-9, abs=1e-9)


def test_the_trend_line_passes_over_empty_bins_and_the_likelihood_does_not():
    x = np.arange(6.0)
    counts = np.array([64.0, 16.0, 4.0, 1.0, 0.0, 0.0])
    trend = fit_exponential(x, counts)
    assert (trend.count, trend.rate) == (4, pytest.approx(-math.log(4)))
    assert trend.r_squared == pytest.approx(1)
    likeliest = fit_exponential_counts(x, counts)
    assert likeliest.count == 6
    assert likeliest.rate < trend.rate


@given(st.lists(st.integers(0, 50), min_size=4, max_size=20))
def test_the_likeliest_exponential_is_that_of_a_general_optimiser(counts):
    assume(sum(count > 0 for count in counts) >= 2)
    x = np.arange(len(counts)) * 0.02
    fit = fit_exponential_counts(x, counts)
    mean = fit.scale * np.exp(fit.rate * x)
    # Where the derivatives of the likelihood vanish: total and first moment are those of the counts.
    assert mean.sum() == pytest.approx(sum(counts), rel=1e-6)
    assert mean @ x == pytest.approx(np.array(counts) @ x, rel=1e-6, abs=1e-9)

    def surprise(beta):
        return float(np.sum(np.exp(beta[0] + beta[1] * x)) - np.array(counts) @ (beta[0] + beta[1] * x))

    found = optimize.minimize(surprise, [math.log(fit.scale), fit.rate], method="Nelder-Mead")
    assert surprise([math.log(fit.scale), fit.rate]) <= found.fun + 1e-6


@pytest.mark.parametrize("counts", [[0, 0, 0], [4, 0, 0], [0, 0, 4]])
def test_counts_without_a_likeliest_exponential_are_refused(counts):
    with pytest.raises(ValueError, match="two different x"):
        fit_exponential_counts([1.0, 2.0, 3.0], counts)
    assert fit_exponential_counts([1.0, 2.0, 3.0], [0, 4, 0]).rate == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match=r"not negative \(got -1"):
        fit_exponential_counts([1.0, 2.0], [-1, 2])


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_a_logarithm_is_found_again_over_positive_x(factor, offset):
    x = np.array([0.0, 0.02, 0.1, 0.5, 1.0])
    y = np.array([99.0, *(factor * np.log(x[1:]) + offset)])
    fit = fit_logarithm(x, y)
    assert (fit.factor, fit.offset) == (pytest.approx(factor, abs=1e-9), pytest.approx(offset, abs=1e-9))
    assert fit.count == 4
