"""Bad searches: each kind of mistake gets a message that says where, what is wrong, what would do."""

from __future__ import annotations

import pytest

from bad_files import SEARCH, cases, complaints
from weirlab.scenario import loads


def test_the_search_that_is_spoilt_here_is_good() -> None:
    assert loads(SEARCH).name == "knee"


SPOILT_SEARCHES = cases("bad-searches")


@pytest.mark.parametrize(("before", "after", "message"), SPOILT_SEARCHES.values(), ids=SPOILT_SEARCHES.keys())
def test_a_spoilt_search_is_reported_with_its_place(before: str, after: str, message: str) -> None:
    assert before in SEARCH
    assert message in complaints(SEARCH.replace(before, after))


def test_a_load_that_the_source_cannot_make_is_told_before_the_search() -> None:
    spoilt = """\
weirlab: 1
name: slots
network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}
traffic: {offered: {from: host-0, to: host-1, source: {kind: bernoulli, frame_size: 1480 B}}}
search:
  vary: traffic.offered.source.rate
  between: [1 kframe/s, 100 kframe/s]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 10 ms}
"""
    assert complaints(spoilt) == [
        "f.yaml:4:47: traffic.offered.source: at the greatest load of the search: "
        "more than a frame in each slot would be needed (1.2)"
    ]
