"""Whether a device changed: an exact test whose errors are counted, and contradictions that ask for it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from weirlab.searches.classify import Criterion
from weirlab.searches.controller import Outcome
from weirlab.searches.drift import ERROR, FIRST, Change, Comparison, contradicted_at, trials_needed
from weirlab.searches.ledger import Ledger, Record
from weirlab.testbed.base import Trial, TrialSpec

Answers = Sequence[tuple[float, bool] | tuple[float, bool, float]]


def records(answers: Answers) -> Sequence[Record]:
    """Those of whole trials (load, passed, duration, 1 s unless given) in the order of ``answers``."""
    ledger = Ledger([Criterion(0.0, 0.0, 10.0, 10.0)], [1.0], "trial")
    for index, (load_fps, passed, *given_s) in enumerate(answers):
        duration_s = given_s[0] if given_s else 1.0
        sent = round(load_fps * duration_s)
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
            received_frames=sent - (not passed),
            effective_duration_s=duration_s,
            offered_load_fps=load_fps,
        )
        ledger.add(Outcome(load_fps, duration_s, trial.loss_ratio, sent / duration_s, trial))
    return ledger.records(0)


def asked(early: Sequence[float], late: Sequence[float], margin: float = 0.0) -> tuple[Change | None, int]:
    """The answer to a first question, and how many late trials it took."""
    comparison = Comparison(margin)
    for result in early:
        comparison.add(result, 0.0)
    comparison.ask()
    for number, result in enumerate(late, start=1):
        change = comparison.add(result, float(number))
        if change is not None or not comparison.asked:
            return change, number
    return None, len(late)


@pytest.mark.parametrize(
    ("early", "level", "late"), [(3, 0.005, 9), (3, 1 / 220, 9), (3, 0.0045, 10), (1, 0.02, 49)]
)
def test_as_many_late_trials_are_needed_as_make_all_of_them_above_the_early_ones_rare(
    early, level, late
) -> None:
    assert trials_needed(early, level) == late
    orders = itertools.combinations(range(early + late), early)
    if math.comb(early + late, early) < 1000:
        extreme = sum(places == tuple(range(early)) for places in orders)
        assert extreme / math.comb(early + late, early) <= level


def test_all_late_results_above_all_early_ones_are_a_change_and_those_below_the_other() -> None:
    change, took = asked([1.0, 1.1, 1.2], [1.3] * 20)
    assert change is not None
    assert change.size > 0.0
    assert took == 9
    assert change.chance == pytest.approx(1 / 220)
    change, _ = asked([1.0, 1.1, 1.2], [0.9] * 20)
    assert change is not None
    assert change.size == pytest.approx(math.log(0.9 / 1.1))


@pytest.mark.parametrize("late", [1.2, 1.05])
def test_the_first_late_result_among_the_early_ones_answers_no(late: float) -> None:
    assert asked([1.0, 1.1, 1.2], [1.3, 1.3, late, 1.3]) == (None, 3)


def test_a_change_below_the_margin_is_none() -> None:
    assert asked([1.0, 1.0, 1.0], [1.004] * 20, margin=0.005) == (None, 1)
    assert asked([1.0, 1.0, 1.0], [1.006] * 20, margin=0.005)[0] is not None


def test_each_further_question_needs_more_and_all_together_stay_below_the_error() -> None:
    comparison = Comparison(0.0)
    for _ in range(FIRST):
        comparison.add(1.0, 0.0)
    needed = []
    for _ in range(12):
        comparison.ask()
        needed.append(comparison.following)
        comparison.add(1.0, 1.0)
        assert not comparison.asked
    assert needed == sorted(needed)
    both_directions = sum(2.0 / math.comb(FIRST + late, FIRST) for late in needed)
    assert both_directions <= ERROR


@pytest.mark.parametrize("draw", ["gauss", "lognormvariate", "paretovariate"])
def test_a_device_that_stands_still_is_said_to_have_changed_no_more_often_than_stated(draw: str) -> None:
    """Whatever the distribution of its results. Of one question, each direction has the chance 1 / 220."""
    chance = random.Random(1)
    result = {
        "gauss": lambda: 10.0 + chance.gauss(0.0, 1.0),
        "lognormvariate": lambda: chance.lognormvariate(0.0, 2.0),
        "paretovariate": lambda: chance.paretovariate(0.5),
    }[draw]
    searches, expected = 20_000, 2 / 220
    wrong = sum(
        asked([result() for _ in range(3)], [result() for _ in range(9)])[0] is not None
        for _ in range(searches)
    )
    # Four standard errors of a count.
    assert abs(wrong - searches * expected) < 4.0 * math.sqrt(searches * expected)


def test_the_late_trials_of_a_change_are_the_early_ones_of_the_next_question() -> None:
    comparison = Comparison(0.0)
    for result in (1.0, 1.0, 1.0):
        comparison.add(result, 0.0)
    comparison.ask()
    while comparison.add(2.0, 1.0) is None:
        pass
    comparison.ask()
    assert comparison.add(2.0, 2.0) is None
    assert not comparison.asked, "it is where it was"


def test_a_pass_where_a_lower_load_had_failed_and_the_reverse_are_contradictions() -> None:
    assert contradicted_at(records([(1000.0, False), (1010.0, True)])) == 1
    assert contradicted_at(records([(1010.0, True), (900.0, True), (1000.0, False), (1.0, True)])) == 2
    assert contradicted_at(records([(1000.0, False), (1010.0, True), (1.0, True)]), after=0) == 1
    assert contradicted_at(records([(1000.0, False), (1010.0, True), (1.0, True)]), after=1) == -1
    assert contradicted_at(records([])) == -1


def test_what_fails_late_and_what_passes_in_a_shorter_trial_is_none() -> None:
    assert contradicted_at(records([(1000.0, False, 10.0), (1000.0, True, 1.0)])) == -1
    assert contradicted_at(records([(1000.0, False, 1.0), (1000.0, True, 10.0)])) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_device_with_one_limit_never_contradicts_itself(seed: int) -> None:
    chance = random.Random(seed)
    loads = [chance.uniform(100.0, 2000.0) for _ in range(30)]
    assert contradicted_at(records([(load_fps, load_fps <= 1000.0) for load_fps in loads])) == -1


def test_a_change_has_a_rate_which_tells_a_device_that_comes_to_rest_from_one_that_wears_out() -> None:
    def rates(result_of) -> list[float]:
        comparison, found, at_s = Comparison(margin=0.003), [], 0.0
        for _ in range(FIRST):
            comparison.add(result_of(at_s), at_s)
        for _ in range(3):
            comparison.ask()
            at_s += 40.0
            while comparison.asked:
                at_s += 1.0
                if (change := comparison.add(result_of(at_s), at_s)) is not None:
                    found.append(change.rate)
        assert len(found) == 3
        return found

    resting = rates(lambda at_s: 10.0 - 2.0 * math.exp(-at_s / 60.0))
    assert resting[0] > resting[1] > resting[2] > 0.0
    wearing_out = rates(lambda at_s: 10.0 - 0.02 * at_s)
    assert wearing_out[0] > wearing_out[1] > wearing_out[2]
