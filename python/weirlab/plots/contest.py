"""Plots of a contest: how points did from round to round."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weirlab.plots.style import Plot, alt, finished, series_color

_MOST = 4000
"""Points in one plot."""
_GOES_ON = ("goes on", "left out")


def round_plot(
    rows: Sequence[tuple[int, float, bool, str]],
    *,
    measure: str,
    unit: str,
    apart: str,
    words: tuple[str, str] = _GOES_ON,
) -> Plot:
    """The means by which points were judged, by round.

    Args:
        rows: The round, the mean, whether the point was kept, and its levels in words.
        apart: The levels that this contest alone has, if it is one of several.
        words: What is said of points that were kept, and of others.
    """
    table = pl.DataFrame(rows[:_MOST], schema=["round", "mean", "kept", "point"], orient="row")
    table = table.with_columns(
        fate=pl.when("kept").then(pl.lit(words[0])).otherwise(pl.lit(words[1])),
        text=pl.format("{}, round {}: {}", "point", "round", pl.col("mean").round_sig_figs(4)),
    )
    points = alt.Chart(table).mark_point(filled=True, size=45, aria=True)
    chart = points.encode(
        x=alt.X("round:O", title="round", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("mean:Q", title=f"{measure} [{unit}]" if unit else measure, scale=alt.Scale(zero=False)),
        color=series_color("fate", words, title=None),
        shape=alt.Shape("fate:N", sort=[*words], legend=None),
        tooltip=["point:N", "round:O", "mean:Q"],
        description="text:N",
    )
    suffix = "".join(each if each.isalnum() else "-" for each in apart.lower())
    return finished(
        [chart],
        name="-".join(filter(None, ["rounds", suffix])),
        title=f"{measure} by round" + (f": {apart}" if apart else ""),
        description=f"Means of {len(rows)} points by which they were judged, from round to round.",
        height=300,
        note="Means over the replicates of the round. They are too good for points that were chosen by them."
        + (f" The first {_MOST} points." if len(rows) > _MOST else ""),
    )
