"""Escape and starvation in the planes of the benchmark: load 85 %, and an output that serves 20 %."""

import math
from dataclasses import replace

import pytest

from weirlab.theory.bcn import BcnPoint
from weirlab.theory.large import (
    SharedMemory,
    escape_time,
    high_watermark,
    starvation_gain,
    starvation_sampling,
)

WINDOW = 30_000  # slots from the start of the hotspot to the window in which throughput is taken


def spot(ports: int, *, gd: float, p: float, part: int = 1) -> tuple[BcnPoint, SharedMemory]:
    memory = 256 * ports
    point = BcnPoint(0.2, 1.0, ports - 1, p, 1.0, 1.0, gd, 1e-3, memory / (part * ports))
    return point, SharedMemory(high_watermark(memory, ports, 0), 0.85)


def test_the_high_watermark_keeps_room_for_what_is_on_the_way():
    assert high_watermark(8192, 32, 0) == 8160
    assert high_watermark(8192, 32, 20) == 8192 - 32 * 21


@pytest.mark.parametrize(
    ("gd", "p", "escapes"),
    [
        (0.0005, 0.05, False),  # simulated: .327 of .83
        (0.001, 0.03, False),  # .380
        (0.001, 0.05, True),  # .829
        (0.002, 0.01, False),  # .490
        (0.002, 0.02, True),  # .829: the corner of the claimed range
        (0.005, 0.01, True),  # .829
    ],
)
def test_the_low_edge_of_the_plane_is_the_escape_from_pause(gd, p, escapes):
    assert (escape_time(*spot(32, gd=gd, p=p)) < WINDOW) is escapes


def test_with_half_the_set_point_the_corner_of_the_claimed_range_escapes_too_late():
    """Simulated: .332 and .670 at the corner; .828 from Gd = .005 on."""
    assert escape_time(*spot(32, gd=0.002, p=0.02, part=2)) > 60_000
    assert 30_000 < escape_time(*spot(32, gd=0.002, p=0.03, part=2)) < 60_000
    assert escape_time(*spot(32, gd=0.005, p=0.02, part=2)) == 0


def test_escape_takes_longer_with_less_gain_and_fewer_samples():
    gains = [escape_time(*spot(32, gd=gd, p=0.02)) for gd in (0.0, 0.0005, 0.001, 0.002, 0.005)]
    samples = [escape_time(*spot(32, gd=0.001, p=p)) for p in (0.01, 0.02, 0.03, 0.05)]
    assert gains[0] == math.inf
    assert gains == sorted(gains, reverse=True)
    assert samples == sorted(samples, reverse=True)


@pytest.mark.parametrize(("ports", "known"), [(8, 0.1077), (32, 0.0213)])
def test_the_sampling_below_which_the_hot_port_starves(ports, known):
    """Simulated at Gd = .05: N = 8 starves over the whole range, N = 32 at .01 and a little at .02."""
    point, _ = spot(ports, gd=0.05, p=0.01)
    assert starvation_sampling(point) == pytest.approx(known, abs=1e-4)


def test_the_claimed_range_lies_below_the_gain_that_starves():
    for p in (0.02, 0.05):
        point, memory = spot(8, gd=0.005, p=p)
        assert point.gd < starvation_gain(point, memory)
    point, memory = spot(8, gd=0.02, p=0.01)  # simulated: .09 of .20
    assert point.gd > starvation_gain(point, memory)


def test_nothing_starves_without_weight_on_the_change_or_with_a_floor_above_the_service():
    point, memory = spot(8, gd=0.05, p=0.01)
    assert starvation_gain(replace(point, w=0.0), memory) == math.inf
    assert starvation_sampling(replace(point, ru_fps=0.1)) == 0
