"""Plots of a study: each measure by the levels of its factors, with intervals over replicates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from weirlab.analysis.boundaries import Boundary, Side
from weirlab.plots.names import axis_title
from weirlab.plots.plane import AxisOf, Line, heat_map
from weirlab.plots.style import (
    LEVELS,
    LIGHT,
    WIDTH,
    Plot,
    alt,
    display_unit,
    finished,
    legend_of,
    level_marks,
    series_color,
)
from weirlab.stats import mean_interval

POINTS = 400
"""Most points in one plot."""
PLANES = 12
"""Most planes of one study."""
SERIES = 6
"""Most series side by side, as many as there are colours; more factors make panels below each other."""
_DWARFS = 8
"""How many times as long as means lie apart intervals are that leave nothing of the means to see."""
PANELS = 6
"""Most panels of one plot."""
WIDE = 10
"""How many times the least level the greatest is where an axis is logarithmic."""


def effect_plots(
    points: pl.DataFrame, measures: pl.DataFrame, factors: Sequence[str], *, zero: bool = False
) -> list[Plot]:
    """One plot per measure: means with their 95 % intervals. Rows of ``measures`` whose column ``irregular``
    holds, where there is one, have their point ringed.

    The factor with most levels stands on the horizontal axis, the others make up the series. Where that would
    be more than six, one factor makes up the series, and each combination of the others has a panel of its
    own, six to a plot. With numbers as levels, units included, the axis is to scale. ``zero`` has every
    picture show 0, which differences are compared with.
    """
    if measures.is_empty() or not factors:
        return []
    counts = {factor: points.get_column(factor).n_unique() for factor in factors}
    across = max(factors, key=lambda factor: (counts[factor], -list(factors).index(factor)))
    others = [factor for factor in factors if factor != across and counts[factor] > 1]
    inside, apart = _split(others, counts)
    labelled = points.select("point", level=pl.col(across), series=_joined(inside), panel=_joined(apart))
    plots = []
    for (name, unit), group in measures.group_by("measure", "unit", maintain_order=True):
        rows = _means(group.join(labelled, on="point", maintain_order="left"), str(unit))
        if rows.is_empty():
            continue
        panels = rows.get_column("panel").unique(maintain_order=True).to_list()
        for place in range(0, len(panels), PANELS):
            shown = rows.filter(pl.col("panel").is_in(panels[place : place + PANELS]))
            suffix = "" if len(panels) <= PANELS else f"-{place // PANELS + 1}"
            plots.append(_plot(str(name), shown, across, others, _order(points, across), suffix, zero))
    return plots


def _split(others: Sequence[str], counts: Mapping[str, int]) -> tuple[Sequence[str], Sequence[str]]:
    """The factors that make up series, and those that make up panels."""
    if len(others) < 2 or math.prod(counts[factor] for factor in others) <= SERIES:
        return others, ()
    few = [factor for factor in others if counts[factor] <= SERIES]
    inside = max(few, key=lambda factor: counts[factor]) if few else min(others, key=lambda one: counts[one])
    return (inside,), tuple(factor for factor in others if factor != inside)


def _joined(factors: Sequence[str]) -> pl.Expr:
    return pl.concat_str([pl.col(name) for name in factors], separator=" · ") if factors else pl.lit("")


def plane_plots(
    points: pl.DataFrame,
    measures: pl.DataFrame,
    factors: Sequence[str],
    limits: Callable[[Side, Side, Mapping[str, str]], Sequence[Boundary]] = lambda *_: (),
) -> list[Plot]:
    """Each measure as a map over the two factors with the most levels that are numbers, three levels or more
    each; one map for each combination of the others. None where there are no such two factors.

    ``limits`` gives what theory draws over the maps of one combination: of the factor across, the factor up,
    and the level of each of the others.
    """
    counts = {factor: points.get_column(factor).n_unique() for factor in factors}
    numbers = sorted(
        (name for name in factors if _amounts(_order(points, name))[0]), key=lambda name: -counts[name]
    )
    if len(numbers) < 2:
        return []
    across, up = (_side(points, factor) for factor in numbers[:2])
    fixed = [factor for factor in factors if factor not in numbers[:2]]
    others = [factor for factor in fixed if counts[factor] > 1]
    labelled = points.with_columns(
        x=pl.col(across.factor).replace_strict(across.levels, return_dtype=pl.Float64),
        y=pl.col(up.factor).replace_strict(up.levels, return_dtype=pl.Float64),
        case=pl.concat_str([pl.col(factor) for factor in others], separator=", ") if others else pl.lit(""),
    )
    lines = {
        case: [Line(each.label, each.pieces) for each in limits(across, up, levels)]
        for case, *names in labelled.select("case", *fixed).unique(maintain_order=True).iter_rows()
        for levels in [dict(zip(fixed, names, strict=True))]
    }
    axes = [_axis(points, side) for side in (across, up)]
    means = measures.group_by("point", "measure", "unit", maintain_order=True).agg(pl.col("value").mean())
    plots = []
    for (name, unit), group in means.join(labelled, on="point").group_by(
        "measure", "unit", maintain_order=True
    ):
        known = group.drop_nulls("value")
        if known.get_column("value").n_unique() < 2:
            continue  # a map of one colour
        largest = float(known.select(pl.col("value").abs().max()).item())
        factor, shown = display_unit(str(unit), largest)
        for (case,), rows in known.group_by("case", maintain_order=True):
            values = {(row["x"], row["y"]): row["value"] * factor for row in rows.iter_rows(named=True)}
            plots.append(
                heat_map(
                    "-".join(["plane", str(name), *_words(str(case))]),
                    f"{name}" + (f", {case}" if case else ""),
                    x=axes[0],
                    y=axes[1],
                    values=[[values.get((x, y), math.nan) for x in axes[0].levels] for y in axes[1].levels],
                    value_title=f"{name} [{shown}]" if shown else str(name),
                    lines=lines[str(case)],
                    labels=True,
                    note="Mean over the replicates." + (" Lines: theory." if lines[str(case)] else ""),
                )
            )
    return plots[:PLANES]


def _side(points: pl.DataFrame, factor: str) -> Side:
    amounts = _amounts(_order(points, factor))[0]
    levels = dict(sorted(amounts.items(), key=lambda level: level[1]))
    if min(levels.values()) < 0 or not (positive := [level for level in levels.values() if level > 0]):
        return Side(factor, levels, logarithmic=False)
    least, most = positive[0], positive[-1]
    if most < WIDE * least:
        return Side(factor, levels, logarithmic=False)
    if len(positive) == len(levels):
        return Side(factor, levels, logarithmic=True)
    zero = least * least / positive[1]
    return Side(factor, {name: level or zero for name, level in levels.items()}, logarithmic=True, zero=zero)


def _axis(points: pl.DataFrame, side: Side) -> AxisOf:
    title = axis_title(side.factor, _amounts(_order(points, side.factor))[1])
    return AxisOf(title, list(side.levels.values()), side.logarithmic, side.zero)


def _words(text: str) -> list[str]:
    """The letters and digits of a text, for a file name."""
    return re.findall(r"[a-z0-9]+", text.lower())


def _means(rows: pl.DataFrame, unit: str) -> pl.DataFrame:
    """Columns `level series panel mean low high unit`, scaled to a readable unit."""
    known = rows.drop_nulls("value")
    if known.is_empty():
        return known
    largest = float(known.select(pl.col("value").abs().max()).item())
    factor, shown = display_unit(unit, largest)
    means = []
    marked = "irregular" in known.columns
    for (level, series, panel), group in known.group_by("level", "series", "panel", maintain_order=True):
        interval = mean_interval([value * factor for value in group.get_column("value")])
        assert interval is not None, "rows without a value were dropped"
        single = interval.count == 1
        irregular = marked and bool(group.get_column("irregular").any())
        means.append(
            {
                "level": level,
                "series": series,
                "panel": panel,
                "mean": interval.mean,
                "low": interval.mean if single else interval.low,
                "high": interval.mean if single else interval.high,
                "unit": shown,
                "irregular": irregular,
                "count": interval.count,
                "text": " ".join(part for part in (level, series, panel) if part)
                + f": {interval.mean:.4g} {shown}"
                + ("" if single else f" ± {interval.half_width:.2g}")
                + f" ({interval.count} replicate{'' if single else 's'})"
                + (", irregular" if irregular else ""),
            }
        )
    return pl.DataFrame(means)


def _plot(
    name: str,
    rows: pl.DataFrame,
    across: str,
    others: Sequence[str],
    order: Sequence[str],
    suffix: str,
    zero: bool,
) -> Plot:
    notes = []
    if rows.get_column("count").max() != 1:
        notes.append("Point: mean; bar: 95 % interval over replicates.")
    if rows.get_column("irregular").any():
        notes.append("Ringed: an irregular result is among them; the table says why.")
    if rows.height > POINTS:
        notes.append(f"The first {POINTS} of {rows.height} points.")
        rows = rows.head(POINTS)
    amounts, axis_unit = _amounts(order)
    title = across.rsplit(".", 1)[-1]
    if amounts:
        rows = rows.with_columns(x=pl.col("level").replace_strict(amounts, return_dtype=pl.Float64))
    panels = rows.get_column("panel").unique(maintain_order=True).to_list()
    names = rows.get_column("series").unique(maintain_order=True).to_list()
    ends, cut = _ends(rows, zero=zero)
    if cut:
        notes.append("Bars that reach the edge of the picture are longer than drawn.")
    charts = []
    for panel in panels:
        chart = _panel(
            rows.filter(pl.col("panel") == panel),
            names,
            order,
            f"{name} [{rows.item(0, 'unit')}]" if rows.item(0, "unit") else name,
            axis_title(across, axis_unit) if panel == panels[-1] else None,
            ends if cut or zero or len(panels) > 1 else None,
        )
        charts.append(chart.properties(title=panel) if panel else chart)
    by = f", by {' and '.join(other.rsplit('.', 1)[-1] for other in others)}" if others else ""
    return finished(
        charts,
        name=f"measure-{name}{suffix}",
        title=f"{name} against {title}{by}",
        description=f"Mean and 95 % interval of {name} at {rows.height} points.",
        note=" ".join(notes),
    )


def _panel(
    rows: pl.DataFrame,
    names: Sequence[str],
    order: Sequence[str],
    y_title: str,
    x_title: str | None,
    ends: tuple[float, float] | None,
) -> Any:
    """Points, intervals and, over numbers, lines: a colour and a shape for each of the series ``names``."""
    to_scale = "x" in rows.columns
    if to_scale:
        x = alt.X("x:Q", title=x_title, **_across(sorted(_amounts(order)[0].values())))
    else:
        axis = alt.Axis(labelAngle=0, grid=False)
        x = alt.X("level:N", title=x_title, sort=list(order), axis=axis, scale=alt.Scale(padding=0.3))
    y_scale = alt.Scale(zero=_near_zero(rows)) if ends is None else alt.Scale(domain=list(ends), nice=False)
    y = alt.Y("low:Q", title=y_title, scale=y_scale)
    legend = legend_of(names, columns=_columns(names))
    color = series_color("series", names, legend=legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=list(names)), sort=list(names), legend=None)
    base = alt.Chart(rows).encode(x=x, color=color)
    if not to_scale and len(names) > 1:
        base = base.encode(
            xOffset=alt.XOffset("series:N", sort=list(names), scale=alt.Scale(domain=list(names)))
        )
    layers = [base.mark_rule(strokeWidth=1.6, color=LIGHT["blue"], clip=True).encode(y=y, y2="high:Q")]
    if to_scale:
        layers.append(base.mark_line(strokeWidth=1.3, opacity=0.6).encode(y="mean:Q"))
    points = base.encode(y="mean:Q", description="text:N")
    layers.append(points.mark_point(filled=True, size=58, opacity=0.85, aria=True).encode(shape=shape))
    if rows.get_column("irregular").any():
        irregular = points.transform_filter("datum.irregular")
        layers.append(irregular.mark_point(filled=False, size=230, strokeWidth=1.4, shape="circle"))
    return alt.layer(*layers)


def _across(levels: Sequence[float]) -> Mapping[str, object]:
    """Scale and axis of growing levels: logarithmic, with a mark at each, where they lie far apart."""
    if levels[0] <= 0 or levels[-1] < WIDE * levels[0]:
        room = 0.03 * (levels[-1] - levels[0])  # the marks at the ends are seen whole
        ends = {"domain": [levels[0] - room, levels[-1] + room], "nice": False} if room else {}
        return {"scale": alt.Scale(zero=False, **ends)}
    room = (levels[-1] / levels[0]) ** 0.02
    scale = alt.Scale(type="log", domain=[levels[0] / room, levels[-1] * room], nice=False)
    return {"scale": scale, "axis": alt.Axis(format=LEVELS, **level_marks(levels))}


def _columns(names: Sequence[str]) -> int:
    """How many entries of a legend fit next to each other."""
    return max(1, int(WIDTH / (7.0 * max(map(len, names)) + 45.0)))


def _ends(rows: pl.DataFrame, *, zero: bool) -> tuple[tuple[float, float], bool]:
    """Where a vertical axis begins and ends, and whether it cuts off intervals: of two replicates they can be
    many times as long as all means lie apart."""
    means, lows, highs = (rows.get_column(name).drop_nulls().to_list() for name in ("mean", "low", "high"))
    seen = [0.0] * zero
    least, most = min(means + seen), max(means + seen)
    low, high = min(lows + seen), max(highs + seen)
    room = most - least
    if not room > 0:
        return ((low, high) if high > low else (low - 1.0, high + 1.0)), False
    dwarfed = high - low > _DWARFS * room
    ends = (max(low, least - room / 4), min(high, most + room / 4)) if dwarfed else (low, high)
    margin = 0.04 * (ends[1] - ends[0])
    return (ends[0] - margin, ends[1] + margin), low < ends[0] or high > ends[1]


def _order(points: pl.DataFrame, factor: str) -> list[str]:
    return [str(level) for level in points.get_column(factor).unique(maintain_order=True)]


def _near_zero(rows: pl.DataFrame) -> bool:
    """Whether an axis that begins at zero costs little."""
    low, high = rows.select(pl.col("low").min(), pl.col("high").max()).row(0)
    return bool(low >= 0 and low < 0.6 * high)


def _amounts(levels: Sequence[str]) -> tuple[Mapping[str, float], str]:
    """The levels as numbers with their common unit; nothing when they are words, or of several units."""
    amounts: dict[str, float] = {}
    units = set()
    for level in levels:
        text, _, unit = level.partition(" ")
        try:
            amounts[level] = float(text.replace("_", ""))
        except ValueError:
            return {}, ""
        units.add(unit.strip())
    if len(units) > 1 or len(amounts) < 3 or not all(map(math.isfinite, amounts.values())):
        return {}, ""
    return amounts, units.pop()
