"""Plots of campaigns of bulk transfers: goodput, delay and their variation against streams, load and time.

One file: the plots share axes, colours and labels of the points of one campaign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from weirlab import stats
from weirlab.plots.style import LIGHT, Plot, alt, by_name, finished, legend_of, series_color, series_colors

_STACKS = 4
"""Points whose streams are drawn over time."""
_LEAST_FOR_LINE = 3
_LEAST_FOR_DISTRIBUTION = 10
_CURVE = 60
"""Places at which a fitted curve is drawn."""


def bulk_plots(
    rows: pl.DataFrame, intervals: pl.DataFrame, labels: Mapping[int, str], *, zeros: bool = False
) -> list[Plot]:
    """All plots that the measurements allow.

    Args:
        rows, intervals: `measurement_table` and `interval_table` of a campaign.
        labels: What each point is called.
        zeros: Also losses where none was lost.
    """
    if rows.is_empty():
        return []
    shown = rows.with_columns(
        mbps=pl.col("goodput_bps") / 1e6,
        drtt=1e3 * pl.col("rtt_difference_s"),
        iqr=1e3 * pl.col("rtt_iqr_s"),
        variability=100 * pl.col("variability"),
        predictability=1 - pl.col("variability"),
        loss=100 * pl.col("loaded_loss"),
        idle_loss=100 * pl.col("unloaded_loss"),
        series=_series(rows),
    )
    keys = [key for key in ("site", "campaign", "cycle", "point") if key in rows.columns]
    several = "traffic" in rows.columns and rows.n_unique("traffic") > 1
    first = shown.unique(keys, keep="first", maintain_order=True) if several else shown
    if "goes" not in intervals.columns:  # kept by an earlier version
        intervals = intervals.with_columns(goes=pl.lit("up"), traffic=pl.lit(""))
    plots: list[Plot | None] = []
    if shown.n_unique("streams") > 1:
        plots += [
            _against_streams(shown, column, title, unit)
            for column, title, unit in _AGAINST_STREAMS
            if zeros or "loss" not in column or shown.filter(pl.col(column) > 0).height
        ]
        plots += [_delay(part, name) for (name,), part in shown.group_by("series", maintain_order=True)]
    plots += [
        _against_goodput(shown, "drtt", "dRTT", "ms"),
        _against_goodput(shown, "variability", "rate variability", "%"),
    ]
    plots.append(_predictability(first))
    plots += [
        _distribution(first, "variability", "rate variability", "%", 2.0),
        _distribution(shown, "mbps", "goodput", "Mbit/s", None),
    ]
    if shown.n_unique("duration_s") > 1:
        plots.append(_durations(shown))
    plots += [_cpu_against_goodput(shown), _cpu_against_streams(shown)]
    plots += [
        _stack(point, goes, intervals, labels) for point in list(labels)[:_STACKS] for goes in ("up", "down")
    ]
    return [plot for plot in plots if plot is not None]


def _series(rows: pl.DataFrame) -> pl.Expr:
    """What distinguishes transfers that are drawn together: the campaign where there are several, the traffic
    where there is more than one, the window, and the congestion control if it differs."""
    if "campaign" in rows.columns:
        own = _series(rows.drop("campaign"))
        return pl.col("campaign") + ", " + own if _differ(rows) else pl.col("campaign")
    window = (
        pl.when(pl.col("window_bytes").is_null())
        .then(pl.lit("own window"))
        .otherwise((pl.col("window_bytes") / 1024).round(1).cast(pl.String).str.strip_suffix(".0") + " KiB")
    )
    reported = [
        name for name in ("traffic", "congestion_control") if name in rows.columns and rows.n_unique(name) > 1
    ]
    return pl.concat_str([*map(pl.col, reported), window], separator=", ")


def _differ(rows: pl.DataFrame) -> bool:
    """Whether one campaign has several kinds of traffic, windows or congestion controls."""
    kinds = [name for name in ("traffic", "window_bytes", "congestion_control") if name in rows.columns]
    counts = rows.group_by("campaign").agg(pl.struct(kinds).n_unique().alias("kinds"))
    return bool((counts.get_column("kinds") > 1).any())


def round_trips_plot(rows: pl.DataFrame) -> Plot | None:
    """The share of round-trip times up to each, for each campaign: `campaign rtt_ms`; None without any."""
    if rows.is_empty():
        return None
    names = rows.get_column("campaign").unique(maintain_order=True).to_list()
    shares = np.linspace(0, 1, _CURVE + 1)
    parts = {name: rows.filter(campaign=name).get_column("rtt_ms").to_numpy() for name in names}
    curves = pl.concat(
        pl.DataFrame({"campaign": name, "rtt": np.quantile(rtts, shares), "share": shares})
        for name, rtts in parts.items()
    )
    line = alt.Chart(curves).encode(
        x=alt.X("rtt:Q", title="round-trip time under load [ms]", scale=alt.Scale(zero=False)),
        y=alt.Y("share:Q", title="share up to it"),
        color=series_color("campaign", names),
        order=alt.Order("share:Q"),
    )
    return finished(
        [line.mark_line(interpolate="step-before")],
        name="round-trips",
        title="Round-trip times under load",
        description=f"Distribution of {rows.height} round-trip times of pings under load.",
    )


def _stack(point: int, goes: str, intervals: pl.DataFrame, labels: Mapping[int, str]) -> Plot | None:
    """The streams of the first measurement of a point that go one way, one on top of the other."""
    rows = intervals.filter(pl.col("point") == point)
    ways = rows.n_unique("goes")
    rows = rows.filter(pl.col("goes") == goes)
    if rows.is_empty():
        return None
    several = rows.n_unique("traffic") > 1
    number = pl.col("stream").cast(pl.String)
    rows = rows.filter(pl.col("cycle") == rows.get_column("cycle").min()).with_columns(
        mbps=pl.col("rate_bps") / 1e6,
        name=pl.col("traffic") + " " + number if several else number,
        place=pl.struct("traffic", "stream").rank("dense"),
    )
    received = (rows.get_column("counted_by") == "receiver").all()
    rate = "goodput" if received else "written by the sender"
    names = rows.get_column("name").unique(maintain_order=True).to_list()
    legend = alt.Legend(title="stream", columns=10) if len(names) <= 20 else None
    # From its beginning each value holds to the next; the last one to the end of its second.
    last = rows.filter(pl.col("second") == pl.col("second").max().over("name"))
    steps = pl.concat([rows.with_columns(second=pl.col("second") - 1), last])
    areas = alt.Chart(steps).encode(
        x=alt.X("second:Q", title="time [s]", axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("mbps:Q", stack="zero", title=f"{rate} [Mbit/s]"),
        color=series_color("name", names, legend=legend),
        order=alt.Order("place:Q"),
    )
    return finished(
        [areas.mark_area(interpolate="step-after", opacity=0.75, stroke="white", strokeWidth=0.4)],
        name=f"streams-over-time-{point}" + ("-down" if ways > 1 and goes == "down" else ""),
        title=f"Streams over time: {labels[point]}" + (f", {goes}" if ways > 1 else ""),
        description=f"{_capital(rate)}: {len(names)} streams, stacked, in each second of the first cycle.",
        note="First cycle; each band is a stream."
        + ("" if received else " The sender fills its buffer first: what it wrote is no goodput."),
    )


_AGAINST_STREAMS = (
    ("mbps", "goodput", "Mbit/s"),
    ("drtt", "dRTT", "ms"),
    ("loss", "lost pings", "%"),
    ("idle_loss", "lost pings without a transfer", "%"),
    ("iqr", "interquartile range of the RTT", "ms"),
    ("variability", "rate variability", "%"),
)


def _against_streams(rows: pl.DataFrame, column: str, title: str, unit: str) -> Plot | None:
    """Every measurement, their means as a line and their medians as a dashed one."""
    rows = rows.drop_nulls(column)
    if rows.is_empty():
        return None
    y = alt.Y(f"{column}:Q", title=f"{title} [{unit}]", scale=_whole_marks(rows, column))
    means = rows.group_by("series", "streams", maintain_order=True).agg(
        mean=pl.col(column).mean(), median=pl.col(column).median()
    )
    base = alt.Chart(means.sort("series", "streams")).encode(x=_streams_axis(), color=_color(rows))
    layers = [
        _points(rows, _streams_axis(), y, _color(rows), size=36),
        base.mark_line().encode(y="mean:Q"),
        base.mark_line(strokeDash=[5, 4]).encode(y="median:Q"),
    ]
    return finished(
        [alt.layer(*layers)],
        name=f"streams-{column}",
        title=f"{_capital(title)} against streams",
        description=f"{_capital(title)} of {rows.height} measurements against the number of streams.",
        note="Points: measurements; line: mean; dashed: median.",
    )


_DELAYS = {
    "mean dRTT": (pl.col("drtt").mean(), [1, 0]),
    "median dRTT": (pl.col("drtt").median(), [5, 4]),
    "IQR of the RTT": (pl.col("iqr").mean(), [1, 0]),
}
"""What is drawn together in ms, with the dashes of its line."""
_VARIABILITY = "rate variability"
_VARIABILITY_DASH = [2, 3]


def _delay(rows: pl.DataFrame, series: str) -> Plot | None:
    """dRTT, the interquartile range of the RTT and rate variability of one window, laid over each other."""
    rows = rows.drop_nulls(["drtt", "iqr", "variability"])
    if rows.n_unique("streams") < _LEAST_FOR_LINE:
        return None
    names = [*_DELAYS, _VARIABILITY]
    colors = dict(zip(names, series_colors(names), strict=True))
    dashes = [*(dash for _, dash in _DELAYS.values()), _VARIABILITY_DASH]
    dash = by_name(alt.StrokeDash, "line", names, dashes)
    line = {"color": series_color("line", names), "strokeDash": dash}
    # Both scales begin at 0 and end at a tick; the right one has the color of what it is for.
    scaled = alt.Scale(zero=True, nice=True)
    left = alt.Y("value:Q", title="dRTT, IQR of the RTT [ms]", scale=scaled)
    own = alt.Axis(titleColor=colors[_VARIABILITY], labelColor=colors[_VARIABILITY], grid=False)
    right = alt.Y("value:Q", title=f"{_VARIABILITY} [%]", scale=scaled, axis=own)

    def means(name: str, value: pl.Expr) -> Any:
        found = rows.group_by("streams").agg(value=value).sort("streams").with_columns(line=pl.lit(name))
        return alt.Chart(found).mark_line()

    def points(column: str, name: str, shape: str) -> Any:
        mark = {"size": 20, "opacity": 0.4, "filled": True, "color": colors[name], "shape": shape}
        return alt.Chart(rows.select("streams", value=column)).mark_point(**mark)

    delays = [
        points("drtt", "mean dRTT", "circle").encode(x=_streams_axis(), y=left),
        *(
            means(name, value).encode(x=_streams_axis(), y=left, **line)
            for name, (value, _) in _DELAYS.items()
        ),
    ]
    variability = [
        points("variability", _VARIABILITY, "diamond").encode(x=_streams_axis(), y=right),
        means(_VARIABILITY, pl.col("variability").mean()).encode(x=_streams_axis(), y=right, **line),
    ]
    return finished(
        [alt.layer(alt.layer(*delays), alt.layer(*variability)).resolve_scale(y="independent")],
        name=f"streams-delay-{_slug(series)}",
        title=f"Delay and its variation against streams: {series}",
        description="dRTT, interquartile range of the RTT and rate variability of "
        f"{rows.height} measurements with {series} against the number of streams.",
        note="Points: dRTT (circles) and rate variability (diamonds, scale on the right) of each "
        "measurement.",
    )


def _slug(text: str) -> str:
    """As part of the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _against_goodput(rows: pl.DataFrame, column: str, title: str, unit: str) -> Plot | None:
    rows = rows.drop_nulls(column)
    if rows.is_empty():
        return None
    y = alt.Y(f"{column}:Q", title=f"{title} [{unit}]", scale=_whole_marks(rows, column))
    return finished(
        [_points(rows, _goodput_axis(rows), y, _color(rows), opacity=0.55)],
        name=f"goodput-{column}",
        title=f"{_capital(title)} against goodput",
        description=f"{_capital(title)} of {rows.height} measurements against their goodput.",
    )


