"""The points of a study: a scenario at every combination of the levels of its factors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weirlab.errors import InputError, Problem, ScenarioError, UnsupportedError
from weirlab.scenario.model import Scenario

__all__ = ["Point", "combinations", "level_names"]


@dataclass(frozen=True)
class Point:
    """One combination of levels."""

    number: int
    """From 0; the last factor varies fastest."""
    levels: Mapping[str, str]
    """Name of the level by factor."""
    scenario: Scenario


def combinations(scenario: Scenario, check: Callable[[Scenario], object]) -> list[Point]:
    """Every combination of levels, each of which ``check`` may refuse with a ScenarioError or
    UnsupportedError.

    Raises ScenarioError with all problems of all combinations, each with its levels.
    """
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    base = scenario.assign({"study": None})
    factors = scenario.study.factors
    points: list[Point] = []
    problems: list[Problem] = []
    for number, levels in enumerate(itertools.product(*factors.values())):
        names = {factor: level.name for factor, level in zip(factors, levels, strict=True)}
        assignments = {path: value for level in levels for path, value in level.assignments.items()}
        try:
            point = Point(number, names, base.assign(assignments) if assignments else base)
            check(point.scenario)
            points.append(point)
        except (ScenarioError, UnsupportedError) as error:
            where = ", ".join(f"{factor} {name}" for factor, name in names.items())
            problems += [
                Problem(f"at {where}: {each.message}", each.path, each.file, each.line, each.column)
                for each in error.problems
            ]
    if problems:
        raise ScenarioError(problems)
    return points


def level_names(scenario: Scenario) -> list[dict[str, str]]:
    """The levels of every point by factor, in the order of ``combinations``. Nothing is checked."""
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    factors = scenario.study.factors
    products = itertools.product(*factors.values())
    return [{factor: level.name for factor, level in zip(factors, each, strict=True)} for each in products]
