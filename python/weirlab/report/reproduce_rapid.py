"""What the report of the Rapid reproduction shows besides verdicts: throughput, estimates with the times
without streams, ramps, gaps, and what each flaw does."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, finished, series_color
from weirlab.report.page import Cell, Column, Section, Table, Text, figure, number
from weirlab.reproductions import Findings
from weirlab.reproductions.published import RapidUdp, read
from weirlab.reproductions.rapid.cases import ABLATION, BETTER, OVERRUNS, available_bps, goodput_bps

_ON_S = (2.0, 5.0)
_LEFT_MBPS = available_bps(300e6) / 1e6
_END_S = 7.0
"""Of the published table of throughput."""
_PAUSE_S = 0.03
"""After so long without an estimate the smoothed line is interrupted."""
_POINTS = 1500
"""Estimates that a plot shows; of more, every second, third, ..."""


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What comes before the verdicts, what comes after the claims, and all plots."""
    tables = findings.tables
    plots = [_throughput(tables["bins"]), _throughput_beside_700(tables["bins"])]
    plots += [
        _estimates(tables["estimates"], tables["states"], case)
        for case in ("flawed", "timely", "better-constant-300")
    ]
    plots += [_zoom(tables["estimates"], tables["states"]), _gaps(tables["packets"])]
    plots += [_ramps(tables["packets"]), _distribution(tables["gaps"])]
    return (
        [Section("Throughput and estimates", [figure(plot) for plot in plots[:6]])],
        [
            Section("Gaps", [figure(plot) for plot in plots[6:]]),
            Section("Losses that the router does not count", [Text(_OVERRUN), _overruns(tables["overruns"])]),
            Section("One flaw removed at a time", [_ablation(tables["measured"])]),
            Section("A better Rapid", [Text(_BETTER), _better(tables["measured"])]),
        ],
        plots,
    )


_BETTER = (
    "Goodput is that from 0.5 s after the start of the cross traffic to its end. The queue is that of the "
    "router, which holds 300 frames; loss is that of the cross traffic over the whole run."
)


_OVERRUN = (
    "The router counted 171 drops, and 3174 segments were sent again. Here the inputs of the router lose "
    "runs of frames, 360 on average, after its queue was full: each overflow starts one, or one in ten. "
    "Nothing but the counters suggests it. The length, the inputs and the share were chosen among some 40 "
    "settings by these numbers: what is near (*: where one more run of ours could lie, 99 %) says that such "
    "a cause would do. No row of it is judged."
)


def _overruns(rows: pl.DataFrame) -> Table:
    """Published numbers compared with the measured variant as it is, and with inputs that overrun."""
    cases = rows.get_column("case").unique(maintain_order=True).to_list()
    titles = {case.name: f"runs: {case.title}" for case in OVERRUNS}
    table = []
    for name in rows.get_column("number").unique(maintain_order=True):
        mine = rows.filter(pl.col("number") == name)
        unit = mine.get_column("unit").item(0)
        shown = [f"{name} [{unit}]" if unit else name, number(mine.get_column("published").item(0), 3)]
        for case in cases:
            row = mine.row(by_predicate=pl.col("case") == case, named=True)
            reported = f"{number(row['ours'], 3)} ± {number(row['deviation'], 2)}"
            shown.append(f"{reported} *" if row["near"] else reported)
        table.append(shown)
    heads = ("published", *(titles.get(case, "none") for case in cases))
    return Table(
        "Runs of frames that are lost before the router's queue, mean ± standard deviation",
        [Column("number", numeric=False), *map(Column, heads)],
        table,
    )


def _throughput(bins: pl.DataFrame) -> Plot:
    intervals = read("rapid-udp-cross-traffic", RapidUdp)["throughput"]["intervals"]
    published = pl.DataFrame({"t_s": [low for low, _, _ in intervals], "mbps": [m for _, _, m in intervals]})
    names = {
        "flawed-later": "flawed, 2.3-5.6 s",
        "flawed": "flawed, 2-5 s",
        "timely": "timely",
        "ideal": "ideal",
    }
    reported = published.select(pl.lit("published").alias("whose"), "t_s", pl.col("mbps").cast(pl.Float64))
    return finished(
        [_steps(pl.concat([reported, _means(bins, names)]), ["published", *names.values()])],
        name="throughput",
        title="Goodput by 0.5 s: published, and means of our runs",
        description="Goodput of the probing flow over time, published and of four variants.",
        note="Cross traffic of 300 Mbit/s; when it was on is not published. Transfers end at 6.7 s to 7.4 s.",
    )


