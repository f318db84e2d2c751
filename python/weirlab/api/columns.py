"""From exact integers to units that people use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """The same table with times in seconds: every column `NAME_ps` becomes `NAME_s`, a float. In a table of
    measures every `value` whose `unit` is ps becomes one in s."""
    import polars as pl

    _check_frame("seconds", frame)
    if {"value", "unit"} <= set(frame.columns):
        is_time = pl.col("unit") == "ps"
        frame = frame.with_columns(
            pl.when(is_time).then(pl.col("value") / 1e12).otherwise(pl.col("value")).alias("value"),
            pl.when(is_time).then(pl.lit("s")).otherwise(pl.col("unit")).alias("unit"),
        )
    return frame.select(
        (pl.col(name).cast(pl.Float64) / 1e12).alias(f"{name[:-3]}_s")
        if name.endswith("_ps") and not name.endswith("_byte_ps")
        else pl.col(name)
        for name in frame.columns
    )


def bit_rates(series: pl.DataFrame, column: str = "bytes") -> pl.DataFrame:
    """A table of intervals, such as `intervals`, `deliveries` or `flow_deliveries`, with one more column
    `rate_bps` [bit/s]: what `column` counts in each interval, over its length. Intervals end at `t_ps`; the
    first of each port, flow or traffic began at 0.

    Raises InputError for a table without these columns.
    """
    import polars as pl

    from weirlab.errors import InputError

    _check_frame("bit_rates", series)
    missing = [name for name in ("t_ps", column) if name not in series.columns]
    if missing:
        raise InputError(f"a table without {' and '.join(missing)} has no rates; it has {series.columns}")
    ids = [name for name in ("replicate", "port", "traffic", "flow", "connection") if name in series.columns]
    end = pl.col("t_ps").cast(pl.Float64)
    length = end - (end.shift(1).over(ids) if ids else end.shift(1)).fill_null(0.0)
    return series.with_columns(rate_bps=pl.col(column).cast(pl.Float64) * 8e12 / length)


def _check_frame(asked: str, frame: object) -> None:
    import polars as pl

    from weirlab.errors import InputError

    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"{asked}: a table is wanted, such as run.tables.intervals (got {type(frame).__name__})"
        )
