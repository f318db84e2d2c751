"""Evidence: the interval of a probability, the chance that one more trial fails, and the trials named."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from weirlab.searches import ControlledSearch, Irregularity, LoadRange, SearchGoal
from weirlab.searches.evidence import Evidence, Stationarity, clopper_pearson
from weirlab.searches.mlr import Mlr
from weirlab.searches.weir import Weir
from weirlab.testbed.devices import DeepBuffer, Device, Knee
from weirlab.testbed.sim import DeviceTestbed

counts = st.integers(2, 60).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


def at_most(most: int, trials: int, probability: float) -> float:
    return math.fsum(
        math.comb(trials, n) * probability**n * (1 - probability) ** (trials - n) for n in range(most + 1)
    )


@given(counts)
def test_the_ends_of_the_interval_leave_two_and_a_half_per_cent_in_each_tail(count: tuple[int, int]) -> None:
    failures, trials = count
    low, high = clopper_pearson(failures, trials)
    assert 0.0 <= low <= failures / trials <= high <= 1.0
    if failures > 0:
        assert 1.0 - at_most(failures - 1, trials, low) == pytest.approx(0.025, abs=1e-9)
    if failures < trials:
        assert at_most(failures, trials, high) == pytest.approx(0.025, abs=1e-9)


def test_one_clean_trial_says_little() -> None:
    """The rule of three in its exact form: 1 - 0.025^(1 / n)."""
    assert clopper_pearson(0, 1) == (0.0, pytest.approx(0.975))
    assert clopper_pearson(0, 100)[1] == pytest.approx(1 - 0.025 ** (1 / 100))
    assert clopper_pearson(0, 0) == (0.0, 1.0)


@given(counts)
def test_more_failures_move_the_interval_and_the_estimate_up(count: tuple[int, int]) -> None:
    failures, trials = count

    def evidence(exceeding: int) -> Evidence:
        return Evidence(
            lower_trials=[], upper_trials=[], full_trials=trials, exceeding_trials=exceeding, time_s=1.0
        )

    assert 0.0 < evidence(failures).exceed_estimate < 1.0
    if failures < trials:
        assert evidence(failures + 1).exceed_estimate > evidence(failures).exceed_estimate
        assert evidence(failures + 1).exceed_interval > evidence(failures).exceed_interval


def test_the_estimate_follows_the_rule_of_succession() -> None:
    two = Evidence(lower_trials=[], upper_trials=[], full_trials=2, exceeding_trials=0, time_s=10.0)
    assert two.exceed_estimate == pytest.approx(1 / 4)


@pytest.mark.parametrize("full_trials", [0, 1])
def test_one_trial_tells_nothing_of_the_next_one(full_trials: int) -> None:
    one = Evidence(lower_trials=[], upper_trials=[], full_trials=full_trials, exceeding_trials=0, time_s=10.0)
    assert one.exceed_estimate is None
    assert one.exceed_interval is None


def evidence_of(make: type[Mlr], goals: list[SearchGoal], device: Device) -> list[Evidence]:
    search = ControlledSearch(make(goals, LoadRange(2e4, 29.76e6)), frame_size_bytes=64)
    bed = DeviceTestbed(device)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return [goal.evidence for goal in search.result().goals if goal.evidence is not None]


def test_an_upper_bound_that_another_goal_had_tested_counts_as_tested() -> None:
    """On a device whose losses grow fast, all goals have the same bounds; one trial tests them all."""
    goals = [
        SearchGoal.ndr(duration_s=10.0, width=0.05),
        SearchGoal.pdr(0.0001, duration_s=10.0, width=0.05),
    ]
    ndr, pdr = evidence_of(Weir, goals, Knee(capacity_fps=7e5))
    assert ndr.upper_trials[-1].spec.intended_load_fps == pdr.upper_trials[-1].spec.intended_load_fps
    assert (ndr.stationarity_told, pdr.stationarity) == (
        "the upper bound failed again",
        Stationarity.CONFIRMED,
    )
    assert pdr.stationarity_told == "the upper bound failed again (tested for NDR)"


def test_why_a_bound_was_not_tested_is_said() -> None:
    ndr, pdr = SearchGoal.ndr(duration_s=10.0), SearchGoal.pdr(0.05, duration_s=10.0)
    knee = Knee(capacity_fps=7e5)
    notes = [
        [each.stationarity_note for each in evidence_of(make, [ndr, pdr], device)]
        for make, device in (
            (Weir, knee),
            (Mlr, knee),
            (lambda goals, loads: Weir(goals, loads, guard=False), knee),
            (Weir, Knee(capacity_fps=9e7)),
        )
    ]
    assert notes == [
        ["", "only the lowest upper bound is, that of NDR"],
        ["mlr tests no bound again at the end"] * 2,
        ["'guard' is off"] * 2,
        ["there is no upper bound"] * 2,
    ]
    (buffered,) = evidence_of(Weir, [ndr], DeepBuffer(buffer_frames=600_000))
    assert buffered.stationarity_told == "not tested (its failure took longer than a tenth of a trial)"


@pytest.mark.parametrize("limit_fps", [3.1e5, 5e5, 8.7e5, 2e6])
@pytest.mark.parametrize("make", [Mlr, Weir])
def test_evidence_names_each_trial_once_and_takes_no_longer_than_the_search(make, limit_fps: float) -> None:
    """Also where a goal wants many trials of a load and the tester cannot offer it."""
    goals = [
        SearchGoal(
            name=name, loss_ratio=ratio, width=0.005, duration_s=1.0, exceed_ratio=0.5, duration_sum_s=21.0
        )
        for name, ratio in (("NDR", 0.0), ("PDR", 0.005))
    ]
    search = ControlledSearch(make(goals, LoadRange(1e4, 1e6)), frame_size_bytes=64)
    bed = DeviceTestbed(Knee(capacity_fps=7e5), tester_limit_fps=limit_fps)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    result = search.result()
    made = {trial.spec.index: trial for trial in result.trials}
    for goal in result.goals:
        found, limited = goal.evidence, Irregularity.TESTER_LIMITED in goal.irregularities
        assert limited is (limit_fps < 7e5)
        assert found.time_s <= result.time_s * (1 + 1e-9)
        for bound, trials in ((goal.lower, found.lower_trials), (goal.upper, found.upper_trials)):
            numbers = [trial.spec.index for trial in trials]
            assert len(set(numbers)) == len(numbers) > 0
            assert all(made[trial.spec.index] is trial for trial in trials)
            assert bound.trial.spec.index in numbers
        if limited:
            assert found.stationarity is Stationarity.NOT_TESTED, "no trial of the device to repeat"
