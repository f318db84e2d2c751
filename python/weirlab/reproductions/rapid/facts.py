"""What a run gave, in the numbers of the published study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weirlab.records import Records

if TYPE_CHECKING:
    from weirlab.reproductions.rapid.cases import Case


SETTLE_S = 0.5
"""After a change of the cross traffic, before what is settled is judged."""
SMOOTHING_S = 0.1
"""Time constant of the smoothed estimate."""
INTACT = 0.8
"""A stream is a ramp when this share of its gaps is what was asked for, or what the link can."""
SPILT = 3
"""Packets back to back among the first eight gaps that make a stream spoilt by the one before."""
_BINS_PER_S = 2


def bins(records: Records) -> pl.DataFrame:
    """Goodput by interval of 0.5 s: columns ``replicate bin mbps``."""
    rows = records["tcp"].select("replicate", "t_ps", "acked_bytes").sort("replicate", "t_ps")
    # What is acknowledged by the end of an interval belongs to it.
    ends = rows.filter(pl.col("t_ps") % (10**12 // _BINS_PER_S) == 0)
    return ends.with_columns(
        bin=pl.col("t_ps") // (10**12 // _BINS_PER_S) - 1,
        mbps=pl.col("acked_bytes").diff().over("replicate").fill_null(pl.col("acked_bytes"))
        * 8
        * _BINS_PER_S
        / 1e6,
    ).select("replicate", "bin", "mbps")


def facts(records: Records, case: Case) -> pl.DataFrame:
    """One row per run."""
    start_s, stop_s = case.window_s
    rows = []
    for replicate, seed in records["runs"].select("replicate", "seed").iter_rows():
        mine = {
            name: records[name].filter(pl.col("replicate") == replicate)
            for name in ("connections", "resent", "drops", "probe_streams", "probe_states", "tcp", "ports")
        }
        connection = mine["connections"].row(0, named=True)
        row: dict[str, object] = {"seed": seed}
        row |= {name: connection[name] for name in _COUNTERS}
        row |= {f"resent_{times}": _count(mine["resent"], times) for times in (1, 2, 3)}
        row["resent_sum"] = int((mine["resent"]["times"] * mine["resent"]["segments"]).sum())
        row |= _drops(records, mine["drops"])
        row["mbytes"] = connection["delivered_bytes"] / 2**20
        done_ps = connection["delivered_ps"]
        row["end_s"] = None if done_ps is None else done_ps / 1e12
        row["settled_mbps"] = _rate(mine["tcp"], start_s + SETTLE_S, stop_s)
        row["late_mbps"] = _rate(mine["tcp"], 3.0, 5.0)
        row |= off_times(mine["probe_states"])
        row |= _streams(mine["probe_streams"], case)
        row["loss_events"] = connection["recoveries"] + connection["timeouts"]
        row["worst_estimate"] = _worst(mine["probe_streams"], records, replicate, case)
        row |= _queue(records, replicate, start_s + SETTLE_S, stop_s)
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


_COUNTERS = (
    "retransmits",
    "fast_retransmits",
    "forward_retransmits",
    "slow_start_retransmits",
    "timeout_retransmits",
    "rescue_retransmits",
    "timeouts",
    "recoveries",
    "recovery_failures",
    "paws_rejects",
)


def _count(resent: pl.DataFrame, times: int) -> int:
    return int(resent.filter(pl.col("times") == times).get_column("segments").sum())


def _drops(records: Records, drops: pl.DataFrame) -> dict[str, int]:
    """Frames of the two flows that the router counted as dropped, and all that were lost."""
    causes = records["cause_names"].filter(pl.col("name") == "input-overrun").select("cause")
    seen = drops.join(causes, on="cause", how="anti")
    names = records["flow_names"].select("flow", "name")
    named = seen.join(names, on="flow", how="left")
    of = {
        key: int(named.filter(pl.col("name").str.starts_with(f"{name}/")).get_column("frames").sum())
        for key, name in (("dropped_tcp", "rapid"), ("dropped_udp", "cross"))
    }
    return {**of, "dropped": int(drops.get_column("frames").sum())}


def _rate(tcp: pl.DataFrame, from_s: float, to_s: float) -> float:
    """Goodput between two times [Mbit/s], to the nearest interval of the record."""
    at = [
        float(tcp.select(pl.col("acked_bytes").get((pl.col("t_ps") / 1e12 - time_s).abs().arg_min())).item())
        for time_s in (from_s, to_s)
    ]
    return (at[1] - at[0]) * 8.0 / (to_s - from_s) / 1e6


def off_times(states: pl.DataFrame) -> dict[str, float]:
    """For how long no streams were sent, by both readings of the log [s], and how often a timeout came while
    it was so already.

    ``off_s`` counts from an OFF to the next ON; ``off_last_s`` from the last OFF before an ON.
    ``repair_ms`` is the mean length of those without such a timeout [ms], not a number where there is none.
    """
    off_s = off_last_s = 0.0
    repairs: list[float] = []
    first: float | None = None
    last = 0.0
    doubles = 0
    for t_ps, state in states.select("t_ps", "state").iter_rows():
        time_s = t_ps / 1e12
        if state == 0:
            if first is not None:
                off_s += time_s - first
                off_last_s += time_s - last
                if first == last:
                    repairs.append(1e3 * (time_s - first))
            first = None
        else:
            doubles += first is not None
            first = time_s if first is None else first
            last = time_s
    repair_ms = sum(repairs) / len(repairs) if repairs else math.nan
    return {"off_s": off_s, "off_last_s": off_last_s, "double_offs": doubles, "repair_ms": repair_ms}


def _streams(streams: pl.DataFrame, case: Case) -> dict[str, float | None]:
    """What the streams of the cross period show."""
    start_s, stop_s = case.window_s
    mine = streams.filter(pl.col("t_ps").is_between((start_s + SETTLE_S) * 1e12, stop_s * 1e12))
    names = ("ab_p10_mbps", "ab_p50_mbps", "ab_p90_mbps", "excursions", "at_link", "intact", "spilt")
    if mine.is_empty():
        return dict.fromkeys(names)
    known = mine.drop_nulls("available_bps")
    quantiles: Sequence[float | None] = [
        None if known.is_empty() else float(np.quantile(known["available_bps"].to_numpy(), q)) / 1e6
        for q in (0.1, 0.5, 0.9)
    ]
    shares = (
        float(known.select(pl.col("excursion_start").is_not_null().mean()).item()) if known.height else None,
        float(known.select((pl.col("available_bps") >= 0.95e9).mean()).item()) if known.height else None,
        float(mine.select((pl.col("fitting_gaps") >= INTACT * (pl.col("packets") - 1)).mean()).item()),
        float(mine.select((pl.col("spilt_gaps") >= SPILT).mean()).item()),
    )
    return dict(zip(names, (*quantiles, *shares), strict=True))


def smoothed(streams: pl.DataFrame, truth: pl.DataFrame | None = None) -> pl.DataFrame:
    """Estimates with their exponential mean over time: columns ``t_s mbps smooth_mbps``.

    With ``truth`` (columns ``t_s bits``: what the cross traffic has brought on the wire up to a time) also
    ``true_mbps`` and ``smooth_true_mbps``: the mean over each stream of what is left of the link, smoothed
    alike.
    """
    known = streams.drop_nulls("available_bps").sort("closed_ps")
    times = known["closed_ps"].to_numpy() / 1e12
    shares = 1.0 - np.exp(-np.diff(times, prepend=times[:1]) / SMOOTHING_S)
    columns = {"t_s": times, "mbps": known["available_bps"].to_numpy() / 1e6}
    if truth is not None and known.height:
        from_s, to_s = known["t_ps"].to_numpy() / 1e12, known["end_ps"].to_numpy() / 1e12
        brought = [np.interp(at, truth["t_s"].to_numpy(), truth["bits"].to_numpy()) for at in (from_s, to_s)]
        left = 1e9 - (brought[1] - brought[0]) / np.maximum(to_s - from_s, 1e-9)
        columns["true_mbps"] = left / 1e6
    for name in [name for name in columns if name != "t_s"]:
        columns[f"smooth_{name}"] = _exponential(columns[name], shares)
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))


def _exponential(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    mean = np.empty(values.size)
    for place, value in enumerate(values):
        before = mean[place - 1] if place else value
        mean[place] = before + shares[place] * (value - before)
    return mean


def brought(records: Records, replicate: int) -> pl.DataFrame:
    """What the cross traffic has brought on the wire up to a time: columns ``t_s bits``."""
    names = records["traffic_names"].filter(pl.col("name") == "cross").select("traffic")
    rows = (
        records["deliveries"].filter(pl.col("replicate") == replicate).join(names, on="traffic").sort("t_ps")
    )
    return rows.select(t_s=pl.col("t_ps") / 1e12, bits=(pl.col("frames").cum_sum() * (_CROSS_BYTES * 8.0)))


def gap_distribution(packets: pl.DataFrame) -> pl.DataFrame:
    """Quantiles of the gaps within streams from 2.5 s to 5 s: columns ``end`` (sent or received) ``share
    gap_us``."""
    rows = packets.filter(pl.col("sent_ps").is_between(2_500_000_000_000, 5_000_000_000_000))
    made = []
    for end in ("sent", "received"):
        gaps = (
            rows.drop_nulls(f"{end}_ps")
            .sort("stream", "packet")
            .select((pl.col(f"{end}_ps").cast(pl.Float64).diff() / 1e6).over("stream").alias("gap_us"))
            .drop_nulls()
            .get_column("gap_us")
            .to_numpy()
        )
        levels = _LEVELS if gaps.size else _LEVELS[:0]
        made.append(
            pl.DataFrame(
                {"share": levels, "gap_us": np.quantile(gaps, levels) if gaps.size else levels}
            ).select(pl.lit(end).alias("end"), "share", "gap_us")
        )
    return pl.concat(made)


_LEVELS = np.concatenate([np.linspace(0.0, 0.99, 199), [0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0]])


_CROSS_BYTES = 1536
"""A frame of the cross traffic with preamble and gap."""


def _worst(streams: pl.DataFrame, records: Records, replicate: int, case: Case) -> float | None:
    """Greatest relative error of the smoothed estimate from 0.5 s after the cross traffic began until it
    ends; the truth is what is left over each stream, smoothed alike."""
    start_s, stop_s = case.window_s
    rows = smoothed(streams, brought(records, replicate))
    rows = rows.filter(pl.col("t_s").is_between(start_s + SETTLE_S, stop_s))
    if rows.is_empty():
        return None
    error = pl.col("smooth_mbps") / pl.col("smooth_true_mbps") - 1.0
    return float(rows.select(error.abs().max()).item())


def _queue(records: Records, replicate: int, from_s: float, to_s: float) -> dict[str, float | None]:
    """Mean queue of the router [frames of 1518 B] and what of the cross traffic arrived."""
    rows = records["intervals"].filter(
        pl.col("replicate") == replicate, pl.col("t_ps").is_between(from_s * 1e12, to_s * 1e12)
    )
    mean = rows.select((pl.col("queue_byte_ps").sum() / (pl.len() * 10**10)) / 1518).item()
    flows = records["flows"].filter(pl.col("replicate") == replicate)
    cross = flows.join(
        records["flow_names"].filter(pl.col("name").str.starts_with("cross/")).select("flow"), on="flow"
    )
    lost = cross.select(pl.col("dropped_frames").sum() / pl.col("sent_frames").sum()).item()
    return {"queue_frames": mean, "cross_loss": lost}
