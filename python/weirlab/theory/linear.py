"""Stability of linear loops with a delay, in continuous time and between samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DoubleIntegratorLoop", "rightmost_root"]


@dataclass(frozen=True)
class DoubleIntegratorLoop:
    """The open loop L(s) = K (1 + T s) e^(-s tau) / s^2: a queue that integrates rates, and sources that
    integrate feedback made of the queue and of its change.

    The closed forms follow from |L(jw)| = 1. Source: Lu 2006.
    """

    gain: float
    """K in 1/s^2; more than 0."""
    lead_s: float
    """T: the weight of the queue's change; 0 or more."""
    delay_s: float
    """tau: from a frame that is sampled to the first frame at the other rate."""
    interval_s: float
    """h: mean time between samples; 0 for a loop in continuous time."""

    @property
    def crossover_rad_s(self) -> float:
        """Where |L| = 1: w^2 = (K^2 T^2 + sqrt(K^4 T^4 + 4 K^2)) / 2."""
        square = (self.gain * self.lead_s) ** 2
        return math.sqrt((square + math.sqrt(square**2 + 4 * self.gain**2)) / 2)

    @property
    def phase_margin_deg(self) -> float:
        """180 degrees + arg L at the crossover: atan(T w) - w tau."""
        crossover = self.crossover_rad_s
        return math.degrees(math.atan(self.lead_s * crossover) - crossover * self.delay_s)

    @property
    def delay_margin_s(self) -> float:
        """The delay of the loop, all included, at which it begins to oscillate: atan(T w) / w."""
        crossover = self.crossover_rad_s
        return math.atan(self.lead_s * crossover) / crossover

    @property
    def held_delay_margin_s(self) -> float:
        """`delay_margin_s` less half an interval between samples: what a loop keeps that holds its feedback
        from one sample to the next. BCN does not hold it; see `sampled_delay_margin_s`."""
        return self.delay_margin_s - self.interval_s / 2

    @property
    def sampled_delay_margin_s(self) -> float:
        """The delay at which the loop begins to oscillate when it acts at samples only: exact for equal
        intervals.

        At each sample the feedback is q + (T/h) (change of q since the last sample), and tau later the rate
        of arrivals jumps by K h times it. A jump acts at once and holds nothing back; what costs phase is
        that the change is a difference over the past interval. 0 where even no delay is stable, which is so
        from K h (h + 2 T) = 4 on. NaN for a loop in continuous time.
        """
        if not self.interval_s > 0:
            return math.nan
        if self.sampled_radius(0.0) >= 1:
            return 0.0
        step = self.interval_s / 16
        low = 0.0
        while self.sampled_radius(low + step) < 1:
            low += step
        high = low + step
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.sampled_radius(middle) < 1 else (low, middle)
        return (low + high) / 2

    def sampled_radius(self, delay_s: float) -> float:
        """Largest absolute eigenvalue of one interval between samples, with this delay: below 1, the loop
        is stable."""
        return float(np.abs(np.linalg.eigvals(self.sampled_matrix(delay_s))).max())

    def sampled_matrix(self, delay_s: float) -> NDArray[np.float64]:
        """What one interval does to (q now, q at the last sample, excess rate x h, jumps on their way).

        With tau = (d + r) h, 0 <= r < 1, and u the jump (times h) that the sample of now causes:
        q+ = q + x + (1 - r) u[d ago], x+ = x + u[d ago]. Time is counted in intervals.
        """
        whole, rest = divmod(delay_s / self.interval_s, 1.0)
        under_way = int(whole)
        size = 3 + under_way
        jump = np.zeros(size)  # u of now: -(K h^2) (q + w (q - q before))
        strength, weight = self.gain * self.interval_s**2, self.lead_s / self.interval_s
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
        return matrix


def rightmost_root(
    now: NDArray[np.float64], delayed: NDArray[np.float64], delay_s: float, *, nodes: int = 16
) -> complex:
    """The root of det(s I - A - B e^(-s tau)) = 0 with the largest real part: x' = A x(t) + B x(t - tau) is
    stable where that real part is negative.

    `now` and `delayed` are square, in 1/s. The generator of the semigroup is collocated at `nodes` + 1
    Chebyshev points of [-tau, 0]: roots near the origin converge faster than any power.
    Source: Breda 2005.
    """
    if delay_s == 0:
        return _rightmost((now + delayed).astype(complex))
    size = now.shape[0]
    points = np.cos(np.pi * np.arange(nodes + 1) / nodes)  # 1 is now, -1 is tau ago
    weights = np.concatenate([[2.0], np.ones(nodes - 1), [2.0]]) * (-1.0) ** np.arange(nodes + 1)
    distances = points[:, None] - points[None, :] + np.eye(nodes + 1)
    derivative = np.outer(weights, 1 / weights) / distances
    derivative -= np.diag(derivative.sum(axis=1))
    generator = np.kron(derivative * (2 / delay_s), np.eye(size))
    generator[:size] = 0
    generator[:size, :size] = now
    generator[:size, -size:] += delayed
    return _rightmost(generator.astype(complex))


def _rightmost(matrix: NDArray[np.complex128]) -> complex:
    root = max(np.linalg.eigvals(matrix), key=lambda root: root.real)
    return complex(root.real, abs(root.imag))  # of a pair, the upper one
