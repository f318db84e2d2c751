"""Bad networks and what does not fit into one: where, what is wrong, what would do."""

from __future__ import annotations

import pytest

from bad_files import GOOD, complaints
from weirlab.scenario import loads

RAPID = """\
weirlab: 1
name: probing
network:
  kind: graph
  link: {rate: 10 Gbit/s, delay: 0.5 us}
  nodes: {a: {kind: host}, b: {kind: host}, s: {kind: switch}}
  links: {up: {join: [a, s]}, down: {join: [s, b], rate: 1 Gbit/s}}
traffic:
  rapid:
    from: a
    to: b
    source: {kind: bulk}
    transport:
      kind: tcp
      congestion_control:
        {kind: rapid, n: 80, rho: 3, estimator: {kind: fluid}, denoising: {kind: batches, within: 6 us}}
run: {duration: 10 ms}
"""


GRAPHS = {
    "a link to a node that does not exist": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host}}, links: {l: {join: [a, c]}}}",
        ["f.yaml:3:96: network.links.l.join.1: no node is called 'c'; nodes: a"],
    ),
    "a kind of node that does not exist": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: hots}}, links: {}}",
        ["f.yaml:3:60: network.nodes.a.kind: write 'host' or 'switch' (got 'hots'); did you mean 'host'?"],
    ),
    "links without a rate": (
        "{kind: graph, nodes: {a: {kind: host}, b: {kind: host}}, links: {l: {join: [a, b]}}}",
        ["f.yaml:3:75: network.links.l: has no rate; write it here, or for all links as 'network.link.rate'"],
    ),
    "sides of different length": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host, count: 2}, "
        "b: {kind: switch}}, links: {l: {join: [a-*, b], pair: by-index}}}",
        ["f.yaml:3:115: network.links.l.join: by-index needs as many nodes on both sides (got 2 and 1)"],
    ),
    "latency of a host": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host, latency: 1 us}, b: {kind: host}}, "
        "links: {l: {join: [a, b]}}}",
        ["f.yaml:3:72: network.nodes.a.latency: a host has no latency; it belongs to switches"],
    ),
    "three sides": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host}}, links: {l: {join: [a, a, a]}}}",
        ["f.yaml:3:86: network.links.l.join: 3 items are here; at most 2 may"],
    ),
    "more nodes than can be simulated": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host, count: 4000000000}}, links: {}}",
        ["f.yaml:3:48: network.nodes: 4000000000 nodes are more than a network has (1048576)"],
    ),
    "more links than can be simulated": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host, count: 4000}}, "
        "links: {l: {join: [a-*, a-*]}}}",
        ["f.yaml:3:99: network.links.l.join: 4000 x 4000 links are too many (at most 1048576)"],
    ),
    "one name for two nodes": (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {a: {kind: host, count: 2}, a-1: {kind: host}}, "
        "links: {l: {join: [a-0, a-1]}}}",
        ["f.yaml:3:83: network.nodes.a-1: two nodes would be called 'a-1'"],
    ),
}


@pytest.mark.parametrize(("network", "messages"), GRAPHS.values(), ids=GRAPHS.keys())
def test_a_spoilt_graph_is_told_with_its_place(network: str, messages: list[str]) -> None:
    star = "{kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}"
    assert complaints(GOOD.replace(star, network)) == messages


def test_more_pairs_than_can_be_simulated_are_told() -> None:
    spoilt = GOOD.replace("hosts: 4", "hosts: 5000").replace("host-[0-2]", '"@hosts"')
    spoilt = spoilt.replace("to: host-3", 'to: "@hosts"\n    pattern: {kind: uniform}')
    assert complaints(spoilt) == [
        "f.yaml:7:5: traffic.load.to: 5000 senders and 5000 receivers are more than 4194304 pairs; "
        "select fewer"
    ]


def test_a_host_out_of_reach_is_told_by_the_engine() -> None:
    network = (
        "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {host: {kind: host, count: 4}, b: {kind: switch}}, "
        "links: {l: {join: ['host-[0-2]', b]}}}"
    )
    star = "{kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}"
    (complaint,) = complaints(GOOD.replace(star, network))
    assert complaint.startswith("f.yaml:7:5: traffic.load.to: there is no way from 'host-0' to 'host-3'")


def test_batches_of_rapid_are_shorter_than_a_packet_on_the_narrowest_link_of_its_way() -> None:
    # 1448 B + 70 B + 20 B of preamble and gap: 12.304 us at 1 Gbit/s, 1.2304 us at 10 Gbit/s.
    loads(RAPID)
    loads(RAPID.replace("6 us", "12.303 us"))
    for text in (RAPID.replace("6 us", "12.304 us"), RAPID.replace(", rate: 1 Gbit/s", "")):
        [line, *_] = [line for line in complaints(text) if "within" in line]
        assert "traffic.rapid.transport.congestion_control.denoising.within" in line
        assert "the narrowest link of its way" in line
    assert "12.304 us on s->b (1 Gbit/s)" in complaints(RAPID.replace("6 us", "1 s"))[0]
    assert "1.2304 us on a->s (10 Gbit/s)" in complaints(RAPID.replace(", rate: 1 Gbit/s", ""))[0]
