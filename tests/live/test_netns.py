"""Trials through a real Linux router."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from weirlab.errors import InputError, MissingCapability
from weirlab.searches import ControlledSearch, Irregularity, LoadRange, SearchGoal, run_search
from weirlab.searches.binary import Binary
from weirlab.testbed.linux_router import RECEIVER, Placement
from weirlab.testbed.netns import PORT, NetnsTestbed

pytestmark = pytest.mark.live


def lost(trial) -> int:
    return trial.sent_frames - trial.received_frames


def shape(bed: NetnsTestbed, rate: str) -> None:
    """Let the router's outgoing link carry no more than `rate`: a certain loss, at a rate that is known."""

    def add() -> None:
        from pyroute2 import IPRoute

        with IPRoute() as route:
            (index,) = route.link_lookup(ifname="receiver")
            route.tc("add", "tbf", index, handle="1:", rate=rate, burst=10_000, latency="10ms")

    bed.namespaces["router"].inside(add)


def wire_bytes_per_frame(bed: NetnsTestbed, before: tuple[int, int] | None = None) -> tuple[int, int]:
    """Bytes and frames that the router received from the sender, since `before`."""

    def read() -> tuple[int, int]:
        for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
            name, _, numbers = line.partition(":")
            if name.strip() == "sender":
                columns = [int(number) for number in numbers.split()]
                return columns[0], columns[1]
        raise AssertionError("the router has an interface towards the sender")

    now = bed.namespaces["router"].inside(read)
    return now if before is None else (now[0] - before[0], now[1] - before[1])


def test_frames_of_several_sizes_cross_the_router_in_the_proportion_of_their_weights(trial_spec):
    mix = ((64, 28), (570, 16), (1518, 4))
    with NetnsTestbed(settle_s=0.1, mix=mix) as bed:
        before = wire_bytes_per_frame(bed)
        trial = bed.trial(replace(trial_spec(24_000), frame_size_bytes=354))
        sent_bytes, frames = wire_bytes_per_frame(bed, before)
        with pytest.raises(InputError, match="the testbed sends a mix of 354 B on average"):
            bed.trial(trial_spec(24_000))
    assert trial.sent_frames == trial.received_frames == 7_200
    assert frames == 7_200
    # The interface counts no FCS.
    assert sent_bytes == 7_200 // 12 * (7 * 60 + 4 * 566 + 1 * 1514)


def test_a_low_load_arrives_whole(bed, trial_spec, undisturbed):
    trial = undisturbed(bed, trial_spec(5_000))
    assert trial.intended_frames == 1_500
    assert trial.sent_frames == trial.received_frames == 1_500
    assert (trial.duplicated_frames, trial.reordered_frames) == (0, 0)
    assert trial.loss_ratio == 0.0
    assert trial.offered_load_fps == pytest.approx(5_000, rel=0.01)
    assert 0.4 < trial.effective_duration_s < 1.5


def test_delays_are_those_of_a_path_inside_one_machine(bed, trial_spec):
    delays = bed.trial(trial_spec(2_000)).latency_s
    assert 0.0 < delays["min"] <= delays["p50"] <= delays["p99"] <= delays["max"]
    assert delays["min"] < 1e-3


@pytest.mark.parametrize("size", [64, 65, 512, 1518, 9018])
def test_frames_have_the_size_that_was_asked_for(bed, trial_spec, size):
    before = wire_bytes_per_frame(bed)
    trial = bed.trial(trial_spec(10_000, 0.1, frame_size_bytes=size))
    octets, frames = wire_bytes_per_frame(bed, before)
    fcs = 4
    assert frames == trial.sent_frames, "every frame went through the router alone"
    assert octets == frames * (size - fcs)


