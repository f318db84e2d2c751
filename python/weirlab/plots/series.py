"""Plots of a run: what ports, traffic and rate limiters did over time, and how long frames were on their way.

Long series are drawn as an envelope: consecutive intervals are put together until `POINTS` remain, the
line is their exact mean (sums over sums), the band reaches from their smallest to their largest value.
Replicates are treated the same way: line over all of them, band from the least to the most.

How lines are made of them is `weirlab.plots.envelopes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from weirlab.plots.envelopes import LINE_RATE, MEAN_QUEUE, SERIES, Envelopes, Moments, greatest, listed
from weirlab.plots.style import Plot, alt, finished, legend_of, scaled, series_color
from weirlab.records import Records


def port_plots(
    records: Records,
    first: Sequence[int] = (),
    moments: Moments = (),
    set_points: Mapping[str, float] | None = None,
) -> list[Plot]:
    """Rate, queue and drops of the ports with series, those of `first` and the busiest, and queues above the
    `set_points` [B] of ports by name; nothing where no port was recorded."""
    series = Envelopes.of(records, "intervals", "port", moments, first=first)
    if not series.names:
        return []
    plots = [
        series.lines(
            LINE_RATE,
            kind="rate",
            name="port-rate",
            title=f"Transmitted rate of {series.what}, framing included",
            y_title="rate",
            description=f"Transmitted rate, framing included, of {series.listed} over time.",
            ceiling=series.ceiling(),
        ),
    ]
    waiting = _queues(records, moments, first)
    for queues, name, where in waiting:
        plots.append(
            queues.lines(
                MEAN_QUEUE,
                high=pl.col("queue_max_bytes").cast(pl.Float64),
                kind="bytes",
                name=name,
                title=f"Waiting bytes at {where}",
                y_title="queue",
                description=f"Bytes that waited at {queues.listed} over time: line mean, band up to the "
                "maximum.",
                note=queues.note(
                    "from the lowest mean to the largest queue",
                    alone="Line: mean over time; band: up to the largest queue within each interval.",
                    most="fullest",
                    were="where frames waited",
                ),
            )
        )
    plots += _excess(waiting[0][0] if waiting else series, set_points or {})
    dropping = Envelopes.of(records, "intervals", "port", moments, "drops", first)
    if dropping.names:
        plots.append(
            dropping.lines(
                pl.col("drops").cast(pl.Float64),
                kind=None,
                name="port-drops",
                title=f"Dropped frames at {dropping.what}",
                y_title=f"drops in {dropping.every}",
                description=f"Frames dropped at {dropping.listed} in each recorded interval.",
                note=dropping.note(most="worst", were="that dropped frames"),
            )
        )
    return plots


_APART = 8
"""The backlog of hosts so many times above the queues of switches hides them on one axis."""


def _queues(records: Records, moments: Moments, first: Sequence[int]) -> list[tuple[Envelopes, str, str]]:
    """The ports with the longest queues that are drawn in one plot, its name, and what they are: those of
    hosts apart where they would hide the others; nothing where nothing waited."""
    rows, names = (records[table].rename({"port": "id"}) for table in ("intervals", "port_names"))

    def of(kept: pl.DataFrame) -> Envelopes:
        there = rows.join(kept.select("id"), on="id", how="semi")
        return Envelopes.made(there, kept, "queue_byte_ps", "ports", moments, first)

    if "from_kind" in names.columns:
        of_host = pl.col("from_kind") == "host"
        switches, hosts = of(names.filter(~of_host)), of(names.filter(of_host))
        most = [each.rows.select(pl.max("queue_max_bytes").fill_null(0)).item() for each in (switches, hosts)]
        if 0 < _APART * most[0] < most[1]:
            apart = (switches, "port-queue", "switches"), (hosts, "host-queue", "hosts, their own backlog")
            return [
                (each, name, each.what if len(each.names) == 1 else f"ports of {where}")
                for each, name, where in apart
            ]
    together = of(names)
    return [(together, "port-queue", together.what)] if together.names else []


def flow_control_plots(records: Records, moments: Moments = ()) -> list[Plot]:
    """What switches had in their buffers, what the fullest of them had in its pools, and for how long flow
    control held ports; nothing of what was not recorded."""
    return [*_buffer_plots(records, moments), *_hold_plots(records, moments)]


def _buffer_plots(records: Records, moments: Moments) -> list[Plot]:
    if "pool_intervals" not in records or records["pool_intervals"].is_empty():
        return []
    pools = records["pool_names"]
    rows = (
        records["pool_intervals"]
        .rename({"pool": "id"})
        .join(pools.rename({"pool": "id"}).drop("name"), on="id", maintain_order="left")
    )
    fullest = str(rows.filter(pl.col("byte_ps") == pl.col("byte_ps").max()).item(0, "switch"))
    whole = rows.filter(part="whole")
    plots = []
    for name, title, drawn, label in (
        ("buffers", "Bytes in the buffers of switches", whole, pl.col("switch")),
        ("pools", f"Bytes in the buffer of {fullest} and in its pools", rows.filter(switch=fullest), _POOL),
    ):
        names = drawn.select("id", name=label).unique("id", keep="first", maintain_order=True)
        series = Envelopes.made(drawn, names, "byte_ps", name, moments)
        if not series.names or (name == "buffers" and len(series.names) == 1):
            continue
        sizes = series.rows.filter(part="whole").get_column("size_bytes").unique().to_list()
        plots.append(
            series.lines(
                pl.col("byte_ps") / pl.col("length_ps"),
                high=pl.col("max_bytes").cast(pl.Float64),
                kind="bytes",
                name=name,
                title=title,
                y_title="buffer",
                description=f"{title} over time: {series.listed}. Line mean, band up to the maximum.",
                ceiling=float(sizes[0]) if len(sizes) == 1 else None,
                ceiling_name="size of the buffer",
                note=series.note(
                    "from the lowest mean to the most",
                    were="that held anything for a while",
                    alone="Line: mean over time; band: up to the most within each interval.",
                ),
            )
        )
    return plots


_POOL = (
    pl.when(part="whole")
    .then(pl.lit("all that waits"))
    .when(part="headroom")
    .then(pl.lit("headroom"))
    .otherwise(pl.format("{}, class {}", pl.col("part"), pl.col("classes").str.replace_all(" ", " and ")))
)


_PER_PORT = 9
"""Numbers of lines for each port: its own, and those of its eight classes."""


def _hold_plots(records: Records, moments: Moments) -> list[Plot]:
    """Shares of the time for which PAUSE held ports, or PFC classes of them."""
    rows = records["intervals"]
    ports = records["port_names"].select("port", "name")
    if "paused_ps" not in rows.columns:
        return []
    every = rows.select("replicate", "port", "t_ps", held_ps=pl.col("paused_ps").fill_null(0))
    paused = every.filter(pl.col("held_ps").sum().over("port") > 0).with_columns(
        id=pl.col("port") * _PER_PORT, label=pl.lit("")
    )
    held = every.clear().with_columns(id=pl.lit(0, pl.UInt32), label=pl.lit(""))
    if "hold_intervals" in records:
        classes = records["hold_intervals"].join(paused, on="port", how="anti", maintain_order="left")
        each = classes.select("port", "class").unique()
        held = (
            every.drop("held_ps")
            .join(each, on="port")
            .join(classes, on=["replicate", "port", "class", "t_ps"], how="left")
            .select(
                *("replicate", "port", "t_ps"),
                pl.col("held_ps").fill_null(0),
                id=pl.col("port") * _PER_PORT + 1 + pl.col("class"),
                label=pl.format(", class {}", pl.col("class")),
            )
        )
    rows = pl.concat([paused, held]).join(ports, on="port", maintain_order="left")
    names = rows.select("id", name=pl.col("name") + pl.col("label")).unique("id", maintain_order=True)
    series = Envelopes.made(rows.drop("name"), names, "held_ps", "ports", moments)
    if not series.names:
        return []
    return [
        series.lines(
            pl.col("held_ps").cast(pl.Float64) / pl.col("length_ps"),
            kind="share",
            name="held",
            title=f"Time for which flow control held {series.what}",
            y_title="held",
            description=f"Share of each interval for which flow control held {series.listed}.",
            note=series.note(were="that were held"),
        )
    ]


def _excess(series: Envelopes, set_points: Mapping[str, float]) -> list[Plot]:
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
        series.lines(
            MEAN_QUEUE - point,
            high=pl.col("queue_max_bytes").cast(pl.Float64) - point,
            kind="bytes",
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
        "delivered-rate": Envelopes.of(records, "deliveries", "traffic", moments),
        "delivered-rate-by-flow": Envelopes.of(records, "flow_deliveries", "flow", moments),
    }
    return [
        series.lines(
            pl.col("bytes").cast(pl.Float64) * 8e12 / pl.col("length_ps"),
            kind="rate",
            name=name,
            title=f"Delivered rate of {series.what}, framing excluded",
            y_title="rate",
            description=f"Delivered rate of {series.listed} over time.",
        )
        for name, series in recorded.items()
        if series.names
    ]


def connection_plots(records: Records, moments: Moments = ()) -> list[Plot]:
    """Window, round-trip time and rate of the TCP senders with series, where any was recorded; no
    windows that never change."""
    series = Envelopes.of(records, "tcp", "connection", moments, "acked_bytes")
    if not series.names:
        return []
    acked = pl.col("acked_bytes").cast(pl.Float64)
    news = acked - acked.shift(1).over("id", "replicate").fill_null(0.0)
    timed = replace(series, rows=series.rows.filter(pl.col("srtt_ps").is_not_null()))
    windows = [
        series.lines(
            pl.col("window_bytes").cast(pl.Float64),
            kind="bytes",
            name="tcp-window",
            title=f"Congestion window of {series.what}",
            y_title="window",
            description=f"What {series.listed} might have in flight, at the end of each interval.",
        )
    ]
    each = series.rows.group_by("id", "replicate").agg(pl.col("window_bytes").n_unique())
    return [
        *(windows if each.get_column("window_bytes").max() != 1 else []),
        timed.lines(
            pl.col("srtt_ps"),
            kind="time",
            name="tcp-round-trip",
            title=f"Smoothed round-trip time of {series.what}",
            y_title="round trip",
            description=f"Smoothed round-trip time of {series.listed}, at the end of each interval.",
        ),
        timed.lines(
            pl.col("srtt_ps").cast(pl.Float64) - pl.col("srtt_ps").min().over("id", "replicate"),
            kind="time",
            name="tcp-queueing",
            title=f"Smoothed round-trip time above its least, of {series.what}",
            y_title="above the least",
            description=f"What the smoothed round-trip time of {series.listed} was above its least: queues.",
        ),
        series.lines(
            news * 8e12 / pl.col("length_ps"),
            kind="rate",
            name="tcp-rate",
            title=f"Acknowledged rate of {series.what}",
            y_title="rate",
            description=f"Bits of the streams of {series.listed} acknowledged in order per second.",
        ),
    ]


def limiter_plots(records: Records, moments: Moments = ()) -> list[Plot]:
    """Rates of limiters with series, while they limit; nothing where none was recorded, or none was made."""
    series = Envelopes.of(records, "limiters", "flow", moments, "rate_bit")
    if not series.names:
        return []
    limited = replace(series, rows=series.rows.filter(pl.col("limited_ps") > 0))
    return [
        limited.lines(
            pl.col("rate_bit") * 1e12 / pl.col("limited_ps").cast(pl.Float64),
            kind="rate",
            name="limiter-rate",
            title=f"Rate of the limiter of {series.what}",
            y_title="rate",
            description=f"Rate to which {series.listed} were limited over time.",
        )
    ]


_FIRST_SHARE = 0.999
"""Where the share of frames with more delay starts to be drawn: above, it is a flat line."""
_LEAD = 0.9
"""How much of that flat line is drawn: from this share of the delay at which it ends."""


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
    floor = 0.5 / greatest(rows, "total")
    following = pl.col("high_ps").shift(-1).over("traffic").cast(pl.Float64)
    flat = (pl.col("longer") >= _FIRST_SHARE) & following.is_not_null()
    rows = rows.filter(~flat | (pl.col("longer").shift(-1).over("traffic") < _FIRST_SHARE))
    starts = pl.max_horizontal(pl.col("high_ps").cast(pl.Float64), _LEAD * following)
    rows = rows.with_columns(high_ps=pl.when(flat).then(starts).otherwise(pl.col("high_ps").cast(pl.Float64)))
    note += f" Lines start shortly before what {100 * _FIRST_SHARE:g} % of the frames exceeded."
    factor, unit = scaled(greatest(rows, "high_ps"), "time")
    data = rows.select(
        "name", delay=pl.col("high_ps") * factor, longer=pl.max_horizontal("longer", pl.lit(floor))
    )
    wide = greatest(data, "delay") > 30 * float(data.select(pl.col("delay").min()).item())
    across = alt.Scale(type="log" if wide else "linear", zero=False, nice=False)
    up, axis = alt.Scale(type="log", domain=[floor, 1]), alt.Axis(format="~g")
    lines = alt.Chart(data).encode(
        x=alt.X("delay:Q", title=f"one-way delay [{unit}]", scale=across),
        y=alt.Y("longer:Q", title="share of frames with more delay", scale=up, axis=axis),
        color=series_color("name", names, legend=legend_of(names, symbolType="stroke")),
    )
    return [
        finished(
            [lines.mark_line(interpolate="step-after")],
            name="delay",
            title="One-way delay",
            description=f"Share of the frames of {listed(names)} whose one-way delay exceeded a value.",
            note=note,
        )
    ]
