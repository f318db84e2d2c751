"""Live tests need root on Linux; they say so where they cannot run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from weirlab.errors import MissingCapability
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.netns import NetnsTestbed


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
