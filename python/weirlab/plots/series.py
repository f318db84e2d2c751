"""Plots of a run: what ports, traffic and rate limiters did over time, and how long frames were on their way.

Long series are drawn as an envelope: consecutive intervals are put together until `POINTS` remain, the
line is their exact mean (sums over sums), the band reaches from their smallest to their largest value.
Replicates are treated the same way: line over all of them, band from the least to the most.

One file: all of these plots are drawn by `_lines` of one `_Series`.
"""

from __future__ import annotations

import math
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from weirlab.heavy import np
from weirlab.plots.style import LIGHT, Plot, altair, finished, rule, scaled, series_colors
from weirlab.records import Records

POINTS = 320
"""Most points of one line: about one for each 2.7 pixels."""
FINE = 90_000
"""Most points of all lines of a plot that a reader of a page can look closer at."""
SERIES = 6
"""Most lines in one plot."""


Moments = Sequence[tuple[int, str]]
"""Times [ps] at which something happened to the network, and what."""


def port_plots(
    records: Records,
    first: Sequence[int] = (),
    moments: Moments = (),
    set_points: Mapping[str, float] | None = None,
) -> list[Plot]:
    """Rate, queue and drops of the ports with series, those of `first` and the busiest, and queues above the
    `set_points` [B] of ports by name; nothing where no port was recorded."""
    series = Envelopes.of(records, "intervals", "port", first=first)
    if not series.names:
        return []
    each_rate = (
        (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64)
        * 8e12
        / pl.col("length_ps")
    )
    each_queue = pl.col("queue_byte_ps").cast(pl.Float64) / pl.col("length_ps")
    each_drops = pl.col("drops").cast(pl.Float64)
    rate = series.envelope(each_rate)
    drops = series.envelope(each_drops)
    plots = [
        _lines(
            rate,
            series,
            kind="rate",
            moments=moments,
            name="port-rate",
            title=f"Transmitted rate of {series.what}, framing included",
            y_title="rate",
            description=f"Transmitted rate, framing included, of {series.listed} over time.",
            ceiling=series.ceiling(),
        ),
        _lines(
            series.envelope(each_queue, high=pl.col("queue_max_bytes").cast(pl.Float64)),
            series,
            kind="bytes",
            moments=moments,
            name="port-queue",
            title=f"Waiting bytes at {series.what}",
            y_title="queue",
            description=f"Bytes that waited at {series.listed} over time: line mean, band up to the maximum.",
            note=series.note(
                "from the lowest mean to the largest queue",
                alone="Line: mean over time; band: up to the largest queue within each interval.",
            ),
        ),
    ]
    plots += _excess(series, each_queue, set_points or {}, moments)
    if drops.drawn.get_column("high").max():
        plots.append(
            _lines(
                drops,
                series,
                kind=None,
                moments=moments,
                name="port-drops",
                title=f"Dropped frames at {series.what}",
                y_title=f"drops in {series.every}",
                description=f"Frames dropped at {series.listed} in each recorded interval.",
            )
        )
    return plots


def _excess(
    series: Envelopes, each_queue: pl.Expr, set_points: Mapping[str, float], moments: Moments
) -> list[Plot]:
    """What the queues were above their set points, which is what congestion notification answers to."""
    names = [name for name in series.names if name in set_points]
    if not names:
        return []
    rows = series.rows.filter(pl.col("name").is_in(names))
    series = replace(series, rows=rows, names=names, shown_of=len(names), chosen=0)
    point = pl.col("name").replace_strict(set_points, return_dtype=pl.Float64, default=None)
    levels = sorted({set_points[name] for name in names})
    factor, unit = scaled(levels[-1], "bytes")
    level = " to ".join(dict.fromkeys(f"{each * factor:.4g}" for each in (levels[0], levels[-1])))
    return [
        _lines(
            series.envelope(each_queue - point, high=pl.col("queue_max_bytes").cast(pl.Float64) - point),
            series,
            kind="bytes",
            moments=moments,
            name="port-excess",
            title=f"Queue of {series.what} above its set point of {level} {unit}",
            y_title="above the set point",
            description=f"What the queue of {series.listed} was above its set point over time, or below it.",
            note=series.note(
                "from the lowest mean to the largest queue",
                alone="Line: mean over time; band: up to the largest queue within each interval.",
            ),
            least=True,
        )
    ]


