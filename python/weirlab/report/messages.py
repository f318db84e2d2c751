"""What the report of a run says of messages: how long they took, by their length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from weirlab.plots.messages import by_size, message_plots
from weirlab.plots.style import Plot, scaled
from weirlab.records import Records
from weirlab.report.page import Block, Column, Section, Table, figure, number
from weirlab.report.shared import time_text


def message_sections(records: Records) -> tuple[list[Section], list[Plot]]:
    """A section with its plots; none where the run had no messages."""
    rows = by_size(records)
    if rows.is_empty():
        return [], []
    plots = message_plots(records)
    blocks: list[Block] = [*(figure(plot) for plot in plots), _size_table(records)]
    return [Section("Messages", blocks)], plots


def _size_table(records: Records) -> Table:
    def known(text: Callable[[float], str], value: float | None, of: int) -> str:
        return text(value) if value is not None else "not ended" if of else "–"

    def size(value: int) -> str:
        factor, unit = scaled(float(value), "bytes")
        return f"{number(value * factor, 3)} {unit}"

    return Table(
        "Messages by length",
        [
            Column("traffic", numeric=False),
            Column("length"),
            Column("messages"),
            Column("not ended"),
            Column("slowdown, median"),
            Column("slowdown, 99 %"),
            Column("time, median"),
            Column("time, 99 %"),
        ],
        [
            [
                row["name"],
                size(row["high_bytes"])
                if row["low_bytes"] == row["high_bytes"]
                else f"{size(row['low_bytes'])} to {size(row['high_bytes'])}",
                number(row["messages"]),
                number(row["unfinished"]),
                *(
                    known(text, row[name], row["unfinished"])
                    for name, text in (
                        ("median", partial(number, digits=3)),
                        ("tail", partial(number, digits=3)),
                        ("median_ps", time_text),
                        ("tail_ps", time_text),
                    )
                ),
            ]
            for row in by_size(records).iter_rows(named=True)
        ],
        where="tables/messages.parquet",
        note="Slowdown: time from the start until the last byte is delivered, over that in an empty network.",
    )
