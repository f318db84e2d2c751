"""Optimisation: points chosen by an evolution strategy, asked and told generation by generation.

The strategy is CatCMA with margin (Hamano 2025), of the package cmaes: ranges are continuous, ordered
choices integers, and other choices categories. Ranges go from 0 to 1. All points of a generation have the
same seeds, and each generation has others, so that it does not adapt itself to what some seeds happen to do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weirlab.errors import InputError
from weirlab.foreign import optional
from weirlab.heavy import np
from weirlab.scenario.plan.design import Optimise
from weirlab.scenario.plan.levels import Level
from weirlab.stats import block_probability
from weirlab.studies.contests import Contested
from weirlab.studies.plan import RunsPlan

_PATIENCE = 10_000
"""Points that conditions may leave out before nothing is found that fulfils them."""
_APART = 0.05
"""Probability of chance alone from which a generation cannot be ranked."""
_LATE = 0.75
"""Part of the generations after which points can become finalists."""
_NUMBER = re.compile(r"-?\d[\d_.]*([eE][-+]?\d+)?(\s*[^\d\s].*)?")


class Optimised(Contested):
    """Says which points are wanted, and how many replicates of each; see `weirlab.execution.Asking`."""

    def __init__(self, plan: RunsPlan, design: Optimise) -> None:
        super().__init__(plan, design)
        self._design = design
        self.rounds = design.generations + 1
        self._searches = [
            _Search(self, plan, design, place, *each) for place, each in enumerate(plan.combinations())
        ]

    def _go_on(self) -> None:
        for search in self._searches:
            search.go_on()

    def expected(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """See `weirlab.execution.Asking`."""
        design, least = self._design, self._plan.least
        verdict = design.finalists * design.verdict
        runs = [
            len(self._searches) * (design.generations * design.size * each + verdict)
            for each in (least, self._plan.stages[0].most)
        ]
        return (runs[0], runs[0]), (runs[1], runs[1])


class _Search:
    """The optimisation at one combination of the factors."""

    def __init__(
        self,
        found: Optimised,
        plan: RunsPlan,
        design: Optimise,
        place: int,
        factors: Mapping[str, str],
        known: Mapping[str, str],
    ) -> None:
        self._found, self._plan, self._design = found, plan, design
        self._place, self._factors, self._known = place, factors, known
        self._space = _Space(design, place)
        self._generation = 0
        self._count = self._least
        self._asked: list[_Candidate] = []
        self._best: list[tuple[tuple[float, float], dict[str, str], float]] = []
        self._centre: dict[str, str] | None = None
        self._verdict: dict[int, float] = {}
        self._ended = False

    @property
    def _least(self) -> int:
        return self._plan.least

    @property
    def _most(self) -> int:
        return self._plan.stages[0].most

    def go_on(self) -> None:
        """Ask for what is wanted next, as far as results are there."""
        while self._generation < self._design.generations:
            points = self._points()
            if not self._found.want(points, self._count):
                return
            if self._count < self._most and self._cannot_be_ranked(points):
                self._count = min(2 * self._count, self._most)
                continue
            self._tell(points)
        if self._ended:
            return
        points = self._finalists()
        if self._found.want(points, self._design.verdict):
            self._ended = True
            there = {each: by for each, by in self._verdict.items() if each not in self._found.impossible}
            self._found.judge(self._factors, there)

    def _points(self) -> list[int]:
        """The numbers of the points of this generation, which are chosen where they are not yet. One that is
        chosen twice has one number."""
        first = self._generation * self._design.size
        numbers = [self._plan.chosen(self._place, first + i) for i in range(self._design.size)]
        if not self._asked:
            self._asked = [self._candidate(number) for number in numbers]
        number_of: dict[tuple[str, ...], int] = {}
        return [
            number_of.setdefault(tuple(each.levels.values()), number)
            for each, number in zip(self._asked, numbers, strict=True)
        ]

    def _candidate(self, number: int) -> _Candidate:
        for _ in range(_PATIENCE):
            candidate = self._space.ask()
            if self._fulfils(candidate.levels):
                break
        else:
            raise InputError(
                f"study.where: none of {_PATIENCE:,} points that were chosen fulfils it; narrow the ranges"
            )
        there = self._plan.given.setdefault(number, candidate.levels)
        # Another machine may have chosen a little otherwise: what was run counts.
        return candidate if there == candidate.levels else self._space.at(there)

    def _fulfils(self, levels: Mapping[str, str]) -> bool:
        return self._plan.section.has_row(self._known, levels)

    def _cannot_be_ranked(self, points: Sequence[int]) -> bool:
        found, count = self._found, self._count
        points = list(dict.fromkeys(points))
        keeping = [point for point in points if found.excess(point, count) == 0]
        # What breaks a limit is ranked by that, the others by the measure.
        decided = [
            (limit.measure, points)
            for limit in self._design.limits
            if any(limit.excess(found.mean(point, limit.measure, count)) > 0 for point in points)
        ]
        for name, ranked in [*decided, (self._design.measure, keeping)]:
            values = [found.first(point, name, count) for point in ranked]
            whole = [each for each in values if len(each) == count]
            if len(whole) > 1 and (count < 2 or block_probability(whole) > _APART):
                return True
        return False

    def _tell(self, points: Sequence[int]) -> None:
        """Tell the strategy how the generation did, and begin the next."""
        found, count = self._found, self._count
        self._space.tell(list(zip(self._asked, self._losses(points), strict=True)))
        by_point = dict(zip(points, self._asked, strict=True))
        ranked = found.ranked([*by_point], count)
        kept = ranked[: max(1, len(ranked) // 2)]
        found.stand(self._factors, self._generation + 1, [*by_point], count, kept)
        if self._generation >= math.floor(_LATE * self._design.generations):
            self._best += [
                (found.rank(point, count), each.levels, found.mean(point, self._design.measure, count))
                for point, each in by_point.items()
                if all(map(math.isfinite, found.rank(point, count)))
            ]
        self._centre = self._space.centre([by_point[point] for point in kept])
        self._generation += 1
        self._count = max(self._least, self._count // 2)
        self._asked = []

    def _losses(self, points: Sequence[int]) -> list[float]:
        """What the strategy is told of points: those that break limits come behind all that keep them, and
        those without an answer last."""
        ranks = [self._found.rank(point, self._count) for point in points]
        kept = [loss for excess, loss in ranks if excess == 0 and math.isfinite(loss)] or [0.0]
        most = max((excess for excess, _ in ranks if math.isfinite(excess)), default=0.0) or 1.0
        beyond = max(kept) - min(kept) + 1.0
        return [
            loss
            if excess == 0 and math.isfinite(loss)
            else max(kept)
            + beyond * (excess / most if math.isfinite(excess) and math.isfinite(loss) else 1.0)
            for excess, loss in ranks
        ]

    def _finalists(self) -> list[int]:
        """The numbers of the finalists: the centre of what was best last, and the best of late ones."""
        if not self._verdict:
            chosen: list[tuple[dict[str, str], float]] = []
            if self._centre is not None and self._fulfils(self._centre):
                chosen.append((self._centre, math.nan))
            for _, levels, mean in sorted(self._best, key=lambda each: each[0]):
                if len(chosen) < self._design.finalists and all(levels != each for each, _ in chosen):
                    chosen.append((levels, mean))
            first = self._design.generations * self._design.size
            for place, (levels, mean) in enumerate(chosen[: self._design.finalists]):
                number = self._plan.chosen(self._place, first + place)
                self._plan.given.setdefault(number, levels)
                self._verdict[number] = mean
        return list(self._verdict)


class _Candidate:
    """A point that the strategy chose."""

    def __init__(self, solution: Any, levels: dict[str, str], parts: list[float], places: list[int]) -> None:
        self.solution, self.levels, self.parts, self.places = solution, levels, parts, places


class _Space:
    """The parameters and choices of a design, as the strategy knows them."""

    def __init__(self, design: Optimise, place: int) -> None:
        cmaes = _cmaes()
        self._design = design
        self._ordered = [name for name, levels in design.choices.items() if _has_order(levels)]
        self._categories = [name for name in design.choices if name not in self._ordered]
        self._names = list(design.choices)
        sizes = {name: len(levels) for name, levels in design.choices.items()}
        self._sizes = [sizes[name] for name in self._categories]
        self._solution = cmaes.CatCMAwM.Solution
        self._strategy = cmaes.CatCMAwM(
            x_space=[[0.0, 1.0]] * len(design.parameters) or None,
            z_space=[list(range(sizes[name])) for name in self._ordered] or None,
            c_space=self._sizes or None,
            population_size=design.size,
            seed=int(np.random.SeedSequence([design.seed, place]).generate_state(1)[0]),
        )

    def ask(self) -> _Candidate:
        """A point of the strategy."""
        solution = self._strategy.ask()
        parts = [] if solution.x is None else [float(part) for part in solution.x]
        found = {} if solution.z is None else dict(zip(self._ordered, map(int, solution.z), strict=True))
        if solution.c is not None:
            found |= dict(zip(self._categories, map(int, solution.c.argmax(axis=1)), strict=True))
        places = [found[name] for name in self._names]
        return _Candidate(solution, self._design.levels(parts, places), parts, places)

    def at(self, levels: Mapping[str, str]) -> _Candidate:
        """The point with these levels."""
        design = self._design
        parts = [given.part(levels[name]) for name, given in design.parameters.items()]
        places = [
            next(i for i, each in enumerate(design.choices[name]) if each.name == levels[name])
            for name in self._names
        ]
        by_name = dict(zip(self._names, places, strict=True))
        whole = [by_name[name] for name in self._ordered]
        one = np.zeros((len(self._sizes), max(self._sizes, default=0)), dtype=bool)
        for row, name in enumerate(self._categories):
            one[row, by_name[name]] = True
        solution = self._solution(
            x=np.array(parts) if parts else None,
            z=np.array(whole) if whole else None,
            c=one if self._sizes else None,
            _v_raw=np.array([*parts, *map(float, whole)]) if parts or whole else None,
        )
        return _Candidate(solution, dict(levels), parts, places)

    def tell(self, losses: Sequence[tuple[_Candidate, float]]) -> None:
        """How each point of a generation did."""
        self._strategy.tell([(each.solution, loss) for each, loss in losses])

    def centre(self, best: Sequence[_Candidate]) -> dict[str, str]:
        """The mean of the parts of some points, and what most of them choose; the first counts most.

        Source: Hansen 2016, equations 6 and 49.
        """
        weights = np.array([math.log(len(best) + 0.5) - math.log(i + 1) for i in range(len(best))])
        weights /= weights.sum()
        parts = [float(weights @ column) for column in zip(*(each.parts for each in best), strict=True)]
        places = []
        for column, name in enumerate(self._names):
            chosen = [each.places[column] for each in best]
            if name in self._ordered:
                places.append(round(float(weights @ chosen)))
            else:
                places.append(int(np.bincount(chosen, weights).argmax()))
        return self._design.levels(parts, places)


def _has_order(levels: Sequence[Level]) -> bool:
    """Whether levels are numbers, one after the other."""
    return len(levels) > 2 and all(
        _NUMBER.fullmatch(level.name) and len(level.assignments) == 1 for level in levels
    )


def _cmaes() -> Any:
    """The package cmaes. Raises MissingCapability, which says how to get it."""
    return optional("cmaes", who="an optimisation needs", package="cmaes", extra="optimise")
