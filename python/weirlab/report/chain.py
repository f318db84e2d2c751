"""The picture of a path: its nodes one after the other, and what is known of each link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from weirlab.campaigns.path import Characterization
from weirlab.report.page import Network, number, percent
from weirlab.report.shared import time_text
from weirlab.scenario import Scenario
from weirlab.traces import Trace

_WIDTH, _ROW, _STOPS = 480, 112, 3
"""Of the picture and of a row of it, in its own units, and nodes in a row."""
_MOST = 32
"""Nodes that are drawn."""


@dataclass(frozen=True)
class Stop:
    """A node of a path."""

    name: str
    kind: str
    """Its class in the drawing: `sender`, `switch`, `receiver` or `idle`."""


@dataclass(frozen=True)
class Link:
    """What is written at a link: above and below it."""

    above: str = ""
    below: str = ""
    is_narrowest: bool = False


def chain(title: str, note: str, stops: Sequence[Stop], links: Sequence[Link]) -> Network:
    """A drawing of nodes one after the other; `links` are those behind each node but the last."""
    shown = stops[:_MOST]
    columns = min(_STOPS, len(shown))
    step = _WIDTH / columns
    rows = -(-len(shown) // columns)

    def place(number: int) -> tuple[float, float]:
        row, column = divmod(number, columns)
        column = column if row % 2 == 0 else columns - 1 - column  # a row goes back below the one before
        return step * (column + 0.5), _ROW * (row + 0.5)

    parts = []
    for n, link in enumerate(links[: len(shown) - 1]):
        (x1, y1), (x2, y2) = place(n), place(n + 1)
        kind = "c8" if link.is_narrowest else "c2"
        parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        if y1 == y2:
            parts += _text(x, y - 10, link.above) + _text(x, y + 22, link.below)
        else:
            side = ("end", -10) if x1 > _WIDTH / 2 else ("start", 10)
            parts += _text(x + side[1], y - 2, link.above, side[0]) + _text(
                x + side[1], y + 16, link.below, side[0]
            )
    for n, stop in enumerate(shown):
        x, y = place(n)
        if stop.kind == "switch":
            parts.append(
                f'<rect class="switch" x="{x - 9:.1f}" y="{y - 9:.1f}" width="18" height="18" rx="3"/>'
            )
        else:
            parts.append(f'<circle class="{stop.kind}" cx="{x:.1f}" cy="{y:.1f}" r="9"/>')
        is_below = n > 0 and n % columns == 0  # the link from the row before comes from above
        parts += _text(x, y + 36 if is_below else y - 26, stop.name)
    narrow = next((n for n, link in enumerate(links) if link.is_narrowest), None)
    words = f"{title}: {' to '.join(stop.name for stop in shown)}." + (
        "" if narrow is None else f" The narrowest link leaves {shown[narrow].name}: {links[narrow].above}."
    )
    svg = (
        f'<svg class="network chain" viewBox="0 0 {_WIDTH} {_ROW * rows}" role="img" '
        f'aria-label="{escape(words)}">{"".join(parts)}</svg>'
    )
    more = f" The first {_MOST} of {len(stops)} nodes." if len(stops) > _MOST else ""
    return Network(title, note + more, svg, "", "still")


def _text(x: float, y: float, text: str, anchor: str = "middle") -> list[str]:
    if not text:
        return []
    return [f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>']


def path_picture(found: Characterization) -> Network:
    """The hops of a path that was probed."""
    estimates = {each.hop.hops: each for each in found.estimates()}
    known: dict[int, float] = {}
    for hops, each in estimates.items():
        if each.link is not None and each.link.capacity_bps is not None:
            known[hops] = float(each.link.capacity_bps)
    least = min(known, key=lambda hops: known[hops], default=None)
    stops, links = [Stop(found.route.source, "sender")], []
    for n, hop in enumerate(found.route.hops):
        is_last = n == len(found.route.hops) - 1 and found.route.reached
        estimate = estimates.get(hop.hops)
        capacity = known.get(hop.hops)
        above = "" if capacity is None else f"{number(capacity / 1e6)} Mbit/s"
        trip = None if estimate is None else estimate.least_s
        below = "" if trip is None else f"RTT {number(trip * 1e3, 3)} ms"
        links.append(Link(above, below, hop.hops == least))
        name = hop.routers[0] if hop.routers else "silent"
        stops.append(Stop(name, "receiver" if is_last else "switch" if hop.routers else "idle"))
    return chain(
        "The path, hop by hop",
        "Above a link its capacity, where it is known; below it the least round-trip time to the node behind "
        "it. The narrowest link is red.",
        stops,
        links,
    )


def capture_picture(trace: Trace) -> Network | None:
    """Where a capture was taken between the ends of the connection that carried most, by the round trips to
    each of them; None where neither is known."""
    rows = trace.flows().filter(pl.col("aheads") > 0)
    if rows.is_empty():
        return None
    flow = rows.row(0, named=True)

    def trip(end: str) -> str:
        least = flow[f"{end}_min_ps"]
        return "" if least is None else f"RTT {time_text(least)}"

    rate = flow["goodput_bps"]
    goodput = f"{number(rate / 1e6, 3)} Mbit/s" if rate is not None and math.isfinite(rate) else ""
    return chain(
        "Where the capture was taken",
        "The connection that carried most: above a link the least round-trip time from the capture to that "
        "end and back, below it the goodput.",
        [
            Stop(flow["from"], "sender"),
            Stop("capture", "switch"),
            Stop(flow["to"], "receiver"),
        ],
        [Link(trip("behind"), goodput), Link(trip("ahead"), "")],
    )


def campaign_picture(scenario: Scenario, title: str = "The path that was measured") -> Network | None:
    """The lines of the path that a campaign emulates or simulates; None where it measures real hosts."""
    hops: Any = getattr(scenario.testbed, "hops", None)
    if not hops:
        return None
    names = list(hops)
    rates = {name: hops[name].forward.rate.bps for name in names if getattr(hops[name].forward, "rate", None)}
    least = min(rates, key=lambda name: rates[name], default=None)
    links = []
    for name in names:
        line = hops[name].forward
        rate, delay, loss = (getattr(line, field, None) for field in ("rate", "delay", "loss"))
        share = f", loss {percent(float(loss))}" if isinstance(loss, float) and loss else ""
        links.append(Link(str(rate or ""), f"{delay or ''}{share}", name == least and len(rates) > 1))
    inner = [Stop(name, "switch") for name in names[1:]]
    stops = [Stop("sender", "sender"), *inner, Stop("receiver", "receiver")]
    return chain(
        title,
        "Forward direction: rate above a link, delay below it. The whole description is under Scenario.",
        stops,
        links,
    )
