"""Studies while they grow: the measures of each point, from their store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.errors import InputError, WeirlabError
from weirlab.report.page import number
from weirlab.report.shared import display_unit
from weirlab.viewer.following import POINTS, ROWS, Chart, Live

if TYPE_CHECKING:
    from weirlab.studies.study import About


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
            about = about_in(self.directory)
            place = store_of(self.directory, about)
            if "://" in place or not Path(place).resolve().is_relative_to(self._inside):
                raise InputError(
                    f"{self.directory}: its results go into {place}, outside of {self._inside}; start "
                    "'weir view' with a directory that holds both, or see 'weir results'"
                )
            self._plan, self._store = plan_of(about["plan"]), Store.open(place)
            self._asking, self._total = asking_of(self._plan), float(runs_in(self._plan))
            self._seen, self._frame, self._about = set(), pl.DataFrame(), about
        columns = ["plan", "point", "replicate", "status", "sitting", "measures", "document"]
        for found in self._store.fresh(self._seen, columns, self._about["engine"]):
            rows = found.filter(pl.col("plan") == self._about["id"])
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
        points = list(dict.fromkeys(reversed(self._frame.get_column("point").to_list())))[:ROWS]
        shown = measured.filter(pl.col("point").is_in(points))
        by_point: dict[int, dict[str, str]] = {}
        scales = {
            name: display_unit(str(part["unit"][0]), _largest(part))
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
        points = list(dict.fromkeys(measured.get_column("point")))[-POINTS:]
        levels = {point: self._plan.levels(point) for point in points}
        study = self._plan.scenario.study
        factors = list(study.factors)
        charts = []
        for (name, unit), part in measured.group_by("measure", "unit", maintain_order=True):
            factor, shown = display_unit(str(unit), _largest(part))
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


def _largest(rows: pl.DataFrame) -> float:
    return float(rows.select(pl.col("value").abs().max()).item() or 0.0)
