"""Intervals of means, held against scipy and against chance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weirlab.stats import mean_interval, t_quantile


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 10, 29, 30, 299, 1000])
@pytest.mark.parametrize("probability", [0.001, 0.3, 0.5, 0.9, 0.975, 0.9999])
def test_quantiles_of_t_agree_with_scipy(degrees, probability):
    assert t_quantile(probability, degrees) == pytest.approx(
        stats.t.ppf(probability, degrees), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 3), (1.0, 3), (0.5, 0)])
def test_there_is_no_quantile_outside(probability, degrees):
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, degrees)


def test_no_value_has_no_mean_and_one_value_no_interval():
    assert mean_interval([]) is None
    single = mean_interval([3.0])
    assert single.mean == 3.0
    assert math.isnan(single.low)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.floats(0.5, 100), st.floats(-1e3, 1e3))
def test_an_interval_moves_and_grows_with_its_values(values, scale, shift):
    interval = mean_interval(values)
    moved = mean_interval([scale * value + shift for value in values])
    assert interval.low <= interval.mean <= interval.high
    assert moved.mean == pytest.approx(scale * interval.mean + shift, rel=1e-6, abs=1e-6)
    assert moved.half_width == pytest.approx(scale * interval.half_width, rel=1e-4, abs=1e-4)


def test_intervals_hold_the_true_mean_as_often_as_they_say():
    samples = np.random.default_rng(1).normal(5.0, 2.0, size=(2000, 6))
    held = sum(interval.low <= 5.0 <= interval.high for interval in map(mean_interval, samples.tolist()))
    # 95 % of 2000 trials; four standard deviations are 39.
    assert abs(held - 1900) < 40
