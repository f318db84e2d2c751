"""The benchmark workloads as resolved specs, and what they count: to be run by the engine and compared."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from agreement import reference
from agreement.experiments import (
    DELAY_PS,
    RATE_BPS,
    Spec,
    Tables,
    drop_tail,
    port_ids,
    run,
    source,
    star,
    transmission_ps,
)

SWITCH_LIMIT = {"bytes": 150_000}
FIRST_SEED = 1000


def incast(duration_ps: int) -> Tables:
    """W1 through the engine; see :func:`agreement.reference.incast`."""
    departures = {"kind": "poisson", "mean_gap_ps": transmission_ps(1500) / 0.49}
    return _run(star(5), [_source(host, 4, departures, 1500) for host in range(4)], duration_ps)


def fat_tree(k: int, duration_ps: int) -> Tables:
    """W3 through the engine; see :func:`agreement.reference.fat_tree`."""
    hosts = k**3 // 4
    link = {"rate_bps": RATE_BPS, "delay_ps": DELAY_PS, "framing_bytes": 0, "loss": {"kind": "none"}}
    network = {"kind": "fat-tree", "k": k, "link": link, "switch": {"latency_ps": 0}}
    departures = {"kind": "poisson", "mean_gap_ps": transmission_ps(1500) / 0.8}
    sources = [_source(host, (host + hosts // 2) % hosts, departures, 1500) for host in range(hosts)]
    return _run(network, sources, duration_ps)


def slotted_switch(duration_ps: int) -> Tables:
    """W4 through the engine; see :func:`agreement.reference.slotted_switch`."""
    departures = {"kind": "bernoulli", "slot_ps": transmission_ps(64), "probability": 0.85}
    sources = [_source(host, range(32), departures, 64) for host in range(32)]
    return _run(star(32), sources, duration_ps)


def flow_counts(tables: Tables) -> reference.Counts:
    """What the engine counted, by (source host, destination host) as the reference does."""
    names = tables["flow_names"].select(
        "flow",
        pl.col("from", "to").str.strip_prefix("host-").cast(pl.Int64),
    )
    counts = reference.Counts(packet_hops=tables["runs"]["packet_hops"].item())
    for row in tables["flows"].join(names, on="flow").iter_rows(named=True):
        ends = (row["from"], row["to"])
        counts.sent[ends] += row["sent_frames"]
        counts.delivered[ends] += row["delivered_frames"]
        counts.dropped[ends] += row["dropped_frames"]
    return counts


def totals(tables: Tables) -> dict[str, int]:
    """Counts as the benchmark programs print them."""
    return flow_counts(tables).totals


def _source(host: int, to: int | Sequence[int], departures: Spec, size: int) -> Spec:
    return source(host, to, departures, size=size, stream={"kind": "split-mix64", "state": FIRST_SEED + host})


def _run(network: Spec, sources: list[Spec], duration_ps: int) -> Tables:
    queues = [drop_tail(port_ids(network, of="switch"), SWITCH_LIMIT)]
    return run(network, sources, queues=queues, duration_ps=duration_ps, replicates=1)
