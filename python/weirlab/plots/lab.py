"""Plots of the search laboratory: how long searches took, and how far from the truth they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from weirlab.plots.style import Plot, alt, finished, series_color


def lab_plots(searches: pl.DataFrame, baseline: str) -> list[Plot]:
    """For each set of goals: search times relative to the mean of ``baseline`` on the same device, and the
    chance that a repetition at the lower bound fails.

    Args:
        searches: The frame of `weirlab.searches.lab.compare`.
    """
    controllers = searches["controller"].unique(maintain_order=True).to_list()
    cell = ["goals", "device"]
    times = searches.unique(["controller", *cell, "seed"], maintain_order=True)
    means = times.filter(pl.col("controller") == baseline).group_by(cell).agg(base_s=pl.col("time_s").mean())
    ratios = times.join(means, on=cell).with_columns(ratio=pl.col("time_s") / pl.col("base_s"))
    plots = []
    for goals in searches["goals"].unique(maintain_order=True).to_list():
        spread = ratios.filter(pl.col("goals") == goals).group_by("device", "controller", maintain_order=True)
        table = spread.agg(
            mean=pl.col("ratio").mean(),
            low=pl.col("ratio").quantile(0.1),
            high=pl.col("ratio").quantile(0.9),
        )
        failing = (
            searches.filter(pl.col("goals") == goals)
            .group_by("device", "controller", maintain_order=True)
            .agg(mean=pl.col("retest_failure").mean())
            .with_columns(low=pl.col("mean"), high=pl.col("mean"))
        )
        plots.append(
            finished(
                [
                    _points(table, controllers, f"Search time, mean of {baseline} = 1"),
                    _points(failing, controllers, "Chance that a trial at the lower bound fails"),
                ],
                name=f"search-lab-{goals}",
                title=f"Searches compared, goals {goals}",
                description=f"Search time and quality of {', '.join(controllers)} on each device.",
                note="Upper part: mean, and the range of the middle 80 % of the searches.",
            )
        )
    return plots


def _points(table: pl.DataFrame, controllers: Sequence[str], title: str) -> Any:
    color = series_color("controller", controllers, title=None)
    base = alt.Chart(table).encode(
        x=alt.X("device:N", title=None, sort=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("controller:N", sort=list(controllers)),
        color=color,
    )
    ranges = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    return ranges + base.mark_point(filled=True, size=60).encode(y=alt.Y("mean:Q", title=title))
