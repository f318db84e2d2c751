"""Plots of sensitivity: how much a measure hangs on each parameter, by combination of the factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, finished, legend_of, series_color
from weirlab.scenario.plan.combinations import short_names

SERIES = 6
"""Most combinations in one plot."""


@dataclass(frozen=True)
class Shown:
    """What a plot of a design shows."""

    value: str
    """The column."""
    title: str
    low: pl.Expr
    high: pl.Expr
    """Ends of the bar."""
    note: str


SHOWN: Mapping[str, Shown] = {
    "morris": Shown(
        "mu_star",
        "µ*",
        (pl.col("mu_star") - pl.col("mu_star_half")).clip(0),
        pl.col("mu_star") + pl.col("mu_star_half"),
        "Point: mean of the absolute elementary effects; bar: its 95 % interval.",
    ),
    "sobol": Shown(
        "st",
        "total Sobol index",
        pl.col("st") - pl.col("st_half"),
        pl.col("st") + pl.col("st_half"),
        "Point: part of the variance that the parameter causes, alone and with others; bar: 95 % interval.",
    ),
    "latin-hypercube": Shown(
        "pawn",
        "PAWN index",
        pl.col("pawn_chance"),
        pl.col("pawn_chance"),
        "Tick: what a parameter without effect exceeds in one case of 20.",
    ),
}
"""By design."""


def sensitivity_plots(table: pl.DataFrame, kind: str, by: Sequence[str]) -> list[Plot]:
    """One plot for each measure of a table of `weirlab.analysis.sensitivity`, of a design of this kind; a
    colour for each combination of the levels of `by`."""
    shown = SHOWN[kind]
    known = table.drop_nulls(shown.value)
    series = pl.concat_str([pl.col(factor) for factor in by], separator=" · ") if by else pl.lit("")
    names = short_names(known["parameter"].unique().to_list())
    name = pl.col("parameter").replace_strict(names, return_dtype=pl.String)
    rows = known.with_columns(series=series, low=shown.low, high=shown.high, name=name)
    return [
        _plot(str(measure), group, kind, shown)
        for (measure,), group in rows.group_by("measure", maintain_order=True)
    ]


def _plot(measure: str, rows: pl.DataFrame, kind: str, shown: Shown) -> Plot:
    names = rows.get_column("series").unique(maintain_order=True).to_list()
    note = shown.note
    if len(names) > SERIES:
        note += f" The first {SERIES} of {len(names)} combinations."
        names = names[:SERIES]
        rows = rows.filter(pl.col("series").is_in(names))
    order = (
        rows.group_by("name", maintain_order=True)
        .agg(pl.col(shown.value).mean())
        .sort(shown.value, descending=True)
        .get_column("name")
        .to_list()
    )
    rows = rows.with_columns(
        text=pl.format("{} {}: {}", "name", "series", pl.col(shown.value).round_sig_figs(3).cast(pl.String))
    ).select("name", "series", "low", "high", "text", value=shown.value)
    base = alt.Chart(rows).encode(
        y=alt.Y("name:N", title=None, sort=order, scale=alt.Scale(paddingInner=0.35)),
        color=series_color("series", names, legend=legend_of(names)),
    )
    if len(names) > 1:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=names, scale=alt.Scale(paddingOuter=0.4)))
    x = alt.X("low:Q", title=shown.title, scale=alt.Scale(zero=True))
    if kind == "latin-hypercube":
        bars = base.mark_tick(thickness=2, size=11, opacity=0.7).encode(x=x)
    else:
        bars = base.mark_rule(strokeWidth=1.8, color=LIGHT["blue"]).encode(x=x, x2="high:Q")
    shape = alt.Shape("series:N", sort=names, legend=None)
    dots = base.mark_point(filled=True, size=62, opacity=0.9, aria=True)
    dots = dots.encode(x="value:Q", shape=shape, description="text:N")
    return finished(
        [alt.layer(bars, dots)],
        name=f"sensitivity-{measure}",
        title=f"What {measure} hangs on",
        description=f"{shown.title} of {len(order)} parameters for {measure}; {order[0]} is the greatest.",
        height=max(150, 26 * len(order) * min(len(names), 3)),
        note=note,
    )
