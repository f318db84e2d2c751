"""Plots of messages: how long they took, by their length."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from weirlab.measures.messages import percentile
from weirlab.plots.style import Plot, alt, finished, legend_of, scaled, series_color
from weirlab.records import Records
from weirlab.stats import mean_interval

BINS = 16
"""Most ranges of length."""
LEAST = 110
"""Messages of a range where there are so many: of fewer, the tail would be the slowest alone."""
TAIL = 0.99
_OF_TAIL = 100


def by_size(records: Records) -> pl.DataFrame:
    """Messages by traffic and length, in ranges of as many messages each: columns `name low_bytes
    high_bytes messages unfinished median tail median_ps tail_ps`, slowdowns and completion times, null where
    messages have not ended that they depend on; no rows where there are no messages. With `_half` behind
    their names: half of the 95 % interval of their mean over replicates; null of a single run, the messages
    of which depend on one another."""
    if "messages" not in records or records["messages"].is_empty():
        return pl.DataFrame()
    rows = records["messages"].join(records["traffic_names"].select("traffic", "name"), on="traffic")
    taken = (pl.col("delivered_ps") - pl.col("start_ps")).cast(pl.Float64).fill_null(math.inf)
    ranges = pl.min_horizontal(BINS, (pl.len().over("traffic") // LEAST).clip(1))
    place = pl.col("size_bytes").rank("max").over("traffic") / pl.len().over("traffic")
    binned = rows.with_columns(
        taken=taken, slowdown=taken / pl.col("ideal_ps").cast(pl.Float64), bin=(place * ranges).ceil()
    )
    has_tail = pl.len() >= _OF_TAIL
    values = {
        "median": percentile(pl.col("slowdown"), 0.5),
        "tail": pl.when(has_tail).then(percentile(pl.col("slowdown"), TAIL)),
        "median_ps": percentile(pl.col("taken"), 0.5),
        "tail_ps": pl.when(has_tail).then(percentile(pl.col("taken"), TAIL)),
    }
    found = binned.group_by("traffic", "name", "bin").agg(
        low_bytes=pl.col("size_bytes").min(),
        high_bytes=pl.col("size_bytes").max(),
        messages=pl.len(),
        unfinished=pl.col("delivered_ps").is_null().sum(),
        **values,
    )
    of_runs = binned.group_by("traffic", "bin", "replicate").agg(**values)
    halves = (
        of_runs.group_by("traffic", "bin")
        .agg(*values)
        .select("traffic", "bin", *(pl.col(name).map_elements(_half, pl.Float64) for name in values))
        .rename({name: f"{name}_half" for name in values})
    )
    finite = pl.col(*values)
    return (
        found.join(halves, on=["traffic", "bin"])
        .sort("traffic", "bin")
        .with_columns(pl.when(finite.is_finite()).then(finite))
        .drop("traffic", "bin")
    )


def _half(of_runs: pl.Series) -> float | None:
    """Half of the interval of the mean of values of replicates; None where there is none."""
    known = [value for value in of_runs if value is not None and math.isfinite(value)]
    interval = mean_interval(known) if len(known) == len(of_runs) > 1 else None
    return None if interval is None else interval.half_width


def message_plots(rows: pl.DataFrame) -> list[Plot]:
    """Slowdown and completion time of messages by their length, of the rows of `by_size`; nothing where there
    are none, or all are as long."""
    if rows.is_empty() or rows.get_column("high_bytes").n_unique() == 1:
        return []
    many, slowdown = rows.get_column("messages").sum(), "time over that in an empty network"
    note = f"Ranges of as many of {many} messages each; a point stands at the longest one of its range."
    if rows.get_column("unfinished").sum():
        note += " Those that have not ended count as slower than all others; what they decide is left out."
    plots = (
        _by_size(rows, ("median", "tail"), "message-slowdown", "Slowdown", slowdown, note),
        _by_size(rows, ("median_ps", "tail_ps"), "message-time", "Completion time", "completion time", note),
    )
    return [plot for plot in plots if plot is not None]


def _by_size(
    rows: pl.DataFrame, columns: tuple[str, str], name: str, what: str, y_title: str, note: str
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
    shown = data.get_column("series").unique(maintain_order=True).to_list()

    def axis(column: str, of_title: str) -> Mapping[str, object]:
        wide = float(data.select(pl.col(column).max() / pl.col(column).min()).item()) > 20
        scale = alt.Scale(type="log" if wide else "linear", zero=False, nice=False)
        return {"title": of_title, "scale": scale, "axis": alt.Axis(format="~g")}

    base = alt.Chart(data).encode(
        x=alt.X("size:Q", **axis("size", f"length of the message [{size_unit}]")),
        y=alt.Y("y:Q", **axis("y", f"{y_title} [{unit}]" if unit else y_title)),
        color=series_color("series", shown, legend=legend_of(shown, symbolType="stroke")),
    )
    chart = alt.layer(base.mark_line(), base.mark_point(filled=True, size=36))
    title = f"{what} of messages by their length"
    return finished(
        [chart],
        name=name,
        title=title,
        description=f"{title}: median and 99th percentile of {', '.join(names)}.",
        note=note,
    )
