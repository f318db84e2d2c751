"""Findings about lost packets: whether the path loses them, or a queue that somebody filled."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import polars as pl

from weirlab.trace.directions import (
    EVIDENCE,
    LIMITED,
    Row,
    application_ratio,
    finding_of,
    ms_text,
    near_receiver,
    rate_text,
)
from weirlab.trace.model import Finding, Trace

__all__ = ["common_rtt_ps", "lossy_path", "queue_overflow"]

_LOSS_NOTICE, _LOSS_PROBLEM = 0.001, 0.01
"""Shares of packets sent again. At 1 % the square-root formula allows 12 segments per round trip."""
_SPIKE = 0.5
"""A queue was full where the round trip had come so far from its least to its common largest."""
_QUEUED = 0.1
"""Below this share of the least round trip there was no queue to fill."""
_COMMON, _USUAL = 0.95, 0.5
"""Quantiles that stand for the largest round trip: of all samples, and of smoothed ones before recoveries."""
_SEVERAL = 3
"""Flows that must lose within a round trip to speak for a queue that they share."""
_PORT = r":\d+$"
_FAR_BELOW = 0.5
"""A flow below this share of the square-root bound is not limited by its losses."""


def lossy_path(trace: Trace, row: Row) -> Finding | None:
    """Packets were lost that no full queue explains, and how much that allows."""
    lost, queued = _losses(trace, row)
    ratio = lost.height and _real(row, lost) / row["segments"]
    if ratio < _LOSS_NOTICE or _real(row, lost) < 2:
        return None
    bound = _square_root_bps(row)
    known = queued.height > 0 or lost.get_column("queue").null_count() < lost.height
    text = _again(row, lost, ratio)
    text += " that began without a queue to blame." if known else "; no round trip tells of queues."
    if bound:
        apart = row["segments"] / row["recoveries"]
        text += (
            f" A Reno flow reaches about {rate_text(bound)} at this round-trip time with a loss event in "
            f"{apart:,.0f} packets; this one had {rate_text(row['goodput_bps'])}."
        )
    hidden = _real(row, queued) > _real(row, lost) and _of_path(trace, row).height >= _SEVERAL
    if hidden:
        text += (
            " It lost more to a full queue that it shares with flows beside it, which may explain these, too."
        )
    idle = application_ratio(row) >= LIMITED
    if idle:
        text += " The application asked for no more: loss is not what limited it."
    elif bound and row["goodput_bps"] is not None and row["goodput_bps"] < _FAR_BELOW * bound:
        text += " That is far less than losses allow: something else limited it."
    return finding_of(
        row,
        "lossy-path",
        "problem" if ratio >= _LOSS_PROBLEM and not idle and not hidden else "notice",
        "Packets were lost on the way",
        text,
        {
            "retransmitted_ratio": ratio,
            "loss_event_ratio": row["recoveries"] / row["segments"],
            **({} if bound is None else {"square_root_bps": bound}),
        },
        _recovery_rows(lost),
    )


def queue_overflow(trace: Trace, row: Row) -> Finding | None:
    """Packets were lost where a queue was full."""
    _, queued = _losses(trace, row)
    ratio = queued.height and _real(row, queued) / row["segments"]
    if ratio < _LOSS_NOTICE or _real(row, queued) < 2:
        return None
    before = float(queued.select(pl.col("rtt_ps").median()).item())
    return finding_of(
        row,
        "queue-overflow",
        "notice",
        "A queue overflowed",
        f"{_again(row, queued, ratio)} that began when the round trip had grown, to {ms_text(before)} in the "
        f"median where {ms_text(row['rtt_min_ps'])} is the least: this flow, or others beside it, had filled "
        "the bottleneck. The path itself need not lose anything.",
        {"retransmitted_ratio": ratio, "loss_event_ratio": queued.height / row["segments"]},
        _recovery_rows(queued),
    )


def _again(row: Row, recoveries: pl.DataFrame, ratio: float) -> str:
    joined = row["segments"] > row["data_packets"]
    packets = (
        f"about {row['segments']:,} packets on the wire (the host joins them: {row['data_packets']:,} were "
        "captured)"
        if joined
        else f"{row['data_packets']:,} packets with data"
    )
    return (
        f"{_sum(recoveries, 'retransmitted') * _wire(row):,.0f} of {packets} were sent again "
        f"({ratio:.2%} without those sent for nothing), {_sum(recoveries, 'timeouts'):,} of them after a "
        f"timeout, in {recoveries.height:,} recoveries"
    )


def _losses(trace: Trace, row: Row) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Recoveries of a direction that began without and with a full queue, as far as round trips tell, each
    with the place of the round trip before it (`queue`: 0 at the least, 1 at the largest).

    Losses are those of congestion while the delay is above the middle of its range.

    Source: Cen 2003, Spike
    DEVIATION: round trips instead of one-way delays; the largest is that of the smoothed ones before the
    recoveries, or the 95 % quantile of all. Three flows or more between the same hosts share the range, and
    what others of them tell of the queue within a round trip counts, too (`_shared`).
    """
    flows = _of_path(trace, row)
    rows = trace["recoveries"].filter(pl.col("flow").is_in(flows.get_column("flow").implode()))
    least, most = _range_ps(trace, flows, rows.get_column("rtt_ps"))
    mine = rows.filter(pl.col("flow") == row["flow"])
    if least is None or most is None or near_receiver(row):
        mine = mine.with_columns(queue=pl.lit(None, pl.Float64))
    elif most - least < _QUEUED * least:
        mine = mine.with_columns(queue=pl.lit(0.0))
    else:
        rows = rows.with_columns(queue=(pl.col("rtt_ps") - least) / (most - least)).sort("t_ps")
        mine = rows.filter(pl.col("flow") == row["flow"])
        if flows.height >= _SEVERAL:
            grown = _grown(trace, flows, mine, least + _SPIKE * (most - least))
            shared = _shared(mine, rows, flows.height, most, grown)
            mine = mine.with_columns(queue=pl.Series(shared, dtype=pl.Float64))
    full = pl.col("queue").fill_null(0.0) >= _SPIKE
    return mine.filter(~full), mine.filter(full)


