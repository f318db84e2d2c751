"""Intervals of means, held against chance."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weirlab.stats import mean_interval


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
