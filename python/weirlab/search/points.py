"""A study of searches: the search of a scenario at every combination of the levels of its factors.

Every point and replicate is a search of its own, in a directory of its own with its own trial log. So each
can be read, reported and resumed alone, and a study that was interrupted goes on where it stopped. Replicate
i has the seed ``run.seed + i``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weirlab.errors import InputError
from weirlab.runs import replicate_seeds
from weirlab.scenario import Scenario
from weirlab.scenario.combinations import combinations
from weirlab.search.base import Ending, SearchResult
from weirlab.search.build import build

__all__ = ["PointSearch", "point_searches", "rates_table", "run_point_searches"]


@dataclass(frozen=True)
class PointSearch:
    """One search of a study."""

    point: int
    levels: Mapping[str, str]
    """Name of the level by factor."""
    replicate: int
    scenario: Scenario
    """The scenario at this point, with the seed of this replicate and without a study."""

    @property
    def name(self) -> str:
        """What its directory is called, such as ``point-03`` or ``point-03-replicate-1``."""
        return f"point-{self.point:02d}" + (f"-replicate-{self.replicate}" if self.replicate else "")

    @property
    def where(self) -> str:
        """The levels in words."""
        levels = ", ".join(f"{factor} {level}" for factor, level in self.levels.items())
        return levels + (f", replicate {self.replicate}" if self.replicate else "")


def point_searches(scenario: Scenario) -> list[PointSearch]:
    """All searches of the study of ``scenario``, in their order: point by point, all replicates of each.

    Raises:
        ScenarioError: A combination of levels is not legal; all of them, each with its levels.
    """
    if scenario.study is None or scenario.search is None:
        raise InputError(f"{scenario.name}: a study of searches needs the sections 'study' and 'search'")
    seeds = replicate_seeds(scenario.run.seed, scenario.study.replicates)
    return [
        PointSearch(point.number, point.levels, replicate, point.scenario.assign({"run.seed": str(seed)}))
        for point in combinations(scenario, build)
        for replicate, seed in enumerate(seeds)
    ]


def run_point_searches(
    searches: Sequence[PointSearch],
    directory: Path,
    run: Callable[[PointSearch, Path], SearchResult],
) -> list[tuple[PointSearch, SearchResult]]:
    """Run one search after the other, each in its directory under ``directory``; those of an earlier sitting
    are resumed from their logs, so that no trial is repeated.

    A search that is interrupted ends the study: what it found so far is the last result. One whose testbed
    fails or whose time is up is kept as it is, and the next begins.
    """
    results = []
    for each in searches:
        result = run(each, directory / each.name)
        results.append((each, result))
        if result.ending is Ending.INTERRUPTED:
            break
    return results


def rates_table(results: Sequence[tuple[PointSearch, SearchResult]]) -> pl.DataFrame:
    """One row per search and goal: ``point replicate``, a column per factor, ``goal``, the bounds
    ``lower_fps`` and ``upper_fps`` [frames/s, null where there is none], ``loss_ratio`` at the lower one,
    ``regular``, why not (``irregular``), ``trials`` and ``time_s`` of the whole search."""
    factors = list(results[0][0].levels) if results else []
    rows = [
        {
            "point": each.point,
            "replicate": each.replicate,
            **each.levels,
            "goal": goal.goal.name,
            "lower_fps": goal.lower.load_fps if goal.lower else None,
            "upper_fps": goal.upper.load_fps if goal.upper else None,
            "loss_ratio": goal.lower.trial.loss_ratio if goal.lower else None,
            "regular": goal.regular,
            "irregular": goal.remark,
            "trials": len(result.trials),
            "time_s": result.time_s,
        }
        for each, result in results
        for goal in result.goals
    ]
    return pl.DataFrame(
        rows,
        schema={
            "point": pl.UInt32,
            "replicate": pl.UInt32,
            **dict.fromkeys(factors, pl.String),
            "goal": pl.String,
            "lower_fps": pl.Float64,
            "upper_fps": pl.Float64,
            "loss_ratio": pl.Float64,
            "regular": pl.Boolean,
            "irregular": pl.String,
            "trials": pl.UInt32,
            "time_s": pl.Float64,
        },
    )
