"""Robust lines, intervals of shares and of ratios."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, theilslopes

from weirlab.stats import mean_interval
from weirlab.stats.robust import fit_robust_line, mean_share_interval, ratio_interval, wilson_interval


def test_a_line_is_found_whatever_a_quarter_of_the_points_say():
    x = np.arange(40.0)
    y = 3.0 * x + 7.0
    y[::4] += np.linspace(100, 1e6, 10)
    line = fit_robust_line(x, y)
    assert line.slope == pytest.approx(3.0)
    assert line.intercept == pytest.approx(7.0)
    assert line.at(2.0) == pytest.approx(13.0)


def test_intervals_of_the_slope_hold_the_truth_as_often_as_they_say():
    chance = np.random.default_rng(5)
    x = np.linspace(500, 1500, 24)
    held = 0
    for _ in range(400):
        line = fit_robust_line(x, 0.8 * x + 4000 + chance.exponential(20, x.size))
        held += line.slope_low <= 0.8 <= line.slope_high
    # 95 %, with four standard deviations of the count.
    assert held >= 400 * 0.95 - 18


def test_the_line_follows_units():
    x, chance = np.linspace(1, 9, 12), np.random.default_rng(1)
    y = 2 * x + chance.normal(size=12)
    one, other = fit_robust_line(x, y), fit_robust_line(1000 * x, y)
    assert other.slope == pytest.approx(one.slope / 1000)
    assert other.half_width == pytest.approx(one.half_width / 1000)
    assert other.intercept == pytest.approx(one.intercept)
    assert other.residual == pytest.approx(one.residual)


@pytest.mark.parametrize("round_to", [1, 6])
@pytest.mark.parametrize("count", [5, 40])
def test_a_robust_line_is_that_of_scipy_with_ties_and_without(count, round_to):
    chance = np.random.default_rng(count)
    x = chance.normal(size=count).round(round_to)
    y = (2 * x + chance.standard_cauchy(count)).round(round_to)
    theirs = theilslopes(y, x, 0.9)
    line = fit_robust_line(x, y, confidence=0.9)
    assert (line.slope, line.slope_low, line.slope_high) == pytest.approx(
        (theirs.slope, theirs.low_slope, theirs.high_slope), rel=1e-12
    )


def test_two_places_make_no_robust_line():
    with pytest.raises(ValueError, match="three different x are needed"):
        fit_robust_line([1, 1, 2, 2], [1, 2, 3, 4])


@pytest.mark.parametrize(("part", "whole"), [(0, 20), (3, 20), (20, 20), (500, 1000)])
def test_shares_have_the_interval_of_wilson(part, whole):
    theirs = binomtest(part, whole).proportion_ci(0.95, method="wilson")
    assert wilson_interval(part, whole) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_more_than_all_is_no_share():
    with pytest.raises(ValueError, match="5 of 4 cannot be"):
        wilson_interval(5, 4)


def test_intervals_of_ratios_hold_the_truth_as_often_as_they_say():
    chance = np.random.default_rng(8)
    held = 0
    for _ in range(600):
        first, second = chance.binomial(300, 0.95), chance.binomial(300, 0.90)
        ends = ratio_interval(
            (second / 300, *wilson_interval(second, 300)), (first / 300, *wilson_interval(first, 300))
        )
        held += ends[0] <= 0.90 / 0.95 <= ends[1]
    # 95 %, with four standard deviations of the count.
    assert held >= 600 * 0.95 - 22


def test_a_ratio_to_what_may_be_nothing_is_refused():
    with pytest.raises(ValueError, match="a divisor that may be 0"):
        ratio_interval((0.5, 0.4, 0.6), (0.1, 0.0, 0.2))


def test_the_mean_of_shares_that_do_not_scatter_is_as_certain_as_all_their_trials():
    assert mean_share_interval([0.0, 0.0], [60, 40]) == pytest.approx(wilson_interval(0, 100))
    assert mean_share_interval([1.0] * 3, [10] * 3) == pytest.approx(wilson_interval(30, 30))
    assert mean_share_interval([0.25], [40]) == pytest.approx(wilson_interval(10, 40))
    assert mean_share_interval([0.2] * 5, [10] * 5) == pytest.approx(wilson_interval(10, 50))


def test_the_mean_of_shares_that_scatter_is_as_certain_as_the_mean_of_values():
    """In the middle, where neither end of [0, 1] is near."""
    shares = list(0.5 + 0.2 * np.sin(np.arange(60.0)))
    usual = mean_interval(shares)
    low, high = mean_share_interval(shares, [1000] * 60)
    assert (low, high) == pytest.approx((usual.low, usual.high), rel=0.01)


def test_intervals_of_a_mean_share_stay_within_0_and_1_and_have_a_width():
    chance = np.random.default_rng(3)
    for _ in range(300):
        count = int(chance.integers(1, 12))
        shares = (chance.binomial(20, chance.random(count) ** 6, count) / 20).tolist()
        low, high = mean_share_interval(shares, [20] * count)
        assert 0 <= low <= sum(shares) / count <= high <= 1
        assert high - low > 0.001


def held_of_1000(count: int, trials: int) -> tuple[int, int]:
    """How often an interval holds a mean share of 6 % that scatters widely, and that of values does."""
    chance = np.random.default_rng(11)
    held = usual = 0
    for _ in range(1000):
        shares = (chance.binomial(trials, chance.beta(0.3, 4.7, count)) / trials).tolist()
        low, high = mean_share_interval(shares, [trials] * count)
        held += low <= 0.06 <= high
        values = mean_interval(shares)
        usual += values.low <= 0.06 <= values.high
    return held, usual


def test_intervals_of_small_mean_shares_hold_the_truth_more_often_than_those_of_values():
    held, usual = held_of_1000(count=33, trials=152)
    assert held > usual
    assert held >= 925
    few, usual_of_few = held_of_1000(count=8, trials=60)
    assert few > usual_of_few + 50


@pytest.mark.parametrize(("shares", "trials"), [([], []), ([0.5], [0]), ([1.5], [3]), ([0.1, 0.2], [4])])
def test_shares_that_cannot_be_have_no_interval(shares, trials):
    with pytest.raises(ValueError, match="share"):
        mean_share_interval(shares, trials)
