"""What PAUSE needs above XOFF, against sums by hand and against the simulator."""

from __future__ import annotations

import pytest

from weirlab.analysis.headroom import short_headrooms
from weirlab.analysis.limits import cut_off_gains, odd_parameters
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
SOURCE = {"kind": "constant", "load": "20 %", "frame_size": "1500 B"}
# 0.4 us, 1.2 us for a frame on the way back, 51.2 ns, twice 0.5 us and 1 us are 3.6512 us or 4564 B; then the
# frame that has begun. Three neighbours, and the frame above XOFF.
NEED = 3 * (4564 + 1500) + 1500


def star(room: int) -> Scenario:
    limits = {"queues.hot.at": "switch-0->*", "queues.hot.limit": f"{100_000 + room} B"}
    return loads(STAR, limits)


def test_the_need_is_the_sum_over_the_neighbours() -> None:
    (short,) = short_headrooms(star(10_000))
    assert (short.need_bytes, short.room_bytes) == (NEED, 10_000)
    assert "up to 19.7 kB can come" in str(short)


def test_only_queues_that_traffic_comes_to_are_told_of() -> None:
    (short,) = short_headrooms(star(10_000))
    assert (short.port, short.queues) == ("switch-0->host-3", 1)
    (both_ways,) = short_headrooms(star(10_000).assign({"traffic.load.pattern": {"kind": "uniform"}}))
    assert both_ways.queues == 1
    everybody = {"from": "host-*", "to": "host-*", "pattern": {"kind": "uniform"}, "source": SOURCE}
    (all_of_them,) = short_headrooms(star(10_000).assign({"traffic.load": everybody}))
    assert all_of_them.queues == 4
    reno = {"kind": "tcp", "congestion_control": {"kind": "reno"}}
    tcp = {"from": "host-0", "to": "host-3", "transport": reno, "source": {"kind": "bulk"}}
    (acknowledged,) = short_headrooms(star(10_000).assign({"traffic.load": tcp}))
    assert acknowledged.queues == 2, "acknowledgements go back"


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


def test_a_notification_that_is_longer_than_the_data_is_the_frame_that_pause_waits_for() -> None:
    """2000 B take 0.4 us longer than 1500 B: three neighbours send 500 B more; so may frames begun."""
    notification = {"frame_size": "2000 B"}
    point = {"at": "switch-0->host-3", "q_eq": "60 kB", "notification": notification}
    scheme = {"congestion_point": point, "reaction_point": {"at": "@hosts"}}
    (plain,) = short_headrooms(star(10_000))
    (behind,) = short_headrooms(star(10_000).assign({"control.qcn": scheme}))
    assert behind.need_bytes == plain.need_bytes + 3 * (500 + 500) + 500
    assert "(more where PAUSE frames wait behind several notifications): frames may be lost" in str(behind)
    assert "notifications" not in str(plain)
    (short,) = short_headrooms(
        star(10_000).assign({"control.qcn": scheme, "control.qcn.congestion_point.notification": None})
    )
    assert short.need_bytes == plain.need_bytes
    assert short.behind_notifications
    (beside,) = short_headrooms(
        star(10_000).assign(
            {"control.qcn": scheme, "control.qcn.congestion_point.notification.lane": "beside"}
        )
    )
    assert str(beside) == str(plain)


def test_gains_that_take_more_than_a_rate_has_are_told() -> None:
    assert cut_off_gains(load("bcn")) == cut_off_gains(load("qcn")) == cut_off_gains(star(NEED)) == []
    # (1 + 2 w) q_eq = 80 frames: half of it takes all.
    (told,) = cut_off_gains(load("bcn", {"control.bcn.reaction_point.gd": 0.025}))
    assert "Fb of 40 and more (80 are possible)" in told
    (told,) = cut_off_gains(load("qcn", {"control.qcn.reaction_point.gd": 0.02}))
    assert "feedback of 25 and more (63 are possible) counts alike" in told


def test_what_is_legal_and_odd_is_told() -> None:
    for name in ("bcn", "bcn-stop-pause", "qcn", "dcqcn", "pause-victim"):
        assert odd_parameters(load(name)) == []
    sender, point = "control.bcn.reaction_point", "control.bcn.congestion_point"
    (told,) = odd_parameters(load("bcn", {f"{sender}.gi": 0}))
    assert told.endswith("gi: is 0: rates grow by drift alone")
    (told,) = odd_parameters(load("bcn-no-drift", {f"{sender}.gi": 0}))
    assert "never, and stay limited for good" in told
    assert odd_parameters(load("bcn", {f"{point}.sample_every": "1500 B"})) == []
    (told,) = odd_parameters(load("bcn", {f"{point}.sample_every": "1 B"}))
    assert "1 B is less than a frame has (1.5 kB): such a frame is sampled each time" in told
    (told,) = odd_parameters(star(NEED).assign({"control.pause.all.frame_size": "46 B"}))
    assert told == "control.pause.all.frame_size: 46 B is less than the shortest frame of Ethernet, 64 B"