def _predictability(rows: pl.DataFrame) -> Plot | None:
    """RP against dRTT with the line through it."""
    rows = rows.drop_nulls(["drtt", "predictability"])
    x, y = rows.get_column("drtt").to_list(), rows.get_column("predictability").to_list()
    if not _spread(x):
        return None
    line = stats.fit_line(x, y)
    ends = [min(x), max(x)]
    fitted = pl.DataFrame(
        {"drtt": ends, "predictability": [line.intercept + line.slope * end for end in ends]}
    )
    axis = alt.Y("predictability:Q", title="rate predictability", scale=alt.Scale(zero=False))
    layers = [
        _points(rows, alt.X("drtt:Q", title="dRTT [ms]"), axis, _color(rows), opacity=0.55),
        alt.Chart(fitted).mark_line(color=LIGHT["muted"], strokeDash=[4, 3]).encode(x="drtt:Q", y=axis),
    ]
    return finished(
        [alt.layer(*layers)],
        name="predictability-drtt",
        title="Rate predictability against dRTT",
        description=f"Rate predictability of {len(x)} measurements against their dRTT, with a line.",
        note=f"RP = min / mean of the RTT. Line: {line.intercept:.4g} {line.slope:+.3g} per ms, "
        f"R² = {line.r_squared:.3f}, n = {line.count}.",
    )


