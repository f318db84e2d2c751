"""What one step of a cycle gave, whoever measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stream:
    """One connection."""

    received_bytes: int
    seconds: float
    """How long the receiver counted."""
    retransmits: int | None
    mean_rtt_s: float | None
    """As the sender's TCP saw it."""
    max_cwnd_bytes: int | None
    rates_bps: tuple[float, ...] = ()
    """In each interval of about a second: goodput in simulated time; on real stacks what the sender wrote,
    which fills its buffer first."""
    received_bps: tuple[float, ...] = field(default=(), kw_only=True)
    """On real stacks, goodput in each of these intervals, as the receiver counted; empty: it did not report
    them."""
    rtts_s: tuple[float, ...] = ()
    """Smoothed round-trip time of the sender's TCP at the end of each interval."""
    cwnds_bytes: tuple[int, ...] = ()
    """Its congestion window then."""
    interval_retransmits: tuple[int, ...] = ()
    """Segments sent again in each interval."""
    datagrams: int | None = field(default=None, kw_only=True)
    """Of UDP, how many were sent; None: of TCP."""
    lost_datagrams: int | None = field(default=None, kw_only=True)
    jitter_s: float | None = field(default=None, kw_only=True)
    """Of UDP, as its receiver smoothed it. Source: RFC 3550, section 6.4.1"""


@dataclass(frozen=True)
class Transfer:
    """A bulk transfer."""

    streams: tuple[Stream, ...]
    intervals_bps: tuple[float, ...]
    """Goodput of all streams together in each second; on real stacks as the sender counts."""
    sender_cpu_percent: Mapping[str, float]
    """`total`, `user` and `system` time of the sending process, in per cent of one CPU; empty where there is
    no process.
    """
    receiver_cpu_percent: Mapping[str, float]


@dataclass(frozen=True)
class Pings:
    """A series of pings."""

    sent: int
    rtts_s: tuple[float, ...]
    """Of those that were answered, in the order of the answers; real ping prints to 1 ms from 100 ms on."""
    mean_s: float | None
    """Of all of them, to 1 us; None without answers."""
    min_s: float | None


@dataclass(frozen=True)
class Request:
    """A small HTTP request on a connection of its own."""

    asked_s: float
    """When its connection was begun, since the first one."""
    handshake_s: float | None
    """Until the connection was made; None: not in time."""
    answer_s: float | None
    """From then, or the end of the TLS handshake, until the whole answer was there; None: not in time."""
    tls_s: float | None = None
    """From the connection until the TLS handshake was done, one round trip; None: without TLS, or not in
    time."""


@dataclass(frozen=True)
class Stamps:
    """Test packets with the times of their departures and arrivals, by one clock; None of those that did not
    arrive."""

    there_s: tuple[float | None, ...]
    """One-way delay from the near end to the far one."""
    back_s: tuple[float | None, ...]
    """Of the answers; None also where there was nothing to answer."""
    clock_step_s: float
    """How much the clock moved meanwhile against one that nobody sets."""


@dataclass(frozen=True)
class Measurement:
    """One step of a cycle at one point, as it was."""

    transfer: Transfer | None
    pings: Pings | None
    began: float
    """Seconds since 1970; 0 in simulated time."""
    seconds: float
    busy_cpus: float | None
    """CPUs of this host that were busy on average, whoever kept them so; with two hosts of the busier one.
    None: not known.
    """
    foreign_cpus: float | None
    """Those of them that neither the transfer nor the emulator used."""
    degraded: tuple[str, ...]
    """Why the path is to be doubted."""
    lateness_p99_s: float | None
    """Of the packets, in the worse direction; None: not known, or of fewer than 100 packets."""
    joined: tuple[str, ...] | None = field(default=None, kw_only=True)
    """Transports (`tcp`, `udp`) whose packets the path moved joined, while its models saw each alone; empty:
    every packet moved alone. None: no emulated path, or a log that does not say.
    """
    disturbance: str = field(default="", kw_only=True)
    """What steal, run delay and softirq work that waited took from the emulator, in words; empty: nothing
    that matters, or not known."""
    account: Mapping[str, float | int | str | None] = field(default_factory=dict, kw_only=True)
    """The machine meanwhile, in figures of `weirlab.testbed.account` [s], with `emulator_waited_s`; empty
    where nothing is emulated."""
    lost: int
    """Packets lost at random, both directions."""
    dropped: int
    """Packets that found a queue full, both directions."""
    lost_forward: int | None = field(default=None, kw_only=True)
    """Those of them from the near end to the far one; None: a log that does not say."""
    dropped_forward: int | None = field(default=None, kw_only=True)
    requests: tuple[Request, ...] | None = None
    """In the order in which they were made; None: none were."""
    stamps: Stamps | None = field(default=None, kw_only=True)
    """One-way delays; None: none were measured."""
    beside: Mapping[str, Transfer] = field(default_factory=dict, kw_only=True)
    """What else loaded the path, by the name of its traffic; `transfer` is the first transfer of TCP."""

    @property
    def loaded(self) -> bool:
        """Whether anything loaded the path."""
        return self.transfer is not None or bool(self.beside)
