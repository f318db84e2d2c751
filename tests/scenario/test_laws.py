"""Laws that hold for any legal scenario."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import event, given, settings, strategies as st

from scenario.strategies import scenarios
from weirlab import _core
from weirlab.runs import save_scenario
from weirlab.scenario import Scenario, json_schema, load, loads
from weirlab.scenario.file.moving import movable
from weirlab.scenario.network.path import path_plan

SCHEMA = jsonschema.Draft202012Validator(json_schema())


def loaded(plain: dict[str, Any]) -> Scenario:
    return loads(yaml.safe_dump(plain))


@settings(deadline=None, max_examples=60)
@given(scenarios())
def test_a_legal_scenario_is_a_legal_spec_in_its_normal_form(plain: dict[str, Any]) -> None:
    spec = loaded(plain).resolve().spec_json
    checked = _core.check(spec)
    assert json.loads(checked) == json.loads(spec)
    assert _core.check(checked) == checked


@settings(deadline=None, max_examples=40)
@given(scenarios())
def test_a_legal_scenario_is_written_out_and_read_back_as_the_same(plain: dict[str, Any]) -> None:
    scenario = loaded(plain)
    written = scenario.to_yaml()
    again = loads(written)
    assert again == scenario
    assert again.to_yaml() == written
    assert again.resolve().spec_json == scenario.resolve().spec_json


TRANSMITTERS = st.sampled_from(
    [
        {"rate": "10 Mbit/s"},
        {"rate": "1 Gbit/s", "lanes": 2},
        {"steps": [{"at": "0 s", "rate": "1 Mbit/s"}, {"at": "1 s", "rate": "2 Mbit/s"}], "repeat": "2 s"},
        {"trace": "link.trace"},
    ]
)
WAITING = {
    "buffer": st.sampled_from(["64 kB", "100 frames"]),
    "queue": st.sampled_from(["codel", {"kind": "pie", "target": "15 ms"}, "fq-codel"]),
    "framing": st.sampled_from(["0 B", "38 B"]),
}
FLYING = {"delay": st.sampled_from(["0 s", "10 ms"]), "loss": st.sampled_from(["0 %", "0.1 %"])}
LINES = (
    st.fixed_dictionaries({}, optional=FLYING)
    | st.just({"delays": {"trace": "delay.trace"}})
    | st.builds(
        lambda transmitter, others: transmitter | others,
        TRANSMITTERS,
        st.fixed_dictionaries({}, optional=WAITING | FLYING),
    )
)


@settings(deadline=None, max_examples=100)
@given(LINES, st.none() | LINES)
def test_a_legal_path_is_saved_and_read_back_as_the_same_from_anywhere(
    tmp_path_factory: pytest.TempPathFactory, forward: dict[str, Any], backward: dict[str, Any] | None
) -> None:
    here = tmp_path_factory.mktemp("here")
    (here / "link.trace").write_text("1\n5\n10\n")
    (here / "delay.trace").write_text("0 10\n1 20\n")
    hop = {"forward": forward} | ({} if backward is None else {"backward": backward})
    plain = {"weirlab": 1, "name": "path", "testbed": {"kind": "netns", "hops": {"wan": hop}}}
    (here / "path.yaml").write_text(yaml.safe_dump(plain))
    scenario = movable(load(here / "path.yaml"))
    event("with a trace" if "trace" in str(plain) else "without a trace")
    place = tmp_path_factory.mktemp("results")
    save_scenario(scenario, place)
    again = load(place / "scenario.yaml")
    assert again.dump() == scenario.dump()
    assert path_plan(again) == path_plan(scenario)


@settings(deadline=None, max_examples=40)
@given(scenarios())
def test_a_legal_scenario_satisfies_the_schema_for_editors(plain: dict[str, Any]) -> None:
    SCHEMA.validate(plain)
    SCHEMA.validate(yaml.safe_load(loaded(plain).to_yaml()))


@settings(deadline=None, max_examples=20)
@given(scenarios())
def test_the_order_of_sections_does_not_matter(plain: dict[str, Any]) -> None:
    shuffled = dict(sorted(plain.items(), reverse=True))
    assert loaded(shuffled).resolve().spec_json == loaded(plain).resolve().spec_json
