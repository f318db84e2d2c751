"""What is simulated: scenarios after the publications, each with the measures of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from weirlab.evaluation import measured
from weirlab.reproductions.frame import Effort
from weirlab.reproductions.published import Hpcc, Uet, read
from weirlab.runs import replicate_seeds, simulate
from weirlab.scenario import Scenario, loads

UET, HPCC = read("fabric-uet", Uet), read("fabric-hpcc", Hpcc)
PACKET, HEADERS = 4150, 64
"""Of uet-htsim [B]."""
BDP = 43 * PACKET


@dataclass(frozen=True)
class Case:
    """A scenario and how often it runs."""

    name: str
    text: str
    changes: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 5
    quick: bool = True
    """Whether a quick run makes it."""

    def scenario(self) -> Scenario:
        """Raises ScenarioError for what the simulator does not have."""
        return loads(self.text, self.changes, file=f"<{self.name}>")


def of_case(case: Case, seed: int, seeds: int, threads: int | None) -> pl.DataFrame:
    """Measures of the runs of a case: columns `case measure replicate value`."""
    scenario = case.scenario()
    found = measured(simulate(scenario, replicate_seeds(seed, seeds), threads=threads), scenario)
    return found.select(pl.lit(case.name).alias("case"), "measure", "replicate", "value")


def simulated(effort: Effort) -> pl.DataFrame:
    """The measures of all cases."""
    chosen = [case for case in CASES if case.quick or not effort.quick]
    threads = effort.threads if effort.here else 1
    made = effort.spread(of_case, [(case, effort.seed, case.seeds, threads) for case in chosen])
    return pl.concat(made)


_UET = f"""\
weirlab: 1
name: uet
network:
  kind: xgft
  children: [2, 2, 4]
  parents: [1, 2, 2]
  link: {{rate: 100 Gbit/s, delay: 1 us, framing: none}}
