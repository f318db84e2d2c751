"""The points of a study: a scenario at every combination of the levels of its factors, and at the points of a
design for each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weirlab.errors import InputError, Problem, ScenarioError, UnsupportedError
from weirlab.scenario.model import Scenario
from weirlab.scenario.plan import Study
from weirlab.scenario.plan.design import LatinHypercube, Morris, Optimise, Sobol, design_rows


@dataclass(frozen=True)
class Point:
    """One combination of levels."""

    number: int
    """From 0; the last factor varies fastest, and the points of a design faster still."""
    levels: Mapping[str, str]
    """Name of the level by factor, and value by parameter of the design."""
    base: Scenario
    """The scenario at the levels of the factors."""
    changes: Mapping[str, object] = field(default_factory=dict)
    """What the design changes in it."""

    @property
    def scenario(self) -> Scenario:
        """The scenario of the point; with a design it is made anew each time. Raises ScenarioError."""
        return self.base.assign(self.changes) if self.changes else self.base


@dataclass(frozen=True)
class Impossible:
    """A combination of the factors that cannot be."""

    levels: Mapping[str, str]
    reason: str


def combinations(scenario: Scenario, check: Callable[[Scenario], object]) -> list[Point]:
    """Every point, each combination of which ``check`` may refuse with a ScenarioError or UnsupportedError.

    Raises ScenarioError with all problems of all combinations, each with its levels; those that the study
    lists as impossible are left out.
    """
    return possible(scenario, check)[0]


def possible(scenario: Scenario, check: Callable[[Scenario], object]) -> tuple[list[Point], list[Impossible]]:
    """The points, and the combinations that cannot be; see ``combinations``. Of a design, the first point of
    each combination is checked."""
    study = _study(scenario)
    refuse_unlisted(study, study.replicates)
    base = scenario.assign({"study": None})
    points: list[Point] = []
    left_out: list[Impossible] = []
    problems: list[Problem] = []
    number = 0
    for place, names, levels in study.combinations():
        assignments = {path: value for level in levels for path, value in level.assignments.items()}
        rows = list(design_levels(study, place))
        known = study.known(names, levels)
        chosen = isinstance(study.design, Optimise)  # under the conditions
        kept = [(number + i, row) for i, row in enumerate(rows) if chosen or study.has_row(known, row)]
        number += len(rows)
        if not kept:
            continue
        try:
            at = base.assign(assignments) if assignments else base
            design = study.design
            made = [
                Point(each, names | row, at, design.changes(row) if isinstance(design, Optimise) else row)
                for each, row in kept
            ]
            check(made[0].scenario)
            points += made
        except ScenarioError as error:
            if study.impossible == "list":
                left_out.append(Impossible(names, "; ".join(each.message for each in error.problems)))
            else:
                problems += _at_levels(names, error)
        except UnsupportedError as error:
            problems += _at_levels(names, error)
    if problems:
        raise ScenarioError(problems)
    return points, left_out


def level_names(scenario: Scenario) -> list[dict[str, str]]:
    """The levels of every point, in the order of their numbers. Nothing is checked."""
    study = _study(scenario)
    names = []
    for place, factors, levels in study.combinations():
        known = study.known(factors, levels)
        names += [factors | row for row in design_levels(study, place) if study.has_row(known, row)]
    return names


def short_names(names: Sequence[str]) -> dict[str, str]:
    """The last part of each path, after what distinguishes it from others that end alike: `fast.rate`."""
    found = {}
    for name in names:
        parts = name.split(".")
        others = [f".{each}" for each in names if each != name]
        ends = (".".join(parts[i:]) for i in range(len(parts) - 1, -1, -1))
        end = next((end for end in ends if not any(each.endswith(f".{end}") for each in others)), name)
        first, _, rest = end.partition(".")
        found[name] = f"{first}.{rest.rsplit('.', 1)[-1]}" if rest else first
    return found if len({*found.values()}) == len(found) else {name: name for name in names}


_POINT_BYTES, _SEED_BYTES = 1000, 48
"""Of memory, rounded up, that the list of runs takes for each point, and for each replicate of all points."""
_NOTHING_BYTES = 100_000_000
"""Every machine has as much: for less it is not asked."""


def refuse_unlisted(study: Study, replicates: int) -> None:
    """Raise InputError where the mere list of the runs does not fit into memory."""
    match study.design:
        case LatinHypercube(points=points):
            rows = points
        case Morris(trajectories=trajectories, parameters=parameters):
            rows = trajectories * (len(parameters) + 1)
        case Sobol(base=base, parameters=parameters):
            rows = base * (len(parameters) + 2)
        case _:
            rows = 1
    points = math.prod(map(len, study.factors.values())) * rows
    needed = points * _POINT_BYTES + replicates * _SEED_BYTES
    if needed < _NOTHING_BYTES:
        return
    import psutil

    free = psutil.virtual_memory().available
    if needed > free:
        raise InputError(
            f"{points * replicates:,} runs ({points:,} points of {replicates:,} replicates): their list "
            f"alone takes {needed / 1e9:,.1f} GB of memory, but {free / 1e9:.1f} GB are free; ask for fewer"
        )


def design_levels(study: Study, combination: int) -> Iterator[dict[str, str]]:
    """The values of the parameters of the design, by path; without one a single point without any."""
    if study.design is None:
        yield {}
        return
    if isinstance(study.design, Optimise):  # the middle stands for what is not chosen yet
        yield study.design.levels([0.5] * len(study.design.parameters), [0] * len(study.design.choices))
        return
    parameters = study.design.parameters
    for row in design_rows(study.design, combination):
        yield {
            path: given.level(float(part))
            for (path, given), part in zip(parameters.items(), row, strict=True)
        }


def _at_levels(names: Mapping[str, str], error: ScenarioError | UnsupportedError) -> list[Problem]:
    where = ", ".join(f"{factor} {name}" for factor, name in names.items())
    return [
        Problem(f"at {where}: {each.message}", each.path, each.file, each.line, each.column)
        for each in error.problems
    ]


def _study(scenario: Scenario) -> Study:
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    return scenario.study
