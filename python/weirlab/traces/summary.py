"""Short tables of a trace: what limited each direction and for how long, gaps, shapes of probe streams."""

from __future__ import annotations

import polars as pl

from weirlab.traces.model import Trace

_QUANTILES = {"median_ps": 0.5, "p99_ps": 0.99}


def limits(trace: Trace) -> pl.DataFrame:
    """Shares of the active time of each TCP direction that sent data, most bytes first.

    Columns: `flow`, `name`, `window_limited` (less than a segment of the receiver's window was left),
    `window_closed` (it was 0), `idle` (all was acknowledged and the application sent nothing), `stalled`
    (nothing moved though data was outstanding), each in [0, 1] or null where nothing lasted; and
    `flight_max_bytes`, null where no acknowledgment was seen. Shares may overlap.
    """
    stalled = trace["stalls"].group_by("flow").agg(stalled_ps=pl.col("length_ps").sum())
    active = pl.col("active_s") * 1e12
    share = {
        "window_limited": pl.col("window_limited_ps"),
        "window_closed": pl.col("zero_window_ps"),
        "idle": pl.col("idle_ps"),
        "stalled": pl.col("stalled_ps").fill_null(0),
    }
    return (
        trace.flows()
        .filter((pl.col("protocol") == 6) & (pl.col("data_packets") > 0))
        .join(stalled, on="flow", how="left", maintain_order="left")
        .select(
            "flow",
            "name",
            *(pl.when(active > 0).then((ps / active).clip(0, 1)).alias(name) for name, ps in share.items()),
            pl.when(pl.col("acked_bytes") > 0).then("flight_max_bytes"),
        )
    )


def gap_quantiles(trace: Trace) -> pl.DataFrame:
    """Gaps between packets with data, one row per direction: `flow`, `gaps` (how many), `least_ps`,
    `median_ps`, `p99_ps`, `most_ps`. The least and the most are exact; bins are 1/32 wide, and quantiles are
    the middles of theirs, within the least and the most.
    """
    middle = (pl.col("low_ps") + pl.col("high_ps")) / 2
    reached = pl.col("gaps").cum_sum() / pl.col("gaps").sum()
    edges = trace["flows"].select("flow", least_ps="gap_min_ps", most_ps="gap_max_ps")
    quantiles = [pl.col(name).clip("least_ps", "most_ps") for name in _QUANTILES]
    return (
        trace["gaps"]
        .sort("flow", "low_ps")
        .group_by("flow", maintain_order=True)
        .agg(
            pl.col("gaps").sum().alias("count"),
            **{name: middle.filter(reached >= at).first() for name, at in _QUANTILES.items()},
        )
        .join(edges, on="flow", how="left", maintain_order="left")
        .select("flow", "least_ps", *quantiles, "most_ps", gaps="count")
        .select("flow", "gaps", "least_ps", "median_ps", "p99_ps", "most_ps")
    )


def stream_shapes(trace: Trace) -> pl.DataFrame:
    """Probe streams by shape: `flow`, `packets` (of a stream), `shape`, `streams`, `mean_gap_ps`."""
    packets = trace["details"].select("flow", packets="stream_packets")
    return (
        trace["p_streams"]
        .join(trace["stream_kind_names"], on="kind")
        .group_by("flow", "name", maintain_order=True)
        .agg(streams=pl.len(), mean_gap_ps=pl.col("mean_gap_ps").mean())
        .join(packets, on="flow", how="left", maintain_order="left")
        .sort(["flow", "streams"], descending=[False, True])
        .select("flow", "packets", "streams", "mean_gap_ps", shape="name")
    )
