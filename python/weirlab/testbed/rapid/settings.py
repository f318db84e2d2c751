"""What a live sender is set to: the same transport as in a scenario, for a link that is known by its rate."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from weirlab.errors import InputError
from weirlab.fields.base import Model
from weirlab.fields.values import Flag, PositiveRate, PositiveSpan
from weirlab.scenario import Scenario, load
from weirlab.scenario.file.ready import ready_made
from weirlab.scenario.network.layout import Port
from weirlab.scenario.resolve.transport import tcp_spec
from weirlab.scenario.traffic import Tcp
from weirlab.scenario.traffic.rapid import Rapid
from weirlab.units import Rate, Size, Span

ETHERNET_BYTES = 38
"""What Ethernet puts around an IP packet: header 14 B, FCS 4 B, preamble 8 B, gap 12 B.

Source: IEEE 802.3, clause 3.1.1 and 4.4.2
"""
_CORE_HEADERS_BYTES = 70
"""What the core takes a segment's frame to have besides its payload; an IPv4 packet of ours has as much."""
_MORE_OF_IPV6_BYTES = 20
Plain = dict[str, Any]
"""A transport as files write it."""
_LONGEST = Span(3600 * 10**12)
_MOST_SPIN = Span(200 * 10**6)
_LONGEST_FIRST = Span(100 * 10**9)
"""Where the first stream would take longer, the start is faster."""
_START_PACKETS = 8
"""Of the streams of a fast start, in which the rate doubles until one sees the path."""

