"""Contests: which points go on, and what seeds that decided nothing say of those that are left.

All follows from the results and their numbers, as in `weirlab.studies.sequential`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weirlab.scenario.plan.contest import Contest, Limit
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
    excess: float
    """By how much its means break the limits, as parts of these in all; NaN where a run has no value."""
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
    excess: float
    """By how much its means break the limits, as parts of these in all; NaN where a run has no value."""


@dataclass(frozen=True)
class Kept:
    """How a finalist keeps a limit."""

    levels: Mapping[str, str]
    """Of the factors by which contests are apart."""
    point: int
    measure: str
    limit: str
    """As a person reads it."""
    mean: float
    low: float
    high: float
    """Those of all limits of all finalists hold together with 95 % confidence; NaN as of `Finalist`."""
    kept: str
    """`yes` or `no` where the interval says so, else `open`."""


class Contested(Found):
    """What the contests of a plan share; see `weirlab.execution.Asking`."""

    def __init__(self, plan: RunsPlan, contest: Contest) -> None:
        super().__init__(plan, contest.measures)
        self._contest = contest
        self._wanted: dict[int, int] = {}
        self.standings: list[Standing] = []
        self.finalists: list[Finalist] = []
        self.limits: list[Kept] = []

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

    def excess(self, point: int, count: int) -> float:
        """By how much a point breaks the limits, in all; infinite where that is not known."""
        found = [limit.excess(self.mean(point, limit.measure, count)) for limit in self._contest.limits]
        return math.fsum(math.inf if math.isnan(each) else each for each in found)

    def rank(self, point: int, count: int) -> tuple[float, float]:
        """By what points are ranked, the less the better: first by how much they break limits.

        Source: Deb 2000, section 3.
        """
        return self.excess(point, count), self.loss(point, count)

    def ranked(self, points: Sequence[int], count: int) -> list[int]:
        """Points, the best first, of equal ones the first."""
        return sorted(points, key=lambda point: (*self.rank(point, count), point))

    def stand(
        self, levels: Mapping[str, str], number: int, points: Sequence[int], count: int, kept: Sequence[int]
    ) -> None:
        """Note how points did in a round."""
        for point in points:
            value, excess = self.mean(point, self._contest.measure, count), _known(self.excess(point, count))
            self.standings.append(Standing(levels, number, point, count, value, excess, point in kept))

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
            excess = _known(self.excess(point, count))
            self.finalists.append(Finalist(levels, point, rank, chosen[point], *found, *away, excess))
            limits = self._contest.limits
            self.limits += [
                _judged(
                    levels, point, limit, self.first(point, limit.measure, count), count, many * len(limits)
                )
                for limit in limits
            ]


def _known(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _judged(
    levels: Mapping[str, str], point: int, limit: Limit, values: Sequence[float], count: int, many: int
) -> Kept:
    """How a finalist keeps one of so many limits of all finalists."""
    found = _interval(values, many) if len(values) == count else (math.nan,) * 3
    over, under = (limit.sign * (each - limit.bound.amount) for each in found[1:])
    kept = "yes" if max(over, under) <= 0 else "no" if min(over, under) > 0 else "open"
    return Kept(levels, point, limit.measure, str(limit), *found, kept)


def _interval(values: Sequence[float], many: int) -> tuple[float, float, float]:
    """Mean, low and high of one of so many intervals that hold together."""
    interval = mean_interval(values, confidence=1 - (1 - _CONFIDENCE) / many)
    assert interval is not None
    return interval.mean, interval.low, interval.high
