"""Tests of the drafts as scenarios: by id, what is varied, and what is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    seeds: int = 5
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


_STAR = """\
weirlab: 1
name: star
network: {kind: star, hosts: 17, link: {rate: 100 Gbit/s, delay: 1 us}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: 4000 kB}}
run: {duration: 1 ms, seed: 1}
"""
_LEAVES = """\
weirlab: 1
name: leaves
network: {kind: xgft, children: [4, 4], parents: [1, 4], link: {rate: 100 Gbit/s, delay: 1 us}}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: 4 MB, marking: {k_min: 300 kB}}}
run: {duration: 20 ms, seed: 1}
"""
"""Two tiers: four leaves with four hosts, four spines, no oversubscription."""
LIMIT, FRAME = 4_000_000, 1024
"""Of queues, and of frames of bursts [B]."""
BUFFER, ALPHA = 16_000_000, 0.125
"""Of a switch with flow control [B], and the part of what is free that an input may take."""
TCP: Tree = {
    "kind": "tcp",
    "congestion_control": {"kind": "dctcp"},
    "segment": "4096 B",
    "initial_window": 40,
    "timestamps": False,
    "loss_marking": "rack-tlp",
    "min_rto": "1 ms",
}
_BALANCING: Mapping[str, Tree] = {
    "ECMP": {"kind": "flow"},
    "flowlets": {"kind": "flowlets", "gap": "2 us"},
    "spraying": {"kind": "least-queue"},
}
UP = "level1-*->level2-*"


def _at_once(size: str, balancing: str = "ECMP") -> Tree:
    """A message of each sender at the start."""
    return {
        "kind": "messages",
        "sizes": {"kind": "fixed", "size": size},
        "every": "1 s",
        "gaps": {"kind": "constant"},
        "balancing": _BALANCING[balancing],
    }


def _frames() -> Iterator[Trial]:
    """5.1, 5.2, 5.3: throughput, latency, bursts."""
    for size in ("64 B", "256 B", "1024 B", "4096 B"):
        for way, ends in (("one way", ["host-[0-7]"]), ("both ways", ["host-[0-7]", "host-[8-15]"])):
            streams = {
                f"traffic.flow-{i}": {
                    "from": senders,
                    "to": {"host-[0-7]": "host-[8-15]", "host-[8-15]": "host-[0-7]"}[senders],
                    "pattern": {"kind": "pairs"},
                    "source": {"kind": "constant", "load": "100 %", "frame_size": size},
                }
                for i, senders in enumerate(ends)
            }
            measures = {
                "measure.loss": {"kind": "loss-ratio", "of": "*"},
                "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-8"},
            }
            yield Trial(
                "5.1", f"{size}, {way}", _STAR, {**streams, **measures, "run.duration": "0.2 ms"}, seeds=1
            )
    for share in ("1 %", "90 %"):
        changes = {
            "traffic.flow": {
                "from": "host-[0-7]",
                "to": "host-[8-15]",
                "pattern": {"kind": "uniform"},
                "source": {"kind": "poisson", "load": share, "frame_size": "1024 B"},
            },
            "record.delays": {"delays": "flow"},
            "measure.mean": {"kind": "mean-delay", "of": "flow"},
            "measure.p99": {"kind": "delay-percentile", "of": "flow", "percentile": "99 %"},
            "measure.p99-9": {"kind": "delay-percentile", "of": "flow", "percentile": "99.9 %"},
        }
        yield Trial("5.2", f"load {share}", _STAR, changes)
    for senders in (2, 4, 8, 16):
        # Of n bursts of b frames (n - 1) b wait.
        most = LIMIT // FRAME // (senders - 1)
        for frames, word in ((most, "what fits"), (round(1.02 * most) + 1, "2 % more")):
            changes = {
                "traffic.burst": {
                    "from": f"host-[0-{senders - 1}]",
                    "to": "host-16",
                    "source": {
                        **_at_once(f"{frames * (FRAME - 48)} B"),
                        "packet": {"payload": f"{FRAME - 48} B", "headers": "48 B"},
                    },
                },
                "measure.drops": {"kind": "drops", "of": "switch-0->*"},
                "run.duration": "20 ms",
            }
            yield Trial("5.3", f"{senders}:1, {word}", _STAR, changes, seeds=1)


_WATCHDOG = {
    "buffers.all.watchdog": {
        "poll": "20 us",
        "detection": "100 us",
        "restoration": "100 us",
        "action": "drop",
    }
}


def _signals() -> Iterator[Trial]:
    """7.1 to 7.4: marks, priority flow control, convergence, deadlock."""
    for mark in ("100 kB", "1 MB", "3 MB"):
        changes = {
            "control.dcqcn": {
                "marking": {"at": "switch-0->*", "k_min": mark, "k_max": mark},
                "reaction_point": {"at": "@hosts", "min_rate": "100 Gbit/s"},
            },
            "traffic.load": {
                "from": "host-[0-1]",
                "to": "host-16",
                "source": {"kind": "constant", "load": "100 %", "frame_size": "1000 B"},
            },
            "run.duration": "0.3 ms",
            "measure.marked": {"kind": "marks", "of": "switch-0->host-16", "take": "share"},
        }
        yield Trial("7.1", f"threshold {mark}", _STAR, changes, seeds=1)
    lossless = {"rdma": {"classes": [0], "alpha": ALPHA, "reserved": "4 kB", "lossless": {}}}
    for senders in (2, 4, 8, 16):
        changes = {
            "queues.all.limit": "unlimited",
            "buffers.all": {
                "at": "@switches",
                "size": f"{BUFFER} B",
                "ingress": lossless,
                "flow_control": {"stops": "link"},
            },
            "traffic.load": {
                "from": f"host-[0-{senders - 1}]",
                "to": "host-16",
                "source": {"kind": "constant", "load": "100 %", "frame_size": "1024 B"},
            },
            "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-16"},
            "measure.drops": {"kind": "drops", "of": "switch-0->*"},
            "measure.held": {"kind": "pause-fraction", "of": f"host-[0-{senders - 1}]->*"},
            "measure.stops": {"kind": "control-frames", "of": "switch-0->*", "type": "xoff"},
            "measure.depth": {"kind": "pause-depth", "of": "*->*"},
        }
        yield Trial("7.2", f"{senders}:1", _STAR, changes, seeds=1)
    nothing: Tree = {}
    for name, guard in (("no watchdog", nothing), ("watchdog", _WATCHDOG)):
        more = {"measure.dropped": {"kind": "drops", "of": "ring-*->*"}}
        yield Trial("7.4", f"ring of four, {name}", "pfc-deadlock", {**guard, **more}, seeds=3)
    for flows in (2, 4, 8):
        stream = {
            "to": "host-16",
            "source": {"kind": "constant", "load": "100 %", "frame_size": "1048 B"},
        }
        marking = {"at": "switch-0->*", "k_min": "100 kB", "k_max": "400 kB", "p_max": "20 %"}
        changes = {
            "control.dcqcn": {"marking": marking, "reaction_point": {"at": "@hosts"}},
            "traffic.early": {"from": f"host-[0-{flows - 1}]", **stream},
            "traffic.late": {"from": f"host-[{flows}-{2 * flows - 1}]", "start": "10 ms", **stream},
            "run.duration": "40 ms",
            "record.rates": {"flow": "*", "by": "flow", "every": "1 ms"},
            "measure.jain": {"kind": "jain-fairness", "of": "*", "window": "30 ms .. 40 ms"},
            "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-16"},
            "measure.settled": {
                "kind": "time-to-converge",
                "of": "*",
                "target": f"{98 / 2 / flows:g} Gbit/s",
                "within": "10 %",
            },
        }
        yield Trial("7.3", f"{flows} flows, {flows} more", _STAR, changes)


def _links() -> Iterator[Trial]:
    """8.1 to 8.4: how evenly parallel links are loaded."""
    measures = {
        "measure.mmr": {"kind": "link-imbalance", "of": UP},
        "measure.jfi": {"kind": "link-imbalance", "of": UP, "take": "jain"},
        "measure.time": {"kind": "message-time", "of": "*", "at": "100 %"},
    }
    for queue_pairs in (1, 4, 8, 16, 32):
        entries = {
            f"traffic.pair-{i}": {
                "from": "host-*",
                "pattern": {"kind": "permutation", "shift": 4},
                "source": _at_once(f"{8_000_000 // queue_pairs} B"),
                "transport": TCP,
            }
            for i in range(queue_pairs)
        }
        yield Trial("8.1", f"{queue_pairs} queue pairs", _LEAVES, {**entries, **measures})
    for id_, balancing in (("8.2", "flowlets"), ("8.3", "spraying")):
        entry = {
            "from": "host-*",
            "pattern": {"kind": "permutation", "shift": 4},
            "source": _at_once("8 MB", balancing),
            "transport": TCP,
        }
        yield Trial(id_, balancing, _LEAVES, {"traffic.all": entry, **measures})


def _job(operation: str, size: str, balancing: str, **more: Any) -> Tree:
    return {
        "from": "host-*",
        "source": {
            "kind": "collective",
            "operation": operation,
            "size": size,
            "iterations": 5,
            "balancing": _BALANCING[balancing],
            **more,
        },
        "transport": TCP,
    }


_JOB = {
    "measure.job": {"kind": "job-time", "of": "job"},
    "measure.bandwidth": {"kind": "bus-bandwidth", "of": "job"},
    "measure.worst": {"kind": "bus-bandwidth", "of": "job", "at": "1 %"},
}


def _jobs() -> Iterator[Trial]:
    """9.1 to 9.4, 10.1, 10.3, 11.2: collective operations, jobs, and links that fail."""
    for id_, operation in (("9.1", "all-reduce"), ("9.2", "all-to-all"), ("9.3", "all-gather")):
        for size in ("1 MB", "8 MB", "64 MB"):
            for balancing in _BALANCING:
                entry = {"traffic.job": _job(operation, size, balancing), "run.duration": "200 ms"}
                changes = {
                    **entry,
                    **_JOB,
                    "measure.jfi": {"kind": "link-imbalance", "of": UP, "take": "jain"},
                }
                yield Trial(id_, f"{size}, {balancing}", _LEAVES, changes, quick=size != "64 MB")
    for compute in ("0.1 ms", "1 ms", "5 ms"):
        entry = {
            "traffic.job": _job("all-reduce", "16 MB", "ECMP", compute=compute),
            "run.duration": "100 ms",
        }
        yield Trial("10.1", f"computes {compute}", _LEAVES, {**entry, **_JOB})
    for shared in (0, 50, 100):
        # The first job has hosts 0, 1 of each leaf; the second as many of its hosts as share is asked for.
        first = [f"host-{4 * leaf + i}" for leaf in range(4) for i in (0, 1)]
        count = round(shared / 100 * len(first))
        others = [f"host-{4 * leaf + i}" for leaf in range(4) for i in (2, 3)]
        second = first[:count] + others[count:]
        job = _job("all-reduce", "16 MB", "ECMP")
        changes = {
            "traffic.job": {**job, "from": first},
            "traffic.other": {**job, "from": second},
            "run.duration": "100 ms",
            **_JOB,
        }
        yield Trial("10.3", f"{shared} % of the hosts shared", _LEAVES, changes)
    alone = {
        "traffic.job": {
            **_job("all-reduce", "16 MB", "ECMP"),
            "from": [f"host-{4 * leaf + i}" for leaf in range(4) for i in (0, 1)],
        }
    }
    yield Trial("10.3", "alone", _LEAVES, {**alone, "run.duration": "100 ms", **_JOB})
    for balancing in _BALANCING:
        for after in ("50 us", "5 ms"):
            changes = {
                "traffic.job": _job("all-reduce", "16 MB", balancing, iterations=8),
                "events.cut": {
                    "kind": "link-down",
                    "at": "level1-0->level2-0",
                    "when": "5 ms",
                    "reroute": after,
                },
                "run.duration": "200 ms",
                **_JOB,
                "measure.lost": {"kind": "drops", "of": "*->*"},
            }
            yield Trial("11.2", f"{balancing}, known after {after}", _LEAVES, changes)
        steady = {
            "traffic.job": _job("all-reduce", "16 MB", balancing, iterations=8),
            "run.duration": "200 ms",
        }
        yield Trial("11.3", f"{balancing}, no failure", _LEAVES, {**steady, **_JOB})


def _canaries() -> Iterator[Trial]:
    """GPCNeT: canaries alone, and with congestors."""
    ring = {
        "from": ["host-0", "host-5", "host-10"],
        "pattern": {"kind": "permutation", "shift": 1},
        "transport": TCP,
    }
    small = {**_at_once("8 B"), "every": "20 us"}
    large = {**_at_once("131072 B"), "every": "200 us"}
    rest = [f"host-{i}" for i in range(16) if i not in (0, 5, 10)]
    canaries = {
        "traffic.latency": {**ring, "source": small},
        "traffic.bandwidth": {**ring, "source": large},
        "measure.latency": {"kind": "message-time", "of": "latency"},
        "measure.latency-p99": {"kind": "message-time", "of": "latency", "at": "99 %"},
        "measure.bandwidth": {"kind": "message-time", "of": "bandwidth"},
        "measure.bandwidth-p99": {"kind": "message-time", "of": "bandwidth", "at": "99 %"},
        "run.duration": "5 ms",
    }
    many = {"kind": "messages", "sizes": {"kind": "fixed", "size": "4096 B"}, "load": "60 %"}
    congestors = {
        "traffic.all-to-all": {
            "from": rest[:7],
            "to": rest[:7],
            "pattern": {"kind": "uniform"},
            "source": many,
            "transport": TCP,
        },
        "traffic.incast": {
            "from": rest[8:],
            "to": rest[7],
            "pattern": {"kind": "incast"},
            "source": {**many, "load": "20 %"},
            "transport": TCP,
        },
    }
    yield Trial("GPCNeT", "alone", _LEAVES, canaries)
    yield Trial("GPCNeT", "with congestors", _LEAVES, {**canaries, **congestors})


TRIALS: tuple[Trial, ...] = (*_frames(), *_signals(), *_links(), *_jobs(), *_canaries())
