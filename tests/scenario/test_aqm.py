"""Queues under active management in scenario files: what they mean, and what is refused where."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

import pytest

from weirlab import spec as core
from weirlab.analysis.notes import notes_of
from weirlab.errors import ScenarioError
from weirlab.fields.base import kind_of
from weirlab.scenario import loads
from weirlab.scenario.network.aqm import AnyAqm, AnyManaged, AnyManagedClass
from weirlab.scenario.network.path import line_spec, path_plan

FILE = """weirlab: 1
name: managed
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s}}
queues:
  out: {at: "switch-0->host-2", QUEUE}
traffic:
  load: {from: "host-[0-1]", to: host-2, source: {kind: constant, rate: 6 Gbit/s, frame_size: 1500 B},
    transport: {kind: raw}}
run: {duration: 1 ms}
"""


def spec_of(queue: str, more: str = "") -> dict[str, Any]:
    return dict(json.loads(loads(FILE.replace("QUEUE", queue) + more).resolve().spec_json))


def complaints(queue: str, more: str = "") -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(FILE.replace("QUEUE", queue) + more).resolve()
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_scenarios_have_every_management_of_the_core_at_ports_classes_and_lines() -> None:
    of_core = {get_type_hints(each)["kind"].__args__[0] for each in get_args(core.Aqm)} - {"custom"}
    for union in (get_args(AnyAqm)[0], AnyManaged, AnyManagedClass):
        assert {kind_of(each) for each in get_args(union)} == of_core


def test_a_queue_has_the_defaults_of_its_rfc() -> None:
    codel = spec_of("kind: codel")["queues"][-1]["discipline"]
    assert codel == {
        "kind": "managed",
        "limit": {"frames": 1000},
        "aqm": {"kind": "codel", "interval_ps": 10**11, "target_ps": 5 * 10**9, "ecn": False},
    }
    flows = spec_of("kind: fq-codel")["queues"][-1]["discipline"]
    assert flows["limit"] == {"frames": 10240}
    assert (flows["aqm"]["queues"], flows["aqm"]["quantum_bytes"], flows["aqm"]["ecn"]) == (1024, 1514, True)
    pie = spec_of("kind: pie, ecn: true, limit: 200 kB")["queues"][-1]["discipline"]
    assert pie["limit"] == {"bytes": 200_000}
    assert pie["aqm"] == {
        "kind": "pie",
        "target_ps": 15 * 10**9,
        "update_ps": 15 * 10**9,
        "max_burst_ps": 150 * 10**9,
        "alpha": 0.125,
        "beta": 1.25,
        "ecn": True,
    }


def test_what_makes_no_sense_is_told_of_where_it_stands() -> None:
    (told,) = complaints("kind: codel, target: 5 ms, interval: 1 ms")
    assert told == "queues.out.interval: at least the target, 5 ms (got 1 ms)"
    (told,) = complaints("kind: pie, alpha: -1")
    assert told == "queues.out.alpha: a number from 0 to 1000000 (got -1)"


def test_marks_for_dcqcn_and_a_management_exclude_each_other() -> None:
    dcqcn = """control:
  dcqcn:
    marking: {at: "switch-0->host-2", k_min: 5 kB}
    reaction_point: {at: "host-[0-1]"}
"""
    (told,) = complaints("kind: codel", dcqcn)
    assert told.startswith("control.dcqcn.marking.at: switch-0->host-2: under active management")


def test_marks_that_nobody_can_bear_are_noted() -> None:
    asked, unasked = (
        loads(FILE.replace("QUEUE", f"kind: {kind}")) for kind in ("codel, ecn: true", "fq-codel")
    )
    (note,) = [note for note in notes_of(asked) if ".ecn:" in note]
    assert note.startswith("queues.out.ecn: no traffic is ECN-capable")
    assert not [note for note in notes_of(unasked) if ".ecn:" in note]


def test_a_network_of_two_hosts_takes_its_management_to_the_emulator() -> None:
    text = """weirlab: 1
name: path
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 10 Mbit/s, delay: 5 ms}}
queues: {there: {at: a->b, kind: codel, limit: 50 frames, ecn: true}}
"""
    plan = path_plan(loads(text))
    assert plan is not None
    hop = plan.hops["link"]
    assert hop.backward is not None
    assert line_spec(hop.forward).aqm.kind == "codel"
    assert line_spec(hop.forward).limit.frames == 50
    assert line_spec(hop.backward).aqm is None
