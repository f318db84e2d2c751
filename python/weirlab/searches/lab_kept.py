"""The searches of the laboratory on disk: each is written when it ends, and is not made again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from typing_extensions import TypedDict

import weirlab
from weirlab.documents import typed
from weirlab.files import Closing
from weirlab.journal import Journal, JournalKind

_KIND = JournalKind("weirlab_lab", 2, "log of the laboratory", "comparison")
_CONDITIONS = ("width", "overhead_s", "detection_s", "max_fps", "min_fps")
"""Settings of an experiment that decide what a search finds. Its names and seeds stand in each row."""
_CODE = ("searches", "testbed")
"""Packages that decide it, too."""

Cell = tuple[str, str, int]
"""Device, set of goals and seed."""


class Row(TypedDict):
    """What a controller found for one goal of a search; columns of the table."""

    controller: str
    device: str
    goals: str
    seed: int
    goal: str
    time_s: float
    trials: int
    lower_fps: float | None
    upper_fps: float | None
    regular: bool
    marked: bool
    told: bool
    wrong: bool
    truth_fps: float | None
    lower_error: float | None
    retest_failure: float | None


class _Entry(TypedDict):
    goals: list[Row]


class Searches(Closing):
    """Rows of `weirlab.searches.lab.compare` by search; with a file also there, a search in each line.

    Use it in a `with` statement."""

    def __init__(self, file: Path | None, experiment: Mapping[str, object]) -> None:
        """Raises InputError where the file is none of the kind, is being written by another process, or holds
        searches under other conditions or by other code: what is compared would not be comparable."""
        self._rows: dict[tuple[Cell, str], list[Row]] = {}
        self._truths: dict[Cell, dict[str, float | None]] = {}
        self._journal: Journal[list[Row]] | None = None
        if file is not None:
            about = {
                **{name: experiment[name] for name in _CONDITIONS},
                "file": None if experiment["file"] is None else Path(str(experiment["file"])).read_text(),
                "code": _code(),
            }
            self._journal = Journal(file, _KIND, about, self._rows_of, reuse_empty=True)
            for rows in self._journal.entries:
                self._take(rows)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def rows(self, cell: Cell, controller: str) -> list[Row]:
        """What a controller found there, a row for each goal; empty where it has not searched yet."""
        return self._rows.get((cell, controller), [])

    def truths(self, cell: Cell) -> Mapping[str, float | None]:
        """The true rates by goal, where any controller has searched."""
        return self._truths.get(cell, {})

    def add(self, rows: Iterable[Row]) -> None:
        """Keep the rows of whole searches, those of a search one after the other."""
        for search in [list(some) for _, some in groupby(rows, _search_of)]:
            if self._journal is not None:
                self._journal.append({"goals": search})
            self._take(search)

    def _rows_of(self, entry: Mapping[str, object]) -> list[Row]:
        """The rows of a line."""
        rows = typed(_Entry, entry)["goals"]
        if not rows:
            raise ValueError("a search without goals")
        return rows

    def _take(self, rows: list[Row]) -> None:
        cell, controller = _search_of(rows[0])
        self._rows[cell, controller] = rows
        self._truths[cell] = {row["goal"]: row["truth_fps"] for row in rows}


def _search_of(row: Row) -> tuple[Cell, str]:
    return (row["device"], row["goals"], row["seed"]), row["controller"]


def _code() -> str:
    """A digest of the code that decides what a search finds."""
    digest = hashlib.sha256()
    for package in _CODE:
        for path in sorted((Path(weirlab.__file__).parent / package).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
