"""Who offers how much to whom in a resolved spec, and what outputs serve, at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab import spec as core
from weirlab.scenario.network.layout import Layout, layout_of
from weirlab.scenario.resolve import translated
from weirlab.scenario.resolve.hotspots import (
    continuations,
    mean_rate_fps,
    mean_size_bytes,
    targets_of,
    within_run,
)
from weirlab.scenario.traffic.hotspots import AnyHotspot
from weirlab.theory.hotspot import fair_shares

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def ideal_shares(scenario: Scenario, name: str) -> dict[str, float]:
    """Max-min fair share of each sender at the hot output of a hotspot, in line rates, in the middle of its
    window."""
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    hotspot = scenario.hotspots[name]
    at_ps = middle_ps(hotspot, spec)
    hot = layout.nodes.index(hotspot.at)
    asked: dict[str, float] = {}
    for sender, receivers, load in demands(spec, layout, at_ps):
        if hot in receivers:
            asked[layout.nodes[sender]] = asked.get(layout.nodes[sender], 0.0) + load
    (served,) = services(spec, layout, [hot], at_ps)
    return dict(zip(asked, fair_shares(list(asked.values()), served), strict=True))


def traffic_names(scenario: Scenario) -> list[str]:
    """Names of all entries of traffic, with those that hotspots add."""
    return list(translated(scenario).traffic if scenario.hotspots else scenario.traffic)


def interrupted_traffic(scenario: Scenario) -> dict[int, int]:
    """Places of the traffic that follows a hotspot, each with that of the entry that it continues."""
    return continuations(translated(scenario).spec.traffic) if scenario.hotspots else {}


def middle_ps(hotspot: AnyHotspot, spec: core.Spec) -> float:
    """The middle of the window of a hotspot."""
    begin, end = window_ps(hotspot, spec)
    return (begin + end) / 2


def window_ps(hotspot: AnyHotspot, spec: core.Spec) -> tuple[int, int]:
    """From when until when a hotspot lasts in the run: its window as far as that goes, or all of it."""
    return within_run(hotspot, spec.run.duration_ps)


def services(spec: core.Spec, layout: Layout, hosts: list[int], at_ps: float) -> list[float]:
    """What the port to each host serves at a time, as a share of the line rate."""
    slower = {
        service.port: service.rate_bps
        for service in spec.switching.services
        if service.from_ps <= at_ps < service.to_ps
    }
    towards = {port.target: i for i, port in enumerate(layout.ports)}
    shares = []
    for host in hosts:
        port = towards[layout.nodes[host]]
        rate = layout.ports[port].rate_bps
        shares.append(slower.get(port, rate) / rate)
    return shares


def demands(spec: core.Spec, layout: Layout, at_ps: float) -> Iterator[tuple[int, Sequence[int], float]]:
    """(sender, receivers, line rates to each of them) of what is offered at a time."""
    for entry in spec.traffic:
        for source in entry.sources:
            if not source.start_ps <= at_ps < source.stop_ps:
                continue
            port = layout.host_port(source.from_)
            assert port is not None, "a host that sends has a port"
            wire = port.wire_ps(round(mean_size_bytes(source)))
            targets = targets_of(source)
            yield source.from_, targets, mean_rate_fps(source.departures) * wire / 1e12 / len(targets)
