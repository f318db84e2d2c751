"""A device that changed, told from one that answers at random, by the order of its answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirlab.search.classify import Criterion
from weirlab.search.controller import Outcome
from weirlab.search.drift import (
    deterioration,
    failures_since_pass,
    improvement,
    is_at_random,
    last_pass_s,
    passes_since_failure,
)
from weirlab.search.ledger import Ledger, Record
from weirlab.testbed.base import Trial, TrialSpec

Answers = Sequence[tuple[float, bool] | tuple[float, bool, float]]


def records(answers: Answers) -> list[Record]:
    """Those of whole trials (load, passed, duration, 1 s unless given) in the order of ``answers``."""
    ledger = Ledger([Criterion(0.0, 0.0, 10.0, 10.0)], [1.0], "trial")
    for index, (load_fps, passed, *given_s) in enumerate(answers):
        duration_s = given_s[0] if given_s else 1.0
        sent = round(load_fps * duration_s)
        received = sent if passed else sent - 1
        spec = TrialSpec(
            index=index,
            elapsed_s=10.0 * index,
            intended_load_fps=load_fps,
            duration_s=duration_s,
            frame_size_bytes=64,
        )
        trial = Trial(
            spec=spec,
            intended_frames=sent,
            sent_frames=sent,
            received_frames=received,
            effective_duration_s=duration_s,
            offered_load_fps=load_fps,
        )
        ledger.add(Outcome(load_fps, duration_s, trial.loss_ratio, received / duration_s, trial))
    return ledger.records(0)


WIDTH = 0.01
FAILED_FIRST: Answers = [(1000.0, False), *[(1030.0, True)] * 3, (1040.0, True), (1021.0, True)]
PASSED_FIRST: Answers = [(1000.0, True), *[(970.0, False)] * 3, (960.0, False), (979.0, False)]


def test_a_load_that_failed_first_and_passes_ever_since_was_improved_upon() -> None:
    change = improvement(records(FAILED_FIRST), WIDTH)
    assert change is not None
    assert (change.load_fps, change.improved, change.trials) == (1000.0, True, 5)
    assert (change.since, change.since_s) == (1, 11.0), "from its first pass on nothing new was seen"
    assert deterioration(records(FAILED_FIRST), WIDTH) is None


def test_a_load_that_passed_first_and_fails_ever_since_is_the_mirror_of_it() -> None:
    change = deterioration(records(PASSED_FIRST), WIDTH)
    assert change is not None
    assert (change.load_fps, change.improved, change.trials, change.since) == (1000.0, False, 5, 1)
    assert improvement(records(PASSED_FIRST), WIDTH) is None


@pytest.mark.parametrize("extra", [(1019.0, True), (990.0, True), (1030.0, True, 0.5)])
def test_a_change_needs_five_trials_two_widths_away_and_no_shorter(extra: tuple) -> None:
    assert improvement(records(FAILED_FIRST[:-1]), WIDTH) is None
    assert improvement(records([*FAILED_FIRST[:-1], extra]), WIDTH) is None
    assert improvement(records([*FAILED_FIRST[:-1], (1021.0, True)]), WIDTH) is not None


def test_a_load_that_fails_again_begins_anew() -> None:
    again = [*FAILED_FIRST[:3], (1000.0, False), *FAILED_FIRST[3:]]
    assert improvement(records(again), WIDTH) is None


@pytest.mark.parametrize(("furthest_fps", "improved"), [(1065.0, True), (1055.0, False)])
def test_a_change_has_to_reach_two_widths_further_than_twice_the_chance_that_is_seen(
    furthest_fps: float, improved: bool
) -> None:
    """Passed at 1020 frames/s and failed at 1000: 2 % of chance, so that 4 % and two widths are needed."""
    seen = records([(1020.0, True), (1000.0, False), *[(furthest_fps, True)] * 5])
    assert (improvement(seen, WIDTH) is not None) is improved


def test_what_failed_at_the_end_and_what_passed_last_is_counted_by_load() -> None:
    seen = records([(1000.0, True), (1000.0, False), (1000.0, False), (900.0, False)])
    assert [failures_since_pass(record) for record in seen] == [0, 2], "900 never passed"
    assert [last_pass_s(record) for record in seen] == [0.0, 1.0]


def test_passes_at_higher_loads_count_and_those_at_lower_ones_or_before_do_not() -> None:
    seen = records([(1010.0, True), (1000.0, False), (1010.0, True), (990.0, True), (1000.0, True)])
    assert passes_since_failure(seen, 1000.0) == 2


def test_passes_count_from_a_duration() -> None:
    seen = records([(1000.0, False), (1000.0, True, 1.0), (1000.0, True, 2.0), (1000.0, True, 4.0)])
    assert [passes_since_failure(seen, 1000.0, at_least_s) for at_least_s in (1.0, 2.0, 5.0)] == [3, 2, 0]


def test_a_pass_before_the_failure_makes_it_chance() -> None:
    seen = records([(1041.0, True), *FAILED_FIRST])
    assert is_at_random(seen)
    assert improvement(seen, WIDTH) is None


def test_short_passes_after_a_long_failure_are_no_improvement() -> None:
    seen = records([(1000.0, False, 10.0), *[(1030.0, True, 1.0)] * 5, (1030.0, True, 10.0)])
    assert improvement(seen, WIDTH) is None


def test_a_short_pass_does_not_contradict_a_long_failure() -> None:
    assert not is_at_random(records([(1000.0, True, 1.0), (1000.0, False, 10.0)]))
    assert is_at_random(records([(1000.0, True, 10.0), (1000.0, False, 1.0)]))


@given(st.lists(st.floats(100.0, 2000.0), max_size=30), st.floats(200.0, 1900.0))
def test_a_device_with_one_limit_neither_improves_nor_answers_at_random(
    loads: list[float], limit_fps: float
) -> None:
    seen = records([(load_fps, load_fps <= limit_fps) for load_fps in loads])
    assert improvement(seen, WIDTH) is None
    assert deterioration(seen, WIDTH) is None
    assert not is_at_random(seen)


@pytest.mark.parametrize("limit_fps", [900.0, 1050.0])
def test_a_limit_that_moved_up_once_is_an_improvement_where_the_loads_show_it(limit_fps: float) -> None:
    loads = [1000.0, 1020.0, 980.0, 1025.0, 1030.0, 1040.0, 1022.0, 1035.0]
    seen = records([(load, load <= (limit_fps if index < 2 else 1100.0)) for index, load in enumerate(loads)])
    assert (improvement(seen, WIDTH) is not None) is (limit_fps < 1000.0)
