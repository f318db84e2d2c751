"""The nodes and ports of a network, and the selectors that pick some of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weirlab import _core, spec as core
from weirlab.scenario.file.problems import did_you_mean, listed
from weirlab.scenario.network import (
    FRAMING_BYTES,
    AnyNetwork,
    Dumbbell,
    FatTree,
    Graph,
    Link,
    LinkGroup,
    Path,
    Star,
    Xgft,
    loss_spec,
)
from weirlab.spec import At, Where

FIXED_NODES = ("sender", "receiver")
"""Hosts of a testbed that has its own network."""

MAX_NODES = 1 << 20
"""Most nodes, and most links of a group; as many as the simulator takes."""

_RANGE = re.compile(r"\[(\d+)-(\d+)\]")

Fault = tuple[Where, str]
"""Where in the scenario, and what is wrong."""


class NoMatchError(LookupError):
    """A selector matches nothing."""


@dataclass(frozen=True)
class Port:
    """The transmitter of one end of a link."""

    name: str
    source: str
    target: str
    rate_bps: int
    framing_bytes: int

    def wire_ps(self, size_bytes: int) -> int:
        """Time for which a frame occupies the link, rounded up to 1 ps as the engine does."""
        return -(-(size_bytes + self.framing_bytes) * 8 * 10**12 // self.rate_bps)


@dataclass(frozen=True)
class Layout:
    """Nodes and ports; ids are places."""

    nodes: tuple[str, ...]
    hosts: frozenset[str]
    ports: tuple[Port, ...]

    def node_ids(self, patterns: Sequence[str]) -> list[int]:
        """Ids of the selected nodes, in the order of the patterns. Raises NoMatchError."""
        found: dict[int, None] = {}
        for pattern in patterns:
            ids = self._nodes_matching(pattern)
            if not ids:
                raise NoMatchError(f"no node is called '{pattern}'{self._near(pattern)}")
            found.update(dict.fromkeys(ids))
        return list(found)

    def host_ids(self, patterns: Sequence[str]) -> list[int]:
        """Ids of the selected nodes, which must be hosts. Raises NoMatchError."""
        ids = self.node_ids(patterns)
        switches = [self.nodes[i] for i in ids if self.nodes[i] not in self.hosts]
        if switches:
            raise NoMatchError(f"only hosts send and receive: {listed(switches, 4)} forwards")
        return ids

    def port_ids(self, patterns: Sequence[str]) -> list[int]:
        """Ids of the selected ports, in the order of the patterns. Raises NoMatchError."""
        found: dict[int, None] = {}
        for pattern in patterns:
            ids = self._ports_matching(pattern)
            if not ids:
                raise NoMatchError(f"no port is called '{pattern}'{self._near_port(pattern)}")
            found.update(dict.fromkeys(ids))
        return list(found)

    def host_port(self, node: int) -> Port | None:
        """The port of a host; None when it has none, or several of different rates."""
        ports = [self.ports[i] for i in self.ports_at.get(self.nodes[node], ())]
        kinds = {(port.rate_bps, port.framing_bytes) for port in ports}
        return ports[0] if len(kinds) == 1 else None

    @functools.cached_property
    def ports_at(self) -> Mapping[str, Sequence[int]]:
        """Ids of the ports of each node that has any."""
        found: dict[str, list[int]] = {}
        for i, port in enumerate(self.ports):
            found.setdefault(port.source, []).append(i)
        return found

    def narrowest(self, source: int, target: int) -> Port | None:
        """The slowest port on a way of fewest links, of several such ways the one where it is fastest. None
        where there is no way."""
        best: dict[str, Port | None] = {self.nodes[source]: None}
        seen = set(best)
        while best and self.nodes[target] not in best:
            further: dict[str, Port | None] = {}
            for node, slowest in best.items():
                for i in self.ports_at.get(node, ()):
                    port = self.ports[i]
                    if port.target in seen:
                        continue
                    slower = port if slowest is None or port.rate_bps < slowest.rate_bps else slowest
                    known = further.get(port.target)
                    if known is None or slower.rate_bps > known.rate_bps:
                        further[port.target] = slower
            seen.update(further)
            best = further
        return best.get(self.nodes[target])

    @functools.cached_property
    def port_names(self) -> tuple[str, ...]:
        """The names of all ports."""
        return tuple(port.name for port in self.ports)

    @functools.cached_property
    def _found(self) -> dict[str, list[int]]:
        """Ids by pattern, of nodes and (with an arrow) of ports: the points of a study ask for the same."""
        return {}

    def _nodes_matching(self, pattern: str) -> list[int]:
        ids = self._found.get(pattern)
        if ids is None:
            ids = [i for i, name in enumerate(self.nodes) if self._node_matches(pattern, name)]
            self._found[pattern] = ids
        return ids

    def _ports_matching(self, pattern: str) -> list[int]:
        ids = self._found.get(pattern)
        if ids is None:
            sources, targets = (
                {self.nodes[i] for i in self._nodes_matching(side)} for side in pattern.split("->")
            )
            ids = [
                i for i, port in enumerate(self.ports) if port.source in sources and port.target in targets
            ]
            self._found[pattern] = ids
        return ids

    def _node_matches(self, pattern: str, name: str) -> bool:
        match pattern:
            case "@hosts":
                return name in self.hosts
            case "@switches":
                return name not in self.hosts
            case _:
                return matches(pattern, name)

    def _near(self, pattern: str) -> str:
        if hint := bracket_hint(pattern):
            return hint
        if pattern.startswith("@"):
            return did_you_mean(pattern, ("@hosts", "@switches")) or "; groups: @hosts, @switches"
        return did_you_mean(pattern, self.nodes) or f"; nodes: {listed(self.nodes, 8)}"

    def _near_port(self, pattern: str) -> str:
        for side in pattern.split("->"):
            if not any(self._node_matches(side, name) for name in self.nodes):
                return f": no node is called '{side}'{self._near(side)}"
        return f"; ports: {listed([port.name for port in self.ports], 6)}"


@functools.lru_cache(maxsize=4096)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name fits a pattern of `*`, `?` and number ranges `[0-15]`."""
    ranges: list[tuple[int, int]] = []
    regex = ""
    for part in re.split(r"(\[[^\]]*\]|\*|\?)", pattern):
        if bounds := _RANGE.fullmatch(part):
            ranges.append((int(bounds[1]), int(bounds[2])))
            regex += r"(0|[1-9]\d*)"
        else:
            regex += {"*": ".*", "?": "."}.get(part, re.escape(part))
    compiled = re.compile(regex)

    def fits(name: str) -> bool:
        match = compiled.fullmatch(name)
        return match is not None and all(
            low <= int(number) <= high for number, (low, high) in zip(match.groups(), ranges, strict=True)
        )

    return fits


