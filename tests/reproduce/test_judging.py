"""How near is near enough: tolerances from the errors of both sides and the rounding of the print."""

import math

import numpy as np
import pytest
from scipy import stats

from weirlab.reproductions.judging import (
    Misfit,
    Printed,
    Sample,
    deviation_row,
    mean_row,
    number_row,
    one_run_row,
    statistic_row,
)
from weirlab.reproductions.verdicts import KnownMisfit, Verdict


def normal(count, mean=10.0, deviation=2.0, seed=1):
    return np.random.default_rng(seed).normal(mean, deviation, count)


def test_the_tolerance_of_a_mean_is_welchs_interval_and_half_a_printed_unit():
    values = normal(40)
    printed = Printed(10.2, step=0.1, deviation=3.0, runs=6)
    row = mean_row("mean", printed, values)
    one, two = values.var(ddof=1) / 40, 9.0 / 6
    degrees = math.floor((one + two) ** 2 / (one**2 / 39 + two**2 / 5))
    expected = stats.t.ppf(0.995, degrees) * math.sqrt(one + two) + 0.05
    assert row.tolerance == pytest.approx(expected)
    assert row.tolerance_below == pytest.approx(expected)
    assert row.error == pytest.approx(math.sqrt(one))
    assert row.published_error == pytest.approx(math.sqrt(two))
    assert mean_row("mean", printed, Sample.of(values)) == row


def test_a_printed_mean_of_unknown_runs_is_exact_but_for_its_rounding():
    values = normal(25)
    row = mean_row("mean", Printed(10.0, step=0.5), values)
    half = stats.t.ppf(0.995, 24) * values.std(ddof=1) / 5
    assert row.tolerance == pytest.approx(half + 0.25)


def test_a_number_without_spread_is_allowed_its_rounding_alone():
    row = mean_row("mean", Printed(0.20, step=0.01), np.array([0.2049]))
    assert row.verdict is Verdict.HOLDS
    assert mean_row("mean", Printed(0.20, step=0.01), np.array([0.2051])).verdict is Verdict.MISFIT
    known = KnownMisfit("two swapped", 13.0, 13.0)
    assert number_row("in place", Printed(17.0), 13.0, known=known).verdict is Verdict.KNOWN
    assert number_row("in place", Printed(17.0), 17.0, known=known).verdict is Verdict.GONE


def test_a_standard_deviation_of_six_runs_is_judged_by_f():
    row = deviation_row("std", Printed(10.0, runs=6), Sample(50.0, 12.0, 300))
    assert row.high == pytest.approx(10 * math.sqrt(stats.f.ppf(0.995, 299, 5)))
    assert row.low == pytest.approx(10 * math.sqrt(stats.f.ppf(0.005, 299, 5)))


def test_one_published_run_may_lie_where_one_more_of_ours_would():
    values = normal(10)
    row = one_run_row("count", Printed(12.0, step=1.0), values)
    expected = stats.t.ppf(0.995, 9) * values.std(ddof=1) * math.sqrt(1.1) + 0.5
    assert row.tolerance == pytest.approx(expected)


@pytest.mark.parametrize("statistic", ["min", "max", "std", "iqr"])
def test_statistics_of_the_same_thing_agree_and_of_another_thing_do_not(statistic):
    of = {"min": np.min, "max": np.max, "std": lambda x: x.std(ddof=1), "iqr": stats.iqr}[statistic]
    values, same = normal(300, seed=2), normal(300, seed=3)
    printed = Printed(float(of(same)), step=0.01, runs=300)
    assert statistic_row(statistic, printed, values, statistic).verdict is Verdict.HOLDS
    other = Printed(float(of(10.0 + 3.0 * (same - 10.0))), step=0.01, runs=300)
    assert statistic_row(statistic, other, values, statistic).verdict is Verdict.MISFIT


def test_few_runs_of_ours_widen_every_tolerance():
    printed = Printed(10.0, step=0.01, deviation=2.0, runs=300)
    few, many = normal(30), normal(300)
    narrow, wide = (statistic_row("std", printed, values, "std") for values in (many, few))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    assert mean_row("mean", printed, few).tolerance > 2 * mean_row("mean", printed, many).tolerance


def test_the_greatest_of_few_runs_may_lie_further_below_that_of_many_than_above():
    row = statistic_row("max", Printed(15.0, step=0.01, runs=300), normal(30), "max")
    assert row.tolerance_below > 3 * row.tolerance


def test_a_known_misfit_is_known_where_a_repetition_of_our_runs_would_lie():
    printed = Printed(9.0, step=0.01, deviation=2.0, runs=300)
    recorded = Misfit("why", ours=float(normal(300, seed=4).mean()))
    assert mean_row("mean", printed, normal(300, seed=5), known=recorded).verdict is Verdict.KNOWN
    assert mean_row("mean", printed, normal(300, mean=12.0), known=recorded).verdict is Verdict.MISFIT
    assert mean_row("mean", printed, normal(300, mean=9.0), known=recorded).verdict is Verdict.GONE
