"""General findings: what limited the flows of a trace, and what went wrong.

docs/traces.md has a section for each.

Each detector looks at one direction of a TCP connection and says nothing, or one finding with its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from weirlab.trace.capture import capture_findings, merged_connections
from weirlab.trace.directions import (
    EVIDENCE,
    LIMITED,
    Row,
    active_ps,
    application_ratio,
    bytes_text,
    finding_of,
    interval_rows,
    ms_text,
    near_receiver,
    rate_text,
)
from weirlab.trace.losses import common_rtt_ps, lossy_path, queue_overflow
from weirlab.trace.model import Finding, Trace
from weirlab.trace.probing import probing_findings

__all__ = ["FLOWS", "KINDS", "LEAST_PACKETS", "diagnose", "judged"]

KINDS = (
    "window-limited",
    "lossy-path",
    "queue-overflow",
    "bufferbloat",
    "stalls",
    "application-limited",
    "sender-limited",
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
_WINDOW_USED = 0.8
"""There, a window is taken for the limit when a round trip's bytes fill this share of it."""
_STANDING_PS = 5e9
"""RFC 8289, section 4.2: a queue that stands above 5 ms is bad in any network with round trips of 100 ms."""
_STANDING_SHARE = 0.5
_FLAT, _FLAT_SHARE = 0.85, 0.8
"""A sender that keeps the same in flight has at least this share of the most in so many of the intervals."""
_FLAT_LEAST = 10
_NO_QUEUE, _NO_QUEUE_PS = 0.25, 1e9
"""Round trips that grow by less than this share of the least, or by a millisecond, tell of no queue."""
_NO_LOSS = 0.001
_COMPRESSED = 0.02
_COMPRESSIONS = 3
_STALLED_NOTICE, _STALLED_PROBLEM = 0.02, 0.1
_REORDERED = 0.01
_SPURIOUS = 0.2
_SPURIOUS_LEAST = 5


def diagnose(trace: Trace) -> list[Finding]:
    """Everything that is found: problems first, then by bytes of the flow."""
    found = list(capture_findings(trace))
    for row in judged(trace).iter_rows(named=True):
        by_series = (detector(trace, row) for detector in _BY_SERIES)
        by_counts = (detector(row) for detector in _BY_COUNTS)
        found.extend(finding for finding in (*by_series, *by_counts) if finding is not None)
    found.extend(probing_findings(trace))
    return sorted(found, key=lambda finding: finding.verdict != "problem")


def judged(trace: Trace) -> pl.DataFrame:
    """The directions that general findings are looked for in: rows of `Trace.flows`."""
    enough = (pl.col("protocol") == 6) & (pl.col("data_packets") >= LEAST_PACKETS)
    merged = pl.col("connection").is_in(merged_connections(trace).to_list())
    return trace.flows().filter(enough & ~merged).head(FLOWS)


def _window_limited(trace: Trace, row: Row) -> Finding | None:
    """The receiver's window was full for most of the time."""
    active = active_ps(row)
    if not active:
        return None
    rows = trace["intervals"].filter(
        (pl.col("flow") == row["flow"]) & pl.col("window_min_bytes").is_not_null()
    )
    share = row["window_limited_ps"] / active
    place = "at the sender"
    if near_receiver(row) and rows.height:
        # The flight at the sender is not to be seen here: it is what arrives in one round trip.
        flight = pl.col("acked_bytes") * (row["round_trip_ps"] / trace.every_ps)
        share = float(rows.select((flight >= _WINDOW_USED * pl.col("window_min_bytes")).mean()).item())
        place = "near the receiver"
    if share < LIMITED or not rows.height:
        return None
    window = float(rows.select(pl.col("window_min_bytes").median()).item())
    round_trip = row["round_trip_ps"] or row["rtt_mean_ps"]
    bound = f", so that at most {rate_text(window * 8e12 / round_trip)} can be reached" if round_trip else ""
    return finding_of(
        row,
        "window-limited",
        "problem",
        "Limited by the receiver's window",
        f"For {share:.0%} of the time all of the window was in flight (seen {place}). Its median is "
        f"{bytes_text(window)} in {ms_text(round_trip)}{bound}. A larger receive buffer would help.",
        {"limited_ratio": share, "window_bytes": window},
        interval_rows(rows.filter(pl.col("flight_max_bytes") > 0), "flight_max_bytes", "window_min_bytes"),
    )


def _application_limited(row: Row) -> Finding | None:
    """The sender had nothing more to send for much of the time."""
    share = application_ratio(row)
    if share < LIMITED:
        return None
    return finding_of(
        row,
        "application-limited",
        "notice",
        "Limited by the application",
        f"For {share:.0%} of the time the sender had no more to send: all data was acknowledged, longer than "
        "a round trip each time, or what it had sent last was less than a full segment. The network was not "
        "asked for more.",
        {"idle_ratio": row["idle_ps"] / active_ps(row), "application_ratio": share},
    )


