"""The loops of BCN against the printed figures and against independent numerics."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from weirlab.theory.bcn import BcnPoint
from weirlab.theory.linear import DoubleIntegratorLoop, linear_delay_margin, rightmost_root

FRAME_BITS = 12_000
# Four flows into one 10 Gb/s link, BCN with the gains of the calibration deck, loop delay 10 us.
CALIBRATION = BcnPoint(
    service_fps=10e9 / FRAME_BITS,
    line_fps=10e9 / FRAME_BITS,
    flows=4,
    sampling=0.01,
    w=2.0,
    gi=12.42,
    gd=6.09e-3,
    ru_fps=1e6 / FRAME_BITS,
    q_eq_frames=16,
    delay_s=10e-6,
)

loops = st.builds(
    DoubleIntegratorLoop,
    gain=st.floats(1e2, 1e8),
    lead_s=st.floats(1e-5, 1e-2),
    delay_s=st.just(0.0),
    interval_s=st.just(0.0),
)


def roots_with_pade(loop: DoubleIntegratorLoop, delay_s: float, order: int = 8) -> np.ndarray:
    """Roots of s^2 D(s) + K (1 + T s) N(s), e^(-s tau) = N/D by Pade, in units of 1/tau."""
    up = [
        math.factorial(2 * order - k)
        * math.factorial(order)
        / (math.factorial(2 * order) * math.factorial(k) * math.factorial(order - k))
        for k in range(order + 1)
    ]
    below = np.array(up[::-1])
    above = below * (-1.0) ** np.arange(order, -1, -1)
    gain, lead = loop.gain * delay_s**2, loop.lead_s / delay_s
    return np.roots(np.polyadd(np.polymul([1, 0, 0], below), gain * np.polymul([lead, 1], above)))


def matrices(loop: DoubleIntegratorLoop) -> tuple[np.ndarray, np.ndarray]:
    now = np.array([[0.0, 1.0], [0.0, 0.0]])
    delayed = np.array([[0.0, 0.0], [-loop.gain, -loop.gain * loop.lead_s]])
    return now, delayed


def test_the_calibration_loops_have_their_known_margins():
    increase, decrease = CALIBRATION.increase, CALIBRATION.decrease
    assert increase.crossover_rad_s == pytest.approx(3321, abs=0.5)
    assert increase.phase_margin_deg == pytest.approx(36.7, abs=0.05)
    assert increase.delay_margin_s == pytest.approx(203e-6, abs=0.5e-6)
    assert increase.delay_margin_s - increase.interval_s / 2 == pytest.approx(143e-6, abs=0.5e-6)
    assert decrease.crossover_rad_s == pytest.approx(3778, abs=0.5)
    assert decrease.phase_margin_deg == pytest.approx(40.0, abs=0.05)
    assert decrease.delay_margin_s == pytest.approx(195e-6, abs=0.5e-6)
    assert decrease.delay_margin_s - decrease.interval_s / 2 == pytest.approx(135e-6, abs=0.5e-6)


def test_the_worse_loop_speaks_for_both():
    assert CALIBRATION.phase_margin_deg == CALIBRATION.increase.phase_margin_deg
    assert CALIBRATION.delay_margin_s == CALIBRATION.decrease.delay_margin_s


@given(loops)
def test_the_loop_has_gain_one_at_its_crossover(loop):
    s = 1j * loop.crossover_rad_s
    assert abs(loop.gain * (1 + loop.lead_s * s) / s**2) == pytest.approx(1, rel=1e-9)


@given(loops)
def test_roots_of_the_delayed_loop_cross_the_axis_at_the_delay_margin(loop):
    margin = loop.delay_margin_s
    assert rightmost_root(*matrices(loop), 0.99 * margin).real < 0
    assert rightmost_root(*matrices(loop), 1.01 * margin).real > 0
    at_margin = rightmost_root(*matrices(loop), margin)
    assert at_margin.real == pytest.approx(0, abs=1e-6 * loop.crossover_rad_s)
    assert abs(at_margin.imag) == pytest.approx(loop.crossover_rad_s, rel=1e-6)


@pytest.mark.parametrize("loop", [CALIBRATION.increase, CALIBRATION.decrease], ids=["increase", "decrease"])
def test_a_pade_approximation_crosses_at_the_same_delay(loop):
    assert roots_with_pade(loop, 0.999 * loop.delay_margin_s).real.max() < 0
    assert roots_with_pade(loop, 1.001 * loop.delay_margin_s).real.max() > 0


def test_the_known_root_of_a_scalar_delay_equation_is_found():
    """x' = -x(t - 1) has its rightmost roots at W(-1) = -0.31813 +- 1.33724 i."""
    root = rightmost_root(np.zeros((1, 1)), -np.ones((1, 1)), 1.0)
    assert root == pytest.approx(-0.3181315052 + 1.3372357014j, abs=1e-9)


def largest_late_swing(loop: DoubleIntegratorLoop, delay_s: float) -> float:
    """The sampled loop as a list of events: a queue, and jumps of its rate on their way. How far it swings in
    the last tenth of 600 intervals, against the first swing."""
    interval, weight = loop.interval_s, loop.lead_s / loop.interval_s
    queue, excess, before, now = 1.0, 0.0, 1.0, 0.0
    due: list[tuple[float, float]] = []
    swings = []
    for sample in range(1, 601):
        while due and due[0][0] < sample * interval:
            at, jump = due.pop(0)
            queue, now = queue + excess * (at - now), at
            excess += jump
        queue, now = queue + excess * (sample * interval - now), sample * interval
        feedback = -queue - weight * (queue - before)
        before = queue
        due.append((now + delay_s, loop.gain * interval * feedback))
        swings.append(abs(queue))
    return max(swings[-60:]) / max(swings[:60])


