"""What a study is to find the best of, and how that is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from weirlab.fields.base import Model, Named
from weirlab.fields.values import Count, Fraction, PositiveSpan
from weirlab.scenario.plan.precision import AnyBound, Bound
from weirlab.units import Span

MOST_PLACES = 100_000_000
"""Points times replicates of a contest at most: a runner keeps a byte for each."""


@dataclass(frozen=True)
class Limit:
    """What the mean of a measure may be."""

    measure: str
    sign: float
    """1: at most; -1: at least."""
    bound: Bound

    def excess(self, mean: float) -> float:
        """By what part of the bound a mean breaks it; by how much, where the bound is 0."""
        over = self.sign * (mean - self.bound.amount)
        return max(over, 0.0) / (abs(self.bound.amount) or 1.0)

    def __str__(self) -> str:
        return f"{self.measure} {'≤' if self.sign > 0 else '≥'} {self.bound.text}"


class Contest(Model):
    """The best of many points, judged by runs with seeds that decided nothing before."""

    measure: str
    """Name of the measure that decides, by its mean over the replicates."""
    best: Literal["lowest", "highest"] = "lowest"
    """Which values are good."""
    at_most: Named[AnyBound] = Named()
    """Upper limits for the means of other measures, by name. Points within the limits rank before all
    others."""
    at_least: Named[AnyBound] = Named()
    """The same from below."""
    finalists: Count = 3
    """Points that are left at the end, and judged by new seeds."""
    verdict: Count = 20
    """Replicates of each finalist, with separate seeds; at least two."""

    @property
    def sign(self) -> float:
        """By which values are multiplied so that less is better."""
        return 1.0 if self.best == "lowest" else -1.0

    @property
    def limits(self) -> list[Limit]:
        """All that `at_most` and `at_least` ask."""
        sides = ((1.0, self.at_most), (-1.0, self.at_least))
        return [Limit(name, sign, bound) for sign, bounds in sides for name, bound in bounds.items()]

    @property
    def measures(self) -> list[str]:
        """All that decide."""
        return [self.measure, *(limit.measure for limit in self.limits)]


@dataclass(frozen=True)
class Rung:
    """A stage of halving."""

    replicates: int
    """That each point has by its end."""
    duration: Span | None
    """Of its runs; None: that of the scenario."""
    kept: int
    """Points that are left after it."""


class Halving(Contest):
    """A few runs of all points and more of the better ones, until only the finalists are left."""

    keep: Fraction = 0.5
    """Share of the points that remains from stage to stage; the runs of each grow by its inverse."""
    duration: PositiveSpan | None = None
    """Duration of the runs of the first stage. It grows to `run.duration`, and only then the number of
    replicates. Absent: all runs have the full duration."""
    apart: tuple[str, ...] = ()
    """Factors, for each combination of whose levels there is a separate contest."""

    def rungs(self, points: int, replicates: int, whole: Span | None) -> list[Rung]:
        """The stages of a contest among so many points, whose last runs last `whole`.

        Source: Jamieson & Talwalkar 2016, algorithm 1, with a share instead of one half and a free first
        budget.
        """
        found: list[Rung] = []
        budget, left = 1.0, points
        most = math.inf if whole is None or self.duration is None else whole.ps / self.duration.ps
        while left > self.finalists:
            left = max(self.finalists, min(left - 1, math.ceil(left * self.keep)))
            if self.duration is None or budget >= most:
                beyond = budget if self.duration is None else budget / most
                found.append(Rung(max(replicates, round(replicates * beyond)), None, left))
            else:
                found.append(Rung(replicates, Span(round(self.duration.ps * budget)), left))
            budget /= self.keep
        return found
