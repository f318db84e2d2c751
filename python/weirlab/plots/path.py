"""Plots of a characterized path: round-trip time against size, and what probes waited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from weirlab.campaigns.path import Characterization, HopEstimate
from weirlab.campaigns.path.estimate import answered
from weirlab.plots.style import LIGHT, Plot, alt, finished, scaled, series_color

_HOPS = 6
"""Most hops in one plot."""
_MOST = 4000
"""Probes that are drawn one by one."""


def path_plots(found: Characterization) -> list[Plot]:
    """The plots for which enough was answered."""
    known = [each for each in found.estimates() if each.floor is not None and each.line is not None]
    if not known:
        return []
    plots = [
        _floor(known[first : first + _HOPS], place)
        for place, first in enumerate(range(0, len(known), _HOPS), 1)
    ]
    return [*plots, _added(known), _waiting(found, known)]


def _name(each: HopEstimate) -> str:
    return f"{each.hop.hops}  {', '.join(each.hop.routers)}"


def _color(names: Sequence[str]) -> Any:
    return series_color("hop", names, legend=alt.Legend(columns=2, labelLimit=400))


def _floor(known: Sequence[HopEstimate], place: int) -> Plot:
    """Floor of the round-trip time against size, a line for each hop."""
    points, lines = [], []
    for each in known:
        floor, line = each.floor, each.line
        assert floor is not None, "only known hops are drawn"
        assert line is not None, "only known hops are drawn"
        ends = [float(floor.sizes_bytes[0]), float(floor.sizes_bytes[-1])]
        drawn = pl.DataFrame({"size": floor.sizes_bytes, "rtt": floor.rtts_s * 1e12})
        fitted = pl.DataFrame({"size": ends, "rtt": [line.at(end) * 1e12 for end in ends]})
        points.append(drawn.with_columns(hop=pl.lit(_name(each))))
        lines.append(fitted.with_columns(hop=pl.lit(_name(each))))
    factor, unit = scaled(float(pl.concat(points).select(pl.col("rtt").max()).item()), "time")
    color = _color([_name(each) for each in known])
    size = alt.X("size:Q", title="packet [B]", scale=alt.Scale(zero=False, nice=False))
    rtt = alt.Y("rtt:Q", title=f"round trip [{unit}]", scale=alt.Scale(zero=False))
    layers = [pl.concat(part).with_columns(pl.col("rtt") * factor) for part in (lines, points)]
    chart = alt.layer(
        alt.Chart(layers[0]).mark_line(strokeWidth=1.2).encode(x=size, y=rtt, color=color),
        alt.Chart(layers[1]).mark_point(filled=True, size=16).encode(x=size, y=rtt, color=color),
    )
    return finished(
        [chart],
        name="round-trips" if place == 1 else f"round-trips-{place}",
        title="Floor of the round-trip time against size",
        description=f"Round-trip time of each packet size to {len(known)} hops, with fitted lines.",
        height=320,
        note="From one hop to the next a line becomes steeper by 1 / capacity of the link between.",
    )


def _added(known: Sequence[HopEstimate]) -> Plot:
    """What each link adds, against size: small links are hidden in the picture of the whole path."""
    rows = []
    shown = [each for each in known if each.link is not None][:_HOPS]
    for before, each in zip([None, *known[:-1]], known, strict=True):
        if each not in shown or each.floor is None or each.link is None:
            continue
        own = pl.DataFrame({"size": each.floor.sizes_bytes, "rtt": each.floor.rtts_s})
        if before is not None and before.floor is not None:
            earlier = pl.DataFrame({"size": before.floor.sizes_bytes, "earlier": before.floor.rtts_s})
            own = own.join(earlier, on="size").select("size", rtt=pl.col("rtt") - pl.col("earlier"))
        line = each.link.line
        rows.append(
            own.select(
                "size",
                added=(pl.col("rtt") - line.intercept) * 1e12,
                fitted=pl.col("size") * line.slope * 1e12,
                hop=pl.lit(_name(each)),
            )
        )
    data = pl.concat(rows)
    largest = data.select(pl.max_horizontal(pl.col("added").abs().max(), pl.col("fitted").abs().max())).item()
    factor, unit = scaled(float(largest) or 1.0, "time")
    data = data.with_columns(pl.col("added", "fitted") * factor)
    color = _color([_name(each) for each in shown])
    size = alt.X("size:Q", title="packet [B]", scale=alt.Scale(zero=False, nice=False))
    base = alt.Chart(data).encode(x=size, color=color)
    chart = alt.layer(
        base.mark_line(strokeWidth=1.2).encode(y=alt.Y("fitted:Q", title=f"transmission [{unit}]")),
        base.mark_point(filled=True, size=16).encode(y="added:Q"),
    )
    return finished(
        [chart],
        name="links",
        title="What each link adds with size",
        description=f"Difference of round-trip times between neighbors, less its value at size 0, for "
        f"{len(shown)} links.",
        height=280,
        note="The slope of a line is 1 / capacity; its value at size 0, which is left out, the latency.",
    )


def _waiting(found: Characterization, known: Sequence[HopEstimate]) -> Plot:
    """Round-trip times beyond the floor, over time."""
    parts = []
    for each in known[:_HOPS]:
        assert each.line is not None, "only known hops are drawn"
        rows = answered(found.probes.filter(pl.col("hops") == each.hop.hops)).sort("t_s")
        line = each.line
        parts.append(
            rows.gather_every(max(1, -(-rows.height * len(known[:_HOPS]) // _MOST))).select(
                t="t_s",
                waited=(pl.col("rtt_s") - line.intercept - line.slope * pl.col("size_bytes")) * 1e12,
                hop=pl.lit(_name(each)),
            )
        )
    data = pl.concat(parts)
    most = float(data["waited"].quantile(0.995) or 1.0)
    above = data.filter(pl.col("waited") > most).height
    factor, unit = scaled(most, "time")
    data = data.filter(pl.col("waited") <= most).with_columns(pl.col("waited") * factor)
    names = [_name(each) for each in known[:_HOPS]]
    points = alt.Chart(data).mark_point(filled=True, size=7, opacity=0.5)
    x = alt.X("t:Q", title="time [s]", scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("waited:Q", title=f"beyond the floor [{unit}]")
    points = points.encode(x=x, y=y, color=_color(names))
    zero = alt.Chart(pl.DataFrame({"waited": [0.0]})).mark_rule(color=LIGHT["muted"]).encode(y="waited:Q")
    return finished(
        [alt.layer(zero, points)],
        name="waiting",
        title="What probes waited",
        description=f"Round-trip time beyond the floor of its size over time, to {len(names)} hops.",
        note="In queues there and back, and in the routers that answer."
        + (f" {above} probes that waited longest are not drawn." if above else ""),
    )
