"""Backward congestion notification: the queues that measure, and the senders that obey.

Everything that the published texts leave open is a field of its own; docs/bcn.md says what each choice
changes."""

from __future__ import annotations

from typing import Annotated, Literal

from weirlab.fields.base import BY_KIND, Model, PortSelector, Selector
from weirlab.fields.values import Fraction, Number, PositiveRate, PositiveSize, PositiveSpan, Threshold
from weirlab.scenario.control.limiter import LimiterQueue, Notification
from weirlab.units import Rate, Size, Span


class UniformSampling(Model):
    """Uniform around the mean."""

    kind: Literal["uniform"]
    jitter: Fraction = 1.0
    """Relative half width; with 0 all amounts are alike, and samples may lock to the rhythm of a sender."""


class ExponentialSampling(Model):
    """Exponential."""

    kind: Literal["exponential"]


class PerFrameSampling(Model):
    """Each frame independently, with the probability size / mean."""

    kind: Literal["per-frame"]


AnySampling = Annotated[UniformSampling | ExponentialSampling | PerFrameSampling, BY_KIND]


class BcnCongestionPoint(Model):
    """A queue that samples frames and sends their senders Fb = Qoff - w Qdelta, where Qoff = q_eq - q, Qdelta
    = q - q at the sample before, and q is what waits after the frame was queued, in units."""

    at: PortSelector
    """Ports that measure."""
    q_eq: Threshold
    """Set point of the queue."""
    frame_size: PositiveSize | None = None
    """Size of the frames in which thresholds are given, and the unit of Fb where `unit` does not say
    otherwise."""
    unit: PositiveSize | None = None
    """Unit of Fb: gains are per unit. Absent: `frame_size`."""
    counting: Literal["exact", "whole"] = "exact"
    """`exact`: fractions of a unit count; `whole`: the queue is rounded down to whole units."""
    saturation: Literal["set-point", "none"] = "set-point"
    """`set-point`: Qoff stays within +- q_eq and Qdelta within +- 2 q_eq; `none`: no bounds."""
    w: Number = 2.0
    """Weight of the change of the queue against its offset."""
    sample_every: PositiveSize = Size(150_000)
    """Mean amount of data between two samples."""
    sampling: AnySampling = UniformSampling(kind="uniform")
    """Spread of that amount."""
    counted: Literal["received", "accepted"] = "received"
    """Frames that count towards the next sample: all that arrive for the queue, or those that it takes."""
    positive: Literal["tagged", "tagged-below-set-point", "any-tag"] = "tagged"
    """Who receives a positive Fb: the sender of a frame that bears the tag of this queue; only while the
    queue is not above its set point; or of any queue."""
    negative: Literal["always", "untagged-above-set-point"] = "always"
    """Who receives a negative Fb: every sender; or those without the tag of this queue only above the set
    point."""
    notification: Notification = Notification()
    """The frames that carry Fb."""


class Severe(Model):
    """What a sample sends above a second threshold."""

    above: Threshold
    """Queue from which congestion is severe (Qsc)."""
    action: Literal["none", "stop", "max"] = "none"
    """`none`: Fb as usual; `stop`: BCN(0,0); `max`: BCN(MAX), the most negative Fb, -(1 + 2 w) q_eq."""


class Drift(Model):
    """Growth of every limited rate without feedback, but not of one that is stopped."""

    step: PositiveRate
    """Added each time."""
    every: PositiveSpan
    """Time between additions."""


class Stop(Model):
    """What BCN(0,0) does: the rate is 0 for a time uniform in 0 .. Tmax, then that of the restart."""

    t_max: PositiveSpan = Span.from_s(100e-6)
    """Tmax of the first stop."""
    r_min: PositiveRate = Rate(10**9)
    """Rmin of the first stop."""
    t_max_factor: Number = 2.0
    """Tmax is multiplied by this at each stop."""
    r_min_factor: Number = 1.0
    """Rmin is multiplied by this at each stop; 0.5 to the letter of the text."""
    back_off: Literal["after", "before"] = "after"
    """When: after Tmax and Rmin were used, or before."""
    restart: Literal["r-min", "lesser-of-r-min-and-before", "before"] = "lesser-of-r-min-and-before"
    """Rate after a stop: Rmin, to the letter of the text; at most that before the stop; or that before the
    stop."""
    reset: Literal["never", "positive", "any"] = "never"
    """Feedback that sets Tmax and Rmin back: none, positive Fb, or any Fb. The removal of a limiter always
    does."""
    meanwhile: Literal["ignore", "stop-again", "remember"] = "ignore"
    """Feedback during a stop is ignored; or BCN(0,0) starts the stop again; or Fb changes the rate from
    before it."""


class BcnReactionPoint(LimiterQueue):
    """A rate limiter for each flow of some hosts: R <- R (1 - gd |Fb|), R <- R + gi Fb ru."""

    at: Selector
    """Hosts that obey."""
    gi: Number
    """Gain of an increase, in `ru` per unit of Fb."""
    gd: Number
    """Gain of a decrease, per unit of Fb."""
    ru: PositiveRate
    """Unit of an increase."""
    min_rate: Rate = Rate(10**6)
    """No decrease goes below."""
    initial_rate: PositiveRate | None = None
    """Rate of a new limiter, before the feedback that made it counts. Absent: the line rate."""
    removal_rate: PositiveRate | None = None
    """A limiter that reaches this rate is removed. Absent: the line rate."""
    drift: Drift | None = None
    """Absent: none."""
    stop: Stop = Stop()
    """What BCN(0,0) does."""


class Bcn(Model):
    """Backward congestion notification."""

    congestion_point: BcnCongestionPoint
    """The queues that measure."""
    severe: Severe | None = None
    """Absent: no state of severe congestion."""
    reaction_point: BcnReactionPoint
    """The senders that obey."""
