"""Senders of Rapid that take a link for the bottleneck that is none."""

from __future__ import annotations

from weirlab.scenario import Scenario
from weirlab.scenario.network.layout import Layout, Port, layout_of, plan_network
from weirlab.scenario.traffic import Tcp, Traffic
from weirlab.scenario.traffic.flows import flows_of
from weirlab.scenario.traffic.rapid import FluidEstimator, Rapid
from weirlab.units import Rate


def unknown_bottlenecks(scenario: Scenario) -> list[str]:
    """A sentence for each entry whose estimator `fluid` is told no bottleneck though a link on the way is
    slower than the link of the sender; nothing without a network."""
    unaware = {name: entry for name, entry in scenario.traffic.items() if _takes_own_link(entry)}
    if not unaware or scenario.network is None:
        return []
    layout = layout_of(plan_network(scenario.network).spec)
    slowest = {name: _slower_on_the_way(entry, layout) for name, entry in unaware.items()}
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


def _slower_on_the_way(entry: Traffic, layout: Layout) -> Port | None:
    """The slowest port on the ways of an entry that is slower than the link of its sender there."""
    ways = (
        (flow.source, layout.narrowest(flow.source, target))
        for flow in flows_of(entry, layout)
        for target in flow.targets
    )
    slower = [
        port
        for source, port in ways
        if port is not None and (own := layout.host_port(source)) is not None and port.rate_bps < own.rate_bps
    ]
    return min(slower, key=lambda port: port.rate_bps, default=None)
