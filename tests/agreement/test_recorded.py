"""What ready-made scenarios counted when they were recorded, they count today."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agreement.recorded import FILE, hashes, scenario_of

RUNS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def test_many_runs_are_recorded() -> None:
    assert len(RUNS) >= 40
    tables = {table for run in RUNS for table in run["tables"]}
    assert tables >= {
        "flows",
        "ports",
        "drops",
        "intervals",
        "limiters",
        "memories",
        "bursts",
        "control_frames",
        "marks",
    }


@pytest.mark.parametrize("run", RUNS, ids=[f"{i}-{run['scenario']}" for i, run in enumerate(RUNS)])
def test_a_run_counts_what_it_counted(run: dict[str, Any]) -> None:
    today = hashes(scenario_of(run), run["seed"])
    differ = [
        f"{table}.{column}"
        for table, columns in run["tables"].items()
        for column, value in columns.items()
        if today.get(table, {}).get(column) != value
    ]
    assert not differ, "record anew (tests/agreement/recorded.py) if these results are meant to move"
