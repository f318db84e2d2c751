"""Studies of older versions, whose finished points are lines of `points.jsonl`. They are read, and not
continued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired

import polars as pl
from typing_extensions import TypedDict

from weirlab.documents import section, typed
from weirlab.journal import JournalKind, read_journal
from weirlab.measures.rows import FRAMES
from weirlab.results import read_json
from weirlab.scenario import Scenario
from weirlab.scenario.plan.combinations import Impossible, level_names

if TYPE_CHECKING:
    from weirlab.studies.contests import Finalist, Kept, Standing
    from weirlab.studies.sequential import Reached

_LOG = "points.jsonl"
IMPOSSIBLE = "impossible.json"


def _filled(about: Mapping[str, object]) -> dict[str, object]:
    """What must agree with the files next to it, as this version has it."""
    return {**about, "scenario": Scenario(**section(about, "scenario")).dump()}


_KIND = JournalKind("weirlab_points", 1, "log of points", "study", _filled)


@dataclass(frozen=True)
class _Measure:
    measure: str
    replicate: int
    value: float | None
    unit: str


@dataclass(frozen=True)
class _Outcome:
    """What is kept of one point."""

    point: int
    levels: Mapping[str, str]
    runs: Sequence[Mapping[str, int]]
    measures: Sequence[_Measure]


def is_one(directory: Path) -> bool:
    """Whether a directory holds such a study."""
    return (directory / _LOG).exists()


class Decided(TypedDict, total=False):
    """The fields of a `Study` that follow from how its replicates were asked for."""

    reached: tuple[Reached, ...]
    standings: tuple[Standing, ...]
    finalists: tuple[Finalist, ...]
    limits: tuple[Kept, ...]


class Found(Decided):
    """The fields of a `Study` that its results say."""

    planned: int
    points: pl.DataFrame
    runs: pl.DataFrame
    measures: pl.DataFrame
    impossible: tuple[Impossible, ...]
    failures: NotRequired[pl.DataFrame]
    kept: NotRequired[int]


class _Listed(TypedDict):
    combinations: tuple[Impossible, ...]


def impossible_in(directory: Path) -> tuple[Impossible, ...]:
    """Combinations that a study lists as impossible."""
    path = directory / IMPOSSIBLE
    return typed(_Listed, read_json(path))["combinations"] if path.exists() else ()


def read(directory: Path, scenario: Scenario, seeds: Sequence[int]) -> Found:
    """The fields of a `Study` that the log knows. Raises InputError where it is damaged, or is that of other
    files."""
    assert scenario.study is not None
    names = level_names(scenario)
    identity = {"scenario": scenario.dump(), "seed": seeds[0], "replicates": len(seeds)}
    outcomes = read_journal(directory / _LOG, _KIND, _Reader(names, seeds), identity)
    impossible = impossible_in(directory)
    many = sum(1 for _ in scenario.study.combinations())
    tables = _tables(scenario, outcomes)
    return {
        "planned": len(names) - len(impossible) * (len(names) // many),
        "impossible": impossible,
        "points": tables["points"],
        "runs": tables["runs"],
        "measures": tables["measures"],
    }


class _Reader:
    """Reads the entries of a log, each of which must be another point of the study."""

    def __init__(self, levels: Sequence[Mapping[str, str]], seeds: Sequence[int]) -> None:
        self._levels = levels
        self._seeds = list(seeds)
        self._seen: set[int] = set()

    def __call__(self, entry: Mapping[str, object]) -> _Outcome:
        """Raises ValueError, TypeError or KeyError when it is none."""
        outcome = typed(_Outcome, entry)
        number = outcome.point
        if not 0 <= number < len(self._levels):
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
            if any(count < 0 for count in counts):
                raise ValueError(f"point {number}: a count that is none, in {row}")
        for measure in outcome.measures:
            if not 0 <= measure.replicate < len(self._seeds):
                raise ValueError(f"measure {measure.measure} of replicate {measure.replicate}")
        self._seen.add(number)
        return outcome


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
            [{"point": outcome.point, **asdict(row)} for outcome in ordered for row in outcome.measures],
            schema=measure_schema,
        ),
    }
