"""The hotspots of a scenario in numbers: severity, degree, their classes, and what a network could carry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weirlab.scenario import Scenario
from weirlab.scenario.demands import demands, middle_ps, services
from weirlab.scenario.hotspots import AnyHotspot, InputGenerated
from weirlab.scenario.layout import Layout, layout_of, plan_network
from weirlab.scenario.measure import Utilisation
from weirlab.scenario.resolve import translated
from weirlab.theory.hotspot import Hotspot, degree_class, severity_class

__all__ = ["HotspotFacts", "hotspot_facts", "utilisation_measures"]

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
    sources: int
    """Hosts that make it: HSD as a number of flows."""
    service: float
    """What the hot output serves, in line rates: mu."""
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


def utilisation_measures(scenario: Scenario) -> tuple[str | None, str | None]:
    """Which measures of a scenario with one hotspot are the aggregate throughput, which is the utilisation of
    several outputs, and the utilisation of the hot output: the first of each, by name."""
    if scenario.network is None:
        return None, None
    layout = layout_of(plan_network(scenario.network).spec)
    (hotspot,) = scenario.hotspots.values()
    throughput = hot = None
    for name, measure in scenario.measure.items():
        if isinstance(measure, Utilisation):
            targets = [layout.ports[port].target for port in layout.port_ids(measure.of)]
            if targets == [hotspot.at]:
                hot = hot or name
            elif len(targets) > 1:
                throughput = throughput or name
    return throughput, hot


def _facts(name: str, hotspot: AnyHotspot, spec: Mapping[str, Any], layout: Layout) -> HotspotFacts:
    middle = middle_ps(hotspot, spec)
    hosts = [i for i, node in enumerate(layout.nodes) if node in layout.hosts]
    places = {host: place for place, host in enumerate(hosts)}
    served = services(spec, layout, hosts, middle)
    hot = places[layout.nodes.index(hotspot.at)]
    rows = [[0.0] * len(hosts) for _ in hosts] if len(hosts) <= MOST_HOSTS else None
    offered = [0.0] * len(hosts)
    makers: set[int] = set()
    for own, target, load in demands(spec, layout, middle):
        offered[places[target]] += load
        if rows is not None:
            rows[places[own]][places[target]] += load
        if places[target] == hot:
            makers.add(own)
    if isinstance(hotspot, InputGenerated):
        entry = next(entry for entry in spec["traffic"] if entry["name"] == f"hotspot-{name}")
        makers = {source["from"] for source in entry["sources"]}
    severity = offered[hot] / served[hot]
    degree = _degree(hotspot, makers, hosts)
    without = None
    switches = len(layout.nodes) - len(hosts)
    if rows is not None and switches == 1:
        spot = Hotspot(tuple(map(tuple, rows)), tuple(served), hot, len(makers))
        without = spot.throughput_without_control
    return HotspotFacts(
        name=name,
        kind=hotspot.kind,
        at=hotspot.at,
        severity=severity,
        degree=degree,
        sources=len(makers),
        service=served[hot],
        throughput_max=sum(map(min, offered, served)) / len(hosts),
        throughput_without_control=without,
        contradictions=tuple(_contradictions(hotspot, severity, degree)),
    )


def _degree(hotspot: AnyHotspot, makers: set[int], hosts: list[int]) -> float:
    """Uniform traffic of all others to an output is a degree of 100 %: nobody sends to itself."""
    if isinstance(hotspot, InputGenerated):
        return len(makers) / len(hosts)
    own = len(hosts) - 1
    return 1.0 if len(makers) >= own else len(makers) / len(hosts)


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
