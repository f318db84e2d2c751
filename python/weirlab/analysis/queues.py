"""The queues of a scenario that BCN or QCN controls, with the parameters that theory needs.

All is read from the resolved spec, as the simulator gets it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from weirlab import _core, spec as core
from weirlab.analysis.routes import Routes
from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario
from weirlab.scenario.network.layout import layout_of
from weirlab.scenario.resolve import translated
from weirlab.scenario.resolve.hotspots import mean_rate_fps, mean_size_bytes, targets_of
from weirlab.scenario.traffic.demands import middle_ps
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.hotspot import degree_class, fair_shares, severity_class
from weirlab.theory.qcn import QcnPoint

Pair = tuple[int, int]
"""Sender and receiver, as ids of nodes."""

QCN_LEVELS = 63
"""Largest feedback of QCN, which has 6 bits. Source: IEEE 802.1Qau, the
congestion point."""
QCN_FASTEST = 150.0 / 18.5
"""How many times more often QCN samples at the largest feedback than without. Source: IEEE 802.1Qau, the
congestion point."""


@dataclass(frozen=True)
class ControlledQueue:
    """A queue that measures."""

    port: str
    """`a->b`."""
    point: BcnPoint | QcnPoint
    """Its parameters; frames are of the mean size of the traffic there."""
    frame_bytes: float
    line_fps: float
    """Line rate of the senders."""
    sources: int
    """Hosts whose flows the queue holds back: that ask for more than their fair share of it, or all that
    pass where nobody does."""
    degree: float
    """HSD: the part of the sending hosts whose flows are held back; 1 where all do that can, as nobody sends
    to itself."""
    offered_fps: float
    """What the flows would bring if nothing held them back."""

    @property
    def scheme(self) -> str:
        """`BCN` or `QCN`."""
        return "BCN" if isinstance(self.point, BcnPoint) else "QCN"

    @property
    def severity(self) -> float:
        """HSV: offered over served; above 1 the queue is a hotspot."""
        return self.offered_fps / self.point.service_fps

    @property
    def classes(self) -> str:
        """Severity and degree in words."""
        return f"{severity_class(self.severity)}, {degree_class(self.degree)}"


@dataclass(frozen=True)
class _Stream:
    """Frames from one host to another."""

    source: int
    target: int
    rate_fps: float
    frame_bytes: float


def controlled_queues(
    scenario: Scenario, schemes: Sequence[str] = ("bcn", "qcn"), *, why: str = "theory needs"
) -> list[ControlledQueue]:
    """All queues at which one of these schemes measures and that flows of obeying hosts pass, the severest
    first, while all senders are on; of a scenario with hotspots each queue as it is in the middle of one of
    them, where it is severest.

    Raises ScenarioError, with the place in the file and `why` a scheme is needed, where there is none, and
    UnsupportedError for what has no form in the simulator.
    """
    spec = translated(scenario).spec
    there = {"bcn": spec.control.bcn, "qcn": spec.control.qcn}
    scheme = next((name for name in schemes if there[name] is not None), None)
    if scheme is None:
        where = "" if scenario.control is None else "control"
        needed = " or ".join(f"'control.{name}'" for name in schemes)
        raise ScenarioError([scenario.problem(where, f"{why} {needed}")])
    if spec.control.bcn is None and spec.control.qcn is not None and not _has_theory(spec.control.qcn):
        at = "control.qcn.reaction_point.recovery"
        asked = "a byte counter, and 'hyper_after' and 'hyper_grows' as they are without being given"
        raise ScenarioError([scenario.problem(at, f"{why} {asked}")])
    worst: dict[str, ControlledQueue] = {}
    times: set[float | None] = {middle_ps(hotspot, spec) for hotspot in scenario.hotspots.values()}
    for at_ps in times or {None}:
        for queue in queues_in(spec, at_ps=at_ps):
            if queue.port not in worst or worst[queue.port].severity < queue.severity:
                worst[queue.port] = queue
    found = sorted(worst.values(), key=lambda queue: -queue.severity)
    if not found:
        at = f"control.{scheme}.congestion_point.at"
        raise ScenarioError([scenario.problem(at, "no flow of a host that obeys passes any of these ports")])
    return found


def hot_ones(queues: list[ControlledQueue]) -> list[ControlledQueue]:
    """Those that are asked for more than they serve, or all where none is."""
    return [queue for queue in queues if queue.severity > 1] or queues


def queues_in(
    spec: core.Spec, among: Collection[int] | None = None, at_ps: float | None = None
) -> list[ControlledQueue]:
    """All such queues of a resolved spec; with `among` those of these ports, and with `at_ps` as they are at
    that time, not while all senders are on."""
    scheme = spec.control.bcn or spec.control.qcn
    if scheme is None or (isinstance(scheme, core.Qcn) and not _has_theory(scheme)):
        return []
    routes = Routes(layout_of(spec.network), spec.network)
    streams = list(_streams(spec, at_ps))
    ways = _ways(spec.network, routes, streams)
    slower = {
        service.port: service.rate_bps
        for service in spec.switching.services
        if at_ps is None or service.from_ps <= at_ps < service.to_ps
    }
    queues = [
        queue
        for port in scheme.congestion_point.ports
        if among is None or port in among
        if (queue := _queue(spec.control, scheme, routes, ways, port, slower.get(port), streams)) is not None
    ]
    return sorted(queues, key=lambda queue: -queue.severity)


def _has_theory(qcn: core.Qcn) -> bool:
    """Whether its rates grow as those of the theory: by two counters, in phases that follow each other."""
    recovery = qcn.reaction_point.recovery
    phases = recovery.hyper_after_stages == 0 and recovery.hyper_grows
    return phases and recovery.byte_counter_bytes is not None


def _streams(spec: core.Spec, at_ps: float | None) -> Iterator[_Stream]:
    """What the open-loop sources send at a time, or when all of them are on."""
    for traffic in spec.traffic:
        for source in traffic.sources:
            if at_ps is not None and not source.start_ps <= at_ps < source.stop_ps:
                continue
            targets = targets_of(source)
            rate = mean_rate_fps(source.departures) / len(targets)
            size = mean_size_bytes(source)
            for target in targets:
                yield _Stream(source.from_, target, rate, size)


def _queue(
    control: core.Control,
    scheme: core.Bcn | core.Qcn,
    routes: Routes,
    ways: Mapping[Pair, Collection[int]],
    port: int,
    service_bps: int | None,
    streams: list[_Stream],
) -> ControlledQueue | None:
    """`service_bps`: what an output-generated hotspot leaves of the line rate."""
    layout, here = routes.layout, routes.layout.ports[port]
    passing = [(stream, share) for stream in streams if (share := _share(routes, ways, stream, port)) > 0]
    obeying = set(scheme.reaction_point.hosts)
    limited = [stream for stream, _ in passing if stream.source in obeying]
    if not limited:
        return None
    offered = sum(stream.rate_fps * share for stream, share in passing)
    size = sum(stream.rate_fps * share * stream.frame_bytes for stream, share in passing) / offered
    wire_bits = 8 * (size + here.framing_bytes)
    line = layout.host_port(limited[0].source)
    line_fps = (here.rate_bps if line is None else line.rate_bps) / wire_bits
    senders = {stream.source for stream in limited}
    service_fps = (here.rate_bps if service_bps is None else service_bps) / wire_bits
    held = _held_back(passing, service_fps)
    others = {stream.source for stream in streams} - {layout.nodes.index(here.target)}
    makers = {source for source, _ in held}
    common: _Common = {
        "service_fps": service_fps,
        "flows": float(len([flow for flow in held if flow[0] in obeying]) or len(limited)),
        "delay_s": _delay_s(control, scheme, routes, here.source, senders, size),
    }
    point = (
        _bcn_point(scheme, size, line_fps, common)
        if isinstance(scheme, core.Bcn)
        else _qcn_point(scheme, size, common)
    )
    return ControlledQueue(
        port=here.name,
        point=point,
        frame_bytes=size,
        line_fps=line_fps,
        sources=len(makers),
        degree=1.0 if makers >= others else len(makers) / len({stream.source for stream in streams}),
        offered_fps=offered,
    )


def _ways(
    network: core.Network, routes: Routes, streams: Sequence[_Stream]
) -> Mapping[Pair, Collection[int]]:
    """The ports of the ways of flows that have several shortest paths, as the simulator lays them."""
    nodes = routes.layout.nodes
    pairs = {(stream.source, stream.target) for stream in streams}
    several = [pair for pair in pairs if routes.paths(nodes[pair[0]], nodes[pair[1]]) > 1]
    # The router is faster where receivers come one after the other.
    several.sort(key=lambda pair: (pair[1], pair[0]))
    ways = _core.paths(network.json(), several)
    return {pair: frozenset(way) for pair, way in zip(several, ways, strict=True)}


def _share(routes: Routes, ways: Mapping[Pair, Collection[int]], stream: _Stream, port: int) -> float:
    """The part of a stream that passes a port: all or nothing."""
    nodes = routes.layout.nodes
    way = ways.get((stream.source, stream.target))
    if way is not None:
        return float(port in way)
    if stream.source == stream.target:  # comes back from its switch
        return float(routes.layout.ports[port].target == nodes[stream.target])
    return routes.share(nodes[stream.source], nodes[stream.target], port)


def _held_back(passing: Sequence[tuple[_Stream, float]], service_fps: float) -> set[tuple[int, int]]:
    """The flows, by source and target, that ask for more than their max-min fair share of a queue: those that
    congestion management has to hold back. All where nobody does."""
    asked: dict[tuple[int, int], float] = {}
    for stream, share in passing:
        flow = (stream.source, stream.target)
        asked[flow] = asked.get(flow, 0.0) + stream.rate_fps * share
    fair = fair_shares(list(asked.values()), service_fps)
    held = {
        flow for (flow, rate), share in zip(asked.items(), fair, strict=True) if rate > share * (1 + 1e-9)
    }
    return held or set(asked)


class _Common(TypedDict):
    """What the points of both schemes have."""

    service_fps: float
    flows: float
    delay_s: float


def _bcn_point(bcn: core.Bcn, size: float, line_fps: float, common: _Common) -> BcnPoint:
    """Gains are given per unit of feedback: here they become gains per frame."""
    measuring, reacting = bcn.congestion_point, bcn.reaction_point
    units_per_frame = size / measuring.unit_bytes
    return BcnPoint(
        **common,
        line_fps=line_fps,
        sampling=min(1.0, size / measuring.sample_every_bytes),
        w=measuring.w,
        gi=reacting.gi * units_per_frame,
        gd=reacting.gd * units_per_frame,
        ru_fps=reacting.ru_bps / (8 * size),
        q_eq_frames=measuring.q_eq_bytes / size,
    )


def _qcn_point(qcn: core.Qcn, size: float, common: _Common) -> QcnPoint:
    """Feedback is quantised to 0 .. 63; the gain becomes one per frame."""
    measuring, reacting = qcn.congestion_point, qcn.reaction_point
    recovery = reacting.recovery
    q_eq, sampling = measuring.q_eq_bytes / size, size / measuring.sample_every_bytes
    assert recovery.byte_counter_bytes is not None, "has a theory"
    return QcnPoint(
        **common,
        sampling=min(1.0, sampling),
        most_sampling=QCN_FASTEST,
        w=measuring.w,
        gd=reacting.gd * QCN_LEVELS / ((1 + 2 * measuring.w) * q_eq),
        q_eq_frames=q_eq,
        increase_fps=recovery.r_ai_bps / (8 * size),
        hyper_increase_fps=recovery.r_hai_bps / (8 * size),
        counter_frames=recovery.byte_counter_bytes / size,
        timer_s=recovery.timer_ps / 1e12,
        recovery_stages=recovery.fast_recovery_stages,
        active_part=0.5 if recovery.halve_stages else 1.0,
    )


def _delay_s(
    control: core.Control,
    scheme: core.Bcn | core.Qcn,
    routes: Routes,
    switch: str,
    senders: set[int],
    size: float,
) -> float:
    """From a sample to the first frame at the other rate, for the farthest sender: the way of the
    notification, the response of the host, and the way of a frame."""
    notification = scheme.congestion_point.notification
    responses = {node: response.notification_ps for response in control.responses for node in response.nodes}
    longest = 0
    for sender in senders:
        name = routes.layout.nodes[sender]
        back = routes.time_ps(switch, name, notification.frame_bytes)
        forth = routes.time_ps(name, switch, round(size))
        longest = max(longest, back + forth + responses.get(sender, 0))
    return float(notification.delay_ps + longest) / 1e12
