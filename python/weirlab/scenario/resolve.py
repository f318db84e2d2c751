"""From a scenario to the spec that the simulator runs: ids instead of selectors, no defaults, no units."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab import _core
from weirlab.errors import Problem, ScenarioError, UnsupportedError
from weirlab.scenario.aqm import AQM_PLACES, marking_spec
from weirlab.scenario.classes import ClassQueues, class_origins
from weirlab.scenario.flows import departures, flows_of, frame_sizes
from weirlab.scenario.layout import Layout, layout_of, matches, plan_network
from weirlab.scenario.network import discipline_spec, limit_spec
from weirlab.scenario.probing import Probing
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
from weirlab.scenario.resolve_control import resolve_control
from weirlab.scenario.resolve_hotspots import add_hotspots
from weirlab.scenario.resolve_switching import resolve_switching
from weirlab.scenario.resolve_transport import connections, probers
from weirlab.scenario.traffic import Departing, Ping, Requests, Stamp, Tcp, Traffic
from weirlab.units import Size

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

__all__ = [
    "DEFAULT_LIMIT",
    "Resolved",
    "interrupted_traffic",
    "queue_limits",
    "resolve",
    "selected_traffic",
    "translated",
    "unsupported",
]

DEFAULT_LIMIT = Size(150_000)
"""Drop-tail limit of switch ports without a rule."""

Where = tuple[str | int, ...]


@dataclass(frozen=True)
class Resolved:
    """A scenario as the simulator takes it."""

    spec_json: str
    """For `_core.check` and `_core.simulate`."""
    nodes: tuple[str, ...]
    """Names of the node ids."""
    ports: tuple[str, ...]
    """Names of the port ids."""
    traffic: tuple[str, ...]
    """Names of the traffic ids."""
    origins: dict[str, Where]
    """Parts of the scenario by the JSON pointer of what they became."""

    def origin(self, pointer: str) -> Where:
        """The part of the scenario that made what stands at the JSON `pointer`."""
        while pointer and pointer not in self.origins:
            pointer = pointer.rpartition("/")[0]
        return self.origins.get(pointer, ())


class _Last(threading.local):
    """What a thread translated last. A point of a study is checked, simulated and measured one after the
    other, and a scenario never changes. Only one is kept, as studies have tens of thousands of points."""

    scenario: Scenario | None = None
    resolved: Resolved | None = None
    checked = False
    """Whether the simulator takes it."""


_last = _Last()


def resolve(scenario: Scenario) -> Resolved:
    """The spec of `scenario`, as the simulator takes it. Raises UnsupportedError and ScenarioError."""
    if problems := unsupported(scenario):
        raise UnsupportedError(problems)
    resolved = translated(scenario)
    if _last.checked:
        return resolved
    try:
        _core.check(resolved.spec_json)
    except _core.SpecError as error:
        message, pointer = error.args
        raise ScenarioError([scenario.problem_at(resolved.origin(pointer), message)]) from None
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
    plan = plan_network(scenario.network)
    layout = layout_of(plan.spec)
    origins: dict[str, Where] = {
        **plan.origins,
        "/run": ("run",),
        "/run/duration_ps": ("run", "duration"),
        "/record": ("record",),
        "/queues": ("queues",),
    }
    duration_ps = scenario.run.duration.ps
    traffic: list[dict[str, Any]] = []
    for i, (name, entry) in enumerate(scenario.traffic.items()):
        origins[f"/traffic/{i}"] = ("traffic", name)
        origins[f"/traffic/{i}/class"] = ("traffic", name, "class")
        if isinstance(entry.transport, Tcp):
            tcp = connections(name, entry, layout, duration_ps, i, origins)
            traffic.append({"name": name, "class": entry.class_, "sources": [], "tcp": tcp, "probers": None})
        elif isinstance(entry.source, Probing):
            probing = probers(name, entry, layout, duration_ps, i, origins)
            traffic.append(
                {"name": name, "class": entry.class_, "sources": [], "tcp": None, "probers": probing}
            )
        else:
            sources = _sources(name, entry, layout, duration_ps, i, origins)
            traffic.append(
                {"name": name, "class": entry.class_, "sources": sources, "tcp": None, "probers": None}
            )
    services = add_hotspots(scenario, layout, traffic, duration_ps, origins)
    names = tuple(entry["name"] for entry in traffic)
    spec = {
        "network": plan.spec,
        "queues": _queues(scenario, layout, origins),
        "traffic": traffic,
        "control": resolve_control(scenario, layout, origins),
        "switching": resolve_switching(scenario, layout, services, origins),
        "run": {"duration_ps": duration_ps, "engine": _engine(scenario)},
        "record": _record(scenario, layout, duration_ps, names, origins),
    }
    ports = tuple(port.name for port in layout.ports)
    return Resolved(json.dumps(spec), layout.nodes, ports, names, origins)


def _engine(scenario: Scenario) -> dict[str, Any]:
    if scenario.run.engine == "slotted":
        return {"kind": "slotted", "flows": scenario.run.flows}
    return {"kind": "event" if scenario.run.flows else "event-totals"}


def _queues(scenario: Scenario, layout: Layout, origins: dict[str, Where]) -> list[dict[str, Any]]:
    switch_ports = [i for i, port in enumerate(layout.ports) if port.source not in layout.hosts]
    shared = getattr(getattr(scenario.network, "switch", None), "memory", None) is not None
    default = limit_spec("unlimited" if shared else DEFAULT_LIMIT)
    rules = [_rule(switch_ports, default, None)] if switch_ports else []
    for name, queue in scenario.queues.items():
        at = f"/queues/{len(rules)}"
        origins[at] = ("queues", name)
        for field in ("k_min", "k_max", "p_max"):
            suffix = "" if field == "p_max" else "_bytes"
            origins[f"{at}/discipline/marking/{field}{suffix}"] = ("queues", name, "marking", field)
        overrun = f"{at}/discipline/overrun"
        origins[overrun] = ("queues", name, "overrun")
        origins[f"{overrun}/inputs"] = ("queues", name, "overrun", "inputs")
        origins[f"{overrun}/probability"] = ("queues", name, "overrun", "chance")
        origins[f"{overrun}/mean_frames"] = ("queues", name, "overrun", "frames")
        of_aqm = {place: ("queues", name, *word.split("/")) for place, word in AQM_PLACES}
        origins.update({f"{at}/discipline/aqm/{place}": path for place, path in of_aqm.items()})
        if isinstance(queue, ClassQueues):
            origins.update(class_origins(f"{at}/discipline", queue, ("queues", name)))
        discipline = discipline_spec(queue, layout.port_ids)
        rules.append({"ports": layout.port_ids(queue.at), "discipline": discipline})
    return [*rules, *_marked_for_dcqcn(scenario, layout, rules, origins)]


def _marked_for_dcqcn(
    scenario: Scenario, layout: Layout, rules: list[dict[str, Any]], origins: dict[str, Where]
) -> list[dict[str, Any]]:
    """The queues that mark for DCQCN, where they are named there: as before, and with marks."""
    dcqcn = scenario.control.dcqcn if scenario.control else None
    if dcqcn is None or dcqcn.marking is None:
        return []
    limits = _limits(rules)
    alike: dict[str, list[int]] = {}
    for port in layout.port_ids(dcqcn.marking.at):
        alike.setdefault(json.dumps(limits.get(port, "unlimited")), []).append(port)
    marking = marking_spec(dcqcn.marking)
    for i in range(len(alike)):
        origins[f"/queues/{len(rules) + i}"] = ("control", "dcqcn", "marking")
    return [_rule(ports, json.loads(limit), marking) for limit, ports in alike.items()]


def queue_limits(scenario: Scenario, layout: Layout) -> dict[int, Any]:
    """What the queue of a port holds, as the spec says it, by port; without an entry it holds all.

    Raises NoMatchError.
    """
    return _limits(_queues(scenario, layout, {}))


def _limits(rules: list[dict[str, Any]]) -> dict[int, Any]:
    return {port: rule["discipline"].get("limit", "unlimited") for rule in rules for port in rule["ports"]}


def _rule(ports: list[int], limit: Any, marking: dict[str, Any] | None) -> dict[str, Any]:
    discipline = {"kind": "drop-tail", "limit": limit, "marking": marking, "overrun": None}
    return {"ports": ports, "discipline": discipline}


def _sources(
    name: str, traffic: Traffic, layout: Layout, duration_ps: int, index: int, origins: dict[str, Where]
) -> list[dict[str, Any]]:
    source = traffic.source
    if not isinstance(source, Departing):
        return []
    sizes = frame_sizes(source)
    size: dict[str, Any] = (
        {"fixed": sizes[0][0]} if len(sizes) == 1 else {"mix": [list(part) for part in sizes]}
    )
    sources: list[dict[str, Any]] = []
    processes: dict[tuple[int, int] | None, dict[str, Any] | None] = {}
    for i, flow in enumerate(flows_of(traffic, layout)):
        port = layout.host_port(flow.source)
        link = None if port is None else (port.rate_bps, port.framing_bytes)
        if link not in processes:
            processes[link] = departures(source, port)
        process = processes[link]
        if process is None:
            continue
        if source.stream is None:
            stream: dict[str, Any] = {"kind": "named"}
        else:
            stream = {"kind": "split-mix64", "state": (source.stream.first + i) % 2**64}
        at = f"/traffic/{index}/sources/{len(sources)}"
        origins[f"{at}/departures"] = origins[f"{at}/frame_size"] = ("traffic", name, "source")
        origins[f"{at}/start_ps"] = ("traffic", name, "start")
        origins[f"{at}/stop_ps"] = ("traffic", name, "stop")
        sources.append(
            {
                "from": flow.source,
                "to": {"uniform": list(flow.targets)} if flow.drawn else {"node": flow.targets[0]},
                "start_ps": traffic.start.ps,
                "stop_ps": max(traffic.start.ps, duration_ps) if traffic.stop is None else traffic.stop.ps,
                "departures": process,
                "frame_size": size,
                "stream": stream,
            }
        )
    return sources


def selected_traffic(patterns: tuple[str, ...], names: list[str]) -> list[int]:
    """Places of the traffic that a selector names."""
    return [i for i, name in enumerate(names) if any(matches(pattern, name) for pattern in patterns)]


def interrupted_traffic(scenario: Scenario, names: Sequence[str]) -> dict[int, int]:
    """Places of the traffic that follows a hotspot, each with that of the entry that it continues; `names`
    are those of all traffic, with what hotspots add."""
    places = {name: i for i, name in enumerate(scenario.traffic)}
    parts: dict[int, int] = {}
    for i in range(len(places), len(names)):
        for hotspot in scenario.hotspots:
            before = places.get(names[i].removesuffix(f"-after-{hotspot}"))
            if before is not None:
                parts[i] = parts.get(before, before)
        places.setdefault(names[i], i)
    return parts


def _record(
    scenario: Scenario,
    layout: Layout,
    duration_ps: int,
    resolved_names: Sequence[str],
    origins: dict[str, Where],
) -> dict[str, Any]:
    names = list(scenario.traffic)
    parts = interrupted_traffic(scenario, resolved_names)
    ports: list[dict[str, Any]] = []
    traffic: list[dict[str, Any]] = []
    flows: list[dict[str, Any]] = []
    limiters: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = []
    tcp: list[dict[str, Any]] = []
    captures: list[dict[str, Any]] = []
    streams: list[dict[str, Any]] = []
    delays = False
    for name, record in scenario.record.items():
        match record:
            case QueueRecord():
                for port in layout.port_ids(record.queue):
                    origins[f"/record/ports/{len(ports)}"] = ("record", name)
                    origins[f"/record/ports/{len(ports)}/every_ps"] = ("record", name, "every")
                    ports.append({"port": port, "every_ps": record.every.ps})
            case FlowRecord():
                series, table = (flows, "flows") if record.by == "flow" else (traffic, "traffic")
                chosen = selected_traffic(record.flow, names)
                for entry in [*chosen, *(part for part, whole in parts.items() if whole in chosen)]:
                    origins[f"/record/{table}/{len(series)}"] = ("record", name)
                    origins[f"/record/{table}/{len(series)}/every_ps"] = ("record", name, "every")
                    series.append({"traffic": entry, "every_ps": record.every.ps})
            case LimiterRecord():
                for host in layout.host_ids(record.limiter):
                    origins[f"/record/limiters/{len(limiters)}"] = ("record", name)
                    limiters.append({"host": host, "every_ps": record.every.ps})
            case LevelRecord():
                for port in layout.port_ids(record.levels):
                    origins[f"/record/queue_levels/{len(levels)}"] = ("record", name)
                    levels.append(
                        {
                            "port": port,
                            "from_ps": 0 if record.window is None else record.window.low.ps,
                            "to_ps": duration_ps if record.window is None else record.window.high.ps,
                            "bin_bytes": record.bin.bytes,
                        }
                    )
            case TcpRecord():
                for entry in selected_traffic(record.tcp, names):
                    origins[f"/record/connections/{len(tcp)}"] = ("record", name)
                    tcp.append({"traffic": entry, "every_ps": record.every.ps})
            case PStreamRecord():
                for entry in selected_traffic(record.p_streams, names):
                    origins[f"/record/probe_streams/{len(streams)}"] = ("record", name)
                    streams.append({"traffic": entry, "packets": record.packets})
            case DelayRecord():
                delays = True
            case FrameRecord():
                origins[f"/record/captures/{len(captures)}"] = ("record", name)
                captures.append(
                    {
                        "name": name,
                        "ports": layout.port_ids(record.frames),
                        "from_ps": 0 if record.window is None else record.window.low.ps,
                        "to_ps": duration_ps if record.window is None else record.window.high.ps,
                        "frames": record.at_most,
                    }
                )
    return {
        "ports": ports,
        "traffic": traffic,
        "flows": flows,
        "connections": tcp,
        "probe_streams": streams,
        "delays": delays,
        "limiters": limiters,
        "queue_levels": levels,
        "captures": captures,
    }


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
            yield (*path, "source"), "has no test packets; its records tell the delay of every frame"
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