def matches(pattern: str, name: str) -> bool:
    """Whether `name` fits `pattern`: `*` any text, `?` any character, `[0-15]` any number in the range."""
    return _matcher(pattern)(name)


def bracket_hint(pattern: str) -> str:
    """How ranges are written, where `pattern` has brackets that are none; otherwise nothing."""
    strange = [part for part in re.findall(r"\[[^\]]*\]?", pattern) if not _RANGE.fullmatch(part)]
    return f"; '{strange[0]}' is not a range of numbers: write [0-1], or a list of names" if strange else ""


@dataclass(frozen=True)
class Plan:
    """A network as the spec holds it, and what is wrong with it."""

    spec: core.Network
    faults: list[Fault]


def layout_of(network: core.Network) -> Layout:
    """Nodes and ports of a network. Raises `_core.SpecError` when the network is none."""
    return _layout(network.json())


@functools.lru_cache(maxsize=16)
def _layout(spec_json: str) -> Layout:
    expanded = _core.expand(spec_json)
    nodes = tuple(node["name"] for node in expanded["nodes"])
    hosts = frozenset(node["name"] for node in expanded["nodes"] if node["kind"] == "host")
    ports = tuple(
        Port(port["name"], nodes[port["from"]], nodes[port["to"]], port["rate_bps"], port["framing_bytes"])
        for port in expanded["ports"]
    )
    return Layout(nodes, hosts, ports)


def plan_network(network: AnyNetwork) -> Plan:
    """The spec of `network`."""
    match network:
        case Star():
            spec: core.Network = core.NetworkStar(
                hosts=network.hosts,
                link=_link(network.link, "link"),
                switch=_switch(network),
                origin=At("network"),
            )
        case FatTree():
            spec = core.NetworkFatTree(
                k=network.k,
                link=_link(network.link, "link"),
                switch=_switch(network),
                origin=At("network"),
            )
        case Xgft():
            spec = core.NetworkXgft(
                children=network.children,
                parents=network.parents,
                routing=network.routing,
                link=_link(network.link, "link"),
                switch=_switch(network),
                origin=At("network"),
            )
        case Dumbbell():
            spec = core.NetworkDumbbell(
                pairs=network.pairs,
                access=_link(network.access, "access"),
                bottleneck=_link(network.bottleneck, "bottleneck"),
                switch=_switch(network),
                origin=At("network"),
            )
        case Path():
            nodes = [core.Node(name=end, kind="host", latency_ps=0) for end in network.ends]
            link = core.Link(a=0, b=1, link=_link(network.link, "link"))
            spec = core.NetworkGraph(nodes=nodes, links=[link], origin=At("network"))
        case Graph():
            return _plan_graph(network)
    return Plan(spec, [])


