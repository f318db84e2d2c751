"""A study of searches: the search of a scenario at every combination of the levels of its factors.

Every point and replicate is a search of its own, in a directory of its own with its own trial log. So each
can be read, reported and resumed alone, and a study that was interrupted goes on where it stopped. Replicate
i has the seed ``run.seed + i``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from weirlab.columns import Columns, Of, table_of
from weirlab.errors import InputError, ScenarioError
from weirlab.runs import replicate_seeds
from weirlab.scenario import Scenario
from weirlab.scenario.plan.combinations import combinations
from weirlab.searches.base import Ending, FoundRates, GoalResult
from weirlab.searches.build import build
from weirlab.testbed.base import Direction, TrialSpec

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
    return _table(
        results, _FOUND, [(each, _Rate(found, goal)) for each, found in results for goal in found.goals]
    )


def directions_table(results: Sequence[tuple[PointSearch, FoundRates]]) -> pl.DataFrame:
    """One row per search, goal, bound and direction, where the testbed distinguishes directions: ``point
    replicate``, a column per factor, ``goal``, ``bound`` (``lower`` or ``upper``), ``trial`` (the index of
    the one that stands for the bound), ``direction`` (its name), ``sent_frames``, ``received_frames`` and
    ``loss_ratio``, null where nothing was sent."""
    rows = [
        (each, _Counted(goal.goal.name, side, bound.trial.spec.index, direction))
        for each, result in results
        for goal in result.goals
        for side, bound in (("lower", goal.lower), ("upper", goal.upper))
        if bound is not None
        for direction in bound.trial.per_direction
    ]
    return _table(results, _COUNTED, rows)


def _table(
    results: Sequence[tuple[PointSearch, FoundRates]],
    columns: Columns[Of],
    rows: Sequence[tuple[PointSearch, Of]],
) -> pl.DataFrame:
    """A row for each, with where it is from."""
    factors = list(results[0][0].levels) if results else []
    places = [{"point": each.point, "replicate": each.replicate, **each.levels} for each, _ in rows]
    schema = {**_PLACE, **dict.fromkeys(factors, pl.String)}
    return pl.DataFrame(places, schema=schema).hstack(table_of(columns, [row for _, row in rows]))


class _Rate(NamedTuple):
    """What a search found for a goal."""

    result: FoundRates
    goal: GoalResult

    @property
    def spec(self) -> TrialSpec | None:
        """Of the trial at the lower bound."""
        return None if self.goal.lower is None else self.goal.lower.trial.spec

    @property
    def exceed(self) -> tuple[float | None, float | None]:
        """The interval of the chance that one more trial loses too much."""
        return (self.goal.evidence and self.goal.evidence.exceed_interval) or (None, None)

    def bps(self, extra_bytes: int) -> float | None:
        """The lower bound in bits, with so many bytes more for each frame."""
        if self.goal.lower is None:
            return None
        return self.goal.lower.offered_fps * 8 * (self.goal.lower.trial.spec.frame_size_bytes + extra_bytes)


class _Counted(NamedTuple):
    """What one direction of the trial at a bound counted."""

    goal: str
    bound: str
    trial: int
    direction: Direction


_PLACE = {"point": pl.UInt32, "replicate": pl.UInt32}
_FOUND: Columns[_Rate] = {
    "goal": (pl.String, lambda row: row.goal.goal.name),
    "lower_fps": (pl.Float64, lambda row: row.goal.lower and row.goal.lower.offered_fps),
    "upper_fps": (pl.Float64, lambda row: row.goal.upper and row.goal.upper.offered_fps),
    "lower_intended_fps": (pl.Float64, lambda row: row.goal.lower and row.goal.lower.load_fps),
    "upper_intended_fps": (pl.Float64, lambda row: row.goal.upper and row.goal.upper.load_fps),
    "conditional_throughput_fps": (pl.Float64, lambda row: row.goal.conditional_throughput_fps),
    "loss_ratio": (pl.Float64, lambda row: row.goal.lower and row.goal.lower.trial.loss_ratio),
    "frame_size_bytes": (pl.UInt32, lambda row: row.spec and row.spec.frame_size_bytes),
    "directions": (pl.UInt32, lambda row: row.spec and row.spec.directions),
    "lower_per_direction_fps": (
        pl.Float64,
        lambda row: row.goal.lower and row.goal.lower.offered_fps / row.goal.lower.trial.spec.directions,
    ),
    "l1_bps": (pl.Float64, lambda row: row.bps(OVERHEAD_BYTES)),
    "l2_bps": (pl.Float64, lambda row: row.bps(0)),
    "regular": (pl.Boolean, lambda row: row.goal.regular),
    "irregular": (pl.String, lambda row: row.goal.remark),
    "trials": (pl.UInt32, lambda row: len(row.result.trials)),
    "time_s": (pl.Float64, lambda row: row.result.time_s),
    "lower_trials": (pl.UInt32, lambda row: row.goal.evidence and len(row.goal.evidence.lower_trials)),
    "upper_trials": (pl.UInt32, lambda row: row.goal.evidence and len(row.goal.evidence.upper_trials)),
    "full_trials": (pl.UInt32, lambda row: row.goal.evidence and row.goal.evidence.full_trials),
    "exceeding_trials": (pl.UInt32, lambda row: row.goal.evidence and row.goal.evidence.exceeding_trials),
    "exceed_estimate": (pl.Float64, lambda row: row.goal.evidence and row.goal.evidence.exceed_estimate),
    "exceed_low": (pl.Float64, lambda row: row.exceed[0]),
    "exceed_high": (pl.Float64, lambda row: row.exceed[1]),
    "stationarity": (pl.String, lambda row: row.goal.evidence and str(row.goal.evidence.stationarity)),
    "stationarity_note": (pl.String, lambda row: row.goal.evidence and row.goal.evidence.stationarity_note),
    "reached_s": (pl.Float64, lambda row: row.goal.evidence and row.goal.evidence.time_s),
}
_COUNTED: Columns[_Counted] = {
    "goal": (pl.String, lambda row: row.goal),
    "bound": (pl.String, lambda row: row.bound),
    "trial": (pl.UInt32, lambda row: row.trial),
    "direction": (pl.String, lambda row: row.direction.name),
    "sent_frames": (pl.UInt64, lambda row: row.direction.sent_frames),
    "received_frames": (pl.UInt64, lambda row: row.direction.received_frames),
    "loss_ratio": (pl.Float64, lambda row: row.direction.loss_ratio),
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
