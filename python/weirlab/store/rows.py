"""A row of the store: one run (or search, or whatever a plan has as its points) with one seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

COUNTS = (
    "events",
    "sent_frames",
    "delivered_frames",
    "dropped_frames",
    "live_frames",
    "acknowledgement_frames",
    "dropped_acknowledgements",
)
"""Counts of a run; null for what is none."""

ENDED = ("ok", "impossible")
"""What need not be tried again."""

_Types = Mapping[str, pl.DataType | type[pl.DataType]]

PROVENANCE: _Types = {
    "origin": pl.String,
    "started": pl.Datetime("ms", "UTC"),
    "seconds": pl.Float64,
    "sitting": pl.String,
}
"""Who made a row: the name of a document on machine and programs, when it began, how long it took [s] and
which call of which process asked for it. No part of what was found."""

_MEASURES = pl.List(pl.Struct({"measure": pl.String, "value": pl.Float64, "unit": pl.String}))

SCHEMA: _Types = {
    "plan": pl.String,
    "point": pl.UInt32,
    "replicate": pl.UInt32,
    "seed": pl.UInt64,
    "key": pl.String,
    "status": pl.String,
    "reason": pl.String,
    **dict.fromkeys(COUNTS, pl.UInt64),
    "measures": _MEASURES,
    "document": pl.String,
    **PROVENANCE,
}
"""Columns: what asked (`plan point replicate`), with which seed, the address of what was computed (`key`),
how it ended (`status`: ok, failed, timed-out, memory, died, impossible) and why, what was found, and
provenance."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row, before it is written."""

    point: int
    replicate: int
    seed: int
    key: str = ""
    """Hex digest of everything that decides the result."""
    status: str = "ok"
    reason: str = ""
    counts: Mapping[str, int | None] = field(default_factory=dict)
    measures: Sequence[Mapping[str, object]] = ()
    """Mappings with `measure`, `value` and `unit`."""
    document: str | None = None
    """What is found besides numbers, as JSON."""
    started: datetime | None = None
    seconds: float = 0.0


def frame_of(rows: Iterable[Row], plan: str, origin: str, sitting: str) -> pl.DataFrame:
    """The rows as a table of the store."""
    rows = list(rows)
    columns: dict[str, object] = {
        "plan": [plan] * len(rows),
        **{
            name: [getattr(row, name) for row in rows]
            for name in ("point", "replicate", "seed", "key", "status", "reason")
        },
        **{name: [row.counts.get(name) for row in rows] for name in COUNTS},
        "measures": [list(row.measures) for row in rows],
        "document": [row.document for row in rows],
        "origin": [origin] * len(rows),
        "started": [row.started for row in rows],
        "seconds": [row.seconds for row in rows],
        "sitting": [sitting] * len(rows),
    }
    return pl.DataFrame(columns, schema=SCHEMA)
