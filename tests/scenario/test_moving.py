"""Scenarios that name other files: their copies in results mean the same files, wherever they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from weirlab.runs import Run, run
from weirlab.scenario import Scenario, load
from weirlab.scenario.file.moving import movable
from weirlab.studies.plan import RunsPlan, plan_of

FILES = {
    "flows.csv": "start_ps,from,to,bytes\n0,host-0,host-1,10000\n",
    "job.goal": "num_ranks 2\nrank 0 {\na: send 10b to 1\n}\nrank 1 {\na: recv 10b from 0\n}\n",
    "sizes.csv": "bytes,share\n1000,0.5\n2000,1\n",
    "weights.csv": "from,host-0,host-1\nhost-0,0,1\nhost-1,1,0\n",
}
TABLE = {"source": {"kind": "flow-table", "file": "flows.csv"}}
MESSAGES = {"kind": "messages", "every": "100 us", "sizes": {"kind": "fixed", "size": "1 kB"}}
ENTRIES: list[tuple[dict[str, Any], str]] = [
    (TABLE, "flows.csv"),
    ({"from": "host-*", "source": {"kind": "goal", "file": "job.goal"}}, "job.goal"),
    (
        {
            "from": "host-0",
            "to": "host-1",
            "source": {**MESSAGES, "sizes": {"kind": "table", "file": "sizes.csv"}},
        },
        "sizes.csv",
    ),
    ({"source": MESSAGES, "pattern": {"kind": "matrix", "file": "weights.csv"}}, "weights.csv"),
]
LINK = {"rate": "10 Gbit/s", "delay": "1 us"}


def written(directory: Path, entry: dict[str, Any], **sections: Any) -> Scenario:
    """A scenario with this entry of traffic, in a directory that has the files."""
    for name, text in FILES.items():
        (directory / name).write_text(text)
    plain = {
        "weirlab": 1,
        "name": "moving",
        "network": {"kind": "star", "hosts": 2, "link": LINK},
        "traffic": {"all": entry},
        "run": {"duration": "1 ms"},
        **sections,
    }
    (directory / "moving.yaml").write_text(yaml.safe_dump(plain))
    return load(directory / "moving.yaml")


@pytest.mark.parametrize(("entry", "file"), ENTRIES)
def test_every_field_that_names_a_file_names_it_in_full_in_a_copy(tmp_path, entry, file):
    scenario = written(tmp_path, entry)
    full = str(tmp_path / file)
    copies = (movable(scenario).to_yaml(), scenario.to_yaml(movable=True), scenario.as_written(movable=True))
    for copy in copies:
        assert full in copy
    assert full not in scenario.to_yaml()


@pytest.mark.parametrize(("entry", "file"), ENTRIES)
def test_a_run_is_read_wherever_its_result_lies(tmp_path, monkeypatch, entry, file):
    (tmp_path / "here").mkdir()
    run(written(tmp_path / "here", entry)).save(tmp_path / "result")
    monkeypatch.chdir("/")
    again = Run.load(tmp_path / "result").scenario
    assert again.resolve().spec_json == load(tmp_path / "here" / "moving.yaml").resolve().spec_json


def test_a_study_is_planned_again_from_what_it_wrote_down(tmp_path, monkeypatch):
    study = {"replicates": 1, "factors": {"delay": {"long": {"network.link.delay": "2 us"}}}}
    plan = RunsPlan(written(tmp_path, TABLE, study=study), seed=1, replicates=1)
    monkeypatch.chdir("/")
    assert plan_of(plan.document()).document() == plan.document()
