"""Findings about what held a sender back: windows, the receiving and the sending application, buffers, slow
start."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.traces.directions import (
    LIMITED,
    active_ps,
    application_ratio,
    bytes_text,
    capacity_bps,
    capacity_is_known,
    far_part,
    finding_of,
    interval_rows,
    ms_text,
    near_receiver,
    rate_text,
    round_trip_ps,
    share_of,
    wait_ps,
)
from weirlab.traces.model import Finding, Row, Trace

_OFTEN = 0.25
"""A window that is never read up must stop the sender for this share of the time: what its reader takes sets
the pace of a sender that follows it, too, which is stopped less often."""
LEAST_ROUNDS, LEAST_MS = 10, 50
"""Round trips, and time, below which no share of the time says what limited a flow: windows and buffers grow
first, and programs start."""
_FULL, _QUEUED, _QUEUED_PS = 0.9, 0.2, 1e9
"""A path is full that carries this share of its capacity while a queue of so much of the least round trip,
and a millisecond, waits 95 % of the time: a larger window only makes the queue longer."""
_FLAT, _FLAT_SHARE = 0.2, 0.7
"""A sender that keeps the same in flight sends within this share of the median in so many round trips."""
_FLAT_LEAST, _FLAT_LEAST_PS = 10, 0.95e12
"""So many of them at least, and about a second: every sender sends the same for a moment."""
_NO_QUEUE, _NO_QUEUE_PS = 0.25, 1e9
"""Round trips that grow by less than this share of the least, or by a millisecond, show no queue."""
_BURST = 0.8
"""A burst that passes in less than this share of a round trip leaves the path idle for the rest of it, and so
does a sender that uses less than this share of a rate that is known."""
_MARKED, _MARKS = 0.001, 3
"""Marks of this share of the segments, and so many, say to a sender how fast it may send."""
_REPAIRED_ROUNDS, _REPAIRED_PS = 100, 20e12
"""So long, in round trips and at least, a window grows after a loss: CUBIC's for the cube root of 0.75 times
its segments [s], Reno's for half of its segments [round trips]."""
_GROWING = 0.5
_ROUNDS = 3


def limit_findings(trace: Trace, row: Row) -> Iterator[Finding]:
    """What held the sender back for most of the time, if one thing did."""
    if not active_ps(row):
        return
    found = _slow_start(trace, row)
    if long_enough(row):
        found = _window(trace, row, LIMITED) or _application(row) or found or _sender(trace, row)
        found = found or _window(trace, row, _OFTEN)
    if found is not None:
        yield found


def long_enough(row: Row) -> bool:
    """Whether a direction lasted for long enough to say what limited it."""
    return active_ps(row) >= max(LEAST_ROUNDS * (round_trip_ps(row) or 0.0), LEAST_MS * 1e9)


def _window(trace: Trace, row: Row, share: float) -> Finding | None:
    """The receiver's window stopped the sender: it is small, for a `share` of the time at least, or it is not
    read. Below half it is one limit among others."""
    held, unread = _held(row), min(row["unread_ps"] / active_ps(row), 1.0)
    if row["window_max_bytes"] is None or held < _OFTEN:
        return None
    near = near_receiver(trace, row)
    rows = trace["intervals"].filter(pl.col("flow") == row["flow"], pl.col("window_min_bytes").is_not_null())
    if rows.is_empty():
        return None
    window = float(rows.select(pl.col("window_min_bytes").median()).item())
    evidence = interval_rows(rows, "acked_bytes" if near else "flight_max_bytes", "window_min_bytes")
    place = "near the receiver" if near else "at the sender"
    if reads_slowly(row):
        closed = row["zero_window_ps"] / active_ps(row)
        return finding_of(
            row,
            "slow-reader",
            "problem",
            "The receiving application reads too slowly",
            f"For {held:.0%} of the time the sender had filled the receiver's window (seen {place}), and for "
            f"{unread:.0%} the window was narrower than it had been, since data had arrived that was not "
            f"read: {bytes_text(window)} in the median of {bytes_text(row['window_max_bytes'])}; it was "
            f"closed for {closed:.0%}. The data moved as fast as it was read, "
            f"{rate_text(row['goodput_bps'])}.",
            {
                "limited_ratio": held,
                "unread_ratio": unread,
                "closed_ratio": closed,
                "window_bytes": window,
            },
            evidence,
        )
    if held < share or _is_full(trace, row):
        return None
    mostly = held >= LIMITED
    if not mostly and unread >= held / 2:
        return None
    return finding_of(
        row,
        "window-limited",
        "problem" if mostly else "notice",
        f"Limited{'' if mostly else ' in part'} by the receiver's window",
        f"For {held:.0%} of the time the sender had filled the receiver's window (seen {place}), though what "
        f"arrived was read. Its median is {bytes_text(window)}, in round trips of "
        f"{ms_text(round_trip_ps(row))} or more: {rate_text(row['goodput_bps'])}.",
        {"limited_ratio": held, "window_bytes": window},
        evidence,
    )


