"""What the testbed of namespaces makes of what was counted, without a single frame."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from weirlab.errors import InputError, MissingCapability
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.namespaces import set_sysctl
from weirlab.testbed.netns import _frames, _was_cut_short, _was_decided

SPEC = TrialSpec(index=0, intended_load_fps=1000.0, duration_s=2.0, frame_size_bytes=64, loss_budget=0.0)


@pytest.mark.parametrize(
    ("stopped", "intended", "cut_short"),
    [(True, 1500, True), (True, 2000, False), (False, 2000, False)],
)
def test_a_trial_whose_loss_is_seen_after_the_last_frame_was_sent_is_a_whole_one(
    stopped, intended, cut_short
):
    outcome = {"stopped": stopped, "directions": [{"intended": intended - 500}, {"intended": 500}]}
    assert _was_cut_short(SPEC, outcome) is cut_short


def test_directions_have_as_many_frames_to_one_and_all_together_those_of_the_trial():
    both = replace(SPEC, intended_load_fps=1000.5, directions=2)
    assert _frames(both, 1518) == [1001, 1000]
    with pytest.raises(InputError, match="one way or both ways \\(got 3\\)"):
        _frames(replace(SPEC, directions=3), 1518)


@pytest.mark.parametrize(
    ("lost", "lost_early", "drops", "decided"),
    [(11, 0, 0, True), (10, 4, 0, False), (10, 6, 0, True), (16, 6, 6, False), (10, 6, 1, False)],
)
def test_a_stop_is_believed_only_if_the_counts_at_the_end_say_the_same(lost, lost_early, drops, decided):
    spec = replace(SPEC, loss_budget=0.005, look_s=1.0)
    ways = [
        {"sent": 1000, "received": 1000 - lost, "receiver_drops": drops, "lost_early": lost_early},
        {"sent": 1000, "received": 1000, "receiver_drops": 0, "lost_early": 0},
    ]
    assert _was_decided(spec, {"directions": ways}) is decided


def test_a_container_that_shows_settings_read_only_is_named_with_what_to_do(monkeypatch):
    def refuse(*_given):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(MissingCapability, match=r"/proc/sys/net/ipv4/ip_forward .* --privileged"):
        set_sysctl("ipv4.ip_forward", 1)
