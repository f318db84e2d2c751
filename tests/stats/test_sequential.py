"""The sequential rule: what it asks for, and how often its intervals hold the mean."""

import math

import numpy as np
import pytest

from weirlab.stats import enough, mean_interval


def narrower_than(share):
    return lambda interval: interval.half_width <= share * abs(interval.mean)


def carried_out(draw, share, least, most):
    """All replicates that the rule asks for."""
    values = list(draw(least))
    while (count := enough(len(values), [values], [narrower_than(share)], most)) > len(values):
        values += list(draw(count - len(values)))
    return values


def test_narrow_intervals_ask_for_nothing_more():
    assert enough(10, [[5.0] * 10], [narrower_than(0.01)], 100) == 10
    assert enough(3, [], [], 100) == 3


def test_wide_intervals_ask_for_what_the_spread_makes_necessary():
    values = [1.0, 3.0] * 10
    half = mean_interval(values).half_width
    aim = 1.0001 * half / math.sqrt(1.5)
    assert enough(20, [values], [lambda each: each.half_width <= aim], 100) == 30
    assert enough(20, [values], [lambda each: each.half_width <= half / 1.001], 100) == 23, "a tenth at least"
    assert enough(20, [values], [lambda each: each.half_width <= half / 9], 100) == 40, (
        "twice as many at most"
    )
    assert enough(20, [values], [lambda each: each.half_width <= half / 9], 33) == 33


def test_values_that_are_missing_ask_for_more():
    assert enough(10, [[1.0] * 9], [narrower_than(0.5)], 100) == 20


@pytest.mark.parametrize(
    ("draw", "mean", "share", "least_coverage"),
    [
        (lambda rng: lambda n: 1 + 0.3 * rng.standard_normal(n), 1.0, 0.1, 0.93),
        (lambda rng: lambda n: 1 + 0.3 * rng.standard_normal(n), 1.0, 0.05, 0.94),
        (lambda rng: lambda n: rng.random(n), 0.5, 0.1, 0.94),
        (lambda rng: lambda n: rng.exponential(1, n), 1.0, 0.15, 0.935),
        (lambda rng: lambda n: np.exp(0.5 * rng.standard_normal(n)), math.exp(0.125), 0.1, 0.93),
    ],
)
def test_intervals_of_known_distributions_hold_the_mean_as_often_as_they_say(
    draw, mean, share, least_coverage
):
    """Ending by the data costs a little of the 95 %, as Chow & Robbins 1965 has it, and no more."""
    source = draw(np.random.default_rng(5))
    many = 1500
    held = 0
    for _ in range(many):
        interval = mean_interval(carried_out(source, share, 10, 5000))
        assert interval.half_width <= share * abs(interval.mean)
        held += interval.low <= mean <= interval.high
    error = math.sqrt(least_coverage * (1 - least_coverage) / many)
    assert least_coverage - 3 * error <= held / many <= 0.95 + 3 * error


def test_a_few_values_alone_would_not_hold_it():
    """What the least number is for: with two values, the first that happen to lie close end it."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(1500):
        interval = mean_interval(carried_out(lambda n: 1 + 0.3 * rng.standard_normal(n), 0.1, 2, 5000))
        held += interval.low <= 1 <= interval.high
    assert held / 1500 < 0.92
