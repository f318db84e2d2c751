"""General findings: what limited the flows of a trace, and what went wrong.

docs/traces.md has a section for each.

Each detector looks at one direction of a TCP connection and says nothing, or one finding with its evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from weirlab.trace.model import Finding, Trace
from weirlab.trace.probing import probing_findings

__all__ = ["FLOWS", "LEAST_PACKETS", "diagnose"]

FLOWS = 100
"""Directions that are judged: those with most bytes."""
LEAST_PACKETS = 50
"""Packets with data below which a direction is not judged: shares of fewer mean nothing."""
_EVIDENCE = 10
"""Rows of evidence that a finding shows."""

_LIMITED = 0.5
"""Share of its active time for which a sender must have been limited by one thing."""
_NEAR_RECEIVER = 0.2
"""A capture is near the receiver when acknowledgments come after less than this share of a round trip."""
_WINDOW_USED = 0.8
"""There, a window is taken for the limit when a round trip's bytes fill this share of it."""
_LOSS_NOTICE, _LOSS_PROBLEM = 0.001, 0.01
"""Shares of packets sent again. At 1 % the square-root formula allows 12 segments per round trip."""
_STANDING_PS = 5e9
"""RFC 8289, section 4.2: a queue that stands above 5 ms is bad in any network with round trips of 100 ms."""
_STANDING_SHARE = 0.5
_COMPRESSED = 0.02
_COMPRESSIONS = 3
_STALLED_NOTICE, _STALLED_PROBLEM = 0.02, 0.1
_REORDERED = 0.01
_SPURIOUS = 0.2
_SPURIOUS_LEAST = 5

Row = Mapping[str, Any]


def diagnose(trace: Trace) -> list[Finding]:
    """Everything that is found: problems first, then by bytes of the flow."""
    found = list(_capture(trace))
    judged = trace.flows().filter((pl.col("protocol") == 6) & (pl.col("data_packets") >= LEAST_PACKETS))
    for row in judged.head(FLOWS).iter_rows(named=True):
        by_series = (detector(trace, row) for detector in _BY_SERIES)
        by_counts = (detector(row) for detector in _BY_COUNTS)
        found.extend(finding for finding in (*by_series, *by_counts) if finding is not None)
    found.extend(probing_findings(trace))
    return sorted(found, key=lambda finding: finding.verdict != "problem")


def _capture(trace: Trace) -> Iterator[Finding]:
    """What makes the trace itself doubtful."""
    facts = trace.facts
    if facts["ending"] != "whole":
        yield Finding(
            "capture-not-whole",
            "notice",
            "The file ends early",
            f"{facts['ending']}; {facts['frames']:,} frames before it were read.",
        )
    lost = trace["interfaces"].get_column("lost_frames").sum()
    unseen = trace["flows"].get_column("unseen_bytes").sum()
    if lost or unseen:
        yield Finding(
            "capture-lost-frames",
            "problem",
            "The capture itself lost frames",
            f"The capturing program counted {lost:,} lost frames; {unseen:,} bytes were acknowledged that "
            "the trace does not show. Counts of losses and gaps are too low or too high by as much.",
            values={"lost_frames": float(lost), "unseen_bytes": float(unseen)},
        )
    if facts["backward_stamps"] > 0.001 * facts["frames"]:
        yield Finding(
            "capture-out-of-order",
            "notice",
            "Stamps go back",
            f"{facts['backward_stamps']:,} frames have an earlier stamp than the one before: several "
            "interfaces or queues were merged. 'reordercap' of Wireshark sorts such a file.",
            values={"backward_stamps": float(facts["backward_stamps"])},
        )


