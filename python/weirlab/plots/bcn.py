"""Plots of congestion control: a queue and the rates of limiters over time, and tables of runs as ranges."""

from __future__ import annotations

from typing import Any

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, finished, rule, series_color


def queue_and_rates(
    queue: pl.DataFrame,
    rates: pl.DataFrame,
    *,
    name: str,
    title: str,
    set_point_kb: float,
    limit_kb: float,
    fair_gbps: float,
) -> Plot:
    """One run: queue of the congested port above, rate of each limiter below.

    Args:
        queue: Columns `t_ms mean_kb max_kb`, by interval.
        rates: Columns `flow t_ms rate_gbps`; null where a flow has no limiter.
    """
    end_ms = float(queue.select(pl.col("t_ms").max()).item())
    x = alt.X("t_ms:Q", scale=alt.Scale(domain=[0, end_ms], nice=False))
    queues = alt.Chart(queue).encode(x=x.title(None).axis(labels=False))
    look = {"interpolate": "step-before", "color": LIGHT["blue"]}
    queue_axis = _amount("mean_kb:Q", "queue [kB]", limit_kb)
    levels = alt.layer(
        *rule(set_point_kb, f"set point\n{set_point_kb:g} kB", beside=True),
        queues.mark_area(opacity=0.22, **look).encode(y=queue_axis, y2="max_kb:Q"),
        queues.mark_line(strokeWidth=1.2, **look).encode(y="mean_kb:Q"),
    )
    flows = rates.get_column("flow").unique(maintain_order=True).to_list()
    lines = alt.Chart(rates).mark_line(interpolate="step-before", strokeWidth=1.3)
    limited = lines.encode(
        x=x.title("time [ms]"),
        y=_amount("rate_gbps:Q", "rate [Gbit/s]", 10.0),
        color=series_color("flow", flows, legend=alt.Legend(symbolType="stroke", symbolOpacity=1)),
    )
    fair = rule(fair_gbps, f"fair share\n{fair_gbps:g} Gbit/s", beside=True)
    return finished(
        [levels, alt.layer(*fair, limited)],
        name=name,
        title=title,
        description=f"{title}: queue of the congested port and the rate of {len(flows)} limiters over "
        f"{end_ms:g} ms.",
        note="Queue: line mean over 100 µs, band up to the largest. Rate: at the end of each 100 µs; no line "
        "where a sender is not limited.",
    )


def _amount(field: str, title: str, most: float) -> Any:
    return alt.Y(field, title=title, scale=alt.Scale(domain=[0, most], nice=False))


def range_plot(rows: pl.DataFrame, *, name: str, title: str, x_title: str) -> Plot:
    """Minimum to maximum, mean and a standard deviation to both sides, published and ours below each other.

    Args:
        rows: Columns `label whose least mean greatest sd`.
    """
    whose = rows.get_column("whose").unique(maintain_order=True).to_list()
    labels = rows.get_column("label").unique(maintain_order=True).to_list()
    rows = rows.with_columns(
        low=pl.max_horizontal(pl.col("mean") - pl.col("sd"), "least"),
        high=pl.min_horizontal(pl.col("mean") + pl.col("sd"), "greatest"),
    )
    color = series_color("whose", whose, legend=alt.Legend(symbolType="circle", symbolOpacity=1))
    axis = alt.Axis(labelLimit=260, grid=False)
    base = alt.Chart(rows).encode(
        y=alt.Y("label:N", title=None, sort=labels, axis=axis),
        yOffset=alt.YOffset("whose:N", sort=whose),
        color=color,
    )
    x = alt.X("least:Q", title=x_title, scale=alt.Scale(zero=False))
    chart = alt.layer(
        base.mark_rule(strokeWidth=1.2).encode(x=x, x2="greatest:Q"),
        base.mark_rule(strokeWidth=5, opacity=0.45).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=46, opacity=1).encode(x="mean:Q"),
    )
    return finished(
        [chart],
        name=name,
        title=title,
        description=f"{title}: {len(labels)} configurations, published and ours.",
        height=26 * len(labels),
        note="Point: mean; thick bar: a standard deviation to both sides; thin bar: least to greatest"
        " of all runs.",
    )
