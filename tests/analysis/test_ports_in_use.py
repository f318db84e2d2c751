"""Which ports traffic can come to, by the definition: those on a shortest path of a pair."""

import pytest

from weirlab.analysis.headroom import PortsInUse, data_sent, everything_sent
from weirlab.analysis.routes import Routes
from weirlab.scenario import load
from weirlab.scenario.network.layout import layout_of
from weirlab.scenario.resolve import translated

SCENARIOS = [
    "incast",
    "slotted-switch",
    "link-down",
    "pause-victim",
    "tcp-dumbbell",
    "zrl-full",
    "dctcp-incast",
]


@pytest.mark.parametrize("sent", [data_sent, everything_sent])
@pytest.mark.parametrize("name", SCENARIOS)
def test_ports_in_use_and_their_receivers_are_those_on_shortest_paths(name, sent):
    spec = translated(load(name)).spec
    layout = layout_of(spec.network)
    routes = Routes(layout, spec.network)
    pairs = {(layout.nodes[a], layout.nodes[b]) for a, receivers in sent(spec) for b in receivers}
    used = PortsInUse(spec, layout, sent(spec))
    for port in range(len(layout.ports)):
        receivers = {b for a, b in pairs if routes.share(a, b, port) > 0}
        assert used.receivers(port) == receivers
        assert (port in used) == bool(receivers)


def test_ports_that_few_pairs_pass_are_found_in_a_network_with_many():
    """Senders with more receivers than are tried first, of which one alone is on the other side."""
    spec = translated(load("fat-tree-permutation", {"network.k": "4"})).spec
    layout = layout_of(spec.network)
    hosts = [node for node, name in enumerate(layout.nodes) if name in layout.hosts]
    near, far = hosts[1], hosts[-1]
    used = PortsInUse(spec, layout, [(hosts[0], [near] * 50 + [far] + [near] * 50)])
    routes = Routes(layout, spec.network)
    for port in range(len(layout.ports)):
        passed = any(routes.share(layout.nodes[hosts[0]], layout.nodes[b], port) > 0 for b in (near, far))
        assert (port in used) == passed
