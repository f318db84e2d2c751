"""What all schemes of congestion control share: the frames that carry notifications, and the limiters of
rates."""

from __future__ import annotations

from typing import Literal

from weirlab.fields.base import Model
from weirlab.fields.values import Fraction, FrameCount, Limit, Number, PositiveSize
from weirlab.units import Size, Span


class Notification(Model):
    """Frames that carry notifications, on the way back that the sampled frame came."""

    frame_size: PositiveSize = Size(64)
    """Their size."""
    delay: Span = Span(0)
    """Time from the sample until the notification is queued."""
    lane: Literal["control", "data", "beside"] = "control"
    """Queue that they use: `control` has priority, is never dropped, and PAUSE does not hold it; `data`: that
    of all frames; `beside`: none, they only have the delays of links and switches. In the slotted engine they
    always travel apart from the frames."""


class Credit(Model):
    """Frames that a limiter may send after a pause. For limiters that work by credit: with shared memories,
    adapters and slow outputs, and in the slotted engine."""

    initial: Number | None = None
    """Credit of a new limiter, 0 to `cap`. Absent: 0, and if the same pair of hosts had a limiter before,
    what that had left."""
    cap: Number | None = None
    """Most credit that is saved; at least 1. Absent: 1 + R, with the rate R as a share of the line."""


class LimiterQueue(Model):
    """The queue of a rate limiter."""

    queue: Limit = "unlimited"
    """What may wait of a flow at its host; more is dropped."""
    pacing_jitter: Fraction = 0.15
    """Random share j of the gap between paced frames: size / rate x ((1 - j) + j X), X exponential with mean
    1."""
    fifo: FrameCount = 0
    """Frames that limiters release while the port is busy or paused. 0: a frame is released when its
    transmission can start."""
    credit: Credit = Credit()
    """What a limiter may send that sent nothing for a while."""
