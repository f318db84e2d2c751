"""What speaks for a result: the trials at its bounds, and what they allow to be said of the next one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from weirlab.testbed.base import Trial

__all__ = ["Evidence", "Stationarity", "clopper_pearson"]


class Stationarity(StrEnum):
    """Whether the device looked the same at the end of the search as when its bounds were measured."""

    NOT_TESTED = "not tested"
    CONFIRMED = "the upper bound failed again"
    RANDOM = "the upper bound failed again, though not every time"
    CHANGED = "the upper bound did not fail again"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What speaks for the two bounds of a goal."""

    lower_trials: Sequence[Trial]
    """All trials at the lower bound, in the order of measurement."""
    upper_trials: Sequence[Trial]
    """All trials at the upper bound."""
    full_trials: int
    """Trials of full length at the lower bound."""
    exceeding_trials: int
    """How many of them lost more than the goal allows."""
    time_s: float
    """Time of all trials up to the last one that this goal asked for, waits included."""
    stationarity: Stationarity = Stationarity.NOT_TESTED

    @property
    def exceed_interval(self) -> tuple[float, float]:
        """Where the probability lies, with 95 % confidence, that a trial of full length at the lower bound
        loses more than the goal allows."""
        return clopper_pearson(self.exceeding_trials, self.full_trials)

    @property
    def exceed_estimate(self) -> float:
        """Estimated chance that one more trial of full length at the lower bound fails: (failures + 1) /
        (trials + 2), the mean of what a uniform prior leaves.

        Source: Laplace 1812, the rule of succession."""
        return (self.exceeding_trials + 1) / (self.full_trials + 2)


def clopper_pearson(failures: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval of the probability of a failure after ``failures`` in ``trials``; (0, 1) without trials.

    The lower end makes as many failures or more as likely as (1 - confidence) / 2, the upper end as many or
    fewer.

    Source: Clopper & Pearson 1934.
    """
    tail = (1.0 - confidence) / 2.0

    def at_most(most: int, probability: float) -> float:
        return math.fsum(
            math.comb(trials, count) * probability**count * (1.0 - probability) ** (trials - count)
            for count in range(most + 1)
        )

    low, high = 0.0, 1.0
    if failures > 0:
        low = _falling_through(lambda p: at_most(failures - 1, p), 1.0 - tail)
    if failures < trials:
        high = _falling_through(lambda p: at_most(failures, p), tail)
    return low, high


def _falling_through(function: Callable[[float], float], value: float) -> float:
    """Where in [0, 1] a falling function takes a value."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if function(middle) > value:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
