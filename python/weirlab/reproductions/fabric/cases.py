"""What is simulated: scenarios after the publications, each with the measures of its numbers.

One file: a table of cases, and what they are put together from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from weirlab.evaluation import measured
from weirlab.reproductions.frame import Effort
from weirlab.reproductions.published import Hpcc, Uet, read
from weirlab.runs import replicate_seeds, simulate
from weirlab.scenario import Scenario, loads

UET, HPCC = read("fabric-uet", Uet), read("fabric-hpcc", Hpcc)
PACKET, HEADERS = 4150, 64
"""Of uet-htsim [B]."""
Tree = Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """A scenario and how often it runs."""

    name: str
    text: str
    changes: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 5
    permuted: int = 0
    """How many hosts send to each other in an order that each seed draws."""
    quick: bool = True
    """Whether a quick run makes it, of five seeds at most."""

    def scenario(self, seed: int) -> Scenario:
        """Raises ScenarioError for what the simulator does not have."""
        drawn = {"traffic.all.pattern": _drawn(self.permuted, seed)} if self.permuted else {}
        return loads(self.text, {**self.changes, **drawn}, file=f"<{self.name}>")


def of_case(case: Case, seed: int, seeds: int, threads: int | None) -> pl.DataFrame:
    """Measures of the runs of a case: columns `case measure replicate value`."""
    every = replicate_seeds(seed, seeds)
    runs = [[one] for one in every] if case.permuted else [every]
    with ThreadPoolExecutor(threads if case.permuted else 1) as pool:
        return pl.concat(pool.map(partial(_of_runs, case, threads=threads), count(), runs))


def _of_runs(case: Case, first: int, seeds: list[int], threads: int | None) -> pl.DataFrame:
    scenario = case.scenario(seeds[0])
    found = measured(simulate(scenario, seeds, threads=threads), scenario)
    number = pl.col("replicate") + first
    return found.select(pl.lit(case.name).alias("case"), "measure", number, "value")


def _drawn(hosts: int, seed: int) -> Tree:
    """Who sends to whom where nobody sends to itself."""
    chance = np.random.default_rng(seed)
    to = chance.permutation(hosts)
    while (to == np.arange(hosts)).any():
        to = chance.permutation(hosts)
    return _listed(to)


def _listed(to: Iterable[int]) -> Tree:
    return {"kind": "list", "flows": [f"host-{i}->host-{j}" for i, j in enumerate(to)]}


def simulated(effort: Effort) -> pl.DataFrame:
    """The measures of all cases."""
    chosen = [case for case in CASES if case.quick or not effort.quick]
    threads = effort.threads if effort.here else 1
    most = 5 if effort.quick else 1000
    made = effort.spread(of_case, [(case, effort.seed, min(case.seeds, most), threads) for case in chosen])
    return pl.concat(made)


_UET = """\
weirlab: 1
name: uet
network:
  kind: xgft
  children: [2, 2, 4]
  parents: [1, 2, 2]
  link: {rate: 100 Gbit/s, delay: 1 us, framing: none}
run: {duration: 40 ms, seed: 1}
measure:
  tail: {kind: message-time, of: "*", at: 100 %, until: acknowledged}
  first: {kind: message-time, of: "*", at: 0.0001 %, until: acknowledged}
