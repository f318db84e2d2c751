"""DCQCN in the simulator against the published fixed point of its fluid model.

The fluid knows neither the time between two notifications to a sender nor that marks come one by one. With
a notification for almost every mark the first is gone, and the queue rests where theory has it; with the
50 us of the paper rates get further between two notifications, and more marks are needed than the fluid has.
"""

from __future__ import annotations

import functools

import pytest

from weirlab.evaluation import measured
from weirlab.runs import simulate
from weirlab.scenario import load
from weirlab.theory.dcqcn import DcqcnPoint

SIZE, WIRE = 1048, 1068
K_MIN, K_MAX, P_MAX = 5_000, 800_000, 0.01


@functools.cache
def queue_bytes(flows: int, notify_us: int) -> float:
    """Mean queue from 60 to 160 ms, of two runs."""
    hot = f"switch-0->host-{flows}"
    chosen = load(
        "dcqcn",
        {
            "network.hosts": flows + 1,
            "queues.egress.limit": "unlimited",
            "control.pause": None,
            "control.dcqcn.notify_every": f"{notify_us} us",
            "control.dcqcn.marking.k_max": f"{K_MAX} B",
            "traffic.load": {
                "from": f"host-[0-{flows - 1}]",
                "to": f"host-{flows}",
                "source": {"kind": "constant", "load": "100 %", "frame_size": f"{SIZE} B"},
            },
            "run.duration": "160 ms",
            "record": {"hot": {"queue": hot, "every": "10 ms"}},
            "measure": {"queue": {"kind": "mean-queue", "of": hot, "window": "60 ms .. 160 ms"}},
        },
    )
    mean = measured(simulate(chosen, [1, 2]), chosen).get_column("value").mean()
    assert isinstance(mean, float)
    return mean


def theory(flows: int, notify_us: int) -> DcqcnPoint:
    """The same in theory."""
    return DcqcnPoint(
        service_fps=40e9 / 8 / WIRE,
        flows=flows,
        notify_every_s=notify_us * 1e-6,
        g=1 / 256,
        alpha_timer_s=55e-6,
        counter_frames=10e6 / SIZE,
        timer_s=55e-6,
        stages=5,
        increase_fps=40e6 / 8 / SIZE,
        k_min_frames=K_MIN / SIZE,
        k_max_frames=K_MAX / SIZE,
        p_max=P_MAX,
    )


def marked(flows: int, notify_us: int) -> float:
    """Probability of a mark at the mean queue, over that of the fixed point."""
    ramp = P_MAX * (queue_bytes(flows, notify_us) - K_MIN) / (K_MAX - K_MIN)
    return ramp / theory(flows, notify_us).marking


@pytest.mark.parametrize("flows", [2, 4])
def test_the_queue_rests_at_the_fixed_point_where_every_mark_is_told(flows: int) -> None:
    assert marked(flows, 1) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("flows", [2, 4])
def test_a_time_between_notifications_takes_more_marks_than_the_fluid_has(flows: int) -> None:
    assert 1.1 < marked(flows, 50) < 1.5


def test_more_flows_need_a_longer_queue() -> None:
    assert queue_bytes(4, 50) > 1.5 * queue_bytes(2, 50)
