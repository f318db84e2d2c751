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
        {"at_ps": 2_000_000, "change": {"kind": "reroute", "ports": [4, 5]}},
        {"at_ps": 3_000_000, "change": {"kind": "up", "ports": [4, 5]}},
        {"at_ps": 4_000_000, "change": {"kind": "reroute", "ports": [4, 5]}},
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
    without = "BCN, QCN, DCQCN, PAUSE and priority flow control (lossless pools)"
    assert f"events.it: links go down in networks without {without} only" in str(complaints(down, pause))
    slotted = FILE.replace("EVENT", down).replace("duration: 1 ms", "duration: 1 ms, flows: false")
    with pytest.raises(ScenarioError) as caught:
        loads(slotted).resolve()
    assert "without flows" in str(caught.value) or "only the event engine" in str(caught.value)


LINK = 'kind: link-down, at: "switch-0->host-2"'
RATE = 'kind: rate, at: "switch-0->*", rate: 1 Gbit/s'
SMALL = 'kind: buffer, at: "switch-0->host-[0-1]", limit: 9 kB'
HOLD = 'kind: hold, at: "switch-0->host-2"'


@pytest.mark.parametrize("names", [("it", "other"), ("other", "it")])
@pytest.mark.parametrize(
    ("kind", "also", "port"),
    [
        (LINK, 'kind: link-down, at: "host-2->switch-0"', "switch-0->host-2"),
        (RATE, 'kind: rate, at: "switch-0->host-1", rate: 2 Gbit/s', "switch-0->host-1"),
        (SMALL, 'kind: buffer, at: "switch-0->host-0", limit: 5 kB', "switch-0->host-0"),
        (HOLD, f"{HOLD}, classes: [0]", "switch-0->host-2"),
    ],
)
def test_events_of_one_kind_that_overlap_are_refused(
    names: tuple[str, str], kind: str, also: str, port: str
) -> None:
    first, second = names
    text = FILE.replace(
        "  it: EVENT",
        f"  {first}: {{{kind}, when: 10 us, until: 30 us}}\n"
        f"  {second}: {{{also}, when: 20 us, until: 60 us}}",
    )
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    (problem,) = caught.value.problems
    assert problem.path == f"events.{second}"
    assert problem.line == 12
    assert f"overlaps in time with '{first}' (line 11)" in problem.message
    assert port in problem.message
    open_end = text.replace(", until: 30 us", "")
    with pytest.raises(ScenarioError, match="overlaps in time"):
        loads(open_end)
    loads(text.replace("until: 30 us", "until: 20 us")).resolve()


def test_events_at_other_ports_of_other_kinds_or_classes_may_overlap() -> None:
    window = "when: 10 us, until: 30 us"
    queues = FILE.replace(
        "{all: {class: 0, kind: codel}}", "{a: {class: 0, kind: codel}, b: {class: 1, kind: codel}}"
    )
    for first, second in [
        (RATE, HOLD),
        (f"{HOLD}, classes: [0]", f"{HOLD}, classes: [1]"),
        (SMALL, 'kind: buffer, class: 0, at: "switch-0->host-2", limit: 5 kB'),
        (LINK, 'kind: link-down, at: "switch-0->host-1"'),
    ]:
        more = f"{{{first}, {window}}}\n  other: {{{second}, {window}}}"
        loads(queues.replace("EVENT", more)).resolve()


def test_what_ends_at_an_instant_ends_before_another_starts() -> None:
    for first, second in [("a", "b"), ("b", "a")]:
        changes = events(
            f"{{{LINK}, when: 100 us}}\n  {second}: {{{RATE}, when: 20 us, until: 30 us}}"
            f'\n  {first}: {{kind: rate, at: "switch-0->*", rate: 2 Gbit/s, when: 10 us, until: 20 us}}'
        )
        rates = [event["change"].get("rate_bps") for event in changes]
        assert rates == [2 * 10**9, 10**10, 10**9, 10**10, None]


@pytest.mark.parametrize("when", ["1 ms", "2 ms"])
def test_an_event_that_starts_when_the_run_has_ended_is_refused(when: str) -> None:
    found = complaints(f"{{{RATE}, when: {when}}}")
    assert found == ["events.it.when: starts after the run ends (1 ms)"]


@pytest.mark.parametrize(
    ("weight", "told"), [("0", "at least 1 is needed"), ("5000000000", "less than 2^32 is needed")]
)
def test_a_weight_is_a_count(weight: str, told: str) -> None:
    text = FILE.replace("class: 0, kind", f"class: 0, weight: {weight}, kind").replace("it: EVENT", "{}")
    with pytest.raises(ScenarioError) as caught:
        loads(text.replace("events:\n  {}\n", ""))
    (problem,) = caught.value.problems
    assert problem.path == "queues.out.classes.all.weight"
    assert told in problem.message


SEARCH = FILE.replace("kind: poisson, load: 20 %,", "kind: constant,").replace(
    "run: {duration: 1 ms}",
    """search:
  vary: traffic.load.source.rate
  between: [10 kframe/s, 800 kframe/s]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 2 s}
  algorithm: ALGORITHM""",
)


@pytest.mark.parametrize(
    ("algorithm", "shortest"),
    [
        ("{kind: binary}", "2 s"),
        ("{kind: weir}", "1 s"),
        ("{kind: mlr, initial_duration: 100 ms}", "100 ms"),
        ("{kind: mdr, initial_duration: 100 ms}", "100 ms"),
    ],
)
def test_an_event_that_some_trials_of_a_search_do_not_live_to_see_is_refused(
    algorithm: str, shortest: str
) -> None:
    text = SEARCH.replace("ALGORITHM", algorithm)
    event = f"{{{RATE}, when: {shortest}}}"
    with pytest.raises(ScenarioError) as caught:
        loads(text.replace("EVENT", event))
    (problem,) = caught.value.problems
    assert problem.path == "events.it.when"
    assert problem.message == f"starts after the shortest trials of the search end ({shortest})"
    loads(text.replace("EVENT", f"{{{RATE}, when: 99 ms}}"))
