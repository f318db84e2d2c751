"""Where the nodes and links of a network stand in a picture.

Networks whose links lead from one row to the next (stars, trees, dumbbells) stand in rows by their distance
from the hosts. Where links join nodes of one row that are not neighbours, forces between nodes decide. Of a
large network the hosts of one switch are one node.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from weirlab.heavy import np
from weirlab.scenario.network.layout import Layout

NAMED = 12
"""Most hosts that are drawn with their names, senders to the left."""
FOLDED = 160
"""Of more hosts, those of a switch are one node."""
_MOST_FOLDED = 64
"""Hosts in one node."""
_MOST_FORCED = 400
"""Nodes that forces place; the effort grows with their square."""

Place = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """A host, a switch, or the hosts of a switch together."""

    name: str
    members: tuple[int, ...]
    """Ids of what it stands for."""
    is_host: bool
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several hosts."""
        return len(self.members) > 1


@dataclass(frozen=True)
class Edge:
    """One direction between two nodes, with the ids of its ports."""

    source: int
    target: int
    ports: tuple[int, ...]
    start: Place = (0.0, 0.0)
    end: Place = (0.0, 0.0)


@dataclass(frozen=True)
class Picture:
    """Nodes and edges with their places; the edges of both directions run side by side."""

    width: float
    height: float
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    names: Sequence[tuple[float, float, str, str]]
    """Texts with x, y and anchor."""


def arranged(layout: Layout, senders: Collection[str] = (), width: float = 640) -> Picture:
    """The picture of a network; few hosts stand with their names, `senders` to the left."""
    nodes, edges = _folded(layout)
    flat = sum(len(node.members) for node in nodes if node.is_host) <= NAMED
    rows = _rows(nodes, edges, frozenset(senders), flat)
    level = {name: n for n, row in enumerate(rows) for name in row}
    order = {name: i for row in rows for i, name in enumerate(row)}
    inside = any(
        level[edge.source] == level[edge.target] and abs(order[edge.source] - order[edge.target]) > 1
        for edge in edges
    )
    most = max(map(len, rows))
    if inside and len(nodes) <= _MOST_FORCED:
        height = width * 0.62
        places = _forced(len(nodes), edges, width, height)
        return _drawn(nodes, edges, places, level, (width, height), flat=flat, spread=False)
    if flat:
        height = max(110.0, width * 0.042 * most + 30)
        along, margin = height, 0.17 * width
        gap = (width - 2 * margin) / max(len(rows) - 1, 1)
    else:
        along, margin = width, 30.0
        gap = max(80.0, min(130.0, width / 6))
        height = gap * (len(rows) - 1) + 2 * margin
    places = {}
    for n, row in enumerate(rows):
        for i, node in enumerate(row):
            across = along * (i + 0.5) / len(row)
            places[node] = (margin + gap * n, across) if flat else (across, height - margin - gap * n)
    return _drawn(nodes, edges, places, level, (width, height), flat=flat, spread=True)


def _folded(layout: Layout) -> tuple[list[Node], list[Edge]]:
    """What is drawn: the nodes of the network, or of many hosts those of one switch together."""
    ids = {name: i for i, name in enumerate(layout.nodes)}
    near: dict[int, set[int]] = {i: set() for i in range(len(layout.nodes))}
    for port in layout.ports:
        near[ids[port.source]].add(ids[port.target])
    below: dict[int, list[int]] = {}
    if len(layout.hosts) > FOLDED:
        for i, name in enumerate(layout.nodes):
            if name in layout.hosts and len(near[i]) == 1:
                below.setdefault(next(iter(near[i])), []).append(i)
    groups: dict[int, tuple[int, ...]] = {}
    for hosts in below.values():
        for start in range(0, len(hosts), _MOST_FOLDED):
            group = tuple(hosts[start : start + _MOST_FOLDED])
            groups |= dict.fromkeys(group, group)
    nodes: list[Node] = []
    drawn: dict[int, int] = {}
    for i, name in enumerate(layout.nodes):
        if i in drawn:
            continue
        members = groups.get(i, (i,))
        drawn |= dict.fromkeys(members, len(nodes))
        words = name if len(members) == 1 else f"{name} to {layout.nodes[members[-1]]}"
        nodes.append(Node(words, members, name in layout.hosts))
    ports: dict[tuple[int, int], list[int]] = {}
    for p, port in enumerate(layout.ports):
        ports.setdefault((drawn[ids[port.source]], drawn[ids[port.target]]), []).append(p)
    return nodes, [Edge(a, b, tuple(found)) for (a, b), found in ports.items()]