"""
_CREDIT: Tree = {"packets": 4 * 4096 / PACKET}
"""16 KiB with headers at a time."""
_CONTROLS: Mapping[str, Tree] = {
    "nscc": {"congestion_control": {"kind": "nscc"}},
    "rccc": {"congestion_control": {"kind": "line-rate"}, "credit": _CREDIT},
    "both": {"congestion_control": {"kind": "nscc", "spares_last_hop": True}, "credit": _CREDIT},
}


@dataclass(frozen=True)
class _Levels:
    """What follows from the number of levels, as in uet-htsim's `main_uec.cpp`."""

    count: int

    @property
    def round_trip(self) -> int:
        """Of the longest empty path [ps]."""
        return 2 * self.count * (2 * 10**6 + 80 * (PACKET + HEADERS))

    @property
    def packets(self) -> int:
        """What that holds."""
        return -(-self.round_trip // (80 * PACKET))

    @property
    def timeout(self) -> int:
        """After which a packet is sent again [ps]."""
        return 15 * 10**6 + 6 * self.packets * PACKET * 80

    def queues(self, control: str) -> Tree:
        """Of switches. With credit the ports to hosts do not mark."""
        between = ["level1-*->level2-*", "level2-*->*", *["level3-*->*"] * (self.count == 3)]
        return {
            "queues.between": self.queue(between),
            "queues.down": self.queue(["level1-*->host-*"], marks=control == "nscc"),
        }

    def queue(self, at: Sequence[str], share: float = 1.0, *, marks: bool = True) -> Tree:
        """A queue, smaller by `share`. The packet that is sent counts there. Packets are marked there when
        they have been sent, by what waits then: one more than when their transmission starts."""
        least, most = (int(-(-self.packets * part // 5) * PACKET * share) - PACKET for part in (1, 4))
        size = int(self.packets * PACKET * share)
        data = {
            "class": 0,
            "weight": 1,
            "kind": "drop-tail",
            "limit": f"{size - PACKET} B",
            "trim": {"to": 6, "size": f"{HEADERS} B"},
        }
        marking = {"k_min": f"{least} B", "k_max": f"{most} B", "when": "departure"}
        return {
            "at": at,
            "kind": "classes",
            "classes": {
                "data": {**data, **({"marking": marking} if marks else {})},
                "control": {"class": 6, "kind": "drop-tail", "limit": f"{2 * size} B"},
            },
        }


def _flows(control: str, ends: Tree, size: str = "2 MB", levels: int = 3, **more: Any) -> dict[str, object]:
    """An entry of traffic: one message from each sender at the start. `more` are fields of its transport."""
    start = more.pop("start", "0 s")
    its = _Levels(levels)
    return {
        **ends,
        "start": start,
        "source": {
            "kind": "messages",
            "sizes": {"kind": "fixed", "size": size},
            "every": "1 s",
            "gaps": {"kind": "constant"},
            "packet": {"payload": f"{PACKET - HEADERS} B", "headers": f"{HEADERS} B"},
        },
        "transport": {
            "kind": "rdma",
            "recovery": "selective",
            "round_trip": f"{its.round_trip} ps",
            # 16 KiB with headers are four packets.
            "answers": {"class": 6, "every": f"{4 * (PACKET - HEADERS)} B"},
            "timeout": f"{its.timeout} ps",
            "paths": {"rule": "mixed", "values": 64},
            **_CONTROLS[control],
            **more,
        },
    }


def _tree(*sizes: int) -> Tree:
    """The network of so many hosts, or of leaves with so many hosts and spines."""
    if len(sizes) == 2:
        return {"network.children": [sizes[0]] * 2, "network.parents": [1, sizes[1]]}
    k = round((4 * sizes[0]) ** (1 / 3))
    return {"network.children": [k // 2, k // 2, k], "network.parents": [1, k // 2, k // 2]}


def _incast(senders: int, control: str, size: str, **more: Any) -> Tree:
    ends = {"from": f"host-[1-{senders}]", "to": "host-0"}
    return {**_tree(senders + 1), "traffic.all": _flows(control, ends, size, **more)}


def _permutation(
    network: Tree, control: str, values: int | None, to: Sequence[int] = (), **more: Any
) -> Tree:
    """Each host to another; without `to` each seed draws them."""
    paths = None if values is None else {"rule": "mixed", "values": values}
    ends: Tree = {"pattern": _listed(to)} if to else {}
    return {**network, "traffic.all": _flows(control, ends, **{"paths": paths, **more})}


def _oversubscribed(times: int, control: str) -> Tree:
    """Credit follows the network where nothing else does."""
    credit = {**_CREDIT, "oversubscription": times}
    adapts: dict[str, Any] = {"credit": credit} if control == "rccc" else {}
    return _permutation(_tree(32, 32 // times), control, 128, levels=2, **adapts)


_SLOW = {
    "events.slow": {"kind": "rate", "at": "level3-*->level2-0", "rate": "25 Gbit/s", "when": "0 s"},
    "queues.slow": _Levels(3).queue(["level3-*->level2-0"], 0.25),
}
"""The links of eight core switches down to one switch, at a quarter of their rate, with a quarter of a queue.

Source: uet-htsim, `fat_tree_topology.cpp` (which, and their queues and marks), help of `htsim_uec` (how
slow). The names of its experiments say a tenth. Its record does not: with queues of 500 packets and
oblivious spraying 2770 of 3900 packets go down there within 565 us.
"""
_SIXTEEN = (8, 4, 13, 10, 12, 15, 0, 9, 14, 7, 5, 3, 11, 6, 2, 1)
"""Whom each of 16 hosts sends to. Source: uet-htsim, `perm_16n_16c_2MB.cm`"""


def _fifty(control: str) -> dict[str, Any]:
    """A first window of 50 packets."""
    return {} if control == "rccc" else {"initial_window": f"{50 * (PACKET - HEADERS)} B"}


def _alone(control: str, packets: int = 490, last: int = 2_000_000 - 489 * (PACKET - HEADERS)) -> Tree:
    """One message of so many packets, the last of which has `last` bytes of data."""
    data = (packets - 1) * (PACKET - HEADERS) + last
    return {"traffic.all": _flows(control, {"from": "host-0", "to": "host-13"}, f"{data} B")}


def _ten(sender: int) -> Tree:
    """To host 0 and nine others, one event."""
    return {
        "from": f"host-{sender}",
        "to": ["host-0", f"host-[{10 * sender}-{10 * sender + 8}]"],
        "pattern": {"kind": "groups", "senders": 1, "receivers": 10},
    }


_EXPERIMENTS: Mapping[str, Callable[[str], Tree]] = {
    "message-10": lambda control: _alone(control, 10, PACKET - HEADERS),
    "message-100": lambda control: _alone(control, 100, PACKET - HEADERS),
    "one": _alone,
    "both-ways": lambda control: {
        "traffic.all": _flows(control, {"from": ["host-0", "host-13"], "pattern": {"kind": "permutation"}})
    },
    "incast-15": lambda control: _incast(15, control, "2 MB"),
    "incast-127": lambda control: _incast(127, control, "2 MB"),
    "incast-1023": lambda control: _incast(1023, control, "100 kB", **_fifty(control)),
    "join": lambda control: {
        **_tree(128),
        "traffic.all": _flows(control, {"from": "host-127", "to": "host-0"}, **_fifty(control)),
        "traffic.late": _flows(
            control,
            {"from": ["host-61", "host-95"], "to": "host-0"},
            "250 kB",
            start="40 us",
            **_fifty(control),
        ),
        "measure.tail.of": "all",
        "measure.first.of": "late",
    },
    "outcast": lambda control: {
        **_tree(128),
        "traffic.all": _flows(control, {"from": "host-1", "to": "host-0"}),
        "traffic.two": _flows(control, _ten(2)),
        "traffic.three": _flows(control, _ten(3)),
    },
    "permutation-16": lambda control: _permutation(_tree(16), control, 128, to=_SIXTEEN),
    "permutation-16-one-path": lambda control: _permutation(_tree(16), control, None, to=_SIXTEEN),
    "permutation": lambda control: _permutation(_tree(1024), control, 128),
    "permutation-one-path": lambda control: _permutation(_tree(1024), control, None),
    "oversubscribed-4": lambda control: _oversubscribed(4, control),
    "oversubscribed-8": lambda control: _oversubscribed(8, control),
}


def _sprayed(experiment: str, control: str) -> Tree:
    _, rule, *more = experiment.split("-")
    answers: dict[str, Any] = {"answers": {"class": 6, "every": "0 B"}} if "each" in more else {}
    paths = {"rule": rule, "values": 128}
    changes = _permutation(_tree(1024), control, 128, paths=paths, **answers)
    return {**changes, **_SLOW} if "slow" in more else changes


def _uet() -> Iterator[Case]:
    for experiment, runs in UET["runs"].items():
        for control in runs["tail"]:
            made = _EXPERIMENTS.get(experiment)
            changes = _sprayed(experiment, control) if made is None else made(control)
            large = changes.get("network.children") in ([8, 8, 16], [32, 32])
            levels = 2 if "oversubscribed" in experiment else 3
            drawn = large and "incast" not in experiment
            yield Case(
                f"{experiment}, {control}",
                _UET,
                {**_Levels(levels).queues(control), **changes},
                seeds=3 if drawn else 10,
                permuted=1024 if drawn else 0,
                quick=not large,
            )


_CUTS: Tree = {"alpha_timer": "1 us", "cut_timer": "4 us", "min_rate": "1 Gbit/s"}
_GROWS: Tree = {
    "byte_counter": "none",
    "fast_recovery": 2,
    "hyper_after": 1,
    "r_ai": "5 Mbit/s",
    "r_hai": "50 Mbit/s",
    "hyper_grows": False,
}
_EVERY_MARK, _INCREASE = "1 ps", "300 us"
_ADAPTER: Tree = {
    "kind": "dcqcn-sender",
    "gain": 1 / 256,
    "notify_every": _EVERY_MARK,
    "increase_timer": _INCREASE,
    **_CUTS,
    **_GROWS,
}
"""As adapters at 25 Gbit/s are in the HPCC simulator: one stage of fast recovery, one of active increase,
then hyper-active steps of one length; each marked packet counts.

Source: HPCC simulator, `run.py`, `rdma-hw.cc`."""
_W_AI = """\
weirlab: 1
name: w-ai
network: {kind: star, hosts: 17, link: {rate: 100 Gbit/s, delay: 1 us}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: unlimited}}
traffic:
  writes:
    from: host-[0-15]
    to: host-16
    source: {kind: messages, sizes: {kind: fixed, size: 20 MB}, every: 1 s, gaps: {kind: constant}}
    transport: {kind: rdma, congestion_control: {kind: hpcc, max_stage: 5, w_ai: 80 B}, round_trip: 4 us}
run: {duration: 10 ms, seed: 1}
record: {queue: {levels: switch-0->host-16, bin: 100 B}}
measure:
  p95: {kind: queue-percentile, of: switch-0->host-16, percentile: 95 %}
"""
_RACK = """\
weirlab: 1
name: rack
network: {kind: star, hosts: 10, link: {rate: 25 Gbit/s, delay: 1.18 us, framing: none}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: unlimited}}
traffic:
  long:
    from: host-0
    to: host-9
    source: {kind: messages, sizes: {kind: fixed, size: 100 MB}, every: 1 s, gaps: {kind: constant}}
run: {duration: 10 ms, seed: 1}
record:
  rate: {flow: long, every: 100 us}
  queue: {levels: switch-0->host-9, bin: 1 kB}
measure:
  most: {kind: max-queue, of: switch-0->host-9}
"""
_MARKS = {"k_min": "100 kB", "k_max": "400 kB", "p_max": "20 %", "when": "departure"}
_CONTROLLED: Mapping[str, Tree] = {"dcqcn": _ADAPTER, "hpcc": {"kind": "hpcc", "max_stage": 0}}


def _carried(control: str, names: Sequence[str]) -> dict[str, object]:
    """How the messages of entries of traffic go: DCQCN by rate limiters of hosts, for each pair one."""
    if control == "dcqcn":
        recovery = {"timer": _INCREASE, **_GROWS}
        return {
            "control.dcqcn": {
                "marking": {"at": "switch-0->*", **_MARKS},
                "notify_every": _EVERY_MARK,
                "reaction_point": {"at": "@hosts", "g": 1 / 256, **_CUTS, "recovery": recovery},
            }
        }
    transport = {"kind": "rdma", "congestion_control": _CONTROLLED[control], "round_trip": "9 us"}
    return {f"traffic.{name}.transport": transport for name in names}


def _more(senders: str, size: str, start: str, every: str = "1 s") -> dict[str, object]:
    return {
        "from": senders,
        "to": "host-9",
        "start": start,
        "source": {
            "kind": "messages",
            "sizes": {"kind": "fixed", "size": size},
            "every": every,
            "gaps": {"kind": "constant"},
        },
    }


def _micro() -> Iterator[Case]:
    for name in _CONTROLLED:
        new = {"traffic.new": _more("host-[1-7]", "500 kB", "300 us")}
        joining = {**new, **_carried(name, ["long", "new"])}
        # Marks with DCQCN are drawn, and rates swing.
        seeds = 16 if name == "dcqcn" else 5
        yield Case(f"joining, {name}", _RACK, joining, seeds=seeds)
        if name == "dcqcn":
            coming = {"control.dcqcn.marking.when": "arrival"}
            yield Case("joining, dcqcn, marks on arrival", _RACK, {**joining, **coming}, seeds=seeds)
        mice = {
            "traffic.long.from": "host-[0-1]",
            "traffic.long.source.sizes.size": "1 GB",
            # Rates settle within 50 ms.
            "traffic.mice": _more("host-2", "1 kB", "100 ms", "20 us"),
            "run.duration": "200 ms",
            "record": None,
            "measure.mice": {
                "kind": "message-time",
                "of": "mice",
                "at": "50 %",
                # Frames without a connection are not acknowledged.
                "until": "delivered" if name == "dcqcn" else "acknowledged",
            },
        }
        yield Case(f"mice, {name}", _RACK, {**mice, **_carried(name, ["long", "mice"])}, seeds=seeds)
        recovery = {
            "traffic.short": _more("host-1", "1 MB", "1 ms"),
            "measure.before": {"kind": "delivered-rate", "of": "long", "window": "0.5 ms .. 1 ms"},
            # The short flow lasts for 0.6 to 1 ms.
            "measure.after": {"kind": "delivered-rate", "of": "long", "window": "3.8 ms .. 4 ms"},
        }
        yield Case(f"recovery, {name}", _RACK, {**recovery, **_carried(name, ["long", "short"])}, seeds=seeds)


_TESTBED = """\
weirlab: 1
name: testbed
network:
  kind: graph
  link: {framing: none, rate: 100 Gbit/s, delay: 700 ns}
  nodes:
    h0: {kind: host, count: 16}
    h1: {kind: host, count: 16}
    h2: {kind: host, count: 16}
    h3: {kind: host, count: 16}
    tor: {kind: switch, count: 4}
    agg: {kind: switch}
  links:
    r0: {join: [h0-*, tor-0], rate: 25 Gbit/s, delay: 1150 ns}
    r1: {join: [h1-*, tor-1], rate: 25 Gbit/s, delay: 1150 ns}
    r2: {join: [h2-*, tor-2], rate: 25 Gbit/s, delay: 1150 ns}
    r3: {join: [h3-*, tor-3], rate: 25 Gbit/s, delay: 1150 ns}
    up: {join: [tor-*, agg]}
buffers:
  all:
    at: "@switches"
    size: 32 MB
    ingress: {rdma: {classes: [0], alpha: 0.11, reserved: 4 kB, lossless: {}}}
    flow_control: {stops: link}
traffic:
  web:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform}
    source: {kind: messages, sizes: {kind: published, name: websearch}, load: 30 %}
    stop: 60 ms
  short:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform}
    source: {kind: messages, sizes: {kind: fixed, size: 1.5 kB}, load: 0.1 %}
    stop: 60 ms
run: {duration: 80 ms, seed: 1}
record: {queues: {levels: "tor-*->h*", bin: 64 B}}
measure:
  slowdown: {kind: slowdown, of: short, at: 99 %}
  time: {kind: message-time, of: short, at: 99 %, until: acknowledged}
  p50: {kind: queue-percentile, of: "tor-*->h*", percentile: 50 %}
  p95: {kind: queue-percentile, of: "tor-*->h*", percentile: 95 %}
  p99: {kind: queue-percentile, of: "tor-*->h*", percentile: 99 %}
  held: {kind: pause-fraction, of: "@hosts->*"}
"""
"""Of messages of web search alone a run has some dozens below 3 kB: too few for a 99th percentile. Eight
thousand more of their mean size meet the same queues."""


def _web(control: str, load: int) -> Tree:
    """Web search on the testbed. The load is that of the links between switches, the narrowest.

    Marks when frames leave, thresholds by the rate of the link, answers that wait for nothing with DCQCN
    (and as data with HPCC), and no timeout. Source: HPCC 2019, `switch-mmu.cc`, `run.py`, `rdma-hw.cc`."""
    own: Tree = {"answers": {"class": 6}} if control == "dcqcn" else {"round_trip": "9 us"}
    carried = {"congestion_control": _CONTROLLED[control], "timeout": "1 s", **own}
    up = 16 * 25 * 48 / 63  # of what 16 hosts of a switch send, 48 of 63 messages
    return {
        "queues.hosts": _marked("tor-*->h*", 25),
        "queues.between": _marked(["tor-*->agg", "agg->*"], 100),
        "traffic.web.source.load": load / up,
        **{f"traffic.{name}.transport": {"kind": "rdma", **carried} for name in ("web", "short")},
    }


def _marked(at: str | list[str], gbps: int) -> Tree:
    """Queues of links with so many Gbit/s."""
    marks = {"k_min": f"{4 * gbps} kB", "k_max": f"{16 * gbps} kB", "p_max": "20 %", "when": "departure"}
    queue = {"kind": "drop-tail", "limit": "unlimited"}
    return {
        "at": at,
        "kind": "classes",
        "classes": {"data": {"class": 0, **queue, "marking": marks}, "control": {"class": 6, **queue}},
    }


_HADOOP = """\
weirlab: 1
name: hadoop
network:
  kind: graph
  link: {framing: none, rate: 400 Gbit/s, delay: 1 us}
  nodes:
    host: {kind: host, count: 320}
    tor: {kind: switch, count: 20}
    agg: {kind: switch, count: 20}
    core: {kind: switch, count: 16}
queues:
  all: {at: "@switches->*", kind: drop-tail, limit: unlimited}
traffic:
  all:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform}
    source: {kind: messages, sizes: {kind: published, name: fb-hadoop}, load: 50 %}
    transport: {kind: rdma, round_trip: 13 us}
    stop: 2 ms
run: {duration: 3 ms, seed: 1}
measure:
  time: {kind: message-time, of: all, at: 95 %, sizes: 1 B .. 1 kB, until: acknowledged}
"""
_HADOOP_LINKS: Tree = {
    **{
        f"network.links.rack-{rack}": {
            "join": [f"host-[{16 * rack}-{16 * rack + 15}]", f"tor-{rack}"],
            "rate": "100 Gbit/s",
        }
        for rack in range(20)
    },
    **{
        f"network.links.pod-{pod}": {"join": [f"{name}-[{4 * pod}-{4 * pod + 3}]" for name in ("tor", "agg")]}
        for pod in range(5)
    },
    **{
        f"network.links.up-{agg}": {"join": [f"agg-{agg}", f"core-[{agg % 4 * 4}-{agg % 4 * 4 + 3}]"]}
        for agg in range(20)
    },
}
"""Five pods of four switches for racks and four above them, each of which has four of 16 core switches.

Source: HPCC 2019, 5.1 (the counts)."""


def _hpcc() -> Iterator[Case]:
    for size in (25, 50, 80, 150, 300):
        at = "traffic.writes.transport.congestion_control.w_ai"
        yield Case(f"w_ai {size}", _W_AI, {at: f"{size} B"}, seeds=1)
    yield from _micro()
    for name in _CONTROLLED:
        for load in (30, 50):
            # With DCQCN 99th percentiles vary from run to run.
            long = {"traffic.web.stop": "240 ms", "traffic.short.stop": "240 ms", "run.duration": "260 ms"}
            changes = {**_web(name, load), **(long if name == "dcqcn" else {})}
            yield Case(f"websearch {load}, {name}", _TESTBED, changes, seeds=16, quick=False)
    marks = {"k_min": "300 kB", "k_max": "300 kB"}
    for name, queue in (("hpcc", {}), ("dctcp", {f"queues.all.marking.{key}": marks[key] for key in marks})):
        control = {"kind": name, **({"max_stage": 0} if name == "hpcc" else {})}
        of_hadoop: Tree = {**_HADOOP_LINKS, "traffic.all.transport.congestion_control": control, **queue}
        yield Case(f"hadoop 50, {name}", _HADOOP, of_hadoop, seeds=3, quick=False)


_LIVELOCK = """\
weirlab: 1
name: livelock
network:
  kind: graph
  nodes: {a: {kind: host}, b: {kind: host}, switch: {kind: switch}}
  links:
    near: {join: [a, switch], rate: 40 Gbit/s, delay: 500 ns}
    far: {join: [switch, b], rate: 40 Gbit/s, delay: 500 ns, loss: {kind: random, ratio: 0.00390625}}
traffic:
  writes:
    from: a
    to: b
    source: {kind: messages, sizes: {kind: fixed, size: 4 MB}, every: 850 us, gaps: {kind: constant}}
    transport:
      kind: rdma
      congestion_control: line-rate
      recovery: go-back-0
      window: 100 kB
      timeout: 100 us
run: {duration: 20 ms, seed: 1}
measure:
  unfinished: {kind: unfinished-messages, of: writes}
  utilisation: {kind: utilisation, of: a->switch}
"""

_ALPHA = """\
weirlab: 1
name: alpha
network:
  kind: xgft
  children: [32, 32]
  parents: [1, 8]
  link: {rate: 40 Gbit/s, delay: 1 us}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: unlimited}}
buffers:
  all:
    at: "@switches"
    size: 12 MB
    ingress: {rdma: {classes: [0], alpha: 0.0625, reserved: 4 kB, lossless: {}}}
    flow_control: {stops: link}
traffic:
  answers:
    from: host-[1-1023]
    to: host-0
    source: {kind: messages, sizes: {kind: fixed, size: 2 kB}, every: 1 s, gaps: {kind: constant}}
    transport: {kind: rdma, congestion_control: line-rate}
run: {duration: 1 ms, seed: 1}
measure:
  held: {kind: pause-fraction, of: "@switches->*"}
"""

CASES: tuple[Case, ...] = (
    *_uet(),
    *_hpcc(),
    Case("go-back-0", _LIVELOCK),
    Case("go-back-n", _LIVELOCK, {"traffic.writes.transport.recovery": "go-back-n"}),
    *(
        Case(f"alpha 1/{part}", _ALPHA, {"buffers.all.ingress.rdma.alpha": 1 / part}, seeds=2)
        for part in (16, 64)
    ),
)
