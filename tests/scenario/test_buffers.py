"""Buffers in scenario files: what they become, what is refused, and what is noted."""

from __future__ import annotations

import pytest

from weirlab import spec as core
from weirlab.analysis.cycles import pause_cycles
from weirlab.analysis.notes import notes_of
from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario, loads

POOLS = "{kept: {classes: [3], alpha: 0.5, lossless: {}}, rest: {classes: [0], size: 20 kB}}"


def star(ingress: str = POOLS, *, more: str = "", size: str = "200 kB") -> Scenario:
    return loads(f"""weirlab: 1
name: star
network: {{kind: star, hosts: 3, link: {{rate: 10 Gbit/s, delay: 1 us}}}}
buffers: {{all: {{at: "@switches", size: {size}, ingress: {ingress}{more}}}}}
traffic:
  kept: {{from: [host-0, host-1], to: host-2, class: 3,
    source: {{kind: poisson, load: 60 %, frame_size: 1.5 kB}}}}
run: {{duration: 1 ms}}
record: {{rest: {{flow: "*", every: 100 us}}}}
""")


def test_a_buffer_becomes_what_the_core_takes() -> None:
    spec = star(more=", egress: {rest: {classes: [0], limit: 9 kB, reserved: 1 kB}}").resolve().spec
    (buffer,) = spec.buffers
    assert (buffer.nodes, buffer.bytes) == ([3], 200_000)
    kept, rest = buffer.ingress
    assert kept.bytes is None
    assert kept.lossless is not None
    assert kept.lossless.headroom_bytes is None
    assert (rest.bytes, type(rest.share)) == (20_000, core.BufferShareDynamic)
    assert (type(buffer.egress[0].share), buffer.egress[0].reserved_bytes) == (core.BufferShareStatic, 1000)
    assert buffer.flow_control is not None
    assert (buffer.flow_control.quanta, buffer.flow_control.longest_bytes) == (65535, 1500)
    limits = [rule.discipline for rule in spec.queues]
    assert [limit.limit for limit in limits] == ["unlimited"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("ingress", "more", "size", "place", "words"),
    [
        (POOLS, "", "30 kB", "buffers.all.size", "lacks"),
        (
            "{kept: {classes: [3, 9], lossless: {}}}",
            "",
            "200 kB",
            "buffers.all.ingress.kept.classes.1",
            "0 to 7",
        ),
        (
            "{kept: {classes: [3], alpha: 1, limit: 5 kB}}",
            "",
            "200 kB",
            "buffers.all.ingress.kept.limit",
            "alpha",
        ),
        (
            "{kept: {classes: [3]}}",
            ", flow_control: {delay: 1 us}",
            "200 kB",
            "buffers.all.flow_control",
            "lossless",
        ),
        ("{rest: {classes: [0]}}", "", "200 kB", "buffers.all.ingress", "class 3"),
        (POOLS, ", flow_control: {quanta: 70000}", "200 kB", "buffers.all.flow_control.quanta", "65535"),
        (
            POOLS,
            ", flow_control: {quanta: 50, refresh: 2 us}",
            "200 kB",
            "buffers.all.flow_control.refresh",
            "run out",
        ),
        ("{a: {classes: [3]}, b: {classes: [0]}}", "", "200 kB", "buffers.all.ingress.b.size", "size"),
    ],
)
def test_what_cannot_work_is_refused_where_it_stands(
    ingress: str, more: str, size: str, place: str, words: str
) -> None:
    with pytest.raises(ScenarioError) as raised:
        star(ingress, more=more, size=size).resolve()
    problem = raised.value.problems[0]
    assert (problem.path, words in problem.message) == (place, True), str(problem)


def test_a_class_without_a_queue_at_the_switch_before_is_refused() -> None:
    text = """weirlab: 1
name: row
network: {kind: dumbbell, pairs: 2, access: {rate: 10 Gbit/s}, bottleneck: {rate: 10 Gbit/s}}
buffers: {all: {at: right, size: 200 kB, ingress: {kept: {classes: [3], lossless: {}}}}}
traffic: {kept: {from: "left-*", to: right-0, class: 3,
  source: {kind: poisson, load: 60 %, frame_size: 1500 B}}}
run: {duration: 1 ms}
record: {rest: {flow: "*", every: 100 us}}
"""
    with pytest.raises(ScenarioError) as raised:
        loads(text).resolve()
    problem = raised.value.problems[0]
    assert problem.path == "buffers.all.ingress.kept.classes"
    assert "'left->right'" in problem.message
    assert "no queue" in problem.message


def test_headroom_that_is_too_small_is_noted_with_what_is_missing() -> None:
    assert not notes_of(star())
    (note,) = notes_of(star(POOLS.replace("lossless: {}", "lossless: {headroom: 5 kB}")))
    # 2 x 1520 B + 84 B + 2 us x 10 Gbit/s + 1500 B
    assert "7.124 kB" in note
    assert "2.124 kB are missing" in note
    assert "(and 2 more)" in note
    (note,) = notes_of(star(more=", flow_control: {longest: 1 kB}"))
    assert "up to 1 kB" in note
    assert "1.5 kB" in note


def ring(pools: str) -> Scenario:
    """Five switches in a ring; hosts send to the second next one, in class 3."""
    size = range(5)
    nodes = [f"s-{i}: {{kind: switch}}, h-{i}: {{kind: host}}" for i in size]
    links = [f"up-{i}: {{join: [h-{i}, s-{i}], rate: 10 Gbit/s}}" for i in size]
    links += [f"ring-{i}: {{join: [s-{i}, s-{(i + 1) % 5}], rate: 10 Gbit/s}}" for i in size]
    source = "{kind: poisson, load: 95 %, frame_size: 1500 B}"
    traffic = [f"t-{i}: {{from: h-{i}, to: h-{(i + 2) % 5}, class: 3, source: {source}}}" for i in size]
    queue = "kind: drop-tail, limit: unlimited"
    return loads(f"""weirlab: 1
name: ring
network: {{kind: graph, nodes: {{{", ".join(nodes)}}}, links: {{{", ".join(links)}}}}}
queues:
  all: {{at: "s-*->*", kind: classes, classes: {{a: {{class: 3, {queue}}}, b: {{class: 4, {queue}}}}}}}
buffers: {{all: {{at: "@switches", size: 100 kB, ingress: {pools}}}}}
traffic: {{{", ".join(traffic)}}}
run: {{duration: 3 ms}}
record: {{rest: {{flow: "*", every: 100 us}}}}
""")


def test_a_cycle_counts_for_the_class_that_goes_round_in_it() -> None:
    (cycle,) = pause_cycles(ring("{a: {classes: [3], alpha: 0.5, lossless: {}}}"))
    assert cycle.startswith("buffers: s-")
    assert "class 3" in cycle
    assert pause_cycles(ring("{a: {classes: [4], lossless: {}}, b: {classes: [3], size: 20 kB}}")) == []
