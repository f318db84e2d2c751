"""Plot of the experiment with intermediate phases of an MDR search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, by_name, finished, series_color


def phase_plot(table: pl.DataFrame, well_behaved: Sequence[str]) -> Plot:
    """Relative search times over the number of phases, a row per trial duration.

    ``table`` has the columns ``device duration_s phases relative relative_error``. Devices named in
    ``well_behaved`` have full lines, the others dashed ones.
    """
    devices = table.get_column("device").unique(maintain_order=True).to_list()
    rounded = pl.col("relative").round(2).cast(pl.String)
    table = table.with_columns(
        low=pl.col("relative") - 2.0 * pl.col("relative_error"),
        high=pl.col("relative") + 2.0 * pl.col("relative_error"),
        text=pl.format("{}, {} phases: {} times as long as with two", "device", "phases", rounded),
    )
    durations_s = table.get_column("duration_s").unique(maintain_order=True).to_list()
    rows = [
        _row(table.filter(duration_s=each), devices, well_behaved, f"{each:g} s trials")
        for each in durations_s
    ]
    return finished(
        rows,
        name="phases",
        title="Search time against the number of intermediate phases",
        description=f"Mean search time relative to that with two phases, for {', '.join(devices)}.",
        note="Point: mean, as a multiple of that with two phases; bar: two standard errors. Full lines: well "
        "behaved devices; dashed: badly behaved ones. The vertical axis is logarithmic.",
    )


def _row(table: pl.DataFrame, devices: Sequence[str], well_behaved: Sequence[str], name: str) -> Any:
    dashes = [[1, 0] if device in well_behaved else [5, 3] for device in devices]
    counts, scale = alt.Axis(tickMinStep=1, format="d", tickCount=5), alt.Scale(padding=12)
    x = alt.X("phases:Q", title="intermediate phases", axis=counts, scale=scale)
    base = alt.Chart(table).encode(x=x, color=series_color("device", devices))
    ratios = alt.Axis(values=[0.6, 0.8, 1.0, 1.5, 2.0, 3.0], format=".1f")
    y_scale = alt.Scale(type="log", nice=False, padding=8)
    y = alt.Y("relative:Q", title=f"time, {name}", scale=y_scale, axis=ratios)
    one = alt.Chart(pl.DataFrame({"y": [1.0]})).mark_rule(color=LIGHT["muted"], strokeDash=[2, 3])
    return alt.layer(
        one.encode(y="y:Q"),
        base.mark_rule(strokeWidth=1.4, opacity=0.7).encode(y="low:Q", y2="high:Q"),
        base.mark_line(strokeWidth=1.8).encode(
            y=y, strokeDash=by_name(alt.StrokeDash, "device", devices, dashes)
        ),
        base.mark_point(filled=True, size=52, opacity=1, aria=True).encode(y=y, description="text:N"),
    )
