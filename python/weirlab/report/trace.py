"""The report of a trace: its flows, what was found, and the plots.

One file: each block is a function of one trace, in the order of the page.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weirlab.plots.style import Plot, alike, scaled
from weirlab.plots.trace import trace_plots
from weirlab.report import page, shared
from weirlab.report.sequence import sequence_block
from weirlab.results import Manifest
from weirlab.traces import Finding, Trace, diagnose
from weirlab.traces.coverage import Coverage, coverage
from weirlab.traces.findings import LEAST_PACKETS
from weirlab.traces.model import PROTOCOLS, Row
from weirlab.traces.summary import gap_quantiles, limits, stream_shapes

_REPEATED = 10
"""Directions of which it is reported how often segments were sent again."""


def trace_page(trace: Trace, manifest: Manifest) -> tuple[page.Page, list[Plot]]:
    """The page, and its plots."""
    from weirlab.report.chain import capture_picture  # which loads scenarios; tables need none

    findings = diagnose(trace)
    plots = alike(trace_plots(trace))
    graphs = sequence_block(trace)
    facts = trace.facts
    problems = sum(finding.verdict == "problem" for finding in findings)
    factor, unit = scaled(float(facts["frame_bytes"]), "bytes")
    lead: list[page.Block] = [
        page.Numbers(
            [
                page.Card(
                    "Frames",
                    page.number(facts["frames"]),
                    f"{page.number(facts['frame_bytes'] * factor)} {unit} on the wire",
                ),
                page.Card("Length", shared.time_text(float(facts["end_ps"])), facts["format"]),
                page.Card("Connections", page.number(trace.flows().get_column("connection").n_unique())),
                page.Card(
                    "Problems",
                    str(problems),
                    f"and {len(findings) - problems} notices",
                    tone="bad" if problems else "good",
                ),
            ]
        ),
    ]
    graph = None if graphs is None else graphs[0]
    made = shared.result_page(
        "Trace",
        manifest,
        title=trace.name,
        lead=lead,
        sections=[
            shared.section("Findings", *_finding_blocks(trace, findings)),
            shared.section("Network", capture_picture(trace)),
            shared.section("Flows", *flow_tables(trace), *detail_tables(trace)),
            shared.section("Plots", graph, plots=plots, otherwise="Nothing that carries data was seen."),
            shared.section("The capture", _capture_table(facts), _interface_table(trace)),
        ],
        story=trace_sentences(trace, findings, coverage(trace)),
    )
    return made, plots if graphs is None else [graphs[1], *plots]


def trace_sentences(trace: Trace, findings: Sequence[Finding], looked: Coverage) -> list[str]:
    """What was found, and what the capture holds."""
    facts = trace.facts
    if trace.flows().is_empty():
        cut = facts["short_frames"] == facts["frames"]
        why = "cut so short that none shows an address" if cut else "and none of IP among them"
        return [f"{trace.name}: {facts['frames']:,} frames, {why}."]
    connections = trace.flows().get_column("connection").n_unique()
    time = shared.time_text(float(facts["end_ps"]))
    many = f"{connections} connection{'s' * (connections != 1)}"
    held = f"{page.number(facts['frames'])} frames of {many} in {time}."
    return [*diagnosis_sentences(findings, looked), held]


def diagnosis_sentences(findings: Sequence[Finding], looked: Coverage | None) -> list[str]:
    """The findings in a sentence, problems first. `looked`: what was looked for in a capture; None of the
    records of a run."""
    if not findings:
        if looked is not None and not looked.directions:
            return [f"Nothing was judged: no TCP direction has {LEAST_PACKETS} segments of data."]
        if looked is not None and looked.reasons:
            return ["Nothing was found, but the capture does not show enough to look for everything."]
        return ["Nothing was found that limited the flows or went wrong."]
    # What a capture shows badly comes after what happened to its flows.
    ordered = sorted(findings, key=lambda each: (each.verdict != "problem", each.kind.startswith("capture")))
    first, *_ = ordered
    flows = sum(each.title == first.title for each in findings)
    where = f" in {flows} flows; of the first" if flows > 1 else ""
    what = first.text.partition(". ")[0].removesuffix(".")
    others = list(dict.fromkeys(each.title for each in ordered if each.title != first.title))
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    also = [f"Also: {'; '.join(others[:3])}{more}."] if others else []
    return [f"{first.verdict.capitalize()}: {first.title}{where}: {what}.", *also]


def flow_tables(trace: Trace, most: int = 30, kept: str = "tables/{}") -> list[page.Table]:
    """What each direction carried, and what came twice or late, most bytes first: two tables, each no wider
    than a page. `kept` says where whole tables are."""
    flows = trace.flows()
    shown = flows.head(most)
    rate_unit, (rates,) = shared.quantities("rate", shown["goodput_bps"].to_list())
    size_unit, (sizes,) = shared.quantities("bytes", shown["payload_bytes"].to_list())
    of_tcp = pl.col("protocol") == 6
    shown = shown.with_columns(
        pl.Series("size", sizes, pl.String),
        pl.Series("rate", rates, pl.String),
        again=pl.when(of_tcp).then("retransmitted"),
        again_ratio=pl.when(of_tcp).then("retransmitted_ratio"),
    )
    where = kept.format("flows.parquet")
    return [
        page.Table.of(
            "Flows: the directions of connections, most bytes first",
            shown,
            {
                "flow:": "name",
                "protocol:": ("protocol", lambda code: PROTOCOLS.get(code, str(code))),
                "packets": "packets",
                f"payload [{size_unit}]": ("size", str),
                "start [s]": ("first_ps", lambda ps: "–" if ps is None else f"{ps / 1e12:.4f}"),
                "active [s]": "active_s",
                f"goodput [{rate_unit}]": ("rate", str),
            },
            most=most,
            total=flows.height,
            where=where,
            note="Goodput: bytes seen for the first time, over the time from first to last data.",
        ),
        page.Table.of(
            "Repetitions and round trips of the flows",
            shown,
            {"flow:": "name", "sent again": "again", "of data": ("again_ratio", page.percent)},
            {"reordered": "reordered", "RTT min [ms]": ("rtt_min_ps", _ms)},
            {"mean [ms]": ("rtt_mean_ps", _ms), "max [ms]": ("rtt_max_ps", _ms)},
            most=most,
            total=flows.height,
            where=where,
            note="RTT: from data to its acknowledgment at the place of the capture.",
        ),
    ]


def finding_table(trace: Trace, findings: Sequence[Finding], most: int = 100, where: str = "") -> page.Table:
    """One row per finding; `where` says where all of them are."""

    def flow(place: int | None) -> str:
        return "whole trace" if place is None else trace.flow_name(place)

    return page.Table.of(
        "Findings",
        findings,
        {"verdict:": "verdict", "finding:": "kind", "flow:": ("flow", flow), "what was found:": "text"},
        tones=["bad" if finding.verdict == "problem" else "middling" for finding in findings],
        most=most,
        where=where,
    )


def _finding_blocks(trace: Trace, findings: Sequence[Finding]) -> list[page.Block]:
    """The findings by kind; those of many flows are folded behind the first."""
    if not findings:
        return [page.Text("Nothing was found that limited the flows or went wrong.")]
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.kind, []).append(finding)
    blocks: list[page.Block] = []
    for of_kind in kinds.values():
        first, *others = of_kind
        blocks += _finding_block(trace, first)
        if first.remedy:
            blocks.insert(-1 if first.evidence else len(blocks), page.Text(f"What to do: {first.remedy}"))
        if others:
            folded = [block for finding in others[:_FOLDED] for block in _finding_block(trace, finding)]
            if len(others) > _FOLDED:
                folded.append(page.Text(f"The first {_FOLDED} of {len(others)}."))
            title = f"{first.title}: {len(others)} more flow{'s' * (len(others) > 1)}"
            blocks.append(page.Details(title, folded))
    return blocks


_FOLDED = 40
"""Findings of one kind that a page shows."""


def _finding_block(trace: Trace, finding: Finding) -> list[page.Block]:
    """A finding with what it rests on."""
    where = "" if finding.flow is None else f"{trace.flow_name(finding.flow)}: "
    tone: page.Tone = "bad" if finding.verdict == "problem" else "middling"
    blocks: list[page.Block] = [
        page.Callout(f"{finding.title} ({finding.kind})", f"{where}{finding.text}", tone)
    ]
    if finding.evidence:
        blocks.append(page.Details("Evidence", [shared.evidence_table("Where to look", finding.evidence)]))
    return blocks


def detail_tables(trace: Trace, most: int = 30, kept: str = "tables/{}") -> list[page.Table]:
    """What limited the directions with most bytes, their gaps, how often segments were sent again, and the
    shapes of probe streams; tables that have nothing to say are left out. `kept` says where whole tables
    are."""
    tables = [
        _limits(trace, most, kept),
        _gaps(trace, most, kept),
        _repeats(trace, kept),
        _streams(trace, kept),
    ]
    return [table for table in tables if table.rows]


def _limits(trace: Trace, most: int, kept: str) -> page.Table:
    rows = limits(trace)
    return page.Table.of(
        "What limited the senders, in shares of their active time",
        rows.head(most).with_columns(flight_kb=pl.col("flight_max_bytes") / 1e3),
        {
            "flow:": "name",
            "window full": ("window_limited", page.percent),
            "window closed": ("window_closed", page.percent),
            "nothing to send": ("idle", page.percent),
            "stalled": ("stalled", page.percent),
            "most in flight [kB]": "flight_kb",
        },
        most=most,
        total=rows.height,
        where=kept.format("flows.parquet"),
        note="Window: of the receiver. Nothing to send: all was acknowledged. What is left is the sender's "
        "own window, its pace, or the path.",
    )


def _gaps(trace: Trace, most: int, kept: str) -> page.Table:
    flows = trace.flows().select("flow", "name")
    rows = flows.join(gap_quantiles(trace), on="flow", maintain_order="left")
    return page.Table.of(
        "Gaps between packets with data",
        rows.head(most),
        {"flow:": "name", "gaps": "gaps", "least [µs]": ("least_ps", _us), "median [µs]": ("median_ps", _us)},
        {"99 % [µs]": ("p99_ps", _us), "most [µs]": ("most_ps", _us)},
        most=most,
        total=rows.height,
        where=kept.format("gaps.parquet"),
    )


def _repeats(trace: Trace, kept: str) -> page.Table:
    table = trace["repeats"]
    order = ["total", "flow"]
    heavy = (
        table.group_by("flow")
        .agg(total=pl.col("segments").sum())
        .sort(order, descending=[True, False])
        .head(_REPEATED)
    )
    return page.Table.of(
        "How often segments were sent again",
        table.join(heavy, on="flow", how="semi").sort("flow", "times"),
        {"flow:": ("flow", trace.flow_name), "times": ("times", str), "segments": "segments"},
        {"of these for nothing": "spurious_segments"},
        most=40,
        total=table.height,
        where=kept.format("repeats.parquet"),
        note="For nothing: the receiver said that it had the data (DSACK).",
    )


def _streams(trace: Trace, kept: str) -> page.Table:
    return page.Table.of(
        "Probe streams by shape",
        stream_shapes(trace),
        {"flow:": ("flow", trace.flow_name), "packets of a stream": "packets", "shape:": "shape"},
        {"streams": "streams", "mean gap [µs]": ("mean_gap_ps", _us)},
        where=kept.format("p_streams.parquet"),
    )


def _capture_table(facts: Row) -> page.Table:
    names = {
        "format": "format",
        "ending": "end of the file",
        "frames": "frames",
        "snapped_frames": "frames not kept whole",
        "ip_packets": "IP packets",
        "other_frames": "other frames",
        "unknown_link_frames": "frames of links that are not looked into",
        "unstamped_frames": "frames without a stamp",
        "short_frames": "frames too short to classify",
        "malformed_frames": "malformed",
        "fragments": "fragments",
        "backward_stamps": "stamps that go back",
        "untracked_packets": "packets of connections beyond the most",
        "left_out_rows": "rows beyond the most",
    }
    rows = [
        [text, facts[name] if isinstance(facts[name], str) else page.number(facts[name])]
        for name, text in names.items()
    ]
    return page.Table("The capture", page.heads("fact: | value:"), rows)


def _interface_table(trace: Trace) -> page.Table:
    return page.Table.of(
        "Interfaces",
        trace["interfaces"],
        {"name:": ("name", lambda name: name or "–"), "link:": "link", "kept at most [B]": "snap_bytes"},
        {"ticks [1/s]": "ticks_per_s", "frames": "frames", "lost": "lost_frames"},
        note="Kept at most 0: no limit is reported.",
    )


def _ms(ps: float | None) -> str:
    return page.number(None if ps is None else ps / 1e9)


def _us(ps: float) -> str:
    return page.number(ps / 1e6)
