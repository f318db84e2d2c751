"""The hotspots of a scenario in numbers: severity, degree, their classes, and what a network could carry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weirlab.scenario import Scenario
from weirlab.scenario.hotspots import AnyHotspot, InputGenerated
from weirlab.scenario.layout import Layout, layout_of
from weirlab.scenario.resolve import translated
from weirlab.scenario.resolve_hotspots import mean_rate_fps, mean_size_bytes, targets_of
from weirlab.theory.hotspot import Hotspot, degree_class, severity_class

__all__ = ["HotspotFacts", "hotspot_facts"]

MOST_HOSTS = 256
"""The shares without control are worked out for networks up to this size."""


@dataclass(frozen=True)
class HotspotFacts:
    """One hotspot, computed for what is simulated."""

    name: str
    kind: str
    at: str
    severity: float
    """HSV."""
    degree: float
    """HSD."""
    throughput_max: float
    """Aggregate throughput with perfect control, as a share of capacity."""
    throughput_without_control: float | None
    """The same when the hot frames fill the memory of a single switch; None for large or several switches."""
    contradictions: tuple[str, ...]
    """Where the scenario's own words do not fit."""

    @property
    def severity_class(self) -> str:
        """`mild`, `moderate`, `severe`."""
        return severity_class(self.severity)

    @property
    def degree_class(self) -> str:
        """`small`, `medium`, `large`, or between two of them."""
        return degree_class(self.degree)


def hotspot_facts(scenario: Scenario) -> list[HotspotFacts]:
    """All hotspots of a scenario, in the order of the file. All that are there in the middle of the window of
    one count for it. Raises what resolving the scenario raises."""
    if not scenario.hotspots:
        return []
    spec = json.loads(translated(scenario).spec_json)
    layout = layout_of(spec["network"])
    return [_facts(name, hotspot, spec, layout) for name, hotspot in scenario.hotspots.items()]


def _facts(name: str, hotspot: AnyHotspot, spec: Mapping[str, Any], layout: Layout) -> HotspotFacts:
    low, high = 0, spec["run"]["duration_ps"]
    if hotspot.window is not None:
        low, high = hotspot.window.low.ps, hotspot.window.high.ps
    middle = (low + high) / 2
    hosts = [i for i, node in enumerate(layout.nodes) if node in layout.hosts]
    places = {host: place for place, host in enumerate(hosts)}
    services = _services(spec, layout, hosts, middle)
    hot = places[layout.nodes.index(hotspot.at)]
    rows = [[0.0] * len(hosts) for _ in hosts] if len(hosts) <= MOST_HOSTS else None
    offered = [0.0] * len(hosts)
    makers: set[int] = set()
    for own, target, load in _demands(spec, layout, middle):
        offered[places[target]] += load
        if rows is not None:
            rows[places[own]][places[target]] += load
        if places[target] == hot:
            makers.add(own)
    if isinstance(hotspot, InputGenerated):
        entry = next(entry for entry in spec["traffic"] if entry["name"] == f"hotspot-{name}")
        makers = {source["from"] for source in entry["sources"]}
    severity = offered[hot] / services[hot]
    degree = _degree(hotspot, makers, hosts)
    without = None
    switches = len(layout.nodes) - len(hosts)
    if rows is not None and switches == 1:
        spot = Hotspot(tuple(map(tuple, rows)), tuple(services), hot, len(makers))
        without = spot.throughput_without_control
    return HotspotFacts(
        name=name,
        kind=hotspot.kind,
        at=hotspot.at,
        severity=severity,
        degree=degree,
        throughput_max=sum(map(min, offered, services)) / len(hosts),
        throughput_without_control=without,
        contradictions=tuple(_contradictions(hotspot, severity, degree)),
    )


def _degree(hotspot: AnyHotspot, makers: set[int], hosts: list[int]) -> float:
    """Uniform traffic of all others to an output is a degree of 100 %: nobody sends to itself."""
    if isinstance(hotspot, InputGenerated):
        return len(makers) / len(hosts)
    own = len(hosts) - 1
    return 1.0 if len(makers) >= own else len(makers) / len(hosts)


def _services(spec: Mapping[str, Any], layout: Layout, hosts: list[int], at_ps: float) -> list[float]:
    """What the port to each host serves at a time, as a share of the line rate."""
    slower = {
        service["port"]: service["rate_bps"]
        for service in spec["switching"]["services"]
        if service["from_ps"] <= at_ps < service["to_ps"]
    }
    towards = {port.target: i for i, port in enumerate(layout.ports)}
    shares = []
    for host in hosts:
        port = towards[layout.nodes[host]]
        rate = layout.ports[port].rate_bps
        shares.append(slower.get(port, rate) / rate)
    return shares


def _demands(spec: Mapping[str, Any], layout: Layout, at_ps: float) -> Iterator[tuple[int, int, float]]:
    """(sender, receiver, line rates) of what is offered at a time."""
    for entry in spec["traffic"]:
        for source in entry["sources"]:
            if not source["start_ps"] <= at_ps < source["stop_ps"]:
                continue
            port = layout.host_port(source["from"])
            assert port is not None, "a host that sends has a port"
            wire = port.wire_ps(round(mean_size_bytes(source)))
            targets = targets_of(source)
            for target in targets:
                yield source["from"], target, mean_rate_fps(source["departures"]) * wire / 1e12 / len(targets)


def _contradictions(hotspot: AnyHotspot, severity: float, degree: float) -> Iterator[str]:
    found = severity_class(severity)
    if hotspot.called is not None and hotspot.called != found:
        yield (
            f"called '{hotspot.called}', but a severity of {severity:.2f} is '{found}' "
            "(mild up to 2, moderate up to 10, severe above)"
        )
    if found == "none":
        yield f"no hotspot: a severity of {severity:.2f} is not above 1"
    if degree_class(degree).startswith("between"):
        classes = "small below 10 %, medium 20 to 60 %, large above 90 %"
        yield f"a degree of {degree:.0%} is in no class ({classes})"
