"""Sections of a run's page about its TCP connections and probing senders, as `weir diagnose` knows them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import polars as pl

from weirlab.records import Records
from weirlab.report.page import Block, Callout, Section, Table, Text, heads, number, percent
from weirlab.traces import diagnose_records

_CAUSES = {
    "fast_retransmits": "fast: reported missing",
    "forward_retransmits": "forward: below what was reported, nothing else to send",
    "slow_start_retransmits": "after a timeout, in slow start",
    "timeout_retransmits": "first of a timeout",
    "rescue_retransmits": "rescue of the end of a window",
    "probe_retransmits": "probe of a lost tail",
}
"""Parts of `retransmits` and what made them. docs/tcp.md"""
_MOST = 40


def connection_sections(records: Records) -> list[Section]:
    """Connections, what was sent again and why, and what probing senders found; nothing without TCP."""
    if records["connections"].is_empty():
        return []
    blocks: list[Block] = [_connections(records), _causes(records)]
    if not records["resent"].is_empty():
        blocks.append(_resent(records))
    sections = [Section("Connections", blocks)]
    if not records["probe_streams"].is_empty():
        sections.append(Section("Probing senders", _probing_blocks(records)))
    return sections


def _connections(records: Records) -> Table:
    rows = (
        records["connections"]
        .join(records["connection_names"].select("connection", "name"), on="connection")
        .sort("delivered_bytes", descending=True)
    )
    end_ps = dict(records["runs"].select("replicate", "end_ps").iter_rows())

    def goodput(row: Mapping[str, Any]) -> str:
        # A connection that is not done lasts until the run ends.
        ended = row["delivered_ps"] or end_ps[row["replicate"]]
        active = max(ended - (row["opened_ps"] or 0), 0)
        return number(row["delivered_bytes"] * 8e6 / active if active else None)

    def again(row: Mapping[str, Any]) -> str:
        return percent(row["retransmits"] / row["sent_segments"] if row["sent_segments"] else None)

    return Table.of(
        "Connections, most bytes first",
        rows.head(_MOST),
        {"connection:": "name", **({"replicate": ("replicate", str)} if len(end_ps) > 1 else {})},
        {"delivered [MB]": ("delivered_bytes", _millionth), "goodput [Mbit/s]": goodput},
        {"least RTT [ms]": ("min_rtt_ps", _ms), "last RTT [ms]": ("srtt_ps", _ms)},
        {"segments": "sent_segments", "sent again": "retransmits", "of all": again},
        {"recoveries": "recoveries", "failed": "recovery_failures", "timeouts": "timeouts"},
        total=rows.height,
        most=_MOST,
        where="tables/connections.parquet",
        note="Goodput: bytes delivered in order, from the opening until all were, or the run ended. "
        "Last RTT: the smoothed round trip at the end.",
    )


def _causes(records: Records) -> Table:
    table = records["connections"]
    total = int(table.get_column("retransmits").sum())
    counts = {what: int(table.get_column(name).sum()) for name, what in _CAUSES.items()}
    return Table.of(
        "Segments sent again, by cause",
        [*counts.items(), ("all", total)],
        {
            "cause:": itemgetter(0),
            "segments": lambda each: number(each[1]),
            "of all": lambda each: percent(each[1] / total if total else None),
        },
        note="Of all connections and replicates.",
    )


def _resent(records: Records) -> Table:
    rows = records["resent"].group_by("times").agg(pl.col("segments").sum()).sort("times")
    return Table.of(
        "How often segments were sent again",
        rows,
        {"times": "times", "segments": "segments"},
        most=_MOST,
        where="tables/resent.parquet",
    )


def _probing_blocks(records: Records) -> list[Block]:
    findings = diagnose_records(records)
    blocks: list[Block] = [
        Callout(
            f"{each.title} ({each.kind})",
            f"{each.where}: {each.text}",
            "bad" if each.verdict == "problem" else "middling",
        )
        for each in findings[:_MOST]
    ]
    if not findings:
        blocks.append(Text("None of the findings of docs/traces.md about probe streams was made."))
    blocks.append(_outcomes(records))
    if not records["probe_states"].is_empty():
        blocks.append(_states(records))
    if not records["probe_packets"].is_empty():
        blocks.append(_gaps(records))
    return blocks


def _outcomes(records: Records) -> Table:
    streams = records.named("probe_streams")
    rows = (
        streams.group_by("outcome_name")
        .agg(
            count=pl.len(),
            asked=pl.col("rate_bps").median(),
            low=pl.col("available_bps").quantile(0.1),
            middle=pl.col("available_bps").median(),
            high=pl.col("available_bps").quantile(0.9),
        )
        .sort("count", descending=True)
    )
    return Table.of(
        "Probe streams and estimates, by outcome",
        rows,
        {
            "outcome:": "outcome_name",
            "streams": "count",
            "of all": ("count", lambda count: percent(count / streams.height)),
            "requested, median [Mbit/s]": ("asked", _millionth),
            "estimate, 10 % [Mbit/s]": ("low", _millionth),
            "median [Mbit/s]": ("middle", _millionth),
            "90 % [Mbit/s]": ("high", _millionth),
        },
    )


def _states(records: Records) -> Table:
    ends = records["runs"].select("replicate", "end_ps")
    key = ["replicate", "connection"]
    changes = records.named("probe_states").select(*key, "t_ps", "state_name")
    # Only changes are recorded: a sender begins with streams.
    on = records["state_names"].filter(state=0).get_column("name").item()
    first = records["connections"].join(changes, on=key, how="semi")
    first = first.select(
        *key, t_ps=pl.col("opened_ps").fill_null(0).cast(changes.schema["t_ps"]), state_name=pl.lit(on)
    )
    stays = (
        pl.concat([first, changes])
        .sort(*key, "t_ps")
        .join(ends, on="replicate")
        .with_columns(until=pl.col("t_ps").shift(-1).over(key).fill_null(pl.col("end_ps")))
        .with_columns(stay=pl.col("until").cast(pl.Float64) - pl.col("t_ps").cast(pl.Float64))
    )
    rows = (
        stays.group_by("state_name")
        .agg(times=pl.len(), total=pl.col("stay").sum(), median=pl.col("stay").median())
        .sort("total", descending=True)
    )
    whole = float(stays.get_column("stay").sum())
    return Table.of(
        "States of the senders",
        rows,
        {"state:": "state_name", "entered": "times", "in all [s]": ("total", lambda ps: number(ps / 1e12))},
        {"of the time": ("total", lambda ps: percent(ps / whole if whole else None))},
        {"each, median [ms]": ("median", _ms)},
    )


def _gaps(records: Records) -> Table:
    """Gaps within streams: as asked for, as sent, as received."""
    key = ["replicate", "connection", "stream"]
    packets = records["probe_packets"].sort(*key, "packet")
    rows = []
    for column, what in (("due_ps", "asked for"), ("sent_ps", "sent"), ("received_ps", "received")):
        gap = pl.col("gap")
        gaps = packets.select(gap=pl.col(column).cast(pl.Float64).diff().over(key)).drop_nulls().drop_nans()
        if gaps.is_empty():
            continue
        values = gaps.select(gap.min(), m=gap.median(), q=gap.quantile(0.99), most=gap.max()).row(0)
        rows.append([what, number(gaps.height), *(number(value / 1e6) for value in values)])
    return Table(
        "Gaps within probe streams",
        heads("gaps: | count | least [µs] | median [µs] | 99 % [µs] | most [µs]"),
        rows,
    )


def _ms(ps: float | None) -> str:
    return "–" if ps is None else number(ps / 1e9)


def _millionth(value: float | None) -> str:
    return number(None if value is None else value / 1e6)
