"""What the report of the Rapid reproduction shows besides verdicts: throughput, estimates with the times
without streams, ramps, gaps, and what each flaw does."""

from __future__ import annotations

import polars as pl

from weirlab.plots.style import LIGHT, Plot, altair, finished, rule, series_colors
from weirlab.report.page import Column, Section, Table, Text, figure, number
from weirlab.reproduce import Findings
from weirlab.reproduce.published import read
from weirlab.reproduce.rapid.cases import ABLATION, BETTER, available_bps

__all__ = ["sections"]

_ON_S = (2.0, 5.0)
_LEFT_MBPS = available_bps(300e6) / 1e6
_POINTS = 1500
"""Estimates that a plot shows; of more, every second, third, ..."""


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What comes before the verdicts, what comes after the claims, and all plots."""
    tables = findings.tables
    plots = [_throughput(tables["bins"])]
    plots += [
        _estimates(tables["estimates"], tables["states"], case)
        for case in ("flawed", "timely", "better-constant-300")
    ]
    plots += [_zoom(tables["estimates"], tables["states"]), _gaps(tables["packets"])]
    plots += [_ramps(tables["packets"]), _distribution(tables["packets"])]
    return (
        [Section("Throughput and estimates", [figure(plot) for plot in plots[:5]])],
        [
            Section("Gaps", [figure(plot) for plot in plots[5:]]),
            Section("One flaw removed at a time", [_ablation(tables["measured"])]),
            Section("A better Rapid", [Text(_BETTER), _better(tables["measured"])]),
        ],
        plots,
    )


_BETTER = (
    "Goodput is that from 0.5 s after the begin of the cross traffic to its end. The queue is that of the "
    "router, which holds 300 frames; loss is that of the cross traffic over the whole run."
)


def _throughput(bins: pl.DataFrame) -> Plot:
    alt = altair()
    intervals = read("rapid-udp-cross-traffic")["throughput"]["intervals"]
    published = pl.DataFrame({"t_s": [low for low, _, _ in intervals], "mbps": [m for _, _, m in intervals]})
    names = {
        "flawed-later": "flawed, 2.3-5.6 s",
        "flawed": "flawed, 2-5 s",
        "timely": "timely",
        "ideal": "ideal",
    }
    mean = (
        bins.filter(pl.col("case").is_in(list(names)))
        .group_by("case", "bin", maintain_order=True)
        .agg(pl.col("mbps").mean())
        .select(whose=pl.col("case").replace(names), t_s=pl.col("bin") * 0.5, mbps="mbps")
    )
    rows = pl.concat(
        [published.select(pl.lit("published").alias("whose"), "t_s", pl.col("mbps").cast(pl.Float64)), mean]
    ).filter(pl.col("t_s") < 7.0)
    order = ["published", *names.values()]
    chart = (
        alt.Chart(rows)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("t_s:Q", title="time [s]"),
            y=alt.Y("mbps:Q", title="goodput [Mbit/s]"),
            color=alt.Color("whose:N", scale=alt.Scale(**series_colors(order)), sort=order, title=None),
        )
    )
    return finished(
        [chart],
        name="throughput",
        title="Goodput by 0.5 s: published, and means of our runs",
        description="Goodput of the probing flow over time, published and of four variants.",
        note="Cross traffic of 300 Mbit/s; when it was on is not published.",
    )


def _off_areas(states: pl.DataFrame, case: str) -> pl.DataFrame:
    """Times without streams, from an OFF to the next ON [s]."""
    areas, since = [], None
    for t_ps, state in states.filter(pl.col("case") == case).select("t_ps", "state").iter_rows():
        if state != 0 and since is None:
            since = t_ps / 1e12
        elif state == 0 and since is not None:
            areas.append((since, t_ps / 1e12))
            since = None
    return pl.DataFrame(areas, schema={"from_s": pl.Float64, "to_s": pl.Float64}, orient="row")


def _estimate_chart(
    estimates: pl.DataFrame, states: pl.DataFrame, case: str, low_s: float, high_s: float
) -> list[object]:
    alt = altair()
    inside = pl.col("t_s").is_between(low_s, high_s)
    rows = estimates.filter((pl.col("case") == case) & inside)
    rows = rows.gather_every(max(1, rows.height // _POINTS))
    x = alt.X("t_s:Q", title="time [s]", scale=alt.Scale(domain=[low_s, high_s], nice=False))
    y = alt.Y("mbps:Q", title="available bandwidth [Mbit/s]", scale=alt.Scale(domain=[0, 1000]))
    truth = pl.DataFrame(
        {"t_s": [low_s, *_ON_S, high_s], "true": [1000.0, _LEFT_MBPS, 1000.0, 1000.0]}
        if low_s < _ON_S[0]
        else {"t_s": [low_s, high_s], "true": [_LEFT_MBPS, _LEFT_MBPS]}
    )
    off = _off_areas(states, case).filter((pl.col("to_s") > low_s) & (pl.col("from_s") < high_s))
    off = off.with_columns(pl.col("from_s").clip(low_s, high_s), pl.col("to_s").clip(low_s, high_s))
    layers = [
        alt.Chart(rows).mark_point(filled=True, size=5, opacity=0.35, color=LIGHT["blue"]).encode(x=x, y=y),
        alt.Chart(rows)
        .mark_line(strokeWidth=1.4, color=LIGHT["orange"])
        .encode(x=x, y=alt.Y("smooth_mbps:Q")),
        alt.Chart(truth)
        .mark_line(interpolate="step-after", strokeDash=[5, 3], color=LIGHT["ink"])
        .encode(x=x, y=alt.Y("true:Q")),
    ]
    if off.height:
        layers.insert(
            0,
            alt.Chart(off)
            .mark_rect(opacity=0.18, color=LIGHT["orange"])
            .encode(x=alt.X("from_s:Q"), x2="to_s:Q"),
        )
    return [alt.layer(*layers)]


_ESTIMATE_NOTE = (
    "Points: estimates of streams; line: their exponential mean over 0.1 s; dashed: what is left; shaded: no "
    "streams are sent (PROBE_STREAM_OFF)."
)


def _estimates(estimates: pl.DataFrame, states: pl.DataFrame, case: str) -> Plot:
    return finished(
        _estimate_chart(estimates, states, case, 0.0, 7.0),
        name=f"estimates-{case}",
        title=f"Estimates of the available bandwidth, one run: {case}",
        description=f"Estimates of streams over 7 s beside the true available bandwidth, variant {case}.",
        note=_ESTIMATE_NOTE,
    )


def _zoom(estimates: pl.DataFrame, states: pl.DataFrame) -> Plot:
    return finished(
        _estimate_chart(estimates, states, "flawed", 3.0, 3.5),
        name="estimates-zoom",
        title="Half a second of the flawed variant",
        description="Estimates of streams between 3 s and 3.5 s.",
        note=_ESTIMATE_NOTE,
    )


def _gap_rows(packets: pl.DataFrame) -> pl.DataFrame:
    """Send gaps [us] within streams."""
    return (
        packets.sort("case", "stream", "packet")
        .with_columns(gap_us=(pl.col("sent_ps").cast(pl.Int64).diff() / 1e6).over("case", "stream"))
        .drop_nulls("gap_us")
    )


def _gaps(packets: pl.DataFrame) -> Plot:
    alt = altair()
    rows = _gap_rows(packets).filter(pl.col("case").is_in(["flawed", "ideal"]))
    rows = rows.with_columns(order=pl.int_range(pl.len()).over("case")).filter(pl.col("order") < 640)
    chart = (
        alt.Chart(rows)
        .mark_point(filled=True, size=8)
        .encode(
            x=alt.X("order:Q", title="gap in the order of sending, from 3 s on"),
            y=alt.Y("gap_us:Q", title="send gap [µs]", scale=alt.Scale(type="log")),
            color=alt.Color("case:N", scale=alt.Scale(**series_colors(["ideal", "flawed"])), title=None),
        )
    )
    return finished(
        [chart],
        name="gaps",
        title="Send gaps in their order",
        description="Send gaps of 640 packets of two variants.",
        note="Exponential ramps of the ideal variant; stalls and packets back to back of the flawed one.",
    )


def _ramps(packets: pl.DataFrame) -> Plot:
    alt = altair()
    rows = _gap_rows(packets).filter(pl.col("case").is_in(["flawed", "ideal", "timely"]))
    first = rows.group_by("case").agg(pl.col("stream").min().alias("first"))
    rows = rows.join(first, on="case").filter(
        pl.col("stream").is_between(pl.col("first") + 1, pl.col("first") + 3)
    )
    names = ["ideal", "timely", "flawed"]
    chart = (
        alt.Chart(rows)
        .mark_line(strokeWidth=1.2)
        .encode(
            x=alt.X("packet:Q", title="packet of the stream"),
            y=alt.Y("gap_us:Q", title="send gap [µs]", scale=alt.Scale(type="log")),
            color=alt.Color("case:N", scale=alt.Scale(**series_colors(names)), sort=names, title=None),
            detail="stream:N",
        )
    )
    return finished(
        [chart],
        name="ramps",
        title="Ramps of single streams",
        description="Send gaps of three streams of each of three variants.",
        note="The first whole streams after 3 s.",
    )


def _distribution(packets: pl.DataFrame) -> Plot:
    alt = altair()
    rows = (
        _gap_rows(packets)
        .sort("case", "gap_us")
        .with_columns(share=(pl.int_range(pl.len()) + 1).over("case") / pl.len().over("case"))
        .filter(pl.int_range(pl.len()).over("case") % 20 == 0)
    )
    names = rows.get_column("case").unique(maintain_order=True).to_list()
    chart = (
        alt.Chart(rows)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("gap_us:Q", title="send gap [µs]", scale=alt.Scale(type="log")),
            y=alt.Y("share:Q", title="share of the gaps up to it"),
            color=alt.Color("case:N", scale=alt.Scale(**series_colors(names)), sort=names, title=None),
        )
    )
    return finished(
        [alt.layer(*rule(0.5, "half"), chart)],
        name="gap-distribution",
        title="Distribution of send gaps, 3.0-3.2 s",
        description="Cumulative distribution of send gaps of four variants.",
        note="A packet takes 12.3 µs on the link.",
    )


def _mean(runs: pl.DataFrame, case: str, column: str) -> float | None:
    values = runs.filter(pl.col("case") == case).get_column(column).drop_nulls()
    return float(values.cast(pl.Float64).to_numpy().mean()) if values.len() else None


def _spread(runs: pl.DataFrame, case: str, column: str) -> str:
    values = runs.filter(pl.col("case") == case).get_column(column).cast(pl.Float64).to_numpy()
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return f"{number(float(values.mean()), 3)} ± {number(spread, 2)}"


def _ablation(runs: pl.DataFrame) -> Table:
    columns = ("retransmits", "timeouts", "recoveries", "off_s", "ab_p50_mbps")
    rows = [
        [title, _spread(runs, name, "settled_mbps"), *(number(_mean(runs, name, c), 3) for c in columns)]
        for name, title in [("flawed", "none removed"), *((case.name, case.title) for case in ABLATION)]
    ]
    heads = ("retransmissions", "timeouts", "recoveries", "time off [s]", "median estimate [Mbit/s]")
    return Table(
        "The flawed variant with one flaw removed, beside 300 Mbit/s of UDP, mean ± standard deviation",
        [Column("removed", numeric=False), Column("goodput [Mbit/s]"), *map(Column, heads)],
        rows,
    )


def _better(runs: pl.DataFrame) -> Table:
    columns = ("loss_events", "worst_estimate", "queue_frames", "cross_loss")
    rows = [
        [
            case.name,
            _spread(runs, case.name, "settled_mbps"),
            *(number(_mean(runs, case.name, c), 3) for c in columns),
        ]
        for case in BETTER
    ]
    heads = ("loss events", "estimate off by at most", "mean queue [frames]", "loss of cross traffic")
    return Table(
        "The better Rapid, Reno and CUBIC, mean ± standard deviation",
        [Column("variant", numeric=False), Column("goodput [Mbit/s]"), *map(Column, heads)],
        rows,
    )
