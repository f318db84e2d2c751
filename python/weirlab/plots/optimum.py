"""Plots of where the optimum of a space of parameters lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from weirlab.analysis.optimum import SLICES, Optimum
from weirlab.plots.names import axis_title
from weirlab.plots.plane import AxisOf, heat_map
from weirlab.plots.style import Plot, alt, finished, series_color
from weirlab.scenario.plan.combinations import short_names
from weirlab.scenario.plan.design import ParameterRange


def optimum_plots(optimum: Optimum, ranges: dict[str, ParameterRange]) -> list[Plot]:
    """For each level of the first factor of the traffic: the share of optimal points along each range, and
    over the two parameters on which it depends most."""
    by = optimum.traffic[0] if optimum.traffic else None
    weight = optimum.regions.group_by("parameter", maintain_order=True).agg(
        (pl.col("greatest") - pl.col("least")).mean()
    )
    order = weight.sort("greatest", descending=True, maintain_order=True).get_column("parameter").to_list()
    plots = []
    levels = [""] if by is None else optimum.points.get_column(by).unique(maintain_order=True).to_list()
    for level in levels:
        points = optimum.points if by is None else optimum.points.filter(pl.col(by) == level)
        plots.append(_along(optimum, order, by, level))
        plots.append(_plane(points, order[0], order[1], ranges, level))
    return plots


def _along(optimum: Optimum, order: Sequence[str], by: str | None, level: str) -> Plot:
    names = list(short_names(order).values())
    rows = pl.concat(
        [
            optimum.slices(parameter, by)
            .filter(pl.col("group") == level)
            .with_columns(
                parameter=pl.lit(name),
                text=pl.format("{} at {}: {}", pl.lit(name), "part", pl.col("optimal").round(3)),
            )
            for parameter, name in zip(order, names, strict=True)
        ]
    )
    base = alt.Chart(rows).encode(
        x=alt.X("part:Q", title="part of the range of the parameter", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("optimal:Q", title="share of optimal points", scale=alt.Scale(zero=True)),
        color=series_color("parameter", names),
    )
    shape = alt.Shape("parameter:N", sort=names, legend=None)
    points = base.mark_point(filled=True, size=40, aria=True).encode(shape=shape, description="text:N")
    return finished(
        [alt.layer(base.mark_line(), points)],
        name="-".join(["optimum", *_words(level)]),
        title="Where the optimum lies" + (f": {level}" if level else ""),
        description=f"Share of optimal points along the ranges of {len(names)} parameters.",
        height=300,
        note=f"Each point: a tenth of the range, all other parameters and all traffic{_of(level)} together.",
    )


def _plane(points: pl.DataFrame, across: str, up: str, ranges: dict[str, ParameterRange], level: str) -> Plot:
    slices = points.group_by(
        *(
            (pl.col(name) * SLICES).floor().clip(0, SLICES - 1).cast(pl.Int32).alias(side)
            for name, side in ((across, "x"), (up, "y"))
        )
    ).agg(pl.col("optimal").mean())
    values = {(row["x"], row["y"]): row["optimal"] for row in slices.iter_rows(named=True)}
    return heat_map(
        "-".join(["optimum-plane", *_words(level)]),
        "Share of optimal points" + (f": {level}" if level else ""),
        x=_axis(across, ranges[across]),
        y=_axis(up, ranges[up]),
        values=[[values.get((x, y), math.nan) for x in range(SLICES)] for y in range(SLICES)],
        value_title="share of points",
        domain=(0.0, 1.0),
        labels=True,
        note="The two parameters on which the optimum depends most; all others and all traffic"
        f"{_of(level)} together.",
    )


def _of(level: str) -> str:
    return f" of {level}" if level else ""


def _axis(name: str, given: ParameterRange) -> AxisOf:
    low, high, unit = given.between
    logarithmic = given.scale == "logarithmic"
    parts = [(place + 0.5) / SLICES for place in range(SLICES)]
    levels = [low * (high / low) ** part if logarithmic else low + part * (high - low) for part in parts]
    shown = [float(f"{level:.3g}") for level in levels]
    return AxisOf(axis_title(name, unit), shown, logarithmic)


def _words(text: str) -> list[str]:
    return "".join(each if each.isalnum() else " " for each in text.lower()).split()