def _rows(
    nodes: Sequence[Node], edges: Sequence[Edge], senders: frozenset[str], flat: bool
) -> list[list[int]]:
    """Nodes by distance: from the hosts, or (flat) from those that send, all others that are hosts last."""
    hosts = [i for i, node in enumerate(nodes) if node.is_host]
    starts = [i for i in hosts if nodes[i].name in senders] or hosts[:1] if flat else hosts
    near: dict[int, list[int]] = {i: [] for i in range(len(nodes))}
    for edge in edges:
        near[edge.source].append(edge.target)
    level, edge_of = dict.fromkeys(starts, 0), list(starts)
    while edge_of:
        edge_of = [n for n in dict.fromkeys(n for i in edge_of for n in near[i]) if n not in level]
        level |= dict.fromkeys(edge_of, max(level.values()) + 1)
    level = {i: level.get(i, 0) for i in range(len(nodes))}
    if flat:
        last = max(level.values())
        level |= {i: 0 if nodes[i].name in senders or i in starts else last for i in hosts}
    rows = [[i for i in level if level[i] == n] for n in range(max(level.values()) + 1)]
    return [row for row in rows if row]


def _forced(count: int, edges: Sequence[Edge], width: float, height: float) -> dict[int, Place]:
    """Places after Fruchterman and Reingold, "Graph drawing by force-directed placement", 1991: all nodes
    repel each other, links attract. They start on a circle in the order of a walk along the links, so that a
    network has one picture and a ring stays one."""
    angles = np.empty(count)
    angles[_walk(count, edges)] = 2 * np.pi * np.arange(count) / count
    at = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    pairs = np.array([(e.source, e.target) for e in edges if e.source < e.target])
    ideal = 1.6 / math.sqrt(count)
    for step in range(200):
        away = at[:, None, :] - at[None, :, :]
        far = np.maximum((away**2).sum(axis=2), 1e-6)
        move = (away * (ideal**2 / far)[:, :, None]).sum(axis=1)
        span = at[pairs[:, 0]] - at[pairs[:, 1]]
        pull = span * (np.sqrt((span**2).sum(axis=1)) / ideal)[:, None]
        np.add.at(move, pairs[:, 0], -pull)
        np.add.at(move, pairs[:, 1], pull)
        length = np.maximum(np.sqrt((move**2).sum(axis=1)), 1e-9)
        at = at + move / length[:, None] * np.minimum(length, 0.2 * (1 - step / 200))[:, None]
    low, high = at.min(axis=0), at.max(axis=0)
    unit = (at - low) / np.maximum(high - low, 1e-9)
    margin = 40
    return {
        i: (margin + float(x) * (width - 2 * margin), margin + float(y) * (height - 2 * margin))
        for i, (x, y) in enumerate(unit)
    }


def _walk(count: int, edges: Sequence[Edge]) -> list[int]:
    """All nodes, each after one that it has a link with where there is one; those with few links first."""
    near: list[set[int]] = [set() for _ in range(count)]
    for edge in edges:
        near[edge.source].add(edge.target)
        near[edge.target].add(edge.source)
    order: dict[int, None] = {}
    todo = sorted(range(count), key=lambda node: len(near[node]))  # from the last one on
    while todo:
        node = todo.pop()
        if node not in order:
            order[node] = None
            todo += sorted(near[node] - order.keys(), key=lambda each: -len(near[each]))
    return list(order)


def _sides(
    edges: Sequence[Edge], places: Mapping[int, Place], level: Mapping[int, int], cross: int
) -> dict[tuple[int, int], list[tuple[float, int]]]:
    """For each node and side of its row, where its neighbours there stand, and which these are."""
    found: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for edge in edges:
        if edge.source < edge.target:
            for one, other in ((edge.source, edge.target), (edge.target, edge.source)):
                side = (level[other] > level[one]) - (level[other] < level[one])
                if side:
                    found.setdefault((one, side), []).append((places[other][cross], other))
    return found


