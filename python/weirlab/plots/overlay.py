"""Series of several runs in the same plots: a colour for each run, a row for each port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from weirlab.plots.envelopes import LINE_RATE, MEAN_QUEUE, Envelopes, time_axis
from weirlab.plots.style import Plot, alt, finished, scaled, series_color
from weirlab.records import Records

_PORTS = 4
"""Most ports, one below the other."""


def overlaid_plots(runs: Sequence[tuple[str, Records]]) -> list[Plot]:
    """Queue and rate over time of the ports that all runs recorded, by name, the fullest first; nothing where
    there is none."""
    recorded = [(name, Envelopes.of(records, "intervals", "port")) for name, records in runs]
    if len(recorded) < 2:
        return []
    ports = _fullest([series for _, series in recorded])
    if not ports:
        return []
    return [
        _overlaid(recorded, ports, MEAN_QUEUE, "bytes", "queue", "Waiting bytes, mean of each interval"),
        _overlaid(recorded, ports, LINE_RATE, "rate", "rate", "Transmitted rate, framing included"),
    ]


def _fullest(recorded: Sequence[Envelopes]) -> list[str]:
    """Ports that all have, by their largest queue in any."""
    shared = set.intersection(*(set(series.names) for series in recorded))
    rows = pl.concat([series.rows.select("name", "queue_max_bytes", "bytes") for series in recorded])
    order = (
        rows.filter(pl.col("name").is_in(shared))
        .group_by("name")
        .agg(pl.col("queue_max_bytes").max(), pl.col("bytes").sum())
        .sort(["queue_max_bytes", "bytes", "name"], descending=[True, True, False])
    )
    return order.get_column("name").head(_PORTS).to_list()


def _overlaid(
    recorded: Sequence[tuple[str, Envelopes]],
    ports: Sequence[str],
    value: pl.Expr,
    kind: str,
    what: str,
    title: str,
) -> Plot:
    table = pl.concat(
        [series.envelope(value).drawn.with_columns(run=pl.lit(run)) for run, series in recorded]
    ).filter(pl.col("name").is_in(ports))
    time_factor, time_unit = scaled(float(table.select(pl.col("t_ps").max()).item()), "time")
    factor, unit = scaled(float(table.select(pl.col("mean").max()).item()), kind)
    data = table.select("name", "run", mean=pl.col("mean") * factor, t=pl.col("t_ps") * time_factor)
    runs = [run for run, _ in recorded]
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1, title=None)
    color = series_color("run", runs, legend=legend)
    charts: list[Any] = []
    for place, port in enumerate(ports):
        time = time_axis(time_unit, labelled=place == len(ports) - 1)
        chart = alt.Chart(data.filter(pl.col("name") == port)).mark_line(interpolate="step-before")
        y = alt.Y("mean:Q", title=f"{what} [{unit}]", axis=alt.Axis(tickCount=4))
        charts.append(chart.encode(x=time, y=y, color=color).properties(title=port))
    return finished(
        charts,
        name=f"overlaid-{what}",
        title=title,
        description=f"{title}, of {', '.join(ports)} over time, in {', '.join(runs)}.",
        note="Lines: means over replicates.",
    )
