"""What a study is to find the best of, and how that is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from weirlab.fields.base import Model
from weirlab.fields.values import Count, Fraction, PositiveSpan
from weirlab.units import Span

MOST_PLACES = 100_000_000
"""Points times replicates of a contest at most: a runner keeps a byte for each."""


class Contest(Model):
    """The best of many points, judged by runs with seeds that decided nothing before."""

    measure: str
    """Name of the measure that decides, by its mean over the replicates."""
    best: Literal["lowest", "highest"] = "lowest"
    """Which values are good."""
    finalists: Count = 3
    """Points that are left at the end, and judged by new seeds."""
    verdict: Count = 20
    """Replicates of each finalist, with seeds of their own; two at least."""

    @property
    def sign(self) -> float:
        """By which values are multiplied so that less is better."""
        return 1.0 if self.best == "lowest" else -1.0


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
    """Few runs of all points, more of those that did well, until the finalists are left."""

    keep: Fraction = 0.5
    """Share of the points that stays from stage to stage; the runs of each grow by its inverse."""
    duration: PositiveSpan | None = None
    """Of the runs of the first stage. They grow to `run.duration`, and only then the replicates. Absent: all
    runs are whole."""
    apart: tuple[str, ...] = ()
    """Factors of which each combination of levels has a contest of its own."""

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
