"""Numbered packets as the transport of messages: RDMA over Ethernet, and what follows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_KIND, Model
from weirlab.fields.values import Count, Flag, Natural, Number, PositiveFraction, PositiveSize, PositiveSpan
from weirlab.scenario.traffic.controllers import AnyController
from weirlab.units import Size, Span


class GoBackZero(Model):
    """The whole message: the receiver drops what it has (the first RoCE adapters)."""

    kind: Literal["go-back-0"]


class GoBackN(Model):
    """From the first packet on that is missing: the receiver drops what is not next (RoCE)."""

    kind: Literal["go-back-n"]


class ByTimeout(Model):
    """Nothing but `timeout` and headers that arrive without their payload."""

    kind: Literal["timeout"]


class Overtaken(Model):
    """A packet is lost when one has arrived that was sent so many behind it, too."""

    kind: Literal["overtaken"]
    packets: Count = 3
    """How many behind it."""


class Sleek(Model):
    """Packets are lost, too, when many have arrived behind the first of them, or when a probe that left
    after a silence is answered soon (Ultra Ethernet without trimming)."""

    kind: Literal["sleek"]
    factor: Number = 1.5
    """How many are many, as a multiple of the window."""
    least: Count = 5
    """At least so many."""
    most: Number = 1.5
    """At most so many, as a multiple of what the empty path holds."""
    target: Number = 1
    """A probe was answered soon with less delay than this, as a multiple of the round-trip time of the empty
    path."""
    probe_after: Number = 3
    """A probe leaves so many round trips after the last answer; once all has been sent, after one and the
    target."""
    probe_again: Number = 5
    """The next one so many round trips after a probe."""


AnyDetection = Annotated[ByTimeout | Overtaken | Sleek, BY_KIND]


class Selective(Model):
    """What is missing: the receiver keeps what comes out of order (IRN, Ultra Ethernet)."""

    kind: Literal["selective"]
    detection: AnyDetection = ByTimeout(kind="timeout")
    """What shows that a packet is lost."""


AnyRecovery = Annotated[GoBackN | GoBackZero | Selective, BY_KIND]


class PathValues(Model):
    """A value in each packet that switches hash, with `balancing: flow`."""

    rule: Literal["oblivious", "bitmap", "reps", "mixed"] = "mixed"
    """`oblivious`: one after the other, in changing order; `bitmap`: the same, but values whose packets
    were marked, cut or lost are left out for some rounds; `reps`: values again whose packets came without a
    mark, else any; `mixed`: such values, else as `bitmap`."""
    values: Count = 64
    """How many there are, a power of two."""


class ReceiverCredit(Model):
    """The receiver says how much may be sent (RCCC of Ultra Ethernet, EQDS, NDP)."""

    initial: Number = 1.5
    """What a sender may send without, as a multiple of what the empty path holds."""
    revokes: Flag = True
    """Whether the first answer or credit takes away what is left of that."""
    most: Number = 1.5
    """What a sender may ask for ahead, as such a multiple."""
    packets: Number = 4
    """Packets of credit that are given at a time; a part of one counts, too."""
    share: PositiveFraction = 0.99
    """Share of the receiver's line rate at which it gives credit to all senders together."""
    oversubscription: Number | None = None
    """How many times as much hosts may send as the network above them carries: the share follows marks and
    cuts there, down to 0.9 over this. Absent: it stays."""


class Answers(Model):
    """What the receiver sends back."""

    size: PositiveSize = Size(64)
    """The frame of an answer, with FCS, without preamble and gap, and without telemetry."""
    every: Size = Size(0)
    """Data after which the receiver answers; 0 B: each packet. Packets that are the first, the last that the
    sender may send for now, marked, cut or doubled are answered at once."""
    class_: Natural | None = Field(default=None, alias="class")
    """Traffic class of answers, of credit and of headers without payload. Absent: that of the data."""


class Rdma(Model):
    """Numbered packets that the receiver answers, as network adapters do for RDMA; for messages. `packet` of
    the source says how they are cut. Messages of a host take turns, packet by packet."""

    kind: Literal["rdma"]
    congestion_control: AnyController
    """What sets window and rate: `dcqcn-sender`, `hpcc`, `nscc`, `line-rate`, or one of TCP that has no model
    of the path (`dctcp`, `swift`, `timely`, `reno`, `cubic`)."""
    recovery: AnyRecovery = GoBackN(kind="go-back-n")
    """What is sent again."""
    answers: Answers = Answers()
    """What the receiver sends back."""
    window: PositiveSize | None = None
    """Most data in flight. Absent: as the congestion control says."""
    initial_window: PositiveSize | None = None
    """First window of `nscc`, `dctcp`, `swift`, `reno` or `cubic`; others start at their rate or with their
    greatest window. Absent: the greatest of `nscc`; what the empty path holds."""
    round_trip: PositiveSpan | None = None
    """Round-trip time of the empty path that credit, `sleek`, `hpcc`, `nscc` and first windows assume.
    Absent: that of each sender and its receiver, for a full packet and its answer."""
    timeout: PositiveSpan = Span(500 * 10**6)
    """Time after which what was not answered is sent again."""
    telemetry: PositiveSize = Size(42)
    """Room for what ports write into packets (in-band telemetry), in each packet and each answer; with a
    congestion control that reads it (`hpcc`)."""
    paths: PathValues | None = None
    """How the sender chooses the way of each packet; with `selective`. Absent: all packets of a message take
    one."""
    credit: ReceiverCredit | None = None
    """Credit of the receiver; with `selective`. Absent: none is needed."""
