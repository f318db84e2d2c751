"""Live tests need root on Linux; they say so where they cannot run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from weirlab.errors import MissingCapability
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.netns import NetnsTestbed

LOST = ("lost_at_entrance", "lost_at_exit", "lost_elsewhere")


@pytest.fixture
def bed() -> Iterator[NetnsTestbed]:
    """A Linux router of its own for each test."""
    try:
        made = NetnsTestbed(settle_s=0.1)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made:
        yield made


@pytest.fixture
def undisturbed() -> Callable[[NetnsTestbed, TrialSpec], Trial]:
    """Makes trials until the machine takes no CPU away for long: all frames are sent, none later than 10 ms,
    and none is lost in the queues before and behind the router. Each trial must account for every frame.
    Skips where five are disturbed.
    """

    def trial_of(bed: NetnsTestbed, spec: TrialSpec) -> Trial:
        for index in range(5):
            trial = bed.trial(replace(spec, index=index))
            late_s, *lost = (trial.facts[name] for name in ("lateness_max_s", *LOST))
            assert trial.received_frames + sum(lost) == trial.sent_frames
            in_queues = lost[0] + lost[1]
            all_sent = trial.sent_frames == trial.intended_frames
            if all_sent and late_s < 0.01 and not in_queues:
                return trial
        return pytest.skip(
            f"too busy for exact counts: the last of five trials sent {trial.sent_frames} frames of "
            f"{trial.intended_frames}, up to {1e3 * late_s:.0f} ms late, and lost {in_queues} in queues"
        )

    return trial_of


@pytest.fixture
def two_cpus() -> None:
    """Skips where the router would share the sender's CPU."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs: with one the router never loses")


@pytest.fixture
def trial_spec():
    """Makes a trial of a given load."""

    def make(load_fps: float, duration_s: float = 0.3, **changes: object) -> TrialSpec:
        given: dict[str, object] = {"index": 0, "frame_size_bytes": 64, **changes}
        return TrialSpec(intended_load_fps=load_fps, duration_s=duration_s, **given)

    return make
