"""Laws of the controllers `mlr` and `weir`: conformance, brackets, widths, ends, purity."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from weirlab.errors import InputError
from weirlab.searches import ControlledSearch, Ending, Irregularity, LoadRange, SearchGoal
from weirlab.searches.classify import Criterion, Tally, relevant_bounds
from weirlab.searches.controller import Outcome
from weirlab.searches.goals import preset
from weirlab.searches.ledger import sample_of
from weirlab.searches.mlr import Mlr
from weirlab.searches.weir import Weir
from weirlab.testbed.devices import (
    DeepBuffer,
    Device,
    Knee,
    Offer,
    RandomDrops,
    VhostPublished,
)
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e4, 3e7)

Make = Callable[..., Mlr]


def plain_goals(width: float, duration_s: float = 10.0) -> list[SearchGoal]:
    return [
        SearchGoal(name=f"{ratio:.1%}", loss_ratio=ratio, width=width, duration_s=duration_s)
        for ratio in (0.0, 0.001, 0.02)
    ]


def csit_goals(width: float) -> list[SearchGoal]:
    return [preset("csit-ndr", width=width), preset("csit-pdr", width=width)]


def mixed_goals(width: float) -> list[SearchGoal]:
    """Goals that differ in everything, as RFC 9971 allows."""
    return [
        SearchGoal(name="strict", loss_ratio=0.0, width=width, duration_s=10.0),
        SearchGoal(
            name="loose",
            loss_ratio=0.01,
            width=2.5 * width,
            duration_s=2.0,
            exceed_ratio=0.25,
            duration_sum_s=9.0,
        ),
        SearchGoal(
            name="verified",
            loss_ratio=0.0,
            width=width,
            duration_s=5.0,
            exceed_ratio=0.5,
            duration_sum_s=10.0,
        ),
    ]


makes = pytest.mark.parametrize("make", [Mlr, Weir])
goal_sets = pytest.mark.parametrize("goals", [plain_goals, csit_goals, mixed_goals])
widths = st.floats(2e-3, 0.2)
capacities = st.floats(LOADS.min_fps * 1.05, LOADS.max_fps * 0.95)


@dataclass(frozen=True)
class Scatter:
    """Loses anything at random: no monotony, no consistency."""

    seed: int

    def received_frames(self, offer: Offer) -> int:
        chance = random.Random(f"{self.seed} {offer.index}")
        kept = chance.choice([0.0, 0.5, 0.985, 0.9985, 1.0, 1.0, 1.0])
        return int(offer.frames * kept)


def finish(controller: Mlr, device: Device, most_trials: int = 3000) -> ControlledSearch:
    search = ControlledSearch(controller, frame_size_bytes=64)
    bed = DeviceTestbed(device, overhead_s=0.43)
    while (spec := search.ask()) is not None:
        assert search.ask() == spec
        assert len(search.trials) < most_trials
        search.tell(bed.trial(spec))
    return search


@makes
@goal_sets
@settings(deadline=None, max_examples=30)
@given(capacity_fps=capacities, width=widths)
def test_the_bounds_bracket_the_truth_within_the_width(
    make, goals, capacity_fps: float, width: float
) -> None:
    result = finish(make(goals(width), LOADS), Knee(capacity_fps=capacity_fps)).result()
    assert result.ending is Ending.FINISHED
    assert result.regular, [goal.remark for goal in result.goals]
    for goal in result.goals:
        truth_fps = capacity_fps / (1.0 - goal.goal.loss_ratio)
        # Frames are whole: half a frame per trial is rounded.
        slack_fps = 4.0 + 1.0 / goal.goal.duration_s
        assert goal.lower.load_fps <= truth_fps + slack_fps
        assert truth_fps <= goal.upper.load_fps + slack_fps
        assert goal.width <= goal.goal.width * (1.0 + 1e-9)


@makes
@goal_sets
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_every_result_is_what_the_rfc_makes_of_its_trials(make, goals, seed: int) -> None:
    """The relevant bounds and the conditional throughput, computed once more from the trials alone."""
    search = finish(make(goals(0.01), LOADS), Scatter(seed))
    for result in search.result().goals:
        criterion = Criterion.of(result.goal)
        tallies: dict[float, Tally] = {}
        for trial in search.trials:
            load_fps = trial.spec.intended_load_fps
            tally = tallies.setdefault(load_fps, Tally(criterion))
            outcome = Outcome(load_fps, trial.spec.duration_s, trial.loss_ratio, 0.0, trial)
            initial_s = result.goal.initial_duration_s or 1.0
            sample = sample_of(outcome, criterion.loss_ratio, initial_s, "trial")
            if sample is not None:
                tally.add(sample)
        loads = sorted(tallies)
        bounds = relevant_bounds([tallies[load].load_class for load in loads])
        lower_fps = None if bounds.lower is None else loads[bounds.lower]
        upper_fps = None if bounds.upper is None else loads[bounds.upper]
        assert (result.lower.load_fps if result.lower else None) == lower_fps
        assert (result.upper.load_fps if result.upper else None) == upper_fps
        if lower_fps is not None:
            ratio = tallies[lower_fps].conditional_loss_ratio
            assert result.conditional_throughput_fps == pytest.approx(lower_fps * (1.0 - ratio))
            assert ratio <= criterion.loss_ratio


@makes
@goal_sets
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32), keep=st.floats(0.0, 1.0))
def test_a_search_told_the_beginning_of_its_trials_goes_on_as_before(
    make, goals, seed: int, keep: float
) -> None:
    whole = finish(make(goals(0.01), LOADS), Scatter(seed))
    resumed = ControlledSearch(make(goals(0.01), LOADS), frame_size_bytes=64)
    for trial in whole.trials[: round(keep * len(whole.trials))]:
        assert resumed.ask() == trial.spec
        resumed.tell(trial)
    bed = DeviceTestbed(Scatter(seed), overhead_s=0.43)
    while (spec := resumed.ask()) is not None:
        resumed.tell(bed.trial(spec))
    assert resumed.result() == whole.result()


@makes
@goal_sets
def test_a_device_that_never_loses_gives_no_upper_bound(make, goals) -> None:
    for goal in finish(make(goals(0.01), LOADS), Knee(capacity_fps=1e12)).result().goals:
        assert list(goal.irregularities) == [Irregularity.NO_UPPER_BOUND]
        assert goal.lower.load_fps == LOADS.max_fps


@makes
@goal_sets
def test_a_device_that_loses_everywhere_gives_no_lower_bound(make, goals) -> None:
    for goal in finish(make(goals(0.01), LOADS), Knee(capacity_fps=1.0)).result().goals:
        assert list(goal.irregularities) == [Irregularity.NO_LOWER_BOUND]
        assert goal.upper.load_fps == LOADS.min_fps


@makes
@pytest.mark.parametrize("timeout_s", [0.5, 5.0, 20.0])
def test_a_timeout_keeps_what_was_measured_and_says_so(make, timeout_s: float) -> None:
    search = finish(make(plain_goals(0.005), LOADS, timeout_s=timeout_s), Knee(capacity_fps=9e6))
    result = search.result()
    assert result.ending is Ending.TIMED_OUT
    assert result.trials
    assert sum(trial.effective_duration_s for trial in result.trials[:-1]) < timeout_s
    late = [goal for goal in result.goals if Irregularity.TIMED_OUT in goal.irregularities]
    assert late
    assert all(goal.upper is not None for goal in result.goals)


@makes
def test_nonsense_is_refused(make) -> None:
    with pytest.raises(InputError, match="needs a width"):
        make([SearchGoal(name="NDR", loss_ratio=0.0, width=None, duration_s=1.0)], LOADS)
    with pytest.raises(InputError, match="timeout"):
        make(plain_goals(0.01), LOADS, timeout_s=0.0)
    with pytest.raises(InputError, match="no goal of this search"):
        make(plain_goals(0.01), LOADS, hints_fps={"NDR": 1e6})


@makes
def test_hints_save_trials_and_carry_no_old_bound(make) -> None:
    goals, device = plain_goals(0.005), Knee(capacity_fps=9e6)
    cold = finish(make(goals, LOADS), device).result()
    hints = {goal.goal.name: goal.lower.load_fps for goal in cold.goals}
    warm = finish(make(goals, LOADS, hints_fps=hints), device).result()
    assert warm.regular
    assert warm.time_s < cold.time_s - 1.0
    changed = finish(make(goals, LOADS, hints_fps=hints), Knee(capacity_fps=6e6)).result()
    assert changed.regular
    assert changed.goals[0].lower.load_fps == pytest.approx(6e6, rel=0.006)


@makes
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000))
def test_bounds_of_random_devices_are_within_the_width_or_the_result_is_marked(make, seed: int) -> None:
    """One that is marked may have ended before: `weir` does not follow for ever what looks like a change."""
    for device in (VhostPublished(), RandomDrops(), DeepBuffer()):
        search = ControlledSearch(make(plain_goals(0.01), LOADS), frame_size_bytes=64)
        bed = DeviceTestbed(device, seed=seed, overhead_s=0.43)
        while (spec := search.ask()) is not None:
            assert len(search.trials) < 500
            search.tell(bed.trial(spec))
        for goal in search.result().goals:
            assert goal.regular or Irregularity.NOT_STATIONARY in goal.irregularities


def test_mlr_never_asks_for_an_early_stop() -> None:
    search = finish(Mlr(plain_goals(0.01), LOADS), Knee(capacity_fps=9e6))
    assert all(trial.spec.loss_budget is None and not trial.stopped_early for trial in search.trials)


def test_loads_lie_on_one_ladder_for_all_goals() -> None:
    """So that a trial for one goal is a trial for the others."""
    search = finish(Mlr(csit_goals(0.005), LOADS), Knee(capacity_fps=9e6))
    loads = {trial.spec.intended_load_fps for trial in search.trials}
    assert len(loads) < len(search.trials) / 3


@makes
def test_a_least_load_without_a_frame_in_the_shortest_trial_is_refused(make):
    goals = [SearchGoal.ndr(duration_s=0.1, width=0.01)]
    with pytest.raises(InputError, match=r"1 frames/s, sends no whole frame in a trial of 0.1 s"):
        make(goals, LoadRange(1.0, 1e6))
    assert make(goals, LoadRange(10.0, 1e6)).ask() is not None
