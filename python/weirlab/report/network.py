"""The picture of a run's network: how loaded links were and where queues stood, in all and over time."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from weirlab import _core
from weirlab.heavy import np
from weirlab.plots.style import scaled
from weirlab.plots.topology import Picture, arranged, roles, svg_parts
from weirlab.records import Records
from weirlab.report.page import Network, Section, number, percent
from weirlab.runs import Run
from weirlab.scenario import Scenario
from weirlab.scenario.network.layout import Layout, layout_of, plan_network
from weirlab.scenario.traffic.flows import flows_of

WIDTH = 900
"""Of the picture, in its own units."""
STEPS = 600
"""Most steps of time."""
CELLS = 600_000
"""Most values of one kind that a page holds: steps times ports."""
LEVELS = 8
"""Colours of links that carry something."""
UNKNOWN = 0xFFFF
"""Utilisation of a port that has no series at that time."""
QUEUE_LENGTH = 0.42
"""Share of a link that the longest queue fills."""


@dataclass(frozen=True)
class Totals:
    """What each port did in the whole run; arrays in the order of ports."""

    utilisation: Any
    """Share of the time that it transmitted, in 1/1000."""
    drops: Any
    queue: Any
    """Most bytes that waited."""
    paused: Any
    """Share of the time that PAUSE held it, in 1/1000."""


@dataclass(frozen=True)
class Series:
    """What ports did from step to step; matrices of ports and steps."""

    ends_ps: Sequence[int]
    ports: Sequence[int]
    utilisation: Any
    """In 1/1000; UNKNOWN where the port has no series."""
    queue: Any
    drops: Any
    paused: Any
    """Share of the step for which PAUSE held the port, in 1/1000; None in results of earlier versions."""
    merged: int
    """Recorded intervals in one step."""


def network_sections(run: Run) -> list[Section]:
    """The picture of the network; none where the testbed has its own."""
    if run.scenario.network is None:
        return []
    layout = layout_of(plan_network(run.scenario.network).spec)
    if not layout.ports:
        return []
    senders, receivers = _ends(run.scenario, layout)
    messages = run.records["messages"] if "messages" in run.records else pl.DataFrame()
    if not messages.is_empty():  # of traffic that has no flows of its own, such as collective operations
        senders |= {layout.nodes[node] for node in messages["from_node"].unique()}
        receivers |= {layout.nodes[node] for node in messages["to_node"].unique()}
    return [Section("Network", [_picture(run, layout, senders, receivers)])]


def still_sections(scenario: Scenario) -> list[Section]:
    """The network of a scenario alone, as its points have it unless a factor changes it."""
    if scenario.network is None:
        return []
    layout = layout_of(plan_network(scenario.network).spec)
    if not layout.ports:
        return []
    senders, receivers = _ends(scenario, layout)
    picture = arranged(layout, senders, WIDTH)
    rates = sorted({port.rate_bps for port in layout.ports})
    factor, unit = scaled(float(rates[-1]), "rate")
    span = " to ".join(dict.fromkeys(f"{number(rate * factor)}" for rate in (rates[0], rates[-1])))
    words = f"{_counted(layout)}, links of {span} {unit}."
    parts = svg_parts(picture, ["c2"] * len(picture.edges), roles(picture, layout, senders, receivers), {})
    svg = _svg(picture, words, parts)
    changed = (
        [path for path in scenario.study.factors if path.startswith("network")] if scenario.study else []
    )
    note = f"{words} Green hosts send, orange ones only receive."
    if changed:
        note += (
            f" {' and '.join(changed)} differ from point to point; drawn is what the scenario says itself."
        )
    return [Section("Network", [Network("The network of each point", note, svg, "", "still")])]


def _ends(scenario: Scenario, layout: Layout) -> tuple[frozenset[str], frozenset[str]]:
    """The nodes that send and those that receive by the flows of a scenario."""
    flows = [flow for traffic in scenario.traffic.values() for flow in flows_of(traffic, layout)]
    senders = frozenset(layout.nodes[flow.source] for flow in flows)
    return senders, frozenset(layout.nodes[target] for flow in flows for target in flow.targets)


def _counted(layout: Layout) -> str:
    hosts, switches = len(layout.hosts), len(layout.nodes) - len(layout.hosts)
    return f"{hosts} host{'s' * (hosts != 1)} and {switches} switch{'es' * (switches != 1)}"


def _svg(picture: Picture, words: str, parts: Iterable[str]) -> str:
    count = len(picture.edges)
    crowded = " crowded dense" if count > 2000 else " crowded" if count > 300 else ""
    return (
        f'<svg class="network{crowded}" viewBox="0 0 {picture.width:g} {picture.height:g}" role="img" '
        f'aria-label="{escape(words)}">{"".join(parts)}</svg>'
    )


def totals(records: Records, count: int) -> Totals:
    """Of the first replicate."""
    end_ps = int(records["runs"].get_column("end_ps")[0])
    rows = records.named("ports").filter(pl.col("replicate") == 0)
    places = rows.get_column("port").to_numpy()
    bits = 8e12 * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64)
    found = rows.select(
        utilisation=_thousandths(bits / (pl.col("rate_bps").cast(pl.Float64) * end_ps)),
        drops=pl.col("drops"),
        queue=pl.col("queue_max_bytes"),
        paused=_thousandths(pl.lit(_held_ps(records, places)) / end_ps),
    )

    def column(name: str) -> Any:
        values = np.zeros(count, dtype=np.int64)
        values[places] = found.get_column(name).cast(pl.Int64).to_numpy()
        return values

    return Totals(*(column(name) for name in ("utilisation", "drops", "queue", "paused")))


def _held_ps(records: Records, ports: Any) -> pl.Series:
    """For how long PAUSE held each port in the first replicate, or PFC the class that it held longest."""
    rows = records["ports"].filter(pl.col("replicate") == 0).select("port", "paused_ps")
    if "holds" in records:
        held = records["holds"].filter(pl.col("replicate") == 0).group_by("port").agg(pl.col("held_ps").max())
        rows = rows.join(held, on="port", how="left").with_columns(
            paused_ps=pl.max_horizontal("paused_ps", "held_ps")
        )
    known = dict(rows.select("port", "paused_ps").iter_rows())
    return pl.Series([known[port] for port in ports], dtype=pl.Float64)


def _holds(records: Records) -> dict[int, str]:
    """What is said of each port that PFC held in the first replicate: classes, and because of whom."""
    if "holds" not in records or records["holds"].is_empty():
        return {}
    end_ps = float(records["runs"].get_column("end_ps")[0])
    names = records["port_names"].select("port", root="name")
    held = records["holds"].filter(pl.col("replicate") == 0, pl.col("held_ps") > 0)
    causes = (
        records["hold_causes"]
        .filter(pl.col("replicate") == 0)
        .sort("stopped_ps", descending=True)
        .unique(["port", "class"], keep="first", maintain_order=True)
        .join(names.rename({"port": "root_port"}), on="root_port", how="left")
        .select("port", "class", "root")
    )
    said: dict[int, list[str]] = {}
    rows = held.join(causes, on=["port", "class"], how="left").sort("port", "class")
    for port, class_, held_ps, root in rows.select("port", "class", "held_ps", "root").iter_rows():
        because = f", mostly because of {root}" if root is not None else ""
        said.setdefault(port, []).append(
            f"class {class_} held for {percent(held_ps / end_ps)} of the run{because}"
        )
    return {port: "; ".join(each) for port, each in said.items()}


def series(records: Records) -> Series | None:
    """Of the first replicate, on one grid of time for all ports; None where no port was recorded."""
    rows = records.named("intervals").filter(pl.col("replicate") == 0).sort("port", "t_ps")
    if "hold_intervals" in records:
        # Of the classes that PFC held the one that it held longest; PAUSE holds all.
        longest = records["hold_intervals"].filter(pl.col("replicate") == 0)
        longest = longest.group_by("port", "t_ps").agg(held=pl.col("held_ps").max())
        rows = rows.join(longest, on=["port", "t_ps"], how="left", maintain_order="left")
        rows = rows.with_columns(paused_ps=pl.max_horizontal("paused_ps", "held")).drop("held")
    if rows.is_empty():
        return None
    ends = rows.get_column("t_ps").unique().sort()
    ports = rows.get_column("port").unique().sort()
    most = max(1, min(STEPS, CELLS // len(ports)))
    merged = -(-len(ends) // most)
    kept = ends.gather([*range(merged - 1, len(ends) - 1, merged), len(ends) - 1])
    grid = kept.to_numpy()
    length = pl.col("t_ps") - pl.col("t_ps").shift(1).over("port").fill_null(0)
    cells = (
        rows.with_columns(
            length=length.cast(pl.Float64), step=pl.Series(np.searchsorted(grid, rows["t_ps"].to_numpy()))
        )
        .group_by("port", "step")
        .agg(
            utilisation=_thousandths(
                8e12
                * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64).sum()
                / (pl.col("rate_bps").first().cast(pl.Float64) * pl.col("length").sum())
            ),
            queue=pl.col("queue_max_bytes").max(),
            drops=pl.col("drops").sum(),
            paused=_thousandths(pl.col("paused_ps").cast(pl.Float64).sum() / pl.col("length").sum()),
        )
    )
    shape = (len(ports), len(grid))
    utilisation = np.full(shape, UNKNOWN, dtype="<u2")
    queue, drops = np.zeros(shape, dtype="<u4"), np.zeros(shape, dtype="<u4")
    paused = np.zeros(shape, dtype="<u2")
    at = np.searchsorted(ports.to_numpy(), cells["port"].to_numpy()), cells["step"].to_numpy()
    utilisation[at] = np.minimum(cells["utilisation"].to_numpy(), UNKNOWN - 1)
    queue[at] = np.minimum(cells["queue"].to_numpy(), 2**32 - 1)
    drops[at] = np.minimum(cells["drops"].to_numpy(), 2**32 - 1)
    is_known = rows.get_column("paused_ps").null_count() == 0
    if is_known:
        paused[at] = cells["paused"].to_numpy()
    _fill_backwards(utilisation, queue, paused)
    played = paused if is_known else None
    return Series(kept.to_list(), ports.to_list(), utilisation, queue, drops, played, merged)


def _fill_backwards(utilisation: Any, *others: Any) -> None:
    """A port of longer intervals than others shows the one that a step lies in; drops stand at its end."""
    for row, *rest in zip(utilisation, *others, strict=True):
        known = np.flatnonzero(row != UNKNOWN)
        if len(known) == len(row):
            continue
        steps = np.arange(known[-1] + 1)
        source = known[np.searchsorted(known, steps)]
        for each in (row, *rest):
            each[steps] = each[source]


def _thousandths(share: pl.Expr) -> pl.Expr:
    return (share * 1000).round().fill_nan(0).cast(pl.Int64)


def _picture(run: Run, layout: Layout, senders: frozenset[str], receivers: frozenset[str]) -> Network:
    picture = arranged(layout, senders, WIDTH)
    whole, steps = totals(run.records, len(layout.ports)), series(run.records)
    kinds = roles(picture, layout, senders, receivers)
    load = [int(max(whole.utilisation[p] for p in edge.ports)) for edge in picture.edges]
    queues = [int(max(whole.queue[p] for p in edge.ports)) for edge in picture.edges]
    longest = max(queues, default=0)
    bars = {i: QUEUE_LENGTH * queue / longest for i, queue in enumerate(queues) if queue}
    busiest = int(np.argmax(whole.utilisation))
    used = percent(whole.utilisation[busiest] / 1000)
    words = (
        f"Network of {_counted(layout)}. The busiest link was {layout.ports[busiest].name}, {used} utilised."
    )
    parts = svg_parts(picture, [f"c{level(each)}" for each in load], kinds, bars)
    svg = _svg(picture, words, parts)
    data = _data(layout, picture, whole, steps, kinds) | {
        "flows": _flows(run, layout),
        "holds": _holds(run.records),
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Network(
        "Load of links in the whole run", _note(run, picture, steps), svg, text.replace("<", "\\u003c")
    )


FLOWS = 100
"""Most flows that can be chosen: those with most bytes."""
_SLICES = 120
"""Steps of the series of a flow."""


def _flows(run: Run, layout: Layout) -> list[dict[str, object]]:
    """The flows of the first replicate with most bytes: what became of their frames, the ports on their way,
    and what was delivered over time where that was recorded [bit/s, in equal parts of the run]."""
    rows = run.records.named("flows").filter(pl.col("replicate") == 0)
    if rows.is_empty() or run.scenario.network is None:
        return []
    ids = {name: i for i, name in enumerate(layout.nodes)}
    ends = run.records["flow_names"].filter(
        pl.col("from").is_in(layout.nodes) & pl.col("to").is_in(layout.nodes)
    )
    ends = ends.filter(pl.col("from") != pl.col("to")).select("flow", pl.col("from", "to"))
    rows = rows.drop("from", "to", strict=False).join(ends, on="flow")
    rows = rows.sort("sent_bytes", "flow", descending=[True, False]).head(FLOWS)
    pairs = [(ids[begin], ids[end]) for begin, end in rows.select("from", "to").iter_rows()]
    ways = _core.paths(plan_network(run.scenario.network).spec.json(), pairs) if pairs else []
    end_ps = int(run.records["runs"].filter(replicate=0).item(0, "end_ps"))
    delivered = run.records["flow_deliveries"].filter(pl.col("replicate") == 0)
    place = (pl.col("t_ps").cast(pl.Float64) * _SLICES / end_ps).ceil().cast(pl.Int64) - 1
    sums = delivered.group_by("flow", place=place.clip(0, _SLICES - 1)).agg(pl.col("bytes").sum())
    series: dict[int, list[int]] = {}
    for flow, slot, size in sums.iter_rows():
        series.setdefault(flow, [0] * _SLICES)[slot] = round(8e12 * size * _SLICES / end_ps)
    return [
        {
            "name": row["flow_name"],
            "ports": way,
            "sent": row["sent_frames"],
            "delivered": row["delivered_frames"],
            "dropped": row["dropped_frames"],
            "bps": round(8e12 * row["delivered_bytes"] / end_ps),
            "delay": round(row["delay_sum_ps"] / row["delivered_frames"])
            if row["delivered_frames"]
            else None,
            "most": row["delay_max_ps"],
            "series": series.get(row["flow"]),
        }
        for row, way in zip(rows.iter_rows(named=True), ways, strict=True)
    ]


def level(thousandths: int) -> int:
    """The colour of a utilisation: 0 for none at all, up to LEVELS."""
    return 0 if thousandths == 0 else min(LEVELS, 1 + thousandths * LEVELS // 1000)


def _note(run: Run, picture: Picture, steps: Series | None) -> str:
    said = [
        "The two directions of a link run side by side. A bar at the start of a link is the longest "
        "queue there; green hosts send, orange ones only receive."
    ]
    if len(run.seeds) > 1:
        said.append(f"The first of {len(run.seeds)} replicates.")
    if any(node.is_folded for node in picture.nodes):
        said.append("Hosts of a switch are drawn as one, with the colour of the most loaded link.")
    if steps is None:
        said.append(
            "No port was recorded over time; 'record: {all: {queue: \"*->*\", every: ...}}' does that."
        )
    elif steps.merged > 1:
        said.append(f"A step in time is {steps.merged} recorded intervals.")
    return " ".join(said)


def _data(
    layout: Layout, picture: Picture, whole: Totals, steps: Series | None, kinds: Sequence[str]
) -> dict[str, object]:
    """All numbers as integers; times in ps."""
    ids = {name: i for i, name in enumerate(layout.nodes)}
    odd = {i: p.name for i, p in enumerate(layout.ports) if p.name != f"{p.source}->{p.target}"}
    found: dict[str, object] = {
        "nodes": layout.nodes,
        "ports": [[ids[p.source], ids[p.target]] for p in layout.ports],
        "names": odd,
        "rates": [p.rate_bps for p in layout.ports],
        "drawn": [node.members for node in picture.nodes],
        "kinds": kinds,
        "edges": [[e.source, e.target, *e.ports] for e in picture.edges],
        "utilisation": whole.utilisation.tolist(),
        "drops": whole.drops.tolist(),
        "queue": whole.queue.tolist(),
        "paused": whole.paused.tolist(),
        "ends": [],
    }
    if steps is not None:
        matrices = (steps.queue, steps.drops, steps.utilisation, steps.paused)
        packed = zlib.compress(b"".join(each.tobytes() for each in matrices if each is not None), 9)
        found |= {
            "ends": list(steps.ends_ps),
            "recorded": list(steps.ports),
            "played": steps.paused is not None,
            "series": b64encode(packed).decode(),
        }
    return found
