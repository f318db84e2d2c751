"""The ready-made scenarios: each loads, satisfies the schema, says what it shows, and runs."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from core_columns import columns
from weirlab import _core
from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario, json_schema, load, loads
from weirlab.scenario.network.path import path_plan
from weirlab.units import Span

ROOT = Path(__file__).parents[2]
READY_MADE = sorted((ROOT / "python" / "weirlab" / "scenarios").glob("*.yaml"))
OTHERS = sorted((Path(__file__).parent / "files").glob("*.yaml"))
SCHEMA = jsonschema.Draft202012Validator(json_schema())
AT_MOST = Span.from_s(0.002_048)
"""A whole number of slots of 64 B at 10 Gbit/s."""


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


def simulated(scenario: Scenario) -> dict[str, int]:
    flows = columns(_core.simulate(scenario.resolve().spec_json, [1]))["flows"]
    fates = ("sent", "delivered", "dropped", "live")
    return {fate: int(sum(flows[f"{fate}_frames"])) for fate in fates}


def test_a_directory_of_its_name_does_not_hide_a_ready_made_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("incast", "other"):
        (tmp_path / name).mkdir()
    assert load("incast") == load(next(path for path in READY_MADE if path.stem == "incast"))
    with pytest.raises(ScenarioError, match="this is a directory"):
        load("other")
    with pytest.raises(ScenarioError, match="this is a directory"):
        load(tmp_path / "incast")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", READY_MADE + OTHERS, ids=names(READY_MADE + OTHERS))
def test_a_file_satisfies_the_schema_for_editors(path: Path) -> None:
    SCHEMA.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("path", READY_MADE + OTHERS, ids=names(READY_MADE + OTHERS))
def test_a_file_loads_and_can_be_written_out_in_one(path: Path) -> None:
    scenario = load(path)
    assert loads(scenario.to_yaml()) == scenario
    SCHEMA.validate(yaml.safe_load(scenario.to_yaml()))


@pytest.mark.parametrize("path", READY_MADE, ids=names(READY_MADE))
def test_a_ready_made_file_says_what_it_shows_and_bears_its_name(path: Path) -> None:
    assert path.read_text().startswith("# ")
    assert load(path).name == path.stem


@pytest.mark.parametrize("path", READY_MADE, ids=names(READY_MADE))
def test_a_ready_made_network_runs(path: Path) -> None:
    scenario = load(path)
    if path_plan(scenario) is not None:
        assert scenario.search is None
        return
    if scenario.network is None:
        assert scenario.search is not None, "what is no network is searched"
        assert scenario.offered().min_fps < scenario.offered().max_fps
        return
    if scenario.search is not None:
        scenario = scenario.at_load(scenario.offered().min_fps, AT_MOST.s)
    elif scenario.run.duration is not None and scenario.run.duration > AT_MOST:
        scenario = scenario.assign({"run.duration": AT_MOST, "measure": None, "study": None})
    counts = simulated(scenario)
    assert counts["sent"] > 0
    assert counts["sent"] == counts["delivered"] + counts["dropped"] + counts["live"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("10 Gbit/s", "10"),
        ("kind: poisson", "kind: poison"),
        ("load: 49 %", "laod: 49 %"),
        ("limit: 150 kB", "limit: 150"),
        ("name: incast", "nmae: incast"),
        ("hosts: 5", "hosts: 0"),
        ("kind: mean-queue", "kind: mean-queues"),
        ("flow: load", "flwo: load"),
    ],
)
def test_the_schema_finds_mistakes_while_they_are_written(before: str, after: str) -> None:
    text = (ROOT / "python" / "weirlab" / "scenarios" / "incast.yaml").read_text()
    assert before in text
    assert not SCHEMA.is_valid(yaml.safe_load(text.replace(before, after)))
