"""The fixed point of data center QCN (DCQCN).

N flows share a link of C frames/s whose queue marks a frame with probability p. The receiver notifies the
sender at most once in tau; alpha decays after tau' without a notification; the rate recovers by a byte
counter of B frames and a timer of T seconds, the target grows by R_AI from the F-th stage of either on. For
each flow, x its rate and y its target:

    x' = -x alpha / (2 tau) (1 - (1 - p)^(tau x)) + (y - x) x / 2 (b + d)
    y' = -(y - x) / tau (1 - (1 - p)^(tau x)) + R_AI x (b (1 - p)^(F B) + d (1 - p)^(F T x))
    alpha' = g / tau' (1 - (1 - p)^(tau' x) - alpha)
    b = p / ((1 - p)^-B - 1),  d = p / ((1 - p)^-(T x) - 1)

Rates rest where x = C / N, and p is the root of one equation; for small p about the cube root of
R_AI N^2 / (tau' C^2) (1 / B + N / (T C))^2. The queue rests where the ramp of marks has that p.

Source: Zhu 2015, section 5.1 (the equations); Zhu 2016, section 3 (the fixed point and its cube root).

Both papers are cited from memory; the equations and the cube root agree with a public implementation of them.
Left out, as there: hyper-active increase, the least rate, and that marks come one by one: the number of
notifications to a flow is random, so that queues swing about the fixed point even where the fluid rests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from weirlab.theory.roots import crossing


@dataclass(frozen=True)
class DcqcnPoint:
    """A hot queue under DCQCN."""

    service_fps: float
    """C: rate at which the hot queue is served."""
    flows: float
    """N: flows through the hot queue."""
    notify_every_s: float
    """tau: a receiver notifies a sender at most once in this time."""
    g: float
    """Gain of alpha; it moves no fixed point."""
    alpha_timer_s: float
    """tau': alpha decays after this time without a notification."""
    counter_frames: float
    """B: frames in a stage of the byte counter."""
    timer_s: float
    """T: length of a stage of the timer."""
    stages: int
    """F: stages of fast recovery."""
    increase_fps: float
    """R_AI: growth of the target with each stage of active increase."""
    k_min_frames: float
    """Queue up to which nothing is marked."""
    k_max_frames: float
    """Queue above which everything is marked."""
    p_max: float
    """Probability of a mark just below that."""

    @property
    def fair_fps(self) -> float:
        """x*: rate of each flow."""
        return self.service_fps / self.flows

    @cached_property
    def marking(self) -> float:
        """p*: probability of a mark at rest, by the equations in full."""
        return crossing(self._surplus, _LEAST, _MOST)

    @property
    def marking_estimate(self) -> float:
        """p* for small p: the cube root of R_AI N^2 / (tau' C^2) (1 / B + N / (T C))^2."""
        stage = 1 / self.counter_frames + self.flows / (self.timer_s * self.service_fps)
        return float(
            (self.increase_fps * self.flows**2 / (self.alpha_timer_s * self.service_fps**2) * stage**2)
            ** (1 / 3)
        )

    @property
    def queue_frames(self) -> float:
        """q*: what waits at rest. Raises ValueError where the ramp does not reach p*."""
        if self.marking > self.p_max:
            wanted = f"p* = {self.marking:.3g}"
            raise ValueError(f"marks of at most {self.p_max:g} below 'k_max' do not reach {wanted}")
        return self.k_min_frames + (self.k_max_frames - self.k_min_frames) * self.marking / self.p_max

    def rates(self, p: float, rate: float, target: float, alpha: float) -> tuple[float, float, float]:
        """x', y' and alpha' [frames/s^2, frames/s^2, 1/s]."""
        notified = _any(p, self.notify_every_s * rate)
        lengths = (self.counter_frames, self.timer_s * rate)
        steps = [p * (1 - _any(p, frames)) / _any(p, frames) for frames in lengths]
        grows = sum(step * (1 - _any(p, self.stages * n)) for step, n in zip(steps, lengths, strict=True))
        gap = target - rate
        return (
            -rate * alpha / (2 * self.notify_every_s) * notified + gap * rate / 2 * sum(steps),
            -gap / self.notify_every_s * notified + self.increase_fps * rate * grows,
            self.g * (_any(p, self.alpha_timer_s * rate) - alpha) / self.alpha_timer_s,
        )

    def _surplus(self, p: float) -> float:
        """x' at the fair rate, with the target and alpha that rest there."""
        x = self.fair_fps
        alpha = _any(p, self.alpha_timer_s * x)
        _, grows, _ = self.rates(p, x, x, alpha)
        gap = grows * self.notify_every_s / _any(p, self.notify_every_s * x)
        return self.rates(p, x, x + gap, alpha)[0]


def _any(p: float, frames: float) -> float:
    """Probability that one of some frames is marked: 1 - (1 - p)^frames."""
    return -math.expm1(frames * math.log1p(-p))


_LEAST, _MOST = 1e-9, 0.999
