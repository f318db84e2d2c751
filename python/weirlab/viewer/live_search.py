"""Searches while they grow: bounds that close in, from the log of their trials."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from weirlab.errors import WeirlabError
from weirlab.report.page import number, percent
from weirlab.results import Manifest
from weirlab.viewer.following import POINTS, ROWS, Appended, Chart, Live, Point


class _Bounds(TypedDict):
    x: int
    low: float | None
    high: float | None
    series: str


class LiveSearch(Live):
    """A search: bounds that close in."""

    noun = "trials"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._lines = Appended(directory / "trials.jsonl")
        self._search: Any = None
        self._rows: list[list[str]] = []
        self._trials: list[Point] = []
        self._bounds: list[_Bounds] = []
        self._fault = ""

    def look(self) -> None:
        from weirlab.scenario import load
        from weirlab.searches.build import build
        from weirlab.searches.log import trial_from_json

        if self._search is None:
            if not (self.directory / "scenario.yaml").exists():
                return
            self._search = build(load(self.directory / "scenario.yaml"), limited=False)
        for entry in self._lines:
            if "trial" not in entry or self._fault:
                continue
            try:
                trial = trial_from_json(entry["trial"])
                phase = self._search.state().phase
                self._search.ask()
                self._search.tell(trial)
            except (WeirlabError, ValueError, TypeError, KeyError) as error:
                self._fault = f"trials.jsonl cannot be followed: {error}"
                continue
            self._note(trial, phase)

    def _note(self, trial: Any, phase: str) -> None:
        load = trial.spec.intended_load_fps
        lost = trial.sent_frames - trial.received_frames
        met = [goal.name for goal in self._search.goals if trial.loss_ratio <= goal.loss_ratio]
        place = len(self._trials) + 1
        self._trials.append(
            {"x": place, "y": load, "series": "without too much loss" if met else "too much loss"}
        )
        for goal, (low, high) in self._search.state().bounds.items():
            self._bounds.append({"x": place, "low": low, "high": high, "series": goal})
        self._rows.append(
            [
                str(trial.spec.index),
                trial.spec.purpose if trial.spec.purpose != "search" else phase,
                number(load / 1e6, 6),
                f"{trial.spec.duration_s:.3g}",
                number(lost),
                percent(trial.loss_ratio),
                ", ".join(met) or "none",
            ]
        )

    @property
    def done(self) -> float:
        return len(self._trials)

    @property
    def total(self) -> float | None:
        return None

    def left_s(self, elapsed_s: float) -> float | None:
        del elapsed_s
        found: float | None = None if self._search is None else self._search.time_left_s()
        return found

    def sentence(self) -> str:
        if self._fault:
            return self._fault
        if self._search is None:
            return "starting"
        state = self._search.state()
        found = []
        for goal, (low, high) in state.bounds.items():
            ends = " to ".join("?" if each is None else number(each / 1e6, 5) for each in (low, high))
            width = f", {percent(1 - low / high)} wide" if low is not None and high else ""
            found.append(f"{goal} {ends} Mframe/s{width}")
        return f"{number(self.done)} trials. {'; '.join(found)}"

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        titles = (
            "trial",
            "phase",
            "load [Mframe/s]",
            "duration [s]",
            "lost frames",
            "loss ratio",
            "goals met",
        )
        return titles, self._rows[::-1][:ROWS]

    def charts(self) -> list[Chart]:
        def mega(fps: float | None) -> float | None:
            return None if fps is None else fps / 1e6

        return [
            {
                "kind": "bounds",
                "title": "Bounds close in",
                "x": "trial",
                "y": "load [Mframe/s]",
                "rows": [{**row, "y": row["y"] / 1e6} for row in self._trials[-POINTS:]],
                "bounds": [
                    {**row, "low": mega(row["low"]), "high": mega(row["high"])}
                    for row in self._bounds[-POINTS:]
                ],
            }
        ]


class LiveSearches(Live):
    """A study of searches: those that ended, and the one that runs."""

    noun = "searches"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._names: list[str] | None = None
        self._searches: dict[str, LiveSearch] = {}
        self._states: dict[str, str] = {}

    def look(self) -> None:
        from weirlab.scenario import load
        from weirlab.searches.points import point_searches

        if self._names is None:
            if not (self.directory / "scenario.yaml").exists():
                return
            self._names = [each.name for each in point_searches(load(self.directory / "scenario.yaml"))]
        for name in self._names:
            place = self.directory / name
            if self._states.get(name) not in (None, "running") or not (place / "manifest.json").exists():
                continue
            search = self._searches.setdefault(name, LiveSearch(place))
            search.look()
            with suppress(WeirlabError):
                self._states[name] = Manifest.read(place).status

    @property
    def done(self) -> float:
        return sum(state != "running" for state in self._states.values())

    @property
    def total(self) -> float | None:
        return None if self._names is None else len(self._names)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        rows = [
            [name, self._states.get(name, "running"), search.sentence()]
            for name, search in reversed(self._searches.items())
        ]
        return ("search", "status", "found"), rows[:ROWS]

    def charts(self) -> list[Chart]:
        going = [name for name in self._searches if self._states.get(name, "running") == "running"]
        if not going:
            return []
        found = self._searches[going[-1]].charts()
        return [{**chart, "title": f"{going[-1]}: {str(chart['title']).lower()}"} for chart in found]
