"""What scenario files say about marks, as the simulator gets it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weirlab import spec as core
from weirlab.analysis.notes import notes_of
from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario, loads
from weirlab.scenario.network.path import line_spec, path_plan

FILE = """weirlab: 1
name: marks
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s}}
QUEUES
traffic:
  load: {from: host-0, to: host-2, source: {kind: bulk}, transport: {kind: tcp, TRANSPORT}}
run: {duration: 1 ms}
"""


def scenario(transport: str, queue: str = "") -> Scenario:
    queues = f'queues: {{out: {{at: "switch-0->host-2", {queue}}}}}' if queue else ""
    return loads(FILE.replace("TRANSPORT", transport).replace("QUEUES", queues))


def config(transport: str) -> dict[str, Any]:
    return dict(json.loads(scenario(transport).resolve().spec_json)["traffic"][0]["tcp"]["config"])


def test_each_controller_has_the_feedback_that_it_needs_unless_another_is_given() -> None:
    def ecn(transport: str) -> tuple[str, str]:
        told = config(transport)["ecn"]
        return told["sender"], told["receiver"]

    assert ecn("congestion_control: {kind: reno}") == ("none", "none")
    assert ecn("congestion_control: {kind: dctcp}") == ("dctcp", "dctcp")
    assert ecn("congestion_control: {kind: prague}") == ("accurate", "accurate")
    assert ecn("congestion_control: {kind: cubic}, ecn: true") == ("classic", "classic")
    assert ecn("congestion_control: {kind: cubic}, ecn: true, receiver_ecn: false") == ("classic", "none")
    assert ecn("congestion_control: {kind: prague}, receiver_ecn: classic") == ("accurate", "classic")


def test_the_parameters_of_dctcp_and_prague_are_those_of_their_documents() -> None:
    assert config("congestion_control: {kind: dctcp}")["congestion_control"]["gain"] == 1 / 16
    prague = config("congestion_control: {kind: prague, transition: 4}")["congestion_control"]
    assert (prague["virtual_rtt_ps"], prague["transition_rounds"], prague["gain"]) == (25 * 10**9, 4, 1 / 16)


def test_what_makes_no_sense_is_told_of_where_it_stands() -> None:
    def complaints(transport: str, queue: str = "") -> list[str]:
        with pytest.raises(ScenarioError) as caught:
            scenario(transport, queue).resolve()
        return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]

    reno = "congestion_control: {kind: reno}"
    (told,) = complaints(reno, "kind: threshold, k_min: 20 kB, k_max: 10 kB")
    assert told.startswith("queues.out.k_max: the upper threshold is at least the lower")
    (told,) = complaints(reno, "kind: threshold, k_min: 20 kB, limit: 15 kB")
    assert told.startswith("queues.out.k_min: is never exceeded")
    (told,) = complaints(reno, "kind: dual-pi2, coupling: 0.5")
    assert told == "queues.out.coupling: a number from 1 to 1000 (got 0.5)"
    (told,) = complaints(reno, "kind: dual-pi2, scheduler: {kind: wrr, classic: 100 %}")
    assert told.startswith("queues.out.scheduler.classic: a number from 0.001 to 0.999")


def test_marks_that_nobody_can_bear_and_prague_without_marks_are_noted() -> None:
    (note,) = [
        note
        for note in notes_of(scenario("congestion_control: {kind: reno}", "kind: threshold, k_min: 5 kB"))
        if "ECN" in note
    ]
    assert note.startswith("queues.out: no traffic is ECN-capable")
    alone = notes_of(scenario("congestion_control: {kind: prague}"))
    assert any(note.startswith("traffic.load.transport: no queue marks") for note in alone)
    marked = notes_of(scenario("congestion_control: {kind: prague}", "kind: dual-pi2"))
    assert not any("no queue marks" in note for note in marked)


def test_a_network_of_two_hosts_takes_its_marks_to_the_emulated_path() -> None:
    text = """weirlab: 1
name: path
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 10 Mbit/s, delay: 5 ms}}
queues:
  there: {at: a->b, kind: threshold, limit: 90 kB, k_min: 30 kB}
  back: {at: b->a, kind: dual-pi2}
"""
    plan = path_plan(loads(text))
    assert plan is not None
    hop = plan.hops["link"]
    assert hop.backward is not None
    marks = core.AqmThreshold(k_min_bytes=30_000, k_max_bytes=30_000, p_max=1.0)
    assert line_spec(hop.forward).aqm == marks
    assert line_spec(hop.backward).aqm.kind == "dual-pi2"
