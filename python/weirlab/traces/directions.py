"""What detectors of findings share: rows of directions, the place of a capture, and words for numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weirlab.traces.model import EVIDENCE, Finding, Row, Trace, Verdict
from weirlab.traces.remedies import HARMLESS, REMEDIES

LIMITED = 0.5
"""Share of its active time for which a sender must have been limited by one thing."""
_NEAR_RECEIVER = 0.2
"""A capture is near the receiver when acknowledgments come after less than this share of a round trip."""
_LOCAL_PS = 1e9
"""Handshakes that take less say as much of the hosts as of the network."""
_FAST, _FASTER = (0.75, 0.9, 0.95, 0.99), 2.0
"""Quantiles of the rates of trains, and by how much the second one may exceed the first to count."""
_SAME, _AGREE, _TRAINS = 1.1, 1.3, 100
"""Rates of the fastest trains that are the same, of so many at least; and rates of busy times that agree."""
_FASTER_THAN_ALL, _TRAIN = 1.5, 8
"""A sender that paces goes as fast as its pace on the whole, within this factor; less than a train that waits
is its own burst."""
_BACK = 0.05
"""Share of the bytes that must go the other way for its queue to matter."""
_PORT = r":\d+$"


def finding_of(
    row: Row,
    kind: str,
    verdict: Verdict,
    title: str,
    text: str,
    values: Mapping[str, float],
    evidence: Sequence[Mapping[str, object]] = (),
    remedy: str = "",
) -> Finding:
    remedy = remedy or (verdict == "notice" and HARMLESS.get(kind)) or REMEDIES.get(kind, "")
    return Finding(kind, verdict, title, text, row["flow"], values, tuple(evidence), remedy=remedy)


def near_receiver(trace: Trace, row: Row) -> bool:
    """Whether the capture was made near the receiver of this direction.

    By the parts of the handshake, which wait for no application; on a local network, where these are no
    longer than a host takes to wake up, and without a handshake, by what is typical of the parts of the
    round trip.
    """
    there, whole = row["handshake_there_ps"], row["handshake_ps"]
    if there is not None and whole is not None and whole >= _LOCAL_PS:
        ahead = there if row["client"] else whole - there
        return bool(ahead < _NEAR_RECEIVER * whole)
    typical = {part: _typical_ps(trace, row, part) for part in ("ahead", "behind")}
    if typical["ahead"] is None or typical["behind"] is None:
        return False
    return bool(typical["ahead"] < _NEAR_RECEIVER * (typical["ahead"] + typical["behind"]))


def _typical_ps(trace: Trace, row: Row, part: str) -> float | None:
    least = row[f"{part}_min_ps"]
    return None if least is None else least + (wait_ps(trace, row, part, 0.5) or 0.0)


def wait_ps(trace: Trace, row: Row, part: str, at: float) -> float | None:
    """A quantile of what a part of the round trip took beyond its least; None where nothing is known of
    it."""
    return _quantile(waits(trace, row["flow"], part), "low_ps", "samples", at)


def waits(trace: Trace, flow: int, part: str) -> pl.DataFrame:
    """What waited in a part of the round trip of a direction: bins of the excess over the least, by time."""
    return trace["waits"].filter(pl.col("flow") == flow, pl.col("part") == part).sort("low_ps")


def far_part(trace: Trace, row: Row) -> str:
    """The part of the round trip that holds the path: `ahead` of the capture or, near the receiver,
    `behind`."""
    return "behind" if near_receiver(trace, row) else "ahead"


def round_trip_ps(row: Row) -> float | None:
    """The least round trip of the whole path."""
    if row["round_trip_ps"]:
        return float(row["round_trip_ps"])
    parts = [row["ahead_min_ps"], row["behind_min_ps"]]
    return sum(part for part in parts if part is not None) or None


def capacity_bps(trace: Trace, row: Row) -> float | None:
    """What the path carries while it is busy, or where that does not show (`capacity_is_known`) what it
    carried now and then.

    In times in which something waited all along, it is the rate that three quarters of the segments do not
    exceed, as a host that pauses makes some slower. Where few such times are known, as near a receiver, most
    trains of eight segments from a sender that waits have a pause in them, and it is a high quantile: that
    which the fastest share, if there is one.

    Source: Dovrolis 2004, section III
    DEVIATION: not the mode of all dispersions, but a quantile; not the largest, which compressed
    acknowledgments make.
    """
    trains = _trains(trace, row)
    usual, high, higher, _ = (_quantile(trains, "low_bps", "trains", at) for at in _FAST)
    if usual is None or high is None or higher is None:
        return None
    if trains.item(0, "busy"):
        return usual
    if _has_ceiling(trains):
        return high if higher <= _SAME * high else higher
    return min(high, _FASTER * usual)


def capacity_is_known(trace: Trace, row: Row) -> bool:
    """Whether `capacity_bps` is that of the path: busy times agree about it, as they do not where jitter or
    data of the other way passes for a queue; or the fastest trains share a rate that is no pace of the
    sender, since it goes more slowly on the whole, or something waits.

    Its limits are those of captures whose path is known: paces of senders are taken for paths otherwise.
    """
    trains = _trains(trace, row)
    capacity = capacity_bps(trace, row)
    if capacity is None:
        return False
    if trains.item(0, "busy"):
        higher = _quantile(trains, "low_bps", "trains", _FAST[2]) or 0.0
        return higher <= _AGREE * capacity and not goes_back(trace, row)
    waited = wait_ps(trace, row, far_part(trace, row), 0.5) or 0.0
    segment_bits = 8.0 * row["payload_bytes"] / max(row["segments"], 1)
    stands = waited * capacity / 1e12 >= _TRAIN * segment_bits
    if application_ratio(row) >= LIMITED:
        # Slower on the whole for that alone: its bursts may share its own pace.
        return False
    return _has_ceiling(trains) and (stands or capacity >= _FASTER_THAN_ALL * (row["goodput_bps"] or 0.0))


def goes_back(trace: Trace, row: Row) -> bool:
    """Whether the other hosts of a direction send as a bulk transfer does."""
    forward, backward = (
        path_of(trace, {"from": row[start], "to": row[end]}).get_column("payload_bytes").sum()
        for start, end in (("from", "to"), ("to", "from"))
    )
    return float(backward) >= _BACK * float(forward)


def has_sack(trace: Trace, row: Row) -> bool:
    """Whether both ends of a direction permit selective acknowledgments (RFC 2018); taken for granted where
    the handshake was not captured."""
    ends = trace.flows().filter(pl.col("connection") == row["connection"]).get_column("sack_permitted")
    return row["handshake_ps"] is None or bool((ends != 0).all())


def path_of(trace: Trace, row: Row) -> pl.DataFrame:
    """The TCP directions with data between the same hosts: they share what waits."""
    host = [pl.col(end).str.replace(_PORT, "") == re.sub(_PORT, "", row[end]) for end in ("from", "to")]
    return trace.flows().filter(pl.col("protocol") == 6, pl.col("data_packets") > 0, *host)


def _trains(trace: Trace, row: Row) -> pl.DataFrame:
    return trace["trains"].filter(pl.col("flow") == row["flow"]).sort("low_bps")


def _has_ceiling(trains: pl.DataFrame) -> bool:
    """Whether the fastest trains share a rate."""
    _, _, higher, highest = (_quantile(trains, "low_bps", "trains", at) for at in _FAST)
    enough = trains.get_column("trains").sum() >= _TRAINS
    return bool(enough and higher and highest and highest <= _SAME * higher)


def share_of(bins: pl.DataFrame, chosen: pl.Expr, count: str) -> float:
    """What share of all counted values lies in some bins."""
    return float(bins.select(pl.col(count).filter(chosen).sum() / pl.col(count).sum()).item())


def _quantile(bins: pl.DataFrame, value: str, count: str, at: float) -> float | None:
    if bins.is_empty():
        return None
    reached = pl.col(count).cum_sum() >= at * pl.col(count).sum()
    return float(bins.filter(reached).item(0, value))


def active_ps(row: Row) -> float:
    if row["first_data_ps"] is None:
        return 0.0
    return float(row["last_data_ps"] - row["first_data_ps"])


def application_ratio(row: Row) -> float:
    """Share of the active time in which the sender had nothing more to send."""
    active = active_ps(row)
    return min(max(row["idle_ps"], row["application_ps"]) / active, 1.0) if active else 0.0


def interval_rows(rows: pl.DataFrame, *columns: str) -> list[dict[str, object]]:
    """Some intervals as evidence, spread over all."""
    step = max(1, rows.height // EVIDENCE)
    chosen = rows.gather_every(step).head(EVIDENCE)
    return [
        in_units({"t_ps": each["t_ps"], **{name: each[name] for name in columns}})
        for each in chosen.to_dicts()
    ]


def in_units(row: Row) -> dict[str, object]:
    """A row of evidence with its times in units that people read: the time of the row in s, all else in
    ms."""
    return dict(_in_unit(name, value) for name, value in row.items())


def _in_unit(name: str, value: Any) -> tuple[str, object]:
    if not name.endswith("_ps"):
        return name, value
    unit, ps = ("s", 1e12) if name == "t_ps" else ("ms", 1e9)
    return f"{name.removesuffix('ps')}{unit}", None if value is None else value / ps


def rate_text(bps: float | None) -> str:
    if bps is None:
        return "an unknown rate"
    return f"{bps / 1e6:.4g} Mbit/s"


def ms_text(ps: float | None) -> str:
    if ps is None:
        return "an unknown time"
    return f"{ps / 1e9:.3g} ms" if ps < 1e12 else f"{ps / 1e12:.3g} s"


def bytes_text(count: float) -> str:
    return f"{count / 1e3:.4g} kB"