def delivery_plots(records: Records, moments: Moments = ()) -> list[Plot]:
    """Delivered rate of the traffic groups, and of the flows, with series; nothing where none was
    recorded."""
    recorded = {
        "delivered-rate": Envelopes.of(records, "deliveries", "traffic"),
        "delivered-rate-by-flow": Envelopes.of(records, "flow_deliveries", "flow"),
    }
    return [
        _lines(
            series.envelope(pl.col("bytes").cast(pl.Float64) * 8e12 / pl.col("length_ps")),
            series,
            kind="rate",
            moments=moments,
            name=name,
            title=f"Delivered rate of {series.what}, framing excluded",
            y_title="rate",
            description=f"Delivered rate of {series.listed} over time.",
        )
        for name, series in recorded.items()
        if series.names
    ]


def connection_plots(records: Records, moments: Moments = ()) -> list[Plot]:
    """Window, round-trip time and rate of the TCP senders with series; nothing where none was recorded."""
    series = Envelopes.of(records, "tcp", "connection", weight="acked_bytes")
    if not series.names:
        return []
    acked = pl.col("acked_bytes").cast(pl.Float64)
    news = acked - acked.shift(1).over("id", "replicate").fill_null(0.0)
    timed = replace(series, rows=series.rows.filter(pl.col("srtt_ps").is_not_null()))
    return [
        _lines(
            series.envelope(pl.col("window_bytes").cast(pl.Float64)),
            series,
            kind="bytes",
            moments=moments,
            name="tcp-window",
            title=f"Congestion window of {series.what}",
            y_title="window",
            description=f"What {series.listed} might have in flight, at the end of each interval.",
        ),
        _lines(
            timed.envelope(pl.col("srtt_ps")),
            timed,
            kind="time",
            moments=moments,
            name="tcp-round-trip",
            title=f"Smoothed round-trip time of {series.what}",
            y_title="round trip",
            description=f"Smoothed round-trip time of {series.listed}, at the end of each interval.",
        ),
        _lines(
            timed.envelope(
                pl.col("srtt_ps").cast(pl.Float64) - pl.col("srtt_ps").min().over("id", "replicate")
            ),
            timed,
            kind="time",
            moments=moments,
            name="tcp-queueing",
            title=f"Smoothed round-trip time above its least, of {series.what}",
            y_title="above the least",
            description=f"What the smoothed round-trip time of {series.listed} was above its least: queues.",
        ),
        _lines(
            series.envelope(news * 8e12 / pl.col("length_ps")),
            series,
            kind="rate",
            moments=moments,
            name="tcp-rate",
            title=f"Acknowledged rate of {series.what}",
            y_title="rate",
            description=f"Bits of the streams of {series.listed} acknowledged in order per second.",
        ),
    ]


def limiter_plots(records: Records, moments: Moments = ()) -> list[Plot]:
    """Rates of limiters with series, while they limit; nothing where none was recorded, or none was made."""
    series = Envelopes.of(records, "limiters", "flow", weight="rate_bit")
    if not series.names:
        return []
    limited = replace(series, rows=series.rows.filter(pl.col("limited_ps") > 0))
    return [
        _lines(
            limited.envelope(pl.col("rate_bit") * 1e12 / pl.col("limited_ps").cast(pl.Float64)),
            limited,
            kind="rate",
            moments=moments,
            name="limiter-rate",
            title=f"Rate of the limiter of {series.what}",
            y_title="rate",
            description=f"Rate to which {series.listed} were limited over time.",
        )
    ]


