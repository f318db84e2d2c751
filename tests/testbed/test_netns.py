"""What the testbed of namespaces makes of what was counted, without a single frame."""

from __future__ import annotations

import pytest

from weirlab.testbed.base import TrialSpec
from weirlab.testbed.netns import _was_cut_short

SPEC = TrialSpec(index=0, intended_load_fps=1000.0, duration_s=2.0, frame_size_bytes=64, loss_budget=0.0)


@pytest.mark.parametrize(
    ("stopped", "intended", "cut_short"),
    [(True, 1500, True), (True, 2000, False), (False, 2000, False)],
)
def test_a_trial_whose_loss_is_seen_after_the_last_frame_was_sent_is_a_whole_one(
    stopped, intended, cut_short
):
    assert _was_cut_short(SPEC, {"stopped": stopped, "intended": intended}) is cut_short
