"""Bad searches: each kind of mistake gets a message that says where, what is wrong, what would do."""

from __future__ import annotations

import pytest

from bad_files import SEARCH, complaints
from weirlab.scenario import loads


def test_the_search_that_is_spoilt_here_is_good() -> None:
    assert loads(SEARCH).name == "knee"


SPOILT_SEARCHES = {
    "a path that is no rate": (
        "vary: traffic.offered.source.rate",
        "vary: traffic.offred.source.rate",
        "f.yaml:6:3: search.vary: there is no rate at 'traffic.offred.source.rate'; "
        "did you mean 'traffic.offered.source.rate'?",
    ),
    "a load beside the rate that is varied": (
        "frame_size: 64 B",
        "frame_size: 64 B, load: 3 %",
        "f.yaml:4:92: traffic.offered.source.load: is what the search varies as 'rate'; leave it out",
    ),
    "loads in the wrong order": (
        "[10 kframe/s, 400 kframe/s]",
        "[400 kframe/s, 10 kframe/s]",
        "f.yaml:7:3: search.between: the first end of a range is less than the second "
        "(got '400 kframe/s' and '10 kframe/s')",
    ),
    "a share of a line rate that the testbed does not have": (
        "[10 kframe/s, 400 kframe/s]",
        "[1 %, 100 %]",
        "f.yaml:7:3: search.between: this testbed has no line rate; "
        "write frame rates, such as [10 kframe/s, 400 kframe/s]",
    ),
    "no goals": (
        "goals: {NDR: {loss: 0 %}}",
        "goals: {}",
        "f.yaml:8:3: search.goals: at least one goal is needed, such as NDR: {loss: 0 %, width: 0.5 %}",
    ),
    "a goal that asks for nothing": (
        "{NDR: {loss: 0 %}}",
        "{NDR: {width: 1 %}}",
        "f.yaml:8:11: search.goals.NDR: asks for nothing; write 'loss: 0 %', or one of the presets rfc2544, "
        "tst009, csit-ndr, csit-pdr",
    ),
    "a preset that does not exist": (
        "{NDR: {loss: 0 %}}",
        "{NDR: {preset: csit-nrd}}",
        "f.yaml:8:17: search.goals.NDR.preset: write 'rfc2544', 'tst009', 'csit-ndr' or 'csit-pdr' "
        "(got 'csit-nrd'); did you mean 'csit-ndr'?",
    ),
    "a loss ratio beside a preset": (
        "{NDR: {loss: 0 %}}",
        "{NDR: {preset: csit-ndr, loss: 1 %}, PDR: {loss: 0.5 %}}",
        "f.yaml:8:35: search.goals.NDR.loss: is part of the preset 'csit-ndr'; leave out the one or the "
        "other",
    ),
    "a duration beside presets alone": (
        "{NDR: {loss: 0 %}}",
        "{NDR: {preset: rfc2544}}",
        "f.yaml:9:11: search.trial.duration: changes nothing: each goal has the trials of its preset; "
        "leave it out",
    ),
    "no duration of the final trials": (
        "trial: {duration: 10 s}",
        "trial: {}",
        "f.yaml:9:3: search.trial: how long is a final trial? write 'trial: {duration: 10 s}'",
    ),
    "an exceed ratio where one trial decides": (
        "goals: {NDR: {loss: 0 %}}",
        "algorithm: {kind: binary}\n  goals: {NDR: {loss: 0 %, exceed: 50 %}}",
        "f.yaml:9:28: search.goals.NDR.exceed: binary decides about a load by one trial; take the algorithm "
        "'weir' or 'mlr'",
    ),
    "an exceed ratio without the sum that it is a share of": (
        "{NDR: {loss: 0 %}}",
        "{NDR: {loss: 0 %, exceed: 50 %}}",
        "f.yaml:8:28: search.goals.NDR.exceed: is a share of 'duration_sum', which is missing: how long do "
        "the trials of a load last together? write both, such as 'exceed: 50 %, duration_sum: 21 s' with "
        "trials of 1 s, or leave this out",
    ),
    "a duration sum of less than one trial": (
        "{NDR: {loss: 0 %}}",
        "{NDR: {loss: 0 %, exceed: 50 %, duration_sum: 5 s}, TST: {preset: tst009}}",
        "f.yaml:8:42: search.goals.NDR.duration_sum: is shorter than one final trial (10 s); write that or "
        "more, or leave this out",
    ),
    "a preset that one trial does not decide": (
        "goals: {NDR: {loss: 0 %}}",
        "algorithm: {kind: mdr}\n  goals: {NDR: {preset: tst009}, PDR: {loss: 1 %}}",
        "f.yaml:9:17: search.goals.NDR.preset: mdr decides about a load by one trial; take the algorithm "
        "'weir' or 'mlr'",
    ),
    "a first trial of weir that is longer than the last": (
        "trial:",
        "algorithm: {kind: weir, initial_duration: 20 s}\n  trial:",
        "f.yaml:9:27: search.algorithm.initial_duration: is longer than the final trials (10 s)",
    ),
    "a width of zero": (
        "loss: 0 %",
        "loss: 0 %, width: 0 %",
        "f.yaml:8:28: search.goals.NDR.width: a width from 0.0001 % to below 100 % is needed",
    ),
    "an algorithm that does not exist": (
        "trial:",
        "algorithm: {kind: wier}\n  trial:",
        "f.yaml:9:15: search.algorithm.kind: unknown kind 'wier'; did you mean 'weir'?; kinds: binary, mdr, "
        "mlr, weir",
    ),
    "a first trial longer than the last": (
        "trial:",
        "algorithm: {kind: mdr, initial_duration: 20 s}\n  trial:",
        "f.yaml:9:26: search.algorithm.initial_duration: is longer than the final trials (10 s)",
    ),
    "a device that does not exist": (
        "kind: knee",
        "kind: nee",
        "f.yaml:3:31: testbed.device.kind: unknown kind 'nee'; did you mean 'knee'?; "
        "kinds: knee, ip4-published, vhost-published, random-drops, gradual, deep-buffer, warm-up, "
        "inversion, regime-switch",
    ),
    "a device that loses before it begins to": (
        "kind: knee, capacity: 10.6 Mframe/s",
        "kind: gradual, onset: 20 Mframe/s",
        "f.yaml:3:46: testbed.device.onset: is not below the capacity (10 Mframe/s)",
    ),
    "a device without capacity": (
        "capacity: 10.6 Mframe/s",
        "capacity: 0 frame/s",
        "f.yaml:3:43: testbed.device.capacity: more than zero is needed (got '0 frame/s')",
    ),
    "a network beside a device": (
        "search:",
        "network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}\nsearch:",
        "f.yaml:5:1: network: a device has its own network, with the hosts 'sender' and 'receiver'; "
        "leave this out",
    ),
    "a device without a search": (
        SEARCH[SEARCH.index("search:") :],
        "run: {duration: 1 s}\n",
        "f.yaml:3:1: testbed: a device is measured by a search; write 'search', or a network to simulate",
    ),
}


@pytest.mark.parametrize(("before", "after", "message"), SPOILT_SEARCHES.values(), ids=SPOILT_SEARCHES.keys())
def test_a_spoilt_search_is_told_with_its_place(before: str, after: str, message: str) -> None:
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
