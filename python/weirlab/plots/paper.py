"""Plots as figures of a paper: as wide as a column, with text of the size of a caption, in one style."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from weirlab.files import whole
from weirlab.plots.interactive import Spec
from weirlab.plots.style import LIGHT, WIDTH, Plot, converter, described, vl_version

Column = Literal["single", "double"]

INCHES: Mapping[Column, float] = {"single": 3.5, "double": 7.16}
"""Widths of one column and of both in the two-column style of IEEE (author centre, "Resolution and size")."""
_POINTS = 72.0
"""Of an inch; a pixel of the converter is a point."""
_TEXT = 7.0
"""Size of the text [pt]."""
_LOWEST = 90.0
"""Least height of a view [pt]."""


def save_figure(plot: Plot, column: Column, directory: Path) -> list[Path]:
    """Write `NAME-COLUMN.pdf` and `.svg` into `directory`, exactly as wide as the column; fonts are embedded
    in the PDF."""
    directory.mkdir(parents=True, exist_ok=True)
    target = INCHES[column] * _POINTS
    spec = _narrowed(plot.spec, target)
    beside = _width(_svg(spec)) - _plot_width(spec)
    spec = _narrowed(plot.spec, target - beside)
    svg = _svg(spec)
    paths = [directory / f"{plot.name}-{column}.{ending}" for ending in ("pdf", "svg")]
    with whole(paths[0]) as unfinished:
        unfinished.write_bytes(converter().svg_to_pdf(svg))
    with whole(paths[1]) as unfinished:
        unfinished.write_text(described(svg, plot.title, plot.description), encoding="utf-8")
    return paths


def _svg(spec: Spec) -> str:
    return str(converter().vegalite_to_svg(json.dumps(spec), vl_version=vl_version()))


def _width(svg: str) -> float:
    found = re.search(r'<svg [^>]*? width="([\d.]+)"', svg)
    assert found is not None
    return float(found[1])


def _narrowed(spec: Spec, width: float) -> Spec:
    """The same with views so wide, and with text, lines and marks in proportion to a column."""
    found = copy.deepcopy(spec)
    factor = width / WIDTH
    for view in _sized(found):
        view["width"] = width
        # Narrow views are less flat, so that slopes can be read.
        view["height"] = max(_LOWEST, view["height"] * (factor + 1) / 2 * 0.75)
    config = found["config"]
    for part in ("axis", "axisX", "axisY"):
        config[part] = {**config[part], "tickCount": 5}
    config["axis"] |= {"labelFontSize": _TEXT, "titleFontSize": _TEXT, "titlePadding": 4, "tickSize": 3}
    config["axisY"] |= {"labelPadding": 3}
    config["legend"] = {
        **config["legend"],
        "labelFontSize": _TEXT,
        "titleFontSize": _TEXT,
        "columns": max(1, int(width / 110)),
        "labelLimit": max(90, width / 2),
        "columnPadding": 8,
        "rowPadding": 1,
        "offset": 4,
        "symbolSize": 40,
        "symbolStrokeWidth": 1.5,
    }
    config["title"] = {**config["title"], "fontSize": _TEXT + 0.5, "offset": 4}
    config["text"] = {"color": LIGHT["ink"], "fontSize": _TEXT - 0.5}
    config["line"] = {"strokeWidth": 1.0}
    return found


def _plot_width(spec: Spec) -> float:
    return float(next(_sized(spec))["width"])


def _sized(spec: Spec) -> Iterator[Spec]:
    """Views that have a size of their own."""
    for part in ("vconcat", "hconcat", "concat"):
        for child in spec.get(part, ()):
            yield from _sized(child)
    if "width" in spec and "height" in spec:
        yield spec
