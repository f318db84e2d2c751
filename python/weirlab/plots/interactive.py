"""What a chart needs to answer the pointer: values under it, a range to look closer at, lines to hide.

A plot is drawn once, for paper and screen. This adds to its Vega-Lite specification what only a screen can
do, whatever the chart shows: no plot knows of it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

Spec = dict[str, Any]
"""A specification of Vega-Lite or Vega, or a part of one: the language of other programs."""

ZOOM = "zoom"
"""How the names of ranges begin, which plots of one page share where their axes are the same."""

_PARTS = ("vconcat", "hconcat", "concat")
_FAINT = 0.08
"""Opacity of what the reader hid."""


def interactive(spec: Spec) -> Spec:
    """A Vega-Lite specification with values on hover, a horizontal range that is dragged and zoomed where the
    chart has lines over a continuous axis, and legends whose entries show their series alone."""
    found = copy.deepcopy(spec)
    for number, view in enumerate(_views(found)):
        _answer(view, number)
    return found


def x_title(spec: Spec) -> str:
    """The title of the horizontal axis, such as `time [ms]`; empty where there is none or several."""
    titles = {
        str(title)
        for view in _views(spec)
        for layer in _layers(view)
        if (title := layer.get("encoding", {}).get("x", {}).get("title"))
    }
    return titles.pop() if len(titles) == 1 else ""


def ranges(spec: Spec) -> list[str]:
    """The signals that hold the ranges of an interactive specification."""
    return [
        f"{param['name']}_{layer['encoding']['x']['field']}"
        for view in _views(spec)
        for layer in _layers(view)
        for param in layer.get("params", ())
        if param["name"].startswith(f"{ZOOM}_")
    ]


def mended(vega: Spec) -> Spec:
    """The Vega specification with the values of names at the nearest point: Vega-Lite 6.4 looks for them in
    the cell around the point, which has none."""
    for mark in _marks(vega):
        update = mark.get("encode", {}).get("update", {})
        if "isVoronoi" in update and "tooltip" in update:
            signal = update["tooltip"]["signal"]
            update["tooltip"]["signal"] = re.sub(r"(?<!datum\.)\bdatum\[", "datum.datum[", signal)
    _wrap_legends(vega)
    return vega


_WIDTH = re.compile(r"(^|_)(width|childWidth)$")
_LETTER_PX, _SYMBOL_PX = 6.6, 46
"""Of a text in a legend, and of what stands around it."""


def _wrap_legends(vega: Spec) -> None:
    """Entries of legends above a plot stand in as many columns as its width has room for."""
    names = [each["name"] for each in vega.get("signals", ()) if _WIDTH.search(each["name"])]
    width = "width" if not names or "width" in names else names[0]
    for group in (vega, *_marks(vega)):
        for legend in group.get("legends", ()):
            scale = next((legend[each] for each in ("stroke", "fill", "shape") if each in legend), None)
            found = _scale(vega, group, scale)
            domain = found.get("domain") if found else None
            most = legend.get("columns", 50)
            if legend.get("type") == "gradient" or not isinstance(domain, list) or not isinstance(most, int):
                continue
            entry = max(len(str(name)) for name in domain) * _LETTER_PX + _SYMBOL_PX if domain else 0
            if entry * len(domain) <= _NARROW_PX:
                continue
            legend["columns"] = {"signal": f"min({most}, max(1, floor(({width} + 40) / {entry:.0f})))"}
            legend["labelLimit"] = {"signal": f"max(120, {width})"}


_NARROW_PX = 240


def _scale(vega: Spec, group: Spec, name: Any) -> Spec | None:
    for scale in (*group.get("scales", ()), *vega.get("scales", ())):
        if scale["name"] == name:
            return dict(scale)
    return None


def _marks(group: Spec) -> Iterator[Spec]:
    for mark in group.get("marks", ()):
        yield mark
        yield from _marks(mark)


def _views(spec: Spec) -> Iterator[Spec]:
    for part in _PARTS:
        for child in spec.get(part, ()):
            yield from _views(child)
    if "layer" in spec or "mark" in spec:
        yield spec


def _layers(view: Spec) -> Iterator[Spec]:
    if "mark" in view:
        yield view
    for layer in view.get("layer", ()):
        yield from _layers(layer)


def _answer(view: Spec, number: int) -> None:
    layers = list(_layers(view))
    lines = [layer for layer in layers if _kind(layer) == "line" and _has_continuous_x(layer)]
    _let_legend_choose(layers, number)
    for layer in layers:
        if _kind(layer) in ("bar", "rect", "point", "circle", "square", "tick"):
            _mark(layer)["tooltip"] = True
    if not lines or "layer" not in view:
        return
    zoom = {"name": f"{ZOOM}_{number}", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}
    lines[0].setdefault("params", []).append(zoom)
    for layer in layers:  # what stands at one place of the view whatever its range may reach over its edge
        _mark(layer)["clip"] = _kind(layer) != "text" or "field" in layer["encoding"].get("x", {})
    groups, resolved = [view], view.get("resolve", {}).get("scale", {})
    if resolved.get("y") == "independent":  # a dot stands on the scale of its line
        groups = view["layer"] = [each if "layer" in each else {"layer": [each]} for each in view["layer"]]
    for group in groups:
        own = list(_layers(group))
        titles = {
            channel: layer["encoding"][channel]["title"]
            for layer in reversed(own)
            for channel in ("x", "y")
            if layer.get("encoding", {}).get(channel, {}).get("title")
        }
        dots = [
            _dots(line, f"hover_{number}_{place}", view.get("data"), titles)
            for place, line in enumerate(lines)
            if any(line is each for each in own)
        ]
        if resolved.get("color") == "independent":
            for each in dots:  # which would have a legend of their own
                if "field" in each["encoding"].get("color", {}):
                    each["encoding"]["color"] = {**each["encoding"]["color"], "legend": None}
        group["layer"] += dots


def _dots(line: Spec, name: str, data: Any, titles: Mapping[str, str]) -> Spec:
    """A dot at the nearest point of a line, with its values."""
    encoding = {key: line["encoding"][key] for key in ("x", "y", "color") if key in line["encoding"]}
    shown = [
        {"field": encoding[channel]["field"], "type": encoding[channel].get("type", "quantitative")}
        | {"title": titles.get(channel) or encoding[channel]["field"]}
        for channel in ("color", "x", "y")
        if channel in encoding and "field" in encoding[channel]
    ]
    dots: Spec = {
        "mark": {"type": "point", "filled": True, "size": 70, "clip": True},
        "params": [
            {
                "name": name,
                "select": {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"},
            }
        ],
        "encoding": {
            **encoding,
            "opacity": {"condition": {"param": name, "empty": False, "value": 1}, "value": 0},
            "tooltip": [
                {"format": ",.5~g", **each} if each["type"] == "quantitative" else each for each in shown
            ],
        },
    }
    source = line.get("data", data)
    return dots if source is None else {"data": source, **dots}


def _let_legend_choose(layers: list[Spec], number: int) -> None:
    """One that is clicked shows its series alone; another click, all of them."""
    coloured = [
        layer
        for layer in layers
        if (color := layer.get("encoding", {}).get("color", {})).get("legend")
        and color.get("type") == "nominal"
        and "opacity" not in layer["encoding"]
        and color.get("field")
    ]
    if not coloured:
        return
    name, field = f"only_{number}", coloured[0]["encoding"]["color"]["field"]
    choice = {"name": name, "select": {"type": "point", "fields": [field]}, "bind": "legend"}
    coloured[0].setdefault("params", []).append(choice)
    for layer in coloured:
        full = _mark(layer).pop("opacity", 1)
        layer["encoding"]["opacity"] = {"condition": {"param": name, "value": full}, "value": _FAINT * full}


def _kind(layer: Spec) -> str:
    mark = layer["mark"]
    return str(mark["type"] if isinstance(mark, dict) else mark)


def _mark(layer: Spec) -> Spec:
    if not isinstance(layer["mark"], dict):
        layer["mark"] = {"type": layer["mark"]}
    mark: Spec = layer["mark"]
    return mark


def _has_continuous_x(layer: Spec) -> bool:
    x = layer.get("encoding", {}).get("x", {})
    return x.get("type") in ("quantitative", "temporal") and "field" in x