queues:
  switches:
    at: "@switches->*"
    kind: classes
    classes:
      data:
        class: 0
        weight: 1
        kind: drop-tail
        limit: {BDP} B
        marking: {{k_min: {BDP // 5} B, k_max: {BDP * 4 // 5} B}}
        trim: {{to: 6, size: 64 B}}
      control: {{class: 6, kind: drop-tail, limit: {2 * BDP} B}}
run: {{duration: 40 ms, seed: 1}}
measure:
  tail: {{kind: message-time, of: "*", at: 100 %, until: acknowledged}}
  first: {{kind: message-time, of: "*", at: 0.0001 %, until: acknowledged}}
"""
Tree = Mapping[str, object]
_CONTROLS: Mapping[str, Tree] = {
    "nscc": {"congestion_control": {"kind": "nscc"}},
    "rccc": {"congestion_control": {"kind": "line-rate"}, "credit": {}},
    "both": {"congestion_control": {"kind": "nscc", "spares_last_hop": True}, "credit": {}},
}
_PERMUTATION = {"from": "host-*", "pattern": {"kind": "permutation"}}


def _flows(control: str, ends: Tree, size: str = "2 MB", **more: Any) -> dict[str, object]:
    """An entry of traffic: one message from each sender at the start. `more` are fields of its transport."""
    start = more.pop("start", "0 s")
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
            "round_trip": "14.02 us",
            "answers": {"class": 6, "every": "16 KiB"},
            "timeout": "200 us",
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


def _permutation(network: Tree, control: str, values: int | None, **more: Any) -> Tree:
    paths = None if values is None else {"rule": "mixed", "values": values}
    return {**network, "traffic.all": _flows(control, _PERMUTATION, **{"paths": paths, **more})}


_SLOW = {
    f"events.slow-{i}": {
        "kind": "rate",
        "at": f"level2-{8 * i}->level3-0",
        "rate": "10 Gbit/s",
        "when": "0 s",
    }
    for i in range(8)
}
"""Eight core links at a tenth of their rate; in our tree one of each pod."""
_FIFTY = {"window": f"{50 * PACKET} B"}
"""A first window of 50 packets; ours bounds all."""


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
        "traffic.all": _flows(control, {**_PERMUTATION, "from": ["host-0", "host-13"]})
    },
    "incast-15": lambda control: _incast(15, control, "2 MB"),
    "incast-127": lambda control: _incast(127, control, "2 MB"),
    "incast-1023": lambda control: _incast(1023, control, "100 kB", **_FIFTY),
    "join": lambda control: {
        **_tree(128),
        "traffic.all": _flows(control, {"from": "host-50", "to": "host-0"}, **_FIFTY),
        "traffic.late": _flows(
            control, {"from": ["host-70", "host-90"], "to": "host-0"}, "250 kB", start="40 us", **_FIFTY
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
    "permutation-16": lambda control: _permutation(_tree(16), control, 128),
    "permutation-16-one-path": lambda control: _permutation(_tree(16), control, None),
    "permutation": lambda control: _permutation(_tree(1024), control, 128),
    "permutation-one-path": lambda control: _permutation(_tree(1024), control, None),
    "oversubscribed-4": lambda control: _permutation(_tree(32, 8), control, 128),
    "oversubscribed-8": lambda control: _permutation(_tree(32, 4), control, 128),
}


def _sprayed(experiment: str, control: str) -> Tree:
    _, rule, *more = experiment.split("-")
    answers = {"answers": {"class": 6, "every": "0 B"}} if "each" in more else {}
    paths = {"rule": rule, "values": 128}
    changes = _permutation(_tree(1024), control, 128, **{"paths": paths, **answers})
    return {**changes, **_SLOW} if "slow" in more else changes


def _uet() -> Iterator[Case]:
    for experiment, runs in UET["runs"].items():
        for control in runs["tail"]:
            made = _EXPERIMENTS.get(experiment)
            changes = _sprayed(experiment, control) if made is None else made(control)
            large = changes.get("network.children") in ([8, 8, 16], [32, 32])
            yield Case(f"{experiment}, {control}", _UET, changes, seeds=3 if large else 5, quick=not large)


_ADAPTER = {
    "kind": "dcqcn-sender",
    "timers": True,
    "alpha_timer": "1 us",
    "cut_timer": "4 us",
    "increase_timer": "300 us",
    "byte_counter": "1 TB",
    "fast_recovery": 1,
    "r_ai": "5 Mbit/s",
    "r_hai": "50 Mbit/s",
    "min_rate": "100 Mbit/s",
}
"""As the HPCC simulator has it at 25 Gbit/s.

Source: HPCC 2019, `run.py`."""
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
_MARKS = {"k_min": "100 kB", "k_max": "400 kB", "p_max": "20 %"}
_CONTROLLED: Mapping[str, Tree] = {"dcqcn": _ADAPTER, "hpcc": {"kind": "hpcc", "max_stage": 0}}


def _carried(control: str, names: Sequence[str]) -> dict[str, object]:
    """How the messages of entries of traffic go: DCQCN by rate limiters of hosts, for each pair one."""
    if control == "dcqcn":
        point = {"at": "@hosts", "g": 0.00390625, "min_rate": "100 Mbit/s"}
        recovery = {"timer": "300 us", "byte_counter": "1 TB", "fast_recovery": 2, "r_ai": "5 Mbit/s"}
        timers = {"alpha_timer": "1 us", "cut_timer": "4 us", "recovery": {**recovery, "r_hai": "50 Mbit/s"}}
        return {
            "control.dcqcn": {
                "marking": {"at": "switch-0->*", **_MARKS},
                "notify_every": "1 ns",
                "reaction_point": {**point, **timers},
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
        yield Case(f"joining, {name}", _RACK, {**new, **_carried(name, ["long", "new"])})
        mice = {
            "traffic.long.from": "host-[0-1]",
            "traffic.mice": _more("host-2", "1 kB", "2 ms", "20 us"),
            "measure.mice": {
                "kind": "message-time",
                "of": "mice",
                "at": "50 %",
                # Frames without a connection are not acknowledged.
                "until": "delivered" if name == "dcqcn" else "acknowledged",
            },
        }
        yield Case(f"mice, {name}", _RACK, {**mice, **_carried(name, ["long", "mice"])})
        recovery = {
            "traffic.short": _more("host-1", "1 MB", "1 ms"),
            "measure.before": {"kind": "delivered-rate", "of": "long", "window": "0.5 ms .. 1 ms"},
            # The short flow lasts for 0.6 to 1 ms.
            "measure.after": {"kind": "delivered-rate", "of": "long", "window": "3.8 ms .. 4 ms"},
        }
        yield Case(f"recovery, {name}", _RACK, {**recovery, **_carried(name, ["long", "short"])})


_TESTBED = """\
weirlab: 1
name: testbed
network:
  kind: graph
  link: {framing: none, rate: 400 Gbit/s, delay: 700 ns}
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
queues:
  all:
    at: "@switches->*"
    kind: drop-tail
    limit: unlimited
    marking: {k_min: 100 kB, k_max: 400 kB, p_max: 20 %}
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
    transport: {kind: rdma, round_trip: 9 us}
    stop: 60 ms
run: {duration: 80 ms, seed: 1}
record: {queues: {levels: "tor-*->h*", bin: 1 kB}}
measure:
  slowdown: {kind: slowdown, of: web, at: 99 %, sizes: 1 B .. 3 kB}
  time: {kind: message-time, of: web, at: 99 %, sizes: 1 B .. 3 kB, until: acknowledged}
  p50: {kind: queue-percentile, of: "tor-*->h*", percentile: 50 %}
  p95: {kind: queue-percentile, of: "tor-*->h*", percentile: 95 %}
  p99: {kind: queue-percentile, of: "tor-*->h*", percentile: 99 %}
  held: {kind: pause-fraction, of: "@hosts->*"}
"""


def _hpcc() -> Iterator[Case]:
    for size in (25, 50, 80, 150, 300):
        at = "traffic.writes.transport.congestion_control.w_ai"
        yield Case(f"w_ai {size}", _W_AI, {at: f"{size} B"}, seeds=1)
    yield from _micro()
    for name, control in _CONTROLLED.items():
        for load in (30, 50):
            changes = {
                "traffic.web.source.load": f"{load} %",
                "traffic.web.transport.congestion_control": control,
            }
            yield Case(f"websearch {load}, {name}", _TESTBED, changes, seeds=3, quick=False)


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

CASES: tuple[Case, ...] = (
    *_uet(),
    *_hpcc(),
    Case("go-back-0", _LIVELOCK),
    Case("go-back-n", _LIVELOCK, {"traffic.writes.transport.recovery": "go-back-n"}),
)
