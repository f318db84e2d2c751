"""General findings: what limited the flows of a trace, and what went wrong.

docs/traces.md has a section for each.

Each detector looks at one direction of a TCP connection and says nothing, or one finding with its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from weirlab.traces.capture import capture_findings, merged_connections
from weirlab.traces.directions import (
    LIMITED,
    active_ps,
    application_ratio,
    far_part,
    finding_of,
    interval_rows,
    ms_text,
    round_trip_ps,
)
from weirlab.traces.limits import limit_findings, reads_slowly
from weirlab.traces.losses import loss_findings
from weirlab.traces.model import Finding, Row, Trace, evidence_of
from weirlab.traces.probing import probing_findings
from weirlab.traces.remedies import STALL_REMEDIES

KINDS = (
    "window-limited",
    "slow-reader",
    "lossy-path",
    "queue-overflow",
    "losses",
    "bufferbloat",
    "stalls",
    "application-limited",
    "sender-limited",
    "slow-start-limited",
    "ack-compression",
    "reordering",
    "spurious-retransmissions",
    "zero-window",
)
"""What is looked for in every direction that is judged."""

FLOWS = 100
"""Directions that are judged: those with most bytes."""
LEAST_PACKETS = 50
"""Packets with data below which a direction is not judged: shares of fewer mean nothing."""
_STANDING_PS = 5e9
"""RFC 8289, section 4.2: a queue that stands above 5 ms is bad in any network with round trips of 100 ms."""
_STANDING_SHARE = 0.5
_LONG = 2.0
"""A queue that stands so many times above that is a problem."""
_COMPRESSED = 0.01
_COMPRESSIONS = 3
_STALLED_NOTICE, _STALLED_PROBLEM = 0.02, 0.1
_REORDERED = 0.01
_SPURIOUS = 0.2
_SPURIOUS_LEAST = 5


def diagnose(trace: Trace) -> list[Finding]:
    """Everything that is found: problems first, then by bytes of the flow."""
    found = list(capture_findings(trace))
    for row in judged(trace).iter_rows(named=True):
        for detector in _DETECTORS:
            found.extend(detector(trace, row))
        found.extend(finding for finding in (detector(row) for detector in _BY_COUNTS) if finding is not None)
    found.extend(probing_findings(trace))
    return sorted(found, key=lambda finding: finding.verdict != "problem")


def judged(trace: Trace) -> pl.DataFrame:
    """The directions that general findings are looked for in: rows of `Trace.flows`."""
    enough = (pl.col("protocol") == 6) & (pl.col("segments") >= LEAST_PACKETS)
    merged = pl.col("connection").is_in(merged_connections(trace).to_list())
    return trace.flows().filter(enough & ~merged, pl.col("headless_packets") == 0).head(FLOWS)


def _bufferbloat(trace: Trace, row: Row) -> Iterator[Finding]:
    """The round-trip time never came down to its minimum while data flowed."""
    part, round_trip = far_part(trace, row), round_trip_ps(row)
    least = row[f"{part}_min_ps"]
    shortest, samples = ("rtt_min_ps", "rtts") if part == "ahead" else ("behind_min_ps", "behinds")
    rows = trace["intervals"].filter((pl.col("flow") == row["flow"]) & (pl.col(samples) >= 3))
    if least is None or round_trip is None or rows.height < 5:
        return
    # A buffer of one round trip's bytes keeps a link busy (Villamizar 1994); what stands beyond only delays.
    limit = max(_STANDING_PS, round_trip)
    excess = pl.col(shortest) - least
    share = float(rows.select((excess > limit).mean()).item())
    # A program that reads slowly makes its host keep acknowledgments back; the path has no queue then.
    if share < _STANDING_SHARE or application_ratio(row) >= LIMITED or reads_slowly(row):
        return
    standing = float(rows.select(excess.median()).item())
    yield finding_of(
        row,
        "bufferbloat",
        "problem" if standing >= _LONG * limit else "notice",
        "A standing queue",
        f"In {share:.0%} of the intervals even the smallest round-trip time lay more than {ms_text(limit)} "
        f"above the minimum of {ms_text(round_trip)}; the median excess of all is {ms_text(standing)}. In "
        "these the buffer at the bottleneck did not empty: it only delayed.",
        {"standing_ratio": share, "standing_ms": standing / 1e9, "rtt_min_ms": round_trip / 1e9},
        interval_rows(rows, shortest),
    )


def _ack_compression(row: Row) -> Finding | None:
    """Acknowledgments came in bunches."""
    active = active_ps(row)
    if not active or row["compressions"] < _COMPRESSIONS or row["compressed_ps"] / active < _COMPRESSED:
        return None
    return finding_of(
        row,
        "ack-compression",
        "notice",
        "Acknowledgments came in bunches",
        f"{row['compressions']:,} groups of acknowledgments arrived closer together than the data that they "
        f"acknowledge had left, by {row['compressed_ps'] / row['compressions'] / 1e9:.3g} ms each on "
        "average: a queue on the way back, or a receiver that collects. A sender that follows sends in "
        "bursts.",
        {"compressions": float(row["compressions"]), "compressed_ratio": row["compressed_ps"] / active},
    )


def _stalls(trace: Trace, row: Row) -> Iterator[Finding]:
    """Silences while data was outstanding."""
    active = active_ps(row)
    stalls = trace["stalls"].filter(pl.col("flow") == row["flow"])
    # Silences between stamps that go back are counted twice.
    share = min(float(stalls.get_column("length_ps").sum()) / active, 1.0) if active else 0.0
    if share < _STALLED_NOTICE:
        return
    causes = stalls.join(trace["cause_names"], on="cause")
    longest = causes.sort("length_ps", descending=True)
    by_cause = (
        causes.group_by("name").agg(pl.len(), pl.col("length_ps").sum()).sort("length_ps", descending=True)
    )
    words = ", ".join(f"{name} {count}" for name, count, _ in by_cause.iter_rows())
    silences = "1 silence" if stalls.height == 1 else f"{stalls.height:,} silences"
    yield finding_of(
        row,
        "stalls",
        "problem" if share >= _STALLED_PROBLEM else "notice",
        "It stood still",
        f"For {share:.1%} of the time nothing moved although data was outstanding: {silences} "
        f"({words}), the longest {ms_text(float(stalls.select(pl.col('length_ps').max()).item()))}.",
        {"stalled_ratio": share, "stalls": float(stalls.height)},
        evidence_of(longest, length_s=("length_ps", 1e12), cause="name"),
        STALL_REMEDIES[str(by_cause.item(0, "name"))],
    )


def _reordering(row: Row) -> Finding | None:
    """Packets overtook each other."""
    ratio = row["reordered"] / row["data_packets"]
    if ratio < _REORDERED:
        return None
    return finding_of(
        row,
        "reordering",
        "notice",
        "Packets came in another order",
        f"{row['reordered']:,} of {row['data_packets']:,} packets with data ({ratio:.2%}) came after later "
        "ones, without having been sent again: parallel paths or queues.",
        {"reordered_ratio": ratio},
    )


def _spurious(row: Row) -> Finding | None:
    """Packets were sent again that the receiver had."""
    if row["spurious"] < _SPURIOUS_LEAST or row["spurious"] < _SPURIOUS * row["retransmitted"]:
        return None
    ratio = row["spurious"] / row["retransmitted"]
    return finding_of(
        row,
        "spurious-retransmissions",
        "problem",
        "Packets were sent again for nothing",
        f"The receiver said of {row['spurious']:,} retransmissions ({ratio:.0%} of all) that it had the data "
        "(DSACK): reordering or late acknowledgments were taken for loss.",
        {"spurious_ratio": ratio},
    )


def _zero_window(row: Row) -> Finding | None:
    """The receiver closed its window."""
    active = active_ps(row)
    if not row["zero_window_ps"] or not active:
        return None
    share = row["zero_window_ps"] / active
    if share < _STALLED_NOTICE:
        return None
    return finding_of(
        row,
        "zero-window",
        "problem" if share >= _STALLED_PROBLEM else "notice",
        "The receiver closed its window",
        f"For {share:.1%} of the time the window was 0: the receiving application did not read.",
        {"closed_ratio": share},
    )


_DETECTORS: Sequence[Callable[[Trace, Row], Iterator[Finding]]] = (
    limit_findings,
    loss_findings,
    _bufferbloat,
    _stalls,
)
_BY_COUNTS: Sequence[Callable[[Row], Finding | None]] = (
    _ack_compression,
    _reordering,
    _spurious,
    _zero_window,
)