_LEAST_BINS = 2
"""Values within fewer bins of the width that is asked for have narrower ones."""


def _distribution(rows: pl.DataFrame, column: str, title: str, unit: str, width: float | None) -> Plot | None:
    """Frequencies with an exponential, and shares up to a value with a logarithm."""
    values = rows.get_column(column).drop_nulls().to_list()
    if len(values) < _LEAST_FOR_DISTRIBUTION or not _spread(values):
        return None
    if width is None or max(values) - min(values) < _LEAST_BINS * width:
        width = _bin_width(values)
    found = stats.frequencies(values, width)
    low, high = found.edges[:-1], found.edges[1:]
    middles = ((low + high) / 2).tolist()
    counts = found.counts.tolist()
    bars = pl.DataFrame({"low": low, "high": high, "count": counts, "share": np.cumsum(counts) / len(values)})
    x = alt.X("low:Q", title=f"{title} [{unit}]", scale=alt.Scale(zero=False))
    counted = alt.Y("count:Q", title="measurements")
    boxes = alt.Chart(bars).mark_rect(color=LIGHT["blue"], opacity=0.6)
    frequency = [boxes.encode(x=x, x2="high:Q", y=counted, y2=alt.datum(0))]
    steps = pl.concat([bars[:1].with_columns(high="low", share=pl.lit(0.0)), bars])
    until = alt.X("high:Q", title=f"{title} [{unit}]", scale=alt.Scale(zero=False))
    share = alt.Y("share:Q", title="share up to it", scale=alt.Scale(domain=[0, 1.05]))
    line = alt.Chart(steps).mark_line(interpolate="step-after", color=LIGHT["teal"])
    cumulative = [line.encode(x=until, y=share)]
    notes = []
    filled = [(middle, count) for middle, count in zip(middles, counts, strict=True) if count > 0]
    if len(filled) >= _LEAST_FOR_LINE:
        fit = stats.fit_exponential(middles, counts)
        frequency.append(_curve(lambda at: fit.scale * math.exp(fit.rate * at), middles, max(counts)))
        notes.append(f"{fit.scale:.3g} exp({fit.rate:.3g} x), R² = {fit.r_squared:.2f}")
    edges = [(edge, share) for edge, share in zip(high, bars.get_column("share"), strict=True) if edge > 0]
    if len(edges) >= _LEAST_FOR_LINE and _spread([share for _, share in edges]):
        logarithm = stats.fit_logarithm(*map(list, zip(*edges, strict=True)))
        cumulative.append(
            _curve(lambda at: logarithm.factor * math.log(at) + logarithm.offset, [e for e, _ in edges], 1.05)
        )
        notes.append(f"{logarithm.factor:.3g} ln x {logarithm.offset:+.3g}, R² = {logarithm.r_squared:.2f}")
    return finished(
        [alt.layer(*frequency), alt.layer(*cumulative)],
        name=f"distribution-{column}",
        title=f"Distribution of the {title}",
        description=f"How often the {title} of {len(values)} measurements lies in each bin, and up to it.",
        note="Dashed: " + "; ".join(notes) + "." if notes else "",
    )


