"""Scenario files of workloads whose counts are known to the frame, through the simulator."""

from __future__ import annotations

import pytest

from core_columns import columns
from weirlab import _core
from weirlab.scenario import loads

INCAST = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 5, link: {rate: 10 Gbit/s, delay: 0.5 us, framing: none}}
traffic:
  load:
    from: host-[0-3]
    to: host-4
    source: {kind: poisson, load: 49 %, frame_size: 1500 B, stream: {kind: splitmix64, first: 1000}}
run: {duration: 100 ms}
"""
FAT_TREE = """\
weirlab: 1
name: fat-tree
network: {kind: fat-tree, k: 8, link: {rate: 10 Gbit/s, delay: 0.5 us, framing: none}}
traffic:
  load:
    from: "@hosts"
    pattern: {kind: permutation}
    source: {kind: poisson, load: 80 %, frame_size: 1500 B, stream: {kind: splitmix64, first: 1000}}
run: {duration: 2 ms}
"""
SLOTTED = """\
weirlab: 1
name: slotted
network: {kind: star, hosts: 32, link: {rate: 10 Gbit/s, delay: 0.5 us, framing: none}}
traffic:
  load:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform, own: true}
    source: {kind: bernoulli, load: 85 %, frame_size: 64 B, stream: {kind: splitmix64, first: 1000}}
run: {duration: 2 ms}
"""


@pytest.mark.parametrize(
    ("text", "sent", "delivered", "dropped", "packet_hops"),
    [
        (INCAST, 162_614, 83_331, 79_180, 245_943),
        (FAT_TREE, 170_766, 102_064, 61_597, 712_643),
        (SLOTTED, 1_062_448, 1_061_790, 0, 2_123_938),
    ],
    ids=["incast", "fat-tree", "slotted"],
)
def test_the_file_of_a_known_workload_gives_its_counts(
    text: str, sent: int, delivered: int, dropped: int, packet_hops: int
) -> None:
    tables = columns(_core.simulate(loads(text).resolve().spec_json, [1]))
    flows = tables["flows"]
    counts = [int(sum(flows[f"{fate}_frames"])) for fate in ("sent", "delivered", "dropped")]
    assert counts == [sent, delivered, dropped]
    assert int(tables["runs"]["packet_hops"][0]) == packet_hops
