"""Captures as hosts show them that leave the cutting of segments to their cards: packets of the wire joined.

What the card does is known (Linux, Documentation/networking/segmentation-offloads.rst): a sender hands over
up to 64 kB of one connection as one packet, and sees it once, before its parts leave one by one; a receiver
sees what its card joined, after the last part.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ETHERNET, _IPV4 = 14, 0x0800
_MOST_BYTES = 65535
_PLAIN = 0x10
"""ACK alone, or with PSH: what is neither is not joined."""


@dataclass
class _Frame:
    interface: int
    at_ns: int
    content: bytearray
    length: int
    """On the wire."""

    @property
    def tcp(self) -> int | None:
        """Where the header of TCP begins, if this is one of IPv4."""
        kind = int.from_bytes(self.content[12:14], "big")
        if kind != _IPV4 or self.content[_ETHERNET + 9] != 6:
            return None
        return _ETHERNET + 4 * (self.content[_ETHERNET] & 15)

    def words(self, tcp: int) -> tuple[int, int, int, int]:
        """Sequence number, acknowledgment, bytes of payload, flags without PSH."""
        seq, ack, offset, flags = struct.unpack_from(">IIBB", self.content, tcp + 4)
        whole = int.from_bytes(self.content[_ETHERNET + 2 : _ETHERNET + 4], "big")
        return seq, ack, whole - (tcp - _ETHERNET) - 4 * (offset >> 4), flags & ~8

    def ends(self, tcp: int) -> bytes:
        return bytes(self.content[_ETHERNET + 12 : _ETHERNET + 20] + self.content[tcp : tcp + 4])

    def back(self, tcp: int) -> bytes:
        ends = self.ends(tcp)
        return ends[4:8] + ends[:4] + ends[10:12] + ends[8:10]

    def grow(self, more: int) -> None:
        """Hold the next `more` bytes of payload, too. Checksums are left to the card, as on a real host."""
        at = _ETHERNET + 2
        whole = int.from_bytes(self.content[at : at + 2], "big") + more
        self.content[at : at + 2] = whole.to_bytes(2, "big")
        self.length += more


def join(source: Path, target: Path, *, within_ns: int, arrived: bool = False) -> Path:
    """Write the capture `source` (pcapng, stamps in ns) with its data joined: successive segments of a
    direction that follow within `within_ns` of the first, stamped as the first; if they `arrived`, as the
    last, and cut where an acknowledgment of the first leaves."""
    head, frames = _read(source)
    kept: list[_Frame] = []
    open_: dict[tuple[int, bytes], tuple[_Frame, int, int, int]] = {}
    for frame in frames:
        tcp = frame.tcp
        if tcp is None:
            kept.append(frame)
            continue
        seq, ack, payload, flags = frame.words(tcp)
        key = (frame.interface, frame.ends(tcp))
        if arrived:
            open_ = {each: first for each, first in open_.items() if each[1] != frame.back(tcp)}
        if not payload or flags != _PLAIN:
            if payload:
                open_.pop(key, None)
            kept.append(frame)
            continue
        first, end, began, acked = open_.get(key, (frame, -1, 0, -1))
        whole = int.from_bytes(first.content[_ETHERNET + 2 : _ETHERNET + 4], "big")
        follows = seq == end and ack == acked and frame.at_ns - began <= within_ns
        if follows and whole + payload <= _MOST_BYTES:
            first.grow(payload)
            first.at_ns = frame.at_ns if arrived else first.at_ns
            open_[key] = (first, (seq + payload) % 2**32, began, acked)
            continue
        kept.append(frame)
        open_[key] = (frame, (seq + payload) % 2**32, frame.at_ns, ack)
    kept.sort(key=lambda each: each.at_ns)
    target.write_bytes(head + b"".join(_block(each) for each in kept))
    return target


def _read(source: Path) -> tuple[bytes, list[_Frame]]:
    """What stands before the packets, and the packets."""
    content, place, head, frames = source.read_bytes(), 0, bytearray(), []
    while place < len(content):
        kind, length = struct.unpack_from("<II", content, place)
        if length < 12 or (not place and kind != _SECTION):
            raise ValueError(f"{source}: no pcapng of this machine's byte order at byte {place}")
        if kind in (_SECTION, _INTERFACE):
            head += content[place : place + length]
        elif kind == _PACKET:
            interface, high, low, kept, whole = struct.unpack_from("<IIIII", content, place + 8)
            start = place + 28
            frames.append(
                _Frame(interface, high << 32 | low, bytearray(content[start : start + kept]), whole)
            )
        place += length
    return bytes(head), frames


def _block(frame: _Frame) -> bytes:
    padded = bytes(frame.content) + bytes(-len(frame.content) % 4)
    length = 32 + len(padded)
    words = (_PACKET, length, frame.interface, frame.at_ns >> 32, frame.at_ns & 0xFFFFFFFF)
    return struct.pack("<7I", *words, len(frame.content), frame.length) + padded + struct.pack("<I", length)