def _curve(function: Callable[[float], float], x: Sequence[float], most: float) -> Any:
    """A fitted curve over the range of `x`, where it stays on the picture."""
    places = np.linspace(min(x), max(x), _CURVE).tolist()
    points = [(place, function(place)) for place in places if place > 0]
    inside = [(place, value) for place, value in points if 0 <= value <= 1.2 * most]
    frame = pl.DataFrame(inside, schema={"at": pl.Float64, "fit": pl.Float64}, orient="row")
    return alt.Chart(frame).mark_line(color=LIGHT["ink"], strokeDash=[5, 4]).encode(x="at:Q", y="fit:Q")


def _durations(rows: pl.DataFrame) -> Plot:
    durations = sorted(rows.get_column("duration_s").unique().to_list())
    x = alt.X(
        "duration_s:Q", title="duration [s]", scale=alt.Scale(type="log"), axis=alt.Axis(values=durations)
    )
    medians = rows.group_by("series", "duration_s", maintain_order=True).agg(pl.col("mbps").median())
    lines = alt.Chart(medians.sort("duration_s")).mark_line(strokeDash=[5, 4])
    layers = [
        _points(rows, x, alt.Y("mbps:Q", title="goodput [Mbit/s]"), _color(rows), size=30),
        lines.encode(x=x, y="mbps:Q", color=_color(rows)),
    ]
    return finished(
        [alt.layer(*layers)],
        name="durations",
        title="Goodput against the duration of the measurement",
        description=f"Goodput of {rows.height} measurements of {len(durations)} durations.",
        note="Dashed: medians.",
    )