def test_a_load_both_ways_arrives_whole_and_each_direction_has_its_counts(bed, trial_spec, undisturbed):
    trial = undisturbed(bed, trial_spec(5_001, directions=2))
    assert trial.sent_frames == trial.received_frames == 1_500
    assert [(each.name, each.sent_frames) for each in trial.per_direction] == [
        ("sender-receiver", 750),
        ("receiver-sender", 750),
    ]
    assert trial.offered_load_fps == pytest.approx(5_001, rel=0.01)


def test_the_direction_that_loses_is_told_from_the_one_that_does_not(bed, trial_spec, undisturbed):
    shape(bed, "20mbit")
    trial = undisturbed(bed, trial_spec(8_000, 1.0, frame_size_bytes=1518, directions=2))
    there, back = trial.per_direction
    assert there.received_frames == pytest.approx(20e6 / (8 * 1514), rel=0.05)
    assert back.loss_ratio == 0.0
    assert trial.loss_ratio == pytest.approx(there.loss_ratio / 2.0)
    assert trial.facts["lost_elsewhere"] == lost(trial)


def test_a_look_ends_a_trial_that_a_whole_budget_would_let_run(bed, trial_spec):
    shape(bed, "20mbit")
    asked = {"frame_size_bytes": 1518, "directions": 2, "loss_budget": 0.05, "look_s": 0.3}
    trial = bed.trial(trial_spec(5_000, 2.0, **asked))
    assert trial.stopped_early
    assert lost(trial) > 0.05 * 1_500, "what was decided is true"
    assert trial.intended_frames < 0.5 * 10_000, "a whole budget lasts for 0.6 s and more"


def test_every_lost_frame_is_found_where_it_was_lost(bed, trial_spec, two_cpus):
    trial = bed.trial(trial_spec(3e6))
    assert trial.unsent_ratio > 0.005 or trial.loss_ratio > 0.0, "a load beyond everything"
    facts = trial.facts
    assert lost(trial) == facts["lost_at_entrance"] + facts["lost_at_exit"]
    assert facts["lost_elsewhere"] == 0
    assert trial.sent_frames + facts["receiver_drops"] <= trial.intended_frames


def test_a_router_that_is_too_slow_loses_what_is_too_much(bed, trial_spec, undisturbed):
    shape(bed, "20mbit")
    trial = undisturbed(bed, trial_spec(4_000, 1.0, frame_size_bytes=1518))
    carried_fps = 20e6 / (8 * 1514)
    assert trial.received_frames == pytest.approx(carried_fps * 1.0, rel=0.05)
    assert trial.facts["lost_elsewhere"] == lost(trial), "the shaper dropped them, not a backlog"


def test_a_search_finds_the_rate_that_the_router_was_set_to(bed):
    """Where a machine takes its CPU away, a trial below the rate loses too: no search may find more than the
    router carries, and one of five must find it."""
    shape(bed, "50mbit")
    goal = SearchGoal.ndr(duration_s=0.3, width=0.05)
    # A trial of 0.3 s may exceed the rate by what fits into the shaper's burst and queue.
    slack = (10_000 + 10e-3 * 50e6 / 8) / (0.3 * 50e6 / 8)
    carried_fps = 50e6 / (8 * 1514)
    best_fps = 0.0
    for _ in range(5):
        search = ControlledSearch(Binary([goal], LoadRange(1e3, 20e3)), frame_size_bytes=1518)
        (found,) = run_search(search, bed).goals
        if found.lower is not None:
            assert found.lower.load_fps < carried_fps * (1.05 + slack)
            best_fps = max(best_fps, found.lower.load_fps)
        if found.regular and best_fps > 0.9 * carried_fps:
            return
    pytest.fail(f"the best of five searches found {best_fps:.0f} frame/s of {carried_fps:.0f}")


def test_without_a_cpu_of_its_own_the_router_never_loses_and_the_search_says_so(trial_spec):
    cpu = max(os.sched_getaffinity(0))
    try:
        made = NetnsTestbed(settle_s=0.05, placement=Placement(sender=cpu, router=None, receiver=cpu))
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made as bed:
        goal = SearchGoal.ndr(duration_s=0.2, width=0.05)
        search = ControlledSearch(Binary([goal], LoadRange(1e3, 20e3)), frame_size_bytes=64)
        (found,) = run_search(search, bed).goals
    assert Irregularity.NO_UPPER_BOUND in found.irregularities
    assert found.upper is None


