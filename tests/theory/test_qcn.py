"""The loop of QCN against its own nonlinear equations and against the laws of recovery."""

from dataclasses import replace

import numpy as np
import pytest

from weirlab.theory.qcn import QcnPoint

FRAME_BITS = 12_000
# Ten flows into one 10 Gb/s link, parameters of the standard: 22 frames set point, w = 2, half off at most.
STANDARD = QcnPoint(
    service_fps=10e9 / FRAME_BITS,
    flows=10,
    sampling=0.01,
    most_sampling=150 / 18.5,
    w=2.0,
    gd=0.5 / (5 * 22),
    q_eq_frames=22,
    increase_fps=5e6 / FRAME_BITS,
    hyper_increase_fps=50e6 / FRAME_BITS,
    counter_frames=100,
    timer_s=15e-3,
    delay_s=10e-6,
)


def test_without_a_timer_the_steps_of_recovery_are_a_geometric_sum():
    """All cycles equal: steps per frame p / ((1 - p)^-B - 1)."""
    slow = replace(STANDARD, recovery_stages=10**6, timer_s=1e9)
    steps, growth = slow.recovery(0.01, 1e5)
    assert steps == pytest.approx(0.01 / (0.99**-100 - 1), rel=1e-9)
    assert growth == 0


def test_active_increase_comes_in_cycles_of_half_the_length():
    """Only the end of the fifth and later cycles raise the target: p inc sum over m >= 0 of
    (1 - p)^(500 + 50 m)."""
    byte_only = replace(STANDARD, timer_s=1e9)
    _, growth = byte_only.recovery(0.01, 1e5)
    part = 0.99**50
    assert growth == pytest.approx(0.01 * STANDARD.increase_fps * 0.99**500 / (1 - part), rel=1e-9)


def test_rates_rest_in_equilibrium():
    feedback, target = STANDARD.equilibrium
    p, x = STANDARD.sampling_at(feedback), STANDARD.fair_fps
    steps, growth = STANDARD.recovery(p, x)
    assert STANDARD.gd * feedback * x * x * p == pytest.approx((target - x) / 2 * x * steps, rel=1e-9)
    assert (target - x) * x * p == pytest.approx(x * growth, rel=1e-9)


def test_recovery_that_no_feedback_can_hold_has_no_equilibrium():
    wild = replace(STANDARD, increase_fps=1e9, most_sampling=1.0)
    with pytest.raises(ValueError, match="recover faster"):
        _ = wild.equilibrium


@pytest.mark.parametrize("flows", [4, 10, 50])
def test_the_phase_margin_is_used_up_at_the_delay_margin(flows):
    point = replace(STANDARD, flows=flows)
    at_margin = replace(point, delay_s=point.delay_margin_s)
    assert at_margin.phase_margin_deg == pytest.approx(0, abs=0.01)
    assert at_margin.rightmost_root(point.delay_margin_s).imag == pytest.approx(
        at_margin.crossover_rad_s, rel=1e-4
    )


def late_swing(point: QcnPoint, delay_s: float) -> float:
    """How far the queue of the nonlinear equations swings at the end, against the beginning, after a small
    push; Heun's method on 40 steps per delay."""
    step = delay_s / 40
    feedback, target = point.equilibrium
    lead = point.w / (point.service_fps * point.sampling_at(feedback))
    x, y, q = point.fair_fps, target, 0.0
    late = [(x, feedback)] * 40
    swings = []
    steps, growth = {}, {}
    base = point.sampling_at(feedback)
    for name, table in ((0, steps), (1, growth)):
        eps = 1e-4
        value = point.recovery(base, x)[name]
        by_p = (point.recovery(base * (1 + eps), x)[name] - point.recovery(base * (1 - eps), x)[name]) / (
            2 * eps * base
        )
        by_x = (point.recovery(base, x * (1 + eps))[name] - point.recovery(base, x * (1 - eps))[name]) / (
            2 * eps * x
        )
        table.update(value=value, by_p=by_p, by_x=by_x)

    def slope(x, y, late_x, late_f):
        p = point.sampling_at(late_f)
        own = [
            t["value"] + t["by_p"] * (p - base) + t["by_x"] * (x - point.fair_fps) for t in (steps, growth)
        ]
        return (
            -point.gd * late_f * x * late_x * p + (y - x) / 2 * x * own[0],
            -(y - x) * late_x * p + x * own[1],
            point.flows * x - point.service_fps,
        )

    q = 0.01
    for _ in range(40 * 250):
        now = feedback + q + lead * (point.flows * x - point.service_fps)
        late.append((x, now))
        first = slope(x, y, *late[-41])
        second = slope(x + step * first[0], y + step * first[1], *late[-40])
        x, y, q = (value + step / 2 * (a + b) for value, a, b in zip((x, y, q), first, second, strict=True))
        swings.append(abs(q))
    return float(np.max(swings[-1000:]) / np.max(swings[:1000]))


def test_the_nonlinear_equations_begin_to_swing_at_the_delay_margin():
    margin = STANDARD.delay_margin_s
    assert late_swing(STANDARD, 0.95 * margin) < 0.3
    assert late_swing(STANDARD, 1.05 * margin) > 3


def test_more_delay_leaves_less_phase():
    margins = [replace(STANDARD, delay_s=d).phase_margin_deg for d in (0.0, 20e-6, 60e-6, 120e-6)]
    assert margins == sorted(margins, reverse=True)
