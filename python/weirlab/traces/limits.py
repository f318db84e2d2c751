"""Findings about what held a sender back: windows, the receiving and the sending application, buffers, slow
start."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.traces.directions import (
    LIMITED,
    Row,
    active_ps,
    application_ratio,
    bytes_text,
    capacity_bps,
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
from weirlab.traces.model import Finding, Trace

__all__ = ["limit_findings"]

_FILLED = 0.8
"""A window is taken for filled when a round trip's bytes, or the flight, take this share of it."""
_UNREAD, _HALF_READ = 0.8, 0.5
"""A window of less than the first share of the largest before is what the receiver has not read; of less
than the second one, it is so whatever is in flight."""
_OFTEN = 0.25
"""A window that is never read up must be full for this share of the time: what its reader takes sets the
pace of its sender, too."""
_FLAT, _FLAT_SHARE = 0.2, 0.7
"""A sender that keeps the same in flight sends within this share of the median in so many round trips."""
_FLAT_LEAST, _FLAT_LEAST_PS = 10, 0.95e12
"""So many of them at least, and about a second: every sender sends the same for a moment."""
_NO_QUEUE, _NO_QUEUE_PS = 0.25, 1e9
"""Round trips that grow by less than this share of the least, or by a millisecond, tell of no queue."""
_NO_LOSS = 0.001
_GROWING = 0.5
_ROUNDS = 3


def limit_findings(trace: Trace, row: Row) -> Iterator[Finding]:
    """What held the sender back for most of the time, if one thing did."""
    if not active_ps(row):
        return
    window = _window(trace, row)
    found = window or _application(row) or _slow_start(trace, row) or _sender(trace, row)
    if found is not None:
        yield found


def _window(trace: Trace, row: Row) -> Finding | None:
    """The receiver's window was full for most of the time: it is small, or it is not read."""
    rows = trace["intervals"].filter(
        pl.col("flow") == row["flow"], pl.col("window_min_bytes").is_not_null(), pl.col("acked_bytes") > 0
    )
    active = active_ps(row)
    if rows.is_empty() or row["window_max_bytes"] is None:
        return None
    near = near_receiver(trace, row)
    rows = rows.sort("t_ps").with_columns(
        open_ratio=pl.col("window_min_bytes") / pl.col("window_min_bytes").cum_max().clip(1)
    )
    unread = float(rows.select((pl.col("open_ratio") <= _UNREAD).mean()).item())
    half_read = max(
        float(rows.select((pl.col("open_ratio") <= _HALF_READ).mean()).item()), row["narrow_ps"] / active
    )
    window = float(rows.select(pl.col("window_min_bytes").median()).item())
    # The flight at the sender is not to be seen near the receiver: it is what arrives in one round trip.
    filled = _rounds_filled(trace, row, window) if near else row["window_limited_ps"] / active
    evidence = interval_rows(rows, "acked_bytes" if near else "flight_max_bytes", "window_min_bytes")
    place = "near the receiver" if near else "at the sender"
    if half_read >= LIMITED or (unread >= LIMITED and filled >= _OFTEN):
        closed = row["zero_window_ps"] / active
        return finding_of(
            row,
            "slow-reader",
            "problem",
            "The receiving application reads too slowly",
            f"For {max(unread, half_read):.0%} of the time the window was narrower than it had been, "
            f"{bytes_text(window)} in the median of {bytes_text(row['window_max_bytes'])} (seen {place}), "
            "since what had "
            f"arrived was not read; it was closed for {closed:.0%}. The data moved as fast as it was read, "
            f"{rate_text(row['goodput_bps'])}: neither the network nor a larger buffer would change that.",
            {"unread_ratio": max(unread, half_read), "closed_ratio": closed, "window_bytes": window},
            evidence,
        )
    if filled - row["narrow_limited_ps"] / active < LIMITED:
        return None
    round_trip = round_trip_ps(row)
    bound = ""
    if round_trip and window:
        bound = f", so that at most {rate_text(window * 8e12 / round_trip)} can be reached"
    return finding_of(
        row,
        "window-limited",
        "problem",
        "Limited by the receiver's window",
        f"For {filled:.0%} of the time all of the window was in flight (seen {place}). Its median is "
        f"{bytes_text(window)} in {ms_text(round_trip)}{bound}. A larger receive buffer would help.",
        {"limited_ratio": filled, "window_bytes": window},
        evidence,
    )


