"""Tables as programs read them: each number in a column of its own, whose name has the unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirlab.report.page import Table


_NUMBER = r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_PARTS = re.compile(r"(?:(?P<unit>[^,]*), )?(?P<parts>[^,]+(?: / [^,]+)+)")
"""A unit that names several numbers of a cell, such as `ms, min / mean`."""
_WITH_HALF = re.compile(r"(?P<first>.*?) ?± (?P<second>.+)")
_WITH_COUNT = re.compile(rf"(?P<first>{_NUMBER}) \((?P<second>\d+) (?P<word>[a-z]+)\)")
_PERCENT = re.compile(rf"{_NUMBER} %")
_NOTHING = ("", "–")


@dataclass(frozen=True)
class NumberColumn:
    """A column whose cells are numbers, texts, or None where there is nothing."""

    name: str
    unit: str
    cells: list[int | float | str | None]

    @property
    def headed(self) -> str:
        """Name and unit."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def number_columns(table: Table) -> list[NumberColumn]:
    """The columns of a table. Several numbers in a cell, such as `3 ± 0.1`, `1 / 2` or `3 (1 failed)`, have
    columns of their own, and a sign of per cent behind all numbers of a column is its unit."""
    return [
        reported
        for place, column in enumerate(table.columns)
        for reported in _apart(plain(column.name), column.unit, [plain(row[place]) for row in table.rows])
    ]


def plain(text: str) -> str:
    """A cell in one line, thousands not apart."""
    return " ".join(text.replace("\N{THIN SPACE}", "").replace("\N{NARROW NO-BREAK SPACE}", "").split())


def _apart(name: str, unit: str, cells: Sequence[str]) -> Iterator[NumberColumn]:
    if parts := _PARTS.fullmatch(unit):
        names = parts["parts"].split(" / ")
        rows = [cell.split(" / ") for cell in cells]
        if all(len(row) == len(names) or row[0] in _NOTHING for row in rows):
            for place, part in enumerate(names):
                of_part = [row[place] if len(row) == len(names) else "" for row in rows]
                yield from _apart(f"{name}, {part}", parts["unit"] or "", of_part)
            return
    for pattern, second in ((_WITH_HALF, "{name} ±"), (_WITH_COUNT, "{name}, {word}")):
        found = [pattern.fullmatch(cell) for cell in cells]
        words = {match.groupdict().get("word", "") for match in found if match}
        if len(words) != 1:
            continue
        alone = [match["first"] if match else cell for match, cell in zip(found, cells, strict=True)]
        if any(cell not in _NOTHING for cell in alone):
            yield from _apart(name, unit, alone)
        beside = second.format(name=name, word=words.pop())
        yield from _apart(beside, unit, [match["second"] if match else "" for match in found])
        return
    reported = [cell for cell in cells if cell not in _NOTHING]
    if not unit and reported and all(map(_PERCENT.fullmatch, reported)):
        unit, cells = "%", [cell.removesuffix(" %") for cell in cells]
    yield NumberColumn(name, unit, [_value(cell) for cell in cells])


def _value(cell: str) -> int | float | str | None:
    if cell in _NOTHING:
        return None
    if re.fullmatch(_NUMBER, cell):
        return int(cell) if re.fullmatch(r"[+-]?\d+", cell) else float(cell)
    return cell
