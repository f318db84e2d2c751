"""The controller `weir` stops trials early, and nothing is lost by that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings, strategies as st

from search.weir_searches import CSIT, LOADS, NDR, PDR, searched
from weirlab.searches import ControlledSearch
from weirlab.searches.controller import Outcome
from weirlab.searches.ledger import sample_of
from weirlab.searches.weir import Weir
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import (
    Knee,
)
from weirlab.testbed.sim import DeviceTestbed


def stopped(
    load_fps: float, lost: int, at_s: float, *, duration_s: float = 10.0, look_s=None, budget=0.0
) -> Outcome:
    """What comes of a trial that was stopped ``at_s``, with ``lost`` frames."""
    spec = TrialSpec(
        index=0,
        intended_load_fps=load_fps,
        duration_s=duration_s,
        frame_size_bytes=64,
        loss_budget=budget,
        look_s=look_s,
    )
    sent = round(load_fps * at_s)
    trial = Trial(
        spec=spec,
        intended_frames=sent,
        sent_frames=sent,
        received_frames=sent - lost,
        effective_duration_s=at_s + 0.43,
        offered_load_fps=load_fps,
        stopped_early=True,
    )
    return Outcome(load_fps, duration_s, trial.loss_ratio, 0.0, trial)


# ---- how a stopped trial counts


def test_a_trial_stopped_for_a_goal_counts_as_if_it_had_run_on() -> None:
    sample = sample_of(stopped(1e6, lost=1, at_s=0.3), 0.0, 1.0, "with-waits")
    assert sample is not None
    assert sample.duration_s == 10.0
    assert sample.effective_duration_s == pytest.approx(10.43)
    assert 0.0 < sample.loss_ratio <= 1e-7 * 1.001, "the loss of the whole trial is known from below only"


def test_a_trial_stopped_for_one_goal_says_nothing_to_a_looser_one_before_its_initial_duration() -> None:
    outcome = stopped(1e6, lost=3000, at_s=0.3)
    assert outcome.loss_ratio > 0.005, "a burst: the ratio so far is no measurement"
    assert sample_of(outcome, 0.005, 1.0, "trial") is None


def test_a_trial_stopped_later_is_a_clean_short_one_for_a_looser_goal_or_says_nothing() -> None:
    low = sample_of(stopped(1e6, lost=100, at_s=4.0), 0.005, 1.0, "trial")
    assert low == (4.0, 4.0, pytest.approx(2.5e-5))
    burst = stopped(1e6, lost=30_000, at_s=4.0, look_s=1.0)
    assert burst.loss_ratio > 0.005, "it ended because of its losses: the rest might have had none"
    assert sample_of(burst, 0.005, 1.0, "trial") is None


def test_a_trial_stopped_at_its_look_is_a_short_one() -> None:
    sample = sample_of(stopped(1e6, lost=5001, at_s=0.7, look_s=1.0, budget=0.005), 0.005, 1.0, "trial")
    assert sample == (1.0, 1.0, pytest.approx(5.001e-3))


@given(st.integers(1, 200_000), st.floats(0.06, 9.9), st.sampled_from([0.0, 0.001, 0.005, 0.02]))
def test_a_stopped_trial_is_high_for_a_goal_only_if_the_whole_trial_would_be(
    lost: int, at_s: float, allowed: float
) -> None:
    """However many frames the rest would lose: without a look, full length means decided."""
    load_fps = 1e6
    lost = min(lost, round(load_fps * at_s))
    sample = sample_of(stopped(load_fps, lost, at_s), allowed, 1.0, "trial")
    if sample is not None and sample.duration_s == 10.0:
        assert lost / (load_fps * 10.0) > allowed
        assert sample.loss_ratio > allowed


# ---- early stop


@settings(deadline=None, max_examples=40)
@given(st.floats(1e6, 2.5e7))
def test_stopping_early_saves_time_and_changes_no_bound_of_a_consistent_device(capacity_fps: float) -> None:
    device = Knee(capacity_fps=capacity_fps)
    for goals in ((NDR, PDR), CSIT):
        with_stop = searched(device, goals).result()
        without = searched(device, goals, early_stop=False).result()
        assert with_stop.time_s < without.time_s
        for ours, theirs in zip(with_stop.goals, without.goals, strict=True):
            assert ours.lower.load_fps == theirs.lower.load_fps
            assert ours.upper.load_fps == theirs.upper.load_fps
            assert ours.conditional_throughput_fps == theirs.conditional_throughput_fps


@settings(deadline=None, max_examples=30)
@given(st.floats(1e6, 2.5e7), st.sampled_from([(NDR, PDR), CSIT]))
def test_a_lower_bound_rests_on_whole_trials(capacity_fps: float, goals) -> None:
    for goal in searched(Knee(capacity_fps=capacity_fps), goals).result().goals:
        whole = [
            trial
            for trial in goal.evidence.lower_trials
            if trial.spec.duration_s == goal.goal.duration_s and trial.loss_ratio <= goal.goal.loss_ratio
        ]
        assert sum(trial.spec.duration_s for trial in whole if not trial.stopped_early) > 0.0
        assert not goal.lower.trial.stopped_early


def test_the_first_trial_runs_to_its_end_as_its_forwarding_rate_is_used() -> None:
    first = searched(Knee(capacity_fps=9e6)).trials[0]
    assert first.spec.loss_budget is None
    assert not first.stopped_early


def test_a_testbed_that_cannot_stop_gives_the_same_bounds() -> None:
    @dataclass
    class Deaf(DeviceTestbed):
        """It runs every trial to its end."""

        def __init__(self) -> None:
            super().__init__(Knee(capacity_fps=9e6), overhead_s=0.43)

        def trial(self, spec: TrialSpec) -> Trial:
            whole = super().trial(replace(spec, loss_budget=None, look_s=None))
            return replace(whole, spec=spec)

    search = ControlledSearch(Weir([NDR, PDR], LOADS), frame_size_bytes=64)
    while (spec := search.ask()) is not None:
        search.tell(Deaf().trial(spec))
    expected = searched(Knee(capacity_fps=9e6)).result()
    found = search.result()
    assert [goal.lower.load_fps for goal in found.goals] == [goal.lower.load_fps for goal in expected.goals]
