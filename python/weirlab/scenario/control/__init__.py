"""Congestion control in the network: BCN, QCN, DCQCN and PAUSE."""

from __future__ import annotations

from weirlab.fields.base import Model, Named, Selector
from weirlab.fields.values import Natural, PositiveSize, PositiveSpan
from weirlab.scenario.control.bcn import Bcn
from weirlab.scenario.control.dcqcn import Dcqcn
from weirlab.scenario.control.qcn import Qcn
from weirlab.units import Size, Span


class Pause(Model):
    """PAUSE frames (IEEE 802.3, annex 31B) to all neighbours of a switch, by the level of an output queue."""

    at: Selector
    """Switches that send them. A later rule replaces an earlier one."""
    xoff: PositiveSize
    """Level above which the neighbours are asked to stop."""
    xon: PositiveSize
    """Neighbours may resume when all queues of the switch have fallen below this level."""
    frame_size: PositiveSize = Size(64)
    """Size of a PAUSE frame."""
    delay: Span = Span(0)
    """Time from the change of the queue until the PAUSE frame is queued."""
    quanta: Natural | None = None
    """How long neighbours stop, in units of 512 bit times of the link; at most 65535. Absent: until they are
    released."""
    refresh: PositiveSpan | None = None
    """Time after which the request to stop is repeated while a queue stays too long. Absent: never."""


class Response(Model):
    """How fast nodes act on control frames; the frame in transmission always ends."""

    at: Selector
    """The nodes. A later entry replaces an earlier one."""
    pause: Span = Span(0)
    """From the end of a PAUSE frame until the transmitter stops."""
    notification: Span = Span(0)
    """From the end of a notification until a rate changes."""


class Control(Model):
    """Congestion management in the network; at most one of BCN, QCN and DCQCN."""

    bcn: Bcn | None = None
    """Backward congestion notification."""
    qcn: Qcn | None = None
    """Quantized congestion notification."""
    dcqcn: Dcqcn | None = None
    """Data center QCN."""
    pause: Named[Pause] = Named()
    """Rules of PAUSE, by name."""
    responses: Named[Response] = Named()
    """How fast nodes act on control frames, by any name. Absent: at once, or by the `response` of the nodes
    of a graph."""
