"""The devices of the laboratory against their formulas."""

from __future__ import annotations

import math
import statistics

import pytest

from weirlab.searches.lab_devices import (
    Collapse,
    Collections,
    FlowTable,
    Governor,
    Outages,
    Pauses,
    RandomBursts,
    Rehash,
    Timer,
    TwoKnees,
    UnevenQueues,
)
from weirlab.searches.lab_state import Adaptive, Hysteresis, Leak, Recovering, TokenBucket
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.devices import Device, Drifting, Offer, WarmUp
from weirlab.testbed.sim import DeviceTestbed


def lost(device: Device, load_fps: float, duration_s: float = 10.0, *, index: int = 0, seed: int = 1) -> int:
    offer = Offer(
        frames=round(load_fps * duration_s),
        duration_s=duration_s,
        frame_size_bytes=64,
        index=index,
        elapsed_s=0.0,
        seed=seed,
        steady_fps=load_fps,
    )
    return offer.frames - device.received_frames(offer)


def test_a_collapsing_device_forwards_less_when_more_is_offered() -> None:
    assert lost(Collapse(), 10e6) == 0
    assert lost(Collapse(), 10.1e6) == 101e6 - 60e6


def test_the_busiest_queue_loses_first() -> None:
    device = UnevenQueues(trial_spread=0.0)
    first_fps = 10e6 / 4 / 0.28
    assert lost(device, first_fps * 0.999) == 0
    assert lost(device, first_fps * 1.01) == pytest.approx(0.28 * first_fps * 0.01 * 10.0, abs=1)


def test_a_pause_loses_what_the_queue_does_not_hold() -> None:
    device = Pauses(every_s=2.0, pause_s=1e-3, buffer_frames=6000)
    assert lost(device, 6e6) == 0
    assert lost(device, 8e6) == 5 * 2000


@pytest.mark.parametrize("load_fps", [1e6, 9.9e6])
def test_bursts_come_at_their_rate_at_any_load(load_fps: float) -> None:
    counts = [lost(RandomBursts(), load_fps, 100.0, index=index) / 200 for index in range(400)]
    assert set(counts) <= set(range(20)), "whole bursts"
    assert statistics.mean(counts) == pytest.approx(5.0, abs=4 * (5.0 / 400) ** 0.5)
    assert statistics.variance(counts) == pytest.approx(5.0, rel=0.3), "as those of a Poisson process"


def test_an_outage_loses_what_is_offered_in_it() -> None:
    for load_fps in (1e6, 8e6):
        counts = [lost(Outages(), load_fps, 100.0, index=index) / (load_fps * 0.02) for index in range(400)]
        assert all(count == round(count) for count in counts)
        assert statistics.mean(counts) == pytest.approx(10.0, abs=4 * (10.0 / 400) ** 0.5)


def test_two_knees_lose_a_share_between_them_and_the_excess_above() -> None:
    device = TwoKnees(trial_spread=0.0)
    assert lost(device, 6.99e6) == 0
    assert lost(device, 8e6) == pytest.approx(0.001 * 80e6, abs=1)
    assert lost(device, 10.5e6) == pytest.approx(0.001 * 105e6 + 5e6, abs=1)


def test_the_knees_of_a_device_differ_between_trials_by_its_spread() -> None:
    """Half of the trials at a knee fail, and about 1 in 6 one deviation below."""
    device = TwoKnees(trial_spread=0.01)
    at = [lost(device, 7e6, index=index) > 0 for index in range(400)]
    below = [lost(device, 7e6 * 0.99, index=index) > 0 for index in range(400)]
    assert sum(at) / 400 == pytest.approx(0.5, abs=0.1)
    assert sum(below) / 400 == pytest.approx(0.159, abs=0.07)


def test_a_hash_that_differs_from_trial_to_trial_overloads_a_core_before_all_are_full() -> None:
    """Of 4096 flows 1024 are expected on each core, with a standard deviation of 27.7."""
    device = Rehash()
    assert all(lost(device, 8.5e6, index=index) == 0 for index in range(100)), "5 deviations below"
    at_capacity = [lost(device, 10e6, index=index) / 100e6 for index in range(100)]
    assert min(at_capacity) > 0.0, "one core always has more than its part"
    # The sum of what four parts exceed their mean by: 4 x 27.7 / sqrt(2 pi) flows.
    assert statistics.mean(at_capacity) == pytest.approx(4 * 27.7 / (2 * 3.14159) ** 0.5 / 4096, rel=0.15)


