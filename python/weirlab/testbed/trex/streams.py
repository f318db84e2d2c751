"""What a port sends in a trial: frames, their sizes and rates, as the stream objects of a TRex server.

Source of the stream objects: doc/trex_rpc_server_spec.asciidoc of trex-core, "Add Stream".
"""

from __future__ import annotations

import base64
import ipaddress
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from weirlab.errors import InputError

FCS_BYTES = 4
WIRE_OVERHEAD_BYTES = 20
"""Preamble, start delimiter and gap, beyond the frame with its FCS."""
SMALLEST_FRAME_BYTES = 64
LARGEST_FRAME_BYTES = 9216
_HEADERS_BYTES = 14 + 20 + 8


@dataclass(frozen=True)
class FrameMix:
    """Frame sizes and how often each is sent relative to the others."""

    weights: Mapping[int, float]
    """By L2 size with FCS [bytes]."""

    def __post_init__(self) -> None:
        if not self.weights:
            raise InputError("a mix of frames needs at least one size")
        for size, weight in self.weights.items():
            if not SMALLEST_FRAME_BYTES <= size <= LARGEST_FRAME_BYTES:
                raise InputError(
                    f"TRex sends frames of {SMALLEST_FRAME_BYTES} to {LARGEST_FRAME_BYTES} B (got {size} B)"
                )
            if not (math.isfinite(weight) and weight > 0.0):
                raise InputError(f"the weight of {size} B frames must be above 0 (got {weight:g})")

    @property
    def shares(self) -> Mapping[int, float]:
        """The share of the frames by size; the shares sum to 1."""
        total = math.fsum(self.weights.values())
        return {size: weight / total for size, weight in self.weights.items()}

    @property
    def mean_bytes(self) -> float:
        """Mean frame size, weighted by frames."""
        return math.fsum(size * share for size, share in self.shares.items())


@dataclass(frozen=True)
class Lane:
    """One direction of a trial: the port that sends and the port that should receive."""

    sender: int
    receiver: int
    source_ip: str
    destination_ip: str

    @property
    def name(self) -> str:
        """Such as ``0_1``."""
        return f"{self.sender}_{self.receiver}"


@dataclass(frozen=True)
class Ramp:
    """How a load is approached: steps that grow by the same factor from 1 % of the load."""

    duration_s: float
    steps: int = 10

    _FIRST = 0.01

    def shares(self) -> list[float]:
        """The share of the load in each step; the load itself is not among them."""
        return [self._FIRST ** (1.0 - step / self.steps) for step in range(self.steps)]

    def frames(self, rate_fps: float) -> list[tuple[float, int]]:
        """Rate [frames/s] and number of frames of each step on the way to ``rate_fps``."""
        step_s = self.duration_s / self.steps
        return [(rate_fps * share, max(1, round(rate_fps * share * step_s))) for share in self.shares()]


