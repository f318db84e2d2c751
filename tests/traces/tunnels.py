"""Tunnels that tests put frames into, in any stack. A packet is an Ethernet type and what follows it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

from traces.captures import Talk

Packet = tuple[int, bytes]
Layer = Callable[[Packet], Packet]
NEAR, FAR = bytes([172, 16, 0, 1]), bytes([172, 16, 0, 2])


def _frame(packet: Packet) -> bytes:
    return bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + struct.pack(">H", packet[0]) + packet[1]


def _in_ip(protocol: int, body: bytes, *, version: int = 4) -> Packet:
    if version == 4:
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0)
        return 0x0800, head + NEAR + FAR + body
    head = struct.pack(">IHBB", 6 << 28, len(body), protocol, 64)
    return 0x86DD, head + bytes(12) + NEAR + bytes(12) + FAR + body


def _in_udp(port: int, body: bytes, *, version: int = 4) -> Packet:
    return _in_ip(17, struct.pack(">HHHH", 50000, port, 8 + len(body), 0) + body, version=version)


def vlan(packet: Packet) -> Packet:
    return 0x8100, struct.pack(">HH", 42, packet[0]) + packet[1]


def service_vlan(packet: Packet) -> Packet:
    return 0x88A8, struct.pack(">HH", 7, packet[0]) + packet[1]


def _labels(*labels: int) -> bytes:
    last = len(labels) - 1
    return b"".join(
        struct.pack(">I", label << 12 | (place == last) << 8 | 64) for place, label in enumerate(labels)
    )


def mpls(packet: Packet) -> Packet:
    return 0x8847, _labels(1000, 2000) + packet[1]


def mpls_pseudowire(packet: Packet) -> Packet:
    return 0x8847, _labels(3000) + bytes(4) + _frame(packet)


def mpls_pseudowire_without_control_word(packet: Packet) -> Packet:
    return 0x8847, _labels(3001) + _frame(packet)


def pppoe(packet: Packet) -> Packet:
    protocol = {0x0800: 0x0021, 0x86DD: 0x0057}[packet[0]]
    body = struct.pack(">H", protocol) + packet[1]
    return 0x8864, struct.pack(">BBHH", 0x11, 0, 77, len(body)) + body


def _gre(
    kind: int, body: bytes, *, checksum: bool = False, key: int | None = None, seq: int | None = None
) -> bytes:
    flags = checksum * 0x8000 | (key is not None) * 0x2000 | (seq is not None) * 0x1000
    head = struct.pack(">HH", flags, kind) + bytes(4) * checksum
    for number in (key, seq):
        head += b"" if number is None else struct.pack(">I", number)
    return head + body


def gre(packet: Packet) -> Packet:
    return _in_ip(47, _gre(packet[0], packet[1]))


def gre_with_all_fields(packet: Packet) -> Packet:
    return _in_ip(47, _gre(packet[0], packet[1], checksum=True, key=99, seq=5))


def gre_over_ipv6(packet: Packet) -> Packet:
    return _in_ip(47, _gre(packet[0], packet[1], key=1), version=6)


def nvgre(packet: Packet) -> Packet:
    return _in_ip(47, _gre(0x6558, _frame(packet), key=0x123456 << 8 | 9))


def vxlan(packet: Packet) -> Packet:
    return _in_udp(4789, struct.pack(">II", 0x0800_0000, 5001 << 8) + _frame(packet))


def vxlan_over_ipv6(packet: Packet) -> Packet:
    return _in_udp(4789, struct.pack(">II", 0x0800_0000, 5001 << 8) + _frame(packet), version=6)


def geneve(packet: Packet) -> Packet:
    options = struct.pack(">HBB", 0x0102, 3, 1) + bytes(4)
    head = struct.pack(">BBHI", len(options) // 4, 0, 0x6558, 600 << 8)
    return _in_udp(6081, head + options + _frame(packet))


def ip_in_ip(packet: Packet) -> Packet:
    return _in_ip({0x0800: 4, 0x86DD: 41}[packet[0]], packet[1])


LAYERS: Sequence[Layer] = (
    vlan,
    service_vlan,
    mpls,
    mpls_pseudowire,
    mpls_pseudowire_without_control_word,
    pppoe,
    gre,
    gre_with_all_fields,
    gre_over_ipv6,
    nvgre,
    vxlan,
    vxlan_over_ipv6,
    geneve,
    ip_in_ip,
)
NEED_IP = (mpls, pppoe, ip_in_ip)
"""They carry IP and nothing else."""
LABELLED = (mpls, mpls_pseudowire, mpls_pseudowire_without_control_word)
PLAIN_GRE = (gre, gre_with_all_fields, gre_over_ipv6)
IN_IP = (*PLAIN_GRE, nvgre, vxlan, vxlan_over_ipv6, geneve, ip_in_ip)
"""Those whose outside is an IP packet."""


def within(talk: Talk, *layers: Layer) -> Talk:
    """The same talk in tunnels, the innermost first."""
    frames = []
    for now, frame in talk.frames:
        packet = (int.from_bytes(frame[12:14], "big"), frame[14:])
        for layer in layers:
            packet = layer(packet)
        frames.append((now, _frame(packet)))
    return replace(talk, frames=frames)
