"""Numbered packets as the transport of messages: RDMA over Ethernet, and what follows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_KIND, Model
from weirlab.fields.values import Count, Flag, Natural, Number, PositiveFraction, PositiveSize, PositiveSpan
from weirlab.scenario.traffic.controllers import AnyController
from weirlab.units import Size, Span


class GoBackZero(Model):
    """Resends the whole message: the receiver drops what it has (the first RoCE adapters)."""

    kind: Literal["go-back-0"]


class GoBackN(Model):
    """Resends from the first missing packet on: the receiver drops packets out of order (RoCE)."""

    kind: Literal["go-back-n"]


class ByTimeout(Model):
    """Only by `timeout`, and by headers that arrive without their payload."""

    kind: Literal["timeout"]


class Overtaken(Model):
    """A packet is also lost when one that was sent this many places after it has arrived."""

    kind: Literal["overtaken"]
    packets: Count = 3
    """How many behind it."""


class Sleek(Model):
    """Packets are also lost when many later ones have arrived, or when a probe after a silence is answered
    quickly (Ultra Ethernet without trimming)."""

    kind: Literal["sleek"]
    factor: Number = 1.5
    """How many later arrivals show a loss, as a multiple of the window."""
    least: Count = 5
    """Fewest later arrivals that show a loss."""
    most: Number = 1.5
    """Most later arrivals that are needed, as a multiple of what the empty path holds."""
    target: Number = 1
    """A probe was answered quickly if its delay is below this multiple of the round-trip time of the empty
    path."""
    probe_after: Number = 3
    """Round trips after the last answer until a probe leaves; once everything has been sent, one round trip
    and the target."""
    probe_again: Number = 5
    """Round trips after a probe until the next one."""


AnyDetection = Annotated[ByTimeout | Overtaken | Sleek, BY_KIND]


class Selective(Model):
    """Resends only missing packets: the receiver keeps packets out of order (IRN, Ultra Ethernet)."""

    kind: Literal["selective"]
    detection: AnyDetection = ByTimeout(kind="timeout")
    """What shows that a packet is lost."""


AnyRecovery = Annotated[GoBackN | GoBackZero | Selective, BY_KIND]


class PathValues(Model):
    """A value in each packet that switches include in their hash, with `balancing: flow`."""

    rule: Literal["oblivious", "bitmap", "reps", "mixed"] = "mixed"
    """`oblivious`: one after the other, in changing order; `bitmap`: the same, but values whose packets were
    marked, cut or lost are skipped for some rounds; `reps`: values whose packets returned without a mark,
    otherwise any; `mixed`: such values, otherwise as `bitmap`."""
    values: Count = 64
    """How many there are, a power of two."""


class ReceiverCredit(Model):
    """Credit by which the receiver controls how much may be sent (RCCC of Ultra Ethernet, EQDS, NDP)."""

    initial: Number = 1.5
    """Data that a sender may send without credit, as a multiple of the BDP of the empty path."""
    revokes: Flag = True
    """Whether the first answer or credit revokes what is left of it."""
    most: Number = 1.5
    """What a sender may ask for ahead, as such a multiple."""
    packets: Number = 4
    """Packets of credit that are granted at a time; fractions are possible."""
    share: PositiveFraction = 0.99
    """Share of the receiver's line rate at which it grants credit to all senders together."""
    oversubscription: Number | None = None
    """Ratio of what hosts may send to what the network above them carries. The share then follows marks and
    cuts, down to 0.9 divided by this ratio. Absent: the share is fixed."""


class Answers(Model):
    """What the receiver sends back."""

    size: PositiveSize = Size(64)
    """Frame size of an answer, with FCS, without preamble, gap and telemetry."""
    every: Size = Size(0)
    """Data after which the receiver answers; 0 B: each packet. Always answered at once: the first packet, the
    last one that the sender may send for now, and packets that are marked, cut or duplicated."""
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
    largest window. Absent: for `nscc` its largest window, for others one BDP."""
    round_trip: PositiveSpan | None = None
    """Round-trip time of the empty path that credit, `sleek`, `hpcc`, `nscc` and first windows assume.
    Absent: that of each sender and its receiver, for a full packet and its answer."""
    timeout: PositiveSpan = Span(500 * 10**6)
    """Time after which what was not answered is sent again."""
    telemetry: PositiveSize = Size(42)
    """Room for what ports write into packets (in-band telemetry), in each packet and each answer; with a
    congestion control that reads it (`hpcc`)."""
    paths: PathValues | None = None
    """How the sender chooses the path of each packet; with `selective`. Absent: all packets of a message take
    the same path."""
    credit: ReceiverCredit | None = None
    """Credit of the receiver; with `selective`. Absent: none is needed."""
