"""Measures of hotspots: bursts, fairness against a fair share, recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weirlab.measures.rows import (
    MissingRecordError,
    Window,
    by_replicate,
    flow_intervals,
    jain_index,
    recorded,
    windowed,
)
from weirlab.records import Records

__all__ = ["burst_delay", "delay_fairness", "drops", "recovery_time", "relative_fairness"]


def burst_delay(
    records: Records, traffic: Sequence[int], *, longest: bool = False, window: Window | None = None
) -> pl.DataFrame:
    """Time [ps] from the first frame of a burst, when it is made, to its last one, when it arrives: the mean
    over all bursts that arrived whole, in the window if there is one, or the `longest` of the run. Null where
    none did. Raises MissingRecordError where the series of a flow is missing, and for the longest of a
    window.

    Source: ZRL benchmark, 'Simulation Overview' (latency measured per burst).
    """
    rows = _bursts(records, traffic)
    if window is not None:
        if longest:
            raise MissingRecordError("the longest delay of bursts is recorded of the whole run only")
        chosen = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic))).get_column("flow")
        windowed(records, "flow_deliveries", "flow", chosen.to_list(), window)
        inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
        rows = records["burst_intervals"].filter(pl.col("flow").is_in(chosen.to_list()) & inside)
    if longest:
        return by_replicate(records, rows, pl.col("delay_max_ps").max())
    count = pl.col("bursts").sum()
    mean = pl.col("delay_sum_ps").cast(pl.Float64).sum() / count
    return by_replicate(records, rows, pl.when(count > 0).then(mean))


def delay_fairness(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Jain's index of the mean burst delays of flows, in [1/n, 1]; 1 is fair. See `jain_index`.

    Flows without a whole burst do not count. This index is our own: the benchmark names a latency fairness
    index, ALFI, which is defined nowhere that we know.
    """
    whole = _bursts(records, traffic).filter(pl.col("bursts") > 0)
    mean = pl.col("delay_sum_ps").cast(pl.Float64) / pl.col("bursts")
    rows = whole.select("replicate", delay=mean)
    return by_replicate(records, rows, jain_index("delay"))


def relative_fairness(
    records: Records,
    traffic: Sequence[int],
    receiver: str,
    shares: Mapping[str, float],
    window: Window | None = None,
) -> pl.DataFrame:
    """RJFI: Jain's index of x_i = T_i / T_i ideal over the flows to `receiver`, in [1/n, 1]; 1 is fair.

    T_i: bytes delivered in the window, or in the whole run; `shares`: the ideal of each sender, in any unit.
    Null where nothing was delivered to it. Raises MissingRecordError where the series of a flow is
    missing. Source: ZRL benchmark, 'Simulation Overview'
    """
    ideals = pl.DataFrame(
        {"from": list(shares), "ideal": list(map(float, shares.values()))},
        schema={"from": pl.String, "ideal": pl.Float64},
    )
    chosen = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic)) & (pl.col("to") == receiver))
    flows = chosen.select("flow", "from").join(ideals.filter(pl.col("ideal") > 0), on="from")
    # Several flows of a sender, as from traffic that was interrupted, share its ideal.
    delivered = (
        records["flows"].select("replicate", "flow", bytes="delivered_bytes")
        if window is None
        else flow_intervals(records, traffic, window)
    )
    rows = (
        delivered.join(flows, on="flow", how="inner")
        .group_by("replicate", "from")
        .agg(x=pl.col("bytes").sum().cast(pl.Float64) / pl.col("ideal").first())
    )
    return by_replicate(records, rows, jain_index("x"))


def recovery_time(
    records: Records, ports: Sequence[int], bytes_per_ps: float, start_ps: int, *, window: Window | None
) -> pl.DataFrame:
    """Time [ps] from `start_ps` to the end of the last recorded interval in which the ports together carry
    less than `bytes_per_ps`: from then on they keep it. 0 where they always do.

    Null where they did not keep it up to the end of the window for at least as long as they lacked it at a
    stretch. Without control PAUSE makes a switch run at full rate and stand still by turns; a window that
    ends while it runs shows no recovery.
    """
    rows = recorded(records, "intervals", "port", ports, window)
    sums = rows.group_by("replicate", "t_ps").agg(pl.col("bytes").cast(pl.Float64).sum())
    sums = sums.sort("replicate", "t_ps")
    before = pl.col("t_ps").shift(1).over("replicate", order_by="t_ps").fill_null(window[0] if window else 0)
    sums = sums.with_columns(length=pl.col("t_ps").cast(pl.Float64) - before)
    sums = sums.filter(pl.col("t_ps") > start_ps)
    sums = sums.with_columns(slow=pl.col("bytes") < bytes_per_ps * pl.col("length"))
    stretch = pl.col("slow").rle_id().over("replicate", order_by="t_ps")
    sums = sums.with_columns(lacked=pl.col("length").sum().over("replicate", stretch) * pl.col("slow"))
    last = pl.col("t_ps").filter(pl.col("slow")).max().fill_null(start_ps)
    kept = (pl.col("t_ps").max() - last).cast(pl.Float64)
    value = pl.when(kept > 0, kept >= pl.col("lacked").max()).then((last - start_ps).cast(pl.Float64))
    return by_replicate(records, sums, value)


def drops(records: Records, ports: Sequence[int], cause: str | None = None) -> pl.DataFrame:
    """Frames dropped at the ports, or those of data for this cause; 0 where operation was lossless."""
    if cause is not None:
        rows = records.named("drops").filter(pl.col("port").is_in(list(ports)), pl.col("cause_name") == cause)
        counts = by_replicate(records, rows, pl.col("frames").cast(pl.Float64).sum())
        return counts.with_columns(pl.col("value").fill_null(0.0))
    rows = records["ports"].filter(pl.col("port").is_in(list(ports)))
    return by_replicate(records, rows, pl.col("drops").sum().cast(pl.Float64))


def _bursts(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `bursts` of these entries of traffic. Raises MissingRecordError where there are none."""
    flows = records["flow_names"].filter(pl.col("traffic").is_in(list(traffic))).select("flow")
    if "bursts" not in records or records["bursts"].is_empty():
        raise MissingRecordError("bursts were not recorded: they need sources of the kind 'bursts'")
    return records["bursts"].join(flows, on="flow", how="inner", maintain_order="left")
