"""What the report of a run says of congestion control: frames that queues caused, and what limiters did."""

from __future__ import annotations

import polars as pl

from weirlab.plots.style import scaled
from weirlab.records import Records
from weirlab.report.page import Block, Column, Section, Table, number

__all__ = ["control_sections"]

_ROWS = 120


def control_sections(records: Records) -> list[Section]:
    """A section, or none where no control frame was sent and no limiter made."""
    blocks: list[Block] = []
    if records["control_frames"].height:
        blocks.append(_frame_table(records))
    limiters = records["reaction_points"].filter(pl.col("made") > 0)
    if limiters.height:
        blocks.append(_limiter_table(records, limiters))
    if records["ports"].filter(pl.col("paused_count") > 0).height:
        blocks.append(_pause_table(records))
    return [Section("Congestion control", blocks)] if blocks else []


def _frame_table(records: Records) -> Table:
    frames = (
        records.named("control_frames")
        .join(records["port_names"].select(queue_port="port", queue="name"), on="queue_port")
        .group_by("queue", "kind_name", maintain_order=True)
        .agg(pl.col("frames", "bytes").sum())
    )
    return Table(
        "Control frames by the queue that caused them",
        [Column("queue", numeric=False), Column("kind", numeric=False), Column("frames"), Column("bytes")],
        [
            [row["queue"], row["kind_name"], number(row["frames"]), number(row["bytes"])]
            for row in frames.iter_rows(named=True)
        ],
        most=_ROWS,
        where="tables/control_frames.parquet",
        note=_many(records),
    )


def _limiter_table(records: Records, limiters: pl.DataFrame) -> Table:
    names = records["flow_names"].select("flow", "name")
    counts = ("made", "removed", "increases", "decreases", "stops")
    rows = (
        limiters.join(names, on="flow")
        .group_by("name", maintain_order=True)
        .agg(pl.col(*counts).sum(), pl.col("limited_ps", "stopped_ps").cast(pl.Float64).mean())
    )
    factor, unit = scaled(float(rows.select(pl.col("limited_ps").max()).item()), "time")
    return Table(
        "Rate limiters by flow",
        [
            Column("flow", numeric=False),
            *(Column(name) for name in counts),
            Column("limited", unit),
            Column("stopped", unit),
        ],
        [
            [
                row["name"],
                *(number(row[name]) for name in counts),
                *(number(row[name] * factor) for name in ("limited_ps", "stopped_ps")),
            ]
            for row in rows.iter_rows(named=True)
        ],
        most=_ROWS,
        where="tables/reaction_points.parquet",
        note=_many(records, "counts are sums, times means"),
    )


def _pause_table(records: Records) -> Table:
    rows = (
        records["ports"]
        .join(records["port_names"].select("port", "name"), on="port", maintain_order="left")
        .group_by("name", maintain_order=True)
        .agg(
            pl.col("paused_count").sum(),
            pl.col("paused_ps").cast(pl.Float64).mean(),
            pl.col("paused_longest_ps").cast(pl.Float64).max(),
            pl.col("paused_last_ps").max(),
        )
        .filter(pl.col("paused_count") > 0)
    )
    factor, unit = scaled(float(rows.select(pl.col("paused_last_ps").max()).item()), "time")
    return Table(
        "Ports that PAUSE held",
        [
            Column("port", numeric=False),
            Column("pauses"),
            Column("paused", unit),
            Column("longest", unit),
            Column("until", unit),
        ],
        [
            [
                row["name"],
                number(row["paused_count"]),
                *(number(row[f"paused_{name}"] * factor) for name in ("ps", "longest_ps", "last_ps")),
            ]
            for row in rows.iter_rows(named=True)
        ],
        most=_ROWS,
        where="tables/ports.parquet",
        note=_many(records, "pauses are sums, 'paused' a mean, the others the greatest"),
    )


def _many(records: Records, how: str = "sums") -> str:
    count = records["runs"].height
    return f"{count} replicates: {how}." if count > 1 else ""
