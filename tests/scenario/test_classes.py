"""Traffic classes in scenario files: what they mean, and what is refused where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import loads

FILE = """weirlab: 1
name: classes
network: {kind: star, hosts: 3, link: {rate: 10 Gbit/s}}
queues:
  out:
    at: "switch-0->host-2"
    kind: classes
    classes:
      high: {class: 7, kind: drop-tail, limit: 10 kB}
      low: {class: 0, weight: 2, kind: codel}
traffic:
  load: {from: "host-[0-1]", to: host-2, class: 7, source: {kind: constant, load: 60 %, frame_size: 1500 B}}
  rest: {from: host-0, to: host-2, source: {kind: poisson, load: 20 %, frame_size: 1500 B}}
run: {duration: 1 ms}
"""
MANAGED = {"kind": "codel", "interval_ps": 10**11, "target_ps": 5 * 10**9, "ecn": False}


def complaints(*changes: tuple[str, str]) -> list[str]:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(ScenarioError) as caught:
        loads(text).resolve()
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_each_class_has_a_queue_and_traffic_has_a_class() -> None:
    spec: dict[str, Any] = json.loads(loads(FILE).resolve().spec_json)
    assert [group["class"] for group in spec["traffic"]] == [7, 0]
    drop_tail = {"kind": "drop-tail", "limit": {"bytes": 10_000}, "marking": None, "overrun": None}
    codel = {"kind": "managed", "limit": {"frames": 1000}, "aqm": MANAGED}
    assert spec["queues"][-1]["discipline"] == {
        "kind": "classes",
        "order": {"kind": "class", "quantum_bytes": 1518},
        "list": [
            {"class": 7, "weight": None, "discipline": drop_tail, "trim": None},
            {"class": 0, "weight": 2, "discipline": codel, "trim": None},
        ],
    }
    arrival = loads(
        FILE.replace("weight: 2, ", "").replace("kind: classes", "kind: classes\n    order: arrival")
    )
    order = json.loads(arrival.resolve().spec_json)["queues"][-1]["discipline"]["order"]
    assert order == {"kind": "arrival"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "class: 7, source",
            "class: 3, source",
            "queues.out.classes: traffic 'load' is of class 3, which has no queue here: add one for it",
        ),
        (
            "class: 7, source",
            "class: 8, source",
            "traffic.load.class: a traffic class is a number from 0 to 7 (got 8)",
        ),
        ("weight: 2", "weight: 0", "queues.out.classes.low.weight: at least 1 is needed"),
        (
            "{class: 0",
            "{class: 9",
            "queues.out.classes.low.class: a traffic class is a number from 0 to 7 (got 9)",
        ),
        ("{class: 0", "{class: 7", "queues.out.classes.low.class: class 7 has two queues"),
        (
            "kind: classes",
            "kind: classes\n    quantum: 10 B",
            "queues.out.quantum: a quantum of at least 64 B",
        ),
        (
            "kind: classes",
            "kind: classes\n    order: arrival",
            "queues.out.classes.low.weight: frames leave in order",
        ),
        ("kind: codel", "kind: codel, interval: 1 ms", "queues.out.classes.low.interval"),
        ("run: {", "run: {flows: false, ", "queues.out: without flows that are counted queues are drop-tail"),
        (
            "10 Gbit/s}}",
            "10 Gbit/s}, switch: {memory: {kind: shared, size: 1 MB, alpha: 0}}}",
            "network.switch.memory.alpha",
        ),
        (
            'at: "switch-0->host-2"',
            'at: "host-0->*"',
            "queues.out: a host that can be paused keeps its frames in queues of its own",
        ),
    ],
)
def test_what_makes_no_sense_is_told_of_where_it_stands(old: str, new: str, told: str) -> None:
    more = [("run:", "control: {pause: {all: {at: '@switches', xoff: 9 kB, xon: 1 kB}}}\nrun:")]
    found = complaints((old, new), *(more if "host-0->*" in new else []))
    assert any(problem.startswith(told) for problem in found), found


def test_only_simulated_networks_have_classes() -> None:
    text = """weirlab: 1
name: device
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic:
  load:
    from: sender
    to: receiver
    class: 3
    source: {kind: constant, rate: 1 Mframe/s, frame_size: 64 B}
search:
  vary: traffic.load.source.rate
  between: 10 kframe/s .. 10 Mframe/s
  goals: {ndr: {loss: 0 %}}
  trial: {duration: 1 s}
"""
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    assert "traffic.load.class: means something in simulated networks only" in str(
        [f"{problem.path}: {problem.message}" for problem in caught.value.problems]
    )
