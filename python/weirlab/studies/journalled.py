"""Studies of older versions, whose finished points are lines of `points.jsonl`. They are read, and not
continued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from weirlab.journal import JournalKind, read_journal
from weirlab.measures.rows import FRAMES
from weirlab.results import read_json
from weirlab.scenario import Scenario
from weirlab.scenario.plan.combinations import Impossible, level_names

_LOG = "points.jsonl"
_IMPOSSIBLE = "impossible.json"


def _filled(about: Mapping[str, Any]) -> dict[str, Any]:
    """What must agree with the files next to it, as this version has it."""
    return {**about, "scenario": Scenario(**about["scenario"]).dump()}


_KIND = JournalKind("weirlab_points", 1, "log of points", "study", _filled)


@dataclass(frozen=True)
class _Outcome:
    """What is kept of one point."""

    point: int
    levels: Mapping[str, str]
    runs: Sequence[Mapping[str, int]]
    measures: Sequence[Mapping[str, Any]]


def is_one(directory: Path) -> bool:
    """Whether a directory holds such a study."""
    return (directory / _LOG).exists()


def read(directory: Path, scenario: Scenario, seeds: Sequence[int]) -> dict[str, Any]:
    """The fields of a `Study` that the log knows. Raises InputError where it is damaged, or is that of other
    files."""
    assert scenario.study is not None
    names = level_names(scenario)
    identity = {"scenario": scenario.dump(), "seed": seeds[0], "replicates": len(seeds)}
    outcomes = read_journal(directory / _LOG, _KIND, _Reader(names, seeds), identity)
    path = directory / _IMPOSSIBLE
    listed = read_json(path)["combinations"] if path.exists() else []
    impossible = tuple(Impossible(**each) for each in listed)
    many = sum(1 for _ in scenario.study.combinations())
    return {
        "planned": len(names) - len(impossible) * (len(names) // many),
        "impossible": impossible,
        **_tables(scenario, outcomes),
    }


class _Reader:
    """Reads the entries of a log, each of which must be another point of the study."""

    def __init__(self, levels: Sequence[Mapping[str, str]], seeds: Sequence[int]) -> None:
        self._levels = levels
        self._seeds = list(seeds)
        self._seen: set[int] = set()

    def __call__(self, entry: Mapping[str, Any]) -> _Outcome:
        """Raises ValueError, TypeError or KeyError when it is none."""
        outcome = _Outcome(**entry)
        number = outcome.point
        if type(number) is not int or not 0 <= number < len(self._levels):
            raise ValueError(f"point {number!r}, but the study has points 0 to {len(self._levels) - 1}")
        if number in self._seen:
            raise ValueError(f"point {number} for the second time")
        if outcome.levels != self._levels[number]:
            raise ValueError(
                f"point {number} has the levels {dict(self._levels[number])} (got {outcome.levels})"
            )
        if [(row["replicate"], row["seed"]) for row in outcome.runs] != list(enumerate(self._seeds)):
            raise ValueError(f"point {number}: the replicates are not those of the study")
        for row in outcome.runs:
            counts = [*(row[name] for name in _COUNTS), *(row[name] for name in _BACK if name in row)]
            if any(type(count) is not int or count < 0 for count in counts):
                raise ValueError(f"point {number}: a count that is none, in {row}")
        for row in outcome.measures:
            _check_measure(row, len(self._seeds))
        self._seen.add(number)
        return outcome


def _check_measure(row: Mapping[str, Any], replicates: int) -> None:
    """Raises ValueError or KeyError when a row of measures cannot have been written."""
    name, replicate, value, unit = (row[name] for name in ("measure", "replicate", "value", "unit"))
    number = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    if not (number and isinstance(name, str) and isinstance(unit, str)):
        raise ValueError(f"not a measure: {row}")
    if type(replicate) is not int or not 0 <= replicate < replicates:
        raise ValueError(f"measure {name} of replicate {replicate!r}")


_COUNTS = ["events", *FRAMES]
_BACK = ["acknowledgement_frames", "dropped_acknowledgements"]


def _tables(scenario: Scenario, outcomes: Sequence[_Outcome]) -> dict[str, pl.DataFrame]:
    """The tables of the outcomes, by point."""
    assert scenario.study is not None
    ordered = sorted(outcomes, key=lambda outcome: outcome.point)
    design = scenario.study.design
    factors = [*scenario.study.factors, *(design.parameters if design is not None else ())]
    run_columns = ["replicate", "seed", *_COUNTS, *_BACK]
    measure_schema = {
        "point": pl.UInt32,
        "measure": pl.String,
        "replicate": pl.UInt32,
        "value": pl.Float64,
        "unit": pl.String,
    }
    return {
        "points": pl.DataFrame(
            [{"point": outcome.point, **outcome.levels} for outcome in ordered],
            schema={"point": pl.UInt32, **dict.fromkeys(factors, pl.String)},
        ),
        "runs": pl.DataFrame(
            [{"point": outcome.point, **row} for outcome in ordered for row in outcome.runs],
            schema={"point": pl.UInt32, **dict.fromkeys(run_columns, pl.UInt64)},
        ),
        "measures": pl.DataFrame(
            [{"point": outcome.point, **row} for outcome in ordered for row in outcome.measures],
            schema=measure_schema,
        ),
    }
