"""Series as they are drawn: lines of means over time in bands from the least to the most."""

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
from weirlab.plots.style import LIGHT, Plot, alt, banded, finished, legend_of, rule, scaled, series_color
from weirlab.records import Records

POINTS = 320
"""Most points of one line: about one for each 2.7 pixels."""
FINE = 90_000
"""Most points of all lines of a plot that a reader of a page can look closer at."""
SERIES = 6
"""Most lines in one plot."""
LINE_RATE = (
    (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64)
    * 8e12
    / pl.col("length_ps")
)
"""What a port sent in an interval, framing included [bit/s]."""
MEAN_QUEUE = pl.col("queue_byte_ps").cast(pl.Float64) / pl.col("length_ps")
"""What waited there [B]."""


Moments = Sequence[tuple[int, str]]
"""Times [ps] at which something happened to the network, and what."""


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
        top = greatest(self.closer, "high")
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
    moments: Moments = ()

    @classmethod
    def of(
        cls,
        records: Records,
        table: str,
        key: str,
        moments: Moments = (),
        weight: str = "bytes",
        first: Sequence[int] = (),
    ) -> Envelopes:
        """The `SERIES` ids with most bytes, or most of another `weight`, in the order of their ids; those
        of `first` before all others, and those without any left out."""
        kind = {"port": "ports", "flow": "flows", "connection": "connections"}.get(key, key)
        names = records[f"{key}_names"].rename({key: "id"})
        return cls.made(records[table].rename({key: "id"}), names, weight, kind, moments, first)

    @classmethod
    def made(
        cls,
        rows: pl.DataFrame,
        names: pl.DataFrame,
        weight: str,
        kind: str,
        moments: Moments,
        first: Sequence[int] = (),
    ) -> Envelopes:
        """The same of any rows with a column `id`, which `names` has, too."""
        totals = rows.group_by("id").agg(total=pl.col(weight).cast(pl.Float64).sum())
        totals = totals.filter(pl.col("total") > 0)
        totals = totals.with_columns(first=pl.col("id").is_in(list(first)))
        busiest = totals.sort(["first", "total", "id"], descending=[True, True, False]).head(SERIES)
        names = names.join(busiest, on="id", how="semi").sort("id")
        rows = (
            rows.join(names, on="id", how="inner")
            .sort("id", "replicate", "t_ps")
            .with_columns(
                length_ps=(
                    pl.col("t_ps") - pl.col("t_ps").shift(1).over("id", "replicate").fill_null(0)
                ).cast(pl.Float64)
            )
        )
        chosen = int(busiest.get_column("first").sum())
        return cls(rows, kind, names.get_column("name").to_list(), totals.height, chosen, moments)

    @property
    def listed(self) -> str:
        return listed(self.names)

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

    def note(
        self,
        ends: str = "from the lowest to the highest",
        alone: str = "",
        were: str = "that carried frames",
        most: str = "busiest",
    ) -> str:
        """What was left out or put together; `ends` are those of the band, `alone` is said where nothing
        was, `were` of what some are left out, and `most` of those that are not."""
        notes = []
        if self.shown_of > len(self.names):
            busiest = len(self.names) - self.chosen
            those = f"the {busiest} {most} of {self.shown_of} {were}"
            if self.chosen:
                count = f"{self.chosen} at hotspots" if self.chosen > 1 else "that at the hotspot"
                those = f"{count}, and {those}" if busiest else f"{count}, of {self.shown_of} {were}"
            notes.append(f"Shown: {those}.")
        replicates = self.rows.get_column("replicate").n_unique()
        joined = []
        fine, points = self._steps
        if fine * points > 1:
            closer = "each" if fine == 1 else f"{fine}"
            notes.append(
                f"Each point represents {fine * points} intervals of {self.every}; on screen, a closer look "
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

    def lines(
        self,
        each: pl.Expr,
        *,
        high: pl.Expr | None = None,
        kind: str | None,
        name: str,
        title: str,
        y_title: str,
        description: str,
        ceiling: float | None = None,
        ceiling_name: str = "line rate",
        note: str = "",
        least: bool = False,
    ) -> Plot:
        """A plot of `each` and `high` (see `envelope`): mean as a stepped line, lowest to highest as a band.
        A ceiling is drawn when values come near it, and moments as dashed lines with their names. With
        `least`, values may be below 0, which has a line."""
        envelope = self.envelope(each, high=high)
        table = envelope.drawn
        time_factor, time_unit = scaled(greatest(table, "t_ps"), "time")
        largest = greatest(table, "high")
        near = ceiling if ceiling is not None and largest > 0.5 * ceiling else None
        factor, unit = scaled(max(largest, near or 0.0), kind) if kind else (1.0, "frames")
        columns = [pl.col(column) * factor for column in ("mean", "low", "high")]
        data = table.select("name", *columns, t=pl.col("t_ps") * time_factor)
        crowded = len(self.names) > 2 and bool((data.get_column("low") < data.get_column("high")).any())
        y_title = unit if crowded else f"{y_title} [{unit}]" if kind else y_title
        lowest = min(0.0, 1.05 * float(table.select(pl.col("low").min()).item())) * factor if least else 0
        domain = [lowest, 1.05 * max(largest, near or 0.0) * factor or 1.0]
        rows = [[name] for name in self.names] if crowded else [self.names]
        end_ps = greatest(table, "t_ps")
        marked = [
            (at_ps * time_factor, at_ps / end_ps, text) for at_ps, text in self.moments if at_ps <= end_ps
        ]
        legend = None if crowded else legend_of(self.names, symbolType="stroke")
        color = series_color("name", self.names, legend=legend)
        charts = []
        for place, shown in enumerate(rows):
            time = time_axis(time_unit, labelled=place == len(rows) - 1)
            base = alt.Chart(data.filter(pl.col("name").is_in(shown))).encode(x=time, color=color)
            scale = alt.Scale(domain=domain, nice=False)
            axis = alt.Axis(tickCount=3) if crowded else alt.Axis()
            layers: list[Any] = (
                [] if near is None else rule(near * factor, f"{ceiling_name} {near * factor:g} {unit}")
            )
            layers += rule(0.0, "") if least else []
            layers += banded(base, alt.Y("low:Q", title=y_title, scale=scale, axis=axis))
            chart = alt.layer(*layers, *_moment_marks(marked, time, named=place == 0))
            charts.append(chart.properties(title=shown[0]) if crowded else chart)
        reported = [note or self.note(), "Dashed: events of the scenario." if marked else ""]
        note = " ".join(each for each in reported if each)
        height = _FLAT_HEIGHT if len(charts) == 1 and _is_flat(table) else _HEIGHT
        plot = finished(charts, name=name, title=title, description=description, note=note, height=height)
        return replace(plot, closer=envelope.packed(time_factor, factor))


def time_axis(unit: str, *, labelled: bool) -> Any:
    """The horizontal axis of one of several pictures below each other, of which the last is `labelled`."""
    title = f"time [{unit}]" if labelled else None
    return alt.X("t:Q", title=title, scale=alt.Scale(nice=False), axis=alt.Axis(labels=labelled))


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
    layers = []
    for number, (at, share, text) in enumerate(marked):
        chart = alt.Chart(pl.DataFrame({"t": [at], "text": [text]})).encode(x=time)
        layers.append(chart.mark_rule(strokeDash=[4, 3], color=LIGHT["muted"]))
        if named and len(marked) <= _NAMED_MOMENTS:
            end = {"align": "right", "dx": -4} if share > 0.75 else {"align": "left", "dx": 4}
            place = chart.mark_text(**end, baseline="top", color=LIGHT["muted"])
            layers.append(place.encode(y=alt.value(3 + 13 * (number % 3)), text="text:N"))
    return layers


def greatest(table: pl.DataFrame, column: str) -> float:
    return float(table.select(pl.col(column).max()).item())


def listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
