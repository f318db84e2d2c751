"""Timelines for Perfetto: the frames of captures, and the series of a run, on tracks that a reader zooms.

Times there are whole nanoseconds: those of a run are cut off below, and a transmission of less than one has
no length. docs/traces.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from weirlab import _core
from weirlab.errors import InputError
from weirlab.files import whole
from weirlab.records import Records

if TYPE_CHECKING:
    from weirlab.scenario import Scenario

Watch = Callable[[int, int], object]
Capture = tuple[Sequence[str], bytes | Path]
"""The names of tracks that a capture stands below, and its content or where that is."""

_PS_PER_NS = 1000
_FIRST_PORT, _RECEIVING_PORT = 1024, 5001
"""UDP and TCP ports of captured frames: the first flow sends from the first one, all receive at the other."""
_PORTS = 65535 - _FIRST_PORT


@dataclass(frozen=True)
class Timeline:
    """What a timeline holds."""

    frames: int
    tracks: int


def write_timeline(
    file: Path,
    captures: Sequence[Capture],
    series: Sequence[Series] = (),
    *,
    flows: Mapping[str, str] | None = None,
    framing: Mapping[str, int] | None = None,
    rate_bps: int | None = None,
    watch: Watch | None = None,
) -> Timeline:
    """Write a timeline of captures and series into `file`.

    `flows` names flows by the addresses that captures show, `framing` is what a frame takes beyond its size
    at an interface [B], and `rate_bps` is the rate of links whose rate a capture does not hold.

    Raises InputError with the capture when it is none, and WeirlabError when `file` cannot be written.
    """
    for _, capture in captures:
        if isinstance(capture, Path) and not capture.is_file():
            reason = "not a file" if capture.exists() else "there is no such file"
            raise InputError(f"{capture}: {reason}")
    with whole(file) as unfinished:
        try:
            frames, tracks = _core.write_timeline(
                unfinished,
                [(list(names), capture) for names, capture in captures],
                [one.columns() for one in series],
                flows=dict(flows or {}),
                framing=dict(framing or {}),
                rate_bps=rate_bps,
                watch=watch,
            )
        except ValueError as error:
            where = next((capture for _, capture in captures if isinstance(capture, Path)), file)
            raise InputError(f"{where}: {error}") from error
    return Timeline(frames, tracks)


def write_run_timeline(
    file: Path,
    scenario: Scenario,
    records: Records,
    captures: Mapping[str, bytes | Path],
    watch: Watch | None = None,
) -> Timeline:
    """Write the captured frames of a run into `file`, and what was recorded over time of its ports, its
    traffic and its TCP senders. `captures` are by file name. Of replicates, the first is drawn.

    Raises InputError when neither frames nor series were recorded.
    """
    first = {name: content for name, content in captures.items() if name.endswith("-0.pcapng")}
    above = [scenario.name]
    series = [*_port_series(records, above), *_connection_series(records, above)]
    series += _traffic_series(records, above)
    if not first and not series:
        raise InputError(
            f"{scenario.name}: recorded neither frames nor series; a scenario records frames with "
            "'record: {wire: {frames: PORTS, as: pcapng}}'"
        )
    framing = dict(records["port_names"].select("name", "framing_bytes").iter_rows())
    return write_timeline(
        file,
        [([*above, name.removesuffix(".pcapng")], content) for name, content in first.items()],
        series,
        flows=flow_names(scenario, records),
        framing=framing,
        watch=watch,
    )


def with_frames(scenario: Scenario) -> Scenario:
    """The scenario, or where it records no frames the same with the frames of all ports: nothing that
    happens in a run depends on what is recorded of it."""
    from weirlab.scenario.record import FrameRecord

    if any(isinstance(record, FrameRecord) for record in scenario.record.values()):
        return scenario
    name = next(name for name in ("frames", "timeline", "all-frames") if name not in scenario.record)
    return scenario.assign({f"record.{name}": {"frames": "*->*", "as": "pcapng"}})


@dataclass(frozen=True)
class Series:
    """Values over time."""

    above: Sequence[str]
    """Names of the tracks that it stands below."""
    name: str
    unit: str
    t_ps: pl.Series
    values: pl.Series

    def columns(self) -> tuple[list[str], str, str, list[int], list[float]]:
        """As the core takes it."""
        times = (self.t_ps.cast(pl.Int64) // _PS_PER_NS).clip(0).to_list()
        return [*self.above], self.name, self.unit, times, self.values.cast(pl.Float64).to_list()


def _first(records: Records, table: str, key: str) -> list[tuple[str, pl.DataFrame]]:
    """Rows of the first replicate, by what they are of, in order of time, with the start of each interval."""
    rows = records.named(table).filter(pl.col("replicate") == 0)
    if rows.is_empty():
        return []
    began = pl.col("t_ps").shift(1).over(key).fill_null(0).alias("from_ps")
    rows = rows.sort(key, "t_ps").with_columns(began)
    return [(str(part.item(0, f"{key}_name")), part) for part in rows.partition_by(key, maintain_order=True)]


def _rate(part: pl.DataFrame, bits: pl.Expr) -> pl.Series:
    length_s = (pl.col("t_ps").cast(pl.Float64) - pl.col("from_ps")) / 1e12
    return part.select(rate=bits.cast(pl.Float64) / length_s).get_column("rate")


def _port_series(records: Records, above: Sequence[str]) -> list[Series]:
    series = []
    for name, part in _first(records, "intervals", "port"):
        below = [*above, "queues", name]
        began, ended = part.get_column("from_ps"), part.get_column("t_ps")
        length = part.get_column("t_ps").cast(pl.Float64) - began.cast(pl.Float64)
        wire = 8 * (pl.col("bytes") + pl.col("frames") * pl.col("framing_bytes"))
        series += [
            Series(below, "waiting at the end of intervals", "B", ended, part.get_column("queue_bytes")),
            Series(below, "most that waited in an interval", "B", began, part.get_column("queue_max_bytes")),
            Series(below, "transmitted, framing included", "bit/s", began, _rate(part, wire)),
        ]
        if part.get_column("drops").sum():
            series.append(Series(below, "drops in an interval", "frames", began, part.get_column("drops")))
        if part.get_column("paused_ps").sum():
            paused = part.get_column("paused_ps").cast(pl.Float64) / length * 100
            series.append(Series(below, "held by PAUSE", "%", began, paused))
    series += [
        Series([*above, "buffers", name], "most in an interval", "B", part["from_ps"], part["max_bytes"])
        for name, part in (_first(records, "pool_intervals", "pool") if "pool_intervals" in records else ())
    ]
    return series


def _traffic_series(records: Records, above: Sequence[str]) -> list[Series]:
    return [
        Series(
            [*above, "delivered"],
            name,
            "bit/s",
            part.get_column("from_ps"),
            _rate(part, 8 * pl.col("bytes")),
        )
        for table, key in (("deliveries", "traffic"), ("flow_deliveries", "flow"))
        for name, part in _first(records, table, key)
    ]


def _connection_series(records: Records, above: Sequence[str]) -> list[Series]:
    series = []
    for name, part in _first(records, "tcp", "connection"):
        below = [*above, "senders", name]
        timed = part.filter(pl.col("srtt_ps").is_not_null())
        trip = timed.get_column("srtt_ps").cast(pl.Float64) / 1e9
        series += [
            Series(below, "window", "B", part.get_column("t_ps"), part.get_column("window_bytes")),
            Series(below, "smoothed round trip", "ms", timed.get_column("t_ps"), trip),
        ]
    return series


def flow_names(scenario: Scenario, records: Records) -> dict[str, str]:
    """What flows are called, by the addresses and ports of their captured frames."""
    flows = records["flow_names"]
    if flows.is_empty() or flows.height > _PORTS:
        return {}
    number = {node: place for place, node in enumerate(scenario.resolve().nodes)}
    names: dict[str, str] = {}
    pair = -1
    for flow, name, begin, end, carries in flows.select("flow", "name", "from", "to", "carries").iter_rows():
        # Acknowledgements have the ports of the flow before them, which they belong to.
        pair = flow if carries == "data" else pair
        if begin not in number or end not in number or pair < 0:
            continue
        sender, receiver = f"{_FIRST_PORT + pair}", f"{_RECEIVING_PORT}"
        if carries != "data":
            sender, receiver = receiver, sender
        names[f"{_address(number[begin])}:{sender} → {_address(number[end])}:{receiver}"] = name
    return names


def _address(node: int) -> str:
    return f"10.{node >> 16 & 255}.{node >> 8 & 255}.{node & 255}"
