"""Each kind of congestion management with shared memories and adapters: it works, or is refused in words."""

from __future__ import annotations

import json

import polars as pl
import pytest

import weirlab
from weirlab.analysis.limits import unheard_marks
from weirlab.analysis.memories import short_memories
from weirlab.errors import WeirlabError
from weirlab.runs import Run
from weirlab.scenario import Scenario, load, loads

STAR = """
weirlab: 1
name: mixed
network:
  kind: star
  hosts: 5
  link: {rate: 10 Gbit/s, delay: 100 ns, framing: none}
  switch:
    memory: {kind: shared, size: 200 kB, frame_size: 1250 B, pause: {scope: SCOPE, round_trip: 1 us}}
adapters:
  all: {at: "@hosts", queues: voq-round-robin}
traffic:
  load:
    from: host-[0-3]
    to: host-4
    source: {kind: bursts, load: 60 %, frame_size: 1250 B}
run: {duration: 20 ms, seed: 1}
measure:
  drops: {kind: drops, of: "*->*"}
  busy: {kind: utilisation, of: switch-0->host-4}
"""
RAMP = {"k_min": "5 kB", "k_max": "100 kB", "p_max": "10 %"}
MARKING = {"at": "switch-0->*", "kind": "drop-tail", "limit": "unlimited", "marking": RAMP}
SCHEMES = {
    "qcn": {
        "congestion_point": {"at": "switch-0->*", "q_eq": "26 kB"},
        "reaction_point": {"at": "@hosts"},
    },
    "dcqcn": {"marking": {"at": "switch-0->*", **RAMP}, "reaction_point": {"at": "@hosts"}},
    "bcn": {
        "congestion_point": {
            "at": "switch-0->*",
            "q_eq": "16 frames",
            "frame_size": "1250 B",
            "w": 2,
            "sample_every": "150 kB",
            "sampling": {"kind": "uniform", "jitter": 0.5},
        },
        "reaction_point": {"at": "@hosts", "gi": 12.42, "gd": 6.09e-3, "ru": "1 Mbit/s"},
    },
}
NOTICES = {"qcn": ["qcn"], "dcqcn": ["cnp"], "bcn": ["bcn+", "bcn-"]}
TCP = {
    "traffic.load.source": {"kind": "bulk"},
    "traffic.load.transport": {"kind": "tcp", "congestion_control": {"kind": "cubic"}},
}
ECN = {"queues": {"out": MARKING}, "traffic.load.transport.ecn": True}


def star(*changes: dict[str, object], scope: str = "switch") -> Scenario:
    scenario = loads(STAR.replace("SCOPE", scope))
    return scenario.assign({path: value for change in changes for path, value in change.items()})


def control(scheme: str) -> dict[str, object]:
    return {"control": {scheme: SCHEMES[scheme]}}


def values(run: Run) -> dict[str, float]:
    return dict(run.measures.select("measure", "value").iter_rows())


def counts(run: Run) -> dict[str, int]:
    """Control frames by kind, and decreases of limiters."""
    sent = run.records.named("control_frames").group_by("kind_name").agg(pl.col("frames").sum())
    return {**dict(sent.iter_rows()), "decreases": run.records["reaction_points"]["decreases"].sum()}


def waiting(run: Run) -> float:
    """Mean of what the switch holds, in bytes."""
    return run.records["memories"].item(0, "byte_ps") / run.records["runs"].item(0, "end_ps")


@pytest.fixture(scope="module")
def without() -> float:
    run = weirlab.run(star(), threads=1)
    assert values(run)["drops"] == 0
    assert run.records["memories"].item(0, "xoffs") > 100
    return waiting(run)


@pytest.mark.parametrize("scope", ["switch", "input"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_holds_the_memory_low_without_loss(scheme: str, scope: str, without: float) -> None:
    run = weirlab.run(star(control(scheme), scope=scope), threads=1)
    assert values(run)["drops"] == 0
    assert values(run)["busy"] > 0.95
    assert all(counts(run)[kind] > 20 for kind in NOTICES[scheme])
    assert counts(run)["decreases"] > 20
    assert waiting(run) < 0.5 * without


@pytest.mark.parametrize("scheme", ["qcn", "bcn"])
def test_streams_of_tcp_share_memory_and_adapters_with_a_scheme(scheme: str) -> None:
    """A stream waits in its limiter, and the switch stays short."""
    alone, limited = (weirlab.run(star(TCP, *given), threads=1) for given in ((), (control(scheme),)))
    for run in (alone, limited):
        assert values(run)["drops"] == 0
        assert values(run)["busy"] > 0.95
    assert counts(limited)["decreases"] > 20
    assert waiting(limited) < 0.6 * waiting(alone)


def test_streams_of_tcp_heed_the_marks_of_a_shared_memory() -> None:
    run = weirlab.run(star(TCP, ECN), threads=1)
    assert values(run)["drops"] == 0
    assert values(run)["busy"] > 0.95
    assert run.records["marks"]["frames"].sum() > 20
    assert run.records["connections"]["ecn_reductions"].min() > 0
    assert waiting(run) < 0.5 * waiting(weirlab.run(star(TCP), threads=1))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (control("qcn"), "control.qcn: the slotted engine has no QCN"),
        (control("dcqcn"), "control.dcqcn: the slotted engine has no DCQCN"),
        ({"queues": {"out": MARKING}}, "queues: the slotted engine marks no frames"),
        (TCP, "the slotted engine needs traffic with sources of frames, all of one size"),
    ],
)
def test_the_slotted_engine_says_what_it_does_not_have(changes: dict[str, object], told: str) -> None:
    with pytest.raises(WeirlabError) as caught:
        star({"run.engine": "slotted", "network.link.delay": "0 ns"}, changes).resolve()
    assert told in str(caught.value)