def _drawn(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    places: Mapping[int, Place],
    level: Mapping[int, int],
    size: tuple[float, float],
    *,
    flat: bool,
    spread: bool,
) -> Picture:
    """Sizes of nodes and ends of edges: a switch is as long as its links need to stand apart (`spread`)."""
    cross = 1 if flat else 0
    room = size[cross]
    crowd: dict[int, int] = {}
    for i in places:
        crowd[level[i]] = crowd.get(level[i], 0) + 1
    ends = _sides(edges, places, level, cross) if spread else {}
    small = max(1.6, min(7.0, room / max(crowd.values()) / 3))
    long, sized = {}, []
    for i, node in enumerate(nodes):
        most = max((len(ends.get((i, side), ())) for side in (-1, 1)), default=0)
        extent = small * 2
        if not node.is_host and spread:
            extent = max(small * 2, min(0.82 * room / crowd[level[i]], (16.0 if flat else 26.0) * (most - 1)))
        long[i] = extent
        thick = min(9.0, max(small * 1.6, 4.0)) if not node.is_host else small * 2
        wide, high = (thick, extent) if flat else (extent, thick)
        sized.append(Node(node.name, node.members, node.is_host, *places[i], wide, high))
    at: dict[tuple[int, int], float] = {}
    for (one, _), others in ends.items():
        inner = 0.0 if nodes[one].is_host else long[one] - 2 * small if len(others) > 1 else 0.0
        for k, (_, other) in enumerate(sorted(others)):
            along = (k + 0.5) / len(others) - 0.5
            at[one, other] = places[one][cross] + along * max(inner, 0.0)
    apart = max(0.5, min(1.8, 160 / max(len(edges), 1) + 0.5))

    def end(one: int, other: int) -> Place:
        x, y = places[one]
        moved = at.get((one, other), places[one][cross])
        if spread and level[one] == level[other]:  # neighbours in a row: from side to side
            moved += math.copysign(long[one] / 2, places[other][cross] - moved)
        return (x, moved) if flat else (moved, y)

    placed = []
    for edge in edges:
        (x1, y1), (x2, y2) = end(edge.source, edge.target), end(edge.target, edge.source)
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        dx, dy = -(y2 - y1) / length * apart, (x2 - x1) / length * apart
        placed.append(Edge(edge.source, edge.target, edge.ports, (x1 + dx, y1 + dy), (x2 + dx, y2 + dy)))
    return Picture(*size, sized, placed, list(_names(sized, level, flat, spread)))


def _names(
    nodes: Sequence[Node], level: Mapping[int, int], flat: bool, spread: bool
) -> Iterator[tuple[float, float, str, str]]:
    """Names where there is room for them."""
    if not flat:
        return
    for i, node in enumerate(nodes):
        if node.is_host and spread:
            side = -1 if level[i] == 0 else 1
            yield (node.x + 14 * side, node.y + 4, "end" if side < 0 else "start", node.name)
        else:
            yield (node.x, node.y - node.height / 2 - 8, "middle", node.name)


def roles(
    picture: Picture, layout: Layout, senders: Collection[str], receivers: Collection[str]
) -> list[str]:
    """What each node is: `switch`, or a host that is a `sender`, a `receiver` only, or `idle`."""
    found = []
    for node in picture.nodes:
        names = {layout.nodes[i] for i in node.members}
        host = "sender" if names & set(senders) else "receiver" if names & set(receivers) else "idle"
        found.append(host if node.is_host else "switch")
    return found


def svg_parts(
    picture: Picture, edge_class: Sequence[str], node_class: Sequence[str], bars: Mapping[int, float]
) -> Iterator[str]:
    """The elements of a picture; colours are those of classes. `bars`: share of its edge that a queue
    fills."""
    for i, edge in enumerate(picture.edges):
        (x1, y1), (x2, y2) = edge.start, edge.end
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        yield f'<line data-e="{i}" class="{edge_class[i]}" {ends}/>'
    for i, share in bars.items():
        (x1, y1), (x2, y2) = picture.edges[i].start, picture.edges[i].end
        yield (
            f'<line class="bar" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x1 + share * (x2 - x1):.1f}" '
            f'y2="{y1 + share * (y2 - y1):.1f}"/>'
        )
    for i, node in enumerate(picture.nodes):
        title = f"<title>{escape(node.name)}</title>"
        kind = node_class[i]
        if node.is_host and not node.is_folded:
            at = f'cx="{node.x:.1f}" cy="{node.y:.1f}" r="{node.width / 2:.1f}"'
            yield f'<circle data-n="{i}" class="{kind}" {at}>{title}</circle>'
        else:
            x, y = node.x - node.width / 2, node.y - node.height / 2
            yield (
                f'<rect data-n="{i}" class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{node.width:.1f}" '
                f'height="{node.height:.1f}" rx="1.5">{title}</rect>'
            )
    for x, y, anchor, words in picture.names:
        yield f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