def _switch(network: Star | FatTree | Xgft | Dumbbell) -> core.SwitchSpec:
    return core.SwitchSpec(latency_ps=network.switch.latency.ps, origin=At("network", "switch"))


def _link(link: Link, field: str | None = None) -> core.LinkSpec:
    """A link; of several groups of links it may be that of none."""
    return core.LinkSpec(
        rate_bps=link.rate.bps,
        delay_ps=link.delay.ps,
        framing_bytes=FRAMING_BYTES[link.framing],
        loss=loss_spec(link.loss),
        origin=None if field is None else At("network", field),
    )


def _plan_graph(network: Graph) -> Plan:
    faults: list[Fault] = []
    total = sum(group.count or 1 for group in network.nodes.values())
    if total > MAX_NODES:
        message = f"{total} nodes are more than a network has ({MAX_NODES})"
        return Plan(core.NetworkGraph(nodes=(), links=()), [(("network", "nodes"), message)])
    nodes: list[core.Node] = []
    taken: set[str] = set()
    for name, group in network.nodes.items():
        path = ("network", "nodes", name)
        if group.kind == "host" and group.latency is not None:
            faults.append(((*path, "latency"), "a host has no latency; it belongs to switches"))
        if group.kind == "switch" and group.response is not None:
            faults.append(((*path, "response"), "a switch has no response time; it belongs to hosts"))
        latency = group.latency or network.switch.latency
        latency_ps = latency.ps if group.kind == "switch" else 0
        origin = At(*path)
        for node in [name] if group.count is None else [f"{name}-{i}" for i in range(group.count)]:
            if node in taken:
                faults.append((path, f"two nodes would be called '{node}'"))
            taken.add(node)
            nodes.append(core.Node(name=node, kind=group.kind, latency_ps=latency_ps, origin=origin))
    hosts = frozenset(node.name for node in nodes if node.kind == "host")
    known = Layout(tuple(node.name for node in nodes), hosts, ())
    links: list[core.Link] = []
    for name, joint in network.links.items():
        path = ("network", "links", name)
        link = _group_link(joint, network.link)
        if link is None:
            faults.append((path, "has no rate; write it here, or for all links as 'network.link.rate'"))
            continue
        origin = At(*path)
        links += [
            core.Link(a=a, b=b, link=link, origin=origin) for a, b in _joined(joint, path, known, faults)
        ]
    return Plan(core.NetworkGraph(nodes=nodes, links=links, origin=At("network")), faults)


def _group_link(group: LinkGroup, common: Link | None) -> core.LinkSpec | None:
    own = {
        name: value
        for name in ("rate", "delay", "framing", "loss")
        if (value := getattr(group, name)) is not None
    }
    if common is not None:
        return _link(common.model_copy(update=own))
    return _link(Link(**own)) if "rate" in own else None


def _joined(group: LinkGroup, path: Where, known: Layout, faults: list[Fault]) -> list[tuple[int, int]]:
    """Pairs of node ids that a group of links joins; each pair once, no node with itself."""
    sides = []
    for i, selector in enumerate(group.join):
        try:
            sides.append(known.node_ids(selector))
        except NoMatchError as error:
            faults.append(((*path, "join", i), str(error)))
    if len(sides) < 2:
        return []
    left, right = sides
    if group.pair == "by-index":
        if len(left) != len(right):
            counts = f"{len(left)} and {len(right)}"
            faults.append(((*path, "join"), f"by-index needs as many nodes on both sides (got {counts})"))
            return []
        pairs = list(zip(left, right, strict=True))
    elif len(left) * len(right) > MAX_NODES:
        faults.append(
            ((*path, "join"), f"{len(left)} x {len(right)} links are too many (at most {MAX_NODES})")
        )
        return []
    else:
        pairs = [(a, b) for a in left for b in right if a != b]
    unique: dict[frozenset[int], tuple[int, int]] = {}
    for a, b in pairs:
        unique.setdefault(frozenset((a, b)), (a, b))
    if not unique:
        faults.append(((*path, "join"), "joins a node with itself only"))
    return list(unique.values())