def _of_path(trace: Trace, row: Row) -> pl.DataFrame:
    """The TCP directions with data between the same hosts as one; itself alone where they are too few."""
    host = [pl.col(end).str.replace(_PORT, "") == re.sub(_PORT, "", row[end]) for end in ("from", "to")]
    flows = trace["flows"].filter(pl.col("protocol") == 6, pl.col("data_packets") > 0, *host)
    return flows if flows.height >= _SEVERAL else flows.filter(pl.col("flow") == row["flow"])


def _range_ps(trace: Trace, flows: pl.DataFrame, before: pl.Series) -> tuple[float | None, float | None]:
    """The least and the largest round trip of flows. Of several, those before recoveries bound the largest:
    acknowledgments that are delayed are later than any queue, but rarely move a smoothed one."""
    least = min(flows.get_column("rtt_min_ps").drop_nulls().to_list(), default=None)
    most = common_rtt_ps(trace["rtts"], *flows.get_column("flow"))
    known = sorted(before.drop_nulls().to_list())
    if least is None or most is None or not known:
        return least, most
    if flows.height == 1:
        return least, max(most, known[-1])
    usual = known[int(_USUAL * (len(known) - 1))]
    # Where most losses came without a queue, those that fill one are still told by all samples.
    return least, most if usual - least < _QUEUED * least else min(most, usual)


def _grown(trace: Trace, flows: pl.DataFrame, mine: pl.DataFrame, above_ps: float) -> np.ndarray:
    """Whether a round trip of flows was so long in the interval of a recovery, or in the next."""
    of_path = pl.col("flow").is_in(flows.get_column("flow").implode())
    rows = trace["intervals"].filter(of_path & (pl.col("rtt_max_ps") >= above_ps))
    seen, at = rows.get_column("t_ps") // trace.every_ps, mine.get_column("t_ps") // trace.every_ps
    return np.isin(at.to_numpy(), seen.to_numpy()) | np.isin(at.to_numpy() + 1, seen.to_numpy())


