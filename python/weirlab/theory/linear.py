"""Stability of linear loops with a delay, in continuous time and between samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.heavy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        """The delay of the loop, all included, at which it starts to oscillate: atan(T w) / w."""
        crossover = self.crossover_rad_s
        return math.atan(self.lead_s * crossover) / crossover

    @property
    def sampled_delay_margin_s(self) -> float:
        """The delay at which the loop begins to oscillate when it acts at samples only: exact for equal
        intervals.

        At each sample the feedback is q + (T/h) (change of q since the last sample), and tau later the rate
        of arrivals jumps by K h times it. A jump acts at once and holds nothing back; what costs phase is
        that the change is a difference over the past interval. With S = K h^2, w = T/h and tau = (d + r) h,
        0 <= r < 1, the loop opened at the feedback is

            L(z) = S z^-d (1 + w - w/z) ((1 - r) z + r) / (z - 1)^2.

        |L| = 1 is a quadratic equation for 1 - cos(angle of z), and the loop is stable while d is less than
        `_whole_intervals(r)`, where the phase there reaches 180 degrees. 0 where even no delay is stable,
        which is so from K h (h + 2 T) = 4 on. NaN for a loop in continuous time.
        """
        if not self.interval_s > 0:
            return math.nan
        steps = np.linspace(0.0, 1.0, 65)
        bears = [self._whole_intervals(part) for part in steps]
        if bears[0] <= 0:
            return 0.0
        whole = max(0, math.ceil(min(bears)))
        first = next(place for place, most in enumerate(bears) if most <= whole)
        low, high = float(steps[max(0, first - 1)]), float(steps[first])
        for _ in range(50 if first else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if self._whole_intervals(middle) > whole else (low, middle)
        return (whole + high) * self.interval_s

    def _whole_intervals(self, part: float) -> float:
        """The whole intervals of delay, besides this part of one, at which the sampled loop begins to
        oscillate, as a real number; 0 or less where the loop bears not even that part."""
        strength, weight = self.gain * self.interval_s**2, self.lead_s / self.interval_s
        lead, lag = 2 * weight * (1 + weight), 2 * part * (1 - part)
        # 4 y^2 = S^2 (1 + lead y) (1 - lag y) for y = 1 - cos(angle); both sides by S^2.
        square, linear = math.hypot(2 / strength, math.sqrt(lead * lag)), lead - lag
        both = abs(linear) + math.hypot(linear, 2 * square)
        y = both / (2 * square**2) if linear > 0 else 2 / both
        if y >= 2:
            return 0.0
        angle = 2 * math.asin(math.sqrt(y / 2))
        sine, cosine = math.sin(angle), 1 - y
        ahead = math.atan2(weight * sine, 1 + weight * y)
        late = math.atan2((1 - part) * sine, (1 - part) * cosine + part)
        return (ahead + late) / angle - 1


def linear_delay_margin(now: NDArray[np.float64], delayed: NDArray[np.float64]) -> float:
    """The least delay tau [s] at which x' = A x(t) + B x(t - tau) has a root on the imaginary axis; infinity
    where there is none.

    `now` and `delayed` are square, in 1/s; the system is stable without delay. At such a root s = jw the
    matrix (jw I - A)^-1 B has an eigenvalue e^(jw tau), of absolute value 1. None lies beyond a norm of both
    matrices; they are looked for over ten decades below it, at 100 frequencies in each.
    Source: Chen 1995.
    """
    size = now.shape[0]

    def eigenvalues(frequency: NDArray[np.float64]) -> NDArray[np.complex128]:
        """Sorted by their absolute values; shape (frequencies, size)."""
        inner = 1j * frequency[:, None, None] * np.eye(size) - now
        found = np.linalg.eigvals(np.linalg.solve(inner, np.broadcast_to(delayed, inner.shape)))
        order = np.argsort(np.abs(found), axis=1)
        return np.asarray(np.take_along_axis(found, order, axis=1))

    highest = 1.01 * (np.linalg.norm(now) + np.linalg.norm(delayed))
    swept = highest * np.geomspace(1e-10, 1.0, 1001)
    beyond = np.abs(eigenvalues(swept)) > 1
    place, which = np.nonzero(beyond[1:] != beyond[:-1])
    if not len(place):
        return math.inf
    low, high, is_beyond = swept[place], swept[place + 1], beyond[place, which]
    for _ in range(40):
        middle = np.sqrt(low * high)
        same = (np.abs(eigenvalues(middle)[np.arange(len(which)), which]) > 1) == is_beyond
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    turned = np.angle(eigenvalues(high)[np.arange(len(which)), which]) % (2 * math.pi)
    return float((turned / high).min())


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
