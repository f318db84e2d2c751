"""Linear stability of backward congestion notification (BCN).

N equal flows of rate r share a queue q that is served at mu: q' = N r - mu. Each arriving frame is sampled
with probability p; a sample gives Fb = -(q - Qeq) - w (change of q since the last sample), and about every
1/(mu p) there is one, so that Fb = -(q - Qeq) - T q' with T = w / (mu p). It goes to the flow that the frame
belongs to, which is r p times a second for each flow:

    increase (Fb > 0): r' = Gi Ru r p Fb(t - tau)      K = Gi Ru p mu
    decrease (Fb < 0): r' = Gd r r p Fb(t - tau)       K = Gd p mu^2 / N

at N r = mu, q = Qeq. Both are L(s) = K (1 + T s) e^(-s tau) / s^2, and the sign of Fb chooses between them:
with no delay, the queue passes from one to the other every half turn, and each turn shrinks where both loops
are stable. With a delay both margins are needed and the worse one is reported; that they suffice is no
theorem.

Source: Lu 2006; ZRL benchmark, equations 1 to 10. DEVIATION: equation 3 of the benchmark prints
'+ w dq/dt', which equation 4 and the algorithm contradict; both terms have the same sign here.
"""

from __future__ import annotations

from dataclasses import dataclass

from weirlab.theory.linear import DoubleIntegratorLoop


def bcn_gains(q_eq: float, w: float, *, line_over_ru: float = 1e4) -> tuple[float, float]:
    """(Gi, Gd) by the rule of the text, from the set point and the weight of the queue's change.

    The largest feedback, (1 + 2 w) Qeq, adds a tenth of the line rate, and takes half of a rate:

        Gi = (line rate / 10) / ((1 + 2 w) Qeq Ru)      Gd = (1 / 2) / ((1 + 2 w) Qeq)

    Args:
        q_eq: Set point, in units of Fb: frames, or pages of 64 B. The gains are per unit, Gi in Ru.
        w: Weight of the queue's change, at least 0.
        line_over_ru: Line rate over Ru; 10 Gbit/s over 1 Mbit/s by default.

    Raises ValueError where there is no set point.

    Source: BCN Calibration 2006, parameters: with 16 frames and w = 2 it gives 12.5 and 6.25e-3 per frame,
    0.533 and 2.67e-4 per page; the text rounds them to 0.53 and 2.6e-4.
    """
    if q_eq <= 0 or w < 0 or line_over_ru <= 0:
        raise ValueError(f"a set point and a line rate above 0, and w of 0 or more (got {q_eq:g}, {w:g})")
    most = (1 + 2 * w) * q_eq
    return line_over_ru / 10 / most, 0.5 / most


@dataclass(frozen=True)
class BcnPoint:
    """A hot queue under BCN, with all that its stability depends on."""

    service_fps: float
    """mu: rate at which the hot queue is served."""
    line_fps: float
    """Rate of a limiter that does not limit."""
    flows: float
    """N: flows through the hot queue."""
    sampling: float
    """p: probability that a frame is sampled."""
    w: float
    """Weight of the queue's change."""
    gi: float
    """Increase gain, in `ru` per frame of feedback."""
    gd: float
    """Decrease gain, per frame of feedback."""
    ru_fps: float
    """Unit of an increase."""
    q_eq_frames: float
    """Set point of the queue."""
    delay_s: float = 0.0
    """From a frame that is sampled to the first frame at the other rate at the queue."""

    @property
    def interval_s(self) -> float:
        """Mean time between samples in equilibrium: 1 / (mu p)."""
        return 1 / (self.service_fps * self.sampling)

    @property
    def fair_fps(self) -> float:
        """Rate of each flow in equilibrium."""
        return self.service_fps / self.flows

    @property
    def gains_of_rule(self) -> tuple[float, float]:
        """(Gi, Gd) that the rule of the text gives for this set point, see `bcn_gains`."""
        return bcn_gains(self.q_eq_frames, self.w, line_over_ru=self.line_fps / self.ru_fps)

    @property
    def feedback_limit(self) -> float:
        """Largest amount of feedback, in frames: (1 + 2 w) Qeq."""
        return (1 + 2 * self.w) * self.q_eq_frames

    @property
    def increase(self) -> DoubleIntegratorLoop:
        """The loop while Fb > 0."""
        return self._loop(self.gi * self.ru_fps * self.sampling * self.service_fps)

    @property
    def decrease(self) -> DoubleIntegratorLoop:
        """The loop while Fb < 0."""
        return self._loop(self.gd * self.sampling * self.service_fps**2 / self.flows)

    @property
    def loops(self) -> dict[str, DoubleIntegratorLoop]:
        """`increase` and `decrease`; a gain of 0 closes no loop."""
        loops = {"increase": self.increase, "decrease": self.decrease}
        return {name: loop for name, loop in loops.items() if loop.gain > 0}

    @property
    def phase_margin_deg(self) -> float:
        """That of the worse loop."""
        return min(loop.phase_margin_deg for loop in self.loops.values())

    @property
    def delay_margin_s(self) -> float:
        """That of the worse loop: the whole delay that it bears."""
        return min(loop.delay_margin_s for loop in self.loops.values())

    @property
    def sampled_delay_margin_s(self) -> float:
        """That of the worse loop, acting at samples only."""
        return min(loop.sampled_delay_margin_s for loop in self.loops.values())

    def _loop(self, gain: float) -> DoubleIntegratorLoop:
        interval = self.interval_s
        return DoubleIntegratorLoop(gain, self.w * interval, self.delay_s, interval)
