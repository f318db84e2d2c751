"""The load that half of the trials pass."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from weirlab.report.search_tables import half_texts
from weirlab.searches import FoundRates, GoalResult, SearchGoal
from weirlab.searches.base import Irregularity
from weirlab.searches.controller import Outcome
from weirlab.searches.half import LEAST_UNDISTURBED, USABLE, HalfLoad, half_load
from weirlab.testbed.base import Trial, TrialSpec

NDR = SearchGoal.ndr(duration_s=1.0)
TRUE_FPS = 330e3


def outcome(
    load_fps: float, *, passed: bool, duration_s: float = 1.0, disturbance: str = "", index: int = 0
) -> Outcome:
    spec = TrialSpec(index=index, intended_load_fps=load_fps, duration_s=duration_s, frame_size_bytes=64)
    sent = spec.intended_frames
    trial = Trial(
        spec=spec,
        intended_frames=sent,
        sent_frames=sent,
        received_frames=sent - (0 if passed else 10),
        effective_duration_s=duration_s,
        offered_load_fps=load_fps,
        disturbance=disturbance,
    )
    return Outcome(load_fps, duration_s, trial.loss_ratio, load_fps, trial)


def walk(rng: np.random.Generator, slope: float, count: int) -> list[Outcome]:
    """Trials as a search makes them: up after a pass, down after a failure, in ever smaller steps."""
    made, load, step = [], math.log(4 * TRUE_FPS), 0.7
    for _ in range(count):
        chance = 1.0 / (1.0 + math.exp(min(700.0, slope * (load - math.log(TRUE_FPS)))))
        passed = bool(rng.random() < chance)
        made.append(outcome(math.exp(load), passed=passed))
        load += step if passed else -step
        step = max(0.6 * step, 0.02)
    return made


def holds(estimate: HalfLoad) -> bool:
    return (estimate.low_fps or 0.0) <= TRUE_FPS <= (estimate.high_fps or math.inf)


@pytest.mark.parametrize(("slope", "count"), [(200.0, 30), (25.0, 30), (8.0, 80)])
def test_the_interval_holds_the_load_as_often_as_it_says(slope: float, count: int) -> None:
    """Of 60 searches no fewer than a coverage of 95 % has in all but one of 1000 such tests; they need not be
    more, as the interval may be too wide."""
    rng = np.random.default_rng(20260)
    found = [half_load(NDR, walk(rng, slope, count)) for _ in range(60)]
    hits = sum(estimate is not None and holds(estimate) for estimate in found)
    assert hits >= binom.ppf(0.001, 60, 0.95)


def test_without_overlap_the_load_lies_between_what_passed_and_what_failed() -> None:
    seen = [outcome(load, passed=load < 330e3) for load in (1e5, 2e5, 3e5, 3.2e5, 3.4e5, 4e5, 6e5, 1e6)]
    estimate = half_load(NDR, seen)
    assert estimate is not None
    assert 3.2e5 < estimate.load_fps < 3.4e5
    assert 3.2e5 < estimate.isotonic_fps < 3.4e5
    assert estimate.relative_error is not None
    assert not estimate.is_doubtful


def test_short_failures_far_above_say_as_much_as_long_ones_and_the_estimate_stays_between_the_bounds() -> (
    None
):
    """A search of a device that is the same each time: one long pass, failures stopped early."""
    goal = SearchGoal.pdr(duration_s=30.0)
    seen = [outcome(10.627e6, passed=True, duration_s=30.0), outcome(10.2e6, passed=True, duration_s=1.0)]
    seen += [
        replace(outcome(load, passed=True, duration_s=0.4), loss_ratio=ratio)
        for load, ratio in ((29.8e6, 0.64), (12e6, 0.1), (10.9e6, 0.02), (10.68e6, 0.006))
    ]
    lossy = [_with_loss(each) for each in seen]
    estimate = half_load(goal, lossy)
    assert estimate is not None
    assert 10.627e6 <= estimate.load_fps <= 10.68e6


def _with_loss(seen: Outcome) -> Outcome:
    """The same with the frames received that its loss ratio says."""
    trial = seen.trial
    received = round(trial.sent_frames * (1.0 - seen.loss_ratio))
    return replace(seen, trial=replace(trial, received_frames=received))


def test_more_trials_make_the_interval_narrower() -> None:
    rng = np.random.default_rng(7)
    few, many = half_load(NDR, walk(rng, 25.0, 40)), half_load(NDR, walk(rng, 25.0, 160))
    assert few is not None
    assert many is not None
    assert few.relative_error is not None
    assert many.relative_error is not None
    assert many.relative_error < few.relative_error


def test_while_none_passed_or_none_failed_there_is_no_estimate() -> None:
    assert half_load(NDR, []) is None
    assert half_load(NDR, [outcome(load, passed=True) for load in (1e5, 2e5)]) is None
    assert half_load(NDR, [outcome(load, passed=False) for load in (1e5, 2e5)]) is None


def test_each_goal_has_an_estimate_of_its_own_from_the_same_trials() -> None:
    """Ten lost frames are too many for the NDR and few enough for the PDR."""
    seen = [outcome(load, passed=load < 330e3) for load in np.linspace(1e5, 6e5, 12)]
    seen += [Outcome(9e5, 1.0, 0.3, 6e5, replace(outcome(9e5, passed=False).trial, received_frames=600_000))]
    ndr, pdr = half_load(NDR, seen), half_load(SearchGoal.pdr(duration_s=1.0), seen)
    assert ndr is not None
    assert pdr is not None
    assert ndr.load_fps < 4e5 < 6e5 < pdr.load_fps < 9e5


def test_disturbed_trials_are_left_out_passed_and_failed_alike_where_others_are_enough() -> None:
    loads = np.linspace(2e5, 5e5, LEAST_UNDISTURBED + 2)
    clean = [outcome(load, passed=load < 330e3) for load in loads]
    disturbed = [outcome(load, passed=False, disturbance="busy") for load in (1.5e5, 2e5, 2.5e5)]
    disturbed += [outcome(4.5e5, passed=True, disturbance="busy")]
    assert half_load(NDR, clean + disturbed) == replace(half_load(NDR, clean), left_out=4)
    too_few = clean[:: len(clean) // 4]
    with_all = half_load(NDR, too_few + disturbed)
    assert with_all is not None
    assert (with_all.trials, with_all.left_out) == (len(too_few) + 4, 0)


def test_a_shorter_trial_weighs_less() -> None:
    sure = [outcome(load, passed=load < 330e3) for load in (2e5, 2.5e5, 3e5, 3.6e5, 4.2e5, 5e5)]
    contradiction = [outcome(4.6e5, passed=True, duration_s=duration_s) for duration_s in (0.05, 1.0)]
    light, heavy = (half_load(NDR, [*sure, each]) for each in contradiction)
    assert light is not None
    assert heavy is not None
    assert light.load_fps < heavy.load_fps


def test_a_load_beyond_the_tester_says_nothing() -> None:
    seen = [outcome(load, passed=load < 330e3) for load in (2e5, 3e5, 3.5e5, 4e5)]
    beyond = replace(outcome(2.1e5, passed=False), beyond_tester=True)
    assert half_load(NDR, [*seen, beyond]) == half_load(NDR, seen)


def text_of(seen: list[Outcome], *, regular: bool = False) -> str:
    reasons = {} if regular else {Irregularity.NO_UPPER_BOUND: ""}
    goal = GoalResult(goal=NDR, lower=None, upper=None, outcomes=seen, irregularities=reasons)
    (text,) = half_texts(FoundRates([goal], trials=[each.trial for each in seen]))
    return text


def test_an_interval_that_is_too_wide_is_no_estimate_and_says_what_to_do() -> None:
    seen = [outcome(load, passed=load < TRUE_FPS) for load in (1.5e5, 6e5)]
    assert not half_load(NDR, seen).is_usable
    text = text_of(seen)
    assert text == (
        "NDR: no best estimate: 2 trials do not say which load half of them pass. Allow more trials (a "
        "longer time limit), and search again."
    )
    assert "about" not in text
    assert "±" not in text


def test_only_where_the_machine_disturbed_trials_other_programs_are_to_end() -> None:
    seen = [outcome(load, passed=load < TRUE_FPS) for load in (1.5e5, 6e5)]
    assert "programs" not in text_of(seen)
    disturbed = [*seen, outcome(6e5, passed=False, disturbance="others kept the CPU")]
    assert "End other programs, allow more trials" in text_of(disturbed)


def test_a_regular_search_of_few_trials_needs_no_estimate_and_no_remedy() -> None:
    seen = [outcome(load, passed=load < TRUE_FPS) for load in (1.5e5, 6e5)]
    assert text_of(seen, regular=True) == ("NDR: 2 trials settled the rate; a best estimate would need more.")


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((1.8e5, 4.7e5), "half of the trials pass somewhere between 180 and 470 kframe/s ("),
        ((1.8e5, None), "half of the trials pass somewhere above 180 kframe/s ("),
        ((None, 4.7e5), "half of the trials pass somewhere below 470 kframe/s ("),
        ((None, None), "9 trials do not say which load half of them pass. Allow more trials"),
    ],
)
def test_what_is_known_without_an_estimate_is_said_with_its_ends(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[float | None, float | None], said: str
) -> None:
    wide = HalfLoad(load_fps=3e5, low_fps=ends[0], high_fps=ends[1], isotonic_fps=3e5, trials=9, left_out=0)
    monkeypatch.setattr("weirlab.searches.half.half_load", lambda goal, outcomes: wide)
    text = text_of([])
    assert f"no best estimate: {said}" in text
    assert ("(95 % interval, 9 trials), which is too wide to use. Allow more trials" in text) == (
        ends != (None, None)
    )


@pytest.mark.parametrize(("error", "usable"), [(0.03, True), (USABLE, True), (0.21, False), (0.47, False)])
def test_an_estimate_is_usable_up_to_twenty_per_cent(error: float, usable: bool) -> None:
    found = HalfLoad(
        load_fps=1e6,
        low_fps=1e6 - 1e6 * error,
        high_fps=1e6 + 1e6 * error,
        isotonic_fps=1e6,
        trials=9,
        left_out=0,
    )
    assert found.is_usable == usable


def test_an_estimate_is_written_with_its_error() -> None:
    text = text_of(walk(np.random.default_rng(3), 200.0, 40))
    assert text.startswith("NDR: best estimate: half of the trials pass at about 3")
    assert " kframe/s ± " in text
