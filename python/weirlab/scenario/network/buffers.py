"""Buffers of switches, counted where frames come in and where they leave, and priority flow control."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from weirlab.fields.base import Model, Named, Selector
from weirlab.fields.values import Natural, Number, PositiveSize, PositiveSpan
from weirlab.units import Size, Span


class Pool(Model):
    """A part of a buffer that queues of some classes share."""

    classes: tuple[Natural, ...] = Field(min_length=1, examples=[[3]])
    """The traffic classes, 0 to 7; a class is in one pool of a side at most."""
    alpha: Number | None = None
    """Share of a queue: this multiple of the free part of the pool (dynamic threshold). Absent, without
    `limit`: 1."""
    limit: PositiveSize | None = None
    """The same as a fixed size, instead of `alpha`."""
    reserved: Size = Size(0)
    """What each queue has to itself, before it takes of the pool."""


class Lossless(Model):
    """Prevents losses in a class: its senders are asked to stop in time."""

    headroom: Size | None = None
    """Room, per input and class, for frames that still arrive after the sender was asked to stop. Absent:
    computed from the rate and delay of the link, the longest frame and response times."""
    xon_offset: Size = Size(3072)
    """A sender may resume when no headroom is used and its queue is this much below its share."""


class IngressPool(Pool):
    """A part of the buffer for frames, by the input on which they arrived."""

    size: PositiveSize | None = None
    """Bytes that its queues share. Absent (in at most one pool): what reservations, headroom and other pools
    leave."""
    lossless: Lossless | None = Field(None, examples=[{}])
    """Senders are asked to stop when a queue has used up its share. Absent: further frames are dropped."""


class EgressPool(Pool):
    """A part of the buffer for frames, by the output for which they wait."""

    size: PositiveSize | None = None
    """What its queues share. Absent: the whole buffer."""


class FlowControl(Model):
    """Frames that ask neighbours to stop and to resume."""

    stops: Literal["classes", "link"] = "classes"
    """`classes`: those that it names, priority flow control (PFC, IEEE 802.1Qbb); `link`: all data, PAUSE."""
    quanta: Natural = 65535
    """How long a neighbour stops, in units of 512 bit times of the link; 1 to 65535."""
    refresh: PositiveSpan | None = None
    """Time after which a stop that is still needed is repeated. Absent: half the duration of a stop."""
    frame_size: PositiveSize = Size(64)
    """Size of these frames."""
    delay: Span = Span(0)
    """Time from the change of the buffer until one is queued."""
    longest: PositiveSize | None = None
    """The longest frame that headroom is for. Absent: the longest of the traffic."""


class Watchdog(Model):
    """What a switch does when a neighbour holds a class for too long at one of its ports."""

    detection: PositiveSpan = Span.from_s(0.2)
    """A storm is detected if, for this time, each poll found the class held, with requests to stop and none
    to resume."""
    restoration: PositiveSpan | None = Span.from_s(0.4)
    """A storm is over when no flow-control frame has come for this time."""
    poll: PositiveSpan = Span.from_s(0.2)
    """Time between two looks; at most `detection` and `restoration`."""
    action: Literal["drop", "forward", "alert"] = "drop"
    """`drop`: waiting and arriving frames of the class are dropped; `forward`: they are sent despite the
    neighbour's requests; `alert`: the storm is only reported."""


class Buffer(Model):
    """The buffer of a switch, which all its ports share. A frame that finds no room is dropped."""

    at: Selector
    """The switches. A later entry replaces an earlier one."""
    size: PositiveSize
    """All that may wait in one switch."""
    ingress: Named[IngressPool] = Field(
        Named(),
        examples=[{"lossless": {"classes": [3], "lossless": {}}, "lossy": {"classes": [0], "size": "1 MB"}}],
    )
    """How it is shared by input and class. If given, each class of the traffic is in a pool. Absent: it is
    not shared."""
    egress: Named[EgressPool] = Field(Named(), examples=[{"lossy": {"classes": [0], "alpha": 1}}])
    """How it is shared by output and class. A class without a pool has no limit there."""
    flow_control: FlowControl = FlowControl()
    """How senders of lossless classes are asked to stop."""
    watchdog: Watchdog | None = Field(
        None, examples=[{"detection": "2 ms", "restoration": "2 ms", "poll": "1 ms"}]
    )
    """What is done about storms of flow control. Absent: nothing."""