def reads_slowly(row: Row) -> bool:
    """Whether the window stopped the sender because what had arrived was not read."""
    if not active_ps(row):
        return False
    held, unread = _held(row), row["unread_ps"] / active_ps(row)
    return bool(held >= _OFTEN and (unread >= LIMITED or (held >= LIMITED and unread >= held / 2)))


def _held(row: Row) -> float:
    """Share of the time for which the window stopped the sender."""
    return min(float(row["window_limited_ps"]) / active_ps(row), 1.0)


def _is_full(trace: Trace, row: Row) -> bool:
    """Whether the path carries what it can: a queue stands, at the rate of the path."""
    round_trip, capacity = round_trip_ps(row), capacity_bps(trace, row)
    waited = wait_ps(trace, row, far_part(trace, row), 0.05)
    if not round_trip or not capacity or waited is None:
        return False
    queued = waited > max(_QUEUED * round_trip, _QUEUED_PS)
    return bool(queued and row["goodput_bps"] >= _FULL * capacity)


def _application(row: Row) -> Finding | None:
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


def _slow_start(trace: Trace, row: Row) -> Finding | None:
    """It ended before its window had grown to what the path holds."""
    share, round_trip = min(row["growing_ps"] / active_ps(row), 1.0), round_trip_ps(row)
    if share < _GROWING or not round_trip or row["retransmitted_segments"] >= 2 or not row["fin"]:
        return None
    rounds = active_ps(row) / round_trip
    capacity = capacity_bps(trace, row)
    if rounds < _ROUNDS:
        return None
    known = capacity is not None and capacity_is_known(trace, row)
    more = "" if not known else f", where the path showed {rate_text(capacity)} while it was busy"
    return finding_of(
        row,
        "slow-start-limited",
        "notice",
        "Limited by slow start",
        f"It carried {bytes_text(row['new_bytes'])} in {rounds:.1f} round trips of {ms_text(round_trip)}, "
        f"and for {share:.0%} of that time sent more in each than ever before: "
        f"{rate_text(row['goodput_bps'])}{more}. A transfer so short is bound by round trips.",
        {"growing_ratio": share, "round_trips": rounds},
    )


def _sender(trace: Trace, row: Row) -> Finding | None:
    """The sender kept the same amount in flight, though nothing that the trace shows stopped it: no window,
    no loss, no mark, no queue."""
    if (
        row["window_max_bytes"] is None
        or row["handshake_ps"] is None
        or _held(row) >= _OFTEN
        or _repairs(row)
        or _is_marked(row)
    ):
        return None
    least, part = round_trip_ps(row), far_part(trace, row)
    waited = wait_ps(trace, row, part, 0.95)
    rounds = trace["rounds"].filter(pl.col("flow") == row["flow"]).sort("low_bytes")
    count = int(rounds.get_column("rounds").sum())
    if least is None or waited is None or count < _FLAT_LEAST or active_ps(row) < _FLAT_LEAST_PS:
        return None
    middle = (pl.col("low_bytes") + pl.col("high_bytes")) / 2
    reached = rounds.filter(pl.col("rounds").cum_sum() >= count / 2)
    typical = float(reached.select(middle).item(0, 0))
    share = share_of(rounds, (middle - typical).abs() <= _FLAT * typical, "rounds")
    if share < _FLAT_SHARE or not typical:
        return None
    capacity = capacity_bps(trace, row)
    # A burst waits for itself; a path that it keeps busy for a round trip is full.
    burst_ps = typical * 8e12 / capacity if capacity else least
    idle = capacity and row["goodput_bps"] <= _BURST * capacity and capacity_is_known(trace, row)
    itself = (1 + _NO_QUEUE) * burst_ps if idle or burst_ps <= _BURST * least else 0.0
    if waited > max(_NO_QUEUE * least, _NO_QUEUE_PS, itself):
        return None
    room = f", less than the receiver's window of {bytes_text(row['window_max_bytes'])}"
    more = ""
    if capacity is not None and row["goodput_bps"] is not None and capacity > 1.25 * row["goodput_bps"]:
        more = f" Bursts passed at {rate_text(capacity)}, so that the path carries more."
    return finding_of(
        row,
        "sender-limited",
        "notice",
        "Limited by the sender",
        f"In {share:.0%} of the round trips it sent the same, {bytes_text(typical)}{room}. No loss and no "
        f"mark kept it small, and most round trips took {ms_text(least + waited)} at most, where "
        f"{ms_text(least)} is the least, so that no queue was in the way. Its send buffer holds no more, or "
        "its own pace, or that of its congestion control, is slower than the path: "
        f"{rate_text(row['goodput_bps'])}.{more}",
        {"flight_bytes": typical, "flat_ratio": share},
    )


def _repairs(row: Row) -> bool:
    """Whether losses were so frequent that the window grew back after one of them most of the time."""
    grows = max(_REPAIRED_ROUNDS * (round_trip_ps(row) or 0.0), _REPAIRED_PS)
    return bool(row["recoveries"] * grows > active_ps(row))


def _is_marked(row: Row) -> bool:
    """Whether marks for congestion, or what reports them, say how fast the sender may be."""
    marks = max(row["congestion_marks"], row["echoed_marks"])
    return bool(marks >= max(_MARKED * row["segments"], _MARKS))
