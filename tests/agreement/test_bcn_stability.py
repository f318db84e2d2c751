"""BCN in the simulator against its linear theory: where a loop begins to oscillate with its delay.

The rates of the calibration (four flows through a port of 10 Gbit/s, samples every 150 kB), with nothing that
theory does not know: samples at equal distances, no jitter of pacing, no severe congestion, no drift.
"""

from __future__ import annotations

import functools

import pytest

from weirlab.evaluation import measured
from weirlab.runs import simulate
from weirlab.scenario import Scenario, load
from weirlab.theory.bcn import BcnPoint

FRAME_BITS = 12_000
OWN_US = 5
"""Delay of the loop without what is added: a frame of 64 B, links, switches and the response of the host."""
Q_EQ = 16
"""Set point in frames."""


def scenario(added_us: int) -> Scenario:
    """The calibration, with notifications that come later by `added_us`."""
    return load(
        "bcn-no-drift",
        {
            "control.bcn.congestion_point.sampling.jitter": 0,
            "control.bcn.congestion_point.notification.delay": f"{1 + added_us} us",
            "control.bcn.reaction_point.pacing_jitter": 0,
            "record": {"cs": {"queue": "cs->es-4", "every": "20 us"}},
            "measure": {
                "spread": {"kind": "queue-spread", "of": "cs->es-4", "window": "20 ms .. 80 ms"},
                "use": {"kind": "utilisation", "of": "cs->es-4", "window": "20 ms .. 80 ms"},
            },
        },
    )


@functools.cache
def spread_frames(added_us: int) -> float:
    """Standard deviation of the queue over time, in frames; mean of four runs."""
    chosen = scenario(added_us)
    values = measured(simulate(chosen, [1, 2, 3, 4]), chosen)
    spread = values.filter(measure="spread").get_column("value").mean()
    assert isinstance(spread, float)
    return spread / 1500


def loop() -> BcnPoint:
    """The same loop in theory: its gains per frame, its rates in frames/s."""
    bcn = scenario(0).control.bcn  # type: ignore[union-attr]
    assert bcn is not None
    return BcnPoint(
        service_fps=10e9 / FRAME_BITS,
        line_fps=10e9 / FRAME_BITS,
        flows=4,
        sampling=0.01,
        w=bcn.congestion_point.w,
        gi=bcn.reaction_point.gi,
        gd=bcn.reaction_point.gd,
        ru_fps=bcn.reaction_point.ru.bps / FRAME_BITS,
        q_eq_frames=Q_EQ,
    )


def test_a_loop_is_calm_at_100_us_and_oscillates_at_200_us_between_which_theory_has_its_margin() -> None:
    assert 100 + OWN_US < loop().sampled_delay_margin_s * 1e6 < 200 + OWN_US
    assert spread_frames(100) < Q_EQ / 10, "the queue stays at its set point"
    assert spread_frames(200) > Q_EQ / 2, "the queue swings from nothing to twice its set point"


def test_the_loop_begins_to_oscillate_within_a_tenth_of_the_sampled_margin() -> None:
    margin_us = loop().sampled_delay_margin_s * 1e6
    assert spread_frames(round(0.9 * margin_us) - OWN_US) < Q_EQ / 10
    assert spread_frames(round(1.1 * margin_us) - OWN_US) > Q_EQ / 2


def test_the_longer_the_delay_the_more_the_queue_swings() -> None:
    spreads = [spread_frames(added) for added in (0, 100, 200, 300)]
    assert spreads == sorted(spreads)


@pytest.mark.parametrize("added_us", [0, 100])
def test_a_calm_loop_keeps_its_link_busy(added_us: int) -> None:
    chosen = scenario(added_us)
    values = measured(simulate(chosen, [1]), chosen)
    assert values.filter(measure="use").get_column("value").item() > 0.99
