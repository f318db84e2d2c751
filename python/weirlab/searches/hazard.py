"""What failing trials of full length say of loads that were not measured: a belief that only chooses loads.

The device is believed to lose at random times, with a hazard that grows as a power of the load:

    hazard(load) = ln 2 / duration * (load / median)^(1 / fold)

A trial of the full duration then passes at the load ``median`` with probability 1/2. Both parameters are
unknown; the belief is their posterior on a grid, the prior flat in their logarithms. It decides where to
measure next, never what a load is.

Buffers break the pattern: the time until a deep buffer overflows is buffer / (load - capacity), so that the
reciprocal times to failure lie on a straight line over the load. `onset_log` looks for that line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy.typing as npt

from weirlab.heavy import np

_FOLDS = (0.002, 0.005, 0.012, 0.03, 0.08, 0.25, 1.0)
"""Change of ln(load) that multiplies the hazard by e: from nearly a knee to losses in proportion to the
load."""


class Observation(NamedTuple):
    """A trial at a load."""

    log_load: float
    exposed_s: float
    """How long the device was offered the load without failing; for a failure whose time is unknown, the
    whole trial."""
    failed: bool
    failed_s: float | None = None
    """When it failed, if that is known."""


class Belief:
    """Posterior of the median load and the fold."""

    def __init__(
        self, observations: Sequence[Observation], duration_s: float, upper_log: float, step: float
    ) -> None:
        """Args:
        upper_log: ln of the upper bound; the grid is finest around it.
        step: Distance of two rungs in ln(load).
        """
        logs = [each.log_load for each in observations]
        near = step * np.concatenate([-np.geomspace(0.3, 600.0, 60), np.geomspace(0.3, 40.0, 20)])
        medians = np.unique(
            np.concatenate([np.linspace(min(logs) - 6.0, max(logs) + 0.3, 60), upper_log + near])
        )
        self._medians = medians[:, None]
        self._folds = np.array(_FOLDS)[None, :]
        log_weight = np.log(np.gradient(medians))[:, None] + np.zeros_like(self._folds)
        for each in observations:
            hazard = self._hazard_times(each.log_load) / duration_s
            if not each.failed:
                log_weight = log_weight - hazard * each.exposed_s
            else:
                failed_s = each.exposed_s if each.failed_s is None else each.failed_s
                # A failure is seen late: it lies somewhere before.
                from_s = 0.0 if each.failed_s is None else max(0.0, 0.7 * failed_s - 0.05)
                within = np.maximum(hazard * (failed_s - from_s), 1e-12)
                log_weight = log_weight - hazard * from_s + np.log(-np.expm1(-within))
        weight = np.exp(log_weight - log_weight.max())
        self._weight = weight / weight.sum()

    def _hazard_times(self, log_load: float) -> npt.NDArray[np.float64]:
        """Expected failures in a full trial, for each pair of parameters."""
        folds = np.clip((log_load - self._medians) / self._folds, -50.0, 20.0)
        times: npt.NDArray[np.float64] = np.exp(folds) * math.log(2.0)
        return times

    def passes(self, log_load: float) -> float:
        """Probability that a trial of full length at this load passes."""
        return float((self._weight * np.exp(-self._hazard_times(log_load))).sum())

    def where(self, probability: float, low_log: float, high_log: float) -> float:
        """ln of the load in [low, high] where a trial passes with ``probability``, or the nearer end."""
        for _ in range(12):
            middle = (low_log + high_log) / 2.0
            if self.passes(middle) > probability:
                low_log = middle
            else:
                high_log = middle
        return (low_log + high_log) / 2.0


def onset_log(failures: Sequence[tuple[float, float]], duration_s: float) -> float | None:
    """ln of the load where, by the straight line through the reciprocal times to failure, a trial would fail
    at its end, or after four times the longest time seen, whichever is earlier. None unless the three lowest
    loads agree on the line.

    Args:
        failures: (load [frames/s], time to failure [s]).
    """
    lowest = sorted(failures)[:3]
    if len(lowest) < 3 or not lowest[0][1] > lowest[1][1] > lowest[2][1]:
        return None
    (load, time_s), (load_b, time_b_s), (load_c, time_c_s) = lowest
    slope = (1.0 / time_b_s - 1.0 / time_s) / (load_b - load)
    if abs((1.0 / time_s + slope * (load_c - load)) * time_c_s - 1.0) > 0.12:
        return None
    onset = load - (1.0 / time_s - 1.0 / min(duration_s, 4.0 * time_s)) / slope
    return math.log(onset) if onset > 0.0 else None
