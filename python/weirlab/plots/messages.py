"""Plots of messages: how long they took, by their length."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from weirlab.measures.messages import percentile
from weirlab.plots.style import Plot, altair, finished, scaled, series_colors
from weirlab.records import Records

BINS = 16
"""Most ranges of length."""
LEAST = 110
"""Messages of a range where there are so many: of fewer, the tail would be the slowest alone."""
TAIL = 0.99
_OF_TAIL = 100


def by_size(records: Records) -> pl.DataFrame:
    """Messages by traffic and length, in ranges of as many messages each: columns `name low_bytes
    high_bytes messages unfinished median tail median_ps tail_ps`, slowdowns and completion times, null where
    messages have not ended that they depend on; no rows where there are no messages."""
    if "messages" not in records or records["messages"].is_empty():
        return pl.DataFrame()
    rows = records["messages"].join(records["traffic_names"].select("traffic", "name"), on="traffic")
    taken = (pl.col("delivered_ps") - pl.col("start_ps")).cast(pl.Float64).fill_null(math.inf)
    ranges = pl.min_horizontal(BINS, (pl.len().over("traffic") // LEAST).clip(1))
    place = pl.col("size_bytes").rank("max").over("traffic") / pl.len().over("traffic")
    found = (
        rows.with_columns(taken=taken, slowdown=taken / pl.col("ideal_ps").cast(pl.Float64))
        .with_columns(bin=(place * ranges).ceil())
        .group_by("traffic", "name", "bin")
        .agg(
            low_bytes=pl.col("size_bytes").min(),
            high_bytes=pl.col("size_bytes").max(),
            messages=pl.len(),
            unfinished=pl.col("delivered_ps").is_null().sum(),
            median=percentile(pl.col("slowdown"), 0.5),
            tail=pl.when(pl.len() >= _OF_TAIL).then(percentile(pl.col("slowdown"), TAIL)),
            median_ps=percentile(pl.col("taken"), 0.5),
            tail_ps=pl.when(pl.len() >= _OF_TAIL).then(percentile(pl.col("taken"), TAIL)),
        )
        .sort("traffic", "bin")
    )
    values = pl.col("median", "tail", "median_ps", "tail_ps")
    return found.with_columns(pl.when(values.is_finite()).then(values)).drop("traffic", "bin")


def message_plots(records: Records) -> list[Plot]:
    """Slowdown and completion time of messages by their length; nothing where there are none."""
    rows = by_size(records)
    if rows.is_empty():
        return []
    many = records["messages"].height
    note = f"Ranges of as many of {many} messages each; a point stands at the longest one of its range."
    if rows.get_column("unfinished").sum():
        note += " Those that have not ended count as slower than all others; what they decide is left out."
    return [
        plot
        for plot in (
            _by_size(
                rows,
                ("median", "tail"),
                name="message-slowdown",
                title="Slowdown of messages by their length",
                y_title="time over that in an empty network",
                note=note,
            ),
            _by_size(
                rows,
                ("median_ps", "tail_ps"),
                name="message-time",
                title="Completion time of messages by their length",
                y_title="completion time",
                note=note,
            ),
        )
        if plot is not None
    ]


def _by_size(
    rows: pl.DataFrame, columns: tuple[str, str], *, name: str, title: str, y_title: str, note: str
) -> Plot | None:
    names = rows.get_column("name").unique(maintain_order=True).to_list()
    single = len(names) == 1
    parts = []
    for column, word in zip(columns, ("median", "99 %"), strict=True):
        series = pl.lit(word) if single else pl.col("name") + f", {word}"
        parts.append(rows.select(series=series, y=pl.col(column), size="high_bytes").drop_nulls())
    data = pl.concat(parts)
    if data.is_empty():
        return None
    size_factor, size_unit = scaled(float(data.select(pl.col("size").max()).item()), "bytes")
    factor, unit = 1.0, ""
    if columns[0].endswith("_ps"):
        factor, unit = scaled(float(data.select(pl.col("y").max()).item()), "time")
    data = data.with_columns(pl.col("y") * factor, size=pl.col("size") * size_factor)
    alt = altair()
    shown = data.get_column("series").unique(maintain_order=True).to_list()

    def axis(column: str, of_title: str) -> Mapping[str, object]:
        wide = float(data.select(pl.col(column).max() / pl.col(column).min()).item()) > 20
        kind = "log" if wide else "linear"
        return {
            "title": of_title,
            "scale": alt.Scale(type=kind, zero=False, nice=False),
            "axis": alt.Axis(format="~g"),
        }

    base = alt.Chart(data).encode(
        x=alt.X("size:Q", **axis("size", f"length of the message [{size_unit}]")),
        y=alt.Y("y:Q", **axis("y", f"{y_title} [{unit}]" if unit else y_title)),
        color=alt.Color(
            "series:N",
            scale=alt.Scale(**series_colors(shown)),
            sort=shown,
            legend=alt.Legend(symbolType="stroke", symbolOpacity=1) if len(shown) > 1 else None,
        ),
    )
    chart = alt.layer(base.mark_line(), base.mark_point(filled=True, size=36))
    return finished(
        [chart],
        name=name,
        title=title,
        description=f"{title}: median and 99th percentile of {', '.join(names)}.",
        note=note,
    )
