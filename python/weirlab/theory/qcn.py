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
from typing import TYPE_CHECKING

from weirlab.heavy import np
from weirlab.theory.linear import linear_delay_margin, rightmost_root
from weirlab.theory.roots import crossing

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 1e-12
"""Frequencies below this part of the first guess are not looked at."""


@dataclass(frozen=True)
class QcnPoint:
    """A hot queue under QCN, with all that its stability depends on."""

    service_fps: float
    """mu: rate at which the hot queue is served."""
    flows: float
    """N: flows through the hot queue."""
    sampling: float
    """p: probability that a frame is sampled at the least feedback."""
    most_sampling: float
    """p at the largest feedback, as a multiple of `sampling`."""
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
    """Cycles of fast recovery; the step that ends the last one is the first of active increase.

    Source: IEEE8021-CN-MIB, ieee8021CnRpgThreshold, as ns3-rdma has it."""
    active_part: float = 0.5
    """Length of the later cycles, as a part of those."""

    @property
    def fair_fps(self) -> float:
        """Rate of each flow in equilibrium."""
        return self.service_fps / self.flows

    @property
    def sampling_max(self) -> float:
        """p at the largest feedback."""
        return min(1.0, self.sampling * self.most_sampling)

    @property
    def feedback_limit(self) -> float:
        """Largest amount of feedback, in frames: (1 + 2 w) Qeq."""
        return (1 + 2 * self.w) * self.q_eq_frames

    def sampling_at(self, feedback: float) -> float:
        """p for this feedback: the interval between samples shrinks in proportion to it."""
        part = min(max(feedback / self.feedback_limit, 0.0), 1.0)
        return self.sampling + part * (self.sampling_max - self.sampling)

    def recovery(self, sampling: float, rate_fps: float) -> tuple[float, float]:
        """(H, A): steps of recovery, and growth of the target in frames/s, per frame sent.

        A step that comes n frames after a message counts with the probability (1 - p)^n that no other came.
        Sums over the steps of a counter are geometric; the target grows by one increase with each step from
        that on with which one of the counters ends fast recovery, its last stage, and by one hyper-active
        increase more with each from every M_k on at which both have ended it and k stages more.

        Raises ValueError where samples are so rare that there are more than 10^6 such stages.
        """
        counters = [self.counter_frames, self.timer_s * rate_fps]  # lengths of a cycle, in frames
        log_missed = math.log1p(-min(sampling, 1 - 1e-16))
        first, later = (
            np.array([length * (self.recovery_stages + stages * self.active_part) for length in counters])
            for stages in (0, 1)
        )
        longest = float((later - first).max())
        stages = math.ceil(max(0.0, math.log(1e-15) / log_missed - float(first.max())) / longest) + 1
        if stages > 10**6:
            raise ValueError(f"a frame in {1 / sampling:.3g} is sampled, too few for a sum over stages")
        both = float(first.max()) + longest * np.arange(stages)
        after = np.concatenate([[0.0, float(first.min())], both])
        steps, either, *hyper = sum(
            (self._missed(length, log_missed, after) for length in counters), start=np.zeros(len(after))
        )
        growth = self.increase_fps * (either - hyper[0]) + self.hyper_increase_fps * np.sum(hyper)
        return sampling * float(steps), sampling * float(growth)

    def _missed(self, length: float, log_missed: float, after: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of (1 - p)^n over the ends of cycles of a counter from `after` on, in frames."""
        fast, part = self.recovery_stages * length, self.active_part * length
        slack = 1 - 1e-12  # an end at the very place counts
        early = np.clip(np.ceil(after * slack / length), 1, self.recovery_stages + 1)
        active = np.maximum(np.ceil((after * slack - fast) / part), 1)
        return _geometric(early * length, length, self.recovery_stages + 1 - early, log_missed) + _geometric(
            fast + active * part, part, np.inf, log_missed
        )

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
        feedback = crossing(excess, 0.0, self.feedback_limit)
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
        """The highest frequency where |L| = 1. Raises ValueError where the loop has no such gain."""
        start = self.service_fps * self.sampling / self.flows
        low = high = start
        while abs(self.loop(high)) > 1:
            high *= 2
        while low > LEAST * start and abs(self.loop(low)) <= 1:
            low /= 2
        if low <= LEAST * start:
            raise ValueError("the loop gain is below 1 at all frequencies")
        return crossing(lambda w: abs(self.loop(w)) - 1, low, high)

    @property
    def phase_margin_deg(self) -> float:
        """180 degrees + arg L at the crossover, in (-180, 180]."""
        phase = cmath.phase(self.loop(self.crossover_rad_s))
        return math.degrees(math.remainder(phase + math.pi, 2 * math.pi))

    @property
    def delay_margin_s(self) -> float:
        """The delay of the loop, all included, at which a root reaches the imaginary axis; infinity where no
        delay brings one there."""
        if self.rightmost_root(0.0).real >= 0:
            return 0.0
        now, delayed, by_feedback = self._matrices
        # Scaled so that rates and queue count alike: roots stay the same.
        scale = np.array([self.fair_fps, self.fair_fps, self.q_eq_frames])
        late = delayed - np.outer(by_feedback, self._observed)
        return linear_delay_margin(now * scale / scale[:, None], late * scale / scale[:, None])


def _geometric(
    first: NDArray[np.float64], step: float, count: NDArray[np.float64] | float, log_ratio: float
) -> NDArray[np.float64]:
    """Sum of exp(log_ratio (first + i step)) for i below `count`; 0 where that is 0."""
    terms = np.where(np.asarray(count) > 0, np.expm1(log_ratio * step * np.asarray(count)), 0.0)
    return np.asarray(np.exp(log_ratio * first) * terms / math.expm1(log_ratio * step))