@pytest.mark.parametrize("queues", ["fifo", "voq-round-robin"])
@pytest.mark.parametrize("back", [False, True], ids=["one way", "both ways"])
def test_notifications_among_the_data_are_as_good_as_before_it(back: bool, queues: str) -> None:
    """The receiver's own data, to hosts that it notifies and limited itself, does not hold them."""
    source = {"kind": "bursts", "load": "60 %", "frame_size": "1250 B"}
    both_ways = {
        "traffic.back": {"from": "host-4", "to": "host-0", "source": source},
        "traffic.beside": {"from": "host-1", "to": "host-0", "source": source},
    }
    changes = (control("dcqcn"), both_ways if back else {}, {"adapters.all.queues": queues})
    before, among = (
        weirlab.run(star(*changes, {"control.dcqcn.notification.lane": lane}), threads=1)
        for lane in ("control", "data")
    )
    for run in (before, among):
        assert values(run)["drops"] == 0
        assert values(run)["busy"] > 0.9
        assert counts(run)["cnp"] > 100
    for count in ("cnp", "decreases"):
        assert counts(among)[count] == pytest.approx(counts(before)[count], rel=0.15)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("field", "value"), [("queue", "0 frames"), ("fifo", 3)])
def test_queues_of_limiters_are_refused(field: str, value: object, scheme: str) -> None:
    with pytest.raises(WeirlabError) as caught:
        star(control(scheme), {f"control.{scheme}.reaction_point.{field}": value}).resolve()
    assert f"control.{scheme}.reaction_point.{field}: networks with shared memories" in str(caught.value)
    assert f"leave '{field}' out" in str(caught.value)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_limiters_save_as_much_as_they_are_given(scheme: str) -> None:
    credit = f"control.{scheme}.reaction_point.credit"
    spec = json.loads(star(control(scheme), {credit: {"initial": 2, "cap": 3.5}}).resolve().spec_json)
    limiter = spec["control"][scheme]["reaction_point"]["limiter"]
    assert (limiter["initial_credit"], limiter["most_credit"]) == (2.0, 3.5)
    with pytest.raises(WeirlabError, match=rf"{scheme}.reaction_point.credit.initial: 0 to 1 frames.*got 2"):
        star(control(scheme), {f"{credit}.initial": 2}).resolve()


def test_marks_that_nobody_hears_are_noted() -> None:
    (note,) = unheard_marks(star({"queues": {"out": MARKING}}))
    assert note.startswith("queues.out.marking: no traffic is ECN-capable")
    (deaf,) = unheard_marks(star(TCP, control("dcqcn")))
    assert deaf.startswith("control.dcqcn: no traffic is ECN-capable")
    assert "'ecn: true'" in deaf
    assert (
        unheard_marks(star(control("dcqcn"))) == unheard_marks(star(TCP, ECN)) == unheard_marks(star()) == []
    )
    run = weirlab.run(star(TCP, control("dcqcn")), threads=1)
    assert run.records["marks"].is_empty()


def test_a_watermark_that_forgets_the_way_of_pause_is_noted_and_loses_frames() -> None:
    """Five links of 2 x 100 ns at 10 Gbit/s bring 5 x 250 B more than the frames that are begun."""
    forgets = star({"network.switch.memory.pause.round_trip": None})
    (short,) = short_memories(forgets)
    assert (short.need_bytes, short.room_bytes) == (5 * (250 + 1250), 5 * 1250)
    assert "write 'round_trip: 200 ns' or more" in str(short)
    assert values(weirlab.run(forgets, threads=1))["drops"] > 0
    assert short_memories(star()) == []
    (own,) = short_memories(star({"network.switch.memory.pause.round_trip": None}, scope="input"))
    assert (own.need_bytes, own.room_bytes) == (250 + 1250, 1250)


@pytest.mark.parametrize(
    "name", ["zrl-og", "zrl-og-8", "zrl-ig", "zrl-none", "zrl-egress", "zrl-128-2", "zrl-128-3"]
)
def test_the_memories_of_the_benchmark_hold_what_can_come(name: str) -> None:
    assert short_memories(load(name)) == []
