"""Tests of the draft on inference as scenarios, those that need a network alone; `I` stands before their ids.

KV caches go from prefill to decode hosts in long messages; experts exchange tokens all to all (dispatch).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weirlab.reproductions.ai_fabric import tests
from weirlab.reproductions.ai_fabric.transports import (
    DATA,
    NSCC,
    PACKET,
    TRANSPORTS,
    TRIMMED,
    packets,
    queues_of,
)

MODELS = {"M1": (2, 4096), "M2": (4, 7168), "M4": (8, 7168)}
"""Experts that a token goes to, and its values of 2 B."""
TOKENS = 128
"""Of each rank in a dispatch."""
TOKENS_A_PAIR = 16
"""Of them to each of 16 ranks, with M1."""
DISPATCHES = 10
KV = 4_000_000
"""A transfer of several at once [B]."""
KV_SENDERS, EP_SENDERS = 4, 8
"""To one host."""
_NOTHING: tests.Tree = {}
_SPRAYED: tests.Tree = {**TRANSPORTS["RCCC"], "paths": {"rule": "oblivious", "values": 64}}
_ANYWHERE: tests.Tree = {"pattern": {"kind": "uniform"}, "transport": _SPRAYED}


_RANKS = 16
_EXPECTED = [1 / rank**0.5 for rank in range(1, _RANKS + 1)]
_SKEWED = [_RANKS * share / sum(_EXPECTED) for share in _EXPECTED]
POPULARITY: Mapping[str, Sequence[float]] = {
    "top-k": _SKEWED,
    "token drop": [min(share, 1.25) for share in _SKEWED],
    "auxiliary loss": [0.9 + 0.2 * rank / (_RANKS - 1) for rank in range(_RANKS)],
    "expert choice": [1.0] * _RANKS,
}
"""What the experts of each rank get, over what they would get if all were alike, by the way that tokens are
routed: by Zipf's law with the exponent 1/2, at most 1.25 of that, within a tenth, and alike."""


def pair_bytes(model: str, ranks: int) -> int:
    """What a rank sends each other in a dispatch: B k H P / N."""
    experts, width = MODELS[model]
    return TOKENS * experts * width * 2 // ranks


def _dispatch(model: str, ranks: int, **more: Any) -> tests.Tree:
    """Ranks spread over the leaves."""
    size = f"{pair_bytes(model, ranks) * ranks} B"
    source = tests.collective("all-to-all", size, DISPATCHES, algorithm="direct", packet=PACKET, **more)
    hosts = [f"host-{4 * (i % 4) + i // 4}" for i in range(ranks)]
    return {"from": hosts, "source": source, "transport": _SPRAYED}


def _transfers_at(load: str) -> tests.Tree:
    """Transfers of 1 MB, as often as the load asks for."""
    sizes = {"kind": "fixed", "size": "1 MB"}
    return {"kind": "messages", "sizes": sizes, "load": load, "packet": PACKET}


def _times(of: str) -> tests.Tree:
    return {
        f"measure.{name}": {"kind": "message-time", "of": of, "at": share}
        for name, share in (("p50", "50 %"), ("p99", "99 %"), ("last", "100 %"))
    }


def _transfers() -> Iterator[tests.Trial]:
    """5.2, 5.3, 6.4: KV transfers one at a time, several at once, and more than decode hosts take."""
    trimmed: tests.Tree = {"queues.all": queues_of(TRIMMED)}
    times = _times("kv")
    for size, every in (("64 kB", "100 us"), ("1 MB", "1 ms"), ("16 MB", "8 ms")):
        for load in (0, 50, 75):
            kv = tests.flow("host-0", "host-4", {**packets(size), "every": every}, transport=NSCC)
            beside = {"kind": "poisson", "load": f"{load} %", "frame_size": "1500 B"}
            changes = {
                **trimmed,
                **{name: times[name] for name in ("measure.p50", "measure.p99")},
                "traffic.kv": kv,
                **({"traffic.others": tests.flow("host-8", "host-4", beside)} if load else {}),
                "run.duration": "16 ms",
            }
            yield tests.Trial(
                "I 5.2", f"{size}, background {load} %", tests.LEAVES, changes, quick=size != "16 MB"
            )
    for pairs in (1, 2, 4, 8):
        ends = f"host-[0-{pairs - 1}]", f"host-[8-{7 + pairs}]"
        entry = tests.flow(*ends, packets(f"{KV} B"), pattern={"kind": "pairs"}, transport=_SPRAYED)
        yield tests.Trial("I 5.3", f"{pairs} pairs", tests.LEAVES, {**trimmed, **times, "traffic.kv": entry})
    for load in (50, 150, 200):
        source = _transfers_at(f"{load / 3:g} %")
        entry = tests.flow("host-[0-11]", "host-[12-15]", source, **_ANYWHERE)
        changes = {
            **trimmed,
            "traffic.kv": entry,
            "measure.busiest": {"kind": "utilisation", "of": "level1-3->host-*"},
            "measure.unfinished": {"kind": "unfinished-messages", "of": "kv"},
            "run.duration": "8 ms",
        }
        yield tests.Trial("I 6.4", f"prefill at {load} %", tests.LEAVES, changes)


