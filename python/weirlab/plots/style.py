"""How plots look, and how they become pictures.

A plot is drawn once, in the light palette. On a page its colours are replaced by CSS variables, so that
the same drawing is readable in light and dark and prints well; as a file it stands on white.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.foreign import optional
from weirlab.heavy import Lazy
from weirlab.plots.interactive import Spec, interactive, mended, ranges, x_title

if TYPE_CHECKING:
    from types import ModuleType


WIDTH = 850
"""Of a plot, in pixels, axes excluded."""
MOST_MARKS = 12
"""Levels that an axis names one by one; of more it chooses its own marks."""

LIGHT: Mapping[str, str] = {
    "ink": "#1b2430",
    "muted": "#5a6573",
    "grid": "#e4e8ed",
    "shade": "#f1f4f7",
    "blue": "#1f63c6",
    "orange": "#cf6a0a",
    "teal": "#0e8468",
    "violet": "#7d4fc4",
    "pink": "#b8327f",
    "olive": "#77790c",
    "sky": "#2aa7d8",
    "brown": "#7a4526",
    "good": "#128a5b",
    "middling": "#c58600",
    "bad": "#c9342a",
}
"""Colours by role. In their order, series colours are distinct with the common kinds of colour blindness;
outcomes differ in shape too."""

DARK: Mapping[str, str] = {
    "ink": "#e7ebf0",
    "muted": "#9ba7b5",
    "grid": "#2b3440",
    "shade": "#1c232d",
    "blue": "#6ea8ff",
    "orange": "#ffa24d",
    "teal": "#4dcfae",
    "violet": "#b894ff",
    "pink": "#ff80c0",
    "olive": "#cfd152",
    "sky": "#86dcff",
    "brown": "#cc9a76",
    "good": "#46cf95",
    "middling": "#f0b93a",
    "bad": "#ff7468",
}

_SERIES = ("blue", "orange", "teal", "violet", "pink", "olive", "sky", "brown")
_PALETTE = {LIGHT[role] for role in _SERIES}
_FONT = "system-ui, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Answering:
    """A drawing for a screen."""

    vega: Spec
    """Vega specification, data included."""
    x: str
    """Title of the horizontal axis; plots with the same one share their range."""
    ranges: Sequence[str]
    """Signals that hold the range."""


@dataclass(frozen=True)
class Plot:
    """A finished drawing."""

    name: str
    """File name without ending: lower case, digits and hyphens."""
    title: str
    description: str
    """What the picture shows, for people who cannot see it."""
    drawing: Any
    """The chart of Altair, without its style."""
    note: str = ""
    """What was left out or summarised."""
    colors: Mapping[str, str] = field(default_factory=dict)
    """Those of series by name, where they are others than in the drawing: see `alike`."""
    closer: Mapping[str, object] | None = field(default=None, repr=False)
    """More points of long series, which a page shows where its reader looks closer."""

    @cached_property
    def spec(self) -> Spec:
        """Vega-Lite specification, data included."""
        spec = self.drawing.to_dict()
        for scale in _series_scales(spec):
            scale["range"] = [
                self.colors.get(str(name), color)
                for name, color in zip(scale["domain"], scale["range"], strict=True)
            ]
        return {**spec, "config": _CONFIG}

    @property
    def chart(self) -> Any:
        """The chart of Altair with its style, to be shown in a notebook or changed."""
        return self.drawing.configure(**_CONFIG)

    def svg(self) -> str:
        """A standalone SVG document on white."""
        svg = str(converter().vegalite_to_svg(json.dumps(self.spec), vl_version=vl_version()))
        return described(svg, self.title, self.description)

    def inline_svg(self) -> str:
        """SVG for a page: colours are CSS variables `--w-ROLE`, the size follows the page, and names of its
        parts are of this plot alone."""
        svg = re.sub(r'(id="|url\(#)', rf"\1{self.name}-", self.svg())
        svg = re.sub(r'<rect width="\d+" height="\d+" fill="white"/>', "", svg, count=1)
        for role, color in LIGHT.items():
            svg = svg.replace(color, f"var(--w-{role})")
        svg = re.sub(r'(<svg [^>]*?) width="(\d+)" height="\d+"', r'\1 style="max-width:\2px"', svg, count=1)
        # The whole is one picture with a name: its parts would be further pictures, without any.
        head, sign, parts = svg.partition(">")
        return head + sign + re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", parts)

    def answering(self) -> Answering:
        """The same for a screen, as a Vega specification that answers the pointer."""
        spec = interactive(self.spec)
        vega = converter().vegalite_to_vega(json.dumps(spec), vl_version=vl_version())
        return Answering(mended(vega), x_title(spec), ranges(spec))

    def save(self, directory: Path) -> list[Path]:
        """Write `NAME.svg` and `NAME.png` (twice the size of the page) into `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        svg = self.svg()
        paths = [directory / f"{self.name}.svg", directory / f"{self.name}.png"]
        paths[0].write_text(svg, encoding="utf-8")
        paths[1].write_bytes(converter().svg_to_png(svg, scale=2))
        return paths


def altair() -> ModuleType:
    """The module altair. Raises MissingCapability when the extra `report` is not installed."""
    found = _module("altair", "Altair")
    found.data_transformers.disable_max_rows()  # plots thin what is long themselves
    return found


alt: Any = Lazy(altair)
"""The same, loaded when first used."""


def by_name(channel: Any, column: str, names: Sequence[str], looks: Sequence[Any], **options: object) -> Any:
    """A `channel` such as `alt.Shape` that gives each of the names in a column one of `looks`."""
    scale = alt.Scale(domain=list(names), range=list(looks))
    return channel(f"{column}:N", scale=scale, sort=list(names), **options)


def series_color(column: str, names: Sequence[str], **options: object) -> Any:
    """Colour by a column of names: see `series_colors`; `options` are those of `alt.Color`."""
    return by_name(alt.Color, column, names, series_colors(names), **options)


def legend_of(names: Sequence[str], **options: object) -> Any:
    """The legend of some names; None of a single one."""
    return alt.Legend(symbolOpacity=1, **options) if len(names) > 1 else None


def series_colors(names: Sequence[str]) -> list[str]:
    """The colours of some names: the same name keeps its colour in all plots of one report."""
    return [LIGHT[_SERIES[place % len(_SERIES)]] for place in range(len(names))]


def alike(plots: Sequence[Plot]) -> list[Plot]:
    """The plots of one page, in which what has the same name has the same colour, and as few different names
    as can be share one; never within a plot. The only flow of a traffic or class of a port has its colour."""
    together = [
        {str(name) for scale in _series_scales(plot.drawing.to_dict()) for name in scale["domain"]}
        for plot in plots
    ]
    order = dict.fromkeys(
        str(name)
        for plot in plots
        for scale in _series_scales(plot.drawing.to_dict())
        for name in scale["domain"]
    )
    parts = Counter(_whole(name) for name in order)
    palette = [LIGHT[role] for role in _SERIES]
    colors: dict[str, str] = {}
    for name in order:
        near = {colors[other] for names in together if name in names for other in names if other in colors}
        used = set(colors.values())
        free = [color for color in palette if color not in near]
        whole = _whole(name)
        own = [colors[whole]] if parts[whole] == 1 and colors.get(whole) in free else []
        fresh = [color for color in free if color not in used]
        colors[name] = (own or fresh or free or [palette[len(colors) % len(palette)]])[0]
    return [replace(plot, colors=colors) for plot in plots]


def _whole(name: str) -> str:
    """The traffic of a flow, or the port of a class; empty of anything else."""
    port = re.sub(r", class \d+$", "", name)
    return port if port != name else name.rpartition("/")[0] and name.partition("/")[0]


def _series_scales(spec: Any) -> Iterator[Spec]:
    """The colour scales of series in a specification: a colour of the palette for each name."""
    if isinstance(spec, dict):
        color = spec.get("color")
        scale = color.get("scale") if isinstance(color, dict) else None
        if isinstance(scale, dict) and isinstance(scale.get("domain"), list):
            reach = scale.get("range")
            if isinstance(reach, list) and len(reach) == len(scale["domain"]) and set(reach) <= _PALETTE:
                yield scale
        for key, value in spec.items():
            if key not in ("data", "datasets", "values"):
                yield from _series_scales(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _series_scales(value)


def finished(
    rows: Sequence[Any],
    *,
    name: str,
    title: str,
    description: str,
    height: int = 230,
    note: str = "",
) -> Plot:
    """Put charts below each other and give them size and style. Several rows are lower than a single one."""
    height = height if len(rows) == 1 else max(80, min(height, 480 // len(rows)))
    sized = [chart.properties(width=WIDTH, height=height) for chart in rows]
    chart = sized[0] if len(sized) == 1 else alt.vconcat(*sized, spacing=12)
    return Plot(name, title, description, chart, note)


def banded(base: Any, low: Any) -> list[Any]:
    """The means of intervals as a stepped line, in a band from `low`, the channel of these, to `high`."""
    band = base.mark_area(opacity=0.22, interpolate="step-before").encode(y=low, y2="high:Q")
    return [band, base.mark_line(interpolate="step-before").encode(y="mean:Q")]


LEVELS = ".6~r"
"""Format of levels at an axis. Without a precision it follows the number of marks: 45 between 30 and 60 reads
50."""


def level_marks(levels: Sequence[float]) -> Mapping[str, object]:
    """What makes an axis have a mark with a text at each of its levels, where they are few: without
    their number it leaves out every other one. Texts that would stand in one another are left out."""
    if len(levels) > MOST_MARKS:
        return {}
    return {
        "values": list(levels),
        "tickCount": len(levels),
        "labelOverlap": "greedy",
    }


def rule(value: float, text: str, *, beside: bool = False) -> list[Any]:
    """A dashed horizontal line with its meaning above the right end, or `beside` the plot where curves would
    cross it."""
    chart = alt.Chart(pl.DataFrame({"y": [value], "text": [text]})).encode(y="y:Q")
    place = (
        {"align": "left", "baseline": "middle", "dx": 5, "lineBreak": "\n"}
        if beside
        else {"align": "right", "baseline": "bottom", "dy": -3}
    )
    return [
        chart.mark_rule(strokeDash=[4, 3], color=LIGHT["muted"]),
        chart.mark_text(**place, color=LIGHT["muted"]).encode(x=alt.value("width"), text="text:N"),
    ]


def scaled(largest: float, kind: str) -> tuple[float, str]:
    """Factor and unit that bring `largest`, given in the base unit of `kind`, to a readable size.

    Kinds: `time` (from ps), `bytes`, `rate` (from bit/s), `frame_rate` (from frames/s), `share`
    (from 1). No time at all, and
    none that is known, is given in s.
    """
    ladder = _LADDERS[kind]
    if kind == "time" and not abs(largest) > 0:
        return 1e-12, "s"
    for size, unit in ladder:
        if abs(largest) >= size:
            return 1 / size, unit
    size, unit = ladder[-1]
    return 1 / size, unit


def display_unit(unit: str, largest: float) -> tuple[float, str]:
    """Factor and unit in which values of a measure are shown."""
    if unit in _MEASURED:
        return scaled(largest, _MEASURED[unit])
    return 1.0, "" if unit == "1" else unit


_MEASURED = {"ps": "time", "B": "bytes", "bit/s": "rate", "frame/s": "frame_rate"}
"""The kinds of the units of measures."""
_LADDERS: Mapping[str, Sequence[tuple[float, str]]] = {
    "time": ((1e12, "s"), (1e9, "ms"), (1e6, "µs"), (1e3, "ns"), (1.0, "ps")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "rate": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "share": ((1e-2, "%"),),
    "frame_rate": ((1e6, "Mframe/s"), (1e3, "kframe/s"), (1.0, "frame/s")),
}

_CONFIG: Spec = {
    "background": "white",
    "font": _FONT,
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": LIGHT["muted"],
        "titleColor": LIGHT["ink"],
        "labelFontSize": 11.5,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 8,
        "grid": True,
        "gridColor": LIGHT["grid"],
        "domainColor": LIGHT["muted"],
        "tickColor": LIGHT["muted"],
        "tickSize": 4,
        "tickCount": 8,
        "labelSeparation": 5,
    },
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6, "tickCount": 5},
    "axisX": {"grid": False},
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "titleColor": LIGHT["ink"],
        "labelColor": LIGHT["ink"],
        "labelFontSize": 12,
        "labelLimit": 260,
        "symbolStrokeWidth": 2.5,
        "columnPadding": 18,
        "offset": 8,
    },
    "title": {"color": LIGHT["ink"], "fontSize": 12.5, "fontWeight": 600, "anchor": "start", "offset": 8},
    "text": {"color": LIGHT["ink"], "fontSize": 11.5},
    "line": {"strokeWidth": 1.6},
    "rule": {"color": LIGHT["muted"]},
}


def described(svg: str, title: str, description: str) -> str:
    """Name the picture for assistive technology, and give described marks a tooltip that needs no script."""
    svg = re.sub(
        r"(<svg [^>]*)>",
        lambda match: f'{match[1]} role="img" aria-label="{html.escape(f"{title}: {description}")}">',
        svg,
        count=1,
    )
    return re.sub(
        r'<(path|line|rect)( aria-label="([^"]*)"[^>]*)/>',
        lambda match: f"<{match[1]}{match[2]}><title>{match[3]}</title></{match[1]}>",
        svg,
    )


def vl_version() -> str:
    """The version of Vega-Lite that altair writes, as the converter names it."""
    return ".".join(str(alt.SCHEMA_VERSION).lstrip("v").split(".")[:2])


def converter() -> ModuleType:
    """The module vl_convert. Raises MissingCapability when the extra `report` is not installed."""
    return _module("vl_convert", "vl-convert")


def _module(module: str, name: str) -> ModuleType:
    found: ModuleType = optional(module, who="plots and reports need", package=name, extra="report")
    return found
