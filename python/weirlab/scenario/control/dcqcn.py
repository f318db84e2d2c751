"""Data center QCN: what grew out of QCN for RDMA over networks that route."""

from __future__ import annotations

from weirlab.fields import values
from weirlab.fields.base import Model, PortSelector, Selector
from weirlab.scenario.control.limiter import LimiterQueue, Notification
from weirlab.scenario.control.qcn import Recovery
from weirlab.scenario.network.aqm import Marking
from weirlab.units import Rate, Size, Span


class DcqcnRecovery(Recovery):
    """Growth of a rate in DCQCN: as in QCN, with other defaults."""

    byte_counter: values.Counter = Size(10_000_000)
    """Bytes sent in a stage of the byte counter. `none`: the timer counts alone."""
    timer: values.PositiveSpan = Span.from_s(55e-6)
    """Length of a stage of the timer."""
    jitter: values.Fraction = 0.0
    """Uniform spread of byte counter and timer."""
    halve_stages: values.Flag = False
    """Whether stages beyond fast recovery are half as long."""
    r_ai: values.PositiveRate = Rate(40 * 10**6)
    """Step of the target in active increase."""
    r_hai: values.PositiveRate = Rate(400 * 10**6)
    """Step of the target in hyper-active increase."""
    target_cut_above: values.Number = 1e6
    """A target above this multiple of the rate is divided by `target_cut` after the first stage; 1e6:
    never."""


class DcqcnMarking(Marking):
    """Marks of some queues, as those of `queues`."""

    at: PortSelector
    """Ports that mark."""


class DcqcnReactionPoint(LimiterQueue):
    """A rate limiter for each flow of some hosts: a notification sets the target to the rate, takes alpha / 2
    of the rate, and alpha <- (1 - g) alpha + g; alpha <- (1 - g) alpha each `alpha_timer` without one."""

    at: Selector
    """Hosts that obey."""
    pacing_jitter: values.Fraction = 0.0
    """Random share j of the gap between paced frames: size / rate x ((1 - j) + j X), X exponential with mean
    1."""
    g: values.PositiveFraction = 1 / 256
    """Gain of alpha, the average share of notifications."""
    alpha_timer: values.PositiveSpan = Span.from_s(55e-6)
    """See above."""
    cut_timer: values.PositiveSpan | None = None
    """Present: as in network adapters, the rate is cut by a timer of this length if a notification came
    since, alpha changes by `alpha_timer` alone, and a series of cuts keeps the target from before it.
    Absent: each notification cuts."""
    min_rate: Rate = Rate(10**8)
    """No decrease goes below."""
    recovery: DcqcnRecovery = DcqcnRecovery()
    """How rates grow."""


class Dcqcn(Model):
    """Data center QCN: queues mark frames, receivers notify the senders of marked ones."""

    marking: DcqcnMarking | None = None
    """The queues that mark. Absent: those that do so in `queues`."""
    notify_every: values.PositiveSpan = Span.from_s(50e-6)
    """A receiver sends at most one notification in this time for each flow."""
    notification: Notification = Notification()
    """The frames that carry notifications."""
    reaction_point: DcqcnReactionPoint
    """The senders that obey."""