def _throughput_beside_700(bins: pl.DataFrame) -> Plot:
    """The variant of which only words were published."""
    left = goodput_bps(available_bps(700e6)) / 1e6
    beside, alone = "what it leaves", 941.5
    names = {"flawed-700": "flawed", "timely-700": "timely"}
    times = [place * 0.5 for place in range(int(2 * _END_S))]
    room = [left if _ON_S[0] <= time_s < _ON_S[1] else alone for time_s in times]
    ideal = pl.DataFrame({"whose": [beside] * len(times), "t_s": times, "mbps": room})
    return finished(
        [_steps(pl.concat([ideal, _means(bins, names)]), [beside, *names.values()])],
        name="throughput-700",
        title="Goodput by 0.5 s with 700 Mbit/s of UDP: means of our runs",
        description="Goodput of the probing flow over time with 700 Mbit/s of cross traffic, two variants.",
        note="Cross traffic from 2 s to 5 s. The publication has no numbers of this variant: similar to 300 "
        "Mbit/s, no worse.",
    )


def _means(bins: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Means over the runs of cases: columns ``whose t_s mbps``."""
    return (
        bins.filter(pl.col("case").is_in(list(names)))
        .group_by("case", "bin", maintain_order=True)
        .agg(pl.col("mbps").mean())
        .select(whose=pl.col("case").replace(names), t_s=pl.col("bin") * 0.5, mbps="mbps")
    )


def _steps(rows: pl.DataFrame, order: list[str]) -> object:
    """Rows of 0.5 s as steps."""
    rows = rows.filter(pl.col("t_s") < _END_S)
    # A step is drawn up to the next one: the last needs an end.
    ends = rows.filter(pl.col("t_s") == _END_S - 0.5).with_columns(t_s=pl.lit(_END_S))
    return (
        alt.Chart(pl.concat([rows, ends]))
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("t_s:Q", title="time [s]", scale=alt.Scale(domain=[0, _END_S], nice=False)),
            y=alt.Y("mbps:Q", title="goodput [Mbit/s]"),
            color=series_color("whose", order, title=None),
        )
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
    inside = pl.col("t_s").is_between(low_s, high_s)
    rows = estimates.filter((pl.col("case") == case) & inside)
    rows = rows.with_columns(piece=(pl.col("t_s").diff().fill_null(0.0) > _PAUSE_S).cum_sum())
    rows = rows.gather_every(max(1, rows.height // _POINTS))
    scale = alt.Scale(domain=[low_s, high_s], nice=False, zero=False)
    x = alt.X("t_s:Q", title="time [s]", scale=scale)
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
        .encode(x=x, y=alt.Y("smooth_mbps:Q"), detail="piece:N"),
        alt.Chart(truth)
        .mark_line(interpolate="step-after", strokeDash=[5, 3], color=LIGHT["ink"])
        .encode(x=x, y=alt.Y("true:Q")),
    ]
    if off.height:
        layers.insert(
            0,
            alt.Chart(off)
            .mark_rect(opacity=0.18, color=LIGHT["orange"])
            .encode(x=alt.X("from_s:Q", title="time [s]", scale=scale), x2="to_s:Q"),
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
        description=f"Estimates of streams over 7 s and the true available bandwidth, variant {case}.",
        note=_ESTIMATE_NOTE,
    )


def _zoom(estimates: pl.DataFrame, states: pl.DataFrame) -> Plot:
    """The estimates about a loss before which they had climbed to the link's rate."""
    mine = estimates.filter(pl.col("case") == "flawed")
    offs = _off_areas(states, "flawed").filter(pl.col("from_s").is_between(_ON_S[0] + 0.5, _ON_S[1]))
    at_link = [
        at
        for at in offs.get_column("from_s")
        if (last := mine.filter(pl.col("t_s").is_between(at - _PAUSE_S, at))).height
        and last.select(pl.col("mbps").max()).item() >= _NEAR_LINK_MBPS
    ]
    middle = at_link[0] if at_link else 3.2
    return finished(
        _estimate_chart(estimates, states, "flawed", middle - 0.2, middle + 0.1),
        name="estimates-zoom",
        title="One spike of the flawed variant",
        description="Estimates of streams in 0.3 s: they climb to the link's rate, and losses follow.",
        note=_ESTIMATE_NOTE,
    )


_NEAR_LINK_MBPS = 950.0


def _gap_rows(packets: pl.DataFrame) -> pl.DataFrame:
    """Send gaps [us] within streams."""
    return (
        packets.sort("case", "stream", "packet")
        .with_columns(gap_us=(pl.col("sent_ps").cast(pl.Int64).diff() / 1e6).over("case", "stream"))
        .drop_nulls("gap_us")
    )


def _gaps(packets: pl.DataFrame) -> Plot:
    rows = _gap_rows(packets).filter(pl.col("case").is_in(["flawed", "ideal"]))
    rows = rows.with_columns(order=pl.int_range(pl.len()).over("case")).filter(pl.col("order") < 640)
    points = alt.Chart(rows).encode(
        x=alt.X("order:Q", title="gap in the order of sending, from 3 s on"),
        y=alt.Y("gap_us:Q", title="send gap [µs]", scale=alt.Scale(type="log")),
        color=series_color("case", ["ideal", "flawed"], title=None),
    )
    return finished(
        [points.mark_point(filled=True, size=8)],
        name="gaps",
        title="Send gaps in their order",
        description="Send gaps of 640 packets of two variants.",
        note="Exponential ramps of the ideal variant; stalls and packets back to back of the flawed one.",
    )


def _ramps(packets: pl.DataFrame) -> Plot:
    names = ["ideal", "timely", "flawed"]
    rows = _gap_rows(packets).filter(pl.col("case").is_in(names))
    first = rows.group_by("case").agg(pl.col("stream").min().alias("first"))
    rows = rows.join(first, on="case").filter(
        pl.col("stream").is_between(pl.col("first") + 1, pl.col("first") + _RAMPS)
    )
    domain = [10.0, max(100.0, float(rows.select(pl.col("gap_us").max()).item()))]
    charts = [
        alt.Chart(rows.filter(pl.col("case") == name))
        .mark_line(strokeWidth=1.2, opacity=0.6)
        .encode(
            x=alt.X("packet:Q", title="packet of the stream" if name == names[-1] else None),
            y=alt.Y("gap_us:Q", title="send gap [µs]", scale=alt.Scale(type="log", domain=domain)),
            color=series_color("case", names, legend=None),
            detail="stream:N",
        )
        .properties(title=name)
        for name in names
    ]
    return finished(
        charts,
        name="ramps",
        title="Ramps of single streams",
        description=f"Send gaps of {_RAMPS} streams of each of three variants.",
        note=f"The first {_RAMPS} whole streams after 3 s; a packet takes 12.3 µs on the link.",
    )


_RAMPS = 8
"""Streams of each variant."""


def _distribution(gaps: pl.DataFrame) -> Plot:
    names = gaps.get_column("case").unique(maintain_order=True).to_list()
    titles = {"sent": "as they left", "received": "as they arrived"}
    charts = [
        alt.Chart(gaps.filter(pl.col("end") == end))
        .mark_line(interpolate="step-after", clip=True)
        .encode(
            x=alt.X(
                "gap_us:Q",
                title="gap [µs]" if end == "received" else None,
                scale=alt.Scale(type="log", domain=[10, 10_000]),
            ),
            y=alt.Y("share:Q", title="share of the gaps"),
            color=series_color(
                "case",
                names,
                title=None,
                legend=alt.Legend(symbolType="stroke") if end == "sent" else None,
            ),
        )
        .properties(title=title)
        for end, title in titles.items()
    ]
    return finished(
        charts,
        name="gap-distribution",
        title="Distribution of gaps while the cross traffic is on",
        description="Cumulative distribution of the gaps of four variants at both ends.",
        note="Within streams, from 2.5 s to 5 s. A packet takes 12.3 µs on the link. The receivers of "
        "`timely` and `flawed` acknowledge, and stamp, every second packet.",
    )


def _mean(runs: pl.DataFrame, case: str, column: str) -> float | None:
    values = runs.filter(pl.col("case") == case).get_column(column).drop_nulls()
    return float(values.cast(pl.Float64).to_numpy().mean()) if values.len() else None


def _spread(runs: pl.DataFrame, case: str, column: str) -> str:
    values = runs.filter(pl.col("case") == case).get_column(column).cast(pl.Float64).to_numpy()
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return f"{number(float(values.mean()), 3)} ± {number(spread, 2)}"


def _ablation(runs: pl.DataFrame) -> Table:
    def mean(column: str) -> Callable[[tuple[str, str]], str]:
        return lambda case: number(_mean(runs, case[0], column), 3)

    return Table.of(
        "The flawed variant with one flaw removed, with 300 Mbit/s of UDP, mean ± standard deviation",
        [("flawed", "none removed"), *((case.name, case.title) for case in ABLATION)],
        {
            "removed:": lambda case: case[1],
            "goodput [Mbit/s]": lambda case: _spread(runs, case[0], "settled_mbps"),
            "retransmissions": mean("retransmits"),
            "timeouts": mean("timeouts"),
            "recoveries": mean("recoveries"),
            "time off [s]": mean("off_s"),
            "median estimate [Mbit/s]": mean("ab_p50_mbps"),
        },
    )


def _better(runs: pl.DataFrame) -> Table:
    def mean(column: str) -> Cell:
        return "name", lambda name: number(_mean(runs, name, column), 3)

    return Table.of(
        "The better Rapid, Reno and CUBIC, mean ± standard deviation",
        BETTER,
        {
            "variant:": "name",
            "goodput [Mbit/s]": ("name", lambda name: _spread(runs, name, "settled_mbps")),
            "loss events": mean("loss_events"),
            "estimate off by at most": mean("worst_estimate"),
            "mean queue [frames]": mean("queue_frames"),
            "loss of cross traffic": mean("cross_loss"),
        },
    )
