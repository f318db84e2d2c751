"""What a store holds, as tables for questions: `studies`, `runs`, `measures` and `levels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from weirlab.errors import InputError
from weirlab.results import Manifest
from weirlab.store import COUNTS, PROVENANCE, Store, engine
from weirlab.studies.asking import asking_of, runs_in
from weirlab.studies.plan import plan_of
from weirlab.studies.study import ABOUT, about_in, store_of

TABLES = ("studies", "runs", "measures", "levels")
_RUN = ("plan", "point", "replicate", "seed", "key", "status", "reason", *COUNTS, *PROVENANCE)
_STUDIES = {
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
    plans = {name: store.document("plans", name) for name in store.documents("plans")}
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
    """The answer to a question in SQL. Tables are `studies` (see `studies_in`); `runs`, with a row per run:
    `study plan engine point replicate seed key status reason`, counts of frames and provenance; `measures`:
    `study plan engine point replicate measure value unit`; `levels`: `study plan point factor level`.

    Args:
        stale: Also results of other engines; the column `engine` tells them apart.

    Raises:
        InputError: The question cannot be answered, with the reason.
    """
    words = query.lower()
    tables: dict[str, pl.DataFrame] = {}
    if "studies" in words:
        tables["studies"] = studies_in(store)
    if any(name in words for name in ("runs", "measures", "levels")):
        names = {
            each: str(store.document("plans", each).get("name", "?")) for each in store.documents("plans")
        }
        more = [
            column for word, column in (("measures", "measures"), ("levels", "document")) if word in words
        ]
        rows = _rows(store, names, more, stale=stale)
        tables["runs"] = rows.drop(more)
        if "measures" in words:
            tables["measures"] = (
                rows.filter(status="ok")
                .select("study", "plan", "engine", "point", "replicate", "measures")
                .explode("measures")
                .drop_nulls("measures")
                .unnest("measures")
            )
        if "levels" in words:
            tables["levels"] = _levels(store, names, rows)
    try:
        return pl.SQLContext(tables, eager=True).execute(query)
    except (pl.exceptions.PolarsError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{query}: {reason}; tables are {', '.join(TABLES)}") from error


def units_of(store: Store, query: str, found: pl.DataFrame) -> dict[str, str]:
    """Units of the values that an answer gives without them, by measure: of those that it or the question
    names, or else of all."""
    if "measures" not in query.lower() or "unit" in found.columns:
        return {}
    units = dict(asked(store, "SELECT DISTINCT measure, unit FROM measures").rows())
    asked_for = {each for each in units if f"'{each}'" in query}
    named = set(found["measure"]) if "measure" in found.columns else asked_for
    return {name: units[name] for name in sorted(named & units.keys() or units)}


def _rows(store: Store, names: dict[str, str], more: Sequence[str], *, stale: bool) -> pl.DataFrame:
    columns = [*_RUN, *more]
    engines = [each for each in store.engines() if stale or each == engine()] or [engine()]
    rows = pl.concat(
        [store.rows(made_by=each, columns=columns).with_columns(engine=pl.lit(each)) for each in engines]
    )
    study = pl.col("plan").replace_strict(names, default="?", return_dtype=pl.String).alias("study")
    return rows.select(study, "plan", "engine", *(name for name in columns if name != "plan"))


def _levels(store: Store, names: dict[str, str], rows: pl.DataFrame) -> pl.DataFrame:
    found: list[tuple[str, str, int, str, str]] = []
    for (name,), group in rows.group_by("plan", maintain_order=True):
        document = store.document("plans", str(name))
        if document.get("kind") != "runs":
            continue
        plan = plan_of(document)
        plan.learn(group)
        for point in group.get_column("point").unique(maintain_order=True):
            levels = plan.levels(point)
            found += [(names[str(name)], str(name), point, factor, level) for factor, level in levels.items()]
    schema = {
        "study": pl.String,
        "plan": pl.String,
        "point": pl.UInt32,
        "factor": pl.String,
        "level": pl.String,
    }
    return pl.DataFrame(found, schema=schema, orient="row")


def _planned(document: Mapping[str, object]) -> tuple[int | None, bool]:
    """How many runs a plan has, and whether it decides itself if there are more."""
    if document.get("kind") != "runs":
        return None, False
    plan = plan_of(document)
    return runs_in(plan), asking_of(plan) is not None
