"""Congestion control in scenario files: what it becomes, what is said of mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario, load, loads
from weirlab.scenario.network.layout import layout_of, plan_network
from weirlab.scenario.resolve.control import resolve_control

BASE = """\
weirlab: 1
name: control
network:
  kind: graph
  link: {rate: 10 Gbit/s, delay: 0.5 us, framing: none}
  nodes: {ep: {kind: host, count: 3, response: 1 us}, sw: {kind: switch, count: 2}}
  links: {left: {join: ["ep-[0-1]", sw-0]}, right: {join: [ep-2, sw-1]}, trunk: {join: [sw-0, sw-1]}}
traffic:
  load: {from: "ep-[0-1]", to: ep-2, source: {kind: poisson, load: 40 %, frame_size: 1500 B}}
run: {duration: 1 ms}
"""
BCN = """\
control:
  bcn:
    congestion_point: {at: sw-0->sw-1, q_eq: 16 frames, frame_size: 1500 B}
    severe: {above: 75 frames, action: stop}
    reaction_point: {at: "ep-[0-1]", gi: 12.42, gd: 6.09e-3, ru: 1 Mbit/s}
"""
QCN = """\
control:
  qcn:
    congestion_point: {at: sw-0->sw-1}
    reaction_point: {at: "@hosts"}
"""
DCQCN = """\
control:
  dcqcn:
    marking: {at: "sw-*->*", k_min: 40 kB, k_max: 100 kB, p_max: 10 %}
    reaction_point: {at: "@hosts"}
"""
PAUSE = """\
control:
  pause:
    all: {at: "@switches", xoff: 140 kB, xon: 130 kB}
    core: {at: sw-1, xoff: 100 kB, xon: 90 kB, quanta: 65535, refresh: 1 ms}
