"""Heat maps: a number over two parameters, with lines that theory draws over it.

Cells keep their colours on dark pages, and so does what is drawn over them: these colours are none of the
palette.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from weirlab.plots.placing import Box, Piece, chained, clear_place
from weirlab.plots.style import LEVELS, WIDTH, Plot, alt, by_name, finished, level_marks

HEIGHT = 420
"""Of a map, in pixels, axes excluded."""
DARK, BRIGHT = "#10151c", "#fdfdfb"
"""Of texts and of the casing of lines."""
STROKES = (("#f0541e", [1, 0]), ("#d65fc0", [9, 5]), ("#8b95a1", [2, 4]), ("#2a9fd8", [9, 4, 2, 4]))
"""Colour and dashes of lines: of hues that the cells do not have, distinct without colour as well, and seen
on light and dark pages."""
TURN = 0.45
"""Above this part of the colours, which grow brighter, dark text is easier to read than bright text."""
LETTER, TALL, CLEAR = 6.2, 11.0, 4.0
"""Size of a figure, and how far lines keep from it, in pixels."""


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

    def pixel(self, level: float, length: float) -> float:
        """Where a level stands on a side of this length, from its start."""
        low, high = self._ends()
        return (self._step(level) - low) / (high - low) * length

    def level(self, pixel: float, length: float) -> float:
        """The level that stands there."""
        low, high = self._ends()
        step = low + pixel / length * (high - low)
        return math.exp(step) if self.logarithmic else step

    def _ends(self) -> tuple[float, float]:
        edges = self.edges()
        return self._step(edges[0]), self._step(edges[-1])

    def _step(self, level: float) -> float:
        return math.log(level) if self.logarithmic else level


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
    colours meet. `labels`: print the numbers, clear of the lines where a cell has room. `box`: levels to
    frame, as low x, high x, low y, high y: the cells of all levels in between. Cells without a number stay
    empty.
    """
    across, up = x.edges(), y.edges()
    drawn = [line for line in lines if any(len(piece) > 1 for piece in line.pieces)]
    numbers = [value for row in values for value in row if math.isfinite(value)]
    ends = domain or (min(numbers, default=0.0), max(numbers, default=1.0))
    texts = {
        (row, column): _text(value, numbers)
        for row, line in enumerate(values)
        for column, value in enumerate(line)
        if math.isfinite(value)
    }
    places = _places(texts, x, y, drawn if labels else [])
    names = ("x", "x2", "y", "y2", "at_x", "at_y", "text_x", "text_y", "value")
    cells = pl.DataFrame(
        [
            {
                "x": across[column],
                "x2": across[column + 1],
                "y": up[row],
                "y2": up[row + 1],
                "at_x": x.levels[column],
                "at_y": y.levels[row],
                "text_x": places[row, column][0],
                "text_y": places[row, column][1],
                "value": float(values[row][column]),
                "text": text,
                "ink": _ink(values[row][column], ends, middle),
            }
            for (row, column), text in texts.items()
        ],
        schema={**dict.fromkeys(names, pl.Float64), **dict.fromkeys(("text", "ink"), pl.String)},
    )
    color = alt.Color(
        "value:Q",
        title=value_title,
        scale=_scale(ends, middle),
        # Below the plane, where a narrow screen has room for it.
        legend=alt.Legend(orient="bottom", direction="horizontal", title=value_title, gradientLength=220),
    )
    horizontal, vertical = _position("x:Q", x, across), _position("y:Q", y, up)
    base = alt.Chart(cells).encode(x=horizontal, x2="x2:Q", y=vertical, y2="y2:Q")
    layers = [base.mark_rect(clip=True, strokeWidth=0).encode(color=color)]
    layers += _lines(drawn, x, y, across, up)
    if box is not None:
        layers += _frame(box, x, y, across, up)
    if labels:
        layers += _numbers(cells, x, y, across, up)
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
        [alt.layer(*layers).resolve_scale(color="independent", strokeDash="independent")],
        name=name,
        title=title,
        description=summary,
        note=" ".join(part for part in notes if part),
        height=HEIGHT,
    )


def _lines(
    lines: Sequence[Line], x: AxisOf, y: AxisOf, across: Sequence[float], up: Sequence[float]
) -> list[object]:
    if not lines:
        return []
    rows = pl.DataFrame(
        [
            {"x": at[0], "y": at[1], "step": step, "piece": f"{line.label} {number}", "line": line.label}
            for line in lines
            for number, piece in enumerate(chained(line.pieces))
            for step, at in enumerate(piece)
        ]
    )
    names = [line.label for line in lines]
    strokes = [STROKES[i % len(STROKES)] for i in range(len(names))]
    base = alt.Chart(rows).encode(
        x=_position("x:Q", x, across), y=_position("y:Q", y, up), detail="piece:N", order="step:Q"
    )
    legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolStrokeWidth=3, symbolSize=900)
    color = by_name(alt.Color, "line", names, [color for color, _ in strokes], legend=legend)
    dashes = by_name(alt.StrokeDash, "line", names, [dashes for _, dashes in strokes], legend=legend)
    return [
        base.mark_line(clip=True, strokeWidth=5, strokeJoin="round", color=DARK, opacity=0.85),
        base.mark_line(clip=True, strokeWidth=2.6, strokeJoin="round").encode(color=color, strokeDash=dashes),
    ]