def _window_limited(trace: Trace, row: Row) -> Finding | None:
    """The receiver's window was full for most of the time."""
    active = _active_ps(row)
    if not active:
        return None
    rows = trace["intervals"].filter(
        (pl.col("flow") == row["flow"]) & pl.col("window_min_bytes").is_not_null()
    )
    share = row["window_limited_ps"] / active
    place = "at the sender"
    if _near_receiver(row) and rows.height:
        # The flight at the sender is not to be seen here: it is what arrives in one round trip.
        flight = pl.col("acked_bytes") * (row["round_trip_ps"] / trace.every_ps)
        share = float(rows.select((flight >= _WINDOW_USED * pl.col("window_min_bytes")).mean()).item())
        place = "near the receiver"
    if share < _LIMITED or not rows.height:
        return None
    window = float(rows.select(pl.col("window_min_bytes").median()).item())
    round_trip = row["round_trip_ps"] or row["rtt_mean_ps"]
    bound = f", so that at most {_rate(window * 8e12 / round_trip)} can be reached" if round_trip else ""
    return _finding(
        row,
        "window-limited",
        "problem",
        "Limited by the receiver's window",
        f"For {share:.0%} of the time all of the window was in flight (seen {place}). Its median is "
        f"{_bytes(window)} in {_ms(round_trip)}{bound}. A larger receive buffer would help.",
        {"limited_ratio": share, "window_bytes": window},
        _interval_rows(rows.filter(pl.col("flight_max_bytes") > 0), "flight_max_bytes", "window_min_bytes"),
    )


def _application_limited(row: Row) -> Finding | None:
    """Nothing was outstanding for much of the time, and the sender sent nothing."""
    active = _active_ps(row)
    if not active or row["idle_ps"] / active < _LIMITED:
        return None
    share = row["idle_ps"] / active
    return _finding(
        row,
        "application-limited",
        "notice",
        "Limited by the application",
        f"For {share:.0%} of the time all data was acknowledged and no more came, longer than a round trip "
        "each time: the network was not asked for more.",
        {"idle_ratio": share},
    )