"""


def resolved(scenario: Scenario) -> dict[str, Any]:
    """The section `control` of the spec."""
    assert scenario.network is not None
    spec = resolve_control(scenario, layout_of(plan_network(scenario.network).spec))
    return dict(json.loads(spec.json()))


def complaints(text: str, assign: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(BASE + text, assign, file="f.yaml")
    return str(caught.value).splitlines()


def test_nothing_is_on_unless_it_is_asked_for() -> None:
    plain = loads(BASE, {"network.nodes.ep.response": None})
    nothing = {"bcn": None, "qcn": None, "dcqcn": None, "pause": [], "responses": []}
    assert resolved(plain) == nothing


@pytest.mark.parametrize("assign", [{}, {"control.qcn.congestion_point.sampling": {"kind": "uniform"}}])
def test_samples_of_qcn_spread_by_15_percent_also_where_their_kind_is_said(
    assign: dict[str, Any],
) -> None:
    point = resolved(loads(BASE + QCN, assign))["qcn"]["congestion_point"]
    assert point["sampling"] == {"kind": "uniform", "jitter": 0.15}


def test_bcn_becomes_ids_bytes_and_rates() -> None:
    bcn = resolved(loads(BASE + BCN))["bcn"]
    point, sender = bcn["congestion_point"], bcn["reaction_point"]
    assert len(point["ports"]) == 1
    assert point["q_eq_bytes"] == 16 * 1500
    assert point["unit_bytes"] == 1500
    assert point["severe"] == {"above_bytes": 112_500, "action": "stop"}
    assert point["sampling"] == {"kind": "uniform", "jitter": 1.0}
    assert sender["hosts"] == [0, 1]
    assert sender["ru_bps"] == 10**6
    assert sender["drift"] is None
    limiter = {"queue": "unlimited", "pacing_jitter": 0.15, "fifo_frames": 0}
    assert sender["limiter"] == limiter | {"initial_credit": None, "most_credit": None}
    stop = sender["stop"]
    assert (stop["t_max_ps"], stop["r_min_bps"], stop["restart"]) == (
        100 * 10**6,
        10**9,
        "lesser-of-r-min-and-before",
    )


def test_feedback_may_count_pages_where_thresholds_count_frames() -> None:
    point = resolved(loads(BASE + BCN, {"control.bcn.congestion_point.unit": "64 B"}))["bcn"][
        "congestion_point"
    ]
    assert (point["unit_bytes"], point["q_eq_bytes"]) == (64, 24_000)


def test_a_switch_obeys_the_last_rule_of_pause_that_names_it() -> None:
    rules = resolved(loads(BASE + PAUSE))["pause"]
    assert [(rule["nodes"], rule["xoff_bytes"], rule["quanta"]) for rule in rules] == [
        ([3], 140_000, None),
        ([4], 100_000, 65535),
    ]
    assert rules[1]["refresh_ps"] == 10**9


def test_a_rule_that_no_switch_obeys_any_more_is_left_out() -> None:
    rules = resolved(loads(BASE + PAUSE, {"control.pause.core.at": "@switches"}))["pause"]
    assert [rule["xoff_bytes"] for rule in rules] == [100_000]


def test_hosts_respond_as_the_graph_says_unless_control_says_otherwise() -> None:
    entry = {"quick": {"at": "ep-0", "pause": "10 ns", "notification": "20 ns"}}
    responses = resolved(loads(BASE, {"control": {"responses": entry}}))["responses"]
    assert sorted(responses, key=lambda response: response["nodes"]) == [
        {"nodes": [0], "pause_ps": 10_000, "notification_ps": 20_000},
        {"nodes": [1, 2], "pause_ps": 10**6, "notification_ps": 10**6},
    ]


@pytest.mark.parametrize("text", [BCN, QCN, DCQCN, PAUSE], ids=["bcn", "qcn", "dcqcn", "pause"])
def test_every_scheme_is_a_legal_spec_and_is_written_out_as_the_same(text: str) -> None:
    scenario = loads(BASE + text)
    spec = json.loads(scenario.resolve().spec_json)
    assert spec["control"] == resolved(scenario)
    assert loads(scenario.to_yaml()) == scenario


@pytest.mark.parametrize(
    "network",
    [
        {"kind": "star", "hosts": 4, "link": {"rate": "10 Gbit/s"}},
        {"kind": "fat-tree", "k": 4, "link": {"rate": "10 Gbit/s"}},
        {
            "kind": "dumbbell",
            "pairs": 3,
            "access": {"rate": "10 Gbit/s"},
            "bottleneck": {"rate": "10 Gbit/s"},
        },
    ],
    ids=["star", "fat-tree", "dumbbell"],
)
@pytest.mark.parametrize("text", [BCN, QCN, DCQCN, PAUSE], ids=["bcn", "qcn", "dcqcn", "pause"])
def test_every_scheme_works_in_every_kind_of_network(network: dict[str, Any], text: str) -> None:
    names = "left-*" if network["kind"] == "dumbbell" else "host-*"
    changes: dict[str, Any] = {
        "network": network,
        "traffic.load.from": names,
        "traffic.load.to": "right-0" if names == "left-*" else "host-0",
    }
    scheme = next(iter(loads(BASE + text).control.model_dump(exclude_defaults=True)))  # type: ignore[union-attr]
    if scheme == "pause":
        changes["control.pause"] = {"all": {"at": "@switches", "xoff": "140 kB", "xon": "130 kB"}}
    else:
        point = "marking" if scheme == "dcqcn" else "congestion_point"
        changes[f"control.{scheme}.{point}.at"] = "@switches->@hosts"
        changes[f"control.{scheme}.reaction_point.at"] = "@hosts"
    spec = json.loads(loads(BASE + text, changes).resolve().spec_json)
    assert spec["control"][scheme]


def disciplines(scenario: Scenario) -> dict[int, Any]:
    """What waits at each port of a rule, and how; of several rules for a port the last counts."""
    rules = json.loads(scenario.resolve().spec_json)["queues"]
    return {port: rule["discipline"] for rule in rules for port in rule["ports"]}


def test_queues_that_mark_for_dcqcn_keep_their_limits() -> None:
    queues = {"trunk": {"kind": "drop-tail", "at": "sw-0->sw-1", "limit": "300 frames"}}
    found = disciplines(loads(BASE + DCQCN, {"queues": queues}))
    marking = {"k_min_bytes": 40_000, "k_max_bytes": 100_000, "p_max": 0.1, "when": "arrival"}
    assert all(discipline["marking"] == marking for discipline in found.values())
    limits = [discipline["limit"] for discipline in found.values()]
    assert (limits.count({"frames": 300}), limits.count({"bytes": 150_000})) == (1, len(limits) - 1)


def test_a_rate_may_recover_by_its_timer_alone() -> None:
    path = "control.dcqcn.reaction_point.recovery."
    phases = {"byte_counter": "none", "fast_recovery": 2, "hyper_after": 1, "hyper_grows": False}
    recovery = resolved(loads(BASE + DCQCN, {path + name: value for name, value in phases.items()}))["dcqcn"][
        "reaction_point"
    ]["recovery"]
    assert (recovery["byte_counter_bytes"], recovery["hyper_grows"]) == (None, False)
    assert (recovery["fast_recovery_stages"], recovery["hyper_after_stages"]) == (2, 1)


MARKS = {"k_min": "30 kB", "when": "departure"}


def test_queues_may_mark_by_themselves() -> None:
    entry = {"kind": "drop-tail", "at": "sw-0->sw-1", "limit": "300 kB", "marking": MARKS}
    scenario = loads(BASE, {"queues": {"trunk": entry}})
    marked = [d["marking"] for d in disciplines(scenario).values() if d["marking"] is not None]
    assert marked == [{"k_min_bytes": 30_000, "k_max_bytes": 30_000, "p_max": 1.0, "when": "departure"}]
    assert loads(scenario.to_yaml()) == scenario
    dcqcn = loads(
        BASE, {"queues": {"trunk": entry}, "control": {"dcqcn": {"reaction_point": {"at": "@hosts"}}}}
    )
    assert disciplines(dcqcn) == disciplines(scenario), "DCQCN is content with them"


SPOILT = {
    "a port that does not exist": (
        BCN.replace("sw-0->sw-1", "sw-0->sw-2"),
        "f.yaml:13:24: control.bcn.congestion_point.at: no port is called 'sw-0->sw-2': "
        "no node is called 'sw-2'; did you mean 'sw-1'?",
    ),
    "a set point in frames of no size": (
        BCN.replace(", frame_size: 1500 B", ", unit: 64 B"),
        "f.yaml:13:40: control.bcn.congestion_point.q_eq: needs the size of a frame: write 'frame_size', too",
    ),
    "feedback without a unit": (
        BCN.replace("16 frames, frame_size: 1500 B", "24 kB").replace("75 frames", "112.5 kB"),
        "f.yaml:13:5: control.bcn.congestion_point: Fb in which unit? write 'frame_size: 1500 B', "
        "or a 'unit' such as 64 B",
    ),
    "more frames behind a limiter than can be counted": (
        QCN.replace('at: "@hosts"', 'at: "@hosts", fifo: 4294967296'),
        "f.yaml:14:36: control.qcn.reaction_point.fifo: less than 2^32 is needed (got '4294967296')",
    ),
    "credit of limiters that have none": (
        QCN.replace('at: "@hosts"', 'at: "@hosts", credit: {cap: 2}'),
        "f.yaml:14:45: control.qcn.reaction_point.credit.cap: limiters have credit with shared memories, "
        "adapters or slow outputs, and in the slotted engine: leave 'credit' out",
    ),
    "a switch as a sender": (
        QCN.replace('"@hosts"', "sw-0"),
        "f.yaml:14:22: control.qcn.reaction_point.at: only hosts can stand here (got sw-0)",
    ),
    "two schemes at once": (
        BCN + QCN.removeprefix("control:\n"),
        "f.yaml:16:3: control.qcn: cannot be combined with 'bcn'; senders obey one scheme",
    ),
    "a host that sends PAUSE": (
        PAUSE.replace('"@switches"', "ep-0"),
        "f.yaml:13:11: control.pause.all.at: only switches can stand here (got ep-0)",
    ),
    "XON above XOFF": (
        PAUSE.replace("xon: 130 kB", "xon: 150 kB"),
        "f.yaml:13:42: control.pause.all.xon: is above 'xoff' (140 kB)",
    ),
    "quanta beyond their 16 bits": (
        PAUSE.replace("65535", "65536"),
        "f.yaml:14:48: control.pause.core.quanta: a pause is 1 to 65535 quanta long (got 65536)",
    ),
    "a level of PAUSE that no queue reaches": (
        PAUSE.replace("{at: sw-1, xoff: 100 kB", "{at: sw-1, xoff: 400 kB"),
        "f.yaml:14:22: control.pause.core.xoff: is never exceeded: the longest of its queues, that of "
        "sw-1->ep-2, holds 150 kB",
    ),
    "a PAUSE that is repeated before it has left": (
        PAUSE.replace("refresh: 1 ms", "refresh: 1 ps"),
        "f.yaml:14:63: control.pause.core.refresh: is not longer than a PAUSE frame takes on the link "
        "(51.2 ns)",
    ),
    "a set point that the queue does not hold": (
        BCN.replace("16 frames", "200 frames").replace("75 frames, action: stop", "1 MB, action: none"),
        "f.yaml:13:40: control.bcn.congestion_point.q_eq: is never exceeded: the queue of "
        "sw-0->sw-1 holds 150 kB",
    ),
    "severe congestion that the queue does not hold": (
        BCN.replace("75 frames", "300 kB")
        + 'queues: {short: {kind: drop-tail, at: "sw-*->*", limit: 80 frames}}\n',
        "f.yaml:14:14: control.bcn.severe.above: is never exceeded: the queue of sw-0->sw-1 holds 120 kB",
    ),
    "severe congestion below the set point": (
        BCN.replace("75 frames", "15 frames"),
        "f.yaml:14:14: control.bcn.severe.above: is below the set point, 'q_eq' (16 frames)",
    ),
    "marking thresholds in the wrong order": (
        DCQCN.replace("40 kB", "400 kB"),
        "f.yaml:13:30: control.dcqcn.marking.k_min: is above 'k_max' (100 kB)",
    ),
    "marking at a host": (
        'queues: {q: {at: "ep-*->*", kind: drop-tail, limit: 1 MB, marking: {k_min: 9 kB}}}\n',
        "f.yaml:11:14: queues.q.at: only ports of switches mark (got ep-0->sw-0, ep-1->sw-0, ep-2->sw-1)",
    ),
    "marking that begins above its end": (
        'queues: {q: {at: "sw-*->*", kind: drop-tail, limit: 1 MB, marking: {k_min: 9 kB, k_max: 8 kB}}}\n',
        "f.yaml:11:69: queues.q.marking.k_min: is above 'k_max' (8 kB)",
    ),
    "marking above all that a queue holds": (
        'queues: {q: {at: "sw-*->*", kind: drop-tail, limit: 9 kB, marking: {k_min: 9 kB}}}\n',
        "f.yaml:11:69: queues.q.marking.k_min: is never exceeded: the longest of its queues, that of "
        "sw-0->ep-0, holds 9 kB",
    ),
    "DCQCN without anybody who marks": (
        'control: {dcqcn: {reaction_point: {at: "@hosts"}}}\n',
        "f.yaml:11:11: control.dcqcn: no queue marks: add 'marking', such as "
        "{at: '@switches->*', k_min: 40 kB, k_max: 160 kB, p_max: 20 %}",
    ),
    "two rules of marking for one queue": (
        DCQCN + 'queues: {q: {at: "sw-0->sw-1", kind: drop-tail, limit: 1 MB, marking: {k_min: 9 kB}}}\n',
        "f.yaml:13:15: control.dcqcn.marking.at: sw-0->sw-1 marks already, as 'queues' says",
    ),
    "a least rate above that of the line": (
        BCN.replace("ru: 1 Mbit/s", "ru: 1 Mbit/s, min_rate: 20 Gbit/s"),
        "f.yaml:15:76: control.bcn.reaction_point.min_rate: is above the line rate of ep-0->sw-0 "
        "(10 Gbit/s), which would count in its place",
    ),
    "a restart above the rate of the line": (
        BCN.replace("ru: 1 Mbit/s", "ru: 1 Mbit/s, stop: {r_min: 20 Gbit/s}"),
        "f.yaml:15:83: control.bcn.reaction_point.stop.r_min: is above the line rate of ep-0->sw-0 "
        "(10 Gbit/s), which would count in its place",
    ),
    "a decrease of nothing": (
        BCN.replace("gd: 6.09e-3", "gd: 0"),
        "f.yaml:15:49: control.bcn.reaction_point.gd: is more than 0, or nobody would slow down (got 0)",
    ),
    "a PAUSE frame that is longer than any": (
        PAUSE.replace("xon: 90 kB", "xon: 90 kB, frame_size: 10 kB"),
        "f.yaml:14:48: control.pause.core.frame_size: control frames have 64 B or little more, and at most "
        "2 kB (got 10 kB)",
    ),
    "a notification that is longer than any frame": (
        DCQCN.replace("dcqcn:", "dcqcn:\n    notification: {frame_size: 10 kB}"),
        "f.yaml:13:20: control.dcqcn.notification.frame_size: control frames have 64 B or little more, and "
        "at most 2 kB (got 10 kB)",
    ),
    "an action that does not exist": (
        BCN.replace("action: stop", "action: halt"),
        "f.yaml:14:32: control.bcn.severe.action: write 'none', 'stop' or 'max' (got 'halt')",
    ),
    "a restart rule that does not exist": (
        BCN.replace("ru: 1 Mbit/s", "ru: 1 Mbit/s, stop: {restart: rmin}"),
        "f.yaml:15:83: control.bcn.reaction_point.stop.restart: write 'r-min', "
        "'lesser-of-r-min-and-before' or 'before' (got 'rmin'); did you mean 'r-min'?",
    ),
    "a factor that the simulator refuses": (
        BCN.replace("ru: 1 Mbit/s", "ru: 1 Mbit/s, stop: {t_max_factor: 0.5}"),
        "f.yaml:15:83: control.bcn.reaction_point.stop.t_max_factor: a number, at least 1 (got 0.5)",
    ),
    "a series of a host without a limiter": (
        BCN + 'record: {rates: {limiter: "ep-*", every: 100 us}}\n',
        "f.yaml:16:18: record.rates.limiter: ep-2 has no rate limiter: it is no reaction point of 'control'",
    ),
    "a percentile of a queue that is not recorded": (
        PAUSE + "measure: {p: {kind: queue-percentile, of: sw-0->sw-1, percentile: 99 %}}\n",
        "f.yaml:15:11: measure.p: needs the levels of 'sw-0->sw-1'; add an entry such as "
        "{levels: sw-0->sw-1} to 'record'",
    ),
    "a percentile over another time than the record": (
        PAUSE
        + "measure: {p: {kind: queue-percentile, of: sw-0->sw-1, percentile: 99 %, window: 0 ms .. 1 ms}}\n"
        + "record: {q: {levels: sw-0->sw-1}}\n",
        "f.yaml:15:73: measure.p.window: is not that of the record of 'sw-0->sw-1' (the whole run)",
    ),
    "a spread of a queue that is not recorded": (
        PAUSE + "measure: {s: {kind: queue-spread, of: sw-0->sw-1}}\n",
        "f.yaml:15:11: measure.s: needs 'sw-0->sw-1' over time; add an entry such as "
        "{queue: sw-0->sw-1, every: 100 us} to 'record'",
    ),
}


@pytest.mark.parametrize(("text", "message"), SPOILT.values(), ids=SPOILT.keys())
def test_a_mistake_is_told_with_its_place(text: str, message: str) -> None:
    assert message in complaints(text)


@pytest.mark.parametrize("limit", ["500 kB", "400 frames", "unlimited"])
def test_a_threshold_may_be_what_one_of_its_queues_reaches(limit: str) -> None:
    changes = {"queues": {"trunk": {"kind": "drop-tail", "at": "sw-1->sw-0", "limit": limit}}}
    text = PAUSE.replace("{at: sw-1, xoff: 100 kB", "{at: sw-1, xoff: 400 kB")
    assert [rule["xoff_bytes"] for rule in resolved(loads(BASE + text, changes))["pause"]] == [
        140_000,
        400_000,
    ]


def test_a_mistake_in_control_brings_no_second_one_of_the_records_that_need_it() -> None:
    text = BCN.replace("ru: 1 Mbit/s", "ru: 1 Mbit/s, drift: {step: 0 bit/s, every: 1 ms}")
    (told,) = complaints(text + 'record: {rates: {limiter: "ep-[0-1]", every: 100 us}}\n')
    assert "control.bcn.reaction_point.drift.step" in told


def test_a_bed_without_congestion_points_refuses_them() -> None:
    from weirlab.testbed.refusals import only_the_load

    refused = only_the_load(loads(BASE + BCN), "this bed")
    assert "control: this bed has no congestion points; leave this out" in [
        f"{problem.path}: {problem.message}" for problem in refused
    ]


@pytest.mark.parametrize("drift", ["", "-no-drift"])
@pytest.mark.parametrize("pause", ["", "-pause"])
@pytest.mark.parametrize(
    ("scheme", "action"), [("", "none"), ("-stop", "stop"), ("-max", "max")], ids=["bcn", "stop", "max"]
)
def test_every_published_configuration_is_a_ready_made_scenario(
    scheme: str, action: str, pause: str, drift: str
) -> None:
    scenario = load(f"bcn{scheme}{pause}{drift}")
    control = scenario.control
    assert control is not None
    assert control.bcn is not None
    assert control.bcn.severe is not None
    assert control.bcn.severe.action == action
    assert bool(control.pause) is bool(pause)
    assert (control.bcn.reaction_point.drift is None) is bool(drift)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("control.bcn.congestion_point.q_eq", "9000 frames"),
            "is never exceeded: the memory of a switch holds",
        ),
        (
            ("network.switch.memory.size", "40 frames"),
            "is never exceeded: the memory of a switch holds 40 frames",
        ),
        (("hotspots.hot.window", "4096 us .. 8192 us"), "begins when the run has ended (3.2768 ms)"),
    ],
)
def test_what_can_never_act_beside_a_shared_memory_is_refused(change, message):
    with pytest.raises(ScenarioError) as refused:
        load("zrl-og").assign(dict([change]))
    (problem,) = refused.value.problems
    assert message in problem.message


def test_a_hotspot_with_a_bad_field_is_not_taken_for_a_missing_one():
    with pytest.raises(ScenarioError) as refused:
        load("zrl-og").assign({"hotspots.hot.service": "120 %"})
    assert [problem.path for problem in refused.value.problems] == ["hotspots.hot.service"]
