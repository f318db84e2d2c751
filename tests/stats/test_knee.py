"""Four definitions of enough streams: each finds what it defines."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weirlab.stats import (
    DEFINITIONS,
    Sweep,
    highest_power,
    knee_interval,
    least_delay_per_goodput,
    near_maximum,
    two_segments,
)

LEVELS = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20])


def sweep_of(goodputs, rtts=None, differences=None, levels=LEVELS):
    goodputs = np.atleast_2d(np.asarray(goodputs, dtype=float))
    full = np.ones_like(goodputs)
    return Sweep(
        levels,
        goodputs,
        full if rtts is None else full * rtts,
        full if differences is None else full * differences,
    )


@given(st.floats(2.0, 15.0), st.floats(0.1, 10), st.floats(0, 0.9), st.floats(0, 5))
def test_two_lines_that_meet_anywhere_are_found_exactly(place, slope, flatter, start):
    bend = np.minimum(LEVELS, place) + flatter * np.maximum(LEVELS - place, 0)
    assert two_segments(sweep_of(start + slope * bend)) == pytest.approx(place, rel=1e-6)


@given(st.lists(st.floats(0, 100), min_size=14, max_size=14))
def test_no_joint_on_a_fine_grid_fits_better_than_the_one_found(rates):
    rates = np.array(rates)

    def squares(place):
        design = np.stack([np.ones_like(LEVELS), LEVELS, np.maximum(LEVELS - place, 0)], axis=1)
        rest = rates - design @ np.linalg.lstsq(design, rates)[0]
        return rest @ rest

    place = two_segments(sweep_of(rates + 1e-3))
    if math.isfinite(place):
        assert squares(place) <= min(map(squares, np.linspace(2, 15, 66))) * (1 + 1e-6) + 1e-6


def test_a_straight_line_and_one_that_gets_steeper_have_no_knee():
    assert math.isnan(two_segments(sweep_of(3 * LEVELS)))
    assert math.isnan(two_segments(sweep_of(np.maximum(LEVELS, 8))))
    assert math.isnan(two_segments(sweep_of([1.0, 2.0, 2.0], levels=np.array([1.0, 2.0, 3.0]))))


def test_near_the_maximum_is_the_least_number_that_is():
    rates = np.minimum(LEVELS, 10) * 3
    assert near_maximum(sweep_of(rates)) == 10
    assert near_maximum(sweep_of(rates), share=0.5) == 5


def test_power_weighs_goodput_against_delay():
    rtts = 20 + 5 * np.maximum(LEVELS - 6, 0)
    assert highest_power(sweep_of(np.minimum(LEVELS, 8), rtts=rtts)) == 6
    # Where the delay does not change, power is goodput: the definition is of no use there.
    assert highest_power(sweep_of(LEVELS, rtts=165.0)) == 20


def test_delay_per_goodput_without_its_condition_would_choose_one_stream():
    rates, differences = np.minimum(LEVELS, 10), np.maximum(LEVELS - 3, 0) ** 2
    assert least_delay_per_goodput(sweep_of(rates, differences=differences), share=0.0) == 1
    assert least_delay_per_goodput(sweep_of(rates, differences=differences)) == 9
    assert math.isnan(least_delay_per_goodput(sweep_of(np.zeros(14))))


def test_noise_below_zero_is_no_merit():
    differences = np.array([0.0] * 12 + [-1.0, -5.0])
    assert least_delay_per_goodput(sweep_of(np.minimum(LEVELS, 10), differences=differences)) == 9


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_knee_depends_on_no_unit(name):
    rng = np.random.default_rng(4)
    rates = np.minimum(LEVELS, 8) * 3 * rng.uniform(0.9, 1.1, (6, 14))
    rtts = 20 + np.maximum(LEVELS - 6, 0)
    definition = DEFINITIONS[name]
    one = definition(sweep_of(rates, rtts, rtts - 20))
    other = definition(sweep_of(1e6 * rates, rtts / 1000, (rtts - 20) / 1000))
    assert one == pytest.approx(other)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_interval_holds_the_knee_and_is_the_same_with_the_same_seed(name):
    rng = np.random.default_rng(4)
    rates = np.minimum(LEVELS, 8) * 3 * rng.uniform(0.8, 1.2, (9, 14))
    rtts = 20 + np.maximum(LEVELS - 6, 0) * rng.uniform(0.5, 1.5, (9, 14))
    sweep = sweep_of(rates, rtts, rtts - 20)
    first = knee_interval(sweep, DEFINITIONS[name], np.random.default_rng(1), draws=100)
    assert first == knee_interval(sweep, DEFINITIONS[name], np.random.default_rng(1), draws=100)
    assert first.low <= first.streams <= first.high
    assert first.found == 1


def test_cycles_that_agree_leave_no_doubt_and_one_cycle_leaves_all():
    rates = np.minimum(LEVELS, 8.0)
    sure = knee_interval(sweep_of([rates] * 5), two_segments, np.random.default_rng(0), draws=50)
    assert (sure.streams, sure.low, sure.high) == pytest.approx((8, 8, 8))
    single = knee_interval(sweep_of(rates), two_segments, np.random.default_rng(0))
    assert single.streams == pytest.approx(8)
    assert math.isnan(single.low)


def test_the_interval_tells_how_often_there_was_a_knee():
    straight = knee_interval(sweep_of([3 * LEVELS] * 4), two_segments, np.random.default_rng(0), draws=20)
    assert math.isnan(straight.streams)
    assert straight.found == 0


def test_rows_become_a_sweep_in_which_gaps_are_known():
    sweep = Sweep.of([1, 1, 2], [4, 1, 4], [8.0, 2.0, 9.0], [0.1, 0.1, 0.2], [0.0, 0.0, 0.1])
    assert sweep.streams.tolist() == [1, 4]
    assert sweep.goodputs.tolist()[0] == [2.0, 8.0]
    assert math.isnan(sweep.goodputs[1, 0])
    assert near_maximum(sweep) == 4
    assert knee_interval(sweep, near_maximum, np.random.default_rng(0), draws=30).found == 1


def test_what_is_no_sweep_is_refused():
    with pytest.raises(ValueError, match="once"):
        Sweep.of([1, 1], [4, 4], [8.0, 2.0], [0.1, 0.1], [0.0, 0.0])
    with pytest.raises(ValueError, match="no value for 2 streams"):
        sweep_of([1.0, math.nan], levels=np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="ascend"):
        sweep_of([1.0, 2.0], levels=np.array([2.0, 1.0]))
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        Sweep(np.array([1.0]), np.ones((1, 2)), np.ones((1, 1)), np.ones((1, 1)))
