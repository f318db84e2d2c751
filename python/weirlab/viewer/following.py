"""What all results have that are watched while they grow, and the lines of a file that grows."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from weirlab.errors import WeirlabError
from weirlab.report.page import number
from weirlab.report.shared import seconds_text
from weirlab.results import Manifest
from weirlab.working import Work, work_in

ROWS = 40
"""Of a table: the newest."""
POINTS = 3000
"""Of a chart, of one series."""
Chart = dict[str, object]
"""See `live.js`."""


class Point(TypedDict):
    """Of a chart."""

    x: float
    y: float
    series: str


class Shown(TypedDict):
    """A table."""

    columns: list[str]
    rows: list[list[str]]


class State(TypedDict):
    """Everything that is known, as JSON values."""

    status: str
    remark: str
    goes_on: bool
    pid: int | None
    sentence: str
    done: float
    total: float | None
    elapsed_s: float | None
    elapsed: str
    left_s: float | None
    left: str
    table: Shown
    charts: list[Chart]


class Appended:
    """The lines of a file that grows, each once, as JSON objects; one that is not whole yet has to wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def __iter__(self) -> Iterator[dict[str, object]]:
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
            *lines, _ = content.split(b"\n")
            self._offset += sum(len(line) + 1 for line in lines)
            for line in lines:
                with suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict):
                        yield entry


class Live(ABC):
    """A result that a process works on, or did until a moment ago."""

    noun = "steps"
    """What is counted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._work: Work | None = work_in(directory)
        self._began_with: int | None = None

    @abstractmethod
    def look(self) -> None:
        """Read what is new."""

    @property
    @abstractmethod
    def done(self) -> float:
        """How much is done."""

    @property
    @abstractmethod
    def total(self) -> float | None:
        """Of how much; None where nobody knows."""

    def left_s(self, elapsed_s: float) -> float | None:
        """How long it will take yet: at the pace of this sitting."""
        made = self.done - (self._began_with or 0)
        if self.total is None or made <= 0:
            return None
        return max(0.0, (self.total - self.done) * elapsed_s / made)

    def sentence(self) -> str:
        """How far it is."""
        of = "" if self.total is None else f" of {number(self.total)}"
        return f"{number(self.done)}{of} {self.noun}"

    @abstractmethod
    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Titles, and the newest rows, the last one first."""

    @abstractmethod
    def charts(self) -> list[Chart]:
        """What it shows."""

    def state(self) -> State:
        """Everything that is known now."""
        self._work = work_in(self.directory) or self._work
        self.look()
        if self._began_with is None:
            self._began_with = self._before()
        work = self._work
        goes_on = work is not None and work.goes_on and (self.directory / "work.json").exists()
        elapsed = None
        if work is not None:
            elapsed = (datetime.now(UTC) - datetime.fromisoformat(work.started)).total_seconds()
        left = self.left_s(elapsed) if goes_on and elapsed is not None else None
        titles, rows = self.table()
        if goes_on:
            status, remark = "running", ""
        else:
            status, remark = self._ended()
        return {
            "status": status,
            "remark": remark,
            "goes_on": goes_on,
            "pid": work.pid if goes_on and work is not None else None,
            "sentence": self.sentence(),
            "done": self.done,
            "total": self.total,
            "elapsed_s": elapsed if goes_on else None,
            "elapsed": seconds_text(elapsed) if goes_on and elapsed is not None else "",
            "left_s": left,
            "left": "" if left is None else seconds_text(left),
            "table": {"columns": list(titles), "rows": [list(row) for row in rows]},
            "charts": self.charts(),
        }

    def _before(self) -> int:
        """How much was done when this sitting began, as far as is known."""
        return 0

    def _ended(self) -> tuple[str, str]:
        try:
            manifest = Manifest.read(self.directory)
        except WeirlabError:
            return "ended", "" if self.directory.exists() else "Nothing was kept."
        return ("unfinished" if manifest.status == "running" else manifest.status), manifest.remark