def test_garbage_is_collected_after_so_many_frames_and_not_after_a_time() -> None:
    device = Collections()
    assert lost(device, 8e6, 100.0) == 0, "the buffer holds a pause"
    for load_fps in (9e6, 10e6):
        each = load_fps * 1e-3 - 8000
        counts = [lost(device, load_fps, 5.0, index=index) / each for index in range(400)]
        assert set(counts) == {0.0, 1.0}
        assert statistics.mean(counts) == pytest.approx(load_fps * 5.0 / 150e6, abs=0.1)


def test_a_flow_table_overflows_after_a_time_above_the_load_whose_flows_expire() -> None:
    device = FlowTable()
    assert lost(device, 8e6, 100.0) == 0
    # 0.1e6 flows/s more than expire: full after 3 s, and then 2 of 9 Mframe/s are lost.
    assert lost(device, 9e6, 3.0) == 0
    assert lost(device, 9e6, 10.0) == pytest.approx(2e6 * 7.0, abs=1)
    assert lost(device, 11e6, 0.5) == pytest.approx(0.5e6, abs=1), "above the capacity before, too"


def test_a_processor_that_wakes_up_loses_at_the_beginning_of_a_trial_only() -> None:
    device = Governor(wake_spread=0.0)
    assert lost(device, 7e6) == 0, "30 ms with 1 Mframe/s too much fill the buffer"
    assert lost(device, 8e6, 0.03) == lost(device, 8e6, 60.0) == 30_000
    assert lost(device, 11e6, 1.0) == pytest.approx(5e6 * 0.03 - 30_000 + 1e6 * 0.97, abs=1)


def test_a_timer_takes_its_share_of_the_time() -> None:
    device = Timer()
    assert lost(device, 9.7e6, 100.0) == 0
    assert lost(device, 10e6, 90.0) == pytest.approx(2 * 8.0 * 0.3e6, abs=1), "two periods, two jobs"
    ones = [lost(device, 10e6, 1.0, seed=seed) > 0 for seed in range(300)]
    assert statistics.mean(ones) == pytest.approx(9.0 / 45.0, abs=0.07)


@pytest.mark.parametrize("excess", [-0.15, 0.15])
@pytest.mark.parametrize("load_fps", [8.2e6, 9.5e6, 10e6, 10.4e6, 11.2e6])
def test_a_drifting_device_loses_the_integral_of_what_is_above_its_capacity(
    excess: float, load_fps: float
) -> None:
    steps = 20_000
    times_s = [(step + 0.5) * 10.0 / steps for step in range(steps)]
    above = [load_fps - 10e6 * (1.0 + excess * math.exp(-time_s / 8.0)) for time_s in times_s]
    expected = sum(max(0.0, each) for each in above) * 10.0 / steps
    assert lost(Drifting(excess=excess), load_fps) == pytest.approx(expected, rel=1e-4, abs=5)


def test_a_device_that_warms_up_drifts_from_below() -> None:
    for load_fps in (8.6e6, 9.5e6, 10e6, 11e6):
        assert lost(WarmUp(deficit=0.15), load_fps) == lost(Drifting(excess=-0.15), load_fps)
    assert lost(WarmUp(deficit=0.0), 9e6) == 0, "a warm device loses nothing below its capacity"


# ---- devices that carry something over from trial to trial


def tried(device: Device, *loads_fps: float, duration_s: float = 1.0, rest_s: float = 0.5) -> list[float]:
    """Loss ratios of trials one after the other."""
    bed = DeviceTestbed(device, overhead_s=rest_s)
    ratios, elapsed_s = [], 0.0
    for index, load_fps in enumerate(loads_fps):
        spec = TrialSpec(
            index=index,
            elapsed_s=elapsed_s,
            intended_load_fps=load_fps,
            duration_s=duration_s,
            frame_size_bytes=64,
        )
        trial = bed.trial(spec)
        ratios.append(trial.loss_ratio)
        elapsed_s += trial.effective_duration_s
    return ratios


