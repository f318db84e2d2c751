"""The part of a spec that says how switches and adapters buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirlab import spec as core
from weirlab.errors import ScenarioError
from weirlab.scenario.network import shared_memory
from weirlab.scenario.network.layout import Layout, NoMatchError
from weirlab.scenario.network.selecting import EntryFault
from weirlab.scenario.network.switching import Adapter, MemoryPause, SharedMemory
from weirlab.spec import At, Where
from weirlab.units import Frames, Size

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def resolve_switching(scenario: Scenario, layout: Layout, services: Sequence[core.Service]) -> core.Switching:
    """`switching` of the spec, with the `services` of hotspots. Raises ScenarioError."""
    memory = shared_memory(scenario.network)
    try:
        memories = [] if memory is None else _memories(memory, layout)
        adapters, egress = _adapters(scenario, layout)
    except EntryFault as fault:
        raise ScenarioError([scenario.problem_at(fault.path, str(fault))]) from None
    return core.Switching(
        memories=memories,
        adapters=adapters,
        services=services,
        egress=egress,
        origin=At(memories=("network", "switch", "memory"), services="hotspots"),
    )


def _memories(memory: SharedMemory, layout: Layout) -> list[core.Memory]:
    """One entry for all switches that have as many ports, of the same rate."""
    at: Where = ("network", "switch", "memory")
    size = _bytes(memory.size, memory, (*at, "size"))
    kinds: dict[tuple[int, int], list[int]] = {}
    for node, name in enumerate(layout.nodes):
        if name not in layout.hosts:
            ports = [layout.ports[i] for i in layout.ports_at.get(name, ())]
            rate = max((port.rate_bps for port in ports), default=0)
            kinds.setdefault((len(ports), rate), []).append(node)
    return [
        core.Memory(
            nodes=nodes,
            bytes=size,
            alpha=memory.alpha,
            pause=_pause(memory, size, ports, rate, (*at, "pause")),
            origin=At(*at),
        )
        for (ports, rate), nodes in kinds.items()
    ]


def _pause(memory: SharedMemory, size: int, ports: int, rate_bps: int, at: Where) -> core.MemoryPause | None:
    pause = memory.pause
    if pause is None:
        return None
    xoff = _xoff(memory, pause, size, ports, rate_bps, at)
    xon = xoff // 2 if pause.xon is None else _bytes(pause.xon, memory, (*at, "xon"))
    if xon >= xoff:
        raise EntryFault(f"is not below 'xoff' ({Size(xoff)})", *at, "xon")
    return core.MemoryPause(
        scope=pause.scope,
        xoff_bytes=xoff,
        xon_bytes=xon,
        delay_ps=pause.delay.ps,
        quanta=pause.quanta,
        refresh_ps=None if pause.refresh is None else pause.refresh.ps,
    )


def _xoff(memory: SharedMemory, pause: MemoryPause, size: int, ports: int, rate_bps: int, at: Where) -> int:
    """Th = M - N (RTT R + Lmax), or an N-th of it for each input.

    DEVIATION: B of the source is read as the line rate; as the mean burst it would make Th negative.
    Source: ZRL benchmark, 'Switch'.
    """
    if pause.xoff is not None:
        return _bytes(pause.xoff, memory, (*at, "xoff"))
    if memory.frame_size is None:
        raise EntryFault("the watermarks need 'frame_size' in addition to 'size'; or write 'xoff'", *at)
    under_way = pause.round_trip.ps * rate_bps // (8 * 10**12)
    level = size - ports * (under_way + memory.frame_size.bytes)
    if pause.scope == "input":
        level //= ports
    if level <= 0:
        message = f"{ports} ports with a round trip of {pause.round_trip} need more than {Size(size)}"
        raise EntryFault(message, *at)
    return level


def _bytes(level: Size | Frames, memory: SharedMemory, at: Where) -> int:
    if isinstance(level, Size):
        return level.bytes
    if memory.frame_size is None:
        raise EntryFault("needs the size of a frame: write 'frame_size', too", *at)
    return level.count * memory.frame_size.bytes


def _adapters(scenario: Scenario, layout: Layout) -> tuple[list[core.Adapter], list[core.Egress]]:
    """Adapters and egress buffers; of several entries for one host the last one counts."""
    chosen: dict[int, tuple[str, Adapter]] = {}
    for name, adapter in scenario.adapters.items():
        try:
            hosts = layout.host_ids(adapter.at)
        except NoMatchError as error:
            raise EntryFault(str(error), "adapters", name, "at") from None
        chosen |= dict.fromkeys(hosts, (name, adapter))
    adapters: list[core.Adapter] = []
    egress: list[core.Egress] = []
    for name, adapter in scenario.adapters.items():
        hosts = sorted(host for host, (owner, _) in chosen.items() if owner == name)
        if hosts and adapter.queues != "fifo":
            adapters.append(core.Adapter(hosts=hosts, kind=adapter.queues, origin=At("adapters", name)))
        if hosts and adapter.egress is not None:
            if adapter.egress.xon >= adapter.egress.xoff:
                below = f"is not below 'xoff' ({adapter.egress.xoff})"
                raise EntryFault(below, "adapters", name, "egress", "xon")
            egress.append(
                core.Egress(
                    hosts=hosts,
                    xoff_bytes=adapter.egress.xoff.bytes,
                    xon_bytes=adapter.egress.xon.bytes,
                    origin=At("adapters", name, "egress"),
                )
            )
    return adapters, egress