def delay_plots(records: Records) -> list[Plot]:
    """Share of frames that were on their way for longer than a delay, by traffic group."""
    if records["delays"].is_empty():
        return []
    rows = (
        records["delays"]
        .join(records["flow_names"].select("flow", "traffic"), on="flow")
        .join(records["traffic_names"], on="traffic")
        .group_by("traffic", "name", "high_ps")
        .agg(pl.col("frames").cast(pl.Float64).sum())
        .sort("traffic", "high_ps")
        .with_columns(total=pl.col("frames").sum().over("traffic"))
        .with_columns(longer=1 - pl.col("frames").cum_sum().over("traffic") / pl.col("total"))
    )
    names = rows.get_column("name").unique(maintain_order=True).to_list()
    note = "Each delay is counted at the upper end of its bin, at most 1/32 too high."
    if len(names) > SERIES:
        note = f"{note} Shown: {SERIES} of {len(names)} traffic groups."
        names = names[:SERIES]
        rows = rows.filter(pl.col("name").is_in(names))
    floor = 0.5 / _greatest(rows, "total")
    factor, unit = scaled(_greatest(rows, "high_ps"), "time")
    data = rows.select(
        "name", delay=pl.col("high_ps") * factor, longer=pl.max_horizontal("longer", pl.lit(floor))
    )
    wide = _greatest(data, "delay") > 30 * float(data.select(pl.col("delay").min()).item())
    alt = altair()
    chart = (
        alt.Chart(data)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X(
                "delay:Q",
                title=f"one-way delay [{unit}]",
                scale=alt.Scale(type="log" if wide else "linear", zero=False, nice=False),
            ),
            y=alt.Y(
                "longer:Q",
                title="share of frames with more delay",
                scale=alt.Scale(type="log", domain=[floor, 1]),
                axis=alt.Axis(format="~g"),
            ),
            color=_color(names),
        )
    )
    return [
        finished(
            [chart],
            name="delay",
            title="One-way delay",
            description=f"Share of the frames of {_listed(names)} whose one-way delay exceeded a value.",
            note=note,
        )
    ]


@dataclass(frozen=True)
class Envelope:
    """What is drawn of a quantity; columns `name t_ps mean low high`."""

    drawn: pl.DataFrame
    closer: pl.DataFrame | None
    """More points of the same, to look closer at; None where all are drawn."""

    def packed(self, time_factor: float, factor: float) -> Mapping[str, object] | None:
        """The points to look closer at, for the script of pages: the ends of their intervals as differences
        of doubles, and values as 16 bits between the extremes of all."""
        if self.closer is None:
            return None
        names = self.closer.get_column("name").unique(maintain_order=True).to_list()
        parts = [self.closer.filter(name=name) for name in names]
        base = min(0.0, float(self.closer.select(pl.col("low").min()).item()))
        top = _greatest(self.closer, "high")
        span = top - base or 1.0
        ends = [np.diff(part["t_ps"].to_numpy() * time_factor, prepend=0.0) for part in parts]
        values = [
            ((part[column].fill_null(0.0).to_numpy() - base) / span * 65_535).round().astype("<u2")
            for column in ("mean", "low", "high")
            for part in parts
        ]
        content = zlib.compress(b"".join(each.tobytes() for each in (*ends, *values)), 6)
        return {
            "names": names,
            "counts": [part.height for part in parts],
            "base": base * factor,
            "step": span * factor / 65_535,
            "packed": b64encode(content).decode(),
        }


