"""The scenario as a value: immutable, comparable, picklable, and equal to what it is written out as."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from weirlab.errors import ScenarioError
from weirlab.fields.base import Named
from weirlab.scenario import Scenario, load, loads, unsupported
from weirlab.scenario.model import split_path
from weirlab.scenario.network.layout import Layout, NoMatchError

FILES = Path(__file__).parent / "files"

TEXT = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}
traffic: {load: {from: "host-[0-2]", to: host-3, source: {kind: poisson, load: 49 %, frame_size: 1500 B}}}
run: {duration: 10 ms}
study: {factors: {run.seed: [1, 2], size: {small: {traffic.load.source.frame_size: 64 B}, as-is: {}}}}
"""


@pytest.fixture
def scenario() -> Scenario:
    return loads(TEXT)


@pytest.mark.parametrize("path", ["name", "run.seed", "network.link.rate", "traffic.load.source.load"])
def test_no_field_can_be_changed(scenario: Scenario, path: str) -> None:
    *above, name = path.split(".")
    part: Any = scenario
    for step in above:
        part = part[step] if isinstance(part, Named) else getattr(part, step)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, name, 1)


def test_no_entry_can_be_added_or_removed(scenario: Scenario) -> None:
    traffic: Any = scenario.traffic
    with pytest.raises(TypeError):
        traffic["more"] = traffic["load"]
    with pytest.raises(TypeError):
        del traffic["load"]


def test_equal_text_gives_equal_scenarios_wherever_it_came_from(scenario: Scenario) -> None:
    assert scenario == loads(TEXT, file="other.yaml")
    assert hash(scenario) == hash(loads(TEXT, file="other.yaml"))
    assert scenario != scenario.assign({"run.seed": 2})


def test_the_order_of_rules_is_part_of_what_a_scenario_says() -> None:
    rules = {
        name: {"kind": "drop-tail", "at": "switch-0->*", "limit": limit}
        for name, limit in (("a", "1 kB"), ("b", "2 kB"))
    }
    one = loads(TEXT, assign={"queues": rules})
    other = loads(TEXT, assign={"queues": dict(reversed(rules.items()))})
    assert one != other
    assert one.resolve().spec_json != other.resolve().spec_json


def test_a_scenario_travels_between_processes(scenario: Scenario) -> None:
    copy = pickle.loads(pickle.dumps(scenario))
    assert copy == scenario
    assert copy.assign({"run.seed": 2}) == scenario.assign({"run.seed": 2})


def test_what_is_written_out_reads_back_as_the_same(scenario: Scenario) -> None:
    assert loads(scenario.to_yaml()) == scenario
    assert Scenario.model_validate(scenario.dump()) == scenario


def test_a_dump_has_the_fields_of_sections_that_are_asked_for(scenario: Scenario) -> None:
    rate = {"network": {"link": {"rate"}}}
    assert scenario.model_dump(mode="json", include=rate) == {"network": {"link": {"rate": "10 Gbit/s"}}}
    rest = scenario.model_dump(mode="json", exclude=rate)["network"]
    assert "rate" not in rest["link"]
    assert rest["link"]["delay"] == "500 ns"
    assert rest["kind"] == "star"


def test_entries_called_kind_keep_their_place_when_written_out(scenario: Scenario) -> None:
    rule = {"kind": "drop-tail", "at": "switch-0->*", "limit": "1 kB"}
    factor = {"long": {"run.duration": "20 ms"}, "as-is": {}}
    queues = {"all": rule, "kind": {**rule, "limit": "2 kB"}}
    named = scenario.assign({"queues": queues, "study.factors.kind": factor})
    assert loads(named.to_yaml()) == named
    assert loads(named.to_yaml()).resolve().spec_json == named.resolve().spec_json


def test_levels_of_a_list_are_named_after_their_values(scenario: Scenario) -> None:
    assert scenario.study is not None
    factors = scenario.study.factors
    assert [level.name for level in factors["run.seed"]] == ["1", "2"]
    assert dict(factors["run.seed"][1].assignments) == {"run.seed": "2"}
    assert [(level.name, len(level.assignments)) for level in factors["size"]] == [("small", 1), ("as-is", 0)]


def test_a_problem_knows_the_place_of_its_part(scenario: Scenario) -> None:
    problem = scenario.problem("traffic.load.source", "is not for this testbed")
    assert str(problem) == "<text>:4:50: traffic.load.source: is not for this testbed"
    assert scenario.problem("search", "is missing").line == 1


def test_a_path_keeps_quoted_names_together() -> None:
    assert split_path('study.factors."run.seed".2') == ("study", "factors", "run.seed", "2")


def test_a_model_made_in_python_has_the_same_errors() -> None:
    with pytest.raises(ScenarioError, match="write a rate with its unit"):
        loads(TEXT, assign={"network.link.rate": 10})


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        (
            "rapid-under-udp.yaml",
            [],
        ),
        (
            "windows-against-streams.yaml",
            ["traffic.ping.source", "campaign"],
        ),
    ],
)
def test_what_the_simulator_lacks_loads_and_is_told_with_its_place(file: str, parts: list[str]) -> None:
    problems = unsupported(load(FILES / file))
    assert [problem.path for problem in problems] == parts
    assert all(problem.line > 1 for problem in problems)


@pytest.mark.parametrize("pattern", ["host-[01]", "host-[0,1]", "host-[a-b]", "host-[0-1", "host-[0:1]"])
def test_brackets_that_are_no_range_are_told_how_to_write_one(pattern: str) -> None:
    layout = Layout(("host-0", "host-1"), frozenset({"host-0", "host-1"}), ())
    with pytest.raises(NoMatchError, match=r"is not a range of numbers: write \[0-1\], or a list of names"):
        layout.node_ids([pattern])
    assert layout.node_ids(["host-[0-1]"]) == [0, 1]


def test_a_kind_alone_is_short_for_a_mapping_with_nothing_else() -> None:
    given = """
weirlab: 1
name: short
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic: {a: {from: host-0, to: host-2, source: bulk, transport: {kind: tcp, congestion_control: CONTROL}}}
run: {duration: 1 ms}
"""
    short, whole = (loads(given.replace("CONTROL", text)) for text in ("cubic", "{kind: cubic}"))
    assert short.dump() == whole.dump()
    set_later = loads(given.replace("CONTROL", "reno"), {"traffic.a.transport.congestion_control": "cubic"})
    assert set_later.dump() == whole.dump()
