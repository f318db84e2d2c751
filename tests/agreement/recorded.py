"""Runs of the ready-made scenarios, and hashes of what they wrote down: so that a change of the engine that
is to move no count is seen to move none.

    python tests/agreement/recorded.py    # record anew where results are meant to move; CHANGELOG.md says so

Each run is a scenario with assignments and a seed. A table has one hash for each of its columns, so that new
columns and tables are no difference.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from weirlab import _core
from weirlab.errors import WeirlabError
from weirlab.scenario import Scenario, load
from weirlab.scenario.file.ready import ready_made
from weirlab.scenario.traffic import Departing

__all__ = ["FILE", "hashes", "scenario_of"]

FILE = Path(__file__).with_name("recorded.json")
NOT_COUNTED = {("runs", "events")}
"""How much the engine did is no result."""
LONGEST_S = 0.15
POINTS = 6
"""Of a study."""


def scenario_of(run: dict[str, Any]) -> Scenario:
    """The scenario of a recorded run."""
    return load(run["scenario"], run["assign"])


def hashes(scenario: Scenario, seed: int) -> dict[str, dict[str, str]]:
    """A hash of each column of each table that has rows, names of things excepted."""
    tables = _core.simulate(scenario.resolve().spec_json, [seed], 1, None)
    frames = {name: pl.DataFrame(table) for name, table in tables.items() if not name.endswith("_names")}
    return {
        name: {
            column.name: hashlib.blake2b(repr(column.to_list()).encode(), digest_size=6).hexdigest()
            for column in frame
            if (name, column.name) not in NOT_COUNTED
        }
        for name, frame in frames.items()
        if not frame.is_empty()
    }


def _candidates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Ready-made scenarios without closed loops at the ends, and some points of their studies: what TCP and
    estimators do moves with their models."""
    for name in ready_made():
        scenario = load(name)
        if not all(isinstance(entry.source, Departing) for entry in scenario.traffic.values()):
            continue
        points: list[dict[str, Any]] = [{}]
        if scenario.study is not None:
            levels = itertools.islice((found[2] for found in scenario.study.combinations()), POINTS)
            merged = [dict(item for level in point for item in level.assignments.items()) for point in levels]
            points = [point for point in merged if all(isinstance(value, str) for value in point.values())]
        yield from ((name, point) for point in points)


def _record() -> None:
    runs: list[dict[str, Any]] = []
    for name, point in _candidates():
        duration = load(name).run.duration
        for part in (1, 5, 25, 125, 625, 3125):
            if duration is None:
                break
            length = {"run.duration": f"{duration.ps // part} ps"}
            run = {"scenario": name, "assign": {**point, "measure": None, "study": None, **length}, "seed": 7}
            try:
                scenario = scenario_of(run)
                started = time.process_time()
                tables = hashes(scenario, run["seed"])
            except WeirlabError:
                continue
            if time.process_time() - started <= LONGEST_S:
                runs.append({**run, "tables": tables})
                break
    FILE.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _record()
