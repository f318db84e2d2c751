"""Plots of a trace: throughput, round trips, one flow's bytes over time, its gaps, their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from weirlab.plots.style import LIGHT, Plot, alt, by_name, finished, scaled, series_color
from weirlab.traces import Trace

FLOWS = 6
"""Most flows in one plot."""
_SHARE = 0.01
"""Flows with less than this share of the bytes of the largest one are not drawn."""
_PACKETS = 1500
"""Packets that are drawn one by one."""
_GAPS = 400
"""Gaps that are drawn one by one."""
_TCP = 6
_FRAMING = 24
"""Bytes on an Ethernet besides the captured ones."""
_KIND_COLORS = {
    "new": "blue",
    "retransmitted": "bad",
    "reordered": "orange",
    "duplicate": "violet",
    "probe": "olive",
}


def trace_plots(trace: Trace) -> list[Plot]:
    """The plots for which the trace has something to show."""
    shown = trace.flows().filter(pl.col("protocol").is_in([6, 17]) & (pl.col("data_packets") > 0))
    shown = shown.filter(pl.col("payload_bytes") >= _SHARE * pl.col("payload_bytes").max()).head(FLOWS)
    names = dict(shown.select("flow", "name").iter_rows())
    if not names:
        return []
    plots = [_throughput(trace, names), _round_trips(trace, names)]
    detailed = set(trace["packets"].get_column("flow").unique().to_list())
    chosen = next((flow for flow in names if flow in detailed), None)
    if chosen is not None:
        if not _is_tcp(trace, chosen):  # that of TCP is a graph of its own
            plots.append(sequence_plot(trace, chosen, trace.flow_name(chosen)))
        plots.append(_gap_sequence(trace, chosen))
    plots.append(_gap_distribution(trace, names))
    return [plot for plot in plots if plot is not None]


def _named(rows: pl.DataFrame, names: dict[int, str]) -> pl.DataFrame:
    return rows.filter(pl.col("flow").is_in(list(names))).with_columns(
        name=pl.col("flow").replace_strict(names, return_dtype=pl.String)
    )


def _color(names: Sequence[str]) -> Any:
    return series_color("name", names, legend=alt.Legend(columns=2, labelLimit=400))


def _time_axis(trace: Trace, names: dict[int, str]) -> Any:
    """The same times below all series of these flows."""
    ends = trace["intervals"].filter(pl.col("flow").is_in(list(names))).get_column("t_ps").to_numpy() / 1e12
    reach = [float(ends.min()) - trace.every_ps / 1e12, float(ends.max())]
    return alt.X("t:Q", title="time [s]", scale=alt.Scale(nice=False, zero=False, domain=reach))


def _throughput(trace: Trace, names: dict[int, str]) -> Plot:
    rows = _named(trace["intervals"], names)
    # The capture ends within the last interval, of which it says too little for a rate.
    whole = rows.filter(pl.col("t_ps") <= trace.facts["end_ps"])
    if whole.get_column("flow").n_unique() == len(names):
        rows = whole
    last = rows.group_by("flow").agg(last=pl.col("t_ps").max(), first=pl.col("t_ps").min())
    # Intervals in which a flow sent nothing have no row: they are zero.
    grid = pl.concat(
        [
            pl.DataFrame(
                {
                    "t_ps": pl.int_range(first, end + 1, trace.every_ps, eager=True).cast(pl.UInt64),
                    "flow": flow,
                },
                schema_overrides={"flow": pl.UInt32},
            )
            for flow, end, first in last.iter_rows()
        ]
    )
    rows = grid.join(rows.drop("name"), on=["flow", "t_ps"], how="left").fill_null(0)
    rows = _named(rows, names).sort("flow", "t_ps")
    wire = (pl.col("frame_bytes") + _FRAMING * pl.col("packets")).cast(pl.Float64) * 8e12 / trace.every_ps
    good = pl.col("new_bytes").cast(pl.Float64) * 8e12 / trace.every_ps
    factor, unit = scaled(float(rows.select(wire.max()).item() or 1.0), "rate")
    data = rows.select(
        "name", t=pl.col("t_ps") / 1e12 - trace.every_ps / 2e12, wire=wire * factor, goodput=good * factor
    )
    order = list(names.values())
    base = alt.Chart(data).encode(x=_time_axis(trace, names), color=_color(order))
    wire = base.mark_line(strokeWidth=1, strokeDash=[3, 2], opacity=0.7)
    wire = wire.encode(y=alt.Y("wire:Q", title=f"rate [{unit}]"))
    return finished(
        [alt.layer(wire, base.mark_line().encode(y="goodput:Q"))],
        name="throughput",
        title="Throughput",
        description=f"Rate over time of {len(order)} flows.",
        note=f"Full: bytes seen for the first time (goodput); dashed: with headers, framing, repeats; "
        f"each over {trace.every_ps / 1e9:g} ms. Shown: the flows with most bytes.",
    )


def _round_trips(trace: Trace, names: dict[int, str]) -> Plot | None:
    rows = _named(trace["intervals"].filter(pl.col("rtts") > 0), names)
    if rows.is_empty():
        return None
    factor, unit = scaled(float(rows.select(pl.col("rtt_max_ps").max()).item()), "time")
    data = rows.select(
        "name",
        t=pl.col("t_ps") / 1e12 - trace.every_ps / 2e12,
        low=pl.col("rtt_min_ps") * factor,
        high=pl.col("rtt_max_ps") * factor,
        mean=pl.col("rtt_sum_ps") / pl.col("rtts") * factor,
    )
    order = [name for name in names.values() if name in set(data.get_column("name"))]
    base = alt.Chart(data).encode(x=_time_axis(trace, names), color=_color(order))
    low = alt.Y("low:Q", title=f"round trip [{unit}]")
    bars = base.mark_rule(strokeWidth=2, opacity=0.25).encode(y=low, y2="high:Q")
    return finished(
        [alt.layer(bars, base.mark_line().encode(y="mean:Q"))],
        name="round-trips",
        title="Round-trip time from data to acknowledgment",
        description=f"Round-trip time over time of {len(order)} flows.",
        note="Line: mean of an interval; bars: from the least to the largest. Seen at the place of the "
        "capture: only the way from there to the receiver and back.",
    )


def _is_tcp(trace: Trace, flow: int) -> bool:
    return bool(trace.flows().filter(flow=flow).get_column("protocol").item() == _TCP)


def sequence_plot(trace: Trace, flow: int, name: str) -> Plot:
    """The packets of a flow around the recovery with most retransmissions, or in the middle."""
    packets = trace["packets"].filter(pl.col("flow") == flow).sort("t_ps")
    recoveries = trace["recoveries"].filter(pl.col("flow") == flow)
    first = (packets.height - _PACKETS) // 2
    if not recoveries.is_empty():
        worst_ps = recoveries.sort("retransmitted", descending=True).item(0, "t_ps")
        first = packets.filter(pl.col("t_ps") < worst_ps).height - _PACKETS // 3
    drawn = packets.slice(max(0, first), _PACKETS).join(trace["kind_names"], on="kind")
    start_ps, end_ps = drawn.item(0, "t_ps"), drawn.item(drawn.height - 1, "t_ps")
    factor, unit = scaled(float(drawn.select(pl.col("seq").max()).item() or 1.0), "bytes")
    data = drawn.select(t=pl.col("t_ps") / 1e12, seq=pl.col("seq") * factor, kind="name")
    kinds = [kind for kind in _KIND_COLORS if kind in set(data.get_column("kind"))]
    colors = [LIGHT[_KIND_COLORS[kind]] for kind in kinds]
    time_scale = alt.Scale(nice=False, zero=False)
    place = alt.Y("seq:Q", title=f"bytes of the stream [{unit}]", scale=alt.Scale(zero=False, nice=False))
    time, color = alt.X("t:Q", title="time [s]", scale=time_scale), by_name(alt.Color, "kind", kinds, colors)
    points = alt.Chart(data).mark_point(filled=True, size=11, opacity=0.85)
    acks = trace["acks"].filter((pl.col("flow") == flow) & pl.col("t_ps").is_between(start_ps, end_ps))
    layers = [points.encode(x=time, y=place, color=color)]
    if not acks.is_empty():
        line = acks.select(t=pl.col("t_ps") / 1e12, ack=pl.col("ack") * factor)
        steps = alt.Chart(line).mark_line(interpolate="step-after", color=LIGHT["teal"], strokeWidth=1.2)
        layers.insert(0, steps.encode(x=alt.X("t:Q", scale=time_scale), y="ack:Q"))
    where = "around the recovery with most retransmissions" if recoveries.height else "from the middle"
    return finished(
        [alt.layer(*layers)],
        name="sequence",
        title=f"What was sent when: {name}",
        description="Places of packets of the largest flow in its stream over time, and acknowledgments.",
        height=340,
        note=f"Points: packets with data, by what they are; line: what was acknowledged. {drawn.height:,} of "
        f"{packets.height:,} packets, {where}.",
    )


def _gap_sequence(trace: Trace, flow: int) -> Plot | None:
    """The gaps of some hundred packets one after the other, where most happens."""
    packets = trace["packets"].filter(pl.col("flow") == flow).sort("t_ps")
    if packets.height < 3:
        return None
    streams = trace["p_streams"].filter(pl.col("flow") == flow).join(trace["stream_kind_names"], on="kind")
    middle = packets.height // 2
    start_ps = packets.item(max(0, middle - _GAPS // 2), "t_ps")
    if not streams.is_empty():
        start_ps = streams.item(streams.height // 2, "t_ps")
    rows = packets.filter(pl.col("t_ps") >= start_ps).head(_GAPS + 1)
    gaps = rows.select(
        number=pl.int_range(pl.len()), t_ps="t_ps", gap=pl.col("t_ps").diff().shift(-1)
    ).drop_nulls()
    largest = float(gaps.select(pl.col("gap").max()).item())
    factor, unit = scaled(float(gaps.select(pl.col("gap").median()).item()) or 1.0, "time")
    data = gaps.select("number", gap=pl.col("gap") * factor)
    logarithmic = largest > 30 * float(gaps.select(pl.col("gap").median()).item() or 1.0)
    x = alt.X("number:Q", title="packet", scale=alt.Scale(nice=False))
    scale = alt.Scale(type="log" if logarithmic else "linear", zero=not logarithmic)
    y = alt.Y("gap:Q", title=f"gap to the next [{unit}]", scale=scale)
    points = alt.Chart(data.filter(pl.col("gap") > 0))
    layers = [points.mark_point(filled=True, size=14, opacity=0.9, color=LIGHT["blue"]).encode(x=x, y=y)]
    if not streams.is_empty():
        starts = gaps.join(streams.select("t_ps", "name"), on="t_ps", how="inner").select("number", "name")
        rules = alt.Chart(starts).mark_rule(strokeDash=[3, 3], color=LIGHT["muted"])
        layers.insert(0, rules.encode(x="number:Q"))
    return finished(
        [alt.layer(*layers)],
        name="gap-sequence",
        title=f"Send gaps one after the other: {trace.flow_name(flow)}",
        description="Gaps between successive packets of the largest flow.",
        note=f"{gaps.height} gaps from {start_ps / 1e12:.6f} s on."
        + ("" if streams.is_empty() else " Dashed: beginnings of probe streams."),
    )


def _gap_distribution(trace: Trace, names: dict[int, str]) -> Plot | None:
    rows = _named(trace["gaps"], names)
    if rows.is_empty():
        return None
    rows = rows.sort("flow", "low_ps").with_columns(
        share=pl.col("gaps").cum_sum().over("flow") / pl.col("gaps").sum().over("flow"),
        middle=(pl.col("low_ps") + pl.col("high_ps")) / 2,
    )
    factor, unit = scaled(float(rows.select(pl.col("middle").median()).item()) or 1.0, "time")
    data = rows.filter(pl.col("middle") > 0).select("name", "share", gap=pl.col("middle") * factor)
    order = [name for name in names.values() if name in set(data.get_column("name"))]
    x = alt.X("gap:Q", title=f"gap [{unit}]", scale=alt.Scale(type="log", nice=False))
    y = alt.Y("share:Q", title="share of gaps up to it", scale=alt.Scale(domain=[0, 1]))
    lines = alt.Chart(data).mark_line(interpolate="step-after")
    return finished(
        [lines.encode(x=x, y=y, color=_color(order))],
        name="gap-distribution",
        title="Gaps between successive packets with data",
        description=f"Cumulative distribution of the gaps of {len(order)} flows.",
        note="Bins are at most 1/32 of a gap wide.",
    )
