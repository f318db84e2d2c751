"""Bad scenario files: each kind of mistake gets a message that says where, what is wrong, what would do."""

from __future__ import annotations

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import loads

GOOD = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}
traffic:
  load:
    from: host-[0-2]
    to: host-3
    source: {kind: poisson, load: 49 %, frame_size: 1500 B}
run: {duration: 10 ms}
"""

SEARCH = """\
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 10.6 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 400 kframe/s]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 10 s}
"""


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


def complaints(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(text, file="f.yaml")
    return str(caught.value).splitlines()


def test_the_files_that_are_spoilt_here_are_good() -> None:
    assert loads(GOOD).name == "incast"
    assert loads(SEARCH).name == "knee"


SPOILT_FIELDS = {
    "a rate without its unit": (
        "rate: 10 Gbit/s",
        "rate: 10",
        "f.yaml:3:40: network.link.rate: write a rate with its unit, such as '10 Gbit/s' (got '10')",
    ),
    "a unit that does not exist": (
        "duration: 10 ms",
        "duration: 10 msec",
        "f.yaml:9:7: run.duration: 'msec' is not a unit of duration; "
        "units: ps, ns, us, ms, s, min, h (got '10 msec')",
    ),
    "a unit of another quantity": (
        "duration: 10 ms",
        "duration: 10 kB",
        "f.yaml:9:7: run.duration: 'kB' is not a unit of duration: it is one of a size; "
        "units: ps, ns, us, ms, s, min, h (got '10 kB')",
    ),
    "a duration of zero": (
        "duration: 10 ms",
        "duration: 0 s",
        "f.yaml:9:7: run.duration: more than zero is needed (got '0 s')",
    ),
    "a fraction without its per cent sign": (
        "load: 49 %",
        "load: 49",
        "f.yaml:8:29: traffic.load.source.load: a fraction lies between 0 % and 100 % (got '49'); "
        "did you mean '49 %'?",
    ),
    "a word for a number": (
        "hosts: 4",
        "hosts: four",
        "f.yaml:3:23: network.hosts: write a whole number, such as '8' (got 'four')",
    ),
    "no hosts at all": (
        "hosts: 4",
        "hosts: 0",
        "f.yaml:3:23: network.hosts: at least 1 is needed (got '0')",
    ),
    "a list for a number": (
        "hosts: 4",
        "hosts: [4]",
        "f.yaml:3:23: network.hosts: write a whole number, such as '8' (got a list)",
    ),
    "a missing field": (
        "rate: 10 Gbit/s, ",
        "",
        "f.yaml:3:33: network.link.rate: is missing: line rate, such as '10 Gbit/s'",
    ),
    "a misspelt field, which is not told a second time as missing": (
        "rate:",
        "rtae:",
        "f.yaml:3:40: network.link.rtae: unknown field (got '10 Gbit/s'); did you mean 'rate'?",
    ),
    "a field that resembles none": (
        "rate: 10 Gbit/s",
        "rate: 10 Gbit/s, colour: red",
        "f.yaml:3:57: network.link.colour: unknown field (got 'red'); "
        "fields here: rate, delay, framing, loss",
    ),
    "a misspelt section": (
        "run:",
        "rnu:",
        "f.yaml:9:1: rnu: unknown field (got a mapping with duration); did you mean 'run'?",
    ),
    "a misspelt kind inside a union": (
        "kind: poisson",
        "kind: poison",
        "f.yaml:8:14: traffic.load.source.kind: unknown kind 'poison'; did you mean 'poisson'?; "
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, ping, requests, pathload, pbprobe",
    ),
    "a union without its kind": (
        "kind: poisson, ",
        "",
        "f.yaml:8:5: traffic.load.source: say which kind, such as 'kind: constant'; "
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, ping, requests, pathload, pbprobe",
    ),
    "a word for a mapping": (
        "{kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}",
        "star",
        "f.yaml:3:1: network: a mapping is expected here, such as {kind: graph, ...} (got 'star')",
    ),
    "a choice that does not exist": (
        "delay: 0.5 us",
        "framing: ehternet",
        "f.yaml:3:57: network.link.framing: write 'ethernet' or 'none' (got 'ehternet'); "
        "did you mean 'ethernet'?",
    ),
    "a file of another version": (
        "weirlab: 1",
        "weirlab: 2",
        "f.yaml:1:1: weirlab: this version of Weirlab reads 'weirlab: 1' (got '2')",
    ),
    "no version": (
        "weirlab: 1\n",
        "",
        "f.yaml:1:1: weirlab: is missing: version of the file format, such as '1'",
    ),
    "a name with a space": (
        "name: incast",
        "name: in cast",
        "f.yaml:2:1: name: a name is made of letters, digits, '-' and '_' (got 'in cast')",
    ),
    "a host that does not exist": (
        "to: host-3",
        "to: hots-3",
        "f.yaml:7:5: traffic.load.to: no node is called 'hots-3'; did you mean 'host-3'?",
    ),
    "a switch among the senders": (
        "from: host-[0-2]",
        "from: switch-0",
        "f.yaml:6:5: traffic.load.from: only hosts send and receive: switch-0 forwards",
    ),
    "many senders and many receivers": (
        "to: host-3",
        'to: "@hosts"',
        "f.yaml:7:5: traffic.load.to: 3 senders and 4 receivers: say who sends to whom, "
        "with pattern: {kind: pairs}, permutation or uniform",
    ),
    "no receivers": (
        "    to: host-3\n",
        "",
        "f.yaml:5:3: traffic.load: 'to' is missing: the receivers, such as 'to: host-3'",
    ),
    "no load": (
        "load: 49 %, ",
        "",
        "f.yaml:8:5: traffic.load.source: how much? "
        "write 'load: 50 %', 'rate: 300 Mbit/s' or 'rate: 10 kframe/s'",
    ),
    "two loads": (
        "load: 49 %",
        "load: 49 %, rate: 3 Mbit/s",
        "f.yaml:8:41: traffic.load.source.rate: stands beside 'load'; write one of them",
    ),
    "no frame size": (
        ", frame_size: 1500 B",
        "",
        "f.yaml:8:5: traffic.load.source: how long are the frames? "
        "write 'frame_size: 1500 B', 'mix: imix' or 'payload: 1470 B'",
    ),
    "a payload without UDP": (
        "frame_size: 1500 B",
        "payload: 1470 B",
        "f.yaml:8:41: traffic.load.source.payload: only 'transport: {kind: udp}' has a payload; "
        "write 'frame_size' for raw frames",
    ),
    "a weight of zero": (
        "frame_size: 1500 B",
        "mix: {64 B: 0}",
        "f.yaml:8:41: traffic.load.source.mix: "
        "the weight of '64 B' is a whole number of at least 1 (got '0')",
    ),
    "a frame longer than frames are": (
        "frame_size: 1500 B",
        "frame_size: 100 kB",
        "f.yaml:8:5: traffic.load.source: a frame is 1 B to 65535 B long (got 100 kB)",
    ),
    "a sender that is faster than its link while on": (
        "kind: poisson",
        "kind: on-off, mean_on: 1 ms, mean_off: 4 ms",
        "f.yaml:8:5: traffic.load.source: while on, it would send at 2.45 times the line rate; "
        "lengthen 'mean_on'",
    ),
    "a generator that makes no network": (
        "kind: star, hosts: 4",
        "kind: fat-tree, k: 3",
        "f.yaml:3:1: network: k of a fat tree is even and at least 2 (got 3)",
    ),
    "a tree without as many levels of parents": (
        "kind: star, hosts: 4",
        "kind: xgft, children: [2, 2], parents: [1]",
        "f.yaml:3:41: network.parents: as many levels of parents as of children (got 1 and 2)",
    ),
    "no duration": (
        "run: {duration: 10 ms}\n",
        "",
        "f.yaml:1:1: run: how long? write 'run: {duration: 100 ms}'",
    ),
    "a seed that is too large": (
        "duration: 10 ms",
        "duration: 10 ms, seed: 18446744073709551616",
        "f.yaml:9:24: run.seed: less than 2^64 is needed (got '18446744073709551616')",
    ),
    "a rate of zero": (
        "rate: 10 Gbit/s",
        "rate: 0 bit/s",
        "f.yaml:3:40: network.link.rate: more than zero is needed (got '0 bit/s')",
    ),
    "more hosts than fit into a number": (
        "hosts: 4",
        "hosts: 5000000000",
        "f.yaml:3:23: network.hosts: less than 2^32 is needed (got '5000000000')",
    ),
    "more hosts than can be simulated": (
        "hosts: 4",
        "hosts: 4000000000",
        "f.yaml:3:1: network: a star of 4000000000 hosts has 4000000001 nodes; "
        "at most 1048576 can be simulated",
    ),
    "a stop before the start": (
        "to: host-3",
        "to: host-3\n    start: 5 ms\n    stop: 5 ms",
        "f.yaml:9:5: traffic.load.stop: is not after 'start' (5 ms)",
    ),
    "a gap shorter than the clock": (
        "load: 49 %",
        "rate: 18446744073709551615 bit/s",
        "f.yaml:8:5: traffic.load.source: a gap is a number of ps, at least 1 (got 0.0006505213034913027)",
    ),
    "a run longer than time": (
        "duration: 10 ms",
        "duration: 5000 h",
        "f.yaml:9:7: run.duration: a run lasts more than 0 s and at most 4611686.018427387904 s "
        "(got 18000000 s)",
    ),
    "a section twice": (
        "run:",
        "name: again\nrun:",
        "f.yaml:9:1: 'name' stands here twice; first in line 2",
    ),
}


@pytest.mark.parametrize(("before", "after", "message"), SPOILT_FIELDS.values(), ids=SPOILT_FIELDS.keys())
def test_a_spoilt_field_is_told_with_its_place(before: str, after: str, message: str) -> None:
    assert before in GOOD
    assert complaints(GOOD.replace(before, after)) == [message]


ADDITIONS = {
    "a host that ssh would take for an option": (
        "testbed: {kind: ssh, far: -oProxyCommand}",
        "f.yaml:10:22: testbed.far: write a host as ssh takes it, such as 'me@example.net' "
        "(got '-oProxyCommand')",
    ),
    "a testbed that is not told what to build": (
        "testbed: {kind: netns}",
        "f.yaml:10:1: testbed: say what it builds: one of 'router: linux', 'path: emulator' and 'hops'",
    ),
    "a parent by a misspelt word": (
        "extend: base.yaml",
        "f.yaml:10:1: extend: unknown field (got 'base.yaml'); did you mean 'extends'?",
    ),
    "a port that does not exist": (
        "queues: {a: {at: switch-0->host-9, kind: drop-tail, limit: 3 frames}}",
        "f.yaml:10:14: queues.a.at: no port is called 'switch-0->host-9': no node is called 'host-9'; "
        "did you mean 'host-3'?",
    ),
    "two nodes without a link": (
        "queues: {a: {at: host-0->host-1, kind: drop-tail, limit: 3 frames}}",
        "f.yaml:10:14: queues.a.at: no port is called 'host-0->host-1'; ports: host-0->switch-0, "
        "switch-0->host-0, host-1->switch-0, switch-0->host-1, host-2->switch-0, switch-0->host-2, "
        "... (8 in all)",
    ),
    "a node where a port is needed": (
        "queues: {a: {at: host-3, kind: drop-tail, limit: 3 frames}}",
        "f.yaml:10:14: queues.a.at: name ports as 'switch-0->host-3', '@switches->*' or a list of them "
        "(got 'host-3')",
    ),
    "a group of nodes that does not exist": (
        "queues: {a: {at: '@switch->*', kind: drop-tail, limit: 3 frames}}",
        "f.yaml:10:14: queues.a.at: no port is called '@switch->*': no node is called '@switch'; "
        "did you mean '@switches'?",
    ),
    "a limit without a unit": (
        "queues: {a: {at: '*->*', kind: drop-tail, limit: 300}}",
        "f.yaml:10:43: queues.a.limit: write a limit as '150 kB', '300 frames' or 'unlimited' (got '300')",
    ),
    "a record of nothing that is known": (
        "record: {a: {que: switch-0->host-3, every: 1 us}}",
        "f.yaml:10:10: record.a: say what, with one of the fields "
        "queue, flow, tcp, delays, levels, limiter, p_streams, frames; did you mean 'queue'?",
    ),
    "a record of traffic that does not exist": (
        "record: {a: {flow: laod, every: 1 ms}}",
        "f.yaml:10:14: record.a.flow: no traffic is called 'laod'; did you mean 'load'?",
    ),
    "a port that is recorded twice": (
        "record: {a: {queue: switch-0->*, every: 1 ms}, b: {queue: switch-0->host-3, every: 1 ms}}",
        "f.yaml:10:48: record.b: 'switch-0->host-3' is recorded twice, also by 'a'",
    ),
    "a measure by the name that belongs to searches": (
        "measure: {a: {kind: throughput, of: load}}",
        "f.yaml:10:15: measure.a.kind: 'throughput' is what a search finds (RFC 1242); "
        "the rate that arrives is 'delivered-rate'",
    ),
    "a measure of what is not recorded": (
        "measure: {a: {kind: utilisation, of: switch-0->host-3, window: 1 ms .. 5 ms}}",
        "f.yaml:10:56: measure.a.window: needs 'switch-0->host-3' over time; "
        "add an entry such as {queue: switch-0->host-3, every: 100 us} to 'record'",
    ),
    "a percentile of delays that are not recorded": (
        "measure: {a: {kind: delay-percentile, of: load, percentile: 99 %}}",
        "f.yaml:10:11: measure.a: needs the delays of 'load'; "
        "add an entry such as {delays: load} to 'record'",
    ),
    "a window beside the recorded intervals": (
        "record: {q: {queue: switch-0->host-3, every: 2 ms}}\n"
        "measure: {a: {kind: max-queue, of: switch-0->host-3, window: 1 ms .. 5 ms}}",
        "f.yaml:11:54: measure.a.window: does not begin and end on intervals of 2 ms, "
        "in which 'switch-0->host-3' is recorded",
    ),
    "a window after the end": (
        "record: {q: {queue: switch-0->host-3, every: 1 ms}}\n"
        "measure: {a: {kind: max-queue, of: switch-0->host-3, window: 5 ms .. 50 ms}}",
        "f.yaml:11:54: measure.a.window: ends after the run (10 ms)",
    ),
    "a control scheme that does not exist": (
        "control: {qcm: {gain: 3}}",
        "f.yaml:10:11: control.qcm: unknown field (got a mapping with gain); did you mean 'qcn'?",
    ),
    "a level that is not legal": (
        "study: {factors: {traffic.load.source.load: [10 %, 120 %]}}",
        'f.yaml:10:19: study.factors."traffic.load.source.load".120 %: traffic.load.source.load: '
        "a fraction lies between 0 % and 100 % (got '120 %')",
    ),
    "a level of a path that leads nowhere": (
        "study: {factors: {traffic.laod.source.load: [10 %]}}",
        'f.yaml:10:19: study.factors."traffic.laod.source.load".10 %: traffic.laod.source.load: '
        "there is no 'laod' in 'traffic'; did you mean 'load'?",
    ),
    "a named level that is no set of assignments": (
        "study: {factors: {size: {small: 3}}}",
        "f.yaml:10:19: study.factors.size: level 'small' is a mapping of paths to values, "
        "such as {run.seed: 2}, or {} for no change",
    ),
    "a factor without levels": (
        "study: {factors: {run.seed: []}}",
        'f.yaml:10:19: study.factors."run.seed": a factor needs at least one level',
    ),
    "an empty section": (
        "record:",
        "f.yaml:10:1: record: a mapping is expected here: "
        "what to write down besides the totals (got nothing)",
    ),
    "a campaign beside a search": (
        "campaign: {cycles: 2, cycle: [{name: a, run: load, for: 1 s}]}\n"
        + SEARCH[SEARCH.index("search:") :],
        "f.yaml:10:1: campaign: stands beside 'search'; a scenario has one of them",
    ),
}


@pytest.mark.parametrize(("addition", "message"), ADDITIONS.values(), ids=ADDITIONS.keys())
def test_an_addition_that_does_not_fit_is_told_with_its_place(addition: str, message: str) -> None:
    assert message in complaints(f"{GOOD}{addition}\n")
    if "campaign" not in addition:
        assert complaints(f"{GOOD}{addition}\n") == [message]


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


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    spoilt = (
        GOOD.replace("hosts: 4", "hosts: four")
        .replace("poisson", "poison")
        .replace("10 ms", "10")
        .replace("run:", "rubbish: 1\nrun:")
    )
    assert complaints(spoilt) == [
        "f.yaml:3:23: network.hosts: write a whole number, such as '8' (got 'four')",
        "f.yaml:8:14: traffic.load.source.kind: unknown kind 'poison'; did you mean 'poisson'?; "
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, ping, requests, pathload, pbprobe",
        "f.yaml:9:1: rubbish: unknown field (got '1'); fields here: weirlab, name, description, testbed, "
        "network, queues, control, adapters, traffic, hotspots, run, record, ... (17 in all)",
        "f.yaml:10:7: run.duration: write a duration with its unit, such as '0.5 us' (got '10')",
    ]


def test_a_spoilt_section_does_not_hide_wrong_names_in_another() -> None:
    spoilt = GOOD.replace("10 ms", "10").replace("to: host-3", "to: host-33")
    assert complaints(spoilt) == [
        "f.yaml:7:5: traffic.load.to: no node is called 'host-33'; did you mean 'host-3'?",
        "f.yaml:9:7: run.duration: write a duration with its unit, such as '0.5 us' (got '10')",
    ]


def test_a_file_of_another_version_is_not_judged_further() -> None:
    assert complaints(GOOD.replace("weirlab: 1", "weirlab: 2").replace("hosts", "hsots")) == [
        "f.yaml:1:1: weirlab: this version of Weirlab reads 'weirlab: 1' (got '2')"
    ]


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
        ["f.yaml:3:86: network.links.l.join: 3 items stand here; at most 2 may"],
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
    assert complaint.startswith("f.yaml:5:3: traffic.load: there is no way from 'host-0' to 'host-3'")


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
