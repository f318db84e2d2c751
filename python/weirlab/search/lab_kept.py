"""The searches of the laboratory on disk: each is written when it ends, and is not made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from weirlab.errors import InputError

__all__ = ["Searches"]

_FORMAT = 1
_CONDITIONS = ("width", "overhead_s", "detection_s", "max_fps", "min_fps")
"""Settings of an experiment that decide what a search finds. Its names and seeds stand in each row."""

Cell = tuple[str, str, int]
"""Device, set of goals and seed."""


class Searches:
    """Rows of `weirlab.search.lab.compare` by search; with a file also there, a search in each line.

    A last line that was cut short is dropped."""

    def __init__(self, file: Path | None, experiment: Mapping[str, Any]) -> None:
        """Raises InputError where the file holds searches under other conditions."""
        self._file = file
        self._rows: dict[tuple[Cell, str], list[dict[str, Any]]] = {}
        self._truths: dict[Cell, dict[str, float | None]] = {}
        header = {"weirlab_lab": _FORMAT, **{name: experiment[name] for name in _CONDITIONS}}
        own = experiment["file"]
        header["file"] = None if own is None else Path(own).read_text()
        if file is None:
            return
        lines = _lines(file) if file.exists() else []
        if not lines:
            file.write_text(json.dumps(header) + "\n")
        elif lines[0] != header:
            name = next(name for name in header if lines[0].get(name) != header[name])
            raise InputError(
                f"{file} holds searches with another {name}: go on with the same settings, or write elsewhere"
            )
        for line in lines[1:]:
            self._take(line["goals"])

    def rows(self, cell: Cell, controller: str) -> list[dict[str, Any]]:
        """What a controller found there, a row for each goal; empty where it has not searched yet."""
        return self._rows.get((cell, controller), [])

    def truths(self, cell: Cell) -> Mapping[str, float | None]:
        """The true rates by goal, where any controller has searched."""
        return self._truths.get(cell, {})

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Keep the rows of whole searches, those of a search one after the other."""
        searches = [list(some) for _, some in groupby(rows, _search_of)]
        if self._file is not None:
            with self._file.open("a") as stream:
                stream.writelines(json.dumps({"goals": some}) + "\n" for some in searches)
        for some in searches:
            self._take(some)

    def _take(self, rows: list[dict[str, Any]]) -> None:
        cell, controller = _search_of(rows[0])
        self._rows[cell, controller] = rows
        self._truths[cell] = {row["goal"]: row["truth_fps"] for row in rows}


def _search_of(row: Mapping[str, Any]) -> tuple[Cell, str]:
    return (row["device"], row["goals"], row["seed"]), row["controller"]


def _lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file; what follows the last whole line is cut off."""
    text = file.read_text()
    whole = text[: text.rfind("\n") + 1]
    if len(whole) < len(text):
        file.write_text(whole)
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except json.JSONDecodeError as error:
        raise InputError(f"{file} is no file of searches of the laboratory: {error}") from error
