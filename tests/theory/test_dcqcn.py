"""The fixed point of DCQCN against its equations in full and in the approximation of the paper."""

from dataclasses import replace

import pytest

from weirlab.theory.dcqcn import DcqcnPoint

FRAME_BITS = 8 * 1000
# Parameters of the paper, two flows into 40 Gbit/s.
PAPER = DcqcnPoint(
    service_fps=40e9 / FRAME_BITS,
    flows=2,
    notify_every_s=50e-6,
    g=1 / 256,
    alpha_timer_s=55e-6,
    counter_frames=10_000,
    timer_s=55e-6,
    stages=5,
    increase_fps=40e6 / FRAME_BITS,
    k_min_frames=5,
    k_max_frames=200,
    p_max=0.01,
)


def test_rates_rest_at_the_fixed_point() -> None:
    p, x = PAPER.marking, PAPER.fair_fps
    alpha = 1 - (1 - p) ** (PAPER.alpha_timer_s * x)
    # The target that rests: what it gains in the stages beyond fast recovery it loses by notifications.
    gained, lost = PAPER.rates(p, x, x, alpha)[1], PAPER.rates(p, x, x + 1, alpha)[1]
    target = x + gained / (gained - lost)
    for slope, scale in zip(PAPER.rates(p, x, target, alpha), (x, x, 1), strict=True):
        assert abs(slope) < 1e-6 * scale / PAPER.notify_every_s
    assert target > x


def test_more_marks_slow_rates_down_and_fewer_let_them_grow() -> None:
    p, x = PAPER.marking, PAPER.fair_fps
    alpha = 1 - (1 - p) ** (PAPER.alpha_timer_s * x)
    gained, lost = PAPER.rates(p, x, x, alpha)[1], PAPER.rates(p, x, x + 1, alpha)[1]
    target = x + gained / (gained - lost)
    assert PAPER.rates(2 * p, x, target, alpha)[0] < 0 < PAPER.rates(p / 2, x, target, alpha)[0]


@pytest.mark.parametrize("flows", [1, 2, 5])
def test_the_cube_root_holds_where_marks_are_rare(flows: int) -> None:
    """With stages that are short against the time between marks little of the powers of 1 - p is left."""
    rare = replace(PAPER, flows=flows, increase_fps=PAPER.increase_fps / 1e6)
    assert rare.marking == pytest.approx(rare.marking_estimate, rel=0.01)
    assert PAPER.marking < PAPER.marking_estimate


def test_a_queue_rests_where_its_ramp_has_that_probability() -> None:
    assert PAPER.queue_frames == pytest.approx(5 + 195 * PAPER.marking / 0.01)
    assert replace(PAPER, flows=4).queue_frames > PAPER.queue_frames, "more flows need more marks"
    with pytest.raises(ValueError, match="do not reach"):
        _ = replace(PAPER, flows=40).queue_frames
