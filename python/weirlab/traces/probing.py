"""Findings about senders that probe with streams of falling gaps (Rapid), from departures alone.

Source: Rapid UDP, (4): I the send gaps fail to fall exponentially, II some are extremely large and some
extremely small, III repeated recovery, IV back-to-back packets at the head of streams. What needs the
receiver's stamps (excursions, the available bandwidth that was estimated) cannot be told from a trace.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.traces.capture import merged_connections
from weirlab.traces.model import Finding, Trace, evidence_of

KINDS = ("ramp-lost", "tail-spill", "repeated-recovery")
"""What is looked for in directions that send probe streams."""


INTACT = 0.6
"""Share of streams that must be ramps: below, the ramp is lost (I)."""
_HEAD = 3
"""Packets at the head of a stream that leave at line rate though its first gap is larger (IV), of eight."""
_HEAD_GAP = 1.3
SPILT_SHARE = 0.1
"""Share of streams that may begin so."""
_SLOWER = 0.8
"""In recoveries a sender is slowed down when it keeps less than this share of its throughput (III)."""
_LEAST_STREAMS = 10
"""Streams that are no trains below which ramps are not judged."""


def probing_findings(trace: Trace) -> Iterator[Finding]:
    """Findings of every flow that sends probe streams."""
    streams = trace["p_streams"].join(trace["stream_kind_names"], on="kind")
    merged = set(merged_connections(trace))
    for row in trace["details"].filter(pl.col("stream_packets").is_not_null()).iter_rows(named=True):
        flow = row["flow"]
        if flow // 2 in merged:
            continue
        mine = streams.filter(pl.col("flow") == flow)
        if mine.is_empty():
            continue
        yield from _ramps(flow, mine)
        yield from _heads(flow, mine, row["line_gap_ps_per_byte"])
        yield from _recoveries(trace, flow)


def _ramps(flow: int, streams: pl.DataFrame) -> Iterator[Finding]:
    counts = dict(streams.group_by("name").len().iter_rows())
    # A train is all that a sender that asks for the link's rate can send, and says nothing by itself.
    probing = streams.filter(~pl.col("name").is_in(["recovery", "train"]))
    if probing.height < _LEAST_STREAMS:
        return
    intact = float(probing.select((pl.col("name") == "ramp").mean()).item())
    if intact >= INTACT:
        return
    words = ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
    bad = probing.filter(pl.col("name") != "ramp")
    yield Finding(
        "ramp-lost",
        "problem",
        "Probe streams lost their ramp",
        f"Only {intact:.0%} of the {probing.height:,} streams that are no trains at the line's rate have "
        f"gaps that fall exponentially ({words}). Estimates that rest on the others are worthless.",
        flow,
        {"intact_ratio": intact, "streams": float(probing.height)},
        evidence_of(
            bad.sort("max_gap_ps", descending=True),
            stream="stream",
            shape="name",
            median_gap_us=("median_gap_ps", 1e6),
            max_gap_us=("max_gap_ps", 1e6),
        ),
    )


def _heads(flow: int, streams: pl.DataFrame, line_ps_per_byte: float | None) -> Iterator[Finding]:
    if line_ps_per_byte is None:
        return
    # A full frame at line rate: the floor of all gaps.
    line_ps = line_ps_per_byte * 1538
    headed = (pl.col("head_at_line_rate") >= _HEAD) & (pl.col("first_gap_ps") > _HEAD_GAP * line_ps)
    # Behind packets of the line, a stream that begins with what is left of a gap was late.
    behind = streams.filter(pl.col("late").is_not_null())
    spilt = streams.filter(headed | (pl.col("late").fill_null(0) == 1))
    late = behind.filter(pl.col("late") == 1).height
    by_lateness = behind.height >= _LEAST_STREAMS and late > SPILT_SHARE * behind.height
    if not by_lateness and spilt.filter(headed).height <= SPILT_SHARE * streams.height:
        return
    many, all_of_them = (late, behind.height) if by_lateness else (spilt.height, streams.height)
    what = (
        "that follow packets at line rate start with the remainder of a gap"
        if by_lateness
        else f"begin with at least {_HEAD} of eight packets at line rate, though their first gap is larger"
    )
    text = f"{many:,} of {all_of_them:,} streams {what}"
    yield Finding(
        "tail-spill",
        "problem",
        "Streams start with packets back to back",
        f"{text}: the tail of the stream before was sent faster than the link and spilt into them.",
        flow,
        {"spilt_ratio": many / all_of_them},
        evidence_of(spilt, stream="stream", at_line_rate="head_at_line_rate"),
    )


def _recoveries(trace: Trace, flow: int) -> Iterator[Finding]:
    """Throughput in recoveries compared with that outside of them."""
    rows = trace["recoveries"].filter((pl.col("flow") == flow) & (pl.col("ended") == 1))
    facts = trace["flows"].row(by_predicate=pl.col("flow") == flow, named=True)
    whole = facts["last_data_ps"] - facts["first_data_ps"] if facts["first_data_ps"] is not None else 0
    if rows.height < 2 or whole <= 0:
        return
    rows = rows.with_columns(length_ps=pl.col("end_ps") - pl.col("t_ps"))
    off_ps = float(rows.get_column("length_ps").sum())
    off_bytes = float(rows.get_column("acked_bytes").sum())
    if off_ps <= 0 or off_ps >= whole:
        return
    off_bps = off_bytes * 8e12 / off_ps
    on_bps = max(facts["acked_bytes"] - off_bytes, 0.0) * 8e12 / (whole - off_ps)
    if off_bps >= _SLOWER * on_bps:
        return
    timeouts = int(rows.get_column("timeouts").sum())
    yield Finding(
        "repeated-recovery",
        "problem",
        "A probing sender keeps falling into recovery",
        f"{rows.height} recoveries ({timeouts} timeouts) took {off_ps / whole:.0%} of the time; in them "
        f"{off_bps / 1e6:.4g} Mbit/s were acknowledged, outside {on_bps / 1e6:.4g} Mbit/s. The sender asks "
        "for more than the path has.",
        flow,
        {"off_ratio": off_ps / whole, "off_bps": off_bps, "on_bps": on_bps},
        evidence_of(rows, length_s=("length_ps", 1e12), retransmitted="retransmitted", timeouts="timeouts"),
    )