def _lossy_path(trace: Trace, row: Row) -> Finding | None:
    """Packets were lost, and how much that allows."""
    real = row["retransmitted"] - row["spurious"]
    ratio = max(real, 0) / row["data_packets"]
    if ratio < _LOSS_NOTICE or real < 2:
        return None
    round_trip = row["rtt_mean_ps"] or row["round_trip_ps"]
    mss = row["payload_bytes"] / row["data_packets"]
    bound = None if not round_trip else math.sqrt(1.5) * mss * 8e12 / (round_trip * math.sqrt(ratio))
    text = (
        f"{row['retransmitted']:,} of {row['data_packets']:,} packets with data were sent again "
        f"({ratio:.2%} without those sent for nothing), {row['timeouts']:,} of them after a timeout, in "
        f"{row['recoveries']:,} recoveries."
    )
    if bound:
        text += (
            f" A Reno flow reaches about {_rate(bound)} at this loss and round-trip time; this one had "
            f"{_rate(row['goodput_bps'])}."
        )
    recoveries = trace["recoveries"].filter(pl.col("flow") == row["flow"])
    return _finding(
        row,
        "lossy-path",
        "problem" if ratio >= _LOSS_PROBLEM else "notice",
        "Packets were lost",
        text,
        {"retransmitted_ratio": ratio, **({} if bound is None else {"square_root_bps": bound})},
        [
            {
                "t_s": each["t_ps"] / 1e12,
                "length_s": (each["end_ps"] - each["t_ps"]) / 1e12,
                "retransmitted": each["retransmitted"],
                "timeouts": each["timeouts"],
                "flight_bytes": each["flight_bytes"],
            }
            for each in recoveries.sort("retransmitted", descending=True)
            .head(_EVIDENCE)
            .iter_rows(named=True)
        ],
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
    return _finding(
        row,
        "bufferbloat",
        "problem",
        "A standing queue",
        f"In {share:.0%} of the intervals even the smallest round-trip time lay more than {_ms(limit)} "
        f"above the minimum of {_ms(least)}; the median excess is {_ms(standing)}, the largest "
        f"round-trip time {_ms(largest)}. The buffer at the bottleneck never empties: it only delays.",
        {"standing_ratio": share, "standing_ms": standing / 1e9, "rtt_min_ms": least / 1e9},
        _interval_rows(rows, "rtt_min_ps", "rtt_max_ps"),
    )


def _ack_compression(row: Row) -> Finding | None:
    """Acknowledgments came in bunches."""
    active = _active_ps(row)
    if not active or row["compressions"] < _COMPRESSIONS or row["compressed_ps"] / active < _COMPRESSED:
        return None
    return _finding(
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
    active = _active_ps(row)
    stalls = trace["stalls"].filter(pl.col("flow") == row["flow"])
    share = float(stalls.get_column("length_ps").sum()) / active if active else 0.0
    if share < _STALLED_NOTICE:
        return None
    causes = stalls.join(trace["cause_names"], on="cause")
    by_cause = (
        causes.group_by("name").agg(pl.len(), pl.col("length_ps").sum()).sort("length_ps", descending=True)
    )
    words = ", ".join(f"{name} {count}" for name, count, _ in by_cause.iter_rows())
    return _finding(
        row,
        "stalls",
        "problem" if share >= _STALLED_PROBLEM else "notice",
        "It stood still",
        f"For {share:.1%} of the time nothing moved although data was outstanding: {stalls.height:,} "
        f"silences ({words}), the longest {_ms(float(stalls.select(pl.col('length_ps').max()).item()))}.",
        {"stalled_ratio": share, "stalls": float(stalls.height)},
        [
            {"t_s": each["t_ps"] / 1e12, "length_s": each["length_ps"] / 1e12, "cause": each["name"]}
            for each in causes.sort("length_ps", descending=True).head(_EVIDENCE).iter_rows(named=True)
        ],
    )


def _reordering(row: Row) -> Finding | None:
    """Packets overtook each other."""
    ratio = row["reordered"] / row["data_packets"]
    if ratio < _REORDERED:
        return None
    return _finding(
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
    return _finding(
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
    active = _active_ps(row)
    if not row["zero_window_ps"] or not active:
        return None
    share = row["zero_window_ps"] / active
    if share < _STALLED_NOTICE:
        return None
    return _finding(
        row,
        "zero-window",
        "problem" if share >= _STALLED_PROBLEM else "notice",
        "The receiver closed its window",
        f"For {share:.1%} of the time the window was 0: the receiving application did not read.",
        {"closed_ratio": share},
    )


_BY_SERIES: Sequence[Callable[[Trace, Row], Finding | None]] = (
    _window_limited,
    _lossy_path,
    _bufferbloat,
    _stalls,
)
_BY_COUNTS: Sequence[Callable[[Row], Finding | None]] = (
    _application_limited,
    _ack_compression,
    _reordering,
    _spurious,
    _zero_window,
)


def _finding(
    row: Row,
    kind: str,
    verdict: Any,
    title: str,
    text: str,
    values: Mapping[str, float],
    evidence: Sequence[Mapping[str, Any]] = (),
) -> Finding:
    return Finding(kind, verdict, title, text, row["flow"], values, tuple(evidence))


def _near_receiver(row: Row) -> bool:
    """Whether the capture was made near the receiver of this direction."""
    if row["rtt_min_ps"] is None or not row["handshake_ps"]:
        return False
    return bool(row["rtt_min_ps"] < _NEAR_RECEIVER * row["handshake_ps"])


def _active_ps(row: Row) -> float:
    if row["first_data_ps"] is None:
        return 0.0
    return float(row["last_data_ps"] - row["first_data_ps"])


def _interval_rows(rows: pl.DataFrame, *columns: str) -> list[dict[str, Any]]:
    """Some intervals as evidence, spread over all."""
    step = max(1, rows.height // _EVIDENCE)
    chosen = rows.gather_every(step).head(_EVIDENCE)
    return [
        {"t_s": each["t_ps"] / 1e12, **{name: each[name] for name in columns}} for each in chosen.to_dicts()
    ]


def _rate(bps: float | None) -> str:
    if bps is None:
        return "an unknown rate"
    return f"{bps / 1e6:.4g} Mbit/s"


def _ms(ps: float | None) -> str:
    return "an unknown time" if ps is None else f"{ps / 1e9:.3g} ms"


def _bytes(count: float) -> str:
    return f"{count / 1e3:.4g} kB"
