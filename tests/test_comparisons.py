"""Differences between results: their intervals, and conditions on which a comparison fails."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from weirlab.comparisons import Quantity, condition, difference, unmatched
from weirlab.comparisons.pairs import _ratio
from weirlab.errors import InputError

seeds, counts = st.integers(0, 2**32 - 1), st.integers(2, 12)


def quantity(numbers, *, first_seed=1, name="delay", unit="ps", **more):
    return Quantity(name=name, unit=unit, values=dict(enumerate(numbers, first_seed)), **more)


@given(seeds, counts)
def test_the_interval_of_shared_seeds_is_student_s_of_the_differences(seed, count):
    rng = np.random.default_rng(seed)
    before, change = rng.normal(100, 20, count), rng.normal(1, 5, count)
    found = difference(quantity(before), quantity(before + change))
    theirs = stats.ttest_1samp(change, 0).confidence_interval(0.95)
    assert found.pairs == count
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


@given(seeds, counts, counts)
def test_the_interval_of_other_seeds_is_welch_s_with_its_degrees_rounded_down(seed, first, second):
    rng = np.random.default_rng(seed)
    before, after = rng.normal(100, 20, first), rng.normal(101, 5, second)
    found = difference(quantity(before), quantity(after, first_seed=100))
    test = stats.ttest_ind(after, before, equal_var=False)
    theirs = test.confidence_interval(0.95)
    wider = stats.t.ppf(0.975, max(1, math.floor(test.df * (1 + 1e-12)))) / stats.t.ppf(0.975, test.df)
    assert found.pairs == 0
    assert found.high - found.low == pytest.approx((theirs.high - theirs.low) * wider, rel=1e-6)


def test_shared_seeds_reveal_a_change_that_chance_hides():
    chance = np.random.default_rng(7).normal(100, 30, 10)
    same, other = quantity(chance), quantity(chance + 2)
    assert difference(same, other).clear
    assert not difference(same, quantity(chance + 2, first_seed=50)).clear


def test_intervals_of_equal_means_hold_zero_95_times_of_100():
    rng = np.random.default_rng(3)
    for first_seed in (1, 100):
        hits = 0
        for _ in range(2000):
            before, after = rng.normal(5, 2, 6), rng.normal(5, 4, 9 if first_seed > 1 else 6)
            found = difference(quantity(before), quantity(after, first_seed=first_seed))
            hits += found.low <= 0 <= found.high
        # 3.3 standard errors below .95; the floor of Welch's degrees can only widen it.
        assert 0.934 <= hits / 2000 <= 0.972


def test_a_ratio_of_any_values_above_0_is_a_number_and_its_interval_may_have_no_end():
    assert _ratio([(1, 1), (1, 1e60)]) == (pytest.approx(1e30), 0.0, math.inf)
    assert _ratio([(1e300, 1e-320)])[0] == 0.0
    assert all(map(math.isnan, _ratio([(1, 2), (1, 0)])))


def test_a_single_value_has_no_interval_and_is_never_called_a_change():
    found = difference(quantity([1.0]), quantity([2.0]))
    assert found.change == 1.0
    assert math.isnan(found.low)
    assert not found.clear


def test_a_search_changes_by_as_much_as_its_bounds_allow():
    before = Quantity(name="NDR", unit="frame/s", bounds=(100.0, 110.0))
    near, far = (Quantity(name="NDR", unit="frame/s", bounds=b) for b in ((105.0, 115.0), (120.0, 121.0)))
    assert (difference(before, near).low, difference(before, near).high) == (-5.0, 15.0)
    assert not difference(before, near).clear
    assert difference(before, far).clear


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("delay > +5 %", "met"),
        ("delay > +9.9 %", "met"),
        ("delay > +10.5 %", "not met"),
        ("delay > +10 %", "undecided"),
        ("delay < -1 %", "not met"),
        ("delay > +9 ns", "met"),
        ("delay > +11 ns", "not met"),
        ("delay > 105 ns", "met"),
        ("delay > 109 ns", "undecided"),
        ("delay > 0.2 us", "not met"),
        ("delay < 200 ns", "met"),
        ("delay<+200ns", "met"),
    ],
)
def test_a_condition_is_met_only_where_its_whole_interval_is_beyond_the_limit(text, verdict):
    before = quantity([100_000.0, 101_000.0, 99_000.0])
    after = quantity([110_010.0, 111_080.0, 108_910.0])
    assert condition(text).judged(difference(before, after)).verdict == verdict


def test_the_first_result_s_own_chance_counts_for_a_relative_limit():
    """+5 % of a first mean that is known to some 10 % only is not exceeded by +6 %."""
    rng = np.random.default_rng(2)
    before = rng.normal(100, 30, 10)
    after = quantity(rng.normal(106, 0.001, 10), first_seed=100)
    assert condition("delay > +5 %").judged(difference(quantity(before), after)).verdict == "undecided"


def test_a_condition_names_a_quantity_or_the_end_of_it():
    found = difference(quantity([1, 2], name="load: mean delay"), quantity([1, 2], name="load: mean delay"))
    assert condition("mean delay > +5 %").applies(found)
    assert condition("load: mean delay > +5 %").applies(found)
    assert not condition("delay > +5 %").applies(found)
    assert "these results have no 'delay'; they have load: mean delay" in unmatched(
        [condition("delay > +5 %")], [found]
    )


@pytest.mark.parametrize("text", ["", "delay", "delay > ", "> 5 %", "delay = 5 %", "delay > +x %"])
def test_what_is_no_condition_is_refused_with_an_example(text):
    with pytest.raises(InputError, match="--fail-if"):
        condition(text).judged(difference(quantity([1, 2]), quantity([1, 2])))


def test_a_limit_in_a_wrong_unit_is_refused():
    found = difference(quantity([1, 2]), quantity([1, 2]))
    with pytest.raises(InputError, match="is not a unit of"):
        condition("delay > 5 Mbit/s").judged(found)
    for text in ("delay > 5", "delay < -5", "delay > +20"):  # of what?
        with pytest.raises(InputError, match="unit"):
            condition(text).judged(found)
    with pytest.raises(InputError, match="is in ps"):
        condition("delay > 5 %").judged(found)
