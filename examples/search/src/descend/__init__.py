"""The search algorithm `descend`: from the highest load downwards until each goal is met.

It takes more trials than a bisection, and is easy to follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from weirlab.fields.values import PositiveFraction
from weirlab.scenario.plan import Algorithm
from weirlab.searches import LoadRange, SearchGoal
from weirlab.searches.controller import Finding, Outcome, Wish, refuse_repeated_trials

__all__ = ["Descend", "Descent"]


class Descend(Algorithm):
    """From the highest load downwards, in steps, until the goal is met."""

    kind: Literal["descend"]
    step: PositiveFraction = 0.1
    """How much less each load is than the one before."""

    def controller(
        self,
        goals: Sequence[SearchGoal],
        loads: LoadRange,
        hints_fps: Mapping[str, float],  # noqa: ARG002 (there are none without TAKES_HINTS)
    ) -> Descent:
        return Descent(goals, loads, self.step)


class Descent:
    """A `weirlab.searches.controller.Controller`: it knows loads and outcomes only."""

    def __init__(self, goals: Sequence[SearchGoal], loads: LoadRange, step: float) -> None:
        refuse_repeated_trials("descend", goals)
        self.goals, self.loads, self._step = goals, loads, step
        self._lower: list[Outcome | None] = [None] * len(goals)
        self._upper: list[Outcome | None] = [None] * len(goals)

    def settings(self) -> Mapping[str, object]:
        return {"kind": "descend", "step": self._step}

    @property
    def phase(self) -> str:
        return "descending"

    def ask(self) -> Wish | None:
        place = next((i for i in range(len(self.goals)) if not self._ended(i)), None)
        return None if place is None else Wish(self._next_fps(place), self.goals[place].duration_s)

    def tell(self, outcome: Outcome) -> None:
        for i, goal in enumerate(self.goals):
            if self._ended(i):
                continue
            if outcome.exceeds(goal):
                self._upper[i] = outcome
            elif outcome.load_fps <= self._next_fps(i):
                self._lower[i] = outcome

    def findings(self) -> Sequence[Finding]:
        return [
            Finding(lower=self._lower[i], upper=self._upper[i], ended=self._ended(i))
            for i in range(len(self.goals))
        ]

    def _next_fps(self, place: int) -> float:
        upper = self._upper[place]
        return self.loads.max_fps if upper is None else (1 - self._step) * upper.load_fps

    def _ended(self, place: int) -> bool:
        return self._lower[place] is not None or self._next_fps(place) < self.loads.min_fps
