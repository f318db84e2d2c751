"""Replicates until intervals are narrow enough: how many each point is to have, from what is there.

All follows from the results and their numbers: not from when they came or who made them. A study that was
interrupted asks for the same replicates as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weirlab.scenario.plan.precision import HalfWidth
from weirlab.stats import Interval, enough, mean_interval
from weirlab.studies.asking import Found
from weirlab.studies.plan import RunsPlan


@dataclass(frozen=True)
class Reached:
    """How precise a point became, in what was asked least well of all."""

    point: int
    measure: str
    difference: bool
    """Whether this is the difference from the baseline."""
    half_width: float
    """In the unit of the measure; NaN where there are too few values."""
    mean: float
    """That it was compared with: of the point, or of the baseline."""
    asked: HalfWidth
    reached: bool


class Sequential(Found):
    """Says how many replicates each point of a plan is to have; see `weirlab.execution.Asking`."""

    def __init__(self, plan: RunsPlan) -> None:
        until = plan.section.until
        assert until is not None
        self._until = until
        self._least = plan.least
        super().__init__(plan, [*until.half_widths, *until.differences])
        self._groups = self._grouped()
        self._asked = dict.fromkeys(map(int, plan.order), plan.least)
        self._settled: set[int] = set()
        """Groups that nothing more is asked of."""

    def _grouped(self) -> list[tuple[list[int], int | None]]:
        """Points that go on together, each with its baseline: those that are compared, else each alone."""
        study = self._plan.section
        if study.compare is None:
            return [([int(number)], None) for number in self._plan.order]
        groups: dict[object, list[int]] = {}
        baselines: dict[object, int] = {}
        for number in np.sort(self._plan.order):
            found = study.pair(self._plan.levels(int(number)))
            assert found is not None
            rest, is_baseline = found
            groups.setdefault(rest, []).append(int(number))
            if is_baseline:
                baselines[rest] = int(number)
        return [(members, baselines.get(rest)) for rest, members in groups.items()]

    def asked(self) -> np.ndarray:
        """How many replicates each point is to have as far as is known, in the order of the plan."""
        for place, (members, baseline) in enumerate(self._groups):
            while place not in self._settled:
                count = self._asked[members[0]]
                present = [self.has(point, count) for point in members]
                if not all(present):
                    break
                more = self._more(members, baseline, count)
                if more == count:
                    self._settled.add(place)
                for point in members:
                    self._asked[point] = more
        return np.array([self._asked[int(number)] for number in self._plan.order], dtype=np.int64)

    rounds = 5
    """Doublings and steps in between; about."""

    def expected(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """See `weirlab.execution.Asking`."""
        least = int(self.asked().sum())
        going_on = (self._groups[i][0] for i in range(len(self._groups)) if i not in self._settled)
        most = least + sum(self._until.most - self._asked[each] for group in going_on for each in group)
        return (least, least), (most, most)

    def _series(
        self, members: Sequence[int], baseline: int | None, count: int
    ) -> list[tuple[int, str, HalfWidth, list[float], float | None]]:
        """What is asked of each point: its number, the measure, how narrow, its values, and the mean that a
        share is of (None: its own)."""
        found: list[tuple[int, str, HalfWidth, list[float], float | None]] = []
        for point in members:
            if point in self.impossible:
                continue
            for name, width in self._until.half_widths.items():
                found.append((point, name, width, self.first(point, name, count), None))
            if baseline is None or point == baseline or baseline in self.impossible:
                continue
            for name, width in self._until.differences.items():
                mine, other = (self.by_replicate(each, name) for each in (point, baseline))
                both = [i for i in range(count) if i in mine and i in other]
                mean = mean_interval([other[i] for i in both])
                found.append(
                    (point, name, width, [mine[i] - other[i] for i in both], mean.mean if mean else 0.0)
                )
        return found

    def _more(self, members: Sequence[int], baseline: int | None, count: int) -> int:
        series = self._series(members, baseline, count)

        return enough(
            count,
            [values for _, _, _, values, _ in series],
            [_Narrow(width, about) for _, _, width, _, about in series],
            self._until.most,
        )

    def reached(self) -> list[Reached]:
        """How precise each point is that has all that is asked of it, by what was asked least well."""
        found: list[Reached] = []
        self.asked()
        for place, (members, baseline) in enumerate(self._groups):
            if place not in self._settled:
                continue
            count = self._asked[members[0]]
            worst: dict[int, tuple[float, Reached]] = {}
            for point, name, width, values, about in self._series(members, baseline, count):
                interval = mean_interval(values)
                mean = about if about is not None else interval.mean if interval else math.nan
                half = interval.half_width if interval else math.nan
                good = len(values) == count and width.allows(half, mean)
                one = Reached(point, name, about is not None, half, mean, width, good)
                allowed = width.amount * (abs(mean) if width.relative else 1.0)
                part = half / allowed if allowed > 0 else 0.0 if good else math.inf
                part = math.inf if math.isnan(part) else part
                if point not in worst or (not good, part) > (not worst[point][1].reached, worst[point][0]):
                    worst[point] = part, one
            found += [each for _, each in worst.values()]
        return sorted(found, key=lambda each: each.point)


@dataclass(frozen=True)
class _Narrow:
    width: HalfWidth
    about: float | None

    def __call__(self, interval: Interval) -> bool:
        return self.width.allows(interval.half_width, interval.mean if self.about is None else self.about)
