"""Linear stability of quantised congestion notification (QCN, IEEE 802.1Qau).

Per flow, a rate x and a target y; N flows share a queue q served at mu. A frame is sampled with probability
p(F), which grows with the feedback F = (q - Qeq) + (w / (mu p)) q', and while F > 0 the sample is told to the
source tau later: y := x, x := x (1 - Gd F). Without messages the source recovers by itself: n frames after
the last message (byte counter) or n / x seconds after it (timer) comes a step x := (x + y) / 2, y := y + inc.
With H = p sum (1 - p)^n over all steps and A = p sum inc (1 - p)^n, steps and growth of the target per frame,

    x' = -Gd F(t - tau) x x(t - tau) p + (y - x)/2 x H
    y' = -(y - x) x(t - tau) p + x A
    q' = N x - mu

There is no feedback for q < Qeq, so that the queue rests above it: F* = A H / (2 Gd x p^2), y* - x* = A / p.
It is linearised there. F* is small, often below the step of the quantised feedback: so this is the loop while
messages flow, and noise decides how often they do. Left out: the quantisation to 6 bits, that a message
before the end of the first cycle leaves the target alone, and that a far target is divided by 8.

Source: Alizadeh 2008; IEEE 802.1Qau.

DEVIATION: the sampling probability follows
the feedback, the timer counts, and recovery in the active phase has its own, shorter cycles.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from weirlab.theory.linear import rightmost_root

__all__ = ["QcnPoint"]


@dataclass(frozen=True)
class QcnPoint:
    """A hot queue under QCN, with all that its stability depends on."""

    service_fps: float
    """mu: rate at which the hot queue is served."""
    flows: float
    """N: flows through the hot queue."""
    sampling: float
    """p: probability that a frame is sampled at the least feedback."""
    sampling_max: float
    """p at the largest feedback."""
    w: float
    """Weight of the queue's change."""
    gd: float
    """Decrease gain per frame of feedback."""
    q_eq_frames: float
    """Set point of the queue."""
    increase_fps: float
    """Growth of the target with each step of active increase."""
    hyper_increase_fps: float
    """Growth per stage of hyper-active increase."""
    counter_frames: float
    """Length of a cycle of the byte counter, in frames."""
    timer_s: float
    """Length of a cycle of the timer."""
    delay_s: float = 0.0
    """From a frame that is sampled to the first frame at the other rate at the queue."""
    recovery_stages: int = 5
    """Cycles of fast recovery."""
    active_part: float = 0.5
    """Length of the later cycles, as a part of those."""

    @property
    def fair_fps(self) -> float:
        """Rate of each flow in equilibrium."""
        return self.service_fps / self.flows

    @property
    def feedback_limit(self) -> float:
        """Largest amount of feedback, in frames: (1 + 2 w) Qeq."""
        return (1 + 2 * self.w) * self.q_eq_frames

    def sampling_at(self, feedback: float) -> float:
        """p for this feedback: the interval between samples shrinks in proportion to it."""
        part = min(max(feedback / self.feedback_limit, 0.0), 1.0)
        return self.sampling + part * (self.sampling_max - self.sampling)

    def recovery(self, sampling: float, rate_fps: float) -> tuple[float, float]:
        """(H, A): steps of recovery, and growth of the target in frames/s, per frame sent."""
        cycle = self.counter_frames
        timed = self.timer_s * rate_fps  # a cycle of the timer, in frames
        steps, growth = 0.0, 0.0
        for place, byte_stage, timer_stage in self._steps(cycle, timed, sampling):
            missed = (1 - sampling) ** place
            steps += missed
            active = (byte_stage > self.recovery_stages) + (timer_stage > self.recovery_stages)
            if active == 2:
                beyond = min(byte_stage, timer_stage) - self.recovery_stages
                growth += missed * self.hyper_increase_fps * beyond
            elif active == 1:
                growth += missed * self.increase_fps
        return sampling * steps, sampling * growth

    def _steps(self, cycle: float, timed: float, sampling: float) -> list[tuple[float, int, int]]:
        """(frames since the last message, stage of the byte counter, of the timer) at each step, as far as it
        is more likely than 1e-12 that no message has come."""
        end = math.log(1e-12) / math.log1p(-sampling)
        marks = sorted(
            (place, which)
            for which, length in enumerate((cycle, timed))
            for place in _ends(length, end, self.recovery_stages, self.active_part)
        )
        stage = [0, 0]
        steps = []
        for place, which in marks:
            stage[which] += 1
            steps.append((place, stage[0], stage[1]))
        return steps

    @cached_property
    def equilibrium(self) -> tuple[float, float]:
        """(F*, y*): feedback in frames at which the queue rests, and the target rate in frames/s.

        Raises ValueError where the recovery is too strong for any feedback.
        """

        def excess(feedback: float) -> float:
            sampling = self.sampling_at(feedback)
            steps, growth = self.recovery(sampling, self.fair_fps)
            return growth * steps / (2 * self.gd * self.fair_fps * sampling**2) - feedback

        if excess(self.feedback_limit) >= 0:
            raise ValueError("the sources recover faster than the largest feedback can slow them down")
        feedback = float(brentq(excess, 0.0, self.feedback_limit))
        sampling = self.sampling_at(feedback)
        return feedback, self.fair_fps + self.recovery(sampling, self.fair_fps)[1] / sampling

    @cached_property
    def _matrices(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(A, B, C) in z' = A z(t) + B z(t - tau) - C F(t - tau) for z = (x, y, q) near the equilibrium."""
        feedback, target = self.equilibrium
        x, p = self.fair_fps, self.sampling_at(feedback)
        steps, _ = self.recovery(p, x)
        gap = target - x

        def rates(sampling: float, rate: float) -> NDArray[np.float64]:
            """What recovery adds to x' and y' at another sampling probability or rate."""
            own_steps, own_growth = self.recovery(sampling, rate)
            return np.array([gap / 2 * rate * own_steps, rate * own_growth])

        small = 1e-5
        by_rate = (rates(p, x * (1 + small)) - rates(p, x * (1 - small))) / (2 * small * x)
        by_p = (rates(p * (1 + small), x) - rates(p * (1 - small), x)) / (2 * small * p)
        slope = (self.sampling_max - self.sampling) / self.feedback_limit
        cut = self.gd * feedback * p
        now = np.zeros((3, 3))
        now[0] = [-cut * x + by_rate[0] - x * steps / 2, x * steps / 2, 0]
        now[1] = [x * p + by_rate[1], -x * p, 0]
        now[2, 0] = self.flows
        delayed = np.zeros((3, 3))
        delayed[0, 0] = -cut * x
        delayed[1, 0] = -gap * p
        by_feedback = np.array(
            [
                self.gd * x * x * p + (self.gd * feedback * x * x - by_p[0]) * slope,
                (gap * x - by_p[1]) * slope,
                0.0,
            ]
        )
        return now, delayed, by_feedback

    @property
    def _observed(self) -> NDArray[np.float64]:
        """F = this row times (x, y, q)."""
        lead = self.w / (self.service_fps * self.sampling_at(self.equilibrium[0]))
        return np.array([lead * self.flows, 0.0, 1.0])

    def rightmost_root(self, delay_s: float) -> complex:
        """The root of the linear model that decides, with this delay; in 1/s."""
        now, delayed, by_feedback = self._matrices
        return rightmost_root(now, delayed - np.outer(by_feedback, self._observed), delay_s)

    def loop(self, frequency_rad_s: float) -> complex:
        """L(jw): the loop opened at the feedback, delay included."""
        now, delayed, by_feedback = self._matrices
        s = 1j * frequency_rad_s
        late = cmath.exp(-s * self.delay_s)
        inner = s * np.eye(3) - now - delayed * late
        return complex(self._observed @ np.linalg.solve(inner, by_feedback.astype(complex)) * late)

    @property
    def crossover_rad_s(self) -> float:
        """The highest frequency where |L| = 1."""
        low = high = self.service_fps * self.sampling / self.flows
        while abs(self.loop(high)) > 1:
            high *= 2
        while abs(self.loop(low)) <= 1:
            low /= 2
        return float(brentq(lambda w: abs(self.loop(w)) - 1, low, high))

    @property
    def phase_margin_deg(self) -> float:
        """180 degrees + arg L at the crossover, in (-180, 180]."""
        phase = cmath.phase(self.loop(self.crossover_rad_s))
        return math.degrees(math.remainder(phase + math.pi, 2 * math.pi))

    @property
    def delay_margin_s(self) -> float:
        """The delay of the loop, all included, at which a root reaches the imaginary axis."""
        if self.rightmost_root(0.0).real >= 0:
            return 0.0
        high = 1 / self.service_fps
        while self.rightmost_root(high).real < 0:
            high *= 2
        low = high / 2
        return float(brentq(lambda delay: self.rightmost_root(delay).real, low, high, rtol=1e-9))


def _ends(length: float, end: float, stages: int, active_part: float) -> list[float]:
    """Where cycles end, in frames, up to `end`: `stages` of the full length, then shorter ones."""
    full = [length * (place + 1) for place in range(stages) if length * (place + 1) <= end]
    rest = max(0, int((end - stages * length) / (length * active_part)))
    return full + [length * (stages + (place + 1) * active_part) for place in range(rest)]
