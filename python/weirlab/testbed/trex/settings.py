"""What a user says about a TRex server, and what each direction of a trial then sends."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from weirlab.errors import InputError
from weirlab.scenario.traffic import Departing
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.trex.streams import FrameMix, Lane, Ramp, Traffic

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.scenario.testbeds import Trex


Count = Literal["ports", "groups"]
RPC_PORT = 4501
"""Where a TRex server listens. Source: TRex RPC, "Transport Layer"."""

_LOAD_GROUP, _RAMP_GROUP, _LATENCY_GROUP = 1000, 2000, 3000
"""Packet group of the first lane; the next lanes count up."""


@dataclass(frozen=True, kw_only=True)
class TrexSettings:
    """Which server, which ports, and how its trials are made."""

    server: str
    """Name or address of the machine that runs TRex."""
    rpc_port: int = RPC_PORT
    ports: Sequence[int] = (0, 1)
    """Pairs of ports: the first of each pair is on the side of the sender, the second on that of the
    receiver. Several pairs share the load evenly."""
    force: bool = False
    """Whether to take the ports from whoever has them."""
    timeout_s: float = 3.0
    """How long to wait for an answer of the server."""
    retries: int = 2
    """How often a request is sent again that was not answered and does no harm twice."""
    settle_s: float = 0.1
    """Time within which a frame that is not lost has arrived and was counted. Younger frames never count as
    lost while traffic runs, and no counter is believed sooner after it has stopped."""
    stable_s: float = 0.25
    """How long the counters must then stand still."""
    ramp_up_s: float = 0.0
    """How long the load grows before the trial begins. 0: it begins at full load."""
    count: Count = "ports"
    """What is counted: everything that the ports see, or the frames of packet groups alone."""
    stray_frames: int = 10
    """How many frames more than were sent to it a port may count in one trial: those that others send, such
    as LLDP. More are a fault."""
    latency_fps: float = 0.0
    """Frames/s in each direction that measure the delay; part of the load. 0: the delay is not measured."""
    mix: FrameMix | None = None
    """Frame sizes instead of the one that a trial asks for, which must then be their rounded mean."""
    flows: int = 1
    """Source addresses in each direction."""
    addresses: tuple[str, str] = ("16.0.0.1", "48.0.0.1")
    """IPv4 addresses of the frames on the side of the sender and on that of the receiver. Each further pair
    of ports has those of the next /16."""
    cores: Sequence[int] | None = None
    """Numbers of the server's sending cores that each port uses. None: all of its own."""

    def __post_init__(self) -> None:
        pairs = list(self.ports)
        if not pairs or len(pairs) % 2 or len(set(pairs)) < len(pairs) or min(pairs) < 0:
            raise InputError(f"trex: ports are different numbers in pairs, such as [0, 1] (got {pairs})")
        for name in ("timeout_s", "stable_s"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise InputError(f"trex: {name} must be above 0 s (got {getattr(self, name):g})")
        for name in ("settle_s", "retries", "ramp_up_s", "stray_frames", "latency_fps"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InputError(f"trex: {name} must be 0 or more (got {getattr(self, name):g})")
        if self.count not in get_args(Count):
            raise InputError(f"trex: count is 'ports' or 'groups' (got {self.count!r})")
        if self.flows < 1:
            raise InputError(f"trex: flows must be 1 or more (got {self.flows})")
        if self.cores is not None and (not self.cores or not all(0 <= core < 64 for core in self.cores)):
            raise InputError(f"trex: cores are numbers of 0 to 63 (got {list(self.cores)})")
        for address in self.addresses:
            try:
                ipaddress.IPv4Address(address)
            except ValueError as error:
                raise InputError(f"trex: addresses are IPv4 addresses (got {address!r})") from error


def settings_of(model: Trex, scenario: Scenario, *, settle_s: float) -> TrexSettings:
    """What a scenario says, whose search varies the rate of some traffic."""
    server, _, rpc_port = model.server.partition(":")
    return TrexSettings(
        server=server,
        rpc_port=int(rpc_port or RPC_PORT),
        ports=model.ports,
        force=model.force,
        timeout_s=model.timeout.s,
        retries=model.retries,
        settle_s=settle_s,
        stable_s=model.stable.s,
        ramp_up_s=model.ramp_up.s,
        count=model.count,
        stray_frames=model.stray_frames,
        latency_fps=0.0 if model.latency is None else model.latency.fps,
        flows=model.flows,
        mix=_mix(scenario),
        addresses=model.addresses,
        cores=model.cores,
    )


def _mix(scenario: Scenario) -> FrameMix | None:
    if scenario.search is None:
        return None
    source = scenario.traffic[scenario.search.vary.split(".")[1]].source
    return FrameMix(dict(source.mix)) if isinstance(source, Departing) and source.mix is not None else None


def plan(settings: TrexSettings, spec: TrialSpec) -> list[Traffic]:
    """What each direction of a trial sends. A ramp is part of it where its frames can be told from the
    load's.

    Raises:
        InputError: There are more than two directions, or the mix does not fit the frame size.
    """
    mix = settings.mix or FrameMix({spec.frame_size_bytes: 1.0})
    if round(mix.mean_bytes) != spec.frame_size_bytes:
        raise InputError(
            f"trial {spec.index}: asked for frames of {spec.frame_size_bytes} B, but the testbed sends a "
            f"mix of {mix.mean_bytes:.1f} B on average"
        )
    lanes = _lanes(settings, spec)
    rate_fps = spec.intended_load_fps / len(lanes)
    in_groups = settings.count == "groups"
    latency_fps = settings.latency_fps if rate_fps >= 2.0 * settings.latency_fps else 0.0
    return [
        Traffic(
            lane=lane,
            mix=mix,
            rate_fps=rate_fps,
            flows=settings.flows,
            ramp=Ramp(settings.ramp_up_s) if in_groups and settings.ramp_up_s > 0.0 else None,
            group=_LOAD_GROUP + number if in_groups else None,
            ramp_group=_RAMP_GROUP + number if in_groups else None,
            latency_fps=latency_fps,
            latency_group=_LATENCY_GROUP + number if latency_fps > 0.0 else None,
        )
        for number, lane in enumerate(lanes)
    ]


def core_mask(settings: TrexSettings) -> int | None:
    """The cores as the server takes them: one bit each."""
    return None if settings.cores is None else sum(1 << core for core in set(settings.cores))


def _lanes(settings: TrexSettings, spec: TrialSpec) -> list[Lane]:
    pairs = list(zip(settings.ports[::2], settings.ports[1::2], strict=True))
    if spec.directions > 2:
        raise InputError(
            f"trial {spec.index}: the testbed 'trex' sends one way or both ways (got {spec.directions})"
        )
    lanes = []
    for number, (near, far) in enumerate(pairs):
        here, there = (_shifted(address, number) for address in settings.addresses)
        lanes.append(Lane(near, far, here, there))
        if spec.directions == 2:
            lanes.append(Lane(far, near, there, here))
    return lanes


def _shifted(address: str, pair: int) -> str:
    """The address in the ``pair``-th network of /16 after its own."""
    return str(ipaddress.IPv4Address(address) + (pair << 16))
