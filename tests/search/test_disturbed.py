"""Trials that the rest of the machine disturbed never count against the device while they can be repeated."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from weirlab.searches import ControlledSearch, FoundRates, Irregularity, LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.searches.disturbed import FREE_REPEATS, REPEATS_SHARE
from weirlab.searches.weir import Weir
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Knee
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e5, 4e6)
CAPACITY_FPS = 2e6
CAUSE = "the router waited 40 ms for its CPU, which others used"
GOALS = [SearchGoal.ndr(duration_s=1.0, width=0.01), SearchGoal.pdr(0.005, duration_s=1.0, width=0.01)]


def found(search: ControlledSearch, disturb: Callable[[Trial], Trial]) -> FoundRates:
    """What a search finds on a device whose capacity is 2 Mframe/s and whose machine does this."""
    with_device = DeviceTestbed(Knee(capacity_fps=CAPACITY_FPS))
    while (spec := search.ask()) is not None:
        search.tell(disturb(with_device.trial(spec)))
    return search.result()


def losing(trial: Trial, frames: int) -> Trial:
    """The trial on a machine that cost it so many frames."""
    received = max(0, trial.received_frames - frames)
    return replace(
        trial,
        received_frames=received,
        disturbed_frames=min(frames, trial.sent_frames - received),
        disturbance=CAUSE,
    )


def now_and_then(seed: int, share: float = 0.1) -> Callable[[Trial], Trial]:
    chance = random.Random(seed)

    def disturb(trial: Trial) -> Trial:
        hit = chance.random() < share
        return losing(trial, round(0.04 * trial.spec.intended_load_fps)) if hit else trial

    return disturb


def test_where_disturbed_trials_are_not_to_be_repeated_they_count() -> None:
    """As in a strict search."""
    search = ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64, repeat_disturbed=False)
    result = found(search, now_and_then(3, share=0.5))
    assert {trial.spec.purpose for trial in result.trials} == {"search"}
    assert result.goals[0].lower is not None
    assert result.goals[0].lower.load_fps < 0.9 * CAPACITY_FPS


@pytest.mark.parametrize("seed", range(8))
def test_a_machine_that_disturbs_a_trial_now_and_then_changes_no_result(seed: int) -> None:
    undisturbed = found(ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64), lambda trial: trial)
    result = found(ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64), now_and_then(seed))
    assert [goal.regular for goal in result.goals] == [True, True]
    for goal, expected in zip(result.goals, undisturbed.goals, strict=True):
        assert goal.lower is not None
        assert expected.lower is not None
        assert goal.lower.load_fps == expected.lower.load_fps
    repeats = [trial for trial in result.trials if trial.spec.purpose == "repeat"]
    if repeats:
        assert result.disturbance is not None
        assert result.disturbance.repeated_trials == len(repeats)
        assert result.disturbance.counted_trials == 0
        assert result.disturbance.last == CAUSE
        assert result.disturbance.repeated_s > 0.0


@pytest.mark.parametrize("algorithm", [Binary, Weir])
def test_a_machine_that_is_always_busy_ends_the_search_and_is_named(algorithm) -> None:
    result = found(
        ControlledSearch(algorithm(GOALS[:1], LOADS), frame_size_bytes=64),
        lambda trial: losing(trial, round(0.04 * trial.spec.intended_load_fps)),
    )
    (goal,) = result.goals
    assert result.disturbance is not None
    assert result.disturbance.repeated_trials <= FREE_REPEATS + 1 + REPEATS_SHARE * len(result.trials)
    assert result.disturbance.counted_trials > 0
    assert not goal.regular
    assert Irregularity.NOT_STATIONARY not in goal.irregularities


def test_a_loss_that_the_disturbance_does_not_explain_counts_at_once() -> None:
    search = ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64)
    spec = search.ask()
    assert spec is not None
    trial = losing(DeviceTestbed(Knee(capacity_fps=CAPACITY_FPS)).trial(spec), 100)
    assert trial.loss_ratio > 0.4
    search.tell(trial)
    assert search.ask() != replace(spec, index=1, elapsed_s=trial.effective_duration_s, purpose="repeat")
    assert search.result().disturbance is None


def test_a_disturbed_trial_that_met_every_goal_is_believed() -> None:
    search = ControlledSearch(Binary(GOALS, LoadRange(1e5, 1e6)), frame_size_bytes=64)
    result = found(search, lambda trial: replace(trial, disturbance=CAUSE))
    assert result.disturbance is None
    assert all(goal.lower is not None and goal.lower.load_fps == 1e6 for goal in result.goals)


def test_a_search_told_its_log_again_repeats_the_same_trials() -> None:
    disturb = now_and_then(3, share=0.4)
    first = found(ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64), disturb)
    again = ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64)
    for trial in first.trials:
        assert again.ask() == trial.spec
        again.tell(trial)
    assert again.ask() is None
    assert again.result().disturbance == first.disturbance


def test_a_trial_of_a_machine_without_disturbance_is_as_it_was_before() -> None:
    spec = TrialSpec(index=0, intended_load_fps=1e6, duration_s=1.0, frame_size_bytes=64)
    trial = DeviceTestbed(Knee(capacity_fps=CAPACITY_FPS)).trial(spec)
    assert trial.disturbed_frames == 0
    assert trial.disturbance == ""


@pytest.mark.parametrize("field", ["doubtful_frames", "disturbed_frames"])
def test_the_estimate_of_the_time_left_does_not_inherit_what_was_lost_in_the_last_trial(field: str) -> None:
    """It is rehearsed with trials like the last one, of which fewer frames may be lost."""
    search = ControlledSearch(Binary(GOALS, LOADS), frame_size_bytes=64)
    device = DeviceTestbed(Knee(capacity_fps=CAPACITY_FPS))
    for _ in range(3):
        spec = search.ask()
        assert spec is not None
        trial = device.trial(spec)
        lost = trial.sent_frames - trial.received_frames
        search.tell(replace(trial, **{field: lost // 2}))
        assert search.time_left_s() is not None
