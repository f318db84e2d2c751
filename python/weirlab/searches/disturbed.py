"""What a search does about trials that the rest of the machine disturbed.

Where a goal is exceeded only by frames whose loss something else on the machine explains, the trial shows the
machine and not the device: it is made again and counts for nothing. That is bounded, as a machine may be busy
all the time. What is disturbed beyond the bound counts as it is, and a bound that rests on it makes the
result irregular: *machine busy*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weirlab.searches.base import GoalResult, Irregularity, SearchGoal
from weirlab.testbed.base import Trial

DISTURBED_ATTEMPTS = 3
"""Trials in a row at a load that are made again at most, the first among them."""
FREE_REPEATS = 6
"""So many repeats a search may make in any case, and"""
REPEATS_SHARE = 0.2
"""this share of its trials more."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """What the rest of the machine cost a search."""

    repeated_trials: int
    """Trials that were made again."""
    repeated_s: float
    """Their time, waits included."""
    counted_trials: int
    """Disturbed trials that counted as they were: enough had been made again."""
    last: str
    """What the machine did in the last of them."""


class Repeats:
    """Which trials are made again because they were disturbed."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._repeated: list[Trial] = []
        self._counted: list[Trial] = []

    def wants(self, trial: Trial, goals: Sequence[SearchGoal], trials: int) -> bool:
        """Whether a trial is to be made again, of which the ``goals`` were exceeded only by frames that a
        disturbance explains; the search has made ``trials``."""
        if not goals:
            self._in_a_row = 0
            return False
        free = len(self._repeated) < FREE_REPEATS + REPEATS_SHARE * trials
        if free and self._in_a_row + 1 < DISTURBED_ATTEMPTS:
            self._in_a_row += 1
            self._repeated.append(trial)
            return True
        self._in_a_row = 0
        self._counted.append(trial)
        return False

    def summary(self) -> Disturbance | None:
        """What it cost; None where nothing was disturbed."""
        seen = sorted([*self._repeated, *self._counted], key=lambda trial: trial.spec.index)
        if not seen:
            return None
        return Disturbance(
            repeated_trials=len(self._repeated),
            repeated_s=sum(trial.effective_duration_s for trial in self._repeated),
            counted_trials=len(self._counted),
            last=seen[-1].disturbance,
        )

    def reviewed(self, result: GoalResult) -> GoalResult:
        """The result of a goal, irregular where it rests on trials that were disturbed. A device that seems
        to change on a machine that disturbs it is not said to."""
        if not self._counted:
            return result
        reasons = dict(result.irregularities)
        at_bound = [
            trial
            for trial in self._counted
            if result.upper is not None and trial.spec.intended_load_fps == result.upper.load_fps
        ]
        changed = reasons.pop(Irregularity.NOT_STATIONARY, None)
        if not at_bound and changed is None:
            return result
        trial = (at_bound or self._counted)[-1]
        if len(self._counted) == 1:
            where = "at the upper bound" if at_bound else "not at the upper bound"
            what = f"one trial counted though it was disturbed, {where}: {trial.disturbance}"
        else:
            were = "was" if len(at_bound) == 1 else "were"
            what = (
                f"of {len(self._counted)} trials that counted though they were disturbed, {len(at_bound)} "
                f"{were} at the upper bound; in the last of them {trial.disturbance}"
            )
        reasons[Irregularity.DISTURBED] = what
        return replace(result, irregularities=reasons)
