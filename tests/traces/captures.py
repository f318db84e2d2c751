"""Captures that tests make: frames of one TCP connection, as pcap files of any kind."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

SYN, PSH, ACK = 2, 8, 16
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
MSS = 1000


def segment(
    forward: bool,
    seq: int,
    ack: int,
    *,
    flags: int = ACK,
    window: int = 500,
    payload: int = 0,
    options: bytes = b"",
    version: int = 4,
    number: int = 0,
    vlan: bytes = b"",
    hops: int = 64,
) -> bytes:
    """An Ethernet frame with a TCP segment. The payload is zeros, checksums are left to the card."""
    ports = (40000, 80) if forward else (80, 40000)
    length = 20 + len(options)
    tcp = struct.pack(">HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, length // 4 << 4, flags, window, 0, 0)
    body = tcp + options + bytes(payload)
    pair = (CLIENT, SERVER) if forward else (SERVER, CLIENT)
    if version == 4:
        addresses = b"".join(ip_address(each).packed for each in pair)
        header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), number % 65535 + 1, 0x4000, hops, 6, 0)
        kind = b"\x08\x00"
    else:
        addresses = b"".join(ip_address(f"fd00::{each.rsplit('.', 1)[1]}").packed for each in pair)
        header = struct.pack(">IHBB", 6 << 28, len(body), 6, hops)
        kind = b"\x86\xdd"
    return bytes(12) + vlan + kind + header + addresses + body


@dataclass
class Talk:
    """A connection between a client that sends and a server that acknowledges; time in ns."""

    frames: list[tuple[int, bytes]] = field(default_factory=list)
    now: int = 0
    version: int = 4
    vlan: bytes = b""
    shift: int = 7

    def say(self, forward: bool, seq: int, ack: int, **fields: object) -> None:
        """One segment, now."""
        fields.setdefault("number", len(self.frames))
        frame = segment(forward, seq, ack, version=self.version, vlan=self.vlan, **fields)  # type: ignore[arg-type]
        self.frames.append((self.now, frame))

    def shake_hands(self, there_ns: int, *, back_ns: int = 1000, sack: bool = True) -> None:
        """SYN, its answer after `there_ns`, and the acknowledgment after `back_ns`: as seen at the client,
        unless told otherwise."""
        options = struct.pack(
            ">BBHBBBBBBBB", 2, 4, MSS, 1, 3, 3, self.shift, 1, 1, *((4, 2) if sack else (1, 1))
        )
        self.say(True, 999, 0, flags=SYN, window=65535, options=options)
        self.now += there_ns
        self.say(False, 4999, 1000, flags=SYN | ACK, window=65535, options=options)
        self.now += back_ns
        self.say(True, 1000, 5000)

    def data(self, number: int) -> None:
        """The segment `number`, of MSS bytes."""
        self.say(True, 1000 + number * MSS, 5000, flags=PSH | ACK, payload=MSS)

    def ack(self, number: int, *, window: int = 500, sack: tuple[int, int] | None = None) -> None:
        """Everything below segment `number` is acknowledged; `sack` are numbers of segments."""
        options = b""
        if sack is not None:
            left, right = (1000 + each * MSS for each in sack)
            options = struct.pack(">BBBBII", 1, 1, 5, 10, left, right)
        self.say(False, 5000, 1000 + number * MSS, window=window, options=options)


def pcap(
    path: Path,
    talk: Talk,
    *,
    big: bool = False,
    nanoseconds: bool = True,
    snap: int = 65535,
    cut: int = 0,
    link: int = 1,
) -> Path:
    """Write a pcap file; `cut` bytes are taken off its end. `link` is the link type that it claims."""
    order = ">" if big else "<"
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for now, frame in talk.frames:
        kept = frame[:snap]
        ticks = now % 10**9 if nanoseconds else now % 10**9 // 1000
        out.append(struct.pack(order + "IIII", 1_700_000_000 + now // 10**9, ticks, len(kept), len(frame)))
        out.append(kept)
    content = b"".join(out)
    path.write_bytes(content[: len(content) - cut])
    return path


def pcapng(path: Path, *interfaces: tuple[int, list[tuple[int, bytes]]], stamped: bool = True) -> Path:
    """Write a pcapng file, one section for each of `interfaces`: a link type, and frames with times [ns]; in
    packet blocks, or in simple ones, which tell no time."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    out = []
    for link, frames in interfaces:
        out.append(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        out.append(block(1, struct.pack("<HHIHHB", link, 0, 0, 9, 1, 9) + bytes(3)))
        out.append(block(0x0BAD, b"a block that nobody knows"))
        for now, frame in frames:
            head = struct.pack("<IIIII", 0, now >> 32, now & 0xFFFFFFFF, len(frame), len(frame))
            out.append(block(6, head + frame) if stamped else block(3, struct.pack("<I", len(frame)) + frame))
    path.write_bytes(b"".join(out))
    return path


def at_points(
    path: Path, *points: list[tuple[int, bytes]], link: int = 1, ticks_per_s: tuple[int, ...] = ()
) -> Path:
    """Write a pcapng file with an interface for each of `points`, in the order of their stamps [ns]. Clocks
    have `ticks_per_s`, a power of ten each."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    clocks = ticks_per_s or (10**9,) * len(points)
    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for place, clock in enumerate(clocks):
        name = f"point-{place}".encode()
        options = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4)
        options += struct.pack("<HHB", 9, 1, len(str(clock)) - 1) + bytes(3)
        out.append(block(1, struct.pack("<HHI", link, 0, 0) + options))
    stamped = [(now, place, frame) for place, frames in enumerate(points) for now, frame in frames]
    for now, place, frame in sorted(stamped, key=lambda each: each[0]):
        ticks = (now + 10**12) * clocks[place] // 10**9
        head = struct.pack("<IIIII", place, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        out.append(block(6, head + frame))
    path.write_bytes(b"".join(out))
    return path


def is_forward(frame: bytes) -> bool:
    """Whether it goes from the client to the server."""
    return struct.pack(">HH", 40000, 80) in frame


def beyond(
    frames: list[tuple[int, bytes]],
    way_ns: int,
    *,
    clock_ns: int = 0,
    routers: int = 0,
    vlan: bytes | None = None,
) -> list[tuple[int, bytes]]:
    """What a capture sees of the same packets, `way_ns` nearer to the server, by a clock that is `clock_ns`
    ahead; with `routers` between, and on another `vlan` than the one that is there."""
    seen = []
    for now, frame in frames:
        there = bytearray(frame)
        at = 12 if frame[12:14] != b"\x81\x00" else 16
        there[at + 2 + (8 if frame[at : at + 2] == b"\x08\x00" else 7)] += (
            -routers if is_forward(frame) else routers
        )
        if vlan is not None:
            there[12:at] = vlan
        seen.append((now + (way_ns if is_forward(frame) else -way_ns) + clock_ns, bytes(there)))
    return seen


def steady(segments: int = 400, *, gap_ns: int = 1_000_000, round_trip_ns: int = 10_000_000) -> Talk:
    """A sender that is never stopped: a segment each `gap_ns`, each acknowledged a round trip later."""
    return paced(segments, gap_ns, round_trip_ns, Talk())


def paced(
    segments: int, gap_ns: int, round_trip_ns: int, talk: Talk, *, lost: frozenset[int] = frozenset()
) -> Talk:
    """The same with losses: a lost segment is sent again two round trips after it was sent first."""
    talk.shake_hands(round_trip_ns)
    start = talk.now + 1000
    events: list[tuple[int, int, str, int]] = []
    for number in range(segments):
        sent = start + number * gap_ns
        events.append((sent, 0, "data", number))
        if number in lost:
            events.append((sent + 2 * round_trip_ns, 0, "data", number))
    arrived: set[int] = set()
    missing = set(lost)
    for number in range(segments):
        sent = start + number * gap_ns
        back = sent + round_trip_ns + (2 * round_trip_ns if number in lost else 0)
        events.append((back, 1, "ack", number))
    below = 0
    for at, _, what, number in sorted(events):
        talk.now = at
        if what == "data":
            talk.data(number)
            continue
        arrived.add(number)
        missing.discard(number)
        while below in arrived:
            below += 1
        top = max(arrived) + 1
        talk.ack(below, sack=(below + 1, top) if below < top - 1 else None)
    return talk