def _experts() -> Iterator[tests.Trial]:
    """7.1 to 7.4: dispatches alone, by modes, over more ranks, and next to KV transfers."""
    trimmed: tests.Tree = {"queues.all": queues_of(TRIMMED), "run.duration": "40 ms"}
    measures: tests.Tree = {
        "measure.job": {"kind": "job-time", "of": "ep"},
        "measure.bandwidth": {"kind": "bus-bandwidth", "of": "ep"},
        "measure.p99": {"kind": "message-time", "of": "ep", "at": "99 %"},
    }
    for model in MODELS:
        entry = {"traffic.ep": _dispatch(model, 16)}
        changes = {**trimmed, **measures, **entry}
        yield tests.Trial("I 7.1", f"{model}, 16 ranks", tests.LEAVES, changes, quick=model == "M1")
    yield from _modes()
    for ranks in (4, 8):
        entry = {"traffic.ep": _dispatch("M2", ranks)}
        yield tests.Trial("I 7.3", f"{ranks} ranks", tests.LEAVES, {**trimmed, **measures, **entry})
    ep: tests.Tree = {"traffic.ep": _dispatch("M1", 16, compute="500 us"), **measures}
    for load in (50, 75):
        kv: tests.Tree = {
            "traffic.kv": tests.flow(
                "host-*", "host-*", _transfers_at(f"{load} %"), **_ANYWHERE, stop="6 ms"
            ),
            "measure.kv": {"kind": "message-time", "of": "kv"},
        }
        for word, more in {"together": ep, "alone": _NOTHING}.items():
            changes = {**trimmed, **more, **kv}
            yield tests.Trial("I 7.4", f"KV at {load} %, {word}", tests.LEAVES, changes, quick=load == 50)
    yield tests.Trial("I 7.4", "EP alone", tests.LEAVES, {**trimmed, **ep})


def _modes() -> Iterator[tests.Trial]:
    """7.2: a dispatch in one message to each rank or in one for each token, and by ways of routing tokens."""
    pair = pair_bytes("M1", _RANKS)
    measures: tests.Tree = {
        "queues.all": queues_of(TRIMMED),
        **_times("*"),
        "measure.jfi": {"kind": "link-imbalance", "of": "level1-*->host-*", "take": "jain"},
        "run.duration": "2 ms",
    }
    everyone = {"kind": "groups", "senders": _RANKS - 1, "receivers": _RANKS}
    token = {**packets(f"{pair // TOKENS_A_PAIR} B"), "every": "1 ns"}
    for mode, source, stop in (
        ("normal", packets(f"{pair} B"), "1 us"),
        ("low latency", token, f"{TOKENS_A_PAIR - 0.5} ns"),
    ):
        entry = tests.flow("host-*", "host-*", source, pattern=everyone, stop=stop, transport=_SPRAYED)
        yield tests.Trial("I 7.2", mode, tests.LEAVES, {**measures, "traffic.ep": entry})
    for mode, popularity in POPULARITY.items():
        entries = {
            f"traffic.to-{rank}": tests.flow(
                [f"host-{other}" for other in range(_RANKS) if other != rank],
                f"host-{rank}",
                packets(f"{round(pair * share)} B"),
                transport=_SPRAYED,
            )
            for rank, share in enumerate(popularity)
        }
        yield tests.Trial("I 7.2", mode, tests.LEAVES, {**measures, **entries})


