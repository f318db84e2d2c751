"""What a frame costs a router, from the account of its CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weirlab.searches.forwarding import forwarding_cost
from weirlab.testbed.base import Trial, TrialSpec

COST_S = 1.25e-6
TICK_S = 0.01


def trial(load_fps: float, spent_s: float | None, lost: int = 0, **facts: Any) -> Trial:
    spec = TrialSpec(index=0, intended_load_fps=load_fps, duration_s=1.0, frame_size_bytes=64)
    sent = spec.intended_frames
    return Trial(
        spec=spec,
        intended_frames=sent,
        sent_frames=sent,
        received_frames=sent - lost,
        effective_duration_s=1.0,
        offered_load_fps=load_fps,
        facts={"router_cpu": 0, "router_softirq_s": spent_s, **facts},
    )


def test_the_cost_of_a_frame_is_found_through_ticks_of_ten_milliseconds() -> None:
    """The interval holds the truth as often as 95 % of 200 searches do, in all but one of 1000 such tests."""
    rng = np.random.default_rng(5)
    hits, errors = 0, []
    for _ in range(200):
        loads = rng.uniform(300e3, 600e3, size=15)
        # A tick counts for whoever it meets: as often as the CPU is in use.
        spent = rng.binomial(100, loads * COST_S) * TICK_S
        found = forwarding_cost([trial(load, float(s)) for load, s in zip(loads, spent, strict=True)])
        assert found is not None
        errors.append(found.relative_error)
        hits += abs(found.cpu_s_per_frame / COST_S - 1.0) <= found.relative_error
    assert hits >= 179
    assert np.median(errors) < 0.08
    assert found.capacity_fps == pytest.approx(1.0 / found.cpu_s_per_frame)


def test_overloaded_trials_and_those_far_below_the_limit_do_not_count() -> None:
    good = [trial(load, load * COST_S) for load in (400e3, 500e3, 600e3)]
    other = [trial(900e3, 1.0, lost=200_000), trial(50e3, 0.3), trial(550e3, None)]
    found = forwarding_cost(good + other)
    assert found is not None
    assert found.trials == 3
    assert found.cpu_s_per_frame == pytest.approx(COST_S)
    assert found.relative_error == pytest.approx(0.0, abs=1e-9)


def test_nothing_is_told_where_nobody_knows() -> None:
    assert forwarding_cost([]) is None
    assert forwarding_cost([trial(4e5, 0.5), trial(5e5, 0.6)]) is None, "two trials"
    assert forwarding_cost([trial(4e5, None)] * 5) is None, "a kernel that does not tell"
    assert forwarding_cost([trial(4e5, 0.0)] * 5) is None
    beside_the_sender = [trial(4e5, 0.5, router_cpu=None)] * 5
    assert forwarding_cost(beside_the_sender) is None