def _sender_limited(trace: Trace, row: Row) -> Finding | None:
    """The sender kept the same amount in flight, though neither window nor losses nor a queue stopped it."""
    active = active_ps(row)
    least, most = row["rtt_min_ps"], common_rtt_ps(trace["rtts"], row["flow"])
    if not active or least is None or most is None or near_receiver(row):
        return None
    if max(row["window_limited_ps"] / active, application_ratio(row)) >= LIMITED:
        return None
    if row["retransmitted_segments"] >= _NO_LOSS * row["segments"] or not row["handshake_ps"]:
        return None
    if most - least > max(_NO_QUEUE * least, _NO_QUEUE_PS):
        return None
    # The first and the last interval are none that the flow fills.
    rows = trace["intervals"].filter((pl.col("flow") == row["flow"]) & (pl.col("flight_max_bytes") > 0))
    rows = rows.slice(1, max(rows.height - 2, 0))
    if rows.height < _FLAT_LEAST:
        return None
    flight = float(rows.select(pl.col("flight_max_bytes").max()).item())
    share = float(rows.select((pl.col("flight_max_bytes") >= _FLAT * flight).mean()).item())
    window = rows.select(pl.col("window_min_bytes").median()).item()
    if share < _FLAT_SHARE:
        return None
    low, high = ms_text(least), ms_text(most)
    # The quantile is the lower bound of a bin, and may lie below the least.
    trips = f"took {low}" if most <= least or low == high else f"lay between {low} and {high}"
    room = "" if window is None else f", less than the receiver's window of {bytes_text(window)}"
    return finding_of(
        row,
        "sender-limited",
        "notice",
        "Limited by the sender",
        f"In {share:.0%} of the intervals it had the same in flight, up to {bytes_text(flight)}{room}. "
        f"Hardly anything was lost, and most round trips {trips}, so that no queue was in the way. "
        "Its send buffer holds no more, or its own pace, or that of its congestion control, is slower than "
        f"the path: {rate_text(row['goodput_bps'])}.",
        {"flight_bytes": flight, "flat_ratio": share},
        interval_rows(rows, "flight_max_bytes", "window_min_bytes", "rtt_max_ps"),
    )


def _bufferbloat(trace: Trace, row: Row) -> Finding | None:
    """The round-trip time never came down to its minimum while data flowed."""
    least = row["rtt_min_ps"]
    rows = trace["intervals"].filter((pl.col("flow") == row["flow"]) & (pl.col("rtts") >= 3))
    if least is None or rows.height < 5:
        return None
    # A buffer of one round trip's bytes keeps a link busy (Villamizar 1994); what stands beyond only delays.
    limit = max(_STANDING_PS, least)
    share = float(rows.select((pl.col("rtt_min_ps") - least > limit).mean()).item())
    if share < _STANDING_SHARE:
        return None
    standing = float(rows.select((pl.col("rtt_min_ps") - least).median()).item())
    largest = float(rows.select(pl.col("rtt_max_ps").max()).item())
    return finding_of(
        row,
        "bufferbloat",
        "problem",
        "A standing queue",
        f"In {share:.0%} of the intervals even the smallest round-trip time lay more than {ms_text(limit)} "
        f"above the minimum of {ms_text(least)}; the median excess is {ms_text(standing)}, the largest "
        f"round-trip time {ms_text(largest)}. The buffer at the bottleneck never empties: it only delays.",
        {"standing_ratio": share, "standing_ms": standing / 1e9, "rtt_min_ms": least / 1e9},
        interval_rows(rows, "rtt_min_ps", "rtt_max_ps"),
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
        "average: a queue on the way back, or a receiver that collects. Senders that follow send in bursts.",
        {"compressions": float(row["compressions"]), "compressed_ratio": row["compressed_ps"] / active},
    )


def _stalls(trace: Trace, row: Row) -> Finding | None:
    """Silences while data was outstanding."""
    active = active_ps(row)
    stalls = trace["stalls"].filter(pl.col("flow") == row["flow"])
    # Silences between stamps that go back are counted twice.
    share = min(float(stalls.get_column("length_ps").sum()) / active, 1.0) if active else 0.0
    if share < _STALLED_NOTICE:
        return None
    causes = stalls.join(trace["cause_names"], on="cause")
    by_cause = (
        causes.group_by("name").agg(pl.len(), pl.col("length_ps").sum()).sort("length_ps", descending=True)
    )
    words = ", ".join(f"{name} {count}" for name, count, _ in by_cause.iter_rows())
    return finding_of(
        row,
        "stalls",
        "problem" if share >= _STALLED_PROBLEM else "notice",
        "It stood still",
        f"For {share:.1%} of the time nothing moved although data was outstanding: {stalls.height:,} "
        f"silences ({words}), the longest {ms_text(float(stalls.select(pl.col('length_ps').max()).item()))}.",
        {"stalled_ratio": share, "stalls": float(stalls.height)},
        [
            {"t_s": each["t_ps"] / 1e12, "length_s": each["length_ps"] / 1e12, "cause": each["name"]}
            for each in causes.sort("length_ps", descending=True).head(EVIDENCE).iter_rows(named=True)
        ],
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


_BY_SERIES: Sequence[Callable[[Trace, Row], Finding | None]] = (
    _window_limited,
    lossy_path,
    queue_overflow,
    _bufferbloat,
    _stalls,
    _sender_limited,
)
_BY_COUNTS: Sequence[Callable[[Row], Finding | None]] = (
    _application_limited,
    _ack_compression,
    _reordering,
    _spurious,
    _zero_window,
)