def _congestion() -> Iterator[tests.Trial]:
    """8.1, 8.2: marks and flow control where prefill hosts send to one decode host; 9.3: balancing."""
    for senders in (2, 4, 8, 16):
        for mark in (100, 500, 1000):
            marking = {"k_min": f"{mark} kB", "k_max": f"{mark} kB"}
            kv, dcqcn = packets(f"{KV} B"), TRANSPORTS["DCQCN"]
            changes = {
                "queues.all": queues_of({**DATA, "limit": "100 MB", "marking": marking}),
                "traffic.kv": tests.flow(f"host-[0-{senders - 1}]", "host-64", kv, transport=dcqcn),
                "run.duration": "20 ms",
                "measure.marked": {"kind": "marks", "of": "switch-0->host-64", "take": "share"},
                "measure.queue": {"kind": "max-queue", "of": "switch-0->host-64"},
                "measure.last": {"kind": "message-time", "of": "kv", "at": "100 %"},
            }
            yield tests.Trial("I 8.1", f"{senders}:1, {mark} kB", tests.STAR, changes, quick=senders < 8)
    for senders in (4, 8, 16):
        for window in ("0.1 ms", "1 ms"):
            changes = {
                "queues.all": queues_of({**DATA, "limit": "unlimited"}),
                "buffers.all": {
                    "at": "@switches",
                    "size": "4 MB",
                    "ingress": {"kv": {"classes": [0], "alpha": 0.125, "lossless": {}}},
                },
                **{
                    f"traffic.kv-{i}": tests.flow(
                        f"host-{i}",
                        "host-64",
                        packets(f"{KV // 2} B"),
                        start=f"{float(window.split()[0]) * i / senders:g} ms",
                        transport={**TRANSPORTS["RCCC"], "credit": None},
                    )
                    for i in range(senders)
                },
                "run.duration": "20 ms",
                "measure.drops": {"kind": "drops", "of": "switch-0->*"},
                "measure.stops": {"kind": "control-frames", "of": "switch-0->*", "type": "xoff"},
                "measure.utilisation": {"kind": "utilisation", "of": "switch-0->host-64"},
                "measure.last": {"kind": "message-time", "of": "*", "at": "100 %"},
            }
            yield tests.Trial("I 8.2", f"{senders} transfers in {window}", tests.STAR, changes)
    yield from _mixed()
    yield from _circles()
    for what, sizes in (("KV", (8_000_000,)), ("EP", (400_000,)), ("both", (8_000_000, 400_000))):
        for name, balancing in tests.BALANCING.items():
            entries = {}
            for size in sizes:
                source = {**packets(f"{size} B"), "balancing": balancing}
                shift = 4 if size > 1_000_000 else 5
                entries[f"traffic.of-{size}"] = tests.shifted(source, shift, transport=NSCC)
            changes = {"queues.all": queues_of({**DATA, "limit": "4 MB"}), **entries, **tests.BALANCED}
            yield tests.Trial("I 9.3", f"{what}, {name}", tests.LEAVES, changes)


def _mixed() -> Iterator[tests.Trial]:
    """8.3: dispatches come to KV transfers, or these to dispatches."""
    entries = {"KV": (0, KV_SENDERS, 40), "EP": (KV_SENDERS, KV_SENDERS + EP_SENDERS, 20)}
    for order in (("KV", "EP"), ("EP", "KV")):
        for name, transport in TRANSPORTS.items():
            changes: dict[str, Any] = {
                "queues.all": queues_of(TRIMMED),
                "run.duration": "12 ms",
                "record.rates": {"flow": "*", "by": "flow", "every": "500 us"},
                "measure.jain": {"kind": "jain-fairness", "of": "*", "window": "8 ms .. 12 ms"},
                "measure.drops": {"kind": "drops", "of": "*->*"},
                "measure.settled": {
                    "kind": "settling-time",
                    "of": "*",
                    "target": f"{98.5 / (KV_SENDERS + EP_SENDERS):g} Gbit/s",
                    "within": "5 %",
                    "after": "2 ms",
                    "hold": "1 ms",
                },
            }
            for what, start in zip(order, ("0 s", "2 ms"), strict=True):
                first, end, size = entries[what]
                rate = {"kind": "delivered-rate", "of": f"{what}-*", "window": "8 ms .. 12 ms"}
                changes[f"measure.{what}"] = rate
                for host in range(first, end):
                    changes[f"traffic.{what}-{host}"] = tests.flow(
                        f"host-{host}", "host-64", packets(f"{size} MB"), start=start, transport=transport
                    )
            yield tests.Trial("I 8.3", f"{order[0]} first, {name}", tests.STAR, changes)


def _circles() -> Iterator[tests.Trial]:
    """8.4: KV transfers on all ways of a ring whose buffers depend on each other, and on a tree."""
    raw = tests.at_once("40 MB")
    windows: tests.Tree = {
        "source": packets("40 MB"),
        "transport": {**TRANSPORTS["DCQCN"], "congestion_control": {"kind": "line-rate"}, "answers": {}},
    }
    nothing: tests.Tree = {}
    measures: tests.Tree = {
        "measure.depth": {"kind": "pause-depth", "of": "*->*"},
        "measure.dropped": {"kind": "drops", "of": "*->*"},
    }
    for name, kv, more in (
        ("no watchdog", {"source": raw}, nothing),
        ("watchdog", {"source": raw}, tests.WATCHDOG),
        ("windows of a round trip", windows, nothing),
    ):
        entries = {
            f"traffic.to-{i}": {"from": f"host-{(i + 2) % 4}", "to": f"host-{i}", "class": 3, **kv}
            for i in range(4)
        }
        yield tests.Trial("I 8.4", f"ring of four, {name}", "pfc-deadlock", {**entries, **measures, **more})
    changes = {
        **tests.LOSSLESS,
        **measures,
        "traffic.kv": tests.shifted(raw),
        "run.duration": "2 ms",
        "record.rates": {"flow": "*", "every": "20 us"},
        "measure.delivered": {"kind": "delivered-rate", "of": "*", "window": "1 ms .. 2 ms"},
        "measure.trunks-held": {"kind": "pause-time", "of": "level*->level*", "take": "longest"},
    }
    yield tests.Trial("I 8.4", "leaves and spines", tests.LEAVES, changes)


TRIALS: tuple[tests.Trial, ...] = (*_transfers(), *_experts(), *_congestion())
