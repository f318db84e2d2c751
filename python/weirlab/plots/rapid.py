"""Plots of a live transfer by Rapid: goodput and rate, estimates, how streams left, gaps, round trips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, finished, rule, scaled, series_color

_MOST = 1500
"""Points that a plot shows; of more, every second, third, ..."""
_FEW = 300
"""Points that are drawn large."""
_INTACT = 0.8
"""A stream is intact when this share of its gaps fits."""


def rapid_plots(
    tables: Mapping[str, pl.DataFrame], link_bps: float, until_s: float, *, sending_s: float
) -> list[Plot]:
    """The plots for which the tables of a transfer have something to show.

    Args: until_s: Its length, with what was acknowledged after the end of the sending. sending_s: How long
    new data were sent.
    """
    losses = tables["losses"].with_columns(pl.col("ended_s").fill_null(until_s))
    plots = []
    sending = tables["rates"].filter(pl.col("end_s") <= sending_s + 1e-9)
    if not sending.is_empty():
        off = losses.filter(pl.col("began_s") < sending_s).with_columns(
            pl.col("ended_s").clip(0.0, sending_s)
        )
        plots.append(_rates(sending, off, link_bps))
    estimated = tables["streams"].filter(pl.col("available_bps").is_not_null())
    if not estimated.is_empty():
        plots.append(_estimates(estimated, losses, link_bps))
    whole = tables["streams"].filter(pl.col("packets") > 1)
    if not whole.is_empty():
        plots.append(_fitting(whole))
    if "packets" in tables and not tables["packets"].is_empty():
        plots.append(_gaps(tables["packets"]))
    if not tables["rates"].filter(pl.col("smoothed_rtt_s").is_not_null()).is_empty():
        plots.append(_round_trips(tables["rates"]))
    return plots


def _x(title: str = "time [s]") -> Any:
    return alt.X("t_s:Q", title=title, scale=alt.Scale(nice=False))


def _off(losses: pl.DataFrame) -> list[Any]:
    """Times without streams, as areas; nothing where there were none."""
    if losses.is_empty():
        return []
    areas = alt.Chart(losses.select("began_s", "ended_s")).mark_rect(color=LIGHT["bad"], opacity=0.18)
    return [areas.encode(x="began_s:Q", x2="ended_s:Q")]


_OFF_NOTE = "Red: times in which losses were repaired and no streams were sent."


def _rates(rates: pl.DataFrame, losses: pl.DataFrame, link_bps: float) -> Plot:
    width = pl.col("end_s") - pl.col("end_s").shift(1, fill_value=0.0)
    drawn = rates.select("end_s", "rate_bps", goodput_bps=pl.col("acked_bytes") * 8 / width)
    # A step goes back to the row before: the first interval needs one at its start.
    drawn = pl.concat([drawn.head(1).with_columns(end_s=pl.lit(0.0)), drawn])
    factor, unit = scaled(link_bps, "rate")
    names = {"goodput_bps": "goodput", "rate_bps": "requested mean rate"}
    rows = drawn.unpivot(list(names), index="end_s").select(
        t_s="end_s", rate=pl.col("value") * factor, what=pl.col("variable").replace(names)
    )
    color = series_color("what", list(names.values()), title=None)
    line = alt.Chart(rows).mark_line(interpolate="step-before")
    line = line.encode(x=_x(), y=alt.Y("rate:Q", title=f"rate [{unit}]"), color=color)
    return finished(
        [alt.layer(*_off(losses), line, *rule(link_bps * factor, "link"))],
        name="rate",
        title="Goodput, and the mean rate of the streams",
        description="Bytes acknowledged in each interval as a rate, and the requested rate, "
        "until the end of the sending.",
        note=_OFF_NOTE if not losses.is_empty() else "",
    )


def _estimates(streams: pl.DataFrame, losses: pl.DataFrame, link_bps: float) -> Plot:
    drawn = streams.gather_every(max(1, streams.height // _MOST))
    factor, unit = scaled(link_bps, "rate")
    order = ["excursion", "no excursion"]
    rows = drawn.select(
        t_s="closed_s",
        rate=pl.col("available_bps") * factor,
        seen=pl.when(pl.col("excursion_gaps").is_null()).then(pl.lit(order[1])).otherwise(pl.lit(order[0])),
    )
    points = alt.Chart(rows).mark_point(filled=True, size=_size(rows), opacity=0.7).encode(x=_x())
    y, color = alt.Y("rate:Q", title=f"available bandwidth [{unit}]"), series_color("seen", order, title=None)
    points = points.encode(y=y, color=color)
    notes = [_OFF_NOTE] if not losses.is_empty() else []
    if drawn.height < streams.height:
        notes.append(f"{drawn.height} of {streams.height} estimates.")
    return finished(
        [alt.layer(*_off(losses), points, *rule(link_bps * factor, "link"))],
        name="estimates",
        title="Estimates of the available bandwidth",
        description="The estimate of each stream over time, by whether an excursion was seen in it.",
        note=" ".join(notes),
    )


def _size(rows: pl.DataFrame) -> int:
    """Of points: few are seen on their own, many as a cloud."""
    return 36 if rows.height <= _FEW else 12


def _fitting(streams: pl.DataFrame) -> Plot:
    drawn = streams.gather_every(max(1, streams.height // _MOST))
    rows = drawn.select(t_s="start_s", share=100 * pl.col("fitting_gaps") / (pl.col("packets") - 1))
    points = alt.Chart(rows).mark_point(filled=True, size=_size(rows), opacity=0.6, color=LIGHT["blue"])
    y = alt.Y("share:Q", title="gaps that fit [%]", scale=alt.Scale(domain=[0, 100]))
    points = points.encode(x=_x("start of the stream [s]"), y=y)
    return finished(
        [alt.layer(points, *rule(100 * _INTACT, "intact above"))],
        name="streams",
        title="How streams left",
        description="Of each stream, the share of the gaps that were achieved within a quarter.",
        note="A gap fits when it was within a quarter of the requested one.",
    )


def _gaps(packets: pl.DataFrame) -> Plot:
    """Gaps asked for and achieved, of packets that follow each other in a stream."""
    ordered = packets.sort("stream", "place")
    follows = (pl.col("stream") == pl.col("stream").shift(1)) & (
        pl.col("place") == pl.col("place").shift(1) + 1
    )
    gaps = ordered.select(
        follows=follows,
        due_us=1e6 * (pl.col("due_s") - pl.col("due_s").shift(1)),
        left_us=1e6 * (pl.col("left_s") - pl.col("left_s").shift(1)),
    ).filter("follows", pl.col("due_us") > 0, pl.col("left_us") > 0)
    drawn = gaps.gather_every(max(1, gaps.height // (2 * _MOST)))
    ends = [float(drawn.select(pl.min_horizontal("due_us", "left_us").min()).item() or 1.0)]
    ends.append(float(drawn.select(pl.max_horizontal("due_us", "left_us").max()).item() or 1.0))
    log = alt.Scale(type="log", nice=False)
    same = alt.Chart(pl.DataFrame({"due_us": ends, "left_us": ends})).mark_line(
        color=LIGHT["muted"], strokeDash=[4, 3], strokeWidth=1
    )
    points = alt.Chart(drawn.drop("follows")).mark_point(
        filled=True, size=_size(drawn), opacity=0.5, color=LIGHT["blue"]
    )
    x = alt.X("due_us:Q", title="requested gap [µs]", scale=log)
    y = alt.Y("left_us:Q", title="gap achieved [µs]", scale=log)
    return finished(
        [alt.layer(points.encode(x=x, y=y), same.encode(x=x, y=y))],
        name="gaps",
        title="Achieved against requested gaps",
        description="Each gap between two packets of a stream: achieved against requested.",
        height=320,
        note=f"{drawn.height} of {gaps.height} gaps." if drawn.height < gaps.height else "",
    )


def _round_trips(rates: pl.DataFrame) -> Plot:
    known = rates.filter(pl.col("smoothed_rtt_s").is_not_null())
    factor, unit = scaled(float(known.select(pl.col("smoothed_rtt_s").max()).item()) * 1e12, "time")
    rows = known.select(t_s="end_s", rtt=pl.col("smoothed_rtt_s") * 1e12 * factor)
    y = alt.Y("rtt:Q", title=f"smoothed round trip [{unit}]")
    line = alt.Chart(rows).mark_line(color=LIGHT["teal"]).encode(x=_x(), y=y)
    return finished(
        [line],
        name="round-trips",
        title="Round-trip time",
        description="The smoothed round-trip time of the sender over time.",
    )
