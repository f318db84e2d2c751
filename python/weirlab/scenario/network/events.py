"""What happens to a network in the course of a run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_KIND, Model, PortSelector
from weirlab.fields.values import Limit, Natural, PositiveRate, PositiveSpan
from weirlab.units import Span


class Happening(Model):
    """What all events share."""

    when: Span
    """From then on."""
    until: Span | None = None
    """Until then, when all is as it was. Absent: the end of the run."""


class LinkDown(Happening):
    """Links that carry nothing, in neither direction: what is on them and what waits before them is lost, and
    what comes."""

    kind: Literal["link-down"]
    at: PortSelector
    """The links: `a->b` for that between a and b."""
    reroute: Span | None = None
    """Time after which switches know that the link is down, or up again, and forward over the remaining
    shortest paths. Absent: never."""


class RateChange(Happening):
    """Ports that send at another rate. A frame in transmission ends as it began."""

    kind: Literal["rate"]
    at: PortSelector
    """The ports."""
    rate: PositiveRate
    """The rate."""


class BufferChange(Happening):
    """Queues that hold another amount. Frames that wait already stay."""

    kind: Literal["buffer"]
    at: PortSelector
    """The ports."""
    limit: Limit = Field(examples=["150 kB", "300 frames", "unlimited"])
    """What may wait, the frame in transmission excluded."""
    class_: Natural | None = Field(None, alias="class")
    """The traffic class whose queue it is, at ports with `kind: classes`."""


class Hold(Happening):
    """Traffic classes that are held: no frame of them starts."""

    kind: Literal["hold"]
    at: PortSelector
    """The ports."""
    classes: tuple[Natural, ...] | None = Field(None, min_length=1)
    """The classes. Absent: all, also at ports with one queue."""


class Storm(Happening):
    """A host that asks its switch to stop, again and again, such as a broken adapter.
    After `until` it asks no more, and its last request expires after 65535 quanta."""

    kind: Literal["storm"]
    at: PortSelector
    """Ports of hosts, which send the frames."""
    classes: tuple[Natural, ...] | None = Field(None, min_length=1)
    """The traffic classes that it stops (PFC). Absent: all data (PAUSE)."""
    every: PositiveSpan
    """Time between two frames."""


AnyEvent = Annotated[LinkDown | RateChange | BufferChange | Hold | Storm, BY_KIND]
