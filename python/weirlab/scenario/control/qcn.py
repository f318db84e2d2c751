"""Quantized congestion notification.

Source: IEEE8021-CN-MIB, the default values of its objects
"""

from __future__ import annotations

from typing import Annotated, Literal

from weirlab.fields import values
from weirlab.fields.base import BY_KIND, Model, PortSelector, Selector
from weirlab.scenario.control.bcn import ExponentialSampling, PerFrameSampling, UniformSampling
from weirlab.scenario.control.limiter import LimiterQueue, Notification
from weirlab.units import Rate, Size, Span


class Recovery(Model):
    """Growth of a rate towards a target, in stages of a byte counter and a timer: half way to the target;
    from the stage `fast_recovery` of one of them on the target grows, too, by `r_ai`, and by `r_hai` where
    both are `hyper_after` stages beyond that one."""

    byte_counter: values.Counter = Size(150_000)
    """Bytes sent in a stage of the byte counter. `none`: the timer counts alone."""
    timer: values.PositiveSpan = Span.from_s(15e-3)
    """Length of a stage of the timer."""
    jitter: values.Fraction = 0.15
    """Uniform spread of both."""
    halve_stages: values.Flag = True
    """Whether stages beyond fast recovery are half as long."""
    fast_recovery: values.Count = 5
    """Number of the first stage of either in which the target grows: those before it are fast recovery."""
    hyper_after: values.Natural = 0
    """Stages after `fast_recovery`, of the slower of timer and byte counter, from which on it grows by
    `r_hai`."""
    r_ai: values.PositiveRate = Rate(5 * 10**6)
    """Step of the target in active increase."""
    r_hai: values.PositiveRate = Rate(50 * 10**6)
    """Step of the target in hyper-active increase."""
    hyper_grows: values.Flag = True
    """Whether the n-th of these steps in a row is n times as long."""
    target_cut_above: values.Number = 10.0
    """A target above this multiple of the rate is divided by `target_cut` after the first stage; 1e6:
    never."""
    target_cut: values.Number = 8.0
    """See `target_cut_above`."""


class QcnUniformSampling(UniformSampling):
    """Uniform around the mean."""

    jitter: values.Fraction = 0.15
    """Relative half width."""


AnyQcnSampling = Annotated[QcnUniformSampling | ExponentialSampling | PerFrameSampling, BY_KIND]


class QcnCongestionPoint(Model):
    """A queue that samples frames and sends their senders -Fb = (q - q_eq) + w (q - q at the sample before),
    quantized to 6 bits, where it is positive."""

    at: PortSelector
    """Ports that measure."""
    q_eq: values.Threshold = Size(26_000)
    """Set point of the queue."""
    frame_size: values.PositiveSize | None = None
    """Size of the frames in which `q_eq` is given."""
    w: values.Number = 2.0
    """Weight of the change of the queue against its offset."""
    sample_every: values.PositiveSize = Size(150_000)
    """Mean amount of data between two samples without congestion; up to 8.1 times less with it."""
    sampling: AnyQcnSampling = QcnUniformSampling(kind="uniform")
    """Spread of that amount."""
    counted: Literal["received", "accepted"] = "received"
    """Frames that count towards the next sample: all that arrive for the queue, or those that it takes."""
    notification: Notification = Notification()
    """The frames that carry Fb."""


class QcnReactionPoint(LimiterQueue):
    """A rate limiter for each flow of some hosts: R <- R (1 - gd Fb), and recovery without feedback."""

    at: Selector
    """Hosts that obey."""
    pacing_jitter: values.Fraction = 0.0
    """Random share j of the gap between paced frames: size / rate x ((1 - j) + j X), X exponential with mean
    1."""
    gd: values.Number = 1 / 128
    """Gain of a decrease per unit of quantized feedback (0 to 63)."""
    min_decrease_factor: values.PositiveFraction = 0.5
    """A decrease leaves at least this share of the rate."""
    min_rate: Rate = Rate(5 * 10**6)
    """No decrease goes below."""
    recovery: Recovery = Recovery()
    """How rates grow."""
    new_limiter: Literal["any-feedback", "above-set-point"] = "any-feedback"
    """Feedback that creates a limiter: any, or only that of a queue above its set point. An existing limiter
    obeys any."""


class Qcn(Model):
    """Quantized congestion notification (IEEE 802.1Qau-2010)."""

    congestion_point: QcnCongestionPoint
    """The queues that measure."""
    reaction_point: QcnReactionPoint
    """The senders that obey."""
