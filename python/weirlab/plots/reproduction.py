"""Published numbers and ours in one picture, and what tests report by condition."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, by_name, finished, scaled, series_color
from weirlab.reproductions.verdicts import Row, Verdict

_MOST = 60
"""Rows in one plot."""
_ROW_PX = 15
_NAMES = {"labelLimit": {"expr": "max(100, 0.6 * width)"}, "grid": True, "ticks": False}
"""The axis of names, which leaves room for the values on a narrow screen."""
_COLORS = {
    Verdict.HOLDS: LIGHT["good"],
    Verdict.UNDECIDED: LIGHT["sky"],
    Verdict.KNOWN: LIGHT["middling"],
    Verdict.MISFIT: LIGHT["bad"],
}
_SHAPES = ("circle", "square", "diamond", "triangle-up")


def ratio_plots(rows: Sequence[Row]) -> list[Plot]:
    """Ours over the published number with what counts as equal, by source; rows whose published number is 0
    or that have none of ours have no ratio."""
    sources: dict[str, list[Row]] = {}
    for row in rows:
        if row.published and row.difference is not None and row.ours and row.ours / row.published > 0:
            sources.setdefault(row.source.split(",")[0], []).append(row)
    plots: list[Plot] = []
    for source, found in sources.items():
        parts = -(-len(found) // _MOST)
        size = -(-len(found) // parts)
        for part in range(parts):
            which = f"{source or 'what is published'}{f', part {part + 1} of {parts}' if parts > 1 else ''}"
            drawn = found[part * size : (part + 1) * size]
            plots.append(_ratio_plot(which, drawn, f"ratios-{len(plots) + 1}"))
    return plots


def _ratio_plot(source: str, rows: Sequence[Row], name: str) -> Plot:
    known = {verdict.value: color for verdict, color in _COLORS.items()}
    table = pl.DataFrame(
        [
            {
                "number": row.name,
                "ratio": (row.ours or 0.0) / row.published,
                "low": max(row.low / row.published, 1e-3),
                "high": row.high / row.published,
                "verdict": row.verdict.value,
                "published": f"{row.published:.6g} {row.unit}".rstrip(),
                "ours": f"{row.ours:.6g} {row.unit}".rstrip(),
            }
            for row in rows
        ]
    ).with_columns(text=pl.format("{}: published {}, ours {}, {}", "number", "published", "ours", "verdict"))
    shown = [verdict for verdict in known if verdict in set(table["verdict"])]
    shapes = dict(zip(known, _SHAPES, strict=True))
    wide = float(table.select(pl.col("ratio").max() / pl.col("ratio").min()).item()) > 4
    x = alt.Scale(type="log" if wide else "linear", zero=False)
    y = alt.Y("number:N", sort=None, title=None, axis=alt.Axis(**_NAMES))
    base = alt.Chart(table).encode(y=y)
    one = alt.Chart(pl.DataFrame({"x": [1.0]})).mark_rule(color=LIGHT["muted"], strokeDash=[4, 3])
    points = base.mark_point(filled=True, size=55, opacity=1, aria=True).encode(
        x=alt.X("ratio:Q", title="ours / published", scale=x),
        color=by_name(alt.Color, "verdict", shown, [known[each] for each in shown], title=None),
        shape=by_name(alt.Shape, "verdict", shown, [shapes[each] for each in shown], title=None),
        tooltip=["number:N", "published:N", "ours:N", "ratio:Q", "verdict:N"],
        description="text:N",
    )
    band = base.mark_bar(height=7, opacity=0.22, color=LIGHT["muted"]).encode(
        x=alt.X("low:Q", title="ours / published", scale=x), x2="high:Q"
    )
    return finished(
        [alt.layer(band, one.encode(x="x:Q"), points)],
        name=name,
        title=f"Ours over {source}",
        description=f"The ratio of our number to the published one, {len(rows)} numbers of {source}; 1 is "
        "equal.",
        height=_ROW_PX * len(rows),
        note="Bars: what counts as equal. Published and our number are shown at the pointer, and in the "
        "table of numbers.",
    )


def condition_plot(
    rows: Sequence[tuple[str, str, float, float | None]], *, name: str, title: str, kind: str
) -> Plot:
    """Means with their standard deviations by condition.

    Args:
        rows: Condition, measure, mean and standard deviation in the base unit of `kind`.
    """
    table = pl.DataFrame(rows, schema=["condition", "measure", "mean", "deviation"], orient="row")
    factor, unit = scaled(float(table.select(pl.col("mean").max()).item() or 0.0), kind)
    table = table.with_columns(pl.col("mean", "deviation") * factor).with_columns(
        low=pl.col("mean") - pl.col("deviation").fill_null(0),
        high=pl.col("mean") + pl.col("deviation").fill_null(0),
        text=pl.format(
            "{}, {}: {} {}", "condition", "measure", pl.col("mean").round_sig_figs(4), pl.lit(unit)
        ),
    )
    measures = table["measure"].unique(maintain_order=True).to_list()
    conditions = table["condition"].n_unique()
    color = series_color("measure", measures, title=None)
    y = alt.Y("condition:N", sort=None, title=None, axis=alt.Axis(**_NAMES))
    base = alt.Chart(table).encode(y=y, color=color)
    of_values = {"title": f"{' and '.join(measures)} [{unit}]", "scale": alt.Scale(zero=True)}
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", **of_values), x2="high:Q")
    points = base.mark_point(filled=True, size=55, opacity=1, aria=True).encode(
        x=alt.X("mean:Q", **of_values),
        shape=alt.Shape("measure:N", sort=measures, legend=None),
        tooltip=["condition:N", "measure:N", "mean:Q", "deviation:Q"],
        description="text:N",
    )
    return finished(
        [alt.layer(bars, points)],
        name=name,
        title=title,
        description=f"{title}: means of {conditions} conditions.",
        height=_ROW_PX * conditions,
        note="Points: means over seeds; bars: their standard deviation.",
    )