def _frame(
    box: tuple[float, float, float, float],
    x: AxisOf,
    y: AxisOf,
    across: Sequence[float],
    up: Sequence[float],
) -> list[object]:
    """A frame around the cells of some levels."""
    ends = []
    for axis, edges, (low, high) in ((x, across, box[:2]), (y, up, box[2:])):
        inside = [place for place, level in enumerate(axis.levels) if low <= level <= high]
        if not inside:
            return []
        ends.append((edges[inside[0]], edges[inside[-1] + 1]))
    (left, right), (low, high) = ends
    frame = alt.Chart(pl.DataFrame({"x": [left], "x2": [right], "y": [low], "y2": [high]})).encode(
        x=_position("x:Q", x, across), x2="x2:Q", y=_position("y:Q", y, up), y2="y2:Q"
    )
    return [
        frame.mark_rect(filled=False, stroke=DARK, strokeWidth=4.5, strokeJoin="round"),
        frame.mark_rect(filled=False, stroke=BRIGHT, strokeWidth=2, strokeJoin="round"),
    ]


_NUMBER_PX = 24


def _numbers(
    cells: pl.DataFrame, x: AxisOf, y: AxisOf, across: Sequence[float], up: Sequence[float]
) -> list[object]:
    """The numbers in the cells, each with a faint halo where a line could not be avoided."""
    layers = []
    # On a narrow screen they would stand in one another; the pointer reads the values there.
    seen = {"opacity": {"expr": f"width < {_NUMBER_PX} * {cells['at_x'].n_unique()} ? 0 : 1"}}
    for ink, halo in ((DARK, BRIGHT), (BRIGHT, DARK)):
        base = (
            alt.Chart(cells)
            .transform_filter(alt.datum.ink == ink)
            .encode(x=_position("text_x:Q", x, across), y=_position("text_y:Q", y, up), text="text:N")
        )
        behind = {"stroke": halo, "strokeWidth": 2.5, "strokeOpacity": 0.5, "strokeJoin": "round"}
        layers += [base.mark_text(fontSize=11, color=halo, **behind, **seen)]
        layers += [base.mark_text(fontSize=11, color=ink, **seen)]
    return layers


def _places(
    texts: Mapping[tuple[int, int], str], x: AxisOf, y: AxisOf, lines: Sequence[Line]
) -> Mapping[tuple[int, int], tuple[float, float]]:
    """Where the number of each cell (row, column) stands: at its levels, or next to lines that pass there."""
    across, up = [x.pixel(edge, WIDTH) for edge in x.edges()], [y.pixel(edge, HEIGHT) for edge in y.edges()]
    pieces: list[Piece] = [
        (first, second)
        for line in lines
        for piece in line.pieces
        for first, second in pairwise((x.pixel(at[0], WIDTH), y.pixel(at[1], HEIGHT)) for at in piece)
    ]
    found = {}
    for (row, column), text in texts.items():
        at = (x.levels[column], y.levels[row])
        room = Box(across[column], across[column + 1], up[row], up[row + 1])
        size = (LETTER * len(text) + 2 * CLEAR, TALL + 2 * CLEAR)
        place = clear_place((x.pixel(at[0], WIDTH), y.pixel(at[1], HEIGHT)), room, size, pieces)
        found[row, column] = at if place is None else (x.level(place[0], WIDTH), y.level(place[1], HEIGHT))
    return found


def _position(field: str, axis: AxisOf, edges: Sequence[float]) -> object:
    kind = {"type": "log"} if axis.logarithmic else {}
    scale = alt.Scale(domain=[edges[0], edges[-1]], nice=False, zero=False, **kind)
    encoding: Mapping[str, type] = {"x": alt.X, "y": alt.Y}
    shown = alt.Axis(grid=False, format=LEVELS, **level_marks(axis.levels))
    if axis.zero is not None:
        shown.labelExpr = f"abs(datum.value / {axis.zero!r} - 1) < 1e-9 ? '0' : datum.label"
    channel = "y" if field.removeprefix("text_").startswith("y") else "x"
    return encoding[channel](field, title=axis.title, scale=scale, axis=shown)


def _scale(ends: tuple[float, float], middle: float | None) -> object:
    if middle is None:
        return alt.Scale(scheme="viridis", domain=list(ends), clamp=True)
    reach = max(abs(ends[0] - middle), abs(ends[1] - middle))
    return alt.Scale(
        range=["#c8342a", "#f6f6f4", "#2063c6"],
        domain=[middle - reach, middle, middle + reach],
        clamp=True,
        interpolate="rgb",
    )


def _ink(value: float, ends: tuple[float, float], middle: float | None) -> str:
    """The colour of a text that is easy to read on the colour of `value`."""
    if middle is not None:
        reach = max(abs(ends[0] - middle), abs(ends[1] - middle)) or 1.0
        return BRIGHT if abs(value - middle) > 0.6 * reach else DARK
    return DARK if value - ends[0] > TURN * (ends[1] - ends[0]) else BRIGHT


def _text(value: float, all_values: Sequence[float]) -> str:
    """A number with as many decimals as the greatest of all has with three digits; what that would leave less
    than two digits of has two."""
    if value == 0:
        return "0"
    places = min(12, max(0, 2 - math.floor(math.log10(max(map(abs, all_values))))))
    text = f"{value:.{places}f}" if abs(value) >= 10.0 ** (1 - places) else f"{value:.2g}"
    return re.sub(r"^(-?)0\.", r"\1.", text)
