"""What is legal but hardly meant is told before a run as it is by `weir check`."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_headroom_that_pause_can_exceed_is_told_by_check_and_run(weir, command: str) -> None:
    outcome = weir(command, "bcn-pause", "--set", "run.duration=1 ms", "--set", "measure=")
    assert outcome.code == 0, outcome.err
    assert "above 'xoff'" in outcome.out + outcome.err


@pytest.mark.parametrize("command", ["check", "search"])
def test_a_goal_that_lacks_a_percent_sign_is_told_by_check_and_search(weir, command: str) -> None:
    outcome = weir(command, "search-knee", "--set", "search.goals.PDR.loss=0.5")
    assert "search.goals.PDR.loss: allows 50 % of the frames" in outcome.out + outcome.err
    outcome = weir(command, "search-knee", "--set", "search.goals.PDR.loss=0.5 %")
    assert "allows" not in outcome.out + outcome.err
