"""Read a capture, and keep what was found in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from weirlab._core import read_trace as read_columns
from weirlab.errors import InputError, WeirlabError
from weirlab.records import save_tables
from weirlab.traces.model import Trace

DETAILED = 6
"""Connections whose packets are listed one by one: those with most bytes."""

CONNECTIONS = 1 << 18
"""Connections that are distinguished."""

Watch = Callable[[int, int], object]


def read_trace(
    path: str | Path,
    *,
    every_ps: int = 100_000_000_000,
    detailed: int = DETAILED,
    stream_packets: int | None = None,
    link_rate_bps: int | None = None,
    connections: int = CONNECTIONS,
    watch: Watch | None = None,
) -> Trace:
    """Read a capture: pcap, pcapng or ERF, as its content says.

    ``every_ps`` is the length of an interval of the series [ps]. The packets of the ``detailed`` connections
    with most payload are listed one by one; a capture with more than two million rows of such packets and
    acknowledgments is read a second time for them. ``stream_packets`` and ``link_rate_bps`` [bit/s] help to
    find probe streams; both are found out where they are not given. At most ``connections`` are kept apart,
    each of which takes about 4 kB of memory; packets of later ones are only counted. ``watch(done, total)``
    is called with how far the reading has come [bytes].

    Raises InputError with the file when it is no capture, and WeirlabError when it cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(
            f"{path}: a directory; name a capture in it, or ask of a result:  weir diagnose {path}"
        )
    try:
        columns = read_columns(
            path,
            every_ps=every_ps,
            detailed=detailed,
            stream_packets=stream_packets,
            link_rate_bps=link_rate_bps,
            connections=connections,
            watch=watch,
        )
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except OSError as error:
        raise WeirlabError(f"{path}: {error.strerror or error}") from error
    tables = {name: pl.DataFrame(table) for name, table in columns.items()}
    trace = Trace(path.name, tables, every_ps)
    facts = trace.facts
    if facts["frames"] and facts["unknown_link_frames"] == facts["frames"]:
        links = ", ".join(trace["interfaces"].get_column("link").unique(maintain_order=True))
        raise InputError(
            f"{path}: none of its {facts['frames']:,} frames can be looked into: they are of {links}; "
            "known are Ethernet, raw IP, Linux cooked captures, loopback, PPP and Cisco HDLC"
        )
    return trace


def save_trace(trace: Trace, directory: Path) -> None:
    """Write each table as `directory/NAME.parquet`, and the name and interval of the trace with them."""
    source = pl.DataFrame({"name": [trace.name], "every_ps": [trace.every_ps]})
    save_tables({**trace.tables, "source": source}, directory)


def load_trace(directory: Path) -> Trace:
    """Read what `save_trace` wrote. Raises InputError with the file when something is missing or damaged,
    and for what an earlier version saved."""
    tables = {}
    for file in sorted(directory.glob("*.parquet")):
        try:
            tables[file.stem] = pl.read_parquet(file)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{file}: not a table that can be read: {error}") from error
    for name in ("source", *_NAMES):
        if name not in tables:
            raise InputError(f"{directory / name}.parquet: this table is missing")
    if _NEWEST not in tables["flows"].columns:
        raise InputError(
            f"{directory}: saved by an earlier version, which did not keep '{_NEWEST}' of flows; "
            "read the capture again"
        )
    if "duplicate" not in tables["acks"].columns:  # an earlier version
        tables["acks"] = tables["acks"].with_columns(duplicate=pl.lit(None, pl.UInt32))
        numbers = dict.fromkeys(("t_ps", "left", "right"), pl.UInt64)
        tables["sacks"] = pl.DataFrame(schema={"flow": pl.UInt32, **numbers})
    if "sacks" not in tables:
        raise InputError(f"{directory / 'sacks'}.parquet: this table is missing")
    source = tables.pop("source").row(0, named=True)
    return Trace(source["name"], tables, source["every_ps"])


_NEWEST = "unread_ps"
"""The column of flows that was added last of those which findings need."""
_NAMES = (
    "trace",
    "interfaces",
    "unknown",
    "flows",
    "intervals",
    "points",
    "gaps",
    "rtts",
    "waits",
    "rounds",
    "trains",
    "repeats",
    "recoveries",
    "losses",
    "stalls",
    "packets",
    "acks",
    "details",
    "p_streams",
    "kind_names",
    "cause_names",
    "stream_kind_names",
)