def _rounds_filled(trace: Trace, row: Row, window: float) -> float:
    """Share of the round trips in which as much arrived as the window lets out."""
    rounds = trace["rounds"].filter(pl.col("flow") == row["flow"])
    if rounds.is_empty() or not window:
        return 0.0
    return share_of(rounds, pl.col("high_bytes") >= _FILLED * window, "rounds")


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
    if share < _GROWING or not round_trip or row["retransmitted_segments"] >= 2:
        return None
    rounds = active_ps(row) / round_trip
    capacity = capacity_bps(trace, row)
    if rounds < _ROUNDS:
        return None
    more = "" if capacity is None else f", where the path showed {rate_text(capacity)} while it was busy"
    return finding_of(
        row,
        "slow-start-limited",
        "notice",
        "Limited by slow start",
        f"It carried {bytes_text(row['new_bytes'])} in {rounds:.1f} round trips of {ms_text(round_trip)}, "
        "and for "
        f"{share:.0%} of that time sent more in each than ever before: "
        f"{rate_text(row['goodput_bps'])}{more}. A transfer "
        "so short is bound by round trips: longer ones, connections that stay, or a larger initial window "
        "go faster.",
        {"growing_ratio": share, "round_trips": rounds},
    )


def _sender(trace: Trace, row: Row) -> Finding | None:
    """The sender kept the same amount in flight, though neither window nor losses nor a queue stopped it."""
    if row["retransmitted_segments"] >= _NO_LOSS * row["segments"]:
        return None
    least, part = round_trip_ps(row), far_part(trace, row)
    waited = wait_ps(trace, row, part, 0.95)
    rounds = trace["rounds"].filter(pl.col("flow") == row["flow"]).sort("low_bytes")
    count = int(rounds.get_column("rounds").sum())
    if (
        least is None
        or waited is None
        or waited > max(_NO_QUEUE * least, _NO_QUEUE_PS)
        or count < _FLAT_LEAST
        or active_ps(row) < _FLAT_LEAST_PS
    ):
        return None
    middle = (pl.col("low_bytes") + pl.col("high_bytes")) / 2
    reached = rounds.filter(pl.col("rounds").cum_sum() >= count / 2)
    typical = float(reached.select(middle).item(0, 0))
    share = share_of(rounds, (middle - typical).abs() <= _FLAT * typical, "rounds")
    if share < _FLAT_SHARE or not typical:
        return None
    window = row["window_max_bytes"]
    room = "" if window is None else f", less than the receiver's window of {bytes_text(window)}"
    capacity = capacity_bps(trace, row)
    more = ""
    if capacity is not None and row["goodput_bps"] is not None and capacity > 1.25 * row["goodput_bps"]:
        more = f" Bursts passed at {rate_text(capacity)}, so that the path carries more."
    return finding_of(
        row,
        "sender-limited",
        "notice",
        "Limited by the sender",
        f"In {share:.0%} of the round trips it sent the same, {bytes_text(typical)}{room}. Hardly anything "
        f"was lost, and most round trips took {ms_text(least + waited)} at most, where {ms_text(least)} is "
        "the least, so that no queue was in the way. Its send buffer holds no more, or its own pace, or that "
        f"of its congestion control, is slower than the path: {rate_text(row['goodput_bps'])}.{more}",
        {"flight_bytes": typical, "flat_ratio": share},
    )
