"""What the testbed of a Linux router refuses of a scenario; no privilege is needed to be told."""

from __future__ import annotations

import pytest

from weirlab.errors import UnsupportedError
from weirlab.scenario import loads
from weirlab.testbed import open_testbed
from weirlab.testbed.netns import refusals

ROUTER = """
weirlab: 1
name: router-ndr
testbed: {kind: netns, router: linux}
traffic:
  offered:
    from: sender
    to: receiver
    source: {kind: constant, frame_size: 64 B}
    transport: {kind: udp}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 400 kframe/s]
  goals: {NDR: {loss: 0 %, width: 0.5 %}}
  trial: {duration: 1 s, settle: 0.2 s}
"""


def test_the_search_for_the_rate_of_a_router_is_not_refused():
    assert refusals(loads(ROUTER)) == []


def test_load_both_ways_is_not_refused():
    both = ROUTER.replace(
        "from: sender\n    to: receiver", "from: '@hosts'\n    pattern: {kind: permutation}"
    )
    assert refusals(loads(both)) == []


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("kind: udp", "kind: raw", "traffic.offered.transport", "forwards IP packets"),
        ("kind: constant", "kind: poisson", "traffic.offered.source.kind", "constant load"),
        ("from: sender\n    to: receiver", "from: receiver\n    to: sender", "traffic.offered", "both ways"),
        ("64 B", "32 B", "traffic.offered.source.frame_size", "64 to 16384 B"),
        ("frame_size: 64 B", "payload: 9000 B", "traffic.offered.source.frame_size", "got 9046 B"),
        ("    transport", "    start: 1 s\n    transport", "traffic.offered.start", "whole duration"),
        (
            "search:\n",
            "  other: {from: sender, to: receiver, source: {kind: constant, rate: 1 kframe/s, "
            "frame_size: 64 B}}\nsearch:\n",
            "traffic.other",
            "no other traffic",
        ),
    ],
)
def test_a_part_that_a_router_cannot_honour_is_named_with_its_place(old, new, place, words):
    assert old in ROUTER
    (problem,) = refusals(loads(ROUTER.replace(old, new)))
    assert problem.path == place
    assert words in problem.message
    assert problem.line > 0


def test_a_scenario_is_refused_before_anything_is_built_or_asked_of_the_machine():
    with pytest.raises(UnsupportedError, match="forwards IP packets"):
        open_testbed(loads(ROUTER.replace("kind: udp", "kind: raw")))
