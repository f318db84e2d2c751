"""Heat maps: a number over two parameters, with lines that theory draws over it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from weirlab.plots.style import LIGHT, Plot, altair, finished

__all__ = ["AxisOf", "Line", "heat_map"]

COLORS = ("ink", "pink", "violet", "orange")


@dataclass(frozen=True)
class AxisOf:
    """One side of a map."""

    title: str
    levels: Sequence[float]
    """Growing."""
    logarithmic: bool = False
    zero: float | None = None
    """The level that stands for 0 on a logarithmic side."""

    def edges(self) -> list[float]:
        """Where the cells of the levels begin and end: half way between levels, and as far beyond the first
        and the last."""
        steps = [math.log(level) for level in self.levels] if self.logarithmic else list(self.levels)
        inner = [(low + high) / 2 for low, high in pairwise(steps)]
        ends = [2 * steps[0] - inner[0], *inner, 2 * steps[-1] - inner[-1]]
        if not self.logarithmic:
            return [max(end, 0.0) if self.levels[0] >= 0 else end for end in ends]
        return [math.exp(end) for end in ends]


@dataclass(frozen=True)
class Line:
    """A boundary that theory draws."""

    label: str
    pieces: Sequence[Sequence[tuple[float, float]]]
    """Connected points (x, y) each."""


def heat_map(
    name: str,
    title: str,
    *,
    x: AxisOf,
    y: AxisOf,
    values: Sequence[Sequence[float]],
    value_title: str,
    domain: tuple[float, float] | None = None,
    middle: float | None = None,
    lines: Sequence[Line] = (),
    labels: bool = False,
    box: tuple[float, float, float, float] | None = None,
    note: str = "",
) -> Plot:
    """Cells coloured by `values` (rows of y, columns of x).

    `domain`: least and greatest colour; values beyond take the colours of the ends. `middle`: where two
    colours meet. `labels`: print the numbers. `box`: a region to frame, as low x, high x, low y, high y.
    Cells without a number stay empty.
    """
    alt = altair()
    across, up = x.edges(), y.edges()
    cells = pl.DataFrame(
        [
            {
                "x": across[column],
                "x2": across[column + 1],
                "y": up[row],
                "y2": up[row + 1],
                "at_x": x.levels[column],
                "at_y": y.levels[row],
                "value": float(value),
                "text": _text(value),
            }
            for row, line in enumerate(values)
            for column, value in enumerate(line)
            if math.isfinite(value)
        ],
        schema={
            **dict.fromkeys(("x", "x2", "y", "y2", "at_x", "at_y", "value"), pl.Float64),
            "text": pl.String,
        },
    )
    known = cells.get_column("value").to_list()
    ends = domain or (min(known, default=0.0), max(known, default=1.0))
    color = alt.Color(
        "value:Q",
        title=value_title,
        scale=_scale(ends, middle),
        # The padding leaves room for a title in a wider font than the one that was measured.
        legend=alt.Legend(
            orient="right", direction="vertical", title=value_title, gradientLength=220, padding=16
        ),
    )
    horizontal, vertical = _position("x:Q", x, across), _position("y:Q", y, up)
    base = alt.Chart(cells).encode(x=horizontal, x2="x2:Q", y=vertical, y2="y2:Q")
    layers = [base.mark_rect(clip=True, strokeWidth=0).encode(color=color)]
    if box is not None:
        frame = pl.DataFrame({"x": [box[0]], "x2": [box[1]], "y": [box[2]], "y2": [box[3]]})
        layers.append(
            alt.Chart(frame)
            .mark_rect(filled=False, stroke=LIGHT["ink"], strokeWidth=2, strokeDash=[5, 3])
            .encode(x=_position("x:Q", x, across), x2="x2:Q", y=_position("y:Q", y, up), y2="y2:Q")
        )
    drawn = [line for line in lines if any(len(piece) > 1 for piece in line.pieces)]
    layers += _lines(drawn, x, y, across, up)
    if labels:
        at = alt.Chart(cells).encode(
            x=_position("at_x:Q", x, across), y=_position("at_y:Q", y, up), text="text:N"
        )
        halo = {"stroke": "white", "strokeWidth": 3, "strokeOpacity": 0.85, "strokeJoin": "round"}
        layers += [at.mark_text(fontSize=11, **halo), at.mark_text(fontSize=11, color="#1b2430")]
    missing = sum(len(line) for line in values) - cells.height
    notes = [
        note,
        f"{missing} cells have no number." if missing else "",
        *(
            f"On the logarithmic axis of {axis.title} 0 stands a step below the least of the other levels."
            for axis in (x, y)
            if axis.zero is not None
        ),
    ]
    summary = (
        f"{value_title} over {x.title} and {y.title}, {len(y.levels)} by {len(x.levels)} cells."
        + "".join(f" Line: {line.label}." for line in drawn)
    )
    return finished(
        [alt.layer(*layers).resolve_scale(color="independent")],
        name=name,
        title=title,
        description=summary,
        note=" ".join(part for part in notes if part),
        height=420,
    )


def _lines(
    lines: Sequence[Line], x: AxisOf, y: AxisOf, across: Sequence[float], up: Sequence[float]
) -> list[object]:
    if not lines:
        return []
    alt = altair()
    rows = pl.DataFrame(
        [
            {"x": at[0], "y": at[1], "x2": to[0], "y2": to[1], "line": line.label}
            for line in lines
            for piece in line.pieces
            for at, to in pairwise(piece)
        ]
    )
    names = [line.label for line in lines]
    base = alt.Chart(rows).encode(
        x=_position("x:Q", x, across), y=_position("y:Q", y, up), x2="x2:Q", y2="y2:Q"
    )
    colors = [LIGHT[COLORS[i % len(COLORS)]] for i in range(len(names))]
    legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolStrokeWidth=3)
    color = alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=colors), legend=legend)
    return [
        base.mark_rule(clip=True, strokeWidth=5, strokeCap="round", color="white", opacity=0.8),
        base.mark_rule(clip=True, strokeWidth=2.4, strokeCap="round").encode(color=color),
    ]


def _position(field: str, axis: AxisOf, edges: Sequence[float]) -> object:
    alt = altair()
    kind = {"type": "log"} if axis.logarithmic else {}
    scale = alt.Scale(domain=[edges[0], edges[-1]], nice=False, zero=False, **kind)
    encoding: Mapping[str, type] = {"x": alt.X, "y": alt.Y}
    shown = alt.Axis(
        grid=False, format="~r", **({"values": list(axis.levels)} if len(axis.levels) <= 12 else {})
    )
    if axis.zero is not None:
        shown.labelExpr = f"abs(datum.value / {axis.zero!r} - 1) < 1e-9 ? '0' : datum.label"
    channel = "y" if field.removeprefix("at_").startswith("y") else "x"
    return encoding[channel](field, title=axis.title, scale=scale, axis=shown)


def _scale(ends: tuple[float, float], middle: float | None) -> object:
    alt = altair()
    if middle is None:
        return alt.Scale(scheme="viridis", domain=list(ends), clamp=True)
    reach = max(abs(ends[0] - middle), abs(ends[1] - middle))
    return alt.Scale(
        range=["#c9342a", "#f6f6f4", "#1f63c6"],
        domain=[middle - reach, middle, middle + reach],
        clamp=True,
        interpolate="rgb",
    )


def _text(value: float) -> str:
    return f"{value:.3g}".replace("0.", ".", 1) if 0 < value < 1 else f"{value:.3g}"
