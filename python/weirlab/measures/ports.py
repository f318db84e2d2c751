"""Measures of ports: how busy they are, and what waits there."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weirlab.measures.rows import Window, by_replicate, port_rows
from weirlab.records import Records

__all__ = ["max_queue", "mean_queue", "utilisation"]


def utilisation(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Share of the time in which ports transmit: sum of 8 (bytes + framing x frames) / sum of
    rate x time.

    Several ports are weighted by their rates. A frame counts as a whole in the interval in which its
    transmission begins, so that a window may hold up to one frame more or less than its share.
    """
    names = records["port_names"].filter(pl.col("port").is_in(list(ports)))
    rows = port_rows(records, ports, window).join(
        names.select("port", "rate_bps", "framing_bytes"), on="port", maintain_order="left"
    )
    bits = 8.0 * (pl.col("bytes").cast(pl.Float64) + pl.col("frames") * pl.col("framing_bytes")).sum()
    capacity_bps = float(names.get_column("rate_bps").sum())
    return by_replicate(records, rows, bits * 1e12 / capacity_bps, per_ps=True, window=window)


def mean_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Mean over time of the bytes that wait [B]: (integral of waiting bytes over time) / time, summed over
    the ports.

    The frame in transmission does not wait.
    """
    rows = port_rows(records, ports, window)
    integral = pl.col("queue_byte_ps").cast(pl.Float64).sum()
    return by_replicate(records, rows, integral, per_ps=True, window=window)


def max_queue(records: Records, ports: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Most bytes that wait at one of the ports [B]. The frame in transmission does not wait."""
    rows = port_rows(records, ports, window)
    return by_replicate(records, rows, pl.col("queue_max_bytes").max().cast(pl.Float64))