def test_what_the_receiver_of_the_tester_lost_is_not_held_against_the_router(trial_spec):
    try:
        made = NetnsTestbed(settle_s=0.1, receive_buffer_bytes=4_096)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made as bed:
        trial = bed.trial(trial_spec(50_000))
    assert trial.facts["receiver_drops"] > 0
    assert trial.loss_ratio == 0.0
    assert trial.unsent_ratio > 0.005, "a search repeats it, and then calls the load beyond the tester"


def test_strangers_are_neither_received_nor_lost(bed, trial_spec, undisturbed):
    intruder = bed.namespaces["sender"].inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    done = threading.Event()

    def intrude() -> None:
        while not done.wait(0.005):
            intruder.sendto(b"no probe of this trial", (RECEIVER, PORT))

    thread = threading.Thread(target=intrude)
    thread.start()
    try:
        trial = undisturbed(bed, trial_spec(5_000))
    finally:
        done.set()
        thread.join()
        intruder.close()
    assert trial.facts["strangers"] > 0
    assert trial.received_frames == trial.sent_frames == 1_500


def test_a_hopeless_trial_ends_early_when_a_loss_budget_is_given(bed, trial_spec):
    shape(bed, "1mbit")
    trial = bed.trial(trial_spec(2_000, 5.0, frame_size_bytes=1518, loss_budget=0.001))
    assert trial.stopped_early
    assert trial.effective_duration_s < 3.0
    assert lost(trial) > 0.001 * 2_000 * 5.0
    assert trial.intended_frames < 2_000 * 5.0
    assert trial.offered_load_fps == pytest.approx(2_000, rel=0.1)


def test_a_good_trial_is_not_stopped_by_its_loss_budget(bed, trial_spec, undisturbed):
    trial = undisturbed(bed, trial_spec(5_000, loss_budget=0.0))
    assert not trial.stopped_early
    assert trial.received_frames == 1_500


def test_two_testbeds_side_by_side_do_not_see_each_other(bed, trial_spec, undisturbed):
    with NetnsTestbed(settle_s=0.1) as other, ThreadPoolExecutor(1) as thread:
        beside = thread.submit(undisturbed, other, trial_spec(8_000))
        trials = [undisturbed(bed, trial_spec(5_000)), beside.result()]
    assert [trial.received_frames for trial in trials] == [1_500, 2_400]
    assert all(trial.facts["strangers"] == 0 for trial in trials)


def test_a_testbed_that_was_closed_leaves_no_descriptor(bed):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with NetnsTestbed() as other:
            other.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_ctrl_c_ends_a_trial_before_its_end_and_leaves_the_testbed_good(bed, trial_spec, undisturbed):
    import signal

    thread = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    due = time.monotonic() + 600.0
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        bed.trial(trial_spec(1_000, 600.0))
    assert time.monotonic() < due, "it ended before its last frame was due"
    thread.join()
    assert undisturbed(bed, trial_spec(1_000)).loss_ratio == 0.0, "the testbed is still good"


@pytest.mark.parametrize(
    ("load_fps", "changes", "words"),
    [
        (1_000, {"frame_size_bytes": 63}, "frames of 64 to 9018 B"),
        (1_000, {"frame_size_bytes": 9019}, "frames of 64 to 9018 B"),
        (1_000, {"directions": 3}, "one way or both ways"),
        (0.1, {}, "no frame in 0.3 s"),
        (1e13, {}, "do not fit"),
    ],
)
def test_a_trial_that_cannot_be_made_is_refused_in_words(bed, trial_spec, load_fps, changes, words):
    with pytest.raises(InputError, match=words):
        bed.trial(trial_spec(load_fps, **changes))