@dataclass(frozen=True)
class Traffic:
    """The streams of one lane, as a program: an optional ramp, then the load until the port is stopped."""

    lane: Lane
    mix: FrameMix
    rate_fps: float
    flows: int = 1
    """Number of source addresses, counted up from that of the lane."""
    ramp: Ramp | None = None
    group: int | None = None
    """Packet group of the load; None: its frames are not told from others."""
    ramp_group: int | None = None
    latency_fps: float = 0.0
    """Part of the rate that is sent as frames that measure the delay."""
    latency_group: int | None = None

    def ramp_streams(self) -> list[dict[str, object]]:
        """The ramp alone: it ends by itself."""
        return self._program(load=False)

    def streams(self) -> list[dict[str, object]]:
        """The ramp, if there is one, and then the load, with the frames that measure the delay."""
        streams = self._program(load=True)
        if self.latency_fps > 0.0:
            frame = self._frame(SMALLEST_FRAME_BYTES if len(self.mix.weights) > 1 else min(self.mix.weights))
            statistics = _statistics("latency", self.latency_group)
            mode = _mode("continuous", self.latency_fps)
            streams.append(_stream(frame, mode, statistics, wait_us=self.ramp_s * 1e6))
        return streams

    @property
    def groups(self) -> list[int]:
        """Packet groups of the load, without those of its ramp."""
        return [group for group in (self.group, self.latency_group) if group is not None]

    @property
    def ramp_s(self) -> float:
        """How long the ramp takes, with its steps rounded to whole frames: the longest over all sizes."""
        return max((_duration_s(self._steps(share)) for share in self.mix.shares.values()), default=0.0)

    def _program(self, *, load: bool) -> list[dict[str, object]]:
        """One chain of streams per frame size: the steps of the ramp, each starting the next, and the
        load."""
        streams: list[dict[str, object]] = []
        for size, share in self.mix.shares.items():
            frame = self._frame(size)
            steps = self._steps(share)
            for place, (rate_fps, frames) in enumerate(steps):
                is_last = place == len(steps) - 1 and not load
                streams.append(
                    _stream(
                        frame,
                        _mode("single_burst", rate_fps, total_pkts=frames),
                        _statistics("stats", self.ramp_group),
                        starts=place == 0,
                        next_stream=-1 if is_last else len(streams) + 2,
                        vm=self._addresses(),
                    )
                )
            if load:
                rate_fps = (self.rate_fps - self.latency_fps) * share
                mode = _mode("continuous", rate_fps)
                group = _statistics("stats", self.group)
                streams.append(_stream(frame, mode, group, starts=not steps, vm=self._addresses()))
        return streams

    def _steps(self, share: float) -> list[tuple[float, int]]:
        return [] if self.ramp is None else self.ramp.frames(self.rate_fps * share)

    def _frame(self, size_bytes: int) -> bytes:
        return udp_frame(size_bytes, self.lane.source_ip, self.lane.destination_ip)

    def _addresses(self) -> list[dict[str, object]]:
        """Instructions that count the source address up from frame to frame."""
        if self.flows == 1:
            return []
        first = int(ipaddress.IPv4Address(self.lane.source_ip))
        last = first + self.flows - 1
        counter = {
            "op": "inc",
            "size": 4,
            "step": 1,
            "init_value": first,
            "min_value": first,
            "max_value": last,
        }
        write = {"pkt_offset": _SOURCE_IP_OFFSET, "add_value": 0, "is_big_endian": True}
        return [
            {"type": "flow_var", "name": "source", **counter},
            {"type": "write_flow_var", "name": "source", **write},
            {"type": "fix_checksum_ipv4", "pkt_offset": _IP_OFFSET},
        ]


def udp_frame(size_bytes: int, source_ip: str, destination_ip: str) -> bytes:
    """An Ethernet frame with a UDP datagram in IPv4, without FCS: ``size_bytes`` - 4 bytes. The MAC addresses
    are left to the server, which puts in those of its port."""
    length = size_bytes - FCS_BYTES
    payload = bytes(length - _HEADERS_BYTES)
    udp = struct.pack(">HHHH", 1025, 12, 8 + len(payload), 0) + payload
    source = ipaddress.IPv4Address(source_ip).packed
    destination = ipaddress.IPv4Address(destination_ip).packed
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + source + destination
    header = header[:10] + struct.pack(">H", _checksum(header)) + header[12:]
    return bytes(12) + b"\x08\x00" + header + udp


def _checksum(header: bytes) -> int:
    """Internet checksum. Source: RFC 1071, section 1."""
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _duration_s(steps: list[tuple[float, int]]) -> float:
    return math.fsum(frames / rate_fps for rate_fps, frames in steps)


def _mode(kind: str, rate_fps: float, **more: int) -> dict[str, object]:
    return {"type": kind, "rate": {"type": "pps", "value": rate_fps}, **more}


def _statistics(rule: str, group: int | None) -> dict[str, object]:
    if group is None:
        return {"enabled": False}
    return {"enabled": True, "stream_id": group, "rule_type": rule}


def _stream(
    frame: bytes,
    mode: dict[str, object],
    statistics: dict[str, object],
    *,
    starts: bool = True,
    next_stream: int = -1,
    wait_us: float = 0.0,
    vm: list[dict[str, object]] | None = None,
) -> dict[str, object]:
    return {
        "enabled": True,
        "self_start": starts,
        "isg": wait_us,
        "next_stream_id": next_stream,
        "action_count": 0,
        "flags": _MAC_ADDRESSES_OF_THE_PORT,
        "mode": mode,
        "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""},
        "vm": {"instructions": vm or []},
        "flow_stats": statistics,
    }


_IP_OFFSET = 14
_SOURCE_IP_OFFSET = 26
_MAC_ADDRESSES_OF_THE_PORT = 0
"""Neither the source nor the destination address is taken from the packet."""
