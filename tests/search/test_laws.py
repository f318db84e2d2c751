"""Laws of every search: it brackets the truth, meets its width, ends, stays in range, and forgets nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from weirlab.searches import ControlledSearch, Irregularity, LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.searches.mdr import Mdr
from weirlab.testbed.devices import Knee, WarmUp
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e4, 3e7)
PHASE_TIMEOUT_S = 200.0
LOSS_RATIOS = (0.0, 0.001, 0.02)

Make = Callable[[float], ControlledSearch]


def goals(width: float) -> list[SearchGoal]:
    return [
        SearchGoal(name=f"{ratio:.1%}", loss_ratio=ratio, width=width, duration_s=10.0)
        for ratio in LOSS_RATIOS
    ]


def mdr(width: float) -> ControlledSearch:
    controller = Mdr(goals(width), LOADS, phase_timeout_s=PHASE_TIMEOUT_S)
    return ControlledSearch(controller, frame_size_bytes=64)


def binary(width: float) -> ControlledSearch:
    return ControlledSearch(Binary(goals(width), LOADS), frame_size_bytes=64)


algorithms = pytest.mark.parametrize("make", [binary, mdr])
widths = st.floats(1e-3, 0.2)
capacities = st.floats(LOADS.min_fps * 1.05, LOADS.max_fps * 0.95).map(lambda fps: round(fps, 3))


@dataclass(frozen=True)
class Scatter:
    """Loses anything at random: no monotony, no consistency."""

    seed: int

    def received_frames(self, offer):
        chance = random.Random(f"{self.seed} {offer.index} {offer.elapsed_s}")
        kept = chance.choice([0.0, 0.5, 0.985, 0.9985, 1.0, 1.0, 1.0])
        return int(offer.frames * kept)


@dataclass(frozen=True)
class Contrary:
    """Always the answer that gives the search most to do: loses at loads that were last seen clean."""

    first: bool

    def received_frames(self, offer):
        return offer.frames if (offer.index % 2 == 0) == self.first else offer.frames // 2


def finish(search: ControlledSearch, device, most_trials: int = 2000) -> ControlledSearch:
    bed = DeviceTestbed(device)
    while (spec := search.ask()) is not None:
        assert LOADS.min_fps <= spec.intended_load_fps <= LOADS.max_fps
        assert len(search.trials) < most_trials
        search.tell(bed.trial(spec))
    return search


@algorithms
@settings(deadline=None)
@given(capacity_fps=capacities, width=widths)
def test_the_bounds_bracket_the_truth_within_the_width(make: Make, capacity_fps: float, width: float):
    search = finish(make(width), Knee(capacity_fps=capacity_fps))
    result = search.result()
    assert result.regular, [goal.remark for goal in result.goals]
    for goal in result.goals:
        # A knee loses no more than L up to capacity / (1 - L); half a frame of each trial is rounded.
        truth_fps = capacity_fps / (1.0 - goal.goal.loss_ratio)
        assert goal.lower.load_fps <= truth_fps + 2.0 <= goal.upper.load_fps + 4.0
        assert goal.width <= width * (1.0 + 1e-9)
        assert goal.lower.trial.loss_ratio <= goal.goal.loss_ratio < goal.upper.trial.loss_ratio


@algorithms
@settings(deadline=None)
@given(capacity_fps=capacities, width=widths)
def test_the_number_of_trials_is_bounded(make: Make, capacity_fps: float, width: float):
    search = finish(make(width), Knee(capacity_fps=capacity_fps))
    if make is binary:
        # Each search halves the range until less is left than the width at the lowest load.
        halvings = math.ceil(math.log2((LOADS.max_fps - LOADS.min_fps) / (width * LOADS.min_fps)))
        assert len(search.trials) <= len(LOSS_RATIOS) * (halvings + 2)
    else:
        # After the initial phase each of three phases moves, halves and measures again few times per goal.
        assert len(search.trials) <= 3 + 3 * len(LOSS_RATIOS) * 8


def most_trials(make: Make, width: float) -> int:
    """No answer whatsoever can make a search longer."""
    if make is binary:
        halvings = math.ceil(math.log2((LOADS.max_fps - LOADS.min_fps) / (width * LOADS.min_fps)))
        return len(LOSS_RATIOS) * (halvings + 2)
    durations_s = (1.0, 10.0**0.5, 10.0)
    return 3 + sum(math.floor(PHASE_TIMEOUT_S / duration_s) + 1 for duration_s in durations_s)


@algorithms
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), width=widths)
def test_a_device_without_any_consistency_cannot_make_a_search_endless(make: Make, seed: int, width: float):
    search = finish(make(width), Scatter(seed), most_trials(make, width))
    for goal in search.result().goals:
        if goal.lower is not None:
            assert goal.lower.trial.loss_ratio <= goal.goal.loss_ratio
        if goal.upper is not None:
            assert goal.upper.trial.loss_ratio > goal.goal.loss_ratio
        if goal.regular:
            assert goal.lower.load_fps < goal.upper.load_fps
            assert goal.width <= width * (1.0 + 1e-9)
        else:
            assert goal.remark


@algorithms
@pytest.mark.parametrize("first", [False, True])
def test_a_device_that_contradicts_itself_cannot_make_a_search_endless(make: Make, first: bool):
    finish(make(0.005), Contrary(first), most_trials(make, 0.005))


@algorithms
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), keep=st.floats(0.0, 1.0))
def test_a_search_told_the_beginning_of_its_trials_goes_on_as_before(make: Make, seed: int, keep: float):
    whole = finish(make(0.01), Scatter(seed))
    resumed = make(0.01)
    for trial in whole.trials[: round(keep * len(whole.trials))]:
        assert resumed.ask() == trial.spec
        resumed.tell(trial)
    finish(resumed, Scatter(seed))
    assert resumed.trials == whole.trials
    assert resumed.result() == whole.result()


@algorithms
def test_a_resumed_search_on_a_device_that_changes_with_time_goes_on_as_before(make: Make):
    device = WarmUp(capacity_fps=9e6, deficit=0.2, time_constant_s=30.0)
    whole = finish(make(0.01), device)
    for kept in range(len(whole.trials) + 1):
        resumed = make(0.01)
        for trial in whole.trials[:kept]:
            resumed.tell(trial)
        assert finish(resumed, device).trials == whole.trials


@algorithms
@settings(deadline=None)
@given(width=widths)
def test_a_device_that_never_loses_gives_no_upper_bound(make: Make, width: float):
    for goal in finish(make(width), Knee(capacity_fps=1e12)).result().goals:
        assert Irregularity.NO_UPPER_BOUND in goal.irregularities
        assert goal.lower.load_fps == LOADS.max_fps


@algorithms
@settings(deadline=None)
@given(capacity_fps=capacities, limit_fps=capacities)
def test_a_result_rests_on_the_device_or_says_that_the_tester_ended_first(make, capacity_fps, limit_fps):
    search = make(0.01)
    bed = DeviceTestbed(Knee(capacity_fps=capacity_fps), tester_limit_fps=limit_fps)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    for goal in search.result().goals:
        limited = Irregularity.TESTER_LIMITED in goal.irregularities
        truth_fps = capacity_fps / (1.0 - goal.goal.loss_ratio)
        if not limited:
            assert goal.lower.load_fps <= truth_fps + 2.0
        if truth_fps < limit_fps * 0.98:
            assert goal.regular
        if truth_fps > limit_fps * 1.03:
            assert limited
