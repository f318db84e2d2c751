"""Several streams: evenness, growth with their number, duration, CPU."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from weirlab.stats import (
    aggregate_goodput,
    cpu_cost,
    cpu_percent,
    duration_trend,
    effective_window,
    jain_index,
    linear_range,
    saturates_at,
    shares,
    unevenness,
    window_bound,
)

RATES = st.lists(st.floats(0.01, 1e9), min_size=1, max_size=30)


@given(RATES, st.floats(0.001, 1000))
def test_fairness_has_no_unit_and_lies_between_one_stream_and_all(rates, scale):
    index = jain_index(rates)
    assert 1 / len(rates) - 1e-12 <= index <= 1 + 1e-12
    assert jain_index([scale * rate for rate in rates]) == pytest.approx(index)
    assert jain_index(rates[::-1]) == pytest.approx(index)


def test_fairness_of_k_equal_streams_of_n_is_k_over_n():
    assert jain_index([7.0, 7.0, 7.0, 0.0]) == pytest.approx(3 / 4)
    assert math.isnan(jain_index([0.0, 0.0]))
    assert jain_index([1e-200, 1e-200]) == 1


@given(RATES)
def test_shares_add_up_to_one(rates):
    assert shares(rates).sum() == pytest.approx(1)
    assert unevenness(rates) == pytest.approx(shares(rates).max() / shares(rates).min())


def test_a_stream_that_delivered_nothing_is_infinitely_less():
    assert unevenness([1.0, 0.0]) == math.inf
    assert math.isnan(unevenness([0.0]))
    with pytest.raises(ValueError, match="nothing was delivered"):
        shares([0.0])
    with pytest.raises(ValueError, match=r"negative \(got -1.0\)"):
        jain_index([-1.0])


def test_published_streams_carry_what_is_said_of_them():
    # 9.45 Mb/s of 2 streams and 26.8 Mb/s of 8: "about 4.7:3" per stream.
    assert pytest.approx(4.7 / 3, rel=0.12) == 9.45 / 2 / (26.8 / 8)
    # A window of 64 KiB at 165 ms: 8 such streams are bound to less than the 26.8 Mb/s that were measured.
    bound = window_bound(65536, 0.165)
    assert bound == pytest.approx(3.177e6, rel=1e-3)
    assert 8 * bound < 26.8e6
    assert effective_window(26.8e6 / 8, 0.165) > 65536


@given(st.floats(1e3, 1e8), st.floats(1e-3, 1))
def test_the_effective_window_is_what_would_bound_the_stream_to_its_rate(rate, rtt):
    assert window_bound(effective_window(rate, rtt), rtt) == pytest.approx(rate)


def test_goodput_adds_up_what_arrived():
    assert aggregate_goodput([1_000_000, 500_000], 4.0) == 3e6
    with pytest.raises(ValueError, match="must be positive"):
        aggregate_goodput([1], 0.0)


@given(st.floats(0.1, 10), st.integers(2, 12))
def test_growth_is_linear_until_it_saturates(per_stream, knee):
    streams = np.repeat(np.arange(1.0, 21.0), 3)
    goodputs = per_stream * np.minimum(streams, knee)
    told = linear_range(streams, goodputs, tolerance=0.02)
    assert told.streams == knee
    assert told.saturation == knee + 1
    assert told.growth.factor == pytest.approx(per_stream)
    assert told.growth.r_squared_origin == pytest.approx(1)
    assert saturates_at(streams, goodputs, linear_until=knee, tolerance=0.02) == knee + 1


def test_growth_without_end_does_not_saturate():
    told = linear_range([1, 2, 4, 20], [3.0, 6.0, 12.0, 59.0])
    assert (told.streams, told.saturation) == (20, None)
    assert saturates_at([1, 2, 20], [3.0, 6.0, 59.0], linear_until=2) is None
    with pytest.raises(ValueError, match="no measurement with 1"):
        saturates_at([2, 3], [1.0, 2.0], linear_until=1)


def test_goodput_that_knows_nothing_of_duration_shows_no_trend_as_often_as_it_should():
    rng = np.random.default_rng(2)
    durations = [10, 320, 40, 80, 160, 20] * 2
    trends = [duration_trend(durations, 25 + rng.normal(size=12)) for _ in range(1000)]
    seen = sum(not low <= 0 <= high for low, high in (trend.slope_interval for trend in trends))
    # 5 % of 1000; four standard deviations are 28.
    assert abs(seen - 50) < 28


def test_goodput_that_grows_with_duration_is_noticed():
    durations = np.array([10, 320, 40, 80, 160, 20] * 2)
    trend = duration_trend(durations, 20 + 2 * np.log(durations))
    assert trend.slope_interval[0] > 0
    assert trend.line.slope == pytest.approx(2)
    assert trend.rank_correlation == pytest.approx(1)
    assert math.isnan(duration_trend(durations, np.ones(12)).rank_correlation)


def test_rank_correlation_is_that_of_scipy():
    for durations, rates in (
        ([10, 20, 40, 80], [3.0, 1.0, 4.0, 1.5]),
        ([10, 20, 20, 80, 80], [3, 1, 4, 4, 5]),
    ):
        told, theirs = duration_trend(durations, rates), stats.spearmanr(durations, rates)
        assert told.rank_correlation == pytest.approx(theirs.statistic)
        assert told.rank_probability == pytest.approx(theirs.pvalue, rel=1e-10)
    with pytest.raises(ValueError, match=r"positive \(got 0.0\)"):
        duration_trend([0, 1, 2], [1.0, 2.0, 3.0])


@given(st.floats(0.001, 1), st.floats(0.01, 50))
def test_cpu_is_told_with_and_without_an_intercept(slope, idle):
    rates = [5.0, 10.0, 20.0, 80.0]
    cost = cpu_cost(rates, [slope * rate for rate in rates])
    assert cost.proportion.factor == pytest.approx(slope)
    assert cost.line.slope == pytest.approx(slope)
    with_idle = cpu_cost(rates, [slope * rate + idle for rate in rates])
    assert with_idle.line.intercept == pytest.approx(idle, rel=1e-6, abs=1e-6)
    assert with_idle.line.r_squared == pytest.approx(1)
    assert with_idle.proportion.r_squared < 1


def test_two_busy_cpus_are_two_hundred_per_cent():
    assert cpu_percent(20.0, 10.0) == 200
    with pytest.raises(ValueError, match="no share"):
        cpu_percent(1.0, 0.0)
