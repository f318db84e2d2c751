"""Congestion control in the network: BCN and PAUSE."""

from __future__ import annotations

from typing import Literal

from weirlab.scenario.base import Model, PortSelector, Selector
from weirlab.scenario.values import Fraction, Number, PositiveSize, PositiveSpan, Threshold
from weirlab.units import Rate, Size

__all__ = ["Bcn", "CongestionPoint", "Control", "Drift", "Pause", "ReactionPoint", "Severe"]


class CongestionPoint(Model):
    """The queue that measures and notifies."""

    at: PortSelector
    """Ports that measure."""
    q_eq: Threshold
    """Set point of the queue."""
    frame_size: PositiveSize | None = None
    """Size of the frames in which the queue is counted; needed where an amount is given in frames."""
    w: Number = 2.0
    """Weight of the change of the queue against its offset."""
    sample_every: PositiveSize = Size(150_000)
    """Mean amount of data between two samples."""
    sample_jitter: Fraction = 0.5
    """Relative half width of the uniform spread of that amount."""


class Severe(Model):
    """What happens under severe congestion."""

    above: Threshold
    """Queue from which congestion is severe."""
    action: Literal["none", "stop", "max"] = "none"
    """`none`; `stop`: BCN(0,0); `max`: BCN(MAX), the largest negative feedback."""


class Drift(Model):
    """Growth of every limited rate without feedback."""

    step: Rate
    """Added each time."""
    every: PositiveSpan
    """Time between additions."""


class ReactionPoint(Model):
    """The senders that obey."""

    at: Selector
    """Hosts that obey."""
    gi: Number
    """Gain of an increase, in `ru` per unit of feedback (frames)."""
    gd: Number
    """Gain of a decrease, per unit of feedback (frames)."""
    ru: Rate
    """Unit of an increase."""
    pacing_jitter: Fraction = 0.15
    """Random share of the gap between paced frames."""
    drift: Drift | None = None
    """Absent: none."""


class Bcn(Model):
    """Backward congestion notification."""

    congestion_point: CongestionPoint
    """The queues that measure."""
    severe: Severe | None = None
    """Absent: no state of severe congestion."""
    reaction_point: ReactionPoint
    """The senders that obey."""


class Pause(Model):
    """PAUSE frames (IEEE 802.3, annex 31B) to all neighbours of a switch, by the level of an output queue."""

    at: Selector
    """Switches that send them."""
    xoff: PositiveSize
    """Level above which the neighbours are told to stop."""
    xon: PositiveSize
    """Level below which they may go on."""


class Control(Model):
    """What the network does against congestion; each scheme at most once."""

    bcn: Bcn | None = None
    """Backward congestion notification."""
    pause: Pause | None = None
    """PAUSE."""
