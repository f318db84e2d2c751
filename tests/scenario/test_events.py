"""Events in scenario files: what they mean, and what is refused where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import loads

FILE = """weirlab: 1
name: events
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s}}
queues:
  one: {at: "switch-0->host-[0-1]", kind: drop-tail, limit: 100 kB}
  out: {at: "switch-0->host-2", kind: classes, classes: {all: {class: 0, kind: codel}}}
traffic:
  load: {from: host-0, to: host-2, source: {kind: poisson, load: 20 %, frame_size: 1500 B}}
run: {duration: 1 ms}
events:
  it: EVENT
"""


def events(event: str) -> list[dict[str, Any]]:
    return list(json.loads(loads(FILE.replace("EVENT", event)).resolve().spec_json)["events"])


def complaints(event: str, more: str = "") -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(FILE.replace("EVENT", event) + more).resolve()
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_a_link_goes_down_in_both_directions_and_comes_up() -> None:
    event = '{kind: link-down, at: "switch-0->host-2", when: 1 us, until: 3 us, reroute: 1 us}'
    assert events(event) == [
        {"at_ps": 1_000_000, "change": {"kind": "down", "ports": [4, 5]}},
        {"at_ps": 2_000_000, "change": {"kind": "reroute"}},
        {"at_ps": 3_000_000, "change": {"kind": "up", "ports": [4, 5]}},
        {"at_ps": 4_000_000, "change": {"kind": "reroute"}},
    ]


def test_what_has_an_end_is_as_it_was_before() -> None:
    rate = events('{kind: rate, at: "switch-0->*", when: 1 us, until: 2 us, rate: 1 Gbit/s}')
    assert [event["change"]["rate_bps"] for event in rate] == [10**9, 10**10]
    buffer = events('{kind: buffer, at: "switch-0->host-0", when: 1 us, until: 2 us, limit: 9 frames}')
    assert [event["change"]["limit"] for event in buffer] == [{"frames": 9}, {"bytes": 100_000}]
    of_class = '{kind: buffer, at: "switch-0->host-2", class: 0, when: 1 us, until: 2 us, limit: 9 frames}'
    assert [event["change"]["limit"] for event in events(of_class)] == [{"frames": 9}, {"frames": 1000}]
    hold = events('{kind: hold, at: "switch-0->*", when: 1 us, until: 2 us}')
    assert [(event["change"]["kind"], event["change"]["classes"]) for event in hold] == [
        ("hold", list(range(8))),
        ("release", list(range(8))),
    ]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ('{kind: rate, at: "switch-9->*", when: 1 us, rate: 1 Gbit/s}', "events.it.at: "),
        ('{kind: hold, at: "switch-0->*", when: 2 us, until: 1 us}', "events.it.until: is not after 'when'"),
        (
            '{kind: hold, at: "switch-0->host-0", when: 1 us, classes: [3]}',
            "events.it.classes: port 'switch-0->host-0'",
        ),
        (
            '{kind: hold, at: "switch-0->host-2", when: 1 us, classes: [8]}',
            "events.it.classes: a traffic class is",
        ),
        (
            '{kind: buffer, at: "switch-0->host-2", when: 1 us, limit: 1 kB}',
            "events.it.class: port 'switch-0->host-2'",
        ),
        (
            '{kind: buffer, at: "switch-0->host-2", class: 5, when: 1 us, limit: 1 kB}',
            "events.it.class: port 'switch-0->host-2' has no queue for class 5",
        ),
        (
            '{kind: buffer, at: "switch-0->host-0", class: 0, when: 1 us, limit: 1 kB}',
            "events.it.class: port 'switch-0->host-0' has one queue",
        ),
    ],
)
def test_what_makes_no_sense_is_told_of_where_it_stands(event: str, told: str) -> None:
    found = complaints(event)
    assert any(problem.startswith(told) for problem in found), found


def test_what_events_do_not_go_together_with_is_told() -> None:
    down = '{kind: link-down, at: "switch-0->host-2", when: 1 us}'
    pause = "control: {pause: {all: {at: '@switches', xoff: 9 kB, xon: 1 kB}}}\n"
    assert "events.it: links go down in networks without BCN" in str(complaints(down, pause))
    slotted = FILE.replace("EVENT", down).replace("duration: 1 ms", "duration: 1 ms, flows: false")
    with pytest.raises(ScenarioError) as caught:
        loads(slotted).resolve()
    assert "without flows" in str(caught.value) or "only the event engine" in str(caught.value)
