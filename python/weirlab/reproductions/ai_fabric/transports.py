"""6.3 to 6.6: numbered packets of Ultra Ethernet, and flow control, compared with others, as scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weirlab.reproductions.ai_fabric import tests

PAYLOAD, FRAME = 4096, 4160
"""Data and frame of a packet [B]."""
CUT = 84
"""What is left of a packet whose payload is cut, with framing [B]."""
DUMPED = 2_000_000
"""Message of each sender of an incast [B]."""
TIMEOUT_US = 500
"""Of senders, where packets are dropped."""
PACKET = {"payload": f"{PAYLOAD} B", "headers": f"{FRAME - PAYLOAD} B"}
_RDMA: tests.Tree = {"kind": "rdma", "recovery": "selective", "answers": {"class": 6, "every": "16 KiB"}}
NSCC: tests.Tree = {**_RDMA, "congestion_control": {"kind": "nscc"}}
TRANSPORTS: Mapping[str, tests.Tree] = {
    "NSCC": NSCC,
    "RCCC": {**_RDMA, "congestion_control": {"kind": "line-rate"}, "credit": {}},
    "DCQCN": {**_RDMA, "congestion_control": {"kind": "dcqcn-sender"}},
}
DATA: tests.Tree = {
    "class": 0,
    "weight": 1,
    "kind": "drop-tail",
    "limit": "200 kB",
    "marking": {"k_min": "40 kB", "k_max": "160 kB", "when": "departure"},
}
TRIMMED: tests.Tree = {**DATA, "trim": {"to": 6, "size": "64 B"}}


TWO_SWITCHES = """\
weirlab: 1
name: two-switches
network:
  kind: graph
  nodes: {host: {kind: host, count: 35}, switch: {kind: switch, count: 2}}
  links:
    near: {join: ["host-[0-32]", switch-0], rate: 100 Gbit/s, delay: 1 us}
    far: {join: ["host-[33-34]", switch-1], rate: 100 Gbit/s, delay: 1 us}
    trunk: {join: [switch-0, switch-1], rate: 4 Tbit/s, delay: 1 us}
queues: {all: {at: "@switches->*", kind: drop-tail, limit: 4 MB}}
run: {duration: 4 ms, seed: 1}
"""
"""An incast of 32, and one host that sends to another receiver; the trunk carries them all."""


def queues_of(data: tests.Tree) -> tests.Tree:
    """Queues of switches for data and, before them, answers and headers."""
    control = {"class": 6, "kind": "drop-tail", "limit": "400 kB"}
    return {"at": "@switches->*", "kind": "classes", "classes": {"data": data, "control": control}}


def packets(size: str) -> tests.Tree:
    """One message of each sender at the start, in packets."""
    return {**tests.at_once(size), "packet": PACKET}


def _spraying() -> Iterator[tests.Trial]:
    plain = {"queues.all": queues_of({**DATA, "limit": "4 MB"})}
    entries = {}
    for values in (1, 4, 8, 16, 32):
        paths = {"rule": "oblivious", "values": values}
        transport = NSCC if values == 1 else {**NSCC, "paths": paths}
        entries[f"{values} paths"] = tests.shifted(packets("8 MB"), transport=transport)
    source = {**packets("8 MB"), "balancing": {"kind": "round-robin"}}
    entries["switches spray"] = tests.shifted(source, transport=NSCC)
    for name, entry in entries.items():
        yield tests.Trial("6.3", name, tests.LEAVES, {**plain, "traffic.all": entry, **tests.BALANCED})


def _incast() -> Iterator[tests.Trial]:
    measures = {
        "measure.last": {"kind": "message-time", "of": "*", "at": "100 %"},
        "measure.first": {"kind": "message-time", "of": "*", "at": "0.01 %"},
        "measure.queue": {"kind": "max-queue", "of": "switch-0->host-64"},
        "run.duration": "40 ms",
    }
    source = packets(f"{DUMPED} B")
    for senders in (2, 4, 8, 16, 32, 64):
        for name, transport in TRANSPORTS.items():
            if name == "DCQCN" and senders * CUT >= FRAME:
                continue  # Headers alone fill the link, and no mark comes through that would slow it down.
            dumped = tests.flow(f"host-[0-{senders - 1}]", "host-64", source, transport=transport)
            changes = {"queues.all": queues_of(TRIMMED), "traffic.all": dumped, **measures}
            yield tests.Trial("6.4", f"{senders}:1, {name}", tests.STAR, changes)
    for name, data in (("payloads are trimmed", TRIMMED), ("packets are dropped", DATA)):
        late = {**_RDMA, "congestion_control": {"kind": "line-rate"}, "timeout": f"{TIMEOUT_US} us"}
        dumped = tests.flow("host-[0-1]", "host-64", source, transport=late)
        changes = {"queues.all": queues_of({**data, "limit": "100 kB"}), "traffic.all": dumped, **measures}
        yield tests.Trial("6.5", f"2:1, {name}", tests.STAR, changes)


def _blocking() -> Iterator[tests.Trial]:
    """6.5: what flow control under an incast costs others."""
    load = tests.constant("1024 B")
    marking = {"at": "switch-*->*", "k_min": "100 kB", "k_max": "400 kB", "p_max": "20 %"}
    dcqcn: tests.Tree = {"control.dcqcn": {"marking": marking, "reaction_point": {"at": "@hosts"}}}
    nothing: tests.Tree = {}
    ways = {"queues drop": nothing, "PFC": tests.LOSSLESS, "PFC and DCQCN": {**tests.LOSSLESS, **dcqcn}}
    for name, way in ways.items():
        changes = {
            **way,
            "traffic.incast": tests.flow("host-[0-31]", "host-33", load),
            "traffic.other": tests.flow("host-32", "host-34", load),
            "record.rates": {"flow": "*", "by": "flow", "every": "100 us"},
            "measure.incast": {"kind": "delivered-rate", "of": "incast", "window": "2 ms .. 4 ms"},
            "measure.others": {"kind": "delivered-rate", "of": "other", "window": "2 ms .. 4 ms"},
            "measure.blocked": {"kind": "pause-fraction", "of": "host-32->*"},
            "measure.depth": {"kind": "pause-depth", "of": "*->*"},
            "measure.drops": {"kind": "drops", "of": "*->*"},
        }
        yield tests.Trial("6.5", f"32:1, {name}", TWO_SWITCHES, changes)


def _collectives() -> Iterator[tests.Trial]:
    for operation in ("all-reduce", "all-gather", "all-to-all"):
        for name in ("NSCC", "RCCC"):
            source = tests.collective(operation, "16 MB", 3, packet=PACKET)
            sprayed = {**TRANSPORTS[name], "paths": {"rule": "oblivious", "values": 64}}
            entry = {"from": "host-*", "source": source, "transport": sprayed}
            more = {"traffic.job": entry, "run.duration": "100 ms", **tests.JOB}
            changes = {"queues.all": queues_of(TRIMMED), **more}
            yield tests.Trial("6.6", f"{operation}, {name}", tests.LEAVES, changes)


TRIALS: tuple[tests.Trial, ...] = (*_spraying(), *_incast(), *_blocking(), *_collectives())
