"""Bad scenario files: each kind of mistake gets a message that says where, what is wrong, what would do."""

from __future__ import annotations

import pytest

from bad_files import GOOD, SEARCH, complaints
from weirlab.fields.base import kind_of
from weirlab.measures.registry import MEASURES
from weirlab.scenario import loads
from weirlab.scenario.file.problems import did_you_mean


def test_the_files_that_are_spoilt_here_are_good() -> None:
    assert loads(GOOD).name == "incast"


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
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, messages, flow-table, collective, goal, "
        "ping, requests, stamp, pathload, pbprobe",
    ),
    "a union without its kind": (
        "kind: poisson, ",
        "",
        "f.yaml:8:5: traffic.load.source: say which kind, such as 'kind: constant'; "
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, messages, flow-table, collective, goal, "
        "ping, requests, stamp, pathload, pbprobe",
    ),
    "a list for a mapping": (
        "{kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}",
        "[star]",
        "f.yaml:3:1: network: a mapping is expected here, such as {kind: graph, ...} (got a list)",
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
        "f.yaml:8:41: traffic.load.source.rate: cannot be combined with 'load'; write one of them",
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
        "f.yaml:3:27: network.k: k of a fat tree is even and at least 2 (got 3)",
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
        "f.yaml:3:23: network.hosts: a star of 4000000000 hosts has 4000000001 nodes; "
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
        "f.yaml:10:22: testbed.far: write a name or an address, with ssh also 'me@example.net' "
        "(got '-oProxyCommand')",
    ),
    "a port of TCP that there is not": (
        "testbed: {kind: ssh, far: far.example.net, port: 70000}",
        "f.yaml:10:44: testbed.port: a port is a number from 1 to 65535 (got '70000')",
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
        "f.yaml:10:15: measure.a.kind: unknown kind 'throughput'; throughput is what a search finds "
        "(RFC 1242); the rate that arrives is 'delivered-rate'; kinds: "
        + ", ".join(kind_of(model) for model in MEASURES),
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
        "f.yaml:11:54: measure.a.window: ends after the run (10 ms); end it by then, or leave it out",
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
    "two factors that set the same": (
        "study: {factors: {queues.q.limit: [15 kB, 100 kB], "
        "buffer: {none: {}, small: {queues.q.limit: 5 kB}}}}\n"
        "queues: {q: {at: switch-0->*, kind: drop-tail, limit: 1 MB}}",
        "f.yaml:10:52: study.factors.buffer: sets 'queues.q.limit', as does factor 'queues.q.limit': points "
        "would have one value under the names of both; set it in one, or 'exclude' what sets it twice",
    ),
    "a factor that replaces what another one sets a part of": (
        "study: {factors: {traffic.load.source.load: [10 %], "
        "size: {a: {traffic.load.source: {kind: poisson, load: 1 %, frame_size: 64 B}}}}}",
        "f.yaml:10:53: study.factors.size: sets 'traffic.load.source', and factor 'traffic.load.source.load' "
        "sets 'traffic.load.source.load': points would have one value under the names of both; set it in "
        "one, or 'exclude' what sets it twice",
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
        "f.yaml:10:1: campaign: cannot be combined with 'search'; a scenario has one of them",
    ),
}


@pytest.mark.parametrize(("addition", "message"), ADDITIONS.values(), ids=ADDITIONS.keys())
def test_an_addition_that_does_not_fit_is_told_with_its_place(addition: str, message: str) -> None:
    assert message in complaints(f"{GOOD}{addition}\n")
    if "campaign" not in addition:
        assert complaints(f"{GOOD}{addition}\n") == [message]


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
        "kinds: constant, poisson, bernoulli, on-off, bursts, bulk, messages, flow-table, collective, goal, "
        "ping, requests, stamp, pathload, pbprobe",
        "f.yaml:9:1: rubbish: unknown field (got '1'); fields here: weirlab, name, description, testbed, "
        "network, queues, buffers, control, adapters, traffic, hotspots, events, run, record, measure, "
        "search, campaign, study, extends",
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


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("pfc: {}", "is 'lossless: {}' of a pool in 'buffers'"),
        ("queues: {a: {at: switch-0->*, kind: wred}}", "RED is the kind 'red' of a queue"),
        ("queues: {a: {at: switch-0->*, kind: dwrr}}", "'fq-codel' serves flows in turns"),
        ("control: {a: {kind: pfc}}", "'control: {pause: ...}' holds all frames of a link"),
    ],
)
def test_words_of_other_tools_are_answered_with_what_there_is_here(section: str, words: str) -> None:
    (complaint,) = complaints(GOOD + section + "\n")
    assert words in complaint
    assert "did you mean" not in complaint


def test_an_unknown_field_is_answered_with_all_fields_there_are() -> None:
    (complaint,) = complaints(GOOD + "rubbish: 1\n")
    for section in ("weirlab", "network", "measure", "search", "campaign", "study", "extends"):
        assert section in complaint


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        (
            'out: {kind: drop-tail, ports: "switch-0->*", limit: 10 frames}',
            "queues.out.ports: unknown field (got 'switch-0->*'); fields here: kind, at, limit, marking, "
            "overrun; 'at' is missing: ports of which this is the queue",
        ),
        ('out: {kind: drop-tail, at: "switch-0->*", limt: 10 frames}', "did you mean 'limit'?"),
        (
            'kind: drop-tail\n  at: "switch-0->*"\n  limit: 10 frames',
            "queues.kind: entries have names: write 'queues: {NAME: {kind: ..., ...}}'",
        ),
        ("out: drop-tail", "queues.out: a mapping is expected here, such as {kind: drop-tail, ...}"),
    ],
    ids=["another word", "a slip", "no name of an entry", "a word alone"],
)
def test_a_field_with_a_wrong_name_is_one_problem(queues: str, message: str) -> None:
    (told,) = complaints(f"{GOOD.rstrip()}\nqueues:\n  {queues}\n")
    assert message in told


def test_a_leaf_spine_is_answered_with_the_kind_that_makes_one() -> None:
    (complaint,) = complaints(GOOD.replace("kind: star", "kind: leaf-spine"))
    assert "a leaf-spine is the kind 'xgft'" in complaint


def test_the_first_word_of_a_kind_finds_it_before_a_kind_of_similar_letters() -> None:
    assert did_you_mean("dcqcn", ["dctcp", "dcqcn-sender"]) == "; did you mean 'dcqcn-sender'?"
