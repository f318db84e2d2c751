"""Records: the facts that a run wrote down, as named tables.

Tables and columns are those of ARCHITECTURE.md, "Tables". Ids (`port`, `flow`, `traffic`, `cause`, `kind`)
are places in the dimension tables; `Records.named` puts the names beside them. What is unknown is null, never
0.

Limits: a table is held in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors as cs

from weirlab.errors import InputError
from weirlab.files import whole

__all__ = ["DIMENSIONS", "TABLES", "Records", "save_table", "save_tables"]

TABLES: Mapping[str, tuple[str, ...]] = {
    "runs": ("replicate", "seed", "events", "packet_hops", "end_ps"),
    "flows": (
        "replicate",
        "flow",
        "sent_frames",
        "sent_bytes",
        "delivered_frames",
        "delivered_bytes",
        "dropped_frames",
        "live_frames",
        "delay_sum_ps",
        "delay_min_ps",
        "delay_max_ps",
    ),
    "ports": (
        "replicate",
        "port",
        "frames",
        "bytes",
        "busy_ps",
        "drops",
        "dropped_bytes",
        "queue_max_bytes",
        "queue_byte_ps",
        "queue_wait_ps",
        "paused_ps",
        "paused_count",
        "paused_longest_ps",
        "paused_last_ps",
        "first_drop_ps",
        "last_drop_ps",
    ),
    "port_classes": (
        "replicate",
        "port",
        "class",
        "frames",
        "bytes",
        "drops",
        "dropped_bytes",
        "queue_max_bytes",
        "queue_byte_ps",
        "queue_wait_ps",
        "held_ps",
        "held_count",
        "held_longest_ps",
    ),
    "drops": ("replicate", "port", "flow", "cause", "frames"),
    "marks": ("replicate", "port", "flow", "frames"),
    "intervals": (
        "replicate",
        "port",
        "t_ps",
        "bytes",
        "frames",
        "drops",
        "queue_bytes",
        "queue_max_bytes",
        "queue_byte_ps",
    ),
    "deliveries": ("replicate", "traffic", "t_ps", "frames", "bytes"),
    "flow_deliveries": ("replicate", "flow", "t_ps", "frames", "bytes"),
    "burst_intervals": ("replicate", "flow", "t_ps", "bursts", "delay_sum_ps"),
    "limiters": (
        "replicate",
        "flow",
        "t_ps",
        "rate_bps",
        "rate_bit",
        "limited_ps",
        "stopped_ps",
        "queue_bytes",
    ),
    "queue_levels": ("replicate", "port", "low_bytes", "high_bytes", "time_ps"),
    "control_frames": ("replicate", "port", "queue_port", "kind", "frames", "bytes"),
    "control_intervals": ("replicate", "queue_port", "kind", "t_ps", "frames"),
    "reaction_points": (
        "replicate",
        "flow",
        "made",
        "removed",
        "increases",
        "decreases",
        "stops",
        "limited_ps",
        "stopped_ps",
    ),
    "bursts": ("replicate", "flow", "bursts", "delay_sum_ps", "delay_min_ps", "delay_max_ps"),
    "memories": ("replicate", "switch", "max_bytes", "byte_ps", "xoffs"),
    "delays": ("replicate", "flow", "low_ps", "high_ps", "frames"),
    "connections": (
        "replicate",
        "connection",
        "flow",
        "opened_ps",
        "established_ps",
        "delivered_ps",
        "acknowledged_ps",
        "srtt_ps",
        "min_rtt_ps",
        "delivered_bytes",
        "acked_bytes",
        "sent_bytes",
        "sent_segments",
        "retransmits",
        "fast_retransmits",
        "forward_retransmits",
        "slow_start_retransmits",
        "timeout_retransmits",
        "rescue_retransmits",
        "probe_retransmits",
        "lost_retransmits",
        "loss_probes",
        "loss_probe_recoveries",
        "duplicates_told",
        "window_probes",
        "timeouts",
        "recoveries",
        "recovery_failures",
        "spurious_recoveries",
        "ecn_reductions",
        "marked_bytes",
        "duplicate_acks",
        "rtt_samples",
        "paws_rejects",
        "received_segments",
        "out_of_order_segments",
        "duplicate_segments",
        "ecn_marks",
        "acks",
        "delayed_acks",
        "window_updates",
        "window_closures",
    ),
    "resent": ("replicate", "connection", "times", "segments"),
    "tcp": (
        "replicate",
        "connection",
        "t_ps",
        "window_bytes",
        "threshold_bytes",
        "srtt_ps",
        "flight_bytes",
        "acked_bytes",
        "retransmits",
        "repairs",
        "marked_bytes",
        "alpha",
    ),
    "captures": ("replicate", "name", "frames", "left_out_frames"),
    "probe_streams": (
        "replicate",
        "connection",
        "stream",
        "t_ps",
        "end_ps",
        "closed_ps",
        "packets",
        "samples",
        "rate_bps",
        "low_rate_bps",
        "high_rate_bps",
        "outcome",
        "available_bps",
        "excursion_start",
        "excursion_gaps",
        "next_rate_bps",
        "backlog_ps",
        "fitting_gaps",
        "spilt_gaps",
    ),
    "probe_states": ("replicate", "connection", "t_ps", "state"),
    "probe_packets": ("replicate", "connection", "stream", "packet", "due_ps", "sent_ps", "received_ps"),
    "bandwidth_estimates": (
        "replicate",
        "prober",
        "start_ps",
        "t_ps",
        "quantity",
        "low_bps",
        "high_bps",
        "ending",
        "trains",
    ),
    "probe_trains": (
        "replicate",
        "prober",
        "train",
        "measurement",
        "asked_ps",
        "closed_ps",
        "rate_bps",
        "packets",
        "received",
        "received_bps",
        "pct",
        "pdt",
        "trend",
        "fleet",
    ),
    "prober_names": ("prober", "name", "flow", "traffic"),
    "quantity_names": ("quantity", "name"),
    "ending_names": ("ending", "name"),
    "trend_names": ("trend", "name"),
    "fleet_names": ("fleet", "name"),
    "outcome_names": ("outcome", "name"),
    "state_names": ("state", "name"),
    "connection_names": ("connection", "name", "flow", "traffic"),
    "flow_names": ("flow", "name", "traffic", "from", "to"),
    "port_names": ("port", "name", "rate_bps", "framing_bytes"),
    "traffic_names": ("traffic", "name"),
    "cause_names": ("cause", "name"),
    "kind_names": ("kind", "name"),
}
"""The columns that each table has at least, in their order. A testbed may know more."""

DIMENSIONS: Mapping[str, str] = {
    "port": "port_names",
    "connection": "connection_names",
    "flow": "flow_names",
    "traffic": "traffic_names",
    "cause": "cause_names",
    "kind": "kind_names",
    "outcome": "outcome_names",
    "state": "state_names",
    "prober": "prober_names",
    "quantity": "quantity_names",
    "ending": "ending_names",
    "trend": "trend_names",
    "fleet": "fleet_names",
}
"""Id column to the table that gives its names."""


class Records(Mapping[str, pl.DataFrame]):
    """Named tables. Every table but the dimension tables has a column `replicate`.

    A table that was not asked for is present without rows, so that a question about it meets the same
    columns; a measure that needs its rows says so.
    """

    def __init__(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Raises ValueError when a known table lacks a column."""
        for name, frame in tables.items():
            _check_columns(name, frame.columns)
        self._tables = dict(tables)
        self._columns: dict[str, Mapping[str, Any]] = {}

    @classmethod
    def from_columns(cls, tables: Mapping[str, Mapping[str, Any]]) -> Records:
        """Tables from named columns: numpy arrays, lists or anything else that polars takes.

        Not-a-number, which numpy has in the place of null, becomes null. A table is made when it is first
        asked for: a point of a study needs few of them.
        """
        for name, columns in tables.items():
            _check_columns(name, columns)
        records = cls({})
        records._columns = dict(tables)
        return records

    def __getitem__(self, table: str) -> pl.DataFrame:
        """Raises KeyError with the tables that there are."""
        if table not in self._tables:
            if table not in self._columns:
                raise KeyError(f"no table {table!r}; there are {', '.join(self)}")
            frame = pl.DataFrame(dict(self._columns[table]))
            self._tables[table] = frame.with_columns(cs.float().fill_nan(None))
        return self._tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns or self._tables)

    def __len__(self) -> int:
        return len(self._columns or self._tables)

    def __repr__(self) -> str:
        return f"<{len(self)} tables of records>"

    def named(self, table: str) -> pl.DataFrame:
        """`table` with a column `port_name`, `flow_name`, ... for each id, and what else is known of it."""
        frame = self[table]
        for key, dimension in DIMENSIONS.items():
            if key not in frame.columns or dimension not in self or table == dimension:
                continue
            names = self[dimension].rename({"name": f"{key}_name"})
            clashes = [column for column in names.columns if column != key and column in frame.columns]
            frame = frame.join(names.drop(clashes), on=key, how="left", maintain_order="left")
        return frame

    def save(self, directory: Path) -> None:
        """Write each table as `directory/NAME.parquet`."""
        save_tables(self, directory)

    @classmethod
    def load(cls, directory: Path, *, needed: Iterable[str] = ()) -> Records:
        """Read what `save` wrote. Raises InputError with the file when there is nothing or something else, or
        when one of the tables `needed` is missing."""
        files = sorted(directory.glob("*.parquet"))
        if not files:
            raise InputError(f"{directory}: no tables here")
        tables = {}
        for file in files:
            try:
                tables[file.stem] = pl.read_parquet(file)
                cls({file.stem: tables[file.stem]})
            except (pl.exceptions.PolarsError, OSError) as error:
                raise InputError(f"{file}: not a table that can be read: {error}") from error
            except ValueError as error:
                raise InputError(f"{file}: {error}") from error
        for name in needed:
            if name not in tables:
                raise InputError(f"{directory / name}.parquet: this table is missing")
        return cls(tables)


def _check_columns(table: str, columns: Iterable[str]) -> None:
    missing = [column for column in TABLES.get(table, ()) if column not in columns]
    if missing:
        raise ValueError(f"table '{table}' lacks the columns {', '.join(missing)}")


def save_tables(tables: Mapping[str, pl.DataFrame], directory: Path) -> None:
    """Write each table as `directory/NAME.parquet`. A file appears whole or not at all. Raises WeirlabError
    when one cannot be written."""
    for name, frame in tables.items():
        save_table(frame, directory / f"{name}.parquet")


def save_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as a file that appears whole or not at all. Raises WeirlabError when it cannot be
    written."""
    with whole(path) as unfinished:
        try:
            frame.write_parquet(unfinished, compression="zstd")
        except pl.exceptions.PolarsError:
            # It does not tell what the system said, as of a full disk: ask again, without it in between.
            content = BytesIO()
            frame.write_parquet(content, compression="zstd")
            unfinished.write_bytes(content.getbuffer())
