"""Shortest paths of a network: which flows pass a port, and how long frames take."""

from __future__ import annotations

import functools
from collections import deque

from weirlab import spec as core
from weirlab.scenario.network.layout import Layout


class Routes:
    """Distances, shares and times on the shortest paths of a network.

    Where there are several, shares say how many of them lead through a port; which one the simulator takes,
    its router says (`_core.paths`).
    """

    def __init__(self, layout: Layout, network: core.Network) -> None:
        self.layout = layout
        self._network = network
        self._leaving: dict[str, list[int]] = {}
        self._entering: dict[str, list[int]] = {}
        for i, port in enumerate(layout.ports):
            self._leaving.setdefault(port.source, []).append(i)
            self._entering.setdefault(port.target, []).append(i)
        self._ids = {name: node for node, name in enumerate(layout.nodes)}

    def share(self, source: str, target: str, port: int) -> float:
        """The part of all shortest paths from `source` to `target` that leads through a port: 0 to 1."""
        here = self.layout.ports[port]
        to_target, ways = self._towards(target)
        to_port, before = self._towards(here.source)
        if source not in to_target or source not in to_port or here.target not in to_target:
            return 0.0
        if to_port[source] + 1 + to_target[here.target] != to_target[source]:
            return 0.0
        return before[source] * ways[here.target] / ways[source]

    def paths(self, source: str, target: str) -> int:
        """How many shortest paths lead from `source` to `target`; from a host to itself over each of its
        links."""
        if source == target:
            return len(self._leaving.get(source, ()))
        return self._towards(target)[1].get(source, 0)

    def time_ps(self, source: str, target: str, frame_bytes: int) -> int:
        """How long a frame takes on a shortest path from `source` into the queue of `target`, or to its end
        where that is a host: transmission, propagation and latency of each hop, no waiting."""
        distances, _ = self._towards(target)
        total, here = 0, source
        while here != target:
            port = next(
                i
                for i in self._leaving[here]
                if distances.get(self.layout.ports[i].target, -1) == distances[here] - 1
            )
            here = self.layout.ports[port].target
            wire = self.layout.ports[port].wire_ps(frame_bytes)
            total += wire + self._delay_ps(port) + self._latency(here)
        return total

    @functools.cache  # noqa: B019 (routes live as long as one analysis)
    def _towards(self, target: str) -> tuple[dict[str, int], dict[str, int]]:
        """Hops from each node to `target`, and the number of shortest paths. Hosts do not forward."""
        distances, ways = {target: 0}, {target: 1}
        waiting = deque([target])
        while waiting:
            here = waiting.popleft()
            if here in self.layout.hosts and here != target:
                continue
            for port in self._entering.get(here, ()):
                before = self.layout.ports[port].source
                if before not in distances:
                    distances[before] = distances[here] + 1
                    ways[before] = 0
                    waiting.append(before)
                if distances[before] == distances[here] + 1:
                    ways[before] += ways[here]
        return distances, ways

    def _latency(self, node: str) -> int:
        return 0 if node in self.layout.hosts else latency_ps(self._network, self._ids[node])

    def _delay_ps(self, port: int) -> int:
        return link_of(self._network, self.layout, port).delay_ps


def link_of(network: core.Network, layout: Layout, port: int) -> core.LinkSpec:
    """The link of a network at a port; links make two ports each."""
    match network:
        case core.NetworkGraph():
            return network.links[port // 2].link
        case core.NetworkDumbbell():
            ends = {layout.ports[port].source, layout.ports[port].target}
            return network.access if ends & layout.hosts else network.bottleneck
        case _:
            return network.link


def latency_ps(network: core.Network, switch: int) -> int:
    """The time between the end of reception at a switch and the earliest start of transmission."""
    return (network.nodes[switch] if isinstance(network, core.NetworkGraph) else network.switch).latency_ps