def test_a_bucket_of_tokens_runs_empty_and_fills_up_between_trials() -> None:
    """10 Mframe/s take 2 million more a second than come in; half a second without traffic brings 4."""
    device = TokenBucket(capacity_fps=10e6, base_fps=8e6, depth_frames=3e6)
    assert tried(device, 10e6, 10e6) == [0.0, 0.0], "1 million left, and full again"
    twice = tried(device, 10e6, 10e6, rest_s=0.0)
    assert twice == [0.0, pytest.approx(0.1)], "1 million left for 0.5 s, then a fifth is lost"
    assert tried(device, 8e6, 8e6, 8e6, rest_s=0.0) == [0.0] * 3


def test_overload_leaves_a_recovering_device_weak_for_a_while() -> None:
    device = Recovering(capacity_fps=10e6, weakness=0.1, recovery_s=2.0)
    fresh, over, weak = tried(device, 9.5e6, 11e6, 9.5e6, rest_s=1.0)
    assert fresh == 0.0
    assert over == pytest.approx(1.0 / 11.0)
    # Below 9.5 Mframe/s until exp(-t / 2 s) is one half, at 1.386 s; the trial begins at 1 s.
    lost = -0.5e6 * 0.3863 + 1e6 * 2.0 * (math.exp(-0.5) - 0.5)
    assert weak == pytest.approx(lost / 9.5e6, rel=1e-3)
    assert tried(device, 11e6, 9.5e6, rest_s=1.4) == [pytest.approx(1.0 / 11.0), 0.0]


def test_a_device_with_hysteresis_comes_back_after_a_rest() -> None:
    device = Hysteresis(capacity_fps=10e6, slow=0.8, rest_s=0.6)
    assert tried(device, 9e6, 11e6, 9e6, 9e6) == [
        0.0,
        pytest.approx(3.0 / 11.0),
        pytest.approx(1.0 / 9.0),
        pytest.approx(1.0 / 9.0),
    ], "half a second is too short"
    assert tried(device, 11e6, 9e6, rest_s=0.7)[1] == 0.0
    assert tried(device, 11e6, 7e6, 9e6)[1:] == [0.0, 0.0], "a load that it carries is a rest"


def test_a_leak_takes_capacity_with_each_frame_that_is_forwarded() -> None:
    device = Leak(capacity_fps=10e6, life_frames=100e6, left=0.2)
    # Full rate for 5 s: the capacity falls as exp(-0.08 t).
    (first,) = tried(device, 20e6, duration_s=5.0)
    assert first == pytest.approx(1.0 - 10e6 / 0.08 * (1.0 - math.exp(-0.4)) / 100e6, rel=1e-6)
    ratios = tried(device, *[5e6] * 30, rest_s=0.0)
    assert ratios[0] == 0.0
    assert ratios[-1] == pytest.approx(1.0 - 2.0 / 5.0, abs=1e-6), "all that is left"
    assert ratios == sorted(ratios)


def test_an_adaptive_device_takes_a_step_after_each_time_of_overload() -> None:
    device = Adaptive(capacity_fps=10e6, begins=0.8, steps=2, step_s=1.0)
    assert tried(device, 10e6, 9e6, 10e6, 10e6) == [
        pytest.approx(0.2),
        0.0,
        pytest.approx(0.1),
        0.0,
    ]


def test_a_device_that_is_recalled_goes_on_in_its_state() -> None:
    device = TokenBucket(capacity_fps=10e6, base_fps=8e6, depth_frames=3e6)
    bed, other = DeviceTestbed(device), DeviceTestbed(device)
    trials, elapsed_s = [], 0.0
    for index in range(4):
        spec = TrialSpec(
            index=index, elapsed_s=elapsed_s, intended_load_fps=10e6, duration_s=1.0, frame_size_bytes=64
        )
        if index == 3:
            other.recall(trials)
            assert other.trial(spec) == bed.trial(spec)
            assert DeviceTestbed(device).trial(spec) != bed.trial(spec)
        trials.append(bed.trial(spec))
        elapsed_s += trials[-1].effective_duration_s
