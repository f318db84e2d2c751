"""What drawn specs counted when they were recorded, they count today."""

from __future__ import annotations

from typing import Any

import pytest

from agreement.recorded import hashes, kinds, known_kinds, read, today

RUNS = read()
TABLES = {
    *("flows", "ports", "port_classes", "drops", "marks", "intervals", "deliveries", "flow_deliveries"),
    *("limiters", "reaction_points", "memories", "bursts", "control_frames", "control_intervals"),
    *("connections", "tcp", "resent", "probe_streams", "probe_states", "probe_trains"),
    *("bandwidth_estimates", "delays", "queue_levels", "captures"),
}


def test_every_kind_of_part_is_recorded_and_every_table() -> None:
    assert len(RUNS) == 200
    assert known_kinds() - kinds([run["spec"] for run in RUNS]) == set(), "draw specs that have them"
    assert {table for run in RUNS for table in run["tables"]} >= TABLES


@pytest.mark.parametrize("run", RUNS, ids=[f"{i}-{run['name']}" for i, run in enumerate(RUNS)])
def test_a_run_counts_what_it_counted(run: dict[str, Any]) -> None:
    counted = hashes(today(run["spec"]), run["seed"])
    differ = [
        f"{table}.{column}"
        for table, columns in run["tables"].items()
        for column, value in columns.items()
        if counted.get(table, {}).get(column) != value
    ]
    assert not differ, "record anew if these results are meant to move: see tests/agreement/recorded.py"
