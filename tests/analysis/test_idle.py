"""Congestion control that does not act is told of; what the simulator does then."""

from __future__ import annotations

from typing import Any

import pytest

from weirlab.analysis.idle import idle_control
from weirlab.errors import ScenarioError
from weirlab.runs import simulate
from weirlab.scenario import Scenario, load, loads

STAR = """\
weirlab: 1
name: idle
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.1 us, framing: none}}
queues: {all: {at: "switch-0->*", kind: drop-tail, limit: 150 kB}}
traffic:
  load: {from: "host-[0-2]", to: host-3, source: {kind: poisson, load: 60 %, frame_size: 1500 B}}
run: {duration: 5 ms}
"""
PAUSE = {"at": "@switches", "xoff": "60 kB", "xon": "50 kB"}
BCN = {
    "congestion_point": {"at": "switch-0->*", "q_eq": "16 frames", "frame_size": "1500 B"},
    "reaction_point": {"at": "@hosts", "gi": 12.42, "gd": 6.09e-3, "ru": "1 Mbit/s"},
}
QCN = {"congestion_point": {"at": "switch-0->*"}, "reaction_point": {"at": "@hosts"}}
RAMP = {"at": "switch-0->*", "k_min": "40 kB", "k_max": "100 kB", "p_max": "10 %"}
DCQCN = {"marking": RAMP, "reaction_point": {"at": "@hosts"}}
SCHEMES = {"bcn": BCN, "qcn": QCN, "dcqcn": DCQCN}


def star(control: dict[str, Any]) -> Scenario:
    return loads(STAR, {"control": control})


def lost(scenario: Scenario) -> int:
    return int(simulate(scenario, [1], threads=1)["ports"].get_column("drops").sum())


def changed(name: str, path: str, value: Any) -> Scenario:
    return star({name: SCHEMES[name]}).assign({f"control.{name}.{path}": value})


def test_a_pause_that_ends_before_it_is_repeated_is_told_of_and_loses_frames() -> None:
    lapses = star({"pause": {"all": {**PAUSE, "quanta": 10, "refresh": "100 us"}}})
    (told,) = idle_control(lapses)
    assert told.startswith("control.pause.all.quanta: 10 quanta end after 512 ns on switch-0->host-")
    assert "are repeated after 'refresh' (100 us)" in told
    assert lost(lapses) > 1000
    (never,) = idle_control(star({"pause": {"all": {**PAUSE, "quanta": 1000}}}))
    assert "are not repeated" in never


def test_a_pause_that_lasts_until_it_is_repeated_is_not_told_of_and_loses_nothing() -> None:
    # 2000 quanta are 102.4 us; a frame in transmission ends first, 1.2 us.
    lasts = star({"pause": {"all": {**PAUSE, "quanta": 2000, "refresh": "100 us"}}})
    assert idle_control(lasts) == idle_control(star({"pause": {"all": PAUSE}})) == []
    assert lost(lasts) == 0
    assert len(idle_control(star({"pause": {"all": {**PAUSE, "quanta": 2000, "refresh": "102 us"}}}))) == 1


@pytest.mark.parametrize("name", SCHEMES)
def test_reaction_points_that_only_receive_are_told_of(name: str) -> None:
    assert idle_control(star({name: SCHEMES[name]})) == []
    assert idle_control(changed(name, "reaction_point.at", ["host-2", "host-3"])) == []
    (told,) = idle_control(changed(name, "reaction_point.at", "host-3"))
    assert told == (
        f"control.{name}.reaction_point.at: none of these hosts sends anything: no rate is ever limited"
    )


@pytest.mark.parametrize("name", SCHEMES)
def test_queues_that_no_traffic_comes_to_are_told_of(name: str) -> None:
    part = "marking" if name == "dcqcn" else "congestion_point"
    (told,) = idle_control(changed(name, f"{part}.at", "switch-0->host-0"))
    assert told.startswith(f"control.{name}.{part}.at: no traffic comes to the queue of any of these ports")


@pytest.mark.parametrize("name", SCHEMES)
def test_least_rates_that_leave_nothing_to_decrease_are_told_of(name: str) -> None:
    at_line = changed(name, "reaction_point.min_rate", "10 Gbit/s")
    (told,) = idle_control(at_line)
    assert told.endswith("reaction_point.min_rate: is the line rate (10 Gbit/s): no rate is ever less")
    assert lost(at_line) > 1000


def test_limiters_that_begin_above_the_rate_that_removes_them_are_told_of() -> None:
    (told,) = idle_control(changed("bcn", "reaction_point.removal_rate", "4.9 Gbit/s"))
    assert "is below the rate of a new limiter (10 Gbit/s)" in told
    begins = changed("bcn", "reaction_point.initial_rate", "4.9 Gbit/s")
    assert idle_control(begins.assign({"control.bcn.reaction_point.removal_rate": "4.9 Gbit/s"})) == []


@pytest.mark.parametrize("name", ["bcn", "bcn-stop-pause", "qcn", "dcqcn", "pause-victim", "incast"])
def test_the_ready_made_scenarios_act(name: str) -> None:
    assert idle_control(load(name)) == []


def test_a_drift_that_is_faster_than_frames_is_refused() -> None:
    drift = "control.bcn.reaction_point.drift"
    with pytest.raises(ScenarioError) as caught:
        load("bcn", {drift: {"step": "1 bit/s", "every": "1 ps"}})
    assert "drift.every: is less than the shortest frame, 64 B, takes on the link (51.2 ns)" in str(
        caught.value
    )
    assert load("bcn", {f"{drift}.every": "51.2 ns"})
