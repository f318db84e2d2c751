"""What PAUSE needs above XOFF, against sums by hand and against the simulator."""

from __future__ import annotations

import pytest

from weirlab.analysis.headroom import short_headrooms
from weirlab.analysis.limits import cut_off_gains
from weirlab.runs import simulate
from weirlab.scenario import Scenario, load, loads

STAR = """\
weirlab: 1
name: headroom
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us, framing: none}}
queues: {hot: {at: switch-0->host-3, kind: drop-tail, limit: 150 kB}}
control:
  pause: {all: {at: switch-0, xoff: 100 kB, xon: 90 kB, delay: 0.4 us}}
  responses: {hosts: {at: "@hosts", pause: 1 us}}
traffic:
  load: {from: "host-[0-2]", to: host-3, source: {kind: constant, load: 100 %, frame_size: 1500 B}}
run: {duration: 2 ms}
"""
# 0.4 us, 1.2 us for a frame on the way back, 51.2 ns, twice 0.5 us and 1 us are 3.6512 us or 4564 B; then the
# frame that has begun. Three neighbours, and the frame above XOFF.
NEED = 3 * (4564 + 1500) + 1500


def star(room: int) -> Scenario:
    limits = {"queues.hot.at": "switch-0->*", "queues.hot.limit": f"{100_000 + room} B"}
    return loads(STAR, limits)


def test_the_need_is_the_sum_over_the_neighbours() -> None:
    (short,) = short_headrooms(star(10_000))
    assert (short.need_bytes, short.room_bytes, short.queues) == (NEED, 10_000, 4)
    assert "up to 19.7 kB can come" in str(short)


def test_a_queue_that_holds_the_need_is_not_told_of_and_loses_nothing() -> None:
    assert short_headrooms(star(NEED)) == []
    assert simulate(star(NEED), [1])["ports"].get_column("drops").sum() == 0


def test_much_less_than_the_need_loses_frames() -> None:
    assert simulate(star(NEED // 4), [1])["ports"].get_column("drops").sum() > 0


def test_queues_without_a_limit_and_scenarios_without_pause_need_nothing() -> None:
    assert (
        short_headrooms(loads(STAR, {"queues.hot.at": "switch-0->*", "queues.hot.limit": "unlimited"})) == []
    )
    assert short_headrooms(load("bcn")) == []


@pytest.mark.parametrize("name", ["bcn-pause", "pause-victim"])
def test_the_published_thresholds_leave_less_than_is_needed(name: str) -> None:
    (short,) = short_headrooms(load(name))
    assert (short.port, short.room_bytes) == ("cs->es-4", 10_000)
    assert short.need_bytes > 2 * short.room_bytes


def test_gains_that_take_more_than_a_rate_has_are_told() -> None:
    assert cut_off_gains(load("bcn")) == cut_off_gains(load("qcn")) == cut_off_gains(star(NEED)) == []
    # (1 + 2 w) q_eq = 80 frames: half of it takes all.
    (told,) = cut_off_gains(load("bcn", {"control.bcn.reaction_point.gd": 0.025}))
    assert "Fb of 40 and more (80 are possible)" in told
    (told,) = cut_off_gains(load("qcn", {"control.qcn.reaction_point.gd": 0.02}))
    assert "feedback of 25 and more (63 are possible) counts alike" in told
