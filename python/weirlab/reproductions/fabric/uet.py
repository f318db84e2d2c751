"""What uet-htsim records: fabrics with NSCC, RCCC, both, and spraying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weirlab.reproductions.fabric.case import Case, Tree, listed, messages
from weirlab.reproductions.published import Uet, read

UET = read("fabric-uet", Uet)
PACKET, HEADERS = 4150, 64
"""Of uet-htsim [B]."""
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
            **messages(size),
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
    ends: Tree = {"pattern": listed(to)} if to else {}
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


def cases() -> Iterator[Case]:
    """Each experiment with each control that it was recorded with."""
    for experiment, runs in UET["runs"].items():
        for control in runs["tail"]:
            made = _EXPERIMENTS.get(experiment)
            changes = _sprayed(experiment, control) if made is None else made(control)
            large = changes.get("network.children") in ([8, 8, 16], [32, 32])
            levels = 2 if "oversubscribed" in experiment else 3
            drawn = large and "incast" not in experiment
            yield Case(
                f"{experiment}, {control}",
                "uet",
                {**_Levels(levels).queues(control), **changes},
                seeds=3 if drawn else 10,
                permuted=1024 if drawn else 0,
                quick=not large,
                # With credit seven of ten runs end within 1 us of each other, and one 8 us later.
                quick_seeds=10 if experiment == "incast-127" else 5,
            )
