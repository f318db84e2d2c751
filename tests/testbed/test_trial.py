"""What a trial is: ratios that are exact, and counts that cannot be."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, strategies as st

from weirlab.errors import ImpossibleTrial, InputError
from weirlab.testbed.base import Trial, TrialSpec


def spec(**changed: object) -> TrialSpec:
    return TrialSpec(
        **{"index": 7, "intended_load_fps": 1000.0, "duration_s": 1.0, "frame_size_bytes": 64} | changed
    )


def trial(sent: int = 1000, received: int = 1000, **changed: object) -> Trial:
    counts = {"intended_frames": sent, "sent_frames": sent, "received_frames": received}
    return Trial(
        **{"spec": spec(), "effective_duration_s": 1.0, "offered_load_fps": 1000.0} | counts | changed
    )


@given(per_mille=st.integers(1, 999), thousands=st.integers(1, 10**12))
def test_a_loss_of_exactly_the_goals_ratio_is_the_goals_ratio_and_one_frame_more_is_more(
    per_mille, thousands
):
    goal = per_mille / 1000
    sent, lost = 1000 * thousands, per_mille * thousands
    assert trial(sent, sent - lost).loss_ratio == goal
    assert trial(sent, sent - lost).loss_ratio_of_intended == goal
    assert trial(sent, sent - lost, sent_frames=sent - lost).unsent_ratio == goal
    assert trial(sent, sent - lost - 1).loss_ratio > goal


@given(sent=st.integers(1, 2**62), received=st.integers(0, 2**62))
def test_a_loss_ratio_is_the_nearest_float_and_zero_only_without_loss(sent, received):
    assume(received <= sent)
    ratio = trial(sent, received).loss_ratio
    assert ratio == float(Fraction(sent - received, sent))
    assert (ratio == 0.0) == (received == sent)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sent_frames": 1000.5}, "sent_frames is no whole number"),
        ({"received_frames": 995.0}, "received_frames is no whole number"),
        ({"intended_frames": 0}, "1000 frames were sent where none was intended"),
        ({"received_frames": 995, "reordered_frames": 5000}, "5000 of 995 received frames came out of order"),
        ({"latency_s": {"p50": math.nan}}, "p50 is nan"),
        ({"facts": {"lateness_s": math.inf}}, "lateness_s is inf"),
    ],
)
def test_counts_and_figures_that_cannot_be_are_refused(changed, message):
    with pytest.raises(ImpossibleTrial, match=f"trial 7: .*{message}"):
        trial(**changed)


@pytest.mark.parametrize("budget", [math.nan, -0.1, 1.1])
def test_a_loss_budget_is_a_ratio(budget):
    with pytest.raises(InputError, match="loss budget"):
        spec(loss_budget=budget)
