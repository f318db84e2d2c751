"""Thresholds that a queue can never meet."""

from __future__ import annotations

import pytest

from weirlab.analysis.thresholds import unmet_thresholds
from weirlab.runs import simulate
from weirlab.scenario import Scenario, load, loads

STAR = """\
weirlab: 1
name: star
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, framing: none}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: LIMIT}}
control: {CONTROL}
traffic:
  load: {from: "host-[0-2]", to: host-3, source: {kind: constant, load: 60 %, frame_size: 1500 B}}
run: {duration: 1 ms}
"""
BCN = (
    "bcn: {congestion_point: {at: switch-0->host-3, q_eq: 24 kB, unit: 1500 B, sample_every: 15 kB}, "
    "severe: {above: 75 kB, action: stop}, "
    'reaction_point: {at: "@hosts", gi: 1, gd: 0.005, ru: 1 Mbit/s}}'
)
QCN = 'qcn: {congestion_point: {at: switch-0->host-3, q_eq: 24 kB}, reaction_point: {at: "@hosts"}}'
DCQCN = (
    'dcqcn: {marking: {at: "switch-0->*", k_min: 40 kB, k_max: 80 kB, p_max: 10 %}, '
    'reaction_point: {at: "@hosts"}}'
)
PAUSE = "pause: {all: {at: switch-0, xoff: 60 kB, xon: 50 kB}}"
TINY = BCN.replace("24 kB", "1 kB").replace(" severe: {above: 75 kB, action: stop},", "")
MARKS = DCQCN.replace("40 kB", "1 kB")
SMALL_PAUSE = "pause: {all: {at: switch-0, xoff: 1 kB, xon: 500 B}}"


def star(limit: str, *control: str) -> Scenario:
    return loads(STAR.replace("LIMIT", limit).replace("CONTROL", ", ".join(control)))


@pytest.mark.parametrize(
    ("limit", "control", "told"),
    [
        ("100 kB", BCN, []),
        ("1499 B", TINY, ["control.bcn.congestion_point.q_eq: its queue holds 1.499 kB, less than a frame"]),
        ("1500 B", TINY, []),
        ("1400 B", MARKS, ["control.dcqcn.marking.k_min: its queues hold at most 1.4 kB, less than a frame"]),
        (
            "1400 B",
            SMALL_PAUSE,
            ["control.pause.all.xoff: its queues hold at most 1.4 kB, less than a frame"],
        ),
        ("unlimited", QCN, []),
    ],
)
def test_thresholds_of_queues_that_hold_no_frame_are_told(limit: str, control: str, told: list[str]) -> None:
    scenario = star(limit, control)
    found = unmet_thresholds(scenario)
    assert len(found) == len(told)
    for sentence, begin in zip(found, told, strict=True):
        assert sentence.startswith(begin)
    if told:
        records = simulate(scenario, [1], threads=1)
        of_switch = records["ports"].join(records["port_names"], on="port").filter(from_kind="switch")
        assert of_switch.get_column("queue_max_bytes").max() == 0
        assert records["control_frames"].is_empty()


def test_marks_that_are_certain_only_above_what_the_queues_hold_are_told() -> None:
    (told,) = unmet_thresholds(star("60 kB", DCQCN))
    # Half of the way from 40 to 80 kB, and half of 10 %.
    assert told == (
        "control.dcqcn.marking.k_max: 80 kB is never reached: its queues hold at most 60 kB, so at most 5 % "
        "of the frames are marked, and then frames are dropped"
    )
    assert unmet_thresholds(star("40 frames", DCQCN)) == [told], "40 frames of 1500 B"
    assert unmet_thresholds(star("80 kB", DCQCN)) == []
    assert unmet_thresholds(star("54 frames", DCQCN)) == []
    assert unmet_thresholds(star("unlimited", DCQCN)) == []


def test_thresholds_above_the_level_of_pause_are_told() -> None:
    (told,) = unmet_thresholds(star("200 kB", BCN, PAUSE))
    assert told == (
        "control.bcn.severe.above: 75 kB, and control.pause.all.xoff holds all neighbours from 60 kB on: "
        "a queue hardly gets there"
    )
    records = simulate(star("200 kB", BCN, PAUSE), [1], threads=1)
    kinds = records["control_frames"].join(records["kind_names"], on="kind").get_column("name").to_list()
    assert "bcn(0,0)" not in kinds
    assert "xoff" in kinds
    assert unmet_thresholds(star("200 kB", BCN, PAUSE.replace("60 kB", "75 kB"))) == []


def test_a_set_point_above_the_watermark_of_the_memory_is_told() -> None:
    (told,) = unmet_thresholds(load("zrl-og").assign({"control.bcn.congestion_point.q_eq": "8170 frames"}))
    assert told.startswith(
        "control.bcn.congestion_point.q_eq: 522.88 kB, and network.switch.memory.pause.xoff"
    )