def _cpu_against_goodput(rows: pl.DataFrame) -> Plot | None:
    """User and system time of the sender, with the proportion that fits their sum."""
    rows = rows.drop_nulls(["user_percent", "system_percent"])
    if rows.is_empty():
        return None
    rows = rows.with_columns(duration=pl.col("duration_s").map_elements(_seconds, return_dtype=pl.String))
    durations = rows.sort("duration_s").get_column("duration").unique(maintain_order=True).to_list()
    long = rows.unpivot(
        ["user_percent", "system_percent"],
        index=["mbps", "duration"],
        variable_name="part",
        value_name="percent",
    )
    long = long.with_columns(part=pl.col("part").str.strip_suffix("_percent"))
    apart = {"shape": alt.Shape("duration:N", sort=durations)} if len(durations) > 1 else {}
    y = alt.Y("percent:Q", title="CPU of the sender [% of one]", scale=_whole_marks(long, "percent"))
    color = series_color("part", ["user", "system"])
    layers = [_points(long, _goodput_axis(rows), y, color).encode(**apart)]
    costs = []
    for duration, dash in zip(durations, ([4, 3], [8, 3], [2, 2], [12, 4]), strict=False):
        part = rows.filter(pl.col("duration") == duration)
        rates = part.get_column("mbps").to_list()
        total = (part.get_column("user_percent") + part.get_column("system_percent")).to_list()
        if not (_spread(rates) and _spread(total)):
            continue
        cost = stats.cpu_cost(rates, total)
        ends = [0.0, max(rates)]
        line = pl.DataFrame({"mbps": ends, "percent": [cost.proportion.factor * end for end in ends]})
        layers.append(
            alt.Chart(line).mark_line(color=LIGHT["muted"], strokeDash=dash).encode(x="mbps:Q", y="percent:Q")
        )
        costs.append(
            (f"{duration}: " if apart else "")
            + f"{cost.proportion.factor:.3g} % per Mbit/s, R² about the origin "
            f"{cost.proportion.r_squared_origin:.2f}; of a line with an intercept {cost.line.r_squared:.2f}"
        )
    note = f"Dashed: both together. {'. '.join(costs)}." if costs else ""
    return finished(
        [alt.layer(*layers)],
        name="cpu-goodput",
        title="CPU against goodput",
        description=f"User and system time of the sending process in {rows.height} measurements.",
        note=note,
    )


