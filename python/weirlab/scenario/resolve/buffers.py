"""The part of a spec that says how the buffers of switches are shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab import spec as core
from weirlab.scenario.network.buffers import Buffer, EgressPool, IngressPool, Watchdog
from weirlab.scenario.network.layout import Layout
from weirlab.spec import At, Where

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

_TCP_OVERHEAD_BYTES = 70
"""Headers and time stamps of a full segment in its frame."""
_LONGEST_BYTES = 1518
"""The longest frame where that of the traffic is not known. Source: IEEE 802.3, without envelopes."""


def resolve_buffers(
    scenario: Scenario, layout: Layout, traffic: Sequence[core.Traffic]
) -> list[core.SwitchBuffer]:
    """`buffers` of the spec; a switch has the last one that names it. Raises NoMatchError."""
    last = buffered(scenario, layout)
    found: list[core.SwitchBuffer] = []
    longest = longest_frame_of(traffic) or _LONGEST_BYTES
    if any(group.messages is not None for group in traffic):
        longest = max(longest, _LONGEST_BYTES)  # whatever else may be on the link
    for name, buffer in scenario.buffers.items():
        nodes = sorted(node for node, owner in last.items() if owner == name)
        if nodes:
            found.append(_buffer(buffer, nodes, longest, ("buffers", name)))
    return found


def buffered(scenario: Scenario, layout: Layout) -> dict[int, str]:
    """The switches with a buffer, each with the entry that counts. Raises NoMatchError."""
    return {node: name for name, buffer in scenario.buffers.items() for node in layout.node_ids(buffer.at)}


def longest_frame_of(traffic: Sequence[core.Traffic]) -> int | None:
    """The longest frame of resolved traffic [B]; None where none is known."""
    return max(_frames(traffic), default=None)


def _frames(traffic: Sequence[core.Traffic]) -> Iterator[int]:
    for group in traffic:
        for source in group.sources:
            match source.frame_size:
                case core.FrameSizeFixed(fixed=size):
                    yield size
                case core.FrameSizeMix(mix=parts):
                    yield from (size for size, _ in parts)
        if group.tcp is not None:
            yield group.tcp.config.segment_bytes + _TCP_OVERHEAD_BYTES
        if (each := group.messages) is not None:
            telemetry = 0 if each.rdma is None else each.rdma.telemetry_bytes
            if each.config is None:
                yield each.packets.payload_bytes + each.packets.header_bytes + telemetry
            else:
                yield each.config.segment_bytes + _TCP_OVERHEAD_BYTES


def _buffer(buffer: Buffer, nodes: list[int], longest: int, at: Where) -> core.SwitchBuffer:
    how = buffer.flow_control
    lossless = any(pool.lossless is not None for pool in buffer.ingress.values())
    return core.SwitchBuffer(
        nodes=nodes,
        bytes=buffer.size.bytes,
        ingress=[_ingress(pool, (*at, "ingress", name)) for name, pool in buffer.ingress.items()],
        egress=[_egress(pool, (*at, "egress", name)) for name, pool in buffer.egress.items()],
        flow_control=None
        if not lossless
        else core.FlowControl(
            stops=how.stops,
            frame_bytes=how.frame_size.bytes,
            delay_ps=how.delay.ps,
            quanta=how.quanta,
            refresh_ps=None if how.refresh is None else how.refresh.ps,
            longest_bytes=longest if how.longest is None else how.longest.bytes,
            origin=At(*at, "flow_control", frame_bytes="frame_size"),
        ),
        watchdog=_watchdog(buffer.watchdog, at),
        origin=At(*at, nodes="at", bytes="size"),
    )


def _watchdog(watchdog: Watchdog | None, at: Where) -> core.Watchdog | None:
    if watchdog is None:
        return None
    return core.Watchdog(
        detection_ps=watchdog.detection.ps,
        restoration_ps=None if watchdog.restoration is None else watchdog.restoration.ps,
        poll_ps=watchdog.poll.ps,
        action=watchdog.action,
        origin=At(*at, "watchdog"),
    )


def _ingress(pool: IngressPool, at: Where) -> core.IngressPool:
    return core.IngressPool(
        classes=list(pool.classes),
        bytes=None if pool.size is None else pool.size.bytes,
        share=_share(pool, at),
        reserved_bytes=pool.reserved.bytes,
        lossless=None
        if pool.lossless is None
        else core.Lossless(
            headroom_bytes=None if pool.lossless.headroom is None else pool.lossless.headroom.bytes,
            xon_offset_bytes=pool.lossless.xon_offset.bytes,
            origin=At(*at, "lossless"),
        ),
        origin=At(*at, bytes="size"),
    )


def _egress(pool: EgressPool, at: Where) -> core.EgressPool:
    return core.EgressPool(
        classes=list(pool.classes),
        bytes=None if pool.size is None else pool.size.bytes,
        share=_share(pool, at),
        reserved_bytes=pool.reserved.bytes,
        origin=At(*at, bytes="size"),
    )


def _share(pool: IngressPool | EgressPool, at: Where) -> core.BufferShare:
    if pool.limit is not None:
        return core.BufferShareStatic(bytes=pool.limit.bytes, origin=At(*at, bytes="limit"))
    return core.BufferShareDynamic(alpha=1.0 if pool.alpha is None else pool.alpha, origin=At(*at))
