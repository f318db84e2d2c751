"""Plain binary search, one after the other for each goal.

The first trial is at the highest load; each further one in the arithmetic middle between the highest load
that met the goal (at first the lowest load of the range) and the lowest that did not. A search ends when the
next load is less than the threshold away from the last one; without a threshold, when the bounds lie within
the goal's width.

Source: CSIT MDR, section 2.8.4 (what MDR is compared with). DEVIATION: when no load met the goal,
the lowest one is measured at the end; the text takes it for granted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weirlab.errors import InputError
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.controller import Finding, Outcome, Wish, refuse_empty_trials, refuse_repeated_trials


class Binary:
    """Controller of plain binary searches."""

    def __init__(
        self, goals: Sequence[SearchGoal], loads: LoadRange, *, threshold_fps: float | None = None
    ) -> None:
        """Args:
        threshold_fps: Distance of two loads [frames/s, summed over all directions] below which the next one
            is not worth a trial. None: the goals' widths rule.
        """
        refuse_repeated_trials("binary", goals)
        if threshold_fps is not None and not threshold_fps > 0.0:
            raise InputError(
                f"the threshold of a binary search must be above 0 (got {threshold_fps:g} frames/s)"
            )
        for goal in goals:
            refuse_empty_trials(loads, goal.duration_s)
            if (goal.width is None) == (threshold_fps is None):
                raise InputError(
                    f"goal {goal.name}: a binary search ends at a width or at a threshold; give one of them"
                )
        self.goals = goals
        self.loads = loads
        self._threshold_fps = threshold_fps
        self._halvings = [_Halving(goal, loads, threshold_fps) for goal in goals]

    def settings(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {"kind": "binary", "threshold_fps": self._threshold_fps}

    def ask(self) -> Wish | None:
        """The next trial of the first search that has not ended."""
        current = self._current
        return None if current is None else Wish(current.next_fps, current.goal.duration_s)

    def tell(self, outcome: Outcome) -> None:
        """Take what came of the last wish."""
        current = self._current
        if current is None:
            raise ValueError("received a trial after the end")
        current.narrow(outcome)

    @property
    def phase(self) -> str:
        """The goal whose search is under way."""
        return "done" if self._current is None else self._current.goal.name

    def findings(self) -> Sequence[Finding]:
        """The current bounds of each search."""
        return [Finding(lower=each.lower, upper=each.upper, ended=each.ended) for each in self._halvings]

    @property
    def _current(self) -> _Halving | None:
        return next((each for each in self._halvings if not each.ended), None)


@dataclass
class _Halving:
    """The search for one goal."""

    goal: SearchGoal
    loads: LoadRange
    threshold_fps: float | None
    lower: Outcome | None = None
    upper: Outcome | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        self.next_fps = self.loads.max_fps

    def narrow(self, outcome: Outcome) -> None:
        if outcome.exceeds(self.goal):
            self.upper = outcome
        else:
            self.lower = outcome
        lower_fps = self.lower.load_fps if self.lower else self.loads.min_fps
        upper_fps = self.upper.load_fps if self.upper else self.loads.max_fps
        last_fps, self.next_fps = self.next_fps, (lower_fps + upper_fps) / 2.0
        if self.threshold_fps is not None:
            near = abs(self.next_fps - last_fps) < self.threshold_fps
        else:
            near = self.goal.width is not None and upper_fps - lower_fps <= self.goal.width * upper_fps
        if near and self.lower is None and upper_fps > self.loads.min_fps:
            self.next_fps = self.loads.min_fps
        else:
            self.ended = near
