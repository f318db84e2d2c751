"""A second packet-level simulator, as naive as can be: one heap, one tuple per frame and hop.

It exists to be compared with: it can be checked by reading. It knows links of 10 Gbit/s, drop-tail queues,
fixed routes, frames of one size, and the SplitMix64 sources of the benchmark workloads.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_MASK = (1 << 64) - 1
_PS_PER_BYTE = 800
"""Transmission time at 10 Gbit/s."""
_LINK_DELAY_PS = 500_000
_SWITCH_LIMIT_BYTES = 150_000
_FIRST_SEED = 1000

Ties = Literal["service first", "arrival first"]


@dataclass(frozen=True)
class Network:
    """Hosts and the ports that their frames pass. A route is a list of ports, the host's own port first."""

    hosts: int
    limits: list[float]
    """What may wait at each port, in bytes."""
    routes: dict[tuple[int, int], list[int]]


@dataclass(frozen=True)
class Workload:
    """A network, its frames, and what its sources draw."""

    network: Network
    frame_bytes: int
    duration_ps: int
    departures: dict[int, Iterator[tuple[int, int]]]
    """For each sending host: (time [ps], destination), for ever."""


@dataclass
class Counts:
    """What a run gave, in frames; by (source host, destination host) and in sum."""

    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    delivered: Counter[tuple[int, int]] = field(default_factory=Counter)
    dropped: Counter[tuple[int, int]] = field(default_factory=Counter)
    packet_hops: int = 0

    @property
    def totals(self) -> dict[str, int]:
        """As the benchmark programs print them."""
        return {
            "generated": self.sent.total(),
            "delivered": self.delivered.total(),
            "dropped": self.dropped.total(),
            "packet_hops": self.packet_hops,
        }


def splitmix64(state: int) -> Iterator[int]:
    """SplitMix64: 64-bit words for ever.

    Source: Steele 2014
    """
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


def simulate(workload: Workload, *, ties: Ties = "service first") -> Counts:
    """Run a workload.

    ``ties`` says what happens first when a frame arrives at the very picosecond at which a port ends a
    transmission: the end of service, as in Weirlab, or the arrival, as in ns-3 on these workloads.
    """
    network, size, end = workload.network, workload.frame_bytes, workload.duration_ps
    tx = size * _PS_PER_BYTE
    hop_ps = tx + _LINK_DELAY_PS
    later = 1 if ties == "arrival first" else 0
    free_at = [0] * len(network.limits)
    starts: list[deque[int]] = [deque() for _ in network.limits]
    counts = Counts()

    # (time, port that the frame comes over; -1 - host for a departure, hop, source host, destination host)
    heap: list[tuple[int, int, int, int, int]] = []
    for host, departures in workload.departures.items():
        time, to = next(departures)
        heapq.heappush(heap, (time, -1 - host, -1, host, to))
    while heap and heap[0][0] < end:
        now, over, hop, host, to = heapq.heappop(heap)
        route = network.routes[host, to]
        if hop < 0:
            counts.sent[host, to] += 1
            following = next(workload.departures[host])
            heapq.heappush(heap, (following[0], over, -1, host, following[1]))
        else:
            counts.packet_hops += 1
        if hop + 1 == len(route):
            counts.delivered[host, to] += 1
            continue
        port = route[hop + 1]
        waiting = starts[port]
        while waiting and waiting[0] < now + 1 - later:
            waiting.popleft()
        busy = free_at[port] + later > now
        if busy and (len(waiting) + 1) * size > network.limits[port]:
            counts.dropped[host, to] += 1
            continue
        start = max(now, free_at[port])
        if busy:
            waiting.append(start)
        free_at[port] = start + tx
        heapq.heappush(heap, (start + hop_ps, port, hop + 1, host, to))
    return counts


def incast(*, duration_ps: int = 100_000_000_000) -> Workload:
    """W1: four hosts send to the fifth over one switch; Poisson, 49 % of the line rate each."""
    return Workload(
        network=_star(5),
        frame_bytes=1500,
        duration_ps=duration_ps,
        departures={host: _poisson(host, 4, frame_bytes=1500, load=0.49) for host in range(4)},
    )


def fat_tree(k: int, *, duration_ps: int = 2_000_000_000) -> Workload:
    """W3: a fat tree of ``k``-port switches; host i sends to host i + n/2; Poisson, 80 % of the line rate."""
    half = k // 2
    hosts = k * half * half
    links = (
        hosts  # of each of the three levels; ports up come first, in the order of the links, then ports down
    )
    up = [range(level * 2 * links, level * 2 * links + links) for level in range(3)]
    down = [range(level * 2 * links + links, (level + 1) * 2 * links) for level in range(3)]
    routes = {}
    for source in range(hosts):
        to = (source + hosts // 2) % hosts
        word = next(splitmix64(to))
        a, q = word % half, (word >> 16) % half
        edge, to_edge = source // half, to // half
        routes[source, to] = [
            up[0][source],
            up[1][edge * half + a],
            up[2][(edge // half * half + a) * half + q],
            down[2][(to_edge // half * half + a) * half + q],
            down[1][to_edge * half + a],
            down[0][to],
        ]
    limits = [math.inf] * links + [_SWITCH_LIMIT_BYTES] * (5 * links)
    return Workload(
        network=Network(hosts, limits, routes),
        frame_bytes=1500,
        duration_ps=duration_ps,
        departures={
            i: _poisson(i, (i + hosts // 2) % hosts, frame_bytes=1500, load=0.8) for i in range(hosts)
        },
    )


def slotted_switch(*, duration_ps: int = 2_000_000_000) -> Workload:
    """W4: 32 hosts on an output-queued switch; 64 B frames, Bernoulli with 85 %, any destination."""
    return Workload(
        network=_star(32),
        frame_bytes=64,
        duration_ps=duration_ps,
        departures={host: _bernoulli(host, 32, frame_bytes=64, load=0.85) for host in range(32)},
    )


def _star(hosts: int) -> Network:
    limits = [math.inf] * hosts + [_SWITCH_LIMIT_BYTES] * hosts
    return Network(hosts, limits, {(a, b): [a, hosts + b] for a in range(hosts) for b in range(hosts)})


def _unit(word: int) -> float:
    return ((word >> 11) + 0.5) / 2.0**53


def _poisson(host: int, to: int, *, frame_bytes: int, load: float) -> Iterator[tuple[int, int]]:
    mean_gap_ps = frame_bytes * _PS_PER_BYTE / load
    time = 0
    for word in splitmix64(_FIRST_SEED + host):
        time += int(-math.log(_unit(word)) * mean_gap_ps)
        yield time, to


def _bernoulli(host: int, hosts: int, *, frame_bytes: int, load: float) -> Iterator[tuple[int, int]]:
    words = splitmix64(_FIRST_SEED + host)
    slot_ps = frame_bytes * _PS_PER_BYTE
    time = 0
    for word in words:
        time += slot_ps * (1 + math.floor(math.log(_unit(word)) / math.log(1.0 - load)))
        yield time, next(words) % hosts