def _cpu_against_streams(rows: pl.DataFrame) -> Plot | None:
    rows = rows.drop_nulls(["user_percent", "system_percent"]).filter(pl.col("mbps") > 0)
    if rows.is_empty() or rows.n_unique("streams") < 2:
        return None
    parts = {"user": "user_percent", "system": "system_percent", "receiver": "receiver_percent"}
    rows = rows.with_columns((pl.col(column) / pl.col("mbps")).alias(name) for name, column in parts.items())
    names = list(parts)
    long = rows.unpivot(names, index="streams", variable_name="end", value_name="cost")
    means = (
        long.group_by("end", "streams", maintain_order=True).agg(pl.col("cost").mean()).sort("end", "streams")
    )
    color = series_color("end", names)
    y = alt.Y("cost:Q", title="CPU [% of one per Mbit/s]", scale=_whole_marks(long, "cost"))
    layers = [
        _points(long, _streams_axis(), y, color, size=22, opacity=0.5),
        alt.Chart(means).mark_line().encode(x=_streams_axis(), y="cost:Q", color=color),
    ]
    return finished(
        [alt.layer(*layers)],
        name="cpu-streams",
        title="CPU for each Mbit/s against streams",
        description=f"User and system time of the sender, and CPU of the receiver, per Mbit/s in "
        f"{rows.height} measurements.",
        note="User and system: of the sender. Line: mean.",
    )


def _points(rows: pl.DataFrame, x: Any, y: Any, color: Any, *, size: int = 26, opacity: float = 0.6) -> Any:
    marks = alt.Chart(rows).mark_point(size=size, opacity=opacity, filled=True)
    return marks.encode(x=x, y=y, color=color)


def _goodput_axis(rows: pl.DataFrame) -> Any:
    return alt.X("mbps:Q", title="goodput [Mbit/s]", scale=_whole_marks(rows, "mbps"))


def _whole_marks(rows: pl.DataFrame, column: str) -> Any:
    """A scale from 0, with room above the largest value, so that its mark is not cut in half."""
    low, high = (
        float(rows.select(each).item() or 0.0) for each in (pl.col(column).min(), pl.col(column).max())
    )
    return alt.Scale(domain=[min(0.0, 1.06 * low), 1.06 * high if high > 0 else 1.0 if low == 0 else 0.0])


def _streams_axis() -> Any:
    scale = alt.Scale(padding=12, nice=False, zero=False)  # the marks at the ends are seen whole
    return alt.X("streams:Q", title="streams", scale=scale, axis=alt.Axis(tickMinStep=1))


def _color(rows: pl.DataFrame) -> Any:
    names = rows.get_column("series").unique(maintain_order=True).to_list()
    return series_color("series", names, legend=legend_of(names))


def _spread(values: Sequence[float]) -> bool:
    return len(values) >= _LEAST_FOR_LINE and max(values) > min(values)


def _bin_width(values: Sequence[float]) -> float:
    """About fifteen bins of a round width."""
    raw = (max(values) - min(values)) / 15
    step = 10.0 ** math.floor(math.log10(raw))
    return next(factor * step for factor in (1.0, 2.0, 5.0, 10.0) if factor * step >= raw)


def _seconds(value: float) -> str:
    return f"{value:g} s"


def _capital(text: str) -> str:
    return text if text[:2] == "dR" else text[0].upper() + text[1:]
