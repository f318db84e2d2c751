"""What a store holds, as tables for questions: `studies`, `runs`, `measures` and `levels`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from weirlab.errors import InputError
from weirlab.results import Manifest
from weirlab.store import COUNTS, PROVENANCE, Store, engine
from weirlab.studies.asking import runs_in
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
    they took in all."""
    found: list[dict[str, object]] = []
    plans = {name: store.document("plans", name) for name in store.documents("plans")}
    seen = set()
    for made_by in store.engines():
        rows = store.rows(made_by=made_by, columns=["plan", "status", "seconds"])
        for plan, done, failed, seconds in (
            rows.group_by("plan", maintain_order=True)
            .agg(
                pl.col("status").is_in(["ok", "impossible"]).sum().alias("done"),
                (~pl.col("status").is_in(["ok", "impossible"])).sum().alias("failed"),
                pl.col("seconds").sum(),
            )
            .iter_rows()
        ):
            seen.add(plan)
            found.append(
                {
                    "study": plans.get(plan, {}).get("name", "?"),
                    "plan": plan,
                    "engine": made_by,
                    "stale": made_by != engine(),
                    "planned": _planned(plans[plan]) if plan in plans else None,
                    "done": done,
                    "failed": failed,
                    "seconds": seconds,
                }
            )
    for plan, document in plans.items():
        if plan not in seen:
            found.append(
                {
                    "study": document.get("name", "?"),
                    "plan": plan,
                    "engine": engine(),
                    "stale": False,
                    "planned": _planned(document),
                    "done": 0,
                    "failed": 0,
                    "seconds": 0.0,
                }
            )
    return pl.DataFrame(found, schema=_STUDIES).sort("study", "stale", "plan")


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


def _planned(document: dict[str, object]) -> int | None:
    if document.get("kind") != "runs":
        return None
    return runs_in(plan_of(document))
