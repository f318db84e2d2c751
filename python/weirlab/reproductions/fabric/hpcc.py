"""What HPCC and DCQCN do in the figures of HPCC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weirlab.reproductions.fabric.case import Case, Tree, messages
from weirlab.reproductions.published import Hpcc, read

HPCC = read("fabric-hpcc", Hpcc)
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
        "source": messages(size, every),
    }


def _micro() -> Iterator[Case]:
    for name in _CONTROLLED:
        new = {"traffic.new": _more("host-[1-7]", "500 kB", "300 us")}
        joining = {**new, **_carried(name, ["long", "new"])}
        # Marks with DCQCN are drawn, and rates swing.
        seeds = 16 if name == "dcqcn" else 5
        yield Case(f"joining, {name}", "rack", joining, seeds=seeds)
        if name == "dcqcn":
            coming = {"control.dcqcn.marking.when": "arrival"}
            yield Case("joining, dcqcn, marks on arrival", "rack", {**joining, **coming}, seeds=seeds)
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
        yield Case(f"mice, {name}", "rack", {**mice, **_carried(name, ["long", "mice"])}, seeds=seeds)
        recovery = {
            "traffic.short": _more("host-1", "1 MB", "1 ms"),
            "measure.before": {"kind": "delivered-rate", "of": "long", "window": "0.5 ms .. 1 ms"},
            # The short flow lasts for 0.6 to 1 ms.
            "measure.after": {"kind": "delivered-rate", "of": "long", "window": "3.8 ms .. 4 ms"},
        }
        yield Case(
            f"recovery, {name}", "rack", {**recovery, **_carried(name, ["long", "short"])}, seeds=seeds
        )


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


def cases() -> Iterator[Case]:
    """The weight of additive increase, the micro-benchmarks, web search and Hadoop."""
    for size in (25, 50, 80, 150, 300):
        at = "traffic.writes.transport.congestion_control.w_ai"
        yield Case(f"w_ai {size}", "w-ai", {at: f"{size} B"}, seeds=1)
    yield from _micro()
    for name in _CONTROLLED:
        for load in (30, 50):
            # With DCQCN 99th percentiles vary from run to run.
            long = {"traffic.web.stop": "240 ms", "traffic.short.stop": "240 ms", "run.duration": "260 ms"}
            changes = {**_web(name, load), **(long if name == "dcqcn" else {})}
            yield Case(f"websearch {load}, {name}", "testbed", changes, seeds=16, quick=False)
    marks = {"k_min": "300 kB", "k_max": "300 kB"}
    for name, queue in (("hpcc", {}), ("dctcp", {f"queues.all.marking.{key}": marks[key] for key in marks})):
        control = {"kind": name, **({"max_stage": 0} if name == "hpcc" else {})}
        of_hadoop: Tree = {**_HADOOP_LINKS, "traffic.all.transport.congestion_control": control, **queue}
        yield Case(f"hadoop 50, {name}", "hadoop", of_hadoop, seeds=3, quick=False)
