"""What is known of a result while it grows: how far it is, how long it takes yet, a table and charts, all
from the journals that the work writes. Only what was appended since the last question is read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weirlab.documents import typed
from weirlab.report.page import number, percent
from weirlab.report.shared import display_unit, seconds_text
from weirlab.viewer.following import POINTS, ROWS, Appended, Chart, Live, Point
from weirlab.viewer.live_campaign import LiveCampaign
from weirlab.viewer.live_search import LiveSearch, LiveSearches
from weirlab.viewer.live_study import LiveStudy
from weirlab.working import PROGRESS


def live_of(directory: Path, kind: str, inside: Path) -> Live:
    """What watches a result of a kind.

    Args:
        inside: The directory that nothing may be read outside of.
    """
    match kind:
        case "run":
            return LiveRun(directory)
        case "search":
            return LiveSearch(directory)
        case "search-study":
            return LiveSearches(directory)
        case "study":
            return LiveStudy(directory, inside)
        case "campaign":
            return LiveCampaign(directory)
    return LiveProgress(directory, _PARTS.get(kind, "of the work"))


_PARTS = {
    "trace": "of the file is read",
    "path": "of the time or the requested precision",
    "rapid": "of the transfer",
}
"""Of what the progress is a part."""


@dataclass(frozen=True)
class _Progress:
    """A line of `progress.jsonl`."""

    done: float
    total: float
    elapsed_s: float
    news: Sequence[Sequence[Any]] = ()


class LiveProgress(Live):
    """Work whose only log says how far it is, and what was measured until then, over time."""

    def __init__(self, directory: Path, part: str) -> None:
        super().__init__(directory)
        self._part = part
        self._lines = Appended(directory / PROGRESS)
        self._last: _Progress | None = None
        self._measured: dict[tuple[str, str], list[Point]] = {}

    def look(self) -> None:
        for entry in self._lines:
            with suppress(ValueError):
                self._last = typed(_Progress, entry)
                self._take(self._last.news)

    def _take(self, news: Sequence[Sequence[Any]]) -> None:
        for what, unit, series, at_s, value in news:
            row: Point = {"x": at_s, "y": value, "series": series}
            self._measured.setdefault((what, unit), []).append(row)

    @property
    def done(self) -> float:
        return 0.0 if self._last is None else self._last.done

    @property
    def total(self) -> float | None:
        return None if self._last is None else self._last.total

    def left_s(self, elapsed_s: float) -> float | None:
        del elapsed_s  # that of the simulation alone counts
        last = self._last
        return (
            None if last is None or not last.done else (last.total - last.done) * last.elapsed_s / last.done
        )

    def sentence(self) -> str:
        if self._last is None:
            return "started; it has not reported yet how far it is"
        ratio = self.done / self._last.total
        return f"{percent(ratio)} {self._part}" if ratio < 1 else "done; being written"

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        rows = [
            [what, row["series"], f"{number(row['y'])} {unit}", seconds_text(row["x"])]
            for (what, unit), rows in self._measured.items()
            for row in {row["series"]: row for row in rows}.values()
        ]
        return (("what", "of", "latest", "after"), rows[:ROWS]) if rows else ((), ())

    def charts(self) -> list[Chart]:
        return [
            {"kind": "lines", "title": what, "x": "time [s]", "y": unit, "rows": rows[-POINTS:]}
            for (what, unit), rows in self._measured.items()
        ]


_DEADLOCKED = 6
"""Place in a row of counts: classes of ports in a deadlock. Logs of earlier versions end before it."""


class LiveRun(LiveProgress):
    """A run on the simulator: what its first replicates count, over simulated time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "of the simulated time")
        self._counts: dict[int, list[Sequence[int]]] = {}

    def _take(self, news: Sequence[Sequence[int]]) -> None:
        for replicate, *row in news:
            self._counts.setdefault(replicate, []).append(row)

    def sentence(self) -> str:
        latest = {replicate: rows[-1] for replicate, rows in self._counts.items()}
        for replicate, row in latest.items():
            if len(row) > _DEADLOCKED and row[_DEADLOCKED]:
                many = f"{row[_DEADLOCKED]} traffic classes of ports in replicate {replicate}"
                return f"{super().sentence()}; deadlock: {many} wait for one another"
        return super().sentence()

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        titles = ("replicate", "simulated", "sent", "delivered", "dropped", "under way")
        rows = []
        for replicate, counts in sorted(self._counts.items(), reverse=True)[:ROWS]:
            now, sent, delivered, _, dropped, alive, *_ = counts[-1]
            factor, unit = display_unit("ps", now)
            rows.append(
                [
                    str(replicate),
                    f"{now * factor:.4g} {unit}",
                    *map(number, (sent, delivered, dropped, alive)),
                ]
            )
        return titles, rows

    def charts(self) -> list[Chart]:
        kept = dict(sorted(self._counts.items())[-3:])
        rates: list[Chart] = []
        drops: list[Chart] = []
        alive: list[Chart] = []
        end = max((rows[-1][0] for rows in kept.values() if rows), default=0)
        factor, unit = display_unit("ps", end)
        for replicate, everything in kept.items():
            rows = _thinned(everything)
            series = f"replicate {replicate}"
            for before, after in itertools.pairwise(rows):
                spent_s = (after[0] - before[0]) / 1e12
                if spent_s > 0:
                    place = {"x": after[0] * factor, "series": series}
                    rates.append({**place, "y": (after[3] - before[3]) * 8 / spent_s / 1e9})
                    drops.append({**place, "y": (after[4] - before[4]) / spent_s / 1e6})
            alive += [{"x": row[0] * factor, "y": row[5], "series": series} for row in rows]
        title = f"simulated time [{unit}]"
        charts: list[Chart] = [
            {"kind": "lines", "title": "Delivered", "x": title, "y": "Gbit/s", "rows": rates},
            {"kind": "lines", "title": "Dropped", "x": title, "y": "Mframe/s", "rows": drops},
            {"kind": "lines", "title": "In queues and on links", "x": title, "y": "frames", "rows": alive},
        ]
        return charts if rates else []


def _thinned(rows: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    if len(rows) <= POINTS // 3:
        return rows
    step = len(rows) // (POINTS // 3) + 1
    return [*rows[::step], rows[-1]]
