"""Robust lines, intervals of shares and of ratios."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from weirlab.stats.robust import fit_robust_line, ratio_interval, wilson_interval


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
