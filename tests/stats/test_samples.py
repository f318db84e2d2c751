"""Quantiles, spread and frequencies, held against scipy, spreadsheets' rules and their laws."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from weirlab.stats import ecdf, frequencies, interquartile_range, median, quantile, spread

SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)
SHARES = st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=1, max_size=60)


def test_quartiles_are_those_of_a_spreadsheet():
    # QUARTILE({1,2,4,7,8,9,10,12}, 1), its help page's example, and the third quartile by the same rule.
    values = [1, 2, 4, 7, 8, 9, 10, 12]
    assert quantile(values, 0.25) == 3.5
    assert quantile(values, 0.75) == 9.25
    assert interquartile_range(values) == 5.75
    assert median(values) == 7.5


@given(SAMPLES, st.floats(0, 1))
def test_a_quantile_interpolates_between_the_sorted_values_as_type_7_says(values, probability):
    ordered = sorted(values)
    place = (len(values) - 1) * probability
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    expected = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    assert quantile(values, probability) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert min(values) <= quantile(values, probability) <= max(values)


@given(SAMPLES, st.floats(0.1, 100), st.floats(-1e3, 1e3))
def test_spread_grows_with_scale_and_does_not_move(values, scale, shift):
    one, other = spread(values), spread([scale * value + shift for value in values])
    tolerance = 1e-6 * (1 + scale)
    assert other.interquartile_range == pytest.approx(
        scale * one.interquartile_range, rel=1e-6, abs=tolerance
    )
    assert other.median == pytest.approx(scale * one.median + shift, rel=1e-6, abs=tolerance)
    assert one.low <= one.median <= one.high
    assert one.interquartile_range <= one.high - one.low + 1e-9


def test_spread_agrees_with_scipy():
    values = np.random.default_rng(3).gamma(2.0, size=301)
    told = spread(values)
    assert told.mean == pytest.approx(stats.tmean(values))
    assert told.deviation == pytest.approx(stats.tstd(values))
    assert told.interquartile_range == pytest.approx(stats.iqr(values))
    assert told.count == 301
    assert math.isnan(spread([1.0]).deviation)


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "1 or more"), ([1.0, math.nan], "nan"), ([math.inf], "inf"), ([[1.0]], "1 or more")],
)
def test_what_is_no_sample_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        median(values)


def test_a_quantile_has_a_probability():
    with pytest.raises(ValueError, match=r"\[0, 1\] \(got 1.5\)"):
        quantile([1.0], 1.5)


@given(SHARES)
def test_every_value_is_in_one_bin_and_the_bins_are_as_the_edges_say(values):
    told = frequencies(values, 0.02)
    assert told.counts.sum() == len(values)
    assert len(told.edges) == len(told.counts) + 1 == len(told.centres) + 1
    for k, count in enumerate(told.counts):
        low, high = told.edges[k], told.edges[k + 1]
        inside = [value for value in values if low < value <= high or (k == 0 and value == low)]
        assert count == len(inside)
    assert told.counts[-1] > 0
    assert told.edges[-1] >= max(values)


@given(SHARES)
def test_cumulative_shares_are_the_distribution_function_at_the_upper_edges(values):
    told = frequencies(values, 0.05)
    for share, edge in zip(told.cumulative, told.edges[1:], strict=True):
        assert share == pytest.approx(ecdf(values, edge))
    assert told.cumulative[-1] == 1


def test_ten_per_cent_or_less_counts_ten_per_cent():
    values = [0.02, 0.1, 0.1, 0.14]
    assert ecdf(values, 0.1) == 0.75
    assert frequencies(values, 0.02).counts.tolist() == [1, 0, 0, 0, 2, 0, 1]


def test_bins_have_a_width_and_nothing_lies_before_them():
    with pytest.raises(ValueError, match="wider than 0"):
        frequencies([1.0], 0.0)
    with pytest.raises(ValueError, match=r"below 0.0 \(got -1.0\)"):
        frequencies([-1.0], 0.1)
