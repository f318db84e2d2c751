"""Contests: which points go on, and what seeds that decided nothing say of those that are left.

All follows from the results and their numbers, as in `weirlab.studies.sequential`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weirlab.scenario.plan.contest import Contest
from weirlab.stats import mean_interval
from weirlab.studies.asking import Found
from weirlab.studies.plan import RunsPlan

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Standing:
    """How a point did in one round of a contest."""

    levels: Mapping[str, str]
    """Of the factors by which contests are apart."""
    round: int
    """From 1."""
    point: int
    replicates: int
    """With which it was judged."""
    value: float
    """Mean of the measure; NaN where a run has none."""
    kept: bool
    """Whether it did well enough to go on, or to count for what is chosen next."""


@dataclass(frozen=True)
class Finalist:
    """What new seeds say of a point that was left."""

    levels: Mapping[str, str]
    """Of the factors by which contests are apart."""
    point: int
    rank: int
    """1: the best."""
    chosen_by: float
    """The mean by which it was chosen, which is too good on average; NaN where it was not run before."""
    mean: float
    low: float
    high: float
    """Of the mean: the intervals of all finalists hold together with 95 % confidence. All numbers are NaN
    where a run of the verdict gave no answer: what is left of them would be a choice of runs."""
    behind: float
    """Difference from the best of them, seed by seed; 0 for itself."""
    behind_low: float
    behind_high: float
    """The intervals between any two finalists hold together with 95 % confidence, whichever is best."""


class Contested(Found):
    """What the contests of a plan share; see `weirlab.execution.Asking`."""

    def __init__(self, plan: RunsPlan, contest: Contest) -> None:
        super().__init__(plan, [contest.measure])
        self._contest = contest
        self._wanted: dict[int, int] = {}
        self.standings: list[Standing] = []
        self.finalists: list[Finalist] = []

    @abstractmethod
    def _go_on(self) -> None:
        """Set what is wanted by what is there."""

    rounds: int
    """See `weirlab.execution.Asking`."""

    @abstractmethod
    def expected(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """See `weirlab.execution.Asking`."""

    def asked(self) -> np.ndarray:
        """See `weirlab.execution.Asking`."""
        self._go_on()
        return np.array([self._wanted.get(int(number), 0) for number in self._plan.order], dtype=np.int64)

    def want(self, points: Sequence[int], count: int) -> bool:
        """Ask for replicates; whether they are there."""
        for point in points:
            self._wanted[point] = max(count, self._wanted.get(point, 0))
        return all(self.has(point, count) for point in points)

    def loss(self, point: int, count: int) -> float:
        """The mean by which points are ranked, the less the better; infinite where it cannot be."""
        mean = self.mean(point, self._contest.measure, count)
        return math.inf if math.isnan(mean) else self._contest.sign * mean

    def ranked(self, points: Sequence[int], count: int) -> list[int]:
        """Points, the best first, of equal ones the first."""
        return sorted(points, key=lambda point: (self.loss(point, count), point))

    def stand(
        self, levels: Mapping[str, str], number: int, points: Sequence[int], count: int, kept: Sequence[int]
    ) -> None:
        """Note how points did in a round."""
        for point in points:
            value = self.mean(point, self._contest.measure, count)
            self.standings.append(Standing(levels, number, point, count, value, point in kept))

    def judge(self, levels: Mapping[str, str], chosen: Mapping[int, float]) -> None:
        """The verdict on points, each with the mean by which it was chosen."""
        name, count = self._contest.measure, self._contest.verdict
        ranked = self.ranked(list(chosen), count)
        many = len(ranked)
        pairs = max(1, many * (many - 1) // 2)
        for rank, point in enumerate(ranked, start=1):
            found = away = (math.nan,) * 3
            if not math.isnan(self.mean(point, name, count)):  # nor of the best, then
                mine, best = self.first(point, name, count), self.first(ranked[0], name, count)
                found = _interval(mine, many)
                apart = [one - other for one, other in zip(mine, best, strict=True)]
                away = _interval(apart, pairs) if rank > 1 else (0.0, 0.0, 0.0)
            self.finalists.append(Finalist(levels, point, rank, chosen[point], *found, *away))


def _interval(values: Sequence[float], many: int) -> tuple[float, float, float]:
    """Mean, low and high of one of so many intervals that hold together."""
    interval = mean_interval(values, confidence=1 - (1 - _CONFIDENCE) / many)
    assert interval is not None
    return interval.mean, interval.low, interval.high
