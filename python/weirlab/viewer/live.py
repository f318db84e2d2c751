"""What is known of a result while it grows: how far it is, how long it takes yet, a table and charts, all
from the journals that the work writes. Only what was appended since the last question is read."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import polars as pl

from weirlab.documents import typed
from weirlab.errors import InputError, WeirlabError
from weirlab.report.page import number, percent
from weirlab.report.shared import display_unit, seconds_text
from weirlab.results import Manifest
from weirlab.working import PROGRESS, Work, work_in

if TYPE_CHECKING:
    from weirlab.campaigns.campaign import Kept
    from weirlab.studies.study import About

_ROWS = 40
"""Of the table: the newest."""
_POINTS = 3000
"""Of a chart, of one series."""

Chart = dict[str, object]
"""See `live.js`."""


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
        """How much was done when this sitting began, as far as can be told."""
        return 0

    def _ended(self) -> tuple[str, str]:
        try:
            manifest = Manifest.read(self.directory)
        except WeirlabError:
            return "ended", "" if self.directory.exists() else "Nothing was kept."
        return ("unfinished" if manifest.status == "running" else manifest.status), manifest.remark


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
    "path": "of the time or the precision asked for",
    "rapid": "of the transfer",
}
"""Of what the progress is a part."""


class _Point(TypedDict):
    x: float
    y: float
    series: str


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
        self._measured: dict[tuple[str, str], list[_Point]] = {}

    def look(self) -> None:
        for entry in self._lines:
            with suppress(ValueError):
                self._last = typed(_Progress, entry)
                self._take(self._last.news)

    def _take(self, news: Sequence[Sequence[Any]]) -> None:
        for what, unit, series, at_s, value in news:
            row: _Point = {"x": at_s, "y": value, "series": series}
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
        return (("what", "of", "latest", "after"), rows[:_ROWS]) if rows else ((), ())

    def charts(self) -> list[Chart]:
        return [
            {"kind": "lines", "title": what, "x": "time [s]", "y": unit, "rows": rows[-_POINTS:]}
            for (what, unit), rows in self._measured.items()
        ]


class LiveRun(LiveProgress):
    """A run on the simulator: what its first replicates count, over simulated time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "of the simulated time")
        self._counts: dict[int, list[Sequence[int]]] = {}

    def _take(self, news: Sequence[Sequence[int]]) -> None:
        for replicate, *row in news:
            self._counts.setdefault(replicate, []).append(row)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        titles = ("replicate", "simulated", "sent", "delivered", "dropped", "under way")
        rows = []
        for replicate, counts in sorted(self._counts.items(), reverse=True)[:_ROWS]:
            now, sent, delivered, _, dropped, alive = counts[-1]
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
    if len(rows) <= _POINTS // 3:
        return rows
    step = len(rows) // (_POINTS // 3) + 1
    return [*rows[::step], rows[-1]]


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
        self._trials: list[_Point] = []
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
        return titles, self._rows[::-1][:_ROWS]

    def charts(self) -> list[Chart]:
        def mega(fps: float | None) -> float | None:
            return None if fps is None else fps / 1e6

        return [
            {
                "kind": "bounds",
                "title": "Bounds close in",
                "x": "trial",
                "y": "load [Mframe/s]",
                "rows": [{**row, "y": row["y"] / 1e6} for row in self._trials[-_POINTS:]],
                "bounds": [
                    {**row, "low": mega(row["low"]), "high": mega(row["high"])}
                    for row in self._bounds[-_POINTS:]
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
        return ("search", "status", "found"), rows[:_ROWS]

    def charts(self) -> list[Chart]:
        going = [name for name in self._searches if self._states.get(name, "running") == "running"]
        if not going:
            return []
        found = self._searches[going[-1]].charts()
        return [{**chart, "title": f"{going[-1]}: {str(chart['title']).lower()}"} for chart in found]


class LiveStudy(Live):
    """A study of runs: points that fill its plane."""

    noun = "runs"

    def __init__(self, directory: Path, inside: Path) -> None:
        super().__init__(directory)
        self._inside = inside
        self._plan: Any = None
        self._asking: Any = None
        self._total: float | None = None
        self._store: Any = None
        self._about: About | None = None
        self._seen: set[str] = set()
        self._frame = pl.DataFrame()

    def look(self) -> None:
        from weirlab.store import Store
        from weirlab.studies.asking import asking_of, runs_in
        from weirlab.studies.plan import plan_of
        from weirlab.studies.study import about_in, store_of

        if self._about is None or self._plan_changed(self._about):
            if not (self.directory / "study.json").exists():
                return
            self._about = about_in(self.directory)
            place = store_of(self.directory, self._about)
            if "://" in place or not Path(place).resolve().is_relative_to(self._inside):
                raise InputError(
                    f"{self.directory}: its results go into {place}, outside of {self._inside}; start "
                    "'weir view' with a directory that holds both, or see 'weir results'"
                )
            self._plan, self._store = plan_of(self._about["plan"]), Store.open(place)
            self._asking, self._total = asking_of(self._plan), float(runs_in(self._plan))
            self._seen, self._frame = set(), pl.DataFrame()
        columns = ["plan", "point", "replicate", "status", "sitting", "measures", "document"]
        names = [name for name in self._store.objects(self._about["engine"]) if name not in self._seen]
        if names:
            self._seen |= set(names)
            rows = self._store.read(names, columns).filter(pl.col("plan") == self._about["id"])
            self._plan.learn(rows)
            if self._asking is not None:
                self._asking.read(rows.filter(pl.col("status").is_in(["ok", "impossible"])))
                self._total = float(self._asking.asked().sum())
            self._frame = pl.concat([self._frame, rows], how="diagonal").unique(
                ["point", "replicate"], keep="last", maintain_order=True
            )

    def _plan_changed(self, about: About) -> bool:
        with suppress(WeirlabError, OSError):
            return bool(about_id(self.directory) != about["id"])
        return False

    def _before(self) -> int:
        # What is there when it is looked at first may have taken any time; the pace is that of what follows.
        work = self._work
        if work is None or self._frame.is_empty():
            return 0
        sittings = self._frame.get_column("sitting").unique().len()
        if sittings <= 1:
            return 0
        last = self._frame.get_column("sitting")[-1]
        return self._frame.filter(pl.col("sitting") != last).height

    @property
    def done(self) -> float:
        return self._frame.height

    @property
    def total(self) -> float | None:
        return self._total

    def sentence(self) -> str:
        text = super().sentence()
        if self._frame.height:
            failed = self._frame.filter(~pl.col("status").is_in(["ok", "impossible"])).height
            text += f", {number(failed)} failed" if failed else ""
        return text

    def _measured(self) -> pl.DataFrame:
        if self._frame.is_empty():
            return pl.DataFrame(
                schema={"point": pl.UInt32, "measure": pl.String, "unit": pl.String, "value": pl.Float64}
            )
        return (
            self._frame.filter(pl.col("status") == "ok")
            .select("point", "measures")
            .explode("measures")
            .drop_nulls("measures")
            .unnest("measures")
            .group_by("point", "measure", "unit", maintain_order=True)
            .agg(pl.col("value").mean())
        )

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        if self._plan is None or self._frame.is_empty():
            return (), ()
        measured = self._measured()
        names = list(dict.fromkeys(measured.get_column("measure")))[:5]
        points = list(dict.fromkeys(reversed(self._frame.get_column("point").to_list())))[:_ROWS]
        shown = measured.filter(pl.col("point").is_in(points))
        by_point: dict[int, dict[str, str]] = {}
        scales = {
            name: display_unit(str(part["unit"][0]), float(part["value"].abs().max() or 0.0))  # type: ignore[arg-type]
            for (name,), part in shown.group_by("measure")
        }
        for point, name, _, value in shown.iter_rows():
            by_point.setdefault(point, {})[name] = (
                number(value * scales[name][0]) if value is not None else "–"
            )
        levels = [self._plan.levels(point) for point in points]
        factors = list(dict.fromkeys(factor for level in levels for factor in level))
        titles = [
            *factors,
            *(
                f"{name} [{scales[name][1]}]" if name in scales and scales[name][1] else name
                for name in names
            ),
        ]
        rows = [
            [
                *(level.get(factor, "") for factor in factors),
                *(by_point.get(point, {}).get(name, "–") for name in names),
            ]
            for point, level in zip(points, levels, strict=True)
        ]
        return titles, rows

    def charts(self) -> list[Chart]:
        if self._plan is None or self._frame.is_empty():
            return []
        measured = self._measured()
        points = list(dict.fromkeys(measured.get_column("point")))[-_POINTS:]
        levels = {point: self._plan.levels(point) for point in points}
        study = self._plan.scenario.study
        factors = list(study.factors)
        charts = []
        for (name, unit), part in measured.group_by("measure", "unit", maintain_order=True):
            factor, shown = display_unit(str(unit), float(part["value"].abs().max() or 0.0))  # type: ignore[arg-type]
            rows = [
                {"point": point, "levels": levels[point], "y": None if value is None else value * factor}
                for point, _, _, value in part.iter_rows()
                if point in levels
            ]
            chart: Chart = {
                "title": name,
                "y": f"{name} [{shown}]" if shown else name,
                "choice": name,
            }
            if study.design is None and study.contest is None and len(factors) >= 2:
                across, up = factors[:2]
                rest = factors[2:]
                chart |= {"kind": "heat", "x": across, "up": up}
                chart["across"] = [level.name for level in study.factors[across]]
                chart["upwards"] = [level.name for level in study.factors[up]]
                chart["rows"] = [
                    {"x": row["levels"][across], "up": row["levels"][up], "y": row["y"]}
                    for row in rows
                    if not rest or all(row["levels"][each] == rows[0]["levels"][each] for each in rest)
                ]
                if rest:
                    held = ", ".join(f"{each} {rows[0]['levels'][each]}" for each in rest)
                    chart["title"] = f"{name} at {held}"
            elif study.design is None and study.contest is None and factors:
                chart |= {
                    "kind": "levels",
                    "x": factors[0],
                    "across": [level.name for level in study.factors[factors[0]]],
                }
                chart["rows"] = [
                    {"x": row["levels"][factors[0]], "y": row["y"], "series": name} for row in rows
                ]
            else:
                chart |= {"kind": "dots", "x": "point"}
                chart["rows"] = [{"x": row["point"], "y": row["y"], "series": name} for row in rows]
            charts.append(chart)
        return charts


def about_id(directory: Path) -> str:
    """The id of the plan of a study as it is now."""
    from weirlab.studies.study import about_in

    return about_in(directory)["id"]


class LiveCampaign(Live):
    """A campaign: the goodput of each transfer."""

    noun = "measurements"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._lines = Appended(directory / "measurements.jsonl")
        self._plan: Any = None
        self._entries: dict[tuple[int, int, int], Kept] = {}
        self._is_real = False

    def look(self) -> None:
        from weirlab.campaigns import plan_of
        from weirlab.campaigns.campaign import Kept
        from weirlab.scenario import load

        if self._plan is None:
            if not (self.directory / "scenario.yaml").exists():
                return
            self._plan = plan_of(load(self.directory / "scenario.yaml"))
        for entry in self._lines:
            with suppress(ValueError):
                kept = typed(Kept, entry)
                self._is_real |= kept.measurement is not None and kept.measurement.began > 0
                self._entries[kept.place.cycle, kept.place.point, kept.place.step] = kept

    @property
    def done(self) -> float:
        return len(self._entries)

    @property
    def total(self) -> float | None:
        return None if self._plan is None else len(self._plan.places())

    def left_s(self, elapsed_s: float) -> float | None:
        if self.total is None or not self._entries:
            return None
        if not self._is_real:  # seconds are simulated ones
            return super().left_s(elapsed_s)
        mean_s = sum(each.measurement.seconds for each in self._entries.values() if each.measurement) / len(
            self._entries
        )
        return (self.total - self.done) * mean_s

    def sentence(self) -> str:
        failed = sum(each.measurement is None for each in self._entries.values())
        return super().sentence() + (f", {failed} failed" if failed else "")

    def _levels(self, point: int) -> str:
        levels: Mapping[str, str] = self._plan.levels[point]
        return ", ".join(levels.values()) or "all"

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        rows = []
        for (cycle, point, _), kept in reversed(self._entries.items()):
            found, goodput, rtt = kept.measurement, _goodput_bps(kept), _rtt_s(kept)
            how = kept.failures[-1] if found is None else "; ".join(found.degraded) or found.disturbance
            rows.append(
                [
                    str(cycle + 1),
                    self._levels(point),
                    "–" if goodput is None else number(goodput / 1e6),
                    "–" if rtt is None else number(rtt * 1e3),
                    how or "well",
                ]
            )
        titles = ("cycle", "point", "goodput [Mbit/s]", "round-trip time [ms]", "how it went")
        return titles, rows[:_ROWS]

    def charts(self) -> list[Chart]:
        goodputs, delays = [], []
        factors = list(self._plan.levels[0]) if self._plan is not None and self._plan.levels else []
        for place, ((_, point, _), kept) in enumerate(self._entries.items(), start=1):
            goodput, rtt = _goodput_bps(kept), _rtt_s(kept)
            if goodput is not None:
                levels: list[str] = list(self._plan.levels[point].values())
                at = levels[0] if levels else place
                series = ", ".join(levels[1:]) or "goodput"
                goodputs.append({"x": at, "y": goodput / 1e6, "series": series})
            if rtt is not None:
                loaded = "loaded" if goodput is not None else "unloaded"
                delays.append({"x": place, "y": rtt * 1e3, "series": loaded})
        chart = {"title": "Goodput", "y": "Mbit/s", "rows": goodputs[-_POINTS:]}
        if factors:
            across = list(dict.fromkeys(level[factors[0]] for level in self._plan.levels))
            charts = [{**chart, "kind": "levels", "x": factors[0], "across": across}]
        else:
            charts = [{**chart, "kind": "dots", "x": "measurement"}]
        if delays:
            charts.append(
                {
                    "kind": "dots",
                    "title": "Round-trip time",
                    "x": "measurement",
                    "y": "ms",
                    "rows": delays[-_POINTS:],
                }
            )
        return charts


def _goodput_bps(kept: Kept) -> float | None:
    found = None if kept.measurement is None else kept.measurement.transfer
    if found is None:
        return None
    return sum(each.received_bytes * 8 / each.seconds for each in found.streams if each.seconds > 0)


def _rtt_s(kept: Kept) -> float | None:
    pings = None if kept.measurement is None else kept.measurement.pings
    return None if pings is None else pings.mean_s
