"""CPU time that a router of this machine used for each frame, from the kernel's account of its CPU.

What a router forwards without loss depends on luck where other work has its CPU at times; what a frame costs
it does not. The inverse of the cost is the load that would take one CPU whole: a capacity that says nothing
about losses, and repeats where rates of zero loss do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weirlab.heavy import np
from weirlab.stats.distributions import t_quantile
from weirlab.testbed.base import Trial

MOST_LOSS = 0.005
"""Frames that are dropped cost time, too: trials that lost a larger share are left out."""
LEAST_SHARE = 0.5
"""Of the highest load of these trials. Frames cost less the more of them come at once, so trials far below
the limit say little about it."""
LEAST_TRIALS = 3


@dataclass(frozen=True, kw_only=True)
class ForwardingCost:
    """What forwarding cost."""

    cpu_s_per_frame: float
    """Time of the router's CPU [s] in softirqs for each frame that arrived: its own work, that of the links
    on both sides, and of the receiver's stack up to the socket, which is done on the same CPU."""
    relative_error: float
    """Half the 95 % interval of it, as a share, from the spread between trials."""
    trials: int

    @property
    def capacity_fps(self) -> float:
        """The load [frames/s], over all directions, that would take the CPU whole."""
        return 1.0 / self.cpu_s_per_frame


def forwarding_cost(trials: Sequence[Trial]) -> ForwardingCost | None:
    """Cost over all trials that forwarded nearly everything; None where fewer than three show it.

    The ratio of the sums of time and frames, and its standard error. Sums make little of the ticks of 10 ms
    in which kernels count: they are as often too many as too few.

    Source: Cochran 1977, section 2.11
    """
    reported = [
        (float(spent_s), trial.received_frames, trial.offered_load_fps)
        for trial in trials
        if trial.facts.get("router_cpu") is not None
        and isinstance(spent_s := trial.facts.get("router_softirq_s"), int | float)
        and trial.received_frames > 0
        and trial.loss_ratio <= MOST_LOSS
    ]
    most_fps = max((load_fps for *_, load_fps in reported), default=0.0)
    near = [(spent_s, frames) for spent_s, frames, load_fps in reported if load_fps >= LEAST_SHARE * most_fps]
    if len(near) < LEAST_TRIALS:
        return None
    spent_s, frames = np.array(near, dtype=np.float64).T
    if (total_s := float(spent_s.sum())) <= 0.0:
        return None
    count, cost = len(near), total_s / float(frames.sum())
    residual = float(((spent_s - cost * frames) ** 2).sum()) / (count - 1)
    error = math.sqrt(residual / count) / float(frames.mean())
    return ForwardingCost(
        cpu_s_per_frame=cost,
        relative_error=t_quantile(0.975, count - 1) * error / cost,
        trials=count,
    )
