"""Other values at dotted paths: as `--set`, studies and searches use them."""

from __future__ import annotations

from typing import Any

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario, loads
from weirlab.scenario.network import DropTail
from weirlab.scenario.traffic import Constant, Poisson
from weirlab.units import FrameRate, Frames, Rate, Span

TEXT = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}
queues: {egress: {at: "switch-0->*", kind: drop-tail, limit: 150 kB}}
traffic:
  load: {from: [host-0, host-1], to: host-3, source: {kind: poisson, load: 49 %, frame_size: 1500 B}}
run: {duration: 10 ms}
"""


@pytest.fixture
def scenario() -> Scenario:
    return loads(TEXT, file="f.yaml")


def complaint(scenario: Scenario, assignments: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario.assign(assignments)
    return str(caught.value)


def test_a_value_is_replaced_and_the_original_stays(scenario: Scenario) -> None:
    other = scenario.assign({"run.duration": "5 ms", "queues.egress.limit": "16 frames"})
    queue = other.queues["egress"]
    assert isinstance(queue, DropTail)
    assert (other.run.duration, queue.limit) == (Span.from_s(0.005), Frames(16))
    assert scenario == loads(TEXT)


@pytest.mark.parametrize("value", ["7", 7])
def test_values_are_text_or_what_python_has(scenario: Scenario, value: object) -> None:
    assert scenario.assign({"run.seed": value}).run.seed == 7


def test_quantities_can_be_assigned_as_they_are(scenario: Scenario) -> None:
    rate = FrameRate.from_fps(1234.567)
    source = scenario.assign({"traffic.load.source.load": None, "traffic.load.source.rate": rate}).traffic[
        "load"
    ]
    assert isinstance(source.source, Poisson)
    assert source.source.rate == rate


def test_a_mapping_replaces_what_was_there(scenario: Scenario) -> None:
    source = {"kind": "constant", "rate": "1 Mbit/s", "frame_size": "64 B"}
    assert isinstance(scenario.assign({"traffic.load.source": source}).traffic["load"].source, Constant)


def test_none_removes(scenario: Scenario) -> None:
    assert not scenario.assign({"queues.egress": None}).queues
    assert scenario.assign({"run.seed": None}) == scenario
    assert scenario.assign({"control.bcn": None}) == scenario


def test_an_item_of_a_list_has_its_number_as_name(scenario: Scenario) -> None:
    assert scenario.assign({"traffic.load.from.1": "host-2"}).traffic["load"].from_ == ("host-0", "host-2")
    assert scenario.assign({"traffic.load.from.1": None}).traffic["load"].from_ == ("host-0",)


def test_an_absent_section_is_made_on_the_way(scenario: Scenario) -> None:
    other = scenario.assign({"study.replicates": 3})
    assert other.study is not None
    assert other.study.replicates == 3


def test_a_whole_entry_can_be_added(scenario: Scenario) -> None:
    entry = {"queue": "switch-0->host-3", "every": "1 ms"}
    assert list(scenario.assign({"record.bottleneck": entry}).record) == ["bottleneck"]


def test_assignments_apply_when_a_file_is_loaded() -> None:
    assert loads(TEXT, assign={"network.link.rate": "1 Gbit/s"}).to_yaml().count("rate: 1 Gbit/s") == 1
    assert loads(
        TEXT.replace("10 ms", "nonsense"), assign={"run.duration": "1 ms"}
    ).run.duration == Span.from_s(1e-3)


def test_a_later_assignment_builds_on_an_earlier_one(scenario: Scenario) -> None:
    twice = scenario.assign({"run.seed": 2}).assign({"run.duration": "1 ms"})
    assert twice == scenario.assign({"run.duration": "1 ms", "run.seed": 2})


def test_a_scenario_made_in_python_can_be_assigned_to(scenario: Scenario) -> None:
    made = Scenario.model_validate(scenario.dump())
    assert made == scenario
    assert made.assign({"run.seed": 5}) == scenario.assign({"run.seed": 5})


WRONG = {
    "a value that is not legal": ({"run.seed": "x"}, "run.seed: write a whole number, such as '8' (got 'x')"),
    "a misspelt field": ({"run.sead": 7}, "run.sead: unknown field (got '7'); did you mean 'seed'?"),
    "a misspelt section": (
        {"trafic.load.to": "host-2"},
        "trafic.load.to: there is no 'trafic' in a scenario; did you mean 'traffic'?",
    ),
    "a misspelt name": (
        {"traffic.laod.source.load": "3 %"},
        "traffic.laod.source.load: there is no 'laod' in 'traffic'; did you mean 'load'?",
    ),
    "a name where there are none": (
        {"record.q.every": "1 ms"},
        "record.q.every: there is no 'q' in 'record'; it is empty",
    ),
    "a removal of what cannot be": (
        {"control.pasue": None},
        "control.pasue: there is no 'pasue' in 'control'; did you mean 'pause'?",
    ),
    "a removal of a name that is not there": (
        {"traffic.load-2": None},
        "traffic.load-2: there is no 'load-2' in 'traffic'; did you mean 'load'?",
    ),
    "a path through a value": (
        {"run.duration.length": 3},
        "run.duration.length: 'run.duration' is a value; there is nothing below it",
    ),
    "an item that is not there": (
        {"traffic.load.from.7": "host-2"},
        "traffic.load.from.7: 'traffic.load.from' has no item '7'; it has 0 to 1",
    ),
    "no path": ({"": 3}, "name what to change, such as 'run.duration'"),
    "another kind that lacks a field": (
        {"network.kind": "fat-tree"},
        "f.yaml:3:1: network.k: is missing: ports of each switch; even",
    ),
}


@pytest.mark.parametrize(("assignments", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_assignment_is_told_by_its_path(
    scenario: Scenario, assignments: dict[str, Any], message: str
) -> None:
    assert complaint(scenario, assignments) == message


def test_all_wrong_assignments_are_told_at_once(scenario: Scenario) -> None:
    assert len(complaint(scenario, {"a.b": 1, "c.d": 2}).splitlines()) == 2
    assert len(complaint(scenario, {"run.seed": "x", "network.hosts": 0}).splitlines()) == 2


def test_rates_are_read_like_those_of_files(scenario: Scenario) -> None:
    link = scenario.assign({"network.link.rate": "25 Gbit/s"}).dump()["network"]["link"]
    assert link["rate"] == str(Rate(25 * 10**9))


TCP = """\
weirlab: 1
name: tcp
network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s, delay: 1 ms}}
traffic:
  bulk: {from: host-0, to: host-1, source: {kind: bulk}, transport: {kind: tcp, congestion_control: CONTROL}}
run: {duration: 10 ms}
"""


@pytest.mark.parametrize("control", ["cubic", "{kind: cubic}", "{kind: cubic, c: 0.4, beta: 0.8}"])
def test_another_kind_takes_the_fields_away_that_only_the_old_one_has(control: str) -> None:
    path = "traffic.bulk.transport.congestion_control"
    scenario = loads(TCP.replace("CONTROL", control), file="tcp.yaml")
    for kind in ("reno", "bbr", "dctcp"):
        assert (
            scenario.assign({f"{path}.kind": kind}).traffic["bulk"].transport.congestion_control.kind == kind
        )
    assert scenario.assign({f"{path}.beta": 0.5}).traffic["bulk"].transport.congestion_control.beta == 0.5
    assert "unknown kind 'cubik'" in complaint(scenario, {f"{path}.kind": "cubik"})
    wrong = complaint(scenario, {f"{path}.kind": "bbr", f"{path}.c": 0.4})
    assert "unknown field" in wrong
