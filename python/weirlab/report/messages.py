"""What the report of a run says of messages: how long they took, by their length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl

from weirlab.plots.messages import by_size, message_plots
from weirlab.plots.style import Plot, scaled
from weirlab.records import Records
from weirlab.report.page import Block, Section, Table, figure, number
from weirlab.report.shared import time_text


def message_sections(records: Records) -> tuple[list[Section], list[Plot]]:
    """A section with its plots; none where the run had no messages."""
    rows = by_size(records)
    if rows.is_empty():
        return [], []
    plots = message_plots(rows)
    blocks: list[Block] = [*(figure(plot) for plot in plots), size_table(rows)]
    return [Section("Messages", blocks)], plots


def size_table(rows: pl.DataFrame) -> Table:
    """How long messages took, by traffic and length, of the rows of `by_size`."""

    def known(name: str, text: Callable[[float], str], row: Mapping[str, float | None]) -> str:
        value, half = row[name], row[f"{name}_half"]
        if value is None:
            return "not ended" if row["unfinished"] else "–"
        return text(value) if half is None else f"{text(value)} ± {text(half)}"

    def size(value: int) -> str:
        factor, unit = scaled(float(value), "bytes")
        return f"{number(value * factor, 3)} {unit}"

    def length(row: Mapping[str, int]) -> str:
        low, high = row["low_bytes"], row["high_bytes"]
        return size(high) if low == high else f"{size(low)} to {size(high)}"

    ratio = partial(number, digits=3)
    return Table.of(
        "Messages by length",
        rows,
        {
            "traffic:": "name",
            "length": length,
            "messages": "messages",
            "not ended": "unfinished",
            "slowdown, median": partial(known, "median", ratio),
            "slowdown, 99 %": partial(known, "tail", ratio),
            "time, median": partial(known, "median_ps", time_text),
            "time, 99 %": partial(known, "tail_ps", time_text),
        },
        where="tables/messages.parquet",
        note="Slowdown: time from the start until the last byte is delivered, over that in an empty network. "
        "Percentiles of all replicates together; ±: half of the 95 % interval of their mean over replicates.",
    )
