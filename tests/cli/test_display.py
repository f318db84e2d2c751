"""What a search says of its trials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weirlab.cli.display import outcome_text, search_display
from weirlab.searches import ControlledSearch, LoadRange, SearchGoal, run_search
from weirlab.searches.mdr import Mdr
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Knee
from weirlab.testbed.sim import DeviceTestbed


def trial(sent: int, lost: int, *, stopped_early: bool = False) -> Trial:
    spec = TrialSpec(index=0, intended_load_fps=4e6, duration_s=10.0, frame_size_bytes=64, loss_budget=0.0)
    return Trial(
        spec=spec,
        intended_frames=sent,
        sent_frames=sent,
        received_frames=sent - lost,
        effective_duration_s=10.0,
        offered_load_fps=4e6,
        stopped_early=stopped_early,
    )


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (trial(40_000_000, 0), "no loss"),
        (trial(40_000_000, 80_000), "lost 80,000 of 40,000,000 (0.200%)"),
        (trial(40_000_000, 1), "lost 1 of 40,000,000 (below 0.001%)"),
        (
            trial(400_000, 32, stopped_early=True),
            "lost 32 of 400,000 (0.008%), stopped after 0.1 s",
        ),
    ],
)
def test_a_loss_is_never_rounded_to_none_and_a_stopped_trial_says_so(measured: Trial, says: str) -> None:
    assert outcome_text(measured) == says


def test_a_trial_that_was_made_again_says_so() -> None:
    first = trial(1000, 0)
    again = replace(first, spec=replace(first.spec, purpose="repeat"))
    assert outcome_text(again) == "no loss, a repetition"
    assert "repetition" not in outcome_text(first)


def test_a_load_that_is_beyond_the_tester_is_told_once_with_what_the_tester_sent(capsys) -> None:
    goals = [SearchGoal.ndr(duration_s=1.0, width=0.01)]
    search = ControlledSearch(Mdr(goals, LoadRange(1e4, 1e6)), frame_size_bytes=64)
    bed = DeviceTestbed(Knee(capacity_fps=4e5), tester_limit_fps=9e5)
    with search_display("knee", goals, None) as display:
        run_search(search, bed, on_progress=display)
    lines = capsys.readouterr().err.splitlines()
    told = [place for place, line in enumerate(lines) if "beyond the tester" in line]
    assert [lines[place] for place in told] == [
        "1 Mframe/s and more are beyond the tester, which sent 900 kframe/s; they are not offered again"
    ]
    assert "a repetition" in lines[told[0] - 1]
