"""The ways that the simulator lays for flows where there are several shortest paths.

The simulator's own router is asked: one frame goes from each sender to each receiver through the network
without anything else, and a capture at all ports tells where it passed.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from weirlab import _core
from weirlab.scenario.layout import layout_of

__all__ = ["Pair", "laid_ways"]

Pair = tuple[int, int]
"""Sender and receiver, as ids of nodes."""

_FRAME_BYTES = 64
_LONG_PS = 10**18
"""Until the last frame has come: eleven days, of which only events take time."""
_MOST_FRAMES = 10_000_000
"""What a capture keeps."""
_MOST_PAIRS = 1 << 16
"""Asked at once: bounds the memory."""
_PACKET = 6
"""Source: PCAPNG, Enhanced Packet Block."""
_SENDER, _RECEIVER = 28 + 6 + 2, 28 + 2
"""Where a block has the ids of the nodes: the last four octets of the Ethernet addresses."""


def laid_ways(network: Mapping[str, Any], pairs: Collection[Pair]) -> dict[Pair, frozenset[int]]:
    """Ids of the ports that frames pass, by pair.

    Args: network: As in a resolved spec. pairs: Joined by some way, each.
    """
    return _laid_ways(json.dumps(network), tuple(sorted(pairs)))


@functools.lru_cache(maxsize=16)
def _laid_ways(network_json: str, pairs: Sequence[Pair]) -> dict[Pair, frozenset[int]]:
    network = _without_loss(json.loads(network_json))
    layout = layout_of(network)
    ports = list(range(len(layout.ports)))
    # No way passes a node twice, but for that from a host to itself.
    at_once = max(1, min(_MOST_PAIRS, _MOST_FRAMES // (len(layout.nodes) + 1)))
    passed: dict[Pair, set[int]] = {pair: set() for pair in pairs}
    for first in range(0, len(pairs), at_once):
        spec = _spec(network, ports, pairs[first : first + at_once])
        content: Any = _core.simulate(json.dumps(spec), [0], 1)["captures"]["content"][0]
        for pair, port in _seen(content):
            passed[pair].add(port)
    return {pair: frozenset(way) for pair, way in passed.items()}


def _without_loss(part: Any) -> Any:
    """A network, or a part of it, whose links lose nothing."""
    match part:
        case dict():
            return {
                name: {"kind": "none"} if name == "loss" else _without_loss(value)
                for name, value in part.items()
            }
        case list():
            return [_without_loss(value) for value in part]
        case _:
            return part


def _spec(network: Mapping[str, Any], ports: Sequence[int], pairs: Sequence[Pair]) -> dict[str, Any]:
    sources = [
        {
            "from": sender,
            "to": {"node": receiver},
            "start_ps": 0,
            "stop_ps": 1,
            "departures": {"kind": "constant", "gap_ps": 1.0},
            "frame_size": {"fixed": _FRAME_BYTES},
            "stream": {"kind": "named"},
        }
        for sender, receiver in pairs
    ]
    unlimited = {"kind": "drop-tail", "limit": "unlimited", "marking": None}
    series = ("ports", "traffic", "flows", "connections", "probe_streams", "limiters", "queue_levels")
    capture = {"name": "ways", "ports": ports, "from_ps": 0, "to_ps": _LONG_PS, "frames": _MOST_FRAMES}
    return {
        "network": network,
        "queues": [{"ports": ports, "discipline": unlimited}],
        "traffic": [{"name": "ways", "sources": sources, "tcp": None, "probers": None}],
        "control": {"bcn": None, "qcn": None, "dcqcn": None, "pause": [], "responses": []},
        "switching": {"memories": [], "adapters": [], "services": [], "egress": []},
        "run": {"duration_ps": _LONG_PS, "engine": {"kind": "event"}},
        "record": {**{name: [] for name in series}, "delays": False, "captures": [capture]},
    }


def _seen(content: bytes) -> Iterator[tuple[Pair, int]]:
    """The frames of a capture, with the ports. Interfaces are numbered as the ports are."""
    here = 0
    while here < len(content):
        kind, length, port = struct.unpack_from("<III", content, here)
        if kind == _PACKET:
            (sender,) = struct.unpack_from(">I", content, here + _SENDER)
            (receiver,) = struct.unpack_from(">I", content, here + _RECEIVER)
            yield (sender, receiver), port
        here += length