@pytest.mark.parametrize("loop", [CALIBRATION.increase, CALIBRATION.decrease], ids=["increase", "decrease"])
def test_a_sampled_loop_begins_to_swing_at_its_sampled_delay_margin(loop):
    assert largest_late_swing(loop, 0.97 * loop.sampled_delay_margin_s) < 0.5
    assert largest_late_swing(loop, 1.03 * loop.sampled_delay_margin_s) > 2


def test_the_sampled_margins_lie_where_the_packet_simulation_begins_to_swing():
    """It is calm at 150 us of delay and swings at 200 us; half an interval less than the continuous margins
    (143 and 135 us) is too little."""
    assert CALIBRATION.increase.sampled_delay_margin_s == pytest.approx(173.6e-6, abs=0.1e-6)
    assert CALIBRATION.decrease.sampled_delay_margin_s == pytest.approx(161.3e-6, abs=0.1e-6)


@given(st.floats(1e-6, 1e-4), st.floats(0.25, 8.0))
def test_weak_feedback_bears_as_much_delay_when_it_acts_at_samples_only(strength, weight):
    """Then hundreds of samples make a turn, and it does not matter where between them a rate jumps."""
    loop = DoubleIntegratorLoop(strength, weight, 0.0, 1.0)
    assert loop.sampled_delay_margin_s == pytest.approx(loop.delay_margin_s, rel=0.01)


def radius(loop: DoubleIntegratorLoop, delay_s: float) -> float:
    """Largest absolute eigenvalue of what one interval does to (q now, q at the last sample, excess rate x h,
    jumps on their way): with tau = (d + r) h and u the jump (times h) that the sample of now causes,
    q+ = q + x + (1 - r) u[d ago], x+ = x + u[d ago]. Time is counted in intervals."""
    whole, rest = divmod(delay_s / loop.interval_s, 1.0)
    under_way = int(whole)
    size = 3 + under_way
    jump = np.zeros(size)
    strength, weight = loop.gain * loop.interval_s**2, loop.lead_s / loop.interval_s
    jump[0], jump[1] = -strength * (1 + weight), strength * weight
    arriving = np.zeros(size)
    if under_way:
        arriving[-1] = 1.0
    else:
        arriving = jump
    matrix = np.zeros((size, size))
    matrix[0] = (1 - rest) * arriving
    matrix[0, 0] += 1
    matrix[0, 2] += 1
    matrix[1, 0] = 1
    matrix[2] = arriving
    matrix[2, 2] += 1
    if under_way:
        matrix[3] = jump
        matrix[4:, 3:-1] = np.eye(under_way - 1)
    return float(np.abs(np.linalg.eigvals(matrix)).max())


@given(st.floats(1e-3, 8.0), st.floats(0.05, 20.0))
def test_the_sampled_margin_is_where_an_interval_begins_to_enlarge_what_is_there(strength, weight):
    loop = DoubleIntegratorLoop(strength / (1 + 2 * weight), weight, 0.0, 1.0)
    margin = loop.sampled_delay_margin_s
    if margin == 0:
        assert radius(loop, 0.0) > 1 - 1e-9
        return
    assert all(radius(loop, part * margin) < 1 for part in np.linspace(0, 0.999, 12))
    assert radius(loop, 1.001 * margin) > 1


@pytest.mark.parametrize("weight", [0.25, 1.0, 2.0, 4.0])
def test_without_delay_the_sampled_loop_is_stable_up_to_four(weight):
    """At z = -1: K h^2 (1 + 2 w) = 4."""
    limit = 4 / (1 + 2 * weight)
    assert DoubleIntegratorLoop(0.999 * limit, weight, 0.0, 1.0).sampled_delay_margin_s > 0
    assert DoubleIntegratorLoop(1.001 * limit, weight, 0.0, 1.0).sampled_delay_margin_s == 0


@settings(max_examples=30)
@given(*2 * [arrays(float, (3, 3), elements=st.floats(-2.0, 2.0))])
def test_a_root_reaches_the_axis_at_the_linear_delay_margin(now, delayed):
    """Against collocation of the delayed system, which knows nothing of frequencies."""
    now = now - 3 * np.eye(3)
    assume(rightmost_root(now, delayed, 0.0).real < -1e-3)
    margin = linear_delay_margin(now, delayed)
    below = (0.05, 0.5, 3.0) if math.isinf(margin) else (0.2 * margin, 0.99 * margin)
    assume(math.isinf(margin) or margin < 10)  # beyond, the points are too few to see the root
    for delay in below:
        assert rightmost_root(now, delayed, delay, nodes=24).real < 1e-6
    if not math.isinf(margin):
        assert rightmost_root(now, delayed, margin, nodes=24).real == pytest.approx(0, abs=1e-5)


def test_a_gain_of_0_closes_no_loop_and_leaves_the_margins_to_the_other():
    only = replace(CALIBRATION, gi=0.0)
    assert list(only.loops) == ["decrease"]
    assert only.delay_margin_s == CALIBRATION.decrease.delay_margin_s
    assert only.phase_margin_deg == CALIBRATION.decrease.phase_margin_deg
    assert only.sampled_delay_margin_s == CALIBRATION.decrease.sampled_delay_margin_s
