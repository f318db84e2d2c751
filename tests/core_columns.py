"""Tables of the compiled core as columns that tests can count with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from weirlab import _core


def columns(tables: Mapping[str, _core.Table]) -> dict[str, dict[str, Any]]:
    """Arrays of numbers, in which not-a-number stands for null, and lists of texts, by table and column."""
    frames = {name: pl.DataFrame(table) for name, table in tables.items()}
    return {name: {each.name: plain(each) for each in frame} for name, frame in frames.items()}


def plain(column: pl.Series) -> Any:
    return column.to_numpy() if column.dtype.is_numeric() else column.to_list()
