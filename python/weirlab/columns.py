"""Tables that are declared column by column: what a column is called, its type, and its value in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import polars as pl

Of = TypeVar("Of")
Columns = Mapping[str, tuple[type[pl.DataType], Callable[[Of], object]]]
"""By name: the type, and what gives the value for what a row is about."""


def schema_of(columns: Columns[Of]) -> dict[str, type[pl.DataType]]:
    """The types by name."""
    return {name: kind for name, (kind, _) in columns.items()}


def table_of(columns: Columns[Of], rows: Iterable[Of]) -> pl.DataFrame:
    """A row for each of `rows`."""
    values = [[value(row) for _, value in columns.values()] for row in rows]
    return pl.DataFrame(values, schema=schema_of(columns), orient="row")