Variant = Literal["better", "ideal", "flawed"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


class Settings(Model):
    """Everything about a transfer but its ends."""

    variant: Variant = "better"
    """`better`, `ideal`: the transport of the ready-made scenario `rapid-better`, `rapid-ideal`. `flawed`:
    that of `rapid-flawed`, version 0.9.2, and departures that are awaited by sleeping alone."""
    link: PositiveRate
    """Rate of the narrowest link of the path, as far as it is known."""
    duration: PositiveSpan = Span(10 * 10**12)
    """How long new data is sent."""
    every: PositiveSpan = Span(100 * 10**9)
    """Length of the intervals that are counted."""
    mtu: Annotated[int, Field(ge=576, le=8970)] = 1500
    """Longest IP packet of the path."""
    around: Annotated[int, Field(ge=0, le=200)] = ETHERNET_BYTES
    """Bytes that the link puts around each IP packet; 0 on an emulated path."""
    pacing: Literal["spin", "sleep"] | None = None
    """How departures are awaited: by sleeping and a short spin, or by sleeping alone. None: as the variant
    has it."""
    spin: Span = Span(50 * 10**6)
    """How long before a packet is due the sender stays awake."""
    real_time: Flag = True
    """Whether SCHED_FIFO is asked for."""
    cpu: Annotated[int, Field(ge=0, le=4095)] | None = None
    """The CPU of the sending thread. None: any."""
    packets: Flag = False
    """Whether the times of each packet are kept."""
    taken_from: str = ""
    """What `transport_fields` were taken from; empty when the variant has the transport."""
    transport_fields: Mapping[str, object] | None = None
    """A transport of a scenario, in the place of that of the variant."""
    changes: Mapping[str, object] = {}
    """Values of the transport other than those of the variant: dotted path to value."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        for name, value, most in (("duration", self.duration, _LONGEST), ("spin", self.spin, _MOST_SPIN)):
            if value > most:
                raise ValueError(f"{name}: at most {most} (got {value})")
        if self.every < Span(10**9) or self.every > self.duration:
            raise ValueError(f"every: from 1 ms to the duration, {self.duration} (got {self.every})")
        return self

    @property
    def name(self) -> str:
        """The variant, or what the transport was taken from."""
        return self.taken_from or self.variant

    @property
    def packet_bytes(self) -> int:
        """A full packet with what the link puts around it."""
        return self.mtu + self.around

    @property
    def spin_ps(self) -> int:
        """How long before a packet is due the sender stays awake, ps; 0: it only sleeps."""
        pacing = self.pacing or ("sleep" if self.variant == "flawed" else "spin")
        return self.spin.ps if pacing == "spin" else 0

    def transport(self, *, ipv6: bool) -> Tcp:
        """The transport: that of the variant, with the changes. Raises InputError for changes that are not
        legal."""
        fields = self.transport_fields
        plain = _plain(self.variant, self.link) if fields is None else copy.deepcopy(dict(fields))
        more = _MORE_OF_IPV6_BYTES if ipv6 else 0
        plain["segment"] = f"{self.mtu - _CORE_HEADERS_BYTES - more} B"
        for path, value in self.changes.items():
            _assign(plain, path, value)
        control = plain.get("congestion_control")
        if not isinstance(control, dict) or control.get("kind") != "rapid":
            raise InputError("--set congestion_control: only 'rapid' is sent over UDP")
        try:
            tcp = Tcp.model_validate(plain)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("<"))
            raise InputError(f"--set {place}: {what_is_wrong(first)}") from None
        assert isinstance(tcp.congestion_control, Rapid)
        return tcp

    def core_json(self, *, ipv6: bool) -> str:
        """The transport as the compiled core takes it."""
        around = self.around + (_MORE_OF_IPV6_BYTES if ipv6 else 0)
        port = Port("link", "sender", "receiver", self.link.bps, around)
        return tcp_spec(self.transport(ipv6=ipv6), port).json()


def transport_of(scenario: Scenario, traffic: str | None = None) -> tuple[str, Plain]:
    """The transport of a traffic group that is sent by Rapid, and where it stands; the only one without
    `traffic`. Raises InputError."""
    found = {
        name: group.transport
        for name, group in scenario.traffic.items()
        if isinstance(group.transport, Tcp) and isinstance(group.transport.congestion_control, Rapid)
    }
    names = ", ".join(found) or "none"
    if traffic is not None and traffic not in found:
        raise InputError(
            f"{scenario.file}: no traffic '{traffic}' with 'congestion_control: {{kind: rapid}}' (there is: "
            f"{names})"
        )
    if traffic is None and len(found) != 1:
        raise InputError(
            f"{scenario.file}: which transport? Name with --traffic one of those by Rapid (there is: {names})"
        )
    chosen = traffic or next(iter(found))
    fields = found[chosen].model_dump(mode="json", exclude_none=True)
    # New data ends with the duration: a live sender has no buffer of an application to empty.
    fields.pop("send_buffer", None)
    return f"{scenario.name}, traffic {chosen}", fields


def what_is_wrong(error: ErrorDetails) -> str:
    """The fault that pydantic found, with the value."""
    if error["type"] == "extra_forbidden":
        return f"there is no such field (got {error['input']!r})"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message if "(got " in message else f"{message} (got {error['input']!r})"


@functools.cache
def _ready_made(variant: Variant) -> Plain:
    """The transport of a variant as its scenario has it."""
    return transport_of(load(ready_made()[f"rapid-{variant}"]))[1]


def _plain(variant: Variant, link: Rate) -> Plain:
    """The transport of a variant. Times that belong to the scenario's link of 1 Gbit/s become those of
    `link`, and so do rates."""
    plain = copy.deepcopy(_ready_made(variant))
    # Each segment is acknowledged: acknowledgements that are near each other share a datagram anyway.
    plain |= {"delayed_ack": 1, "delayed_ack_timeout": "5 ms"}
    frame_ps = Size(1500).bytes * 8 * 10**12 // link.bps
    control = plain["congestion_control"]
    first_bps = max(1, link.bps * 52 // 1000)
    in_time_bps = control["n"] * frame_ps * link.bps // _LONGEST_FIRST.ps
    if variant != "flawed" and in_time_bps > first_bps:
        # DEVIATION: version 0.9.2 starts at 52 Mbit/s of 1 Gbit/s, where a stream takes 18 ms. In proportion,
        # a stream takes most of a second on a slow link, and each less than doubles the rate.
        first_bps = min(in_time_bps, link.bps // 4)
        control["start"] = _START_PACKETS
    control["initial_rate"] = f"{first_bps} bit/s"
    control["least_rate"] = f"{max(1, link.bps // 1000)} bit/s"
    match variant:
        case "ideal":
            control["estimator"]["tolerance"] = f"{max(15 * 10**6, frame_ps)} ps"
        case "better":
            control["denoising"]["within"] = f"{max(1, frame_ps // 2)} ps"
        case "flawed":
            # 10 us at 1 Gbit/s: as large a part of the time of a frame.
            control["estimator"]["epsilon"] = f"{10**16 // link.bps} ps"
            control["repair_rate"] = f"{max(1, link.bps * 6 // 100)} bit/s"
    return plain


def _assign(plain: Plain, path: str, value: object) -> None:
    """Put `value` at the dotted `path`; None takes away what is there."""
    *parents, name = path.split(".")
    place = plain
    for parent in parents:
        inner = place.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {path}: '{parent}' has no parts")
        place = inner
    if value is None:
        place.pop(name, None)
    else:
        place[name] = value
