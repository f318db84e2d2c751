"""Senders of Rapid that take a link for the bottleneck that is none."""

from __future__ import annotations

import json

from weirlab.analysis.routes import Routes
from weirlab.scenario import Scenario
from weirlab.scenario.flows import flows_of
from weirlab.scenario.layout import Layout, Port, layout_of
from weirlab.scenario.rapid import FluidEstimator, Rapid
from weirlab.scenario.resolve import translated
from weirlab.scenario.traffic import Tcp, Traffic
from weirlab.units import Rate

__all__ = ["unknown_bottlenecks"]


def unknown_bottlenecks(scenario: Scenario) -> list[str]:
    """A sentence for each entry whose estimator `fluid` is told no bottleneck though a link on the way is
    slower than the link of the sender.

    Nothing without a network or a time to run. Raises ScenarioError where the scenario is no network."""
    unaware = {name: entry for name, entry in scenario.traffic.items() if _takes_own_link(entry)}
    if not unaware or scenario.network is None or scenario.run.duration is None:
        return []
    network = json.loads(translated(scenario).spec_json)["network"]
    layout = layout_of(network)
    routes = Routes(layout, network)
    slowest = {name: _slower_on_the_way(entry, layout, routes) for name, entry in unaware.items()}
    return [
        f"traffic.{name}.transport.congestion_control.estimator: 'fluid' takes the rate of the sender's link "
        f"for that of the bottleneck, and {port.name} has {Rate(port.rate_bps)}: estimates are wrong; write "
        f"'estimator: {{kind: fluid, bottleneck: {Rate(port.rate_bps)}}}'"
        for name, port in slowest.items()
        if port is not None
    ]


def _takes_own_link(entry: Traffic) -> bool:
    if not isinstance(entry.transport, Tcp) or not isinstance(entry.transport.congestion_control, Rapid):
        return False
    estimator = entry.transport.congestion_control.estimator
    return isinstance(estimator, FluidEstimator) and estimator.bottleneck is None


def _slower_on_the_way(entry: Traffic, layout: Layout, routes: Routes) -> Port | None:
    """The slowest port on the ways of an entry that is slower than the senders' own links."""
    flows = flows_of(entry, layout)
    own = [port.rate_bps for flow in flows if (port := layout.host_port(flow.source)) is not None]
    slower = [p for p, port in enumerate(layout.ports) if port.rate_bps < min(own, default=0)]
    used = [
        layout.ports[p]
        for p in slower
        if any(
            routes.share(layout.nodes[flow.source], layout.nodes[target], p) > 0.0
            for flow in flows
            for target in flow.targets
        )
    ]
    return min(used, key=lambda port: port.rate_bps, default=None)