@dataclass(frozen=True)
class Envelopes:
    """Rows of a table by interval, with an id, a name and the length of each interval."""

    rows: pl.DataFrame
    kind: str
    """`ports`, `flows`, `connections` or `traffic`."""
    names: list[str]
    shown_of: int
    chosen: int = 0
    """How many are drawn whatever they carried."""

    @classmethod
    def of(
        cls, records: Records, table: str, key: str, weight: str = "bytes", first: Sequence[int] = ()
    ) -> Envelopes:
        """The `SERIES` ids with most bytes, or most of another `weight`, in the order of their ids; those
        of `first` before all others, and those without any left out."""
        rows = records[table].rename({key: "id"})
        totals = rows.group_by("id").agg(total=pl.col(weight).cast(pl.Float64).sum())
        totals = totals.filter(pl.col("total") > 0)
        totals = totals.with_columns(first=pl.col("id").is_in(list(first)))
        busiest = totals.sort(["first", "total", "id"], descending=[True, True, False]).head(SERIES)
        names = records[f"{key}_names"].rename({key: "id"}).join(busiest, on="id", how="semi").sort("id")
        rows = (
            rows.join(names, on="id", how="inner")
            .sort("id", "replicate", "t_ps")
            .with_columns(
                length_ps=(
                    pl.col("t_ps") - pl.col("t_ps").shift(1).over("id", "replicate").fill_null(0)
                ).cast(pl.Float64)
            )
        )
        kind = {"port": "ports", "flow": "flows", "connection": "connections"}.get(key, key)
        chosen = int(busiest.get_column("first").sum())
        return cls(rows, kind, names.get_column("name").to_list(), totals.height, chosen)

    @property
    def listed(self) -> str:
        return _listed(self.names)

    @property
    def what(self) -> str:
        """The only one, or what they all are."""
        return self.names[0] if len(self.names) == 1 else self.kind

    @property
    def every(self) -> str:
        """Length of most intervals, as text."""
        length = float(self.rows.select(pl.col("length_ps").median()).item())
        factor, unit = scaled(length, "time")
        return f"{length * factor:g} {unit}"

    @cached_property
    def _steps(self) -> tuple[int, int]:
        """How many consecutive intervals make one point to look closer at, and how many of those one that is
        drawn."""
        longest = int(self.rows.group_by("id", "replicate").len().select(pl.col("len").max()).item())
        fine = math.ceil(longest * len(self.names) / FINE)
        return fine, math.ceil(longest / fine / POINTS)

    def note(self, ends: str = "from the lowest to the highest", alone: str = "") -> str:
        """What was left out or put together; `ends` are those of the band, `alone` is said where nothing
        was."""
        notes = []
        if self.shown_of > len(self.names):
            busiest = len(self.names) - self.chosen
            those = f"the {busiest} busiest of {self.shown_of} that carried frames"
            if self.chosen:
                count = f"{self.chosen} at hotspots" if self.chosen > 1 else "that at the hotspot"
                those = (
                    f"{count}, and {those}" if busiest else f"{count}, of {self.shown_of} that carried frames"
                )
            notes.append(f"Shown: {those}.")
        replicates = self.rows.get_column("replicate").n_unique()
        joined = []
        fine, points = self._steps
        if fine * points > 1:
            closer = "each" if fine == 1 else f"{fine}"
            notes.append(
                f"Each point stands for {fine * points} intervals of {self.every}; on screen, a closer look "
                f"shows {closer} of them."
            )
            joined.append("intervals")
        if replicates > 1:
            notes.append(f"{replicates} replicates.")
            joined.append("replicates")
        if joined:
            notes.append(f"Line: mean; band: {ends} of these {' and '.join(joined)}.")
        elif alone:
            notes.append(alone)
        return " ".join(notes)

    def envelope(self, each: pl.Expr, *, high: pl.Expr | None = None) -> Envelope:
        """`each` is the value of an interval."""
        fine, points = self._steps
        closer = (
            self.rows.with_columns(bin=pl.int_range(pl.len()).over("id", "replicate") // fine, value=each)
            .group_by("id", "name", "bin")
            .agg(
                t_ps=pl.col("t_ps").max(),
                length_ps=pl.col("length_ps").sum(),
                mean=(pl.col("value") * pl.col("length_ps")).sum() / pl.col("length_ps").sum(),
                low=pl.col("value").min(),
                high=pl.col("value").max() if high is None else high.max(),
            )
            .sort("id", "bin")
        )
        drawn = closer.group_by("id", "name", pl.col("bin") // points, maintain_order=True).agg(
            pl.col("t_ps").max(),
            mean=(pl.col("mean") * pl.col("length_ps")).sum() / pl.col("length_ps").sum(),
            low=pl.col("low").min(),
            high=pl.col("high").max(),
        )
        starts = drawn.filter(pl.col("bin") == 0).with_columns(
            bin=pl.lit(-1, drawn.schema["bin"]), t_ps=pl.lit(0, drawn.schema["t_ps"])
        )
        columns = ["name", "t_ps", "mean", "low", "high"]
        shown = pl.concat([starts, drawn]).sort("id", "bin").select(columns)
        return Envelope(shown, closer.select(columns) if points > 1 else None)

    def ceiling(self) -> float | None:
        """The line rate [bit/s] that all these ports share; None when they differ."""
        rates = self.rows.get_column("rate_bps").unique().to_list()
        return float(rates[0]) if len(rates) == 1 else None


def _lines(
    envelope: Envelope,
    series: Envelopes,
    *,
    kind: str | None,
    name: str,
    title: str,
    y_title: str,
    description: str,
    ceiling: float | None = None,
    note: str = "",
    moments: Moments = (),
    least: bool = False,
) -> Plot:
    """Mean as a stepped line, lowest to highest as a band. A ceiling is drawn when values come near it, and
    moments as dashed lines with their names. With `least`, values may be below 0, which has a line."""
    alt = altair()
    table = envelope.drawn
    time_factor, time_unit = scaled(_greatest(table, "t_ps"), "time")
    largest = _greatest(table, "high")
    near = ceiling if ceiling is not None and largest > 0.5 * ceiling else None
    factor, unit = scaled(max(largest, near or 0.0), kind) if kind else (1.0, "frames")
    columns = [pl.col(column) * factor for column in ("mean", "low", "high")]
    data = table.select("name", *columns, t=pl.col("t_ps") * time_factor)
    crowded = len(series.names) > 2 and bool((data.get_column("low") < data.get_column("high")).any())
    y_title = unit if crowded else f"{y_title} [{unit}]" if kind else y_title
    lowest = min(0.0, 1.05 * float(table.select(pl.col("low").min()).item())) * factor if least else 0
    domain = [lowest, 1.05 * max(largest, near or 0.0) * factor or 1.0]
    rows = [[name] for name in series.names] if crowded else [series.names]
    end_ps = _greatest(table, "t_ps")
    marked = [(at_ps * time_factor, at_ps / end_ps, text) for at_ps, text in moments if at_ps <= end_ps]
    charts = []
    for place, shown in enumerate(rows):
        time = alt.X(
            "t:Q",
            title=f"time [{time_unit}]" if place == len(rows) - 1 else None,
            scale=alt.Scale(nice=False),
            axis=alt.Axis(labels=place == len(rows) - 1),
        )
        base = alt.Chart(data.filter(pl.col("name").is_in(shown))).encode(
            x=time, color=_color(series.names, legend=not crowded)
        )
        scale = alt.Scale(domain=domain, nice=False)
        axis = alt.Axis(tickCount=3) if crowded else alt.Axis()
        layers: list[Any] = [] if near is None else rule(near * factor, f"line rate {near * factor:g} {unit}")
        layers += rule(0.0, "") if least else []
        layers += [
            base.mark_area(opacity=0.22, interpolate="step-before").encode(
                y=alt.Y("low:Q", title=y_title, scale=scale, axis=axis), y2="high:Q"
            ),
            base.mark_line(interpolate="step-before").encode(y="mean:Q"),
        ]
        chart = alt.layer(*layers, *_moment_marks(marked, time, named=place == 0))
        charts.append(chart.properties(title=shown[0]) if crowded else chart)
    reported = [note or series.note(), "Dashed: events of the scenario." if marked else ""]
    note = " ".join(each for each in reported if each)
    height = _FLAT_HEIGHT if len(charts) == 1 and _is_flat(table) else _HEIGHT
    plot = finished(charts, name=name, title=title, description=description, note=note, height=height)
    return replace(plot, closer=envelope.packed(time_factor, factor))


_HEIGHT, _FLAT_HEIGHT = 230, 90
_FLAT = 0.1


def _is_flat(table: pl.DataFrame) -> bool:
    """Whether hardly anything changes from the first intervals on: a low plot says as much."""
    lines = table.group_by("name").agg(least=pl.col("low").min(), most=pl.col("high").max())
    flat = (pl.col("most") - pl.col("least") <= _FLAT * pl.col("most")) | (pl.col("most") == 0)
    return bool(lines.select(flat.all()).item())


_NAMED_MOMENTS = 12
"""Most moments whose names are written; of more, only lines are drawn."""


def _moment_marks(marked: Sequence[tuple[float, float, str]], time: Any, *, named: bool) -> list[Any]:
    """A dashed line at each moment, which has a time, its share of the axis, and a name; names stand at
    three heights, so that neighbours do not cover each other."""
    alt = altair()
    layers = []
    for number, (at, share, text) in enumerate(marked):
        chart = alt.Chart(pl.DataFrame({"t": [at], "text": [text]})).encode(x=time)
        layers.append(chart.mark_rule(strokeDash=[4, 3], color=LIGHT["muted"]))
        if named and len(marked) <= _NAMED_MOMENTS:
            end = {"align": "right", "dx": -4} if share > 0.75 else {"align": "left", "dx": 4}
            place = chart.mark_text(**end, baseline="top", color=LIGHT["muted"])
            layers.append(place.encode(y=alt.value(3 + 13 * (number % 3)), text="text:N"))
    return layers


def _color(names: Sequence[str], *, legend: bool = True) -> Any:
    alt = altair()
    shown = alt.Legend(symbolType="stroke", symbolOpacity=1) if legend and len(names) > 1 else None
    return alt.Color("name:N", scale=alt.Scale(**series_colors(names)), sort=list(names), legend=shown)


def _greatest(table: pl.DataFrame, column: str) -> float:
    return float(table.select(pl.col(column).max()).item())


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
