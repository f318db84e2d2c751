"""What the claims share."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from weirlab.reproductions.bulk.rows import PUBLISHED
from weirlab.reproductions.verdicts import Claim

FINDINGS = PUBLISHED["findings"]
SMALL = (8 << 10, 16 << 10)
LARGE = 55 << 10
of_body = partial(Claim, source="SLAC 2000, body")
of_summary = partial(Claim, source="SLAC 2000, 'Summary'")
"""Claims, by the part of the text that makes them."""


def medians(rows: pl.DataFrame, by: str | list[str], column: str) -> dict[Any, float]:
    grouped = rows.group_by(by).agg(pl.col(column).median()).sort(by)
    keys = grouped.select(by).rows()
    names = [key[0] if len(key) == 1 else key for key in keys]
    return dict(zip(names, grouped.get_column(column).to_list(), strict=True))


def by_streams(rows: pl.DataFrame, window: int, column: str) -> dict[int, float]:
    return medians(rows.filter(window_bytes=window), "streams", column)


def _part(rows: pl.DataFrame, window: int, part: str) -> pl.DataFrame:
    """The measurements of a window with at most seven streams, or with more."""
    few = pl.col("streams") <= FINDINGS["rtt_rises_above_streams"]
    return rows.filter(pl.col("window_bytes") == window).filter(few if part == "few" else ~few)


def mean_where(rows: pl.DataFrame, window: int, column: str, part: str) -> float:
    return float(_part(rows, window, part).get_column(column).drop_nulls().to_numpy().mean())


def mean_of(rows: pl.DataFrame, window: int, streams: int, column: str) -> float:
    values = rows.filter(window_bytes=window, streams=streams).get_column(column)
    return float(values.drop_nulls().to_numpy().mean())


def deviation(rows: pl.DataFrame, window: int, part: str) -> float:
    """Mean over the numbers of streams of the standard deviation of the goodput."""
    each = _part(rows, window, part).group_by("streams").agg(pl.col("goodput_bps").std())
    return float(each.get_column("goodput_bps").to_numpy().mean())
