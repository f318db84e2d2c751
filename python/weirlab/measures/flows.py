"""Measures of flows: what arrives of them, when, and how evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from weirlab.measures.rows import (
    MissingRecordError,
    Window,
    by_replicate,
    flow_intervals,
    flow_rows,
    jain_index,
    traffic_intervals,
)
from weirlab.records import Records

__all__ = [
    "completion_time",
    "delay_percentile",
    "delivered_rate",
    "goodput",
    "jain_fairness",
    "loss_ratio",
    "max_delay",
    "mean_delay",
    "rate_error",
    "rms_fairness",
    "time_to_converge",
]


def delivered_rate(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Bits of frames delivered per second, over all flows [bit/s]: 8 x bytes / time, framing excluded."""
    if window is None:
        rows = flow_rows(records, traffic).rename({"delivered_bytes": "bytes"})
    else:
        rows = traffic_intervals(records, traffic, window)
    bits = 8.0 * pl.col("bytes").cast(pl.Float64).sum()
    return by_replicate(records, rows, bits * 1e12, per_ps=True, window=window)


def goodput(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Bits of streams delivered in order per second of the run, over all TCP connections [bit/s]: headers,
    retransmissions and what waits for something before it do not count. Null where there is no connection.
    """
    bits = 8.0 * pl.col("delivered_bytes").cast(pl.Float64).sum()
    return by_replicate(records, _connections(records, traffic), bits * 1e12, per_ps=True)


def completion_time(
    records: Records, traffic: Sequence[int], take: Literal["mean", "median", "longest"]
) -> pl.DataFrame:
    """Time [ps] from the opening of a TCP connection until its last byte was delivered: mean, median or
    maximum of the connections that ended. Null where none did."""
    rows = _connections(records, traffic).drop_nulls(["opened_ps", "delivered_ps"])
    each = pl.col("delivered_ps") - pl.col("opened_ps")
    of_all = {"mean": each.mean(), "median": each.median(), "longest": each.max()}
    return by_replicate(records, rows, of_all[take])


def _connections(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `connections` that belong to these entries of traffic."""
    names = records["connection_names"].filter(pl.col("traffic").is_in(list(traffic)))
    return records["connections"].join(
        names.select("connection"), on="connection", how="semi", maintain_order="left"
    )


def loss_ratio(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Dropped frames over sent frames, in [0, 1]. Frames still under way at the end are not lost.

    Null where nothing was sent. Source: RFC 1242, section 3.6, there a percentage.
    """
    sent = pl.col("sent_frames").sum()
    ratio = pl.col("dropped_frames").sum().cast(pl.Float64) / sent
    return by_replicate(records, flow_rows(records, traffic), pl.when(sent > 0).then(ratio))


def mean_delay(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Mean one-way delay of the frames delivered [ps]: sum of delays / frames. Source: RFC 7679, section
    3."""
    frames = pl.col("delivered_frames").sum()
    mean = pl.col("delay_sum_ps").cast(pl.Float64).sum() / frames
    return by_replicate(records, flow_rows(records, traffic), pl.when(frames > 0).then(mean))


def max_delay(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Largest one-way delay of the frames delivered [ps]. Source: RFC 7679, section 3."""
    return by_replicate(records, flow_rows(records, traffic), pl.col("delay_max_ps").max().cast(pl.Float64))


def delay_percentile(records: Records, traffic: Sequence[int], share: float) -> pl.DataFrame:
    """One-way delay [ps] that `share` of the delivered frames, in [0, 1], do not exceed.

    Interpolated linearly within the bin of the recorded distribution that holds it; a bin is at most
    1/32 of its delays wide, and so is the error. Never outside of the least and the greatest delay, which the
    flows' totals know exactly. Source: RFC 7679, section 5.1.
    """
    totals = flow_rows(records, traffic)
    flows = totals.select("replicate", "flow")
    bins = records["delays"].join(flows, on=["replicate", "flow"], how="semi")
    if bins.is_empty():
        raise MissingRecordError("delays were not recorded: add an entry such as {delays: NAME} to 'record'")
    bins = (
        bins.group_by("replicate", "low_ps", "high_ps")
        .agg(frames=pl.col("frames").cast(pl.Float64).sum())
        .filter(pl.col("frames") > 0)
        .sort("replicate", "low_ps")
        .with_columns(
            upto=pl.col("frames").cum_sum().over("replicate"),
            rank=share * pl.col("frames").sum().over("replicate"),
        )
        .filter(pl.col("upto") >= pl.col("rank") * (1 - 1e-12))
    )
    within = (1 - (pl.col("upto") - pl.col("rank")) / pl.col("frames")).clip(0, 1)
    value = pl.col("low_ps") + within * (pl.col("high_ps").cast(pl.Float64) - pl.col("low_ps"))
    extremes = totals.group_by("replicate").agg(
        least=pl.col("delay_min_ps").min(), greatest=pl.col("delay_max_ps").max()
    )
    bins = bins.with_columns(value=value).join(extremes, on="replicate").sort("replicate", "low_ps")
    return by_replicate(records, bins, pl.col("value").clip(pl.col("least"), pl.col("greatest")).first())


def jain_fairness(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Jain's index of the delivered rates of flows, in [1/n, 1]; 1 is fair. Null where nothing was
    delivered. See `jain_index`."""
    return by_replicate(records, _flow_rates(records, traffic, window), jain_index("rate_bps"))


def rms_fairness(
    records: Records, traffic: Sequence[int], target_bps: float, window: Window | None = None
) -> pl.DataFrame:
    """RMS distance of the delivered rates x_i of n flows from their fair share T, relative to it; 0 is fair.

    sqrt(sum ((x_i - T) / T)^2 / n). Source: BCN Calibration 2006, "Simulation Statistics".
    """
    distance = (pl.col("rate_bps") - target_bps) / target_bps
    return by_replicate(records, _flow_rates(records, traffic, window), (distance**2).mean().sqrt())


def rate_error(
    records: Records,
    traffic: Sequence[int],
    target_bps: float,
    window: Window | None = None,
    *,
    mean: bool = False,
) -> pl.DataFrame:
    """Distance of the delivered rate x of a flow from a target T, relative to it, |x - T| / T: the greatest
    of all flows, or their `mean`. Source: BCN Calibration 2006, "Simulation Statistics"."""
    error = ((pl.col("rate_bps") - target_bps) / target_bps).abs()
    return by_replicate(records, _flow_rates(records, traffic, window), error.mean() if mean else error.max())


def time_to_converge(
    records: Records, traffic: Sequence[int], target_bps: float, bound: float
) -> pl.DataFrame:
    """Time [ps] from which on the RMS fairness index, worked out in each recorded interval, does not exceed
    `bound` any more; null where it still does in the last one. See `rms_fairness`."""
    rows = flow_intervals(records, traffic)
    start = pl.col("t_ps").shift(1).over("replicate", "flow", order_by="t_ps").fill_null(0)
    rate = 8e12 * pl.col("bytes").cast(pl.Float64) / (pl.col("t_ps") - pl.col("start_ps"))
    distance = (pl.col("rate_bps") - target_bps) / target_bps
    series = (
        rows.with_columns(start_ps=start)
        .with_columns(rate_bps=rate)
        .group_by("replicate", "t_ps")
        .agg(index=(distance**2).mean().sqrt())
    )
    last_beyond = pl.col("t_ps").filter(pl.col("index") > bound).max().fill_null(0)
    return by_replicate(
        records, series, pl.when(last_beyond < pl.col("t_ps").max()).then(last_beyond.cast(pl.Float64))
    )


def _flow_rates(records: Records, traffic: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Columns `replicate`, `rate_bps`: delivered rate of each flow."""
    if window is None:
        rows = flow_rows(records, traffic)
        ends = records["runs"].select("replicate", "end_ps")
        rate = 8e12 * pl.col("delivered_bytes").cast(pl.Float64) / pl.col("end_ps")
        return rows.join(ends, on="replicate", maintain_order="left").select("replicate", rate_bps=rate)
    rate = 8e12 * pl.col("bytes").cast(pl.Float64).sum() / (window[1] - window[0])
    series = flow_intervals(records, traffic, window)
    return series.group_by("replicate", "flow", maintain_order=True).agg(rate_bps=rate)
