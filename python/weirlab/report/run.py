"""The report of a run: what was carried, what was lost, where it waited.

One file: each table and sentence is a function of one run's records.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from weirlab.errors import WeirlabError
from weirlab.evaluation import evaluated
from weirlab.heavy import np
from weirlab.measures.rows import frame_counts
from weirlab.plots.style import Plot, alike, scaled
from weirlab.records import Records
from weirlab.report import page, shared
from weirlab.report.control import control_sections, deadlocks, held_in_a_cycle, storms
from weirlab.report.story import holds, run_story, sent_again
from weirlab.results import Manifest
from weirlab.runs import Run
from weirlab.scenario import Scenario
from weirlab.stats import mean_interval

_PORTS = 60
_FLOWS = 120


def run_page(run: Run, manifest: Manifest, directory: Path | None = None) -> tuple[page.Page, list[Plot]]:
    """The page, and its plots; captures of a run that was loaded lie in its `directory`."""
    # The commands show tables of this module, and need nothing of this.
    from weirlab.analysis.outcome import hot_ports, hotspot_outcomes
    from weirlab.plots.series import (
        connection_plots,
        delay_plots,
        delivery_plots,
        flow_control_plots,
        limiter_plots,
        port_plots,
    )
    from weirlab.report.connections import connection_sections
    from weirlab.report.hotspots import hotspot_section, hotspot_story
    from weirlab.report.messages import message_sections
    from weirlab.report.network import network_sections
    from weirlab.report.sequence import run_sequences

    records = run.records
    hot = hot_ports(run.scenario)
    outcomes = hotspot_outcomes(run)
    hotspots, hotspot_plots = hotspot_section(run, outcomes)
    moments = _moments(run.scenario)
    plots = [
        *delivery_plots(records, moments),
        *connection_plots(records, moments),
        *port_plots(records, hot, moments, _set_points(run.scenario)),
        *flow_control_plots(records, moments),
        *limiter_plots(records, moments),
        *delay_plots(records),
    ]
    plots = alike(plots)
    end_ps = int(records["runs"].get_column("end_ps")[0])
    count = len(run.seeds)
    sequence = run_sequences(run, directory)
    evaluation = evaluated(records, run.scenario)
    measures: list[page.Block] = []
    if run.scenario.measure:
        notes = map(page.Text, replicates_told(run.records, evaluation.values))
        measures = [measure_table(evaluation.values), *notes]
    messages, of_messages = message_sections(records)
    each = f", {count} replicates" if count > 1 else ""
    made = shared.result_page(
        "Run",
        manifest,
        run.scenario,
        subtitle=run.scenario.description or f"{shared.time_text(end_ps)} of simulated time{each}",
        lead=[
            *(page.Callout("A measure failed.", f"{fault}.", "bad") for fault in evaluation.faults.values()),
            *_lead(records, end_ps, count, kept=run.scenario.run.flows),
        ],
        sections=[
            shared.section("Measures", *measures),
            *hotspots,
            *network_sections(run),
            *messages,
            shared.section("Over time", plots=plots),
            shared.section("Traffic", *(_traffic_blocks(records) if run.scenario.run.flows else ())),
            *connection_sections(records),
            shared.section("Segments", None if sequence is None else sequence[0]),
            shared.section("Ports", *_port_blocks(records, hot)),
            *control_sections(records),
            shared.section("Replicates", _replicate_table(records)),
        ],
        story=[*hotspot_story(outcomes), *run_story(records, run.scenario)],
    )
    return made, [*hotspot_plots, *of_messages, *plots, *([] if sequence is None else [sequence[1]])]


def _moments(scenario: Scenario) -> list[tuple[int, str]]:
    """When each event begins and ends, in the order of time."""
    begins = [(event.when.ps, f"{name} begins") for name, event in scenario.events.items()]
    ends = [(event.until.ps, f"{name} ends") for name, event in scenario.events.items() if event.until]
    return sorted([*begins, *ends])


def _set_points(scenario: Scenario) -> dict[str, float]:
    """Set points [B] of the queues that notify senders, by port."""
    from weirlab.analysis.outcome import set_point_bytes
    from weirlab.analysis.queues import controlled_queues

    point = set_point_bytes(scenario)
    if point is None:
        return {}
    with suppress(WeirlabError):  # theory has no place for some of what can be simulated
        return {each.port: float(point) for each in controlled_queues(scenario)}
    return {}


def run_sentences(records: Records, *, kept: bool) -> list[str]:
    """What was delivered, lost and sent again, where most was lost and waited, and which ports were held.
    `kept`: whether the run kept totals of flows."""
    end_ps = _total_ps(records)
    replicates = records["runs"].height
    time = f"{shared.time_text(end_ps / replicates)} of simulated time"
    each = f" in each of {replicates} replicates" if replicates > 1 else ""
    sentences = [f"{time[0].upper()}{time[1:]}{each}; no totals of flows were kept."]
    if kept:
        flows = _data(records)
        sent, dropped = (int(flows.get_column(f"{what}_frames").sum()) for what in ("sent", "dropped"))
        bits = 8e12 * float(flows.get_column("delivered_bytes").cast(pl.Float64).sum()) / end_ps
        factor, unit = scaled(bits, "rate")
        lost = f"{page.percent(dropped / sent)} of the frames were lost" if dropped else "Nothing was lost"
        rate = f"{page.number(bits * factor)} {unit} delivered in {time}{each}."
        sentences = [f"{lost}: {rate}" if sent else "Nothing was sent before the run ended."]
    sentences += [sent_again(records), *_worst_ports(records), holds(records)]
    sentences = [said for said in sentences if said]
    return sentences + storms(records) + deadlocks(records) + held_in_a_cycle(records)


def replicates_told(records: Records, measures: pl.DataFrame) -> list[str]:
    """That all replicates are the same, where there are several and they are."""
    return (
        [shared.SAME]
        if shared.are_same([records["runs"], records["flows"], records["ports"], measures])
        else []
    )


def _worst_ports(records: Records) -> list[str]:
    """Where most frames were dropped, and which queue of a switch grew longest."""
    ports = (
        records.named("ports")
        .group_by("port_name", maintain_order=True)
        .agg(pl.col("drops").sum(), pl.col("queue_max_bytes").max())
    )
    drops = int(ports.get_column("drops").sum())
    sentences = []
    if drops:
        worst = ports.sort("drops", descending=True, maintain_order=True).row(0, named=True)
        share = "All" if worst["drops"] == drops else f"{page.percent(worst['drops'] / drops)}"
        sentences.append(f"{share} of the drops were at {worst['port_name']}.")
    queues = ports.filter(~pl.col("port_name").is_in(_host_ports(records)))
    if not queues.is_empty() and queues.get_column("queue_max_bytes").max():
        longest = queues.sort("queue_max_bytes", descending=True, maintain_order=True).row(0, named=True)
        factor, unit = scaled(float(longest["queue_max_bytes"]), "bytes")
        size = f"{page.number(longest['queue_max_bytes'] * factor)} {unit}"
        sentences.append(f"The longest queue of a switch was {size}, at {longest['port_name']}.")
    return sentences


def sparklines(records: Records) -> list[str]:
    """Queue and rate over time of the port with the longest queue, of those that were recorded, in the first
    replicate; nothing where none was, or where so much was that it lies in parts."""
    if records.is_parted("intervals"):
        return []
    rows = records.named("intervals").filter(pl.col("replicate") == 0)
    if rows.is_empty():
        return []
    most = rows.group_by("port", maintain_order=True).agg(pl.col("queue_max_bytes").max())
    port = most.sort("queue_max_bytes", descending=True, maintain_order=True).get_column("port")[0]
    rows = rows.filter(pl.col("port") == port).sort("t_ps")
    name, end_ps = rows.get_column("port_name")[0], int(rows.get_column("t_ps")[-1])
    length_s = pl.col("t_ps").diff().fill_null(pl.col("t_ps").first()).cast(pl.Float64) / 1e12
    bits = 8 * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes")).cast(pl.Float64)
    series = rows.select(
        queue=pl.col("queue_max_bytes").cast(pl.Float64), rate=bits / length_s, cell=pl.int_range(pl.len())
    ).with_columns(cell=pl.col("cell") * min(_BARS, rows.height) // rows.height)
    cells = series.group_by("cell", maintain_order=True).agg(pl.col("queue").max(), pl.col("rate").mean())
    lines = []
    for what, kind in (("queue", "bytes"), ("rate", "rate")):
        values = cells.get_column(what).to_list()
        factor, unit = scaled(max(values), kind)
        most_text = f"{page.number(max(values) * factor)} {unit}"
        lines.append(f"{what:<5} {shared.sparkline(values)} up to {most_text}")
    return [f"{name}, from 0 to {shared.time_text(end_ps)}:", *lines]


_BARS = 50


def _host_ports(records: Records) -> list[str]:
    """Ports of hosts, whose queues are the backlog of their own senders."""
    names = records["port_names"]
    if "from_kind" not in names.columns:
        return []
    return names.filter(pl.col("from_kind") == "host").get_column("name").to_list()


def _data(records: Records) -> pl.DataFrame:
    """Flows without what only comes back to senders."""
    flows = records.named("flows")
    return flows.filter(pl.col("carries") == "data") if "carries" in flows.columns else flows


def measure_table(values: pl.DataFrame) -> page.Table:
    """Each measure; with replicates its mean, the confidence interval, the standard deviation and the
    extremes."""
    if values.get_column("replicate").n_unique() <= 1:
        rows = []
        for name, value, unit in values.select("measure", "value", "unit").iter_rows():
            factor, shown = shared.display_unit(unit, abs(value or 0.0))
            rows.append([name, page.number(None if value is None else value * factor), shown])
        columns = page.heads("measure: | value | unit:")
        return page.Table("Measures", columns, rows)
    rows = []
    for (name, unit), group in values.group_by("measure", "unit", maintain_order=True):
        known = group.get_column("value").drop_nulls().to_list()
        factor, shown = shared.display_unit(str(unit), max((abs(value) for value in known), default=0.0))
        interval = mean_interval(known)
        cells = ["–"] * 5
        if interval is not None:
            half = (
                page.half_width_text(interval.mean * factor, interval.half_width * factor)
                if interval.count > 1
                else "–"
            )
            deviation = "–"
            if interval.count > 1:
                spread = float(np.std(known, ddof=1)) * factor
                deviation = page.half_width_text(interval.mean * factor, spread).removeprefix("± ")
            cells = [
                page.mean_text(interval.mean * factor, interval.half_width * factor),
                half,
                deviation,
                page.number(min(known) * factor),
                page.number(max(known) * factor),
            ]
        rows.append([str(name), *cells, shown, str(len(known))])
    return page.Table(
        "Measures over replicates",
        page.heads("measure: | mean | 95 % interval | std. dev. | least | most | unit: | values"),
        rows,
        note="The interval holds the true mean with 95 % confidence (Student's t).",
    )


def traffic_table(records: Records) -> page.Table:
    """What became of the frames of each entry of traffic."""
    return _flow_table(
        _acknowledgements_apart(records.named("flows")), "traffic_name", "Frames by traffic", records
    )


def _acknowledgements_apart(flows: pl.DataFrame) -> pl.DataFrame:
    """Flows with the name of their traffic; what only comes back to senders has one of its own, as measures
    of traffic leave it out."""
    if "carries" not in flows.columns or flows.is_empty():
        return flows
    back = pl.col("carries") == "acknowledgements"
    name = pl.col("traffic_name")
    return flows.with_columns(traffic_name=pl.when(back).then(name + ", acknowledgements").otherwise(name))


def _lead(records: Records, end_ps: int, replicates: int, *, kept: bool) -> Sequence[page.Block]:
    """The figures at the head; without totals of flows (`kept`) only how much was simulated."""
    events = int(records["runs"].get_column("events").sum())
    simulated = page.Card(
        "Simulated",
        shared.time_text(end_ps),
        f"{page.number(events)} events" + (f" in {replicates} replicates" if replicates > 1 else ""),
    )
    if not kept:
        text = "The scenario says 'flows: false': what was sent and delivered was not counted by flow."
        return [page.Numbers([simulated]), page.Callout("No totals of flows", text, "")]
    flows = records.named("flows")
    whose = "all traffic together"
    if "acknowledgements" in (flows["carries"].to_list() if "carries" in flows.columns else ()):
        flows = flows.filter(pl.col("carries") == "data")
        whose += ", without acknowledgements"
    sent, delivered, dropped = (
        int(flows.get_column(f"{what}_frames").sum()) for what in ("sent", "delivered", "dropped")
    )
    bits = 8e12 * float(flows.get_column("delivered_bytes").cast(pl.Float64).sum()) / end_ps / replicates
    factor, unit = scaled(bits, "rate")
    ratio = dropped / sent if sent else None
    cards = [
        page.Card("Delivered rate", f"{page.number(bits * factor)} {unit}", f"L2, {whose}"),
        page.Card(
            "Loss ratio",
            page.percent(ratio),
            f"{page.number(dropped)} of {page.number(sent)} frames",
            tone="middling" if dropped else "good",
        ),
        page.Card("Delivered", f"{page.number(delivered)}", "frames"),
        simulated,
    ]
    blocks: list[page.Block] = [page.Numbers(cards)]
    if sent == 0:
        blocks.append(page.Callout("Nothing was sent", "No source sent a frame before the run ended.", "bad"))
    if held := deadlocks(records) + held_in_a_cycle(records):
        blocks.append(page.Callout("Ports hold each other", " ".join(held), "bad"))
    return blocks


def _traffic_blocks(records: Records) -> Sequence[page.Block]:
    flows = records.named("flows")
    by_traffic = traffic_table(records)
    blocks: list[page.Block] = [by_traffic]
    if flows.get_column("flow").n_unique() > len(by_traffic.rows):
        table = _flow_table(flows, "flow_name", "Frames by flow", records)
        blocks.append(page.Details(f"{table.caption}: {table.total:,} rows", [table]))
    return blocks


def _flow_table(flows: pl.DataFrame, key: str, caption: str, records: Records) -> page.Table:
    """Sums over replicates, delays over all frames."""
    replicates = records["runs"].height
    rows = flows.group_by(key, maintain_order=True).agg(
        pl.col("sent_frames", "delivered_frames", "dropped_frames", "live_frames").sum(),
        rate=8e12 * pl.col("delivered_bytes").cast(pl.Float64).sum(),
        mean=pl.col("delay_sum_ps").cast(pl.Float64).sum() / pl.col("delivered_frames").sum(),
        least=pl.col("delay_min_ps").min(),
        most=pl.col("delay_max_ps").max(),
    )
    rate_factor, rate_unit = scaled(_greatest(rows, "rate") / _total_ps(records), "rate")
    time_unit, delays = shared.quantities("time", *(rows.head(_FLOWS)[name].to_list() for name in _DELAYS))
    cells = [
        [
            str(row[key]),
            page.number(row["sent_frames"]),
            page.number(row["delivered_frames"]),
            page.number(row["dropped_frames"]),
            page.number(row["live_frames"]),
            page.percent(row["dropped_frames"] / row["sent_frames"] if row["sent_frames"] else None),
            page.number(row["rate"] / _total_ps(records) * rate_factor),
            *delay,
        ]
        for row, *delay in zip(rows.head(_FLOWS).iter_rows(named=True), *delays, strict=True)
    ]
    return page.Table(
        caption,
        [
            page.Column(key.removesuffix("_name"), numeric=False),
            *page.heads(
                "sent [frames] | delivered [frames] | dropped [frames] | under way [frames] | "
                f"loss ratio | delivered [{rate_unit}] | least delay [{time_unit}] | "
                f"mean delay [{time_unit}] | largest delay [{time_unit}]"
            ),
        ],
        cells,
        most=_FLOWS,
        total=rows.height,
        where="tables/flows.parquet",
        note=f"Frames are sums over {replicates} replicates." if replicates > 1 else "",
    )


def _port_blocks(records: Records, hot: Sequence[int] = ()) -> Sequence[page.Block]:
    end_ps = _total_ps(records)
    rows = (
        records.named("ports")
        .group_by("port", "port_name", "rate_bps", "framing_bytes", maintain_order=True)
        .agg(
            pl.col("frames", "drops").sum(),
            pl.col("bytes", "queue_byte_ps").cast(pl.Float64).sum(),
            pl.col("queue_max_bytes").max(),
        )
        .with_columns(
            utilisation=8e12
            * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes"))
            / (pl.col("rate_bps").cast(pl.Float64) * end_ps),
            queue=pl.col("queue_byte_ps") / end_ps,
        )
        .filter(pl.col("frames") + pl.col("drops") > 0)
        .with_columns(hot=pl.col("port").is_in(list(hot)))
        .sort(["hot", "drops", "utilisation", "port"], descending=[True, True, True, False])
    )
    unit, queues = shared.quantities("bytes", *(rows.get_column(name).to_list() for name in _QUEUE))
    texts = [pl.Series(f"{name}_text", cells, pl.String) for name, cells in zip(_QUEUE, queues, strict=True)]
    idle = records["port_names"].height - rows.height
    return [
        page.Table.of(
            "Ports, "
            + ("those at hotspots first, then " if rows.get_column("hot").any() else "")
            + "those with most drops first",
            rows.with_columns(texts),
            {"port:": "port_name", "sent [frames]": "frames", "utilisation": ("utilisation", page.percent)},
            {"dropped [frames]": "drops", f"mean queue [{unit}]": ("queue_text", str)},
            {f"largest queue [{unit}]": ("queue_max_bytes_text", str)},
            tones=["middling" if drops else "" for drops in rows["drops"]],
            most=_PORTS,
            where="tables/ports.parquet",
            note=f"{idle} ports that sent nothing are not listed." if idle else "",
        ),
        *_cause_table(records),
    ]


_QUEUE = ("queue", "queue_max_bytes")
_DELAYS = ("least", "mean", "most")


def _cause_table(records: Records) -> Sequence[page.Table]:
    drops = records.named("drops")
    if drops.is_empty():
        return []
    rows = (
        drops.group_by("cause_name", "port_name").agg(pl.col("frames").sum()).sort("frames", descending=True)
    )
    return [
        page.Table.of(
            "Drops by cause",
            rows,
            {"cause:": "cause_name", "port:": "port_name", "frames": "frames"},
            most=30,
            where="tables/drops.parquet",
        )
    ]


def _replicate_table(records: Records) -> page.Table:
    rows = frame_counts(records)
    acknowledged = {
        "acknowledgements [frames]": "acknowledgement_frames",
        "dropped of them [frames]": "dropped_acknowledgements",
    }
    return page.Table.of(
        "Seed and counts of each replicate",
        rows,
        {"replicate": ("replicate", str), "seed": ("seed", str), "events": "events"},
        {"packet-hops": "packet_hops", "sent [frames]": "sent_frames", "dropped [frames]": "dropped_frames"},
        (acknowledged if rows.get_column("acknowledgement_frames").sum() else {}),
        most=20,
        where="tables/runs.parquet",
    )


def _total_ps(records: Records) -> float:
    """Simulated time of all replicates together [ps]."""
    return float(records["runs"].get_column("end_ps").cast(pl.Float64).sum())


def _greatest(table: pl.DataFrame, column: str) -> float:
    value = table.select(pl.col(column).max().cast(pl.Float64)).item()
    return 0.0 if value is None else float(value)
