"""What load does to round-trip times: laws, and the published numbers where they can be reckoned."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weirlab.stats import (
    data_rates,
    fit_queueing,
    min_max_predictability,
    min_max_variability,
    probe_loss,
    rate_by_size,
    rate_predictability,
    rate_variability,
    rtt_difference,
)

RTTS = st.lists(st.floats(1e-4, 20), min_size=1, max_size=40)


@given(RTTS, st.integers(1, 1500))
def test_the_exact_variability_never_exceeds_the_approximate_one(rtts, size):
    exact = rate_variability(data_rates(rtts, size, size))
    rough = min_max_variability(rtts)
    assert 0 <= exact <= rough + 1e-12
    assert rough < 1


@given(RTTS, st.integers(1, 1500), st.floats(0.001, 1000))
def test_variability_has_no_unit_and_does_not_know_the_size_of_probes(rtts, size, scale):
    rates = data_rates(rtts, 64, 64)
    assert rate_variability(rates) == pytest.approx(rate_variability(data_rates(rtts, size, 0)), abs=1e-9)
    assert rate_variability(rates) == pytest.approx(rate_variability(rates * scale), abs=1e-9)
    assert min_max_variability(rtts) == pytest.approx(
        min_max_variability([scale * t for t in rtts]), abs=1e-9
    )


@given(RTTS)
def test_predictability_is_the_complement_of_variability(rtts):
    rates = data_rates(rtts, 64, 64)
    assert rate_variability(rates) + rate_predictability(rates) == pytest.approx(1)
    assert min_max_variability(rtts) + min_max_predictability(rtts) == pytest.approx(1)


def test_probes_that_are_all_alike_vary_by_nothing():
    assert rate_variability(data_rates([0.165] * 40, 64, 64)) == 0
    assert min_max_variability([0.1] * 7) == 0


@given(st.floats(0.001, 1), st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_against_a_flat_unloaded_time_the_rough_variability_is_the_difference_over_the_mean(least, queueing):
    loaded = [least, *(least + wait for wait in queueing)]
    difference = rtt_difference(loaded, [least] * 5)
    assert min_max_variability(loaded) == pytest.approx(difference / (least + difference), abs=1e-9)


def test_published_round_trip_times_give_the_variability_of_their_order():
    # SLAC to CERN, 8 streams of 64 kB: 164 ms at least, 181 ms on average; 2 of 256 kB: 165 and 167 ms.
    assert min_max_variability([164.0, 198.0]) == pytest.approx(0.094, abs=5e-4)
    assert min_max_variability([165.0, 169.0]) == pytest.approx(0.012, abs=5e-4)


@given(RTTS, RTTS, st.floats(-0.00005, 10))
def test_a_difference_does_not_see_what_both_have(loaded, unloaded, shift):
    moved = rtt_difference([t + shift for t in loaded], [t + shift for t in unloaded])
    assert moved == pytest.approx(rtt_difference(loaded, unloaded), abs=1e-9)
    assert rtt_difference(unloaded, loaded) == pytest.approx(-rtt_difference(loaded, unloaded), abs=1e-9)


def test_unanswered_probes_are_loss():
    assert probe_loss(40, 40) == 0
    assert probe_loss(40, 39) == pytest.approx(0.025)
    with pytest.raises(ValueError, match="of 4 probes, 5"):
        probe_loss(4, 5)


def test_round_trips_take_time():
    with pytest.raises(ValueError, match=r"positive \(got 0.0\)"):
        min_max_variability([0.1, 0.0])
    with pytest.raises(ValueError, match="have bytes"):
        data_rates([0.1], 0, 0)


@given(st.floats(1e4, 1e9), st.floats(0, 0.5))
def test_probes_of_several_sizes_tell_the_rate_whatever_the_propagation(rate, propagation):
    sizes = np.array([128, 512, 1024, 3000])
    assert rate_by_size(sizes, propagation + 8 * sizes / rate) == pytest.approx(rate, rel=1e-4)
    with pytest.raises(ValueError, match="not slower"):
        rate_by_size(sizes, 1 + propagation - 8 * sizes / 1e6)


@given(st.floats(1e-4, 1), st.floats(1e6, 1e9))
def test_the_wait_of_a_random_queue_is_fitted_exactly(service, capacity):
    goodputs = capacity * np.array([0.1, 0.5, 0.9, 0.99])
    loads = goodputs / capacity
    fit, told = fit_queueing(goodputs, service * loads / (1 - loads), capacity)
    assert fit.factor == pytest.approx(service)
    assert fit.r_squared == pytest.approx(1)
    assert told == pytest.approx(loads)


def test_there_is_no_queue_in_balance_at_full_load():
    with pytest.raises(ValueError, match=r"\[0, 1\) \(got 1.0\)"):
        fit_queueing([5.0, 10.0], [1.0, 2.0], 10.0)
