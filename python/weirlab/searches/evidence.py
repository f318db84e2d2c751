"""What speaks for a result: the trials at its bounds, and what they allow to be said of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from weirlab.stats.distributions import beta_quantile
from weirlab.testbed.base import Trial


class Stationarity(StrEnum):
    """Whether the device looked the same at the end of the search as when its bounds were measured."""

    NOT_TESTED = "not tested"
    CONFIRMED = "the upper bound failed again"
    RANDOM = "it passed and failed at the same loads, in no order"
    SETTLED = "it changed during the search, long before its bounds were tested last"
    CHANGED = "a bound did not hold when it was tested again"
    CHANGING = "it changed until the end of the search"


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
    stationarity_note: str = ""
    """Why it was not tested, or for which other goal; empty where there is nothing to add."""

    @property
    def exceed_interval(self) -> tuple[float, float] | None:
        """Where the probability lies, with 95 % confidence, that a trial of full length at the lower bound
        loses more than the goal allows. None after fewer than two: one trial says nothing of the next."""
        return clopper_pearson(self.exceeding_trials, self.full_trials) if self.full_trials > 1 else None

    @property
    def exceed_estimate(self) -> float | None:
        """Estimated chance that one more trial of full length at the lower bound fails: (failures + 1) /
        (trials + 2), the mean of what a uniform prior leaves. None after fewer than two.

        Source: Laplace 1812, the rule of succession."""
        return (self.exceeding_trials + 1) / (self.full_trials + 2) if self.full_trials > 1 else None

    @property
    def stationarity_told(self) -> str:
        """Stationarity and its note in one line."""
        return str(self.stationarity) + (f" ({self.stationarity_note})" if self.stationarity_note else "")


def clopper_pearson(failures: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval of the probability of a failure after ``failures`` in ``trials``; (0, 1) without trials.

    The lower end makes as many failures or more as likely as (1 - confidence) / 2, the upper end as many or
    fewer.

    Source: Clopper & Pearson 1934.
    """
    tail = (1.0 - confidence) / 2.0
    low = beta_quantile(tail, failures, trials - failures + 1) if failures > 0 else 0.0
    high = beta_quantile(1.0 - tail, failures + 1, trials - failures) if failures < trials else 1.0
    return low, high
