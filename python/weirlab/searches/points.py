"""A study of searches: the search of a scenario at every combination of the levels of its factors.

Every point and replicate is a search of its own, in a directory of its own with its own trial log. So each
can be read, reported and resumed alone, and a study that was interrupted goes on where it stopped. Replicate
i has the seed ``run.seed + i``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weirlab.errors import InputError, ScenarioError
from weirlab.runs import replicate_seeds
from weirlab.scenario import Scenario
from weirlab.scenario.plan.combinations import combinations
from weirlab.searches.base import Ending, FoundRates, GoalResult
from weirlab.searches.build import build

OVERHEAD_BYTES = 20
"""Preamble, start delimiter and gap of an Ethernet frame. Source: IEEE 802.3, clause 4.4.2."""


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
        ScenarioError: A factor is called like a column of the tables, or a combination of levels is not
            legal; all of them, each with its levels.
    """
    if scenario.study is None or scenario.search is None:
        raise InputError(f"{scenario.name}: a study of searches needs the sections 'study' and 'search'")
    _refuse_names_of_columns(scenario, scenario.study.factors)
    seeds = replicate_seeds(scenario.run.seed, scenario.study.replicates)
    return [
        PointSearch(point.number, point.levels, replicate, point.scenario.assign({"run.seed": str(seed)}))
        for point in combinations(scenario, build)
        for replicate, seed in enumerate(seeds)
    ]


def run_point_searches(
    searches: Sequence[PointSearch],
    directory: Path,
    run: Callable[[PointSearch, Path], FoundRates],
) -> list[tuple[PointSearch, FoundRates]]:
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


def rates_table(results: Sequence[tuple[PointSearch, FoundRates]]) -> pl.DataFrame:
    """One row per search and goal: ``point replicate``, a column per factor, ``goal``, the bounds
    ``lower_fps`` and ``upper_fps`` as they were offered, what was intended (``lower_intended_fps
    upper_intended_fps``), and the ``conditional_throughput_fps`` at the lower one [frames/s, null
    where there is none], ``loss_ratio`` at the lower one,
    ``frame_size_bytes`` (of a mix the mean) and ``directions``, the lower bound for each direction
    (``lower_per_direction_fps``) and in bits with and without what Ethernet adds to a frame (``l1_bps
    l2_bps``), ``regular``, why not (``irregular``), ``trials`` and ``time_s`` of the whole search; and as
    evidence, null where the algorithm gives none: ``lower_trials upper_trials`` made at the bounds,
    ``full_trials`` at the lower one and how many lost too much (``exceeding_trials``), the chance that one
    more does (``exceed_estimate``) and its 95 % interval (``exceed_low exceed_high``), these null after a
    single trial, ``stationarity`` and ``stationarity_note`` (why it was not tested, or for which other goal),
    and the time until the goal was reached (``reached_s``)."""
    factors = list(results[0][0].levels) if results else []
    rows = [
        {
            "point": each.point,
            "replicate": each.replicate,
            **each.levels,
            "goal": goal.goal.name,
            "lower_fps": goal.lower.offered_fps if goal.lower else None,
            "upper_fps": goal.upper.offered_fps if goal.upper else None,
            "lower_intended_fps": goal.lower.load_fps if goal.lower else None,
            "upper_intended_fps": goal.upper.load_fps if goal.upper else None,
            "conditional_throughput_fps": goal.conditional_throughput_fps,
            "loss_ratio": goal.lower.trial.loss_ratio if goal.lower else None,
            **_offered(goal),
            "regular": goal.regular,
            "irregular": goal.remark,
            "trials": len(result.trials),
            "time_s": result.time_s,
            **_evidence(goal),
        }
        for each, result in results
        for goal in result.goals
    ]
    return pl.DataFrame(rows, schema={**_PLACE, **dict.fromkeys(factors, pl.String), **_FOUND})


