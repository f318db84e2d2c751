"""Plots of hotspots: what outputs carried before, during and after one, and how long the hot queue was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weirlab.analysis.outcome import HotspotOutcome
from weirlab.plots.envelopes import POINTS, greatest
from weirlab.plots.style import LIGHT, Plot, alt, banded, finished, legend_of, rule, scaled, series_color
from weirlab.records import Records


def hotspot_plots(records: Records, outcome: HotspotOutcome, q_eq_bytes: int | None) -> list[Plot]:
    """Throughput of all outputs, of the hot one and of the innocent ones, and the queue of the hot one;
    nothing of what was not recorded. `q_eq_bytes`: the set point of that queue, if it has one."""
    name = outcome.facts.name
    plots = []
    if not outcome.unrecorded:
        groups = {"all outputs": outcome.outputs, outcome.port_name: [outcome.port]}
        if outcome.innocent:
            groups["innocent outputs"] = outcome.innocent
        plots.append(_throughput(records, outcome, groups))
    queue = _binned(records, {outcome.port_name: [outcome.port]}, pl.col("queue_byte_ps").cast(pl.Float64))
    if queue is not None:
        rows, note = queue
        largest = greatest(rows, "high")
        mark = q_eq_bytes if q_eq_bytes is not None and q_eq_bytes < 20 * largest else None
        factor, unit = scaled(max(largest, mark or 0.0), "bytes")
        rules = rule(mark * factor, f"set point\n{mark * factor:.3g} {unit}", beside=True) if mark else []
        plots.append(
            _drawn(
                rows.with_columns(pl.col("mean", "low", "high") * factor),
                outcome,
                rules=rules,
                most=max(largest, mark or 0.0) * factor,
                name=f"hotspot-{_word(name)}-queue",
                title=f"Queue of the congested output {outcome.port_name}",
                y_title=f"queue [{unit}]",
                description=f"Bytes that waited at {outcome.port_name} over time.",
                note=f"Line: mean; band: up to the largest queue in each interval. {note}",
            )
        )
    return plots


def _throughput(records: Records, outcome: HotspotOutcome, groups: Mapping[str, Sequence[int]]) -> Plot:
    bits = 8e12 * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64)
    found = _binned(records, groups, bits, per="rate_bps")
    assert found is not None, "outputs are recorded"
    rows, note = found
    facts = outcome.facts
    rules = []
    if facts.steady:
        rules = rule(facts.throughput_max, f"at most\n{facts.throughput_max:.3f}", beside=True)
    without = facts.throughput_without_control if facts.steady else None
    if without is not None and without < 0.95 * facts.throughput_max:
        rules += rule(without, f"without\ncontrol\n{without:.3f}", beside=True)
    return _drawn(
        rows,
        outcome,
        rules=rules,
        most=max(1.0, greatest(rows, "high")),
        name=f"hotspot-{_word(facts.name)}-throughput",
        title=f"Throughput while '{facts.name}' lasts",
        y_title="share of line rate",
        description=f"Throughput of {', '.join(groups)} over time, as a share of their line rates.",
        note=note,
    )


def _binned(
    records: Records, groups: Mapping[str, Sequence[int]], amount: pl.Expr, per: str | None = None
) -> tuple[pl.DataFrame, str] | None:
    """Columns `name t_ps mean low high`: the sum of an amount over the ports of a group and over the
    intervals of a bin, by time and by the sum of `per`; lowest and highest of the replicates, or the largest
    queue.

    None where a port was not recorded."""
    names = records["port_names"].select("port", "rate_bps", "framing_bytes")
    tables = []
    for name, ports in groups.items():
        rows = records["intervals"].filter(pl.col("port").is_in(list(ports))).join(names, on="port")
        if rows.get_column("port").n_unique() < len(set(ports)):
            return None
        weight = pl.lit(1.0) if per is None else pl.col(per).cast(pl.Float64).sum()
        sums = rows.group_by("replicate", "t_ps").agg(
            amount=amount.sum(), weight=weight, most=pl.col("queue_max_bytes").max().cast(pl.Float64)
        )
        tables.append(sums.with_columns(name=pl.lit(name)))
    over = ("name", "replicate")
    table = pl.concat(tables).sort("name", "replicate", "t_ps")
    table = table.with_columns(length=(pl.col("t_ps") - pl.col("t_ps").shift(1).over(over).fill_null(0)))
    step = -(-int(table.group_by(over).len().select(pl.col("len").max()).item()) // POINTS)
    bins = table.with_columns(bin=pl.int_range(pl.len()).over(over) // step)
    time = pl.col("length").cast(pl.Float64).sum()
    value = pl.col("amount").sum() / (pl.col("weight").first() * time)
    each = bins.group_by("name", "replicate", "bin").agg(
        t_ps=pl.col("t_ps").max(), value=value, most=pl.col("most").max()
    )
    result = each.group_by("name", "bin").agg(
        t_ps=pl.col("t_ps").max(),
        mean=pl.col("value").mean(),
        low=pl.col("value").min(),
        high=pl.col("value" if per is not None else "most").max(),
    )
    starts = result.filter(pl.col("bin") == 0).with_columns(
        bin=pl.lit(-1, result.schema["bin"]), t_ps=pl.lit(0, result.schema["t_ps"])
    )
    notes = [f"Each point represents {step} intervals."] if step > 1 else []
    count = records["runs"].height
    notes += [f"Mean of {count} replicates; the band holds all of them."] if count > 1 and per else []
    return pl.concat([starts, result]).sort("name", "bin").drop("bin"), " ".join(notes)


def _drawn(
    rows: pl.DataFrame,
    outcome: HotspotOutcome,
    *,
    rules: list[Any],
    most: float,
    name: str,
    title: str,
    y_title: str,
    description: str,
    note: str,
) -> Plot:
    factor, unit = scaled(greatest(rows, "t_ps"), "time")
    data = rows.with_columns(t=pl.col("t_ps") * factor)
    names = data.get_column("name").unique(maintain_order=True).to_list()
    y = alt.Scale(domain=[0, 1.05 * most or 1.0], nice=False)
    x = alt.X("t:Q", title=f"time [{unit}]", scale=alt.Scale(nice=False))
    color = series_color("name", names, legend=legend_of(names, symbolType="stroke"))
    base = alt.Chart(data).encode(x=x, color=color)
    begin, end = (edge * factor for edge in outcome.window)
    last = greatest(data, "t")
    window = alt.Chart(pl.DataFrame({"from": [begin], "to": [min(end, last)]}))
    until = alt.X("from:Q", title=f"time [{unit}]")
    shade = window.mark_rect(color=LIGHT["shade"]).encode(x=until, x2="to:Q")
    layers = [shade, *rules, *banded(base, alt.Y("low:Q", title=y_title, scale=y))]
    return finished(
        [alt.layer(*layers)],
        name=name,
        title=title,
        description=description,
        note=f"Shaded: the time of the hotspot. {note}".strip(),
    )


def _word(text: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in text.lower())
