"""What a shared memory must hold above its watermark so that PAUSE loses nothing, at least.

After the memory has reached XOFF its neighbours go on sending for the delay of the rule, the way of the PAUSE
frame, their response and the way back, at their line rates; and each ends a frame that it has begun:

    need = sum over ports (rate x time + longest frame)

With a share for each input, a share must hold it for its port. It is a lower bound: a PAUSE frame may have to
wait for a frame in front of it, and takes time itself. Source: ZRL benchmark, 'Switch'.
"""

from __future__ import annotations

from dataclasses import dataclass

from weirlab.analysis.headroom import longest_frame
from weirlab.analysis.routes import link_of
from weirlab.scenario import Scenario
from weirlab.scenario.network import shared_memory
from weirlab.scenario.network.layout import layout_of
from weirlab.scenario.resolve import translated
from weirlab.units import Size, Span


@dataclass(frozen=True)
class ShortMemory:
    """A switch whose memory may lose frames in spite of PAUSE."""

    switch: str
    need_bytes: int
    """What comes after the watermark is reached, at least; for one input where each has a share."""
    room_bytes: int
    """What it holds above the watermark."""
    round_trip_ps: int
    """Time until the last neighbour has heard of it and is heard no more."""
    switches: int
    """How many switches lack room."""

    def __str__(self) -> str:
        others = "" if self.switches == 1 else f" (and {self.switches - 1} more)"
        return (
            f"network.switch.memory: {self.switch}{others} holds {Size(self.room_bytes)} above 'xoff', and "
            f"{Size(self.need_bytes)} can come before its neighbours are silent: frames may be lost in "
            f"spite of PAUSE; write 'round_trip: {Span(self.round_trip_ps)}' or more in 'pause'"
        )


def short_memories(scenario: Scenario) -> list[ShortMemory]:
    """The memory of the switches of a scenario, where it lacks room above its watermark; at most one entry,
    with the switch that lacks most. Raises ScenarioError where the scenario is no network."""
    memory = shared_memory(scenario.network)
    longest = longest_frame(scenario)
    if memory is None or memory.pause is None or longest is None:
        return []
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    ids = {name: i for i, name in enumerate(layout.nodes)}
    responses = {node: response.pause_ps for response in spec.control.responses for node in response.nodes}
    short = []
    for entry in spec.switching.memories:
        pause = entry.pause
        if pause is None:
            continue
        for node in entry.nodes:
            ports = layout.ports_at.get(layout.nodes[node], ())
            times = [
                pause.delay_ps
                + 2 * link_of(spec.network, layout, port).delay_ps
                + responses.get(ids[layout.ports[port].target], 0)
                for port in ports
            ]
            needs = [
                layout.ports[port].rate_bps * time // (8 * 10**12) + longest
                for port, time in zip(ports, times, strict=True)
            ]
            need, room = sum(needs), entry.bytes - pause.xoff_bytes
            if pause.scope == "input":
                need, room = max(needs), entry.bytes // len(ports) - pause.xoff_bytes
            if room < need:
                short.append((need - room, layout.nodes[node], need, max(0, room), max(times)))
    if not short:
        return []
    _, name, need, room, time = max(short)
    return [ShortMemory(name, need, room, time, len(short))]
