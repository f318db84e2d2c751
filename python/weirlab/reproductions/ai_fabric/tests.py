"""Tests of the drafts as scenarios: by id, what is varied, and what is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weirlab.scenario import Scenario, load, loads

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """A test under one condition."""

    id: str
    condition: str
    text: str
    """A scenario, or the name of a ready-made one."""
    changes: Tree
    quick: bool = True
    """Whether a quick run makes it."""

    @property
    def name(self) -> str:
        """Unique among all."""
        return f"{self.id}: {self.condition}"

    def scenario(self) -> Scenario:
        """As it is run."""
        if "\n" in self.text:
            return loads(self.text, self.changes, file=f"<{self.name}>")
        return load(self.text).assign(self.changes)


STAR = """\
weirlab: 1
name: star
network: {kind: star, hosts: 65, link: {rate: 100 Gbit/s, delay: 1 us}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: 4000 kB}}
run: {duration: 1 ms, seed: 1}
"""
LEAVES = """\
weirlab: 1
name: leaves
network: {kind: xgft, children: [4, 4], parents: [1, 4], link: {rate: 100 Gbit/s, delay: 1 us}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: 4 MB, marking: {k_min: 300 kB}}}
run: {duration: 20 ms, seed: 1}
"""
"""Two tiers: four leaves with four hosts, four spines, no oversubscription."""
LIMIT, FRAME = 4_000_000, 1024
"""Of queues, and of frames of bursts [B]."""
SCALED = 2
"""Operations of a job at scale."""
BUFFER, ALPHA = 16_000_000, 0.125
"""Of a switch with flow control [B], and the part of what is free that an input may take."""
LOSSLESS: Tree = {
    "queues.all.limit": "unlimited",
    "buffers.all": {
        "at": "@switches",
        "size": f"{BUFFER} B",
        "ingress": {"rdma": {"classes": [0], "alpha": ALPHA, "reserved": "4 kB", "lossless": {}}},
        "flow_control": {"stops": "link"},
    },
}
"""Switches hold those who send to a full buffer."""
TCP: Tree = {
    "kind": "tcp",
    "congestion_control": {"kind": "dctcp"},
    "segment": "4096 B",
    "initial_window": 40,
    "timestamps": False,
    "loss_marking": "rack-tlp",
    "min_rto": "1 ms",
}
BALANCING: Mapping[str, Tree] = {
    "ECMP": {"kind": "flow"},
    "flowlets": {"kind": "flowlets", "gap": "2 us"},
    "spraying": {"kind": "least-queue"},
}
UP = "level1-*->level2-*"
BALANCED: Tree = {
    "measure.mmr": {"kind": "link-imbalance", "of": UP},
    "measure.jfi": {"kind": "link-imbalance", "of": UP, "take": "jain"},
    "measure.time": {"kind": "message-time", "of": "*", "at": "100 %"},
}


def flow(senders: str | list[str], receivers: str, source: Tree, **more: Any) -> Tree:
    """An entry of traffic from some hosts to others."""
    return {"from": senders, "to": receivers, "source": source, **more}


def constant(size: str) -> Tree:
    """Frames of one size at the line rate."""
    return {"kind": "constant", "load": "100 %", "frame_size": size}


def shifted(source: Tree, shift: int = 4, **more: Any) -> Tree:
    """An entry of traffic from each host to that so many places after it, at another leaf."""
    return {"from": "host-*", "pattern": {"kind": "permutation", "shift": shift}, "source": source, **more}


def at_once(size: str, balancing: str = "ECMP") -> Tree:
    """A message of each sender at the start."""
    return {
        "kind": "messages",
        "sizes": {"kind": "fixed", "size": size},
        "every": "1 s",
        "gaps": {"kind": "constant"},
        "balancing": BALANCING[balancing],
    }


def _frames() -> Iterator[Trial]:
    """5.1, 5.2, 5.3: throughput, latency, bursts."""
    for size in ("64 B", "256 B", "1024 B", "4096 B"):
        there, back = ("host-[0-7]", "host-[8-15]"), ("host-[8-15]", "host-[0-7]")
        for way, ends in (("one way", [there]), ("both ways", [there, back])):
            streams = {
                f"traffic.flow-{i}": flow(*some, constant(size), pattern={"kind": "pairs"})
                for i, some in enumerate(ends)
            }
            measures = {
                "measure.loss": {"kind": "loss-ratio", "of": "*"},
                "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-8"},
            }
            yield Trial("5.1", f"{size}, {way}", STAR, {**streams, **measures, "run.duration": "0.2 ms"})
    for share in ("1 %", "90 %"):
        source = {"kind": "poisson", "load": share, "frame_size": "1024 B"}
        changes: Tree = {
            "traffic.flow": flow("host-[0-7]", "host-[8-15]", source, pattern={"kind": "uniform"}),
            "record.delays": {"delays": "flow"},
            "measure.mean": {"kind": "mean-delay", "of": "flow"},
            **{
                f"measure.{name}": {"kind": "delay-percentile", "of": "flow", "percentile": share}
                for name, share in (("p50", "50 %"), ("p95", "95 %"), ("p99", "99 %"), ("p99-9", "99.9 %"))
            },
            "measure.max": {"kind": "max-delay", "of": "flow"},
        }
        yield Trial("5.2", f"load {share}", STAR, changes)
    for senders in (2, 4, 8, 16, 32):
        # Of n bursts of b frames (n - 1) b wait.
        most = LIMIT // FRAME // (senders - 1)
        for frames, word in ((most, "what fits"), (round(1.02 * most) + 1, "2 % more")):
            packet = {"payload": f"{FRAME - 48} B", "headers": "48 B"}
            burst = {**at_once(f"{frames * (FRAME - 48)} B"), "packet": packet}
            changes = {
                "traffic.burst": flow(f"host-[0-{senders - 1}]", "host-64", burst),
                "measure.drops": {"kind": "drops", "of": "switch-0->*"},
                "run.duration": "20 ms",
            }
            yield Trial("5.3", f"{senders}:1, {word}", STAR, changes)


_POLLED = {"poll": "20 us", "detection": "100 us", "restoration": "100 us", "action": "drop"}
WATCHDOG = {"buffers.all.watchdog": _POLLED}


def _signals() -> Iterator[Trial]:
    """7.1 to 7.4: marks, priority flow control, convergence, deadlock."""
    for mark in ("100 kB", "1 MB", "3 MB"):
        changes = {
            "control.dcqcn": {
                "marking": {"at": "switch-0->*", "k_min": mark, "k_max": mark},
                "reaction_point": {"at": "@hosts", "min_rate": "100 Gbit/s"},
            },
            "traffic.load": flow("host-[0-1]", "host-64", constant("1000 B")),
            "run.duration": "0.3 ms",
            "measure.marked": {"kind": "marks", "of": "switch-0->host-64", "take": "share"},
        }
        yield Trial("7.1", f"threshold {mark}", STAR, changes)
    for senders in (2, 4, 8, 16, 32, 64):
        changes = {
            **LOSSLESS,
            "traffic.load": flow(f"host-[0-{senders - 1}]", "host-64", constant("1024 B")),
            "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-64"},
            "measure.drops": {"kind": "drops", "of": "switch-0->*"},
            "measure.held": {"kind": "pause-fraction", "of": f"host-[0-{senders - 1}]->*"},
            "measure.stops": {"kind": "control-frames", "of": "switch-0->*", "type": "xoff"},
            "measure.depth": {"kind": "pause-depth", "of": "*->*"},
        }
        yield Trial("7.2", f"{senders}:1", STAR, changes)
    nothing: Tree = {}
    for name, guard in (("no watchdog", nothing), ("watchdog", WATCHDOG)):
        more = {"measure.dropped": {"kind": "drops", "of": "ring-*->*"}}
        yield Trial("7.4", f"ring of four, {name}", "pfc-deadlock", {**guard, **more})
    for flows in (4, 8, 16):
        late, stream = f"host-[{flows}-{2 * flows - 1}]", constant("1048 B")
        marking = {"at": "switch-0->*", "k_min": "100 kB", "k_max": "400 kB", "p_max": "20 %"}
        changes = {
            "control.dcqcn": {"marking": marking, "reaction_point": {"at": "@hosts"}},
            "traffic.early": flow(f"host-[0-{flows - 1}]", "host-64", stream),
            "traffic.late": flow(late, "host-64", stream, start="10 ms"),
            "run.duration": "40 ms",
            "record.rates": {"flow": "*", "by": "flow", "every": "1 ms"},
            "measure.jain": {"kind": "jain-fairness", "of": "*", "window": "30 ms .. 40 ms"},
            "measure.jain-at-first": {"kind": "jain-fairness", "of": "*", "window": "10 ms .. 12 ms"},
            "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-64"},
            "measure.settled": {
                "kind": "time-to-converge",
                "of": "*",
                "target": f"{98 / 2 / flows:g} Gbit/s",
                "within": "10 %",
            },
        }
        yield Trial("7.3", f"{flows} flows, {flows} more", STAR, changes, quick=flows < 16)


def _links() -> Iterator[Trial]:
    """8.1 to 8.4: how evenly parallel links are loaded."""
    for queue_pairs in (1, 4, 8, 16, 32):
        entry = shifted(at_once(f"{8_000_000 // queue_pairs} B"), transport=TCP)
        entries = {f"traffic.pair-{i}": entry for i in range(queue_pairs)}
        yield Trial("8.1", f"{queue_pairs} queue pairs", LEAVES, {**entries, **BALANCED})
    for id_, balancing in (("8.2", "flowlets"), ("8.3", "spraying")):
        entry = shifted(at_once("8 MB", balancing), transport=TCP)
        yield Trial(id_, balancing, LEAVES, {"traffic.all": entry, **BALANCED})


def collective(operation: str, size: str, iterations: int, **more: Any) -> Tree:
    """Operations of ranks, one after the other."""
    source = {"kind": "collective", "operation": operation, "size": size, "iterations": iterations}
    return {**source, **more}


def _job(operation: str, size: str, balancing: str, iterations: int = 5, **more: Any) -> Tree:
    source = collective(operation, size, iterations, balancing=BALANCING[balancing], **more)
    return {"from": "host-*", "source": source, "transport": TCP}


JOB = {
    "measure.job": {"kind": "job-time", "of": "job"},
    "measure.bandwidth": {"kind": "bus-bandwidth", "of": "job"},
    "measure.worst": {"kind": "bus-bandwidth", "of": "job", "at": "1 %"},
}


def _jobs() -> Iterator[Trial]:
    """9.1 to 9.4, 10.1, 10.3, 11.2: collective operations, jobs, and links that fail."""
    for id_, operation in (("9.1", "all-reduce"), ("9.2", "all-to-all"), ("9.3", "all-gather")):
        for size in ("1 MB", "8 MB", "64 MB"):
            for balancing in BALANCING:
                entry = {"traffic.job": _job(operation, size, balancing), "run.duration": "200 ms"}
                changes = {**entry, **JOB, "measure.jfi": BALANCED["measure.jfi"]}
                yield Trial(id_, f"{size}, {balancing}", LEAVES, changes, quick=size != "64 MB")
    for side in (4, 8, 16):
        # So many leaves, spines, and hosts at each leaf; parts of 62.5 kB as in 9.1 with 1 MB.
        scaled: Tree = {
            "network.children": [side, side],
            "network.parents": [1, side],
            "traffic.job": _job("all-reduce", f"{side * side * 62_500} B", "spraying", iterations=SCALED),
            "run.duration": "200 ms",
            **JOB,
        }
        yield Trial("11.1", f"{side * side} ranks", LEAVES, scaled, quick=side < 16)
    for compute in ("0.1 ms", "1 ms", "5 ms"):
        job = _job("all-reduce", "16 MB", "ECMP", compute=compute)
        entry = {"traffic.job": job, "run.duration": "100 ms"}
        yield Trial("10.1", f"computes {compute}", LEAVES, {**entry, **JOB})
    first = [f"host-{4 * leaf + i}" for leaf in range(4) for i in (0, 1)]
    job = _job("all-reduce", "16 MB", "ECMP")
    alone: Tree = {"traffic.job": {**job, "from": first}}
    for shared in (0, 25, 50, 75):
        # The first job has hosts 0, 1 of each leaf; the second as many of its hosts as share is asked for.
        count = round(shared / 100 * len(first))
        others = [f"host-{4 * leaf + i}" for leaf in range(4) for i in (2, 3)]
        second = first[:count] + others[count:]
        changes = {**alone, "traffic.other": {**job, "from": second}, "run.duration": "100 ms", **JOB}
        yield Trial("10.3", f"{shared} % of the hosts shared", LEAVES, changes)
    yield Trial("10.3", "alone", LEAVES, {**alone, "run.duration": "100 ms", **JOB})
    cut = {"kind": "link-down", "at": "level1-0->level2-0", "when": "5 ms"}
    lost = {"kind": "drops", "of": "*->*"}
    for balancing in BALANCING:
        entry = {"traffic.job": _job("all-reduce", "16 MB", balancing, iterations=8)}
        steady: Tree = {"run.duration": "200 ms", **JOB}
        for after in ("50 us", "5 ms"):
            changes = {**entry, "events.cut": {**cut, "reroute": after}, **steady, "measure.lost": lost}
            yield Trial("11.2", f"{balancing}, known after {after}", LEAVES, changes)
        yield Trial("11.3", f"{balancing}, no failure", LEAVES, {**entry, **steady})


def _canaries() -> Iterator[Trial]:
    """GPCNeT: canaries alone, with each congestor and with all four. All are closed loops: a message comes
    when what it waits for has arrived."""

    ring = ["host-0", "host-5", "host-10"]
    others = [f"host-{i}" for i in range(16) if f"host-{i}" not in ring]
    # In an order that spreads each congestor over the leaves.
    rest = [others[7 * i % len(others)] for i in range(len(others))]
    # Each rank sends to its neighbours of the ring, then all wait for all. One canary after the other.
    canaries = {
        "latency": ("all-gather", "24 B", 200, "1 ms"),
        "bandwidth": ("all-to-all", f"{3 * 131072} B", 20, "6 ms"),
        "all-reduce": ("all-reduce", "24 B", 100, "11 ms"),
    }
    measures = {
        f"measure.{name}{word}": {"kind": "message-time", "of": name, **at}
        for name in canaries
        for word, at in (("", {}), ("-p99", {"at": "99 %"}))
    }
    alone = {
        f"traffic.{name}": {**_loop(ring, operation, size, iterations), "start": start}
        for name, (operation, size, iterations, start) in canaries.items()
    }

    def greedy(senders: str | list[str], receivers: str) -> Tree:
        return flow(senders, receivers, {"kind": "bulk"}, transport=TCP)

    congestors: Mapping[str, Tree] = {
        "all-to-all": {"traffic.all-to-all": _loop(rest[:4], "all-to-all", f"{4 * 4096} B", 2000)},
        "two-sided incast": {"traffic.incast": greedy(rest[5:7], rest[4])},
        "put incast": {"traffic.put": greedy(rest[8:10], rest[7])},
        "get broadcast": {f"traffic.get-{host}": greedy(rest[10], host) for host in rest[11:]},
    }
    four = {name: entry for entries in congestors.values() for name, entry in entries.items()}
    for condition, more in {"alone": {}, **congestors, "all four": four}.items():
        yield Trial("GPCNeT", condition, LEAVES, {**alone, **measures, **more, "run.duration": "20 ms"})


def _loop(ranks: Sequence[str], operation: str, size: str, iterations: int) -> Tree:
    return {"from": list(ranks), "source": collective(operation, size, iterations), "transport": TCP}


TRIALS: tuple[Trial, ...] = (*_frames(), *_signals(), *_links(), *_jobs(), *_canaries())
