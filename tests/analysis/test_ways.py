"""Links of trees carry what the routing of the network sends over them."""

import pytest

from weirlab import _core, run, spec as core
from weirlab.analysis.queues import controlled_queues, hot_ones
from weirlab.scenario import Scenario, load
from weirlab.scenario.network.layout import layout_of
from weirlab.scenario.resolve import translated

TREE = """\
weirlab: 1
name: tree
network:
  kind: xgft
  children: [3, 5]
  parents: [1, 3]
  link: {rate: 40 Gbit/s, framing: none, delay: 51.2 ns}
adapters:
  all: {at: "@hosts", queues: voq-round-robin}
control:
  bcn:
    congestion_point: {at: "@switches->*", q_eq: 64 frames, frame_size: 256 B, w: 1, sample_every: 12800 B}
    reaction_point: {at: "@hosts", gi: 1, gd: 0.004, ru: 40 Mbit/s, min_rate: 40 Mbit/s}
traffic:
  background:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform}
    source: {kind: bursts, load: 70 %, frame_size: 256 B}
run: {duration: 614.4 us, seed: 7, engine: slotted}
"""
HOT = """\
hotspots:
  hot: {kind: input-generated, at: host-14, degree: 60 %, window: 51.2 us .. 563.2 us}
"""
ROUTINGS = ("d-mod-k", "destination-hash", "flow-hash")


@pytest.fixture
def tree(tmp_path):
    """The tree, with what is added to it."""

    def made(more: str = "", **changes) -> Scenario:
        (tmp_path / "tree.yaml").write_text(TREE + more)
        return load(tmp_path / "tree.yaml").assign(changes)

    return made


def test_only_the_way_of_d_mod_k_to_the_hot_host_is_hot(tree):
    # Hosts 0 to 8 send to host 14 at line rate, whose number mod 3 says: over level2-2. The six others send
    # 0.05 to each host: three of them from another switch.
    queues = controlled_queues(tree(HOT))
    found = {queue.port: queue.severity for queue in queues}
    down = [found[f"level2-{i}->level1-4"] for i in range(3)]
    assert down == pytest.approx([0.15, 0.15, 9.15])
    assert found["level1-4->host-14"] == pytest.approx(9.25)
    hot = {queue.port: queue.point.flows for queue in hot_ones(queues)}
    assert hot == {
        "level1-4->host-14": 9,
        "level2-2->level1-4": 9,
        "level1-0->level2-2": 3,
        "level1-1->level2-2": 3,
        "level1-2->level2-2": 3,
    }


@pytest.mark.parametrize("routing", ROUTINGS)
def test_links_are_asked_for_what_a_run_carries(tree, routing):
    scenario = tree(**{"network.routing": routing, "traffic.background.source.load": "40 %"})
    records = run(scenario).records
    ports = records["ports"].join(records["port_names"], on="port")
    carried = {row["name"]: row["busy_ps"] / scenario.run.duration.ps for row in ports.iter_rows(named=True)}
    asked = {queue.port: queue.severity for queue in controlled_queues(scenario)}
    inner = {port: share for port, share in asked.items() if "host" not in port}
    assert inner == pytest.approx({port: carried[port] for port in inner}, abs=0.03)
    # Spread evenly, each would be asked for 0.4 x 12/14.
    if routing != "d-mod-k":
        assert max(abs(share - 0.4 * 12 / 14) for share in inner.values()) > 0.06


def test_hashes_of_the_destination_bring_all_over_one_top_switch_and_those_of_flows_over_several(tree):
    tops = {}
    for routing in ROUTINGS:
        network = network_of(tree(**{"network.routing": routing}))
        layout = layout_of(network)
        ways = _core.paths(network.json(), [(sender, 14) for sender in range(12)])
        assert all(len(way) == 4 for way in ways)
        tops[routing] = {
            layout.ports[port].source
            for way in ways
            for port in way
            if layout.ports[port].target == "level1-4"
        }
    assert tops["d-mod-k"] == {"level2-2"}
    assert len(tops["destination-hash"]) == 1
    assert len(tops["flow-hash"]) > 1


def test_a_host_with_several_links_takes_one_to_itself(tree):
    network = core.NetworkXgft(**{**vars(network_of(tree())), "children": [3], "parents": [2]})
    (way,) = _core.paths(network.json(), [(1, 1)])
    names = [layout_of(network).ports[port] for port in way]
    assert [(port.source, port.target) for port in names] == [("host-1", "level1-1"), ("level1-1", "host-1")]


@pytest.mark.parametrize("pair", [(0, 18), (15, 0), (0, 10**6)])
def test_ways_lead_from_host_to_host(tree, pair):
    with pytest.raises(ValueError, match=f"no way joins hosts {pair[0]} and {pair[1]}"):
        _core.paths(network_of(tree()).json(), [pair])


def network_of(scenario: Scenario) -> core.Network:
    return translated(scenario).spec.network
