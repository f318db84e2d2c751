"""From a scenario to the spec that the simulator runs: ids instead of selectors, no defaults, no units.

One file: the spec is put together here from the parts that the modules next to it make.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _core, spec as core
from weirlab.errors import Problem, ScenarioError, UnsupportedError
from weirlab.scenario.network import discipline_spec, limit_spec, shared_memory
from weirlab.scenario.network.aqm import marking_spec
from weirlab.scenario.network.layout import Layout, layout_of, matches, plan_network
from weirlab.scenario.network.selecting import EntryFault
from weirlab.scenario.record import (
    DelayRecord,
    FlowRecord,
    FrameRecord,
    LevelRecord,
    LimiterRecord,
    PStreamRecord,
    QueueRecord,
    TcpRecord,
)
from weirlab.scenario.resolve.buffers import buffered, resolve_buffers
from weirlab.scenario.resolve.control import resolve_control
from weirlab.scenario.resolve.events import resolve_events
from weirlab.scenario.resolve.hotspots import add_hotspots, continuations
from weirlab.scenario.resolve.messages import messages
from weirlab.scenario.resolve.switching import resolve_switching
from weirlab.scenario.resolve.transport import connections, probers
from weirlab.scenario.sections import follows_from
from weirlab.scenario.traffic import Carried, Departing, Ping, Requests, Stamp, Tcp, Traffic
from weirlab.scenario.traffic.flows import departures, flows_of, sizes_spec
from weirlab.scenario.traffic.probing import Probing
from weirlab.spec import At, Where, origin_of
from weirlab.spec.part import json_of
from weirlab.units import Size

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


DEFAULT_LIMIT = Size(150_000)
"""Drop-tail limit of switch ports without a rule."""


@dataclass(frozen=True)
class Resolved:
    """A scenario as the simulator takes it."""

    spec: core.Spec
    """What it runs. Each part knows where in the scenario it comes from."""
    nodes: tuple[str, ...]
    """Names of the node ids."""
    ports: tuple[str, ...]
    """Names of the port ids."""
    traffic: tuple[str, ...]
    """Names of the traffic ids."""
    texts: dict[str, tuple[object, str]] = field(default_factory=dict, repr=False, compare=False)
    """Parts of the spec by name, with their JSON, as far as scenarios with the same parts have been
    written."""
    plans: dict[bool, _core.Plan] = field(default_factory=dict, repr=False, compare=False)
    """The plans made so far, without and with sums."""

    @functools.cached_property
    def spec_json(self) -> str:
        """The spec as the core takes it."""
        for name in ("network", "traffic", "switching"):
            part = getattr(self.spec, name)
            if name not in self.texts or self.texts[name][0] is not part:
                self.texts[name] = part, json_of(part)
        parts = (
            f'"{name}": {self.texts[name][1] if name in self.texts else json_of(part)}'
            for name, part in vars(self.spec).items()
        )
        return f"{{{', '.join(parts)}}}"

    def plan(self, *, sums: bool = False) -> _core.Plan:
        """The spec as the simulator runs it, made once. With `sums`, for those who ask for no single flow,
        all that a source sends may count as one, which is faster. Raises `_core.SpecError` where the
        simulator does not take it."""
        if sums not in self.plans:
            self.plans[sums] = _core.Plan(self.spec_json, sums=sums)
        return self.plans[sums]

    def origin(self, pointer: str, scenario: Scenario) -> Where:
        """The part of `scenario` from which the value at the JSON `pointer` comes."""
        return origin_of(self.spec, pointer, scenario.fields_at)


class _Last(threading.local):
    """What a thread translated last. A point of a study is checked, simulated and measured one after the
    other, and a scenario never changes. Only one is kept, as studies have tens of thousands of points."""

    scenario: Scenario | None = None
    resolved: Resolved | None = None
    checked = False
    """Whether the simulator takes it."""


_last = _Last()


def resolve(scenario: Scenario, *, sums: bool = False) -> Resolved:
    """The spec of `scenario`, as the simulator takes it; with `sums` as in `Resolved.plan`. Raises
    UnsupportedError and ScenarioError."""
    if problems := unsupported(scenario):
        raise UnsupportedError(problems)
    resolved = translated(scenario)
    if _last.checked:
        return resolved
    try:
        resolved.plan(sums=sums)
    except _core.SpecError as error:
        message, pointer = error.args
        raise ScenarioError([scenario.problem_at(resolved.origin(pointer, scenario), message)]) from None
    _last.checked = True
    return resolved


def translated(scenario: Scenario) -> Resolved:
    """The spec of `scenario`, without asking the simulator whether it takes it; what has no form there is
    left out. Raises ScenarioError.
    """
    if _last.scenario is not scenario or _last.resolved is None:
        resolved = _translated(scenario)
        _last.scenario, _last.resolved, _last.checked = scenario, resolved, False
    return _last.resolved


def _translated(scenario: Scenario) -> Resolved:
    if scenario.network is None:
        raise ScenarioError([scenario.problem("", "has no network to simulate")])
    if scenario.run.duration is None:
        raise ScenarioError([scenario.problem("run", "has no duration")])
    network, layout = network_of(scenario)
    duration_ps = scenario.run.duration.ps
    traffic, services = _offered(scenario, layout, duration_ps)
    queues = _queues(scenario, layout)
    spec = core.Spec(
        network=network,
        queues=queues,
        traffic=traffic,
        control=resolve_control(scenario, layout),
        switching=_switching(scenario, layout, services),
        buffers=resolve_buffers(scenario, layout, traffic),
        events=resolve_events(scenario, layout, queues),
        run=core.Run(duration_ps=duration_ps, engine=_engine(scenario), origin=At("run")),
        record=_record(scenario, layout, duration_ps, traffic),
        origin=At(),
    )
    names = tuple(entry.name for entry in traffic)
    return Resolved(spec, layout.nodes, layout.port_names, names, scenario._origin.texts)


@follows_from("network")
def network_of(scenario: Scenario) -> tuple[core.Network, Layout]:
    """The network of the spec, and its layout. Raises `_core.SpecError` where it cannot be."""
    assert scenario.network is not None, "asked of scenarios with a network"
    spec = plan_network(scenario.network).spec
    return spec, layout_of(spec)


@follows_from("network", "traffic", "hotspots", "run")
def _offered(
    scenario: Scenario, layout: Layout, duration_ps: int
) -> tuple[Sequence[core.Traffic], Sequence[core.Service]]:
    """What is sent, hotspots included, and what they leave of outputs."""
    beside = Path(scenario.file).parent if scenario.file else Path()
    traffic = [
        _traffic(scenario, name, entry, layout, duration_ps, beside)
        for name, entry in scenario.traffic.items()
    ]
    services = add_hotspots(scenario, layout, traffic, duration_ps)
    return traffic, services


@follows_from("network", "adapters", "traffic", "hotspots", "run")
def _switching(scenario: Scenario, layout: Layout, services: Sequence[core.Service]) -> core.Switching:
    return resolve_switching(scenario, layout, services)


def _traffic(
    scenario: Scenario, name: str, entry: Traffic, layout: Layout, duration_ps: int, beside: Path
) -> core.Traffic:
    """What an entry of traffic sends."""
    carried = isinstance(entry.source, Carried)
    tcp = isinstance(entry.transport, Tcp) and not carried
    probing = not tcp and isinstance(entry.source, Probing)
    return core.Traffic(
        name=name,
        class_=entry.class_,
        sources=[] if tcp or probing or carried else _sources(name, entry, layout, duration_ps),
        tcp=connections(name, entry, layout, duration_ps) if tcp else None,
        probers=probers(name, entry, layout, duration_ps) if probing else None,
        messages=_messages(scenario, name, entry, layout, duration_ps, beside) if carried else None,
        hotspot=None,
        continues=None,
        origin=At("traffic", name),
    )


def _messages(
    scenario: Scenario, name: str, entry: Traffic, layout: Layout, duration_ps: int, beside: Path
) -> core.Messages:
    try:
        return messages(name, entry, layout, duration_ps, beside)
    except EntryFault as fault:
        raise ScenarioError([scenario.problem_at(("traffic", name, *fault.path), str(fault))]) from None


def _engine(scenario: Scenario) -> core.Engine:
    if scenario.run.engine == "slotted":
        return core.EngineSlotted(flows=scenario.run.flows)
    return core.EngineEvent() if scenario.run.flows else core.EngineEventTotals()


def _queues(scenario: Scenario, layout: Layout) -> list[core.QueueRule]:
    switch_ports = [i for i, port in enumerate(layout.ports) if port.source not in layout.hosts]
    shared = shared_memory(scenario.network) is not None
    with_buffer = {layout.nodes[node] for node in buffered(scenario, layout)}
    rules: list[core.QueueRule] = []
    for limit in (DEFAULT_LIMIT, "unlimited"):
        unlimited = limit == "unlimited"
        ports = [i for i in switch_ports if (shared or layout.ports[i].source in with_buffer) == unlimited]
        default = core.DisciplineDropTail(limit=limit_spec(limit), marking=None, overrun=None)
        rules += [core.QueueRule(ports=ports, discipline=default)] if ports else []
    for name, queue in scenario.queues.items():
        at = ("queues", name)
        ports = layout.port_ids(queue.at)
        rules.append(
            core.QueueRule(
                ports=ports, discipline=discipline_spec(queue, layout.port_ids, *at), origin=At(*at)
            )
        )
    return [*rules, *_marked_for_dcqcn(scenario, layout, rules)]


def _marked_for_dcqcn(
    scenario: Scenario, layout: Layout, rules: list[core.QueueRule]
) -> list[core.QueueRule]:
    """The queues that mark for DCQCN, where they are named there: as before, and with marks."""
    dcqcn = scenario.control.dcqcn if scenario.control else None
    if dcqcn is None or dcqcn.marking is None:
        return []
    limits = _limits(rules)
    alike: dict[core.Limit, list[int]] = {}
    for port in layout.port_ids(dcqcn.marking.at):
        alike.setdefault(limits.get(port, "unlimited"), []).append(port)
    at = ("control", "dcqcn", "marking")
    marking = marking_spec(dcqcn.marking, *at)
    return [
        core.QueueRule(
            ports=ports,
            discipline=core.DisciplineDropTail(limit=limit, marking=marking, overrun=None),
            origin=At(*at),
        )
        for limit, ports in alike.items()
    ]


def queue_limits(scenario: Scenario, layout: Layout) -> dict[int, core.Limit]:
    """What the queue of a port holds, as the spec says it, by port; without an entry it holds all.

    Raises NoMatchError.
    """
    return _limits(_queues(scenario, layout))


def _limits(rules: list[core.QueueRule]) -> dict[int, core.Limit]:
    limits: dict[int, core.Limit] = {}
    for rule in rules:
        limits |= dict.fromkeys(rule.ports, limit_of(rule.discipline))
    return limits


def limit_of(discipline: core.Discipline) -> core.Limit:
    """What may wait in the queue of a port; queues of classes have limits of their own."""
    return "unlimited" if isinstance(discipline, core.DisciplineClasses) else discipline.limit


def _sources(name: str, traffic: Traffic, layout: Layout, duration_ps: int) -> list[core.Source]:
    source = traffic.source
    if not isinstance(source, Departing):
        return []
    at = ("traffic", name, "source")
    origin = At("traffic", name)
    size = sizes_spec(source, *at)
    stop_ps = max(traffic.start.ps, duration_ps) if traffic.stop is None else traffic.stop.ps
    sources: list[core.Source] = []
    processes: dict[tuple[int, int] | None, core.Departures | None] = {}
    for i, flow in enumerate(flows_of(traffic, layout)):
        port = layout.host_port(flow.source)
        link = None if port is None else (port.rate_bps, port.framing_bytes)
        if link not in processes:
            processes[link] = departures(source, port, *at)
        process = processes[link]
        if process is None:
            continue
        stream: core.Stream = core.StreamNamed()
        if source.stream is not None:
            stream = core.StreamSplitMix64(state=(source.stream.first + i) % 2**64)
        sources.append(
            core.Source(
                from_=flow.source,
                to=core.DestinationUniform(uniform=flow.targets)
                if flow.drawn
                else core.DestinationNode(node=flow.targets[0]),
                start_ps=traffic.start.ps,
                stop_ps=stop_ps,
                departures=process,
                frame_size=size,
                stream=stream,
                origin=origin,
            )
        )
    return sources


def selected_traffic(patterns: tuple[str, ...], names: list[str]) -> list[int]:
    """Places of the traffic that a selector names."""
    return [i for i, name in enumerate(names) if any(matches(pattern, name) for pattern in patterns)]


@follows_from("network", "traffic", "hotspots", "record", "run")
def _record(
    scenario: Scenario, layout: Layout, duration_ps: int, resolved: Sequence[core.Traffic]
) -> core.Record:
    names = list(scenario.traffic)
    parts = continuations(resolved)
    ports: list[core.PortProbe] = []
    traffic: list[core.TrafficProbe] = []
    flows: list[core.TrafficProbe] = []
    limiters: list[core.LimiterProbe] = []
    levels: list[core.LevelProbe] = []
    tcp: list[core.TrafficProbe] = []
    captures: list[core.Capture] = []
    streams: list[core.StreamProbe] = []
    for name, record in scenario.record.items():
        at = At("record", name)
        timed = At("record", name)
        match record:
            case QueueRecord(every=every):
                found = layout.port_ids(record.queue)
                ports += [core.PortProbe(port=port, every_ps=every.ps, origin=timed) for port in found]
            case FlowRecord(every=every):
                chosen = selected_traffic(record.flow, names)
                chosen += [part for part, whole in parts.items() if whole in chosen]
                series = flows if record.by == "flow" else traffic
                series += [core.TrafficProbe(traffic=i, every_ps=every.ps, origin=timed) for i in chosen]
            case LimiterRecord(every=every):
                hosts = layout.host_ids(record.limiter)
                limiters += [core.LimiterProbe(host=host, every_ps=every.ps, origin=at) for host in hosts]
            case LevelRecord():
                begin, end = _window(record, duration_ps)
                levels += [
                    core.LevelProbe(
                        port=port, from_ps=begin, to_ps=end, bin_bytes=record.bin.bytes, origin=at
                    )
                    for port in layout.port_ids(record.levels)
                ]
            case TcpRecord(every=every):
                chosen = selected_traffic(record.tcp, names)
                tcp += [core.TrafficProbe(traffic=i, every_ps=every.ps, origin=at) for i in chosen]
            case PStreamRecord(packets=packets):
                chosen = selected_traffic(record.p_streams, names)
                streams += [core.StreamProbe(traffic=i, packets=packets, origin=at) for i in chosen]
            case DelayRecord():
                pass
            case FrameRecord():
                begin, end = _window(record, duration_ps)
                captures.append(
                    core.Capture(
                        name=name,
                        ports=layout.port_ids(record.frames),
                        from_ps=begin,
                        to_ps=end,
                        frames=record.at_most,
                        origin=at,
                    )
                )
    return core.Record(
        ports=ports,
        traffic=traffic,
        flows=flows,
        connections=tcp,
        probe_streams=streams,
        delays=any(isinstance(record, DelayRecord) for record in scenario.record.values()),
        limiters=limiters,
        queue_levels=levels,
        captures=captures,
        origin=At("record"),
    )


def _window(record: LevelRecord | FrameRecord, duration_ps: int) -> tuple[int, int]:
    """The time that counts."""
    return (0, duration_ps) if record.window is None else (record.window.low.ps, record.window.high.ps)


def unsupported(scenario: Scenario) -> list[Problem]:
    """Every part of the scenario that the simulator's spec has no form for, in the order of the file."""
    found = [
        scenario.problem_at(path, f"the simulator of this version {message}")
        for path, message in (
            *_unsupported_traffic(scenario),
            *_unsupported_rest(scenario),
        )
    ]
    return sorted(found, key=lambda problem: (problem.file, problem.line, problem.column))


def _unsupported_traffic(scenario: Scenario) -> Iterator[tuple[Where, str]]:
    for name, traffic in scenario.traffic.items():
        path = ("traffic", name)
        if isinstance(traffic.source, Ping):
            yield (*path, "source"), "has no echo requests"
        if isinstance(traffic.source, Requests):
            yield (*path, "source"), "has no HTTP requests"
        if isinstance(traffic.source, Stamp):
            yield (*path, "source"), "has no test packets; its records hold the delay of every frame"
        for part in ("timing", "adapter"):
            ends = isinstance(traffic.transport, Tcp) or isinstance(traffic.source, Probing)
            if getattr(traffic, part) is not None and not ends:
                yield (*path, part), "has it for tcp and estimators only"


def _unsupported_rest(scenario: Scenario) -> Iterator[tuple[Where, str]]:
    if scenario.campaign is not None:
        yield (
            ("campaign",),
            "runs campaigns over a path alone, with 'weir bulk': add 'testbed: {kind: sim, path: emulator}'",
        )
