"""Files that messages name: distributions of sizes, matrices, tables of flows. Faults name the place.

Source: HPCC 2019, traffic generator (linear between points).
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from weirlab.errors import InputError, UnitError
from weirlab.files import ordinary
from weirlab.scenario.file.problems import did_you_mean
from weirlab.scenario.traffic.messages import PUBLISHED
from weirlab.units import Span

MAX_BYTES = 2_000_000_000
"""Longest file that is read."""
UNITS_PS: Mapping[str, float] = {
    "start": 1e12,
    "start_s": 1e12,
    "start_ms": 1e9,
    "start_us": 1e6,
    "start_ns": 1e3,
    "start_ps": 1.0,
}
"""Columns that hold starts, and the unit of plain numbers in them [ps]."""
Point = tuple[float, float]


def fault(path: Path, line: int, column: int, message: str) -> InputError:
    """What is wrong at a place of a file, both counted from 1."""
    return InputError(f"{path}:{line}:{column}: {message}")


def published_sizes(name: str) -> tuple[Point, ...]:
    """A published distribution: (bytes, share of messages that are no longer)."""
    return sizes_in(PUBLISHED / f"{name}.csv")


def sizes_in(path: Path) -> tuple[Point, ...]:
    """The distribution in a file: (bytes, share of messages that are no longer), which ascend, the last share
    1. Sizes in a column `packets` are packets of 1460 B. Raises InputError."""
    return _sizes(path, _stamp(path))


@functools.lru_cache(maxsize=16)
def _sizes(path: Path, _: object) -> tuple[Point, ...]:
    points: list[Point] = []
    rows = _rows(path)
    line, header = next(rows, (1, []))
    if header not in (["bytes", "share"], ["packets", "share"]):
        raise fault(path, line, 1, f"the header is 'bytes,share' (got '{','.join(header)}')")
    unit = 1460.0 if header[0] == "packets" else 1.0
    for line, cells in rows:
        size, share = (_number(path, line, cells, place, name) for place, name in enumerate(header))
        size *= unit
        before = points[-1] if points else (0.0, 0.0)
        if size < before[0]:
            raise fault(path, line, 1, f"sizes ascend (got {size:.12g} after {before[0]:.12g})")
        if not before[1] <= share <= 1:
            raise fault(
                path, line, 2, f"shares ascend to 1, they are sums (got {share:.12g} after {before[1]:.12g})"
            )
        points.append((size, share))
    if not points or points[-1][1] != 1:
        got = f"got {points[-1][1]:.12g}" if points else "there are none"
        raise fault(path, line, 2, f"the shares end at 1, that of all messages ({got})")
    return tuple(points)


def mean_size(points: Sequence[Point]) -> float:
    """Mean of a distribution [B]."""
    (first, atom), *_ = points
    between = ((a + b) / 2 * (q - p) for (a, p), (b, q) in pairwise(points))
    return first * atom + math.fsum(between)


def matrix_in(path: Path, hosts: Mapping[str, int]) -> dict[int, list[tuple[float, int]]]:
    """The weights of the receivers of each sender, as (weight, host id). Raises InputError."""
    rows = _rows(path)
    line, header = next(rows, (1, []))
    if len(header) < 2:
        raise fault(path, line, 1, "the first line names receivers from its second column on")
    receivers = [_host(path, line, place, name, hosts) for place, name in enumerate(header[1:], start=2)]
    found: dict[int, list[tuple[float, int]]] = {}
    for line, cells in rows:
        sender = _host(path, line, 1, cells[0], hosts)
        if sender in found:
            raise fault(path, line, 1, f"'{cells[0]}' has a line already")
        if len(cells) != len(header):
            raise fault(path, line, 1, f"has {len(cells)} cells; the header has {len(header)}")
        weights = []
        for place, receiver in enumerate(receivers, start=1):
            weight = _number(path, line, cells, place, "a weight")
            if weight < 0 or not math.isfinite(weight):
                raise fault(path, line, place + 1, f"a weight is not negative (got {cells[place]})")
            if weight and receiver == sender:
                raise fault(path, line, place + 1, f"'{cells[0]}' would send to itself: write 0")
            if weight:
                weights.append((weight, receiver))
        if weights:
            found[sender] = weights
    if not found:
        raise fault(path, line, 1, "no weight is above 0")
    return found


def flows_in(path: Path, hosts: Mapping[str, int]) -> list[tuple[int, int, int, int]]:
    """The flows in a file as (start [ps], sender, receiver, bytes), hosts as ids. Raises InputError."""
    return _flows(path, _stamp(path), tuple(hosts.items()))


@functools.lru_cache(maxsize=2)
def _flows(path: Path, _: object, named: tuple[tuple[str, int], ...]) -> list[tuple[int, int, int, int]]:
    hosts = dict(named)
    flows: list[tuple[int, int, int, int]] = []
    before = 0
    parquet = path.suffix == ".parquet"
    rows = _parquet_rows(path) if parquet else _rows(path)
    line, header = next(rows, (1, []))
    places = _columns(path, line, header)
    for line, cells in rows:
        if len(cells) != len(header):
            raise fault(path, line, 1, f"has {len(cells)} cells; the header has {len(header)}")
        start = _start(path, line, cells, places["start"], UNITS_PS[header[places["start"]]])
        if start < before:
            message = f"times ascend (got {Span(start)} after {Span(before)}): sort the rows by their start"
            raise fault(path, line, places["start"] + 1, message)
        before = start
        sender, receiver = (
            _host(path, line, places[name] + 1, cells[places[name]], hosts) for name in ("from", "to")
        )
        if sender == receiver:
            raise fault(path, line, places["to"] + 1, f"'{cells[places['to']]}' would send to itself")
        size = _number(path, line, cells, places["bytes"], "bytes")
        if size < 1 or size != int(size):
            message = f"a flow has a whole number of bytes, at least 1 (got {cells[places['bytes']]})"
            raise fault(path, line, places["bytes"] + 1, message)
        flows.append((start, sender, receiver, int(size)))
    if not flows:
        raise fault(path, line, 1, "lists no flow")
    return flows


def _columns(path: Path, line: int, header: Sequence[str]) -> dict[str, int]:
    starts = [place for place, name in enumerate(header) if name in UNITS_PS]
    places = {name: header.index(name) for name in ("from", "to", "bytes") if name in header}
    if len(starts) == 1:
        places["start"] = starts[0]
    missing = [name for name in ("start", "from", "to", "bytes") if name not in places]
    if missing:
        raise fault(
            path,
            line,
            1,
            f"has no column '{missing[0]}'; the header is 'start,from,to,bytes' (got '{','.join(header)}')",
        )
    return places


def _start(path: Path, line: int, cells: Sequence[str], place: int, unit_ps: float) -> int:
    text = cells[place].strip()
    try:
        ps = float(text) * unit_ps
    except ValueError:
        try:
            return Span.parse(text).ps
        except UnitError as error:
            raise fault(path, line, place + 1, str(error)) from None
    if not 0 <= ps < 2**62:
        raise fault(path, line, place + 1, f"a start is a time from 0 s on (got {text})")
    return round(ps)


def _host(path: Path, line: int, column: int, name: str, hosts: Mapping[str, int]) -> int:
    found = hosts.get(name.strip())
    if found is None:
        raise fault(
            path, line, column, f"there is no host '{name.strip()}'{did_you_mean(name.strip(), hosts)}"
        )
    return found


def _number(path: Path, line: int, cells: Sequence[str], place: int, what: str) -> float:
    try:
        return float(cells[place])
    except IndexError:
        raise fault(path, line, len(cells) + 1, f"{what} is missing") from None
    except ValueError:
        raise fault(path, line, place + 1, f"{what} is a number (got '{cells[place]}')") from None


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when the file does. Raises InputError when it cannot be read."""
    status = ordinary(path, MAX_BYTES)
    return status.st_mtime_ns, status.st_size


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file with their numbers, without empty ones and remarks that begin with `#`."""
    _stamp(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for cells in reader:
                if cells and not cells[0].startswith("#"):
                    yield reader.line_num, [cell.strip() for cell in cells]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not text: write CSV in UTF-8 ({error})") from error
    except (OSError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a Parquet file as texts, numbered from 1 without the names of the columns."""
    from weirlab.heavy import pl

    _stamp(path)
    try:
        table = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: {error}") from error
    yield 0, list(table.columns)
    for number, row in enumerate(table.iter_rows(), start=1):
        yield number, ["" if value is None else str(value) for value in row]
