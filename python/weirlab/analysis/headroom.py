"""What a queue must hold above XOFF so that PAUSE loses nothing, and what it does hold.

After XOFF is called for, each neighbour goes on sending until the PAUSE frame has reached it and it has
responded:

    time = delay of the rule + longest frame on the way back, of data or a notification (it ends first)
           + PAUSE frame + propagation + response + propagation + latency of the switch

and then ends the frame that it has begun. All neighbours but the one that the queue leads to, at their line
rates, and one frame that took the queue above XOFF:

    need = sum over neighbours (rate x time + longest frame) + longest frame

It is an upper bound: what leaves the queue meanwhile is not taken off, and neighbours that send nothing there
count, too. It is none where notifications share the lane of PAUSE frames, in order of arrival: how many stand
before one has no bound. Queues that no traffic comes to are left out.

Source: IEEE 802.3, annex 31B (that a frame in transmission ends, and responses take time).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weirlab import spec as core
from weirlab.analysis.routes import latency_ps, link_of
from weirlab.scenario import Scenario
from weirlab.scenario.network.layout import Layout, layout_of
from weirlab.scenario.resolve import limit_of, translated
from weirlab.scenario.resolve.buffers import longest_frame_of
from weirlab.scenario.resolve.hotspots import targets_of
from weirlab.spec import origin_of
from weirlab.units import Size


@dataclass(frozen=True)
class Headroom:
    """Queues of one rule of PAUSE that may lose frames."""

    rule: str
    """Name of the rule."""
    port: str
    """The queue that lacks most."""
    need_bytes: int
    """What can come there after XOFF is called for."""
    room_bytes: int
    """What it holds above XOFF."""
    queues: int
    """How many queues of the rule lack room."""
    behind_notifications: bool
    """Whether PAUSE frames wait behind notifications, too, which may take longer than the one counted."""

    def __str__(self) -> str:
        others = "" if self.queues == 1 else f" (and {self.queues - 1} more)"
        room, need = Size(self.room_bytes), Size(-(-self.need_bytes // 100) * 100)
        return (
            f"control.pause.{self.rule}: {self.port}{others} holds {room} above 'xoff', and up to {need} can "
            "come before all its neighbours are silent"
            + (
                " (more where PAUSE frames wait behind several notifications)"
                if self.behind_notifications
                else ""
            )
            + ": frames may be lost in spite of PAUSE"
        )


def short_headrooms(scenario: Scenario) -> list[Headroom]:
    """Rules of PAUSE with queues that do not hold what can come after XOFF; nothing without PAUSE.

    Queues without a limit hold everything. Raises ScenarioError where the scenario is no network."""
    control = scenario.control
    if control is None or not control.pause or scenario.network is None or scenario.run.duration is None:
        return []
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    ids = {name: i for i, name in enumerate(layout.nodes)}
    longest = longest_data(spec)
    notifications = dict(_notifications(spec))
    longest_of_all = max(longest, *notifications.values()) if notifications else longest
    limits = {port: limit_of(rule.discipline) for rule in spec.queues for port in rule.ports}
    used = PortsInUse(spec, layout)
    found = []
    for rule in spec.control.pause:
        short = []
        for p in (p for p, port in enumerate(layout.ports) if ids[port.source] in set(rule.nodes)):
            room = _room(limits.get(p, "unlimited"), longest, rule.xoff_bytes)
            need = _need(spec, layout, ids, p, rule, longest_of_all)
            if room is not None and room < need and p in used:
                short.append((need - room, layout.ports[p].name, need, room))
        if short:
            _, name, need, room = max(short)
            rule_name = str(origin_of(rule, "")[-1])
            found.append(Headroom(rule_name, name, need, room, len(short), "control" in notifications))
    return found


_FEW = 16


class PortsInUse:
    """The ports that data, or acknowledgements, can come to; or `sent`: ids of senders, each with those of
    its receivers."""

    def __init__(
        self,
        spec: core.Spec,
        layout: Layout,
        sent: Iterable[tuple[int, Sequence[int]]] | None = None,
    ) -> None:
        self._layout = layout
        self._sent = list(everything_sent(spec) if sent is None else sent)
        leaving: dict[str, list[int]] = {}
        entering: dict[str, list[int]] = {}
        for p, port in enumerate(layout.ports):
            leaving.setdefault(port.source, []).append(p)
            entering.setdefault(port.target, []).append(p)
        # Ways of hosts with one link begin and end at the switch there: they are alike for all of them.
        self._single = {
            host: (leaving[host][0], entering[host][0])
            for host in layout.hosts
            if len(leaving.get(host, ())) == len(entering.get(host, ())) == 1
        }
        self._gates = [
            layout.ports[self._single[node][0]].target if node in self._single else node
            for node in layout.nodes
        ]
        between = {
            p
            for p, port in enumerate(layout.ports)
            if port.source not in self._single and port.target not in self._single
        }
        self._between = between
        self._leaving, self._entering = (
            {node: [p for p in ports if p in between] for node, ports in each.items()}
            for each in (leaving, entering)
        )

    def __contains__(self, port: int) -> bool:
        return port in self._used

    def receivers(self, port: int) -> set[str]:
        """Who receives what comes to a port."""
        return self._receivers.get(port, set())

    @functools.cached_property
    def _used(self) -> set[int]:
        names, used, receiving = self._layout.nodes, set[int](), set[int]()
        for sender, receivers in self._sent:
            others = set(receivers) - {sender}
            receiving |= others
            used.update(self._single.get(names[sender], ())[:1] if others else ())
        for receiver in receiving:
            used.update(self._single.get(names[receiver], ())[1:])
        # In large networks a few of the receivers of each sender often reach all ports.
        for most in (_FEW, None):
            for gate, senders in self._starts(most).items():
                if self._between <= used:
                    return used
                used |= self._ways(senders, gate)
        return used

    def _starts(self, most: int | None) -> dict[str, set[str]]:
        """Behind which nodes the senders are, by the node that their receivers are behind; of each sender all
        receivers, or about `most`."""
        starts: dict[str, set[str]] = {}
        for place, (sender, receivers) in enumerate(self._sent):
            stride = 1 if most is None else max(1, len(receivers) // most)
            for gate in set(map(self._gates.__getitem__, receivers[place % stride :: stride])):
                starts.setdefault(gate, set()).add(self._gates[sender])
        return starts

    @functools.cached_property
    def _receivers(self) -> dict[int, set[str]]:
        names, found = self._layout.nodes, dict[int, set[str]]()
        senders: dict[int, set[int]] = {}
        for sender, receivers in self._sent:
            for receiver in receivers:
                if receiver != sender:
                    senders.setdefault(receiver, set()).add(sender)
        for receiver, mine in senders.items():
            ports = self._ways({self._gates[sender] for sender in mine}, self._gates[receiver])
            ports.update(*(self._single.get(names[sender], ())[:1] for sender in mine))
            ports.update(self._single.get(names[receiver], ())[1:])
            for port in ports:
                found.setdefault(port, set()).add(names[receiver])
        return found

    def _ways(self, senders: Iterable[str], receiver: str) -> set[int]:
        """The ports on shortest paths."""
        distances, ports = self._distances(receiver), set[int]()
        waiting = [sender for sender in senders if sender in distances]
        seen = set(waiting)
        for here in waiting:
            for p in self._leaving.get(here, ()):
                there = self._layout.ports[p].target
                if distances.get(there, -1) == distances[here] - 1:
                    ports.add(p)
                    if there not in seen:
                        seen.add(there)
                        waiting.append(there)
        return ports

    @functools.cache  # noqa: B019 (it lives as long as one analysis)
    def _distances(self, receiver: str) -> dict[str, int]:
        """Hops from each node. Hosts do not forward."""
        distances, waiting = {receiver: 0}, [receiver]
        for here in waiting:
            if here in self._layout.hosts and here != receiver:
                continue
            for p in self._entering.get(here, ()):
                before = self._layout.ports[p].source
                if before not in distances:
                    distances[before] = distances[here] + 1
                    waiting.append(before)
        return distances


def data_sent(spec: core.Spec, number: int | None = None) -> Iterator[tuple[int, Sequence[int]]]:
    """Each sender of data and its receivers, as `everything_sent` without acknowledgements; of the traffic
    class `number`, if it is given."""
    for traffic in (each for each in spec.traffic if number is None or each.class_ == number):
        yield from ((source.from_, targets_of(source)) for source in traffic.sources)
        for connection in traffic.tcp.list if traffic.tcp is not None else ():
            yield connection.from_, [connection.to]


def everything_sent(spec: core.Spec) -> Iterator[tuple[int, Sequence[int]]]:
    """Each sender and its receivers, of acknowledgements too: ids of nodes of a resolved scenario."""
    yield from data_sent(spec)
    for traffic in spec.traffic:
        for connection in traffic.tcp.list if traffic.tcp is not None else ():
            yield connection.to, [connection.from_]
        for sender, receivers in () if traffic.messages is None else _of_messages(traffic.messages):
            yield sender, receivers
            if traffic.messages is not None and traffic.messages.config is not None:
                yield from ((receiver, [sender]) for receiver in receivers if receiver != sender)


def _of_messages(messages: core.Messages) -> Iterator[tuple[int, Sequence[int]]]:
    """Each sender of messages and its receivers."""
    match messages.arrivals:
        case core.ArrivalsListed(list=listed):
            for sender, receiver in dict.fromkeys((row[1], row[2]) for row in listed):
                yield sender, [receiver]
        case core.ArrivalsDrawn(hosts=hosts, sources=sources):
            for source in sources:
                receivers = [host for _, place in source.to for host in hosts[place]]
                for sender in hosts[source.from_]:
                    yield sender, [host for host in receivers if host != sender]


def _room(limit: core.Limit, longest: int, xoff: int) -> int | None:
    match limit:
        case core.LimitBytes():
            return max(limit.bytes - xoff, 0)
        case core.LimitFrames():
            return max(limit.frames * longest - xoff, 0)
        case _:
            return None


def _need(
    spec: core.Spec, layout: Layout, ids: Mapping[str, int], p: int, rule: core.Pause, longest: int
) -> int:
    """Bytes that can come to the queue of port `p` after XOFF is called for."""
    node = layout.ports[p].source
    pauses = {n: response.pause_ps for response in spec.control.responses for n in response.nodes}
    need = longest
    for q, port in enumerate(layout.ports):
        if port.source != node or q == p:
            continue
        time_ps = rule.delay_ps + port.wire_ps(longest) + port.wire_ps(rule.frame_bytes)
        time_ps += 2 * link_of(spec.network, layout, q).delay_ps + pauses.get(ids[port.target], 0)
        time_ps += latency_ps(spec.network, ids[node])
        share = longest / (longest + port.framing_bytes)
        need += -(-int(port.rate_bps * time_ps * share) // (8 * 10**12)) + longest
    return need


def longest_frame(scenario: Scenario) -> int | None:
    """The longest frame that the traffic of a scenario sends [B]; None where none is known."""
    if scenario.network is None or scenario.run.duration is None:
        return None
    return longest_frame_of(translated(scenario).spec.traffic)


def longest_data(spec: core.Spec) -> int:
    """The longest frame of the traffic of a resolved scenario [B]; 1518 B where none is known."""
    return longest_frame_of(spec.traffic) or 1518


def _notifications(spec: core.Spec) -> Iterator[tuple[str, int]]:
    """Lane and size [B] of the notifications that are frames on the links."""
    control = spec.control
    schemes = [each.congestion_point.notification for each in (control.bcn, control.qcn) if each is not None]
    schemes += [] if control.dcqcn is None else [control.dcqcn.notification]
    for notification in schemes:
        if notification.lane != "beside":
            yield notification.lane, notification.frame_bytes
