"""How switches and the adapters of hosts buffer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_KIND, Model, Selector
from weirlab.fields.values import Natural, Number, PositiveSize, PositiveSpan, Threshold
from weirlab.units import Span


class MemoryPause(Model):
    """PAUSE by the occupancy of a shared memory.

    Absent watermarks follow from the size: Th = M - N (RTT R + Lmax) and Tl = Th / 2, for N ports of the line
    rate R and frames of `frame_size`. In scope `input` each of the N inputs has its own share of both.
    """

    scope: Literal["switch", "input"] = "switch"
    """`switch`: all waiting frames count, and all neighbours are paused; between switches this can lock up.
    `input`: frames from one neighbour count, and that neighbour is paused."""
    xoff: Threshold | None = None
    """Level above which neighbours are asked to stop. Absent: see above."""
    xon: Threshold | None = None
    """Level at which they may resume. Absent: half of `xoff`."""
    round_trip: Span = Span(0)
    """RTT of the formula: from the decision to stop until no more frames arrive."""
    delay: Span = Span(0)
    """Time from the change of the level until the PAUSE frame leaves."""
    quanta: Natural | None = None
    """How long neighbours stop, in units of 512 bit times; at most 65535. Absent: until they are released."""
    refresh: PositiveSpan | None = None
    """Time after which the stop is repeated while the level stays above `xon`. Absent: never."""


class SharedMemory(Model):
    """One memory for all queues of a switch. A frame that finds no room is dropped."""

    kind: Literal["shared"]
    size: Threshold
    """Capacity of the memory."""
    frame_size: PositiveSize | None = None
    """Size of the frames in which levels are given, and Lmax of the formula for watermarks."""
    alpha: Number | None = None
    """Dynamic threshold: a queue may grow to this multiple of the free memory. Absent: as far as there is
    room."""
    pause: MemoryPause | None = Field(None, examples=[{"scope": "switch"}])
    """PAUSE by the occupancy of the memory. Absent: none."""


AnyMemory = Annotated[SharedMemory, BY_KIND]


class EgressBuffer(Model):
    """A buffer in a host behind the port that leads to it; PAUSE holds the port while it is too full."""

    xoff: PositiveSize
    """Level above which the port is held."""
    xon: PositiveSize
    """Level down to which it stays held."""


class Adapter(Model):
    """How hosts queue frames that they send and receive."""

    at: Selector
    """The hosts."""
    queues: Literal["fifo", "voq-round-robin"] = "fifo"
    """`fifo`: frames leave in order; `voq-round-robin`: a queue for each destination, served in turn."""
    egress: EgressBuffer | None = None
    """Absent: frames are taken as they come."""
