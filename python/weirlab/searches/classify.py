"""What trials say about a load: lower bound, upper bound or undecided; and which bounds are relevant.

Source: RFC 9971, section 4.7.2. A load is classified once per goal, from the effective durations of its
trials: those of full length (trial duration at least the goal's) or short ones, each with high loss (loss
ratio above the goal's) or low loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from weirlab.searches.base import SearchGoal


class LoadClass(StrEnum):
    """What is known of a load with regard to one goal."""

    LOWER = "lower"
    """The goal is met: a lower bound of the rate that is looked for."""
    UPPER = "upper"
    UNDECIDED = "undecided"
    """Further trials could still make it either."""


class Criterion(NamedTuple):
    """The part of a goal that classifies loads."""

    loss_ratio: float
    exceed_ratio: float
    duration_s: float
    """A trial at least this long has full length."""
    duration_sum_s: float

    @classmethod
    def of(cls, goal: SearchGoal) -> Criterion:
        """That of the goal itself, with its defaults filled in."""
        return cls(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=goal.exceed_ratio,
            duration_s=goal.duration_s,
            duration_sum_s=goal.duration_s if goal.duration_sum_s is None else goal.duration_sum_s,
        )


class Sample(NamedTuple):
    """The part of a trial that classifies its load."""

    duration_s: float
    """Trial duration: decides whether the trial has full length."""
    effective_duration_s: float
    """What the trial adds to the sums."""
    loss_ratio: float


@dataclass
class Tally:
    """Sums over the samples of one load with regard to one criterion, in seconds of effective duration."""

    criterion: Criterion
    full_high_s: float = 0.0
    full_low_s: float = 0.0
    short_high_s: float = 0.0
    short_low_s: float = 0.0
    full_losses: dict[float, float] = field(default_factory=dict)
    """Effective duration by loss ratio of the samples of full length."""

    def add(self, sample: Sample) -> None:
        """Count one more sample."""
        high = sample.loss_ratio > self.criterion.loss_ratio
        if sample.duration_s >= self.criterion.duration_s:
            measured_s = self.full_losses.get(sample.loss_ratio, 0.0)
            self.full_losses[sample.loss_ratio] = measured_s + sample.effective_duration_s
            if high:
                self.full_high_s += sample.effective_duration_s
            else:
                self.full_low_s += sample.effective_duration_s
        elif high:
            self.short_high_s += sample.effective_duration_s
        else:
            self.short_low_s += sample.effective_duration_s

    @property
    def high_s(self) -> float:
        """What counts as high loss: all of full length, and as much of the short ones as the short ones with
        low loss do not make up for."""
        exceed = self.criterion.exceed_ratio
        made_up_for = self.short_low_s * exceed / (1.0 - exceed)
        return self.full_high_s + max(0.0, self.short_high_s - made_up_for)

    @property
    def whole_s(self) -> float:
        """What the exceed ratio is a share of: the time counted, at least the duration sum."""
        return max(self.full_low_s + self.high_s, self.criterion.duration_sum_s)

    @property
    def load_class(self) -> LoadClass:
        """Decided when it does not matter how the missing time would turn out."""
        allowed_s = self.whole_s * self.criterion.exceed_ratio
        at_best_lower = self.high_s <= allowed_s
        at_worst_lower = self.whole_s - self.full_low_s <= allowed_s
        if at_best_lower is not at_worst_lower:
            return LoadClass.UNDECIDED
        return LoadClass.LOWER if at_best_lower else LoadClass.UPPER

    @property
    def conditional_loss_ratio(self) -> float:
        """Loss ratio that only the allowed share of the time exceeds; time not measured counts as lost
        entirely. Meaningful for a lower bound.

        Source: RFC 9971, section 4.8.3. Where its prose and its code differ (the sum of the samples, or at
        least the duration sum), the code is followed.
        """
        if not self.full_losses:
            return 1.0
        measured_s = self.full_high_s + self.full_low_s
        remaining_s = max(self.criterion.duration_sum_s, measured_s) * (1.0 - self.criterion.exceed_ratio)
        for loss_ratio in sorted(self.full_losses):
            remaining_s -= self.full_losses[loss_ratio]
            if remaining_s <= 0.0:
                return loss_ratio
        return 1.0


class RelevantBounds(NamedTuple):
    """The two loads that a goal's result rests on, as places in the list that was asked about."""

    lower: int | None
    upper: int | None


def relevant_bounds(classes: Sequence[LoadClass]) -> RelevantBounds:
    """The smallest upper bound, and the largest lower bound below it, of loads in ascending order.

    Where a higher load loses less than a lower one (loss inversion), the upper bound is believed.
    """
    upper = next((place for place, load_class in enumerate(classes) if load_class is LoadClass.UPPER), None)
    below = classes[:upper]
    lower = next((place for place in reversed(range(len(below))) if below[place] is LoadClass.LOWER), None)
    return RelevantBounds(lower, upper)