def _shared(
    mine: pl.DataFrame, rows: pl.DataFrame, flows: int, most: float, grown: np.ndarray
) -> list[float | None]:
    """The places of recoveries, or what others of their path say where that is more: the median of all within
    a round trip if they are of several flows, and 1 where half of the flows lose within one round trip, while
    round trips grow: a queue that fills so fast is full before a smoothed one knows. `rows`: by time;
    `most`: the round trip of a full queue."""
    times = rows.get_column("t_ps").to_numpy().astype(np.float64)
    places, of = rows.get_column("queue").fill_null(math.nan).to_numpy(), rows.get_column("flow").to_numpy()
    shared: list[float | None] = []
    for t_ps, rtt_ps, own, grows in zip(*mine.select("t_ps", "rtt_ps", "queue"), grown, strict=True):
        place, within = own, max(rtt_ps or 0.0, most)
        first, last = np.searchsorted(times, (t_ps - within, t_ps + within))
        known = ~np.isnan(places[first:last])
        if len(np.unique(of[first:last][known])) >= _SEVERAL:
            place = max(place or 0.0, float(np.median(places[first:last][known])))
        first, last = np.searchsorted(times, (t_ps - within / 2, t_ps + within / 2))
        if grows and len(np.unique(of[first:last])) >= max(_SEVERAL, flows / 2):
            place = 1.0
        shared.append(place)
    return shared


def common_rtt_ps(bins: pl.DataFrame, *flows: int) -> float | None:
    """The 95 % quantile of the round trips of directions."""
    mine = bins.filter(pl.col("flow").is_in(flows) & (pl.col("source") == "ack")).sort("low_ps")
    if mine.is_empty():
        return None
    reached = pl.col("samples").cum_sum() >= _COMMON * pl.col("samples").sum()
    return float(mine.filter(reached).item(0, "low_ps"))


def _real(row: Row, recoveries: pl.DataFrame) -> float:
    """Retransmissions of some recoveries, without the share of all that was for nothing."""
    needed: float = 1.0 - row["spurious"] / max(row["retransmitted"], 1)
    return max(_sum(recoveries, "retransmitted") * _wire(row) * needed, 0.0)


def _wire(row: Row) -> float:
    """Packets on the wire for each that was captured, of those that were sent again: more than one where the
    host joins them."""
    return (
        float(row["retransmitted_segments"] / max(row["retransmitted"], 1)) if row["retransmitted"] else 1.0
    )


def _sum(rows: pl.DataFrame, column: str) -> int:
    return int(rows.get_column(column).sum())


def _square_root_bps(row: Row) -> float | None:
    """The rate of a Reno flow with one loss event for so many packets.

    Source: Mathis 1997, sqrt(3/2) MSS / (RTT sqrt(p)), p being events, each of which halves the window once.
    """
    round_trip = row["handshake_ps"] if near_receiver(row) else row["rtt_mean_ps"]
    if not round_trip or not row["recoveries"]:
        return None
    mss = float(row["payload_bytes"]) / row["segments"]
    bound: float = math.sqrt(1.5) * mss * 8e12 / (round_trip * math.sqrt(row["recoveries"] / row["segments"]))
    return bound


def _recovery_rows(recoveries: pl.DataFrame) -> list[dict[str, Any]]:
    """The recoveries with most retransmissions, as evidence."""
    return [
        {
            "t_s": each["t_ps"] / 1e12,
            "length_s": (each["end_ps"] - each["t_ps"]) / 1e12,
            "retransmitted": each["retransmitted"],
            "timeouts": each["timeouts"],
            "flight_bytes": each["flight_bytes"],
            **({} if each["rtt_ps"] is None else {"rtt_before_ms": each["rtt_ps"] / 1e9}),
        }
        for each in recoveries.sort("retransmitted", descending=True).head(EVIDENCE).iter_rows(named=True)
    ]
