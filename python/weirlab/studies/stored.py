"""What a store holds, as tables for questions: `studies`, `runs`, `measures`, `points` and `levels`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from weirlab.errors import InputError
from weirlab.results import Manifest
from weirlab.scenario.file.problems import did_you_mean, listed
from weirlab.scenario.plan.combinations import short_names
from weirlab.store import COUNTS, PROVENANCE, Store, engine
from weirlab.studies.asking import asking_of, runs_in
from weirlab.studies.plan import plan_found
from weirlab.studies.study import ABOUT, about_in, store_of

TABLES = ("studies", "runs", "measures", "points", "levels")
_Types = dict[str, type[pl.DataType]]
_RUN = ("plan", "point", "replicate", "seed", "key", "status", "reason", *COUNTS, *PROVENANCE)
_STUDIES: _Types = {
    "study": pl.String,
    "plan": pl.String,
    "engine": pl.String,
    "stale": pl.Boolean,
    "planned": pl.UInt64,
    "done": pl.UInt64,
    "failed": pl.UInt64,
    "seconds": pl.Float64,
}


def store_at(place: str) -> Store:
    """The store at a path or URL, or that of the result in a directory. Raises InputError."""
    directory = Path(place)
    if (directory / ABOUT).exists() and (directory / "manifest.json").exists():
        Manifest.read(directory)
        return Store.open(store_of(directory, about_in(directory)))
    return Store.open(place)


def studies_in(store: Store) -> pl.DataFrame:
    """One row for each plan and engine: `study` (its name), `plan` (its id), `engine`, `stale` (whether
    another engine than this one made the results), `planned`, `done` and `failed` runs, and `seconds` that
    they took in all. Of a study that decides itself how far it goes, `planned` is the least, until more are
    done."""
    found: list[tuple[object, ...]] = []
    plans = store.plans()
    seen = set()

    def add(plan: str, made_by: str, done: int, failed: int, seconds: float) -> None:
        document = plans.get(plan, {})
        planned, decides = _planned(document)
        if planned is not None and decides:
            planned = max(planned, done + failed)
        stale = made_by != engine()
        found.append((document.get("name", "?"), plan, made_by, stale, planned, done, failed, seconds))

    for made_by in store.engines():
        rows = store.rows(made_by=made_by, columns=["plan", "status", "seconds"])
        ended = pl.col("status").is_in(["ok", "impossible"])
        counts = rows.group_by("plan", maintain_order=True).agg(
            ended.sum().alias("done"), (~ended).sum().alias("failed"), pl.col("seconds").sum()
        )
        for plan, done, failed, seconds in counts.iter_rows():
            seen.add(plan)
            add(plan, made_by, done, failed, seconds)
    for plan in plans.keys() - seen:
        add(plan, engine(), 0, 0, 0.0)
    return pl.DataFrame(found, schema=_STUDIES, orient="row").sort("study", "stale", "plan")


def asked(store: Store, query: str, *, stale: bool = False) -> pl.DataFrame:
    """The answer to a question, see `answered`."""
    return answered(store, query, stale=stale)[0]


def answered(store: Store, query: str, *, stale: bool = False) -> tuple[pl.DataFrame, list[str]]:
    """The answer to a question in SQL, and what its reader needs with it: units of values that it gives
    without them, where a question on levels finds nothing, which factors there are, and that stale results
    are left out.

    Tables are `studies` (see `studies_in`); `runs`, with a row per run: `study plan engine point replicate
    seed key status reason`, counts of frames and provenance; `measures`: `study plan engine point replicate
    measure value unit`; `points`, with a row per point: `study plan point` and the level of each factor, in a
    column that has its short name (see `short_names`); `levels`, the same with a row per point and factor:
    `study plan point factor level`, where `factor` is the whole path.

    Args:
        stale: Also results of other engines; the column `engine` distinguishes them.

    Raises:
        InputError: The question cannot be answered, with the reason, and the nearest names.
    """
    words = query.lower()
    asked_for = {name for name in TABLES if name in words}
    there = store.engines() if asked_for - {"studies"} else {}
    engines = [each for each in there if stale or each == engine()] or [engine()]
    tables = _tables(store, asked_for, engines)
    old = _left_out(len(there.keys() - engines))
    try:
        found = pl.SQLContext(tables, eager=True).execute(query)
    except (pl.exceptions.PolarsError, TypeError) as error:
        reason = str(error).splitlines()[0].partition("; valid columns")[0]
        hint = _meant(reason, _tables(store, TABLES, engines, points=1))
        told = "; ".join([f"{reason}{hint}", f"tables are {', '.join(TABLES)}", *filter(None, [old])])
        raise InputError(f"{query}: {told}") from error
    remarks = [f"{old[0].upper()}{old[1:]}."] if old else []
    return found, [*_units(tables, query, found), *_factors(tables, found), *remarks]


def _tables(
    store: Store, wanted: Collection[str], engines: Sequence[str], *, points: int | None = None
) -> dict[str, pl.DataFrame]:
    """Those that are wanted; with `points` the levels of so many of each study."""
    tables: dict[str, pl.DataFrame] = {}
    if "studies" in wanted:
        tables["studies"] = studies_in(store)
    if not {*wanted} - {"studies"}:
        return tables
    plans = store.plans()
    names = {each: str(document.get("name", "?")) for each, document in plans.items()}
    more = (["measures"] if "measures" in wanted else []) + (
        ["document"] if {"points", "levels"} & {*wanted} else []
    )
    rows = _rows(store, names, more, engines)
    tables["runs"] = rows.drop(more)
    if "measures" in wanted:
        tables["measures"] = (
            rows.filter(status="ok")
            .select("study", "plan", "engine", "point", "replicate", "measures")
            .explode("measures")
            .drop_nulls("measures")
            .unnest("measures")
        )
    if "document" in more:
        of_levels = rows.unique(["plan", "point"], maintain_order=True).select("plan", "point", "document")
        if points is not None:
            of_levels = of_levels.group_by("plan", maintain_order=True).head(points)
        levels = list(_levels(plans, of_levels))
        tables["levels"] = pl.concat(
            [pl.DataFrame(schema=_POINT | _LEVEL), *(_long(each) for each in levels)]
        )
        wide = [each.rename(_columns(each)) for each in levels]
        tables["points"] = pl.concat([pl.DataFrame(schema=_POINT), *wide], how="diagonal")
    return tables


def _meant(reason: str, tables: Mapping[str, pl.DataFrame]) -> str:
    """What a question may have meant that was refused for the name of a column."""
    found = re.search(r"column(?: named)? [\"'](.+?)[\"']", reason)
    if found is None:
        return ""
    name, last = found[1], found[1].rpartition(".")[2]
    homes = [table for table, frame in tables.items() if last in frame.columns]
    if homes:
        return f"; {last} is a column of {' and '.join(homes)}"
    known = dict.fromkeys(column for frame in tables.values() for column in frame.columns)
    near = did_you_mean(name, known)
    return f"{near}{' C' if near else '; c'}olumns of points are {listed(tables['points'].columns)}"


def _units(tables: Mapping[str, pl.DataFrame], query: str, found: pl.DataFrame) -> Iterator[str]:
    """Of the measures that the answer or the question names, or else of all. Studies may give one name to
    measures of several units."""
    if "measures" not in tables or "unit" in found.columns:
        return
    units: dict[str, list[str]] = {}
    for name, unit in tables["measures"].select("measure", "unit").unique().sort(pl.all()).iter_rows():
        units.setdefault(name, []).append("as a ratio" if unit == "1" else f"in {unit}")
    asked_for = {name for name in units if f"'{name}'" in query}
    named = set(found["measure"]) if "measure" in found.columns else asked_for
    if shown := named & units.keys() or units:
        texts = (f"{name} {' or '.join(units[name])}" for name in sorted(shown))
        yield f"Units: {', '.join(texts)}."


def _left_out(others: int) -> str:
    """What is said where results of so many engines are no part of the answer; nothing of none."""
    many = "another engine" if others == 1 else f"{others} other engines"
    return f"results of {many} are left out; --stale includes them" if others else ""


def _factors(tables: Mapping[str, pl.DataFrame], found: pl.DataFrame) -> Iterator[str]:
    if "levels" in tables and found.is_empty():
        yield f"Factors are {listed(tables['levels']['factor'].unique().sort())}."


def _rows(store: Store, names: dict[str, str], more: list[str], engines: Sequence[str]) -> pl.DataFrame:
    columns = [*_RUN, *more]
    rows = pl.concat(
        [store.rows(made_by=each, columns=columns).with_columns(engine=pl.lit(each)) for each in engines]
    )
    study = pl.col("plan").replace_strict(names, default="?", return_dtype=pl.String).alias("study")
    return rows.select(study, "plan", "engine", *(name for name in columns if name != "plan"))


_POINT: _Types = {"study": pl.String, "plan": pl.String, "point": pl.UInt32}
_LEVEL: _Types = {"factor": pl.String, "level": pl.String}


def _levels(plans: Mapping[str, Mapping[str, object]], rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Of each study of runs its points: `study plan point`, and a column for each factor."""
    for (name,), group in rows.group_by("plan", maintain_order=True):
        document = plans.get(str(name), {})
        plan = plan_found(document)
        if plan is None:
            continue
        plan.learn(group)
        points = group.get_column("point")
        levels = [plan.levels(point) for point in points]
        factors = dict.fromkeys(factor for each in levels for factor in each)
        yield pl.DataFrame(
            {
                "study": [str(document.get("name", "?"))] * len(points),
                "plan": [str(name)] * len(points),
                "point": points,
                **{factor: [each.get(factor) for each in levels] for factor in factors},
            },
            schema=_POINT | dict.fromkeys(factors, pl.String),
        )


def _long(points: pl.DataFrame) -> pl.DataFrame:
    """A row for each point and factor."""
    long = points.unpivot(index=list(_POINT), variable_name="factor", value_name="level")
    return long.drop_nulls("level").sort("plan", "point", maintain_order=True)


def _columns(points: pl.DataFrame) -> dict[str, str]:
    """The short names of factors, but for those that another column has."""
    short = short_names([name for name in points.columns if name not in _POINT])
    return {name: end for name, end in short.items() if end not in _POINT}


def _planned(document: Mapping[str, object]) -> tuple[int | None, bool]:
    """How many runs a plan has, if that is known, and whether it decides itself if there are more."""
    plan = plan_found(document)
    if plan is None:
        return None, False
    return runs_in(plan), asking_of(plan) is not None
