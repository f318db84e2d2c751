"""The plan of a study of runs: every point follows from the scenario and its number, in any process."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl
from typing_extensions import TypedDict

from weirlab.documents import typed
from weirlab.errors import InputError, ScenarioError, UnsupportedError, WeirlabError
from weirlab.evaluation import asks_flows, measured
from weirlab.execution import Watch
from weirlab.execution.batches import digest
from weirlab.measures.rows import frame_sums
from weirlab.runs import replicate_seeds, resolve, simulate
from weirlab.scenario import Scenario
from weirlab.scenario.loading import loads
from weirlab.scenario.plan import Level
from weirlab.scenario.plan.combinations import (
    Impossible,
    Point,
    design_levels,
    possible,
    refuse_unlisted,
)
from weirlab.scenario.plan.contest import Halving
from weirlab.scenario.plan.design import Optimise
from weirlab.scenario.plan.precision import LEAST_REPLICATES
from weirlab.scenario.sections import follows_from
from weirlab.store import COUNTS, Row
from weirlab.units import Span

_CHECKED = 500
"""Combinations that are looked at before anything runs; of more of them, so many that lie apart."""


def points_of(scenario: Scenario) -> list[Point]:
    """Every point that can be, each combination of levels checked as a scenario of its own; see `planned`."""
    return planned(scenario)[0]


def planned(scenario: Scenario) -> tuple[list[Point], list[Impossible]]:
    """The points of a study, and the combinations of its factors that cannot be, with the reason.

    Raises ScenarioError when a combination is not legal, and UnsupportedError when the simulator cannot run
    it.
    """
    refuse_others(scenario)
    return possible(scenario, resolve)


def refuse_others(scenario: Scenario) -> None:
    """Raises InputError or UnsupportedError for what is no study of runs."""
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    if scenario.search is not None or scenario.campaign is not None:
        what = "search" if scenario.search is not None else "campaign"
        hint = f"start it with 'weir {'search' if what == 'search' else 'bulk'}'"
        hint += "" if what == "search" else "; leave 'study' out to run it once"
        message = f"a study of this is not run on the simulator; {hint}"
        raise UnsupportedError([scenario.problem(what, message)])


def plan_of(document: Mapping[str, object]) -> RunsPlan:
    """The plan that a document describes."""
    told = typed(_Document, document)
    return RunsPlan(loads(told["scenario"], file="the plan"), told["seed"], told["replicates"])


def plan_found(document: Mapping[str, object]) -> RunsPlan | None:
    """The plan that a document of a store describes; None where it is none of runs, or of a version that knew
    other studies."""
    if document.get("kind") == "runs":
        with suppress(WeirlabError):
            return plan_of(document)
    return None


class _Document(TypedDict):
    scenario: str
    seed: int
    replicates: int


_STRIDE = 1_000_000
"""Seeds from one generation of an optimisation to the next."""
_HELD_OUT = 1_000_000_000
"""Where seeds of a verdict begin, whatever came before: a contest that is extended repeats none."""


@dataclass(frozen=True)
class Stage:
    """A part of a contest."""

    name: str
    duration: Span | None
    """Of its runs; None: that of the scenario."""
    first_seed: int
    """Beyond that of the study."""
    most: int
    """Replicates that a point may have in it."""


class RunsPlan:
    """The points and replicates of a study of runs."""

    def __init__(self, scenario: Scenario, seed: int, replicates: int) -> None:
        if scenario.study is None:
            raise InputError(f"{scenario.name}: has no 'study' section")
        refuse_unlisted(scenario.study, replicates)
        self.scenario = scenario
        self.least = replicates
        """Replicates of every point."""
        until = scenario.study.until
        if until is not None and replicates < LEAST_REPLICATES:
            raise InputError(
                f"at least {LEAST_REPLICATES} replicates with 'study.until' (got {replicates}): intervals of "
                "fewer are too uncertain to end by"
            )
        self.replicates = replicates if until is None else max(until.most, replicates)
        self.section = scenario.study
        """The section `study` of the scenario."""
        self.first_seed = seed
        """Of the first replicate, but for the stages of a contest."""
        self.given: dict[int, dict[str, str]] = {}
        """Levels of points that are chosen while the study runs, as far as is known here."""
        self.stages: tuple[Stage, ...] = ()
        """Of a contest, the last of which is the verdict."""
        self._base = scenario.assign({"study": None})
        self.combined = list(self.section.combinations())
        """Place among all, names and levels of each combination of the factors."""
        self._checked: dict[int, Scenario] = {}
        """Scenarios of points that `check` has looked at, until they are asked for."""
        optimise = self.section.design if isinstance(self.section.design, Optimise) else None
        if optimise is not None:
            self.rows = optimise.generations * optimise.size + optimise.finalists
        else:
            self.rows = len(self._design(0)) if self.combined else 0
        """Points of each combination."""
        count = len(self.combined)
        self.base_points = count * self.rows
        """Points of each stage."""
        # The first point of each combination, then the second of each, and so on: what an interrupted study
        # leaves then covers all combinations.
        order = np.arange(count * self.rows).reshape(count, self.rows).T.ravel()
        if self.section.where and optimise is None:
            order = order[[self._is_in(int(number)) for number in order]]
        if optimise is not None:
            most = max(optimise.most or 0, replicates)
            starts = [_STRIDE * each for each in range(optimise.generations)]
            self.stages = (
                *(Stage(str(each + 1), None, start, most) for each, start in enumerate(starts)),
                Stage("verdict", None, _HELD_OUT, optimise.verdict),
            )
        elif self.section.halving is not None:
            self.stages = self._halved(self.section.halving, order)
            order = np.concatenate([order + each * self.base_points for each in range(len(self.stages))])
        self.order = order
        self.replicates = max([self.replicates, *(stage.most for stage in self.stages)])
        self.seeds = replicate_seeds(seed, self.replicates)

    def _halved(self, halving: Halving, order: np.ndarray) -> tuple[Stage, ...]:
        """The stages of runs of one duration, and the verdict."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for number in map(int, order):
            names = self.factors(number)
            groups.setdefault(tuple(names[factor] for factor in halving.apart), []).append(number)
        self.groups = groups
        whole = self.scenario.run.duration
        longest = max(map(len, groups.values()), default=0)
        found: dict[Span | None, Stage] = {}
        for rung in halving.rungs(longest, self.least, whole):
            name = "selection" if halving.duration is None else str(rung.duration or whole)
            found[rung.duration] = Stage(name, rung.duration, 0, rung.replicates)
        return *found.values(), Stage("verdict", None, _HELD_OUT, halving.verdict)

    def stage(self, number: int) -> int | None:
        """The place of a point's stage in `stages`; None without a contest."""
        if isinstance(design := self.section.design, Optimise):
            return min(number % self.rows // design.size, design.generations)
        return number // self.base_points if self.stages else None

    def at_stage(self, number: int, stage: int) -> int:
        """The number of the same point of halving at another stage."""
        return number % self.base_points + stage * self.base_points

    def chosen(self, combination: int, place: int) -> int:
        """The number of a point of an optimisation, by the place of a combination, and its own."""
        return combination * self.rows + place

    def combinations(self) -> list[tuple[dict[str, str], dict[str, str]]]:
        """Of each combination of the factors the names of its levels, and what conditions may speak of."""
        return [(names, self.section.known(names, levels)) for _, names, levels in self.combined]

    def document(self) -> dict[str, object]:
        """See `weirlab.execution.Plan`."""
        return {
            "kind": "runs",
            "name": self.scenario.name,
            "scenario": self.scenario.as_written(movable=True),
            "seed": self.first_seed,
            "replicates": self.least,
        }

    def _is_in(self, number: int) -> bool:
        """Whether the conditions of the study leave a point in."""
        combination, row = divmod(number, self.rows)
        _, names, levels = self.combined[combination]
        return self.section.has_row(self.section.known(names, levels), self._design(combination)[row])

    def lists_impossible(self) -> bool:
        """See `weirlab.execution.Plan`."""
        return self.section.impossible == "list"

    def levels(self, number: int) -> dict[str, str]:
        """The levels of a point: their names by factor, and the values of a design by parameter."""
        stage = self.stage(number)
        name = {} if stage is None else {"stage": self.stages[stage].name}
        return {**name, **self.factors(number), **self._row(number)}

    def _row(self, number: int) -> dict[str, str]:
        """What the design says of a point."""
        if isinstance(self.section.design, Optimise):
            return self.given[number]
        combination, row = divmod(number % self.base_points, self.rows)
        return self._design(combination)[row]

    def factors(self, number: int) -> dict[str, str]:
        """The levels of its factors alone."""
        return self.combined[number % self.base_points // self.rows][1]

    def learn(self, rows: pl.DataFrame) -> None:
        """Take the levels of points that were chosen from their rows (columns `point` and `document`)."""
        if isinstance(self.section.design, Optimise):
            known = rows.select("point", "document").drop_nulls().unique("point", maintain_order=True)
            for point, document in known.iter_rows():
                self.given.setdefault(point, json.loads(document))

    def given_point(self, number: int, given: Mapping[str, str]) -> _RunsPoint:
        """See `weirlab.execution.Growing`."""
        self.given[number] = dict(given)
        return self.point(number)

    def point(self, number: int) -> _RunsPoint:
        """See `weirlab.execution.Plan`."""
        if (checked := self._checked.pop(number, None)) is not None:
            return _RunsPoint(number, checked, self.seeds)
        combination = number % self.base_points // self.rows
        base = self._at(combination) if self.rows > 1 else None
        design, row = self.section.design, self._row(number)
        changes: dict[str, object] = design.changes(row) if isinstance(design, Optimise) else dict(row)
        if base is None:
            base, changes = self._base, self._changes(combination) | changes
        seeds = self.seeds
        if (place := self.stage(number)) is not None:
            stage = self.stages[place]
            seeds = replicate_seeds((self.first_seed + stage.first_seed) % 2**64, stage.most)
            if stage.duration is not None:
                changes["run.duration"] = str(stage.duration)
        return _RunsPoint(number, base.assign(changes) if changes else base, seeds)

    def _changes(self, combination: int) -> dict[str, object]:
        levels: Sequence[Level] = self.combined[combination][2]
        return {path: value for level in levels for path, value in level.assignments.items()}

    @functools.lru_cache(256)  # noqa: B019 (it lives as long as one plan)
    def _at(self, combination: int) -> Scenario | None:
        """The scenario at a combination of factors, from which the points of its design differ in little;
        None where it cannot be without them."""
        changes = self._changes(combination)
        if not changes:
            return self._base
        with suppress(ScenarioError):
            return self._base.assign(changes)
        return None

    def check(self) -> None:
        """Look at the combinations before anything runs. Raises ScenarioError or UnsupportedError with every
        problem, each with its levels."""
        refuse_others(self.scenario)
        if len(self.combined) <= _CHECKED:
            points, _ = possible(self.scenario, resolve)
            if not self.stages:
                self._checked = {point.number: point.base for point in points if not point.changes}
            return
        _, places = np.unique(self.order[: self.base_points] // self.rows, return_index=True)
        for place in places[np.linspace(0, len(places) - 1, _CHECKED).astype(int)]:
            try:
                resolve(self.point(int(self.order[place])).scenario)
            except ScenarioError:
                if not self.lists_impossible():
                    raise

    @functools.lru_cache(4096)  # noqa: B019 (it lives as long as one plan)
    def _design(self, combination: int) -> list[dict[str, str]]:
        return list(design_levels(self.section, self.combined[combination][0]))


class _RunsPoint:
    """A point that is about to be executed."""

    def __init__(self, number: int, scenario: Scenario, seeds: Sequence[int]) -> None:
        self.scenario = scenario
        self._number = number
        self._seeds = seeds
        self._key = address_of(scenario)

    def key(self, replicate: int) -> tuple[str, int]:
        """See `weirlab.execution.Point`."""
        return self._key, self._seeds[replicate]

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:
        """See `weirlab.execution.Point`."""
        seeds = [self._seeds[replicate] for replicate in replicates]
        sums = not asks_flows(self.scenario)
        records = simulate(self.scenario, seeds, threads=1, progress=watch, sums=sums)
        counts = frame_sums(records)
        found: dict[int, list[dict[str, object]]] = {place: [] for place in range(len(seeds))}
        values = measured(records, self.scenario)
        for measure, replicate, value, unit in values.iter_rows():
            found[replicate].append({"measure": measure, "value": value, "unit": unit})
        return [
            Row(
                point=self._number,
                replicate=replicate,
                seed=seeds[place],
                counts={name: counts[place][name] for name in COUNTS},
                measures=found[place],
            )
            for place, replicate in enumerate(replicates)
        ]


def address_of(scenario: Scenario) -> str:
    """The address of what runs of a scenario find: a digest of the spec that the simulator takes, and of what
    the measures ask of the scenario. Names and descriptions are no part of it. Raises UnsupportedError and
    ScenarioError."""
    resolved = resolve(scenario, sums=not asks_flows(scenario))
    return digest("run", resolved.spec_json, _asked(scenario))


@follows_from("hotspots", "measure")
def _asked(scenario: Scenario) -> str:
    """What measures are taken, and what they ask of a scenario that its spec does not have."""
    asked = scenario.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"hotspots", "measure"}
    )
    return json.dumps(asked, sort_keys=True)