def directions_table(results: Sequence[tuple[PointSearch, FoundRates]]) -> pl.DataFrame:
    """One row per search, goal, bound and direction, where the testbed distinguishes directions: ``point
    replicate``, a column per factor, ``goal``, ``bound`` (``lower`` or ``upper``), ``trial`` (the index of
    the one that stands for the bound), ``direction`` (its name), ``sent_frames``, ``received_frames`` and
    ``loss_ratio``, null where nothing was sent."""
    factors = list(results[0][0].levels) if results else []
    rows = [
        {
            "point": each.point,
            "replicate": each.replicate,
            **each.levels,
            "goal": goal.goal.name,
            "bound": side,
            "trial": bound.trial.spec.index,
            "direction": direction.name,
            "sent_frames": direction.sent_frames,
            "received_frames": direction.received_frames,
            "loss_ratio": direction.loss_ratio,
        }
        for each, result in results
        for goal in result.goals
        for side, bound in (("lower", goal.lower), ("upper", goal.upper))
        if bound is not None
        for direction in bound.trial.per_direction
    ]
    return pl.DataFrame(rows, schema={**_PLACE, **dict.fromkeys(factors, pl.String), **_COUNTED})


_PLACE = {"point": pl.UInt32, "replicate": pl.UInt32}
_FOUND = {
    "goal": pl.String,
    "lower_fps": pl.Float64,
    "upper_fps": pl.Float64,
    "lower_intended_fps": pl.Float64,
    "upper_intended_fps": pl.Float64,
    "conditional_throughput_fps": pl.Float64,
    "loss_ratio": pl.Float64,
    "frame_size_bytes": pl.UInt32,
    "directions": pl.UInt32,
    "lower_per_direction_fps": pl.Float64,
    "l1_bps": pl.Float64,
    "l2_bps": pl.Float64,
    "regular": pl.Boolean,
    "irregular": pl.String,
    "trials": pl.UInt32,
    "time_s": pl.Float64,
    "lower_trials": pl.UInt32,
    "upper_trials": pl.UInt32,
    "full_trials": pl.UInt32,
    "exceeding_trials": pl.UInt32,
    "exceed_estimate": pl.Float64,
    "exceed_low": pl.Float64,
    "exceed_high": pl.Float64,
    "stationarity": pl.String,
    "stationarity_note": pl.String,
    "reached_s": pl.Float64,
}
_COUNTED = {
    "goal": pl.String,
    "bound": pl.String,
    "trial": pl.UInt32,
    "direction": pl.String,
    "sent_frames": pl.UInt64,
    "received_frames": pl.UInt64,
    "loss_ratio": pl.Float64,
}


def _refuse_names_of_columns(scenario: Scenario, factors: Iterable[str]) -> None:
    """Raise ScenarioError for factors whose column would take the place of another one in the tables."""
    taken = [name for name in factors if name in {**_PLACE, **_FOUND, **_COUNTED}]
    if taken:
        raise ScenarioError(
            [
                scenario.problem_at(
                    ("study", "factors", name),
                    f"the tables of a study of searches have a column {name!r} already; give the factor "
                    f"another name",
                )
                for name in taken
            ]
        )


def _offered(goal: GoalResult) -> dict[str, float | None]:
    """What the lower bound is in each direction and in bits."""
    if goal.lower is None:
        return {}
    spec, load_fps = goal.lower.trial.spec, goal.lower.offered_fps
    return {
        "frame_size_bytes": spec.frame_size_bytes,
        "directions": spec.directions,
        "lower_per_direction_fps": load_fps / spec.directions,
        "l1_bps": load_fps * 8 * (spec.frame_size_bytes + OVERHEAD_BYTES),
        "l2_bps": load_fps * 8 * spec.frame_size_bytes,
    }


def _evidence(goal: GoalResult) -> dict[str, float | str | None]:
    """What speaks for the bounds, where the algorithm classifies loads."""
    if (found := goal.evidence) is None:
        return {}
    low, high = found.exceed_interval or (None, None)
    return {
        "lower_trials": len(found.lower_trials),
        "upper_trials": len(found.upper_trials),
        "full_trials": found.full_trials,
        "exceeding_trials": found.exceeding_trials,
        "exceed_estimate": found.exceed_estimate,
        "exceed_low": low,
        "exceed_high": high,
        "stationarity": str(found.stationarity),
        "stationarity_note": found.stationarity_note,
        "reached_s": found.time_s,
    }
