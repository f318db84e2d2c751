"""What a study found, as far as it came; read from its store, its tables, or the log of an older version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from typing_extensions import TypedDict

from weirlab.documents import typed
from weirlab.errors import InputError
from weirlab.journal import first_difference
from weirlab.records import save_tables
from weirlab.results import Manifest, Provenance, read_json
from weirlab.runs import replicate_seeds
from weirlab.scenario import Scenario, load
from weirlab.scenario.plan import Study as Section
from weirlab.scenario.plan.combinations import Impossible
from weirlab.scenario.plan.contest import Contest, Halving
from weirlab.store import COUNTS, Store
from weirlab.studies import journalled
from weirlab.studies.asking import asking_of
from weirlab.studies.contests import Contested, Finalist, Kept, Standing
from weirlab.studies.journalled import Decided, Found, impossible_in
from weirlab.studies.plan import RunsPlan, plan_of
from weirlab.studies.sequential import Reached, Sequential

ABOUT = "study.json"
FAILURES = {"point": pl.UInt32, "replicate": pl.UInt32, "status": pl.String, "reason": pl.String}
"""Columns of runs that gave no result."""
_MEASURES = {
    "point": pl.UInt32,
    "measure": pl.String,
    "replicate": pl.UInt32,
    "value": pl.Float64,
    "unit": pl.String,
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """What a study found, as far as it came."""

    scenario: Scenario
    seeds: tuple[int, ...]
    """One per replicate, the same for all points; of a contest those of its first round. `runs` has all."""
    planned: int
    """Number of points when it is complete."""
    kept: int = 0
    """How many of the points were there already, from an earlier sitting or another study."""
    points: pl.DataFrame
    """Columns `point` and one per factor, with the names of the levels: the points whose runs have ended."""
    runs: pl.DataFrame
    """Columns `point replicate seed events sent_frames delivered_frames dropped_frames live_frames`, of data
    alone, and `acknowledgement_frames dropped_acknowledgements`, null where an older version counted these as
    data."""
    measures: pl.DataFrame
    """Columns `point measure replicate value unit`."""
    failures: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=FAILURES))
    """Columns `point replicate status reason`: runs that gave no result, and why."""
    impossible: tuple[Impossible, ...]
    """Combinations of the factors that cannot be, where the study lists them."""
    provenance: Provenance
    reached: tuple[Reached, ...] = ()
    """With `until`: how precise each point became."""
    standings: tuple[Standing, ...] = ()
    """Of a contest: how each point did in each round, as far as rounds have ended."""
    finalists: tuple[Finalist, ...] = ()
    """Of a contest: what new seeds say of the points that were left, the best first."""
    limits: tuple[Kept, ...] = ()
    """Of a contest with limits: how each of these keeps each of them."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way, such as workers that were lost, in sentences."""

    @property
    def section(self) -> Section:
        """The section `study` of the scenario."""
        assert self.scenario.study is not None, "a study has it"
        return self.scenario.study

    @property
    def replicates_of(self) -> dict[int, int]:
        """How many replicates each point has that gave a result, by its number."""
        return dict(self.runs.group_by("point", maintain_order=True).len().iter_rows())

    @property
    def complete(self) -> bool:
        """Whether every run of every point gave a result."""
        return self.points.height == self.planned and self.failures.is_empty()

    @classmethod
    def load(cls, directory: str | Path) -> Study:
        """Read a study, complete or not. Raises InputError when the directory holds none."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "study":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a study")
        scenario = load(directory / "scenario.yaml")
        if scenario.study is None:
            raise InputError(f"{directory / 'scenario.yaml'}: has no 'study' section")
        seed, replicates = manifest.seed or 0, manifest.replicates or 1
        if journalled.is_one(directory):
            found = journalled.read(directory, scenario, replicate_seeds(seed, replicates))
            return cls(
                scenario=scenario,
                seeds=replicate_seeds(seed, replicates),
                provenance=manifest.provenance,
                **found,
            )
        about = about_in(directory)
        plan = plan_of(about["plan"])
        for what, then, now in (
            ("seed", plan.seeds[0], seed),
            ("replicates", len(plan.seeds), replicates),
            ("scenario", plan.scenario.dump(), scenario.dump()),
        ):
            if then != now:
                where, begun, here = first_difference(then, now, what)
                raise InputError(
                    f"{directory / ABOUT}: does not fit the manifest.json and scenario.yaml next to it: "
                    f"{where} was {begun} at its start, and is {here} there"
                )
        tables = directory / "tables"
        if manifest.status == "complete" and (tables / "runs.parquet").exists():
            return cls(
                scenario=scenario,
                seeds=plan.seeds,
                provenance=manifest.provenance,
                **_saved(tables, directory, plan),
            )
        store = Store.open(store_of(directory, about))
        found = found_in(store, plan, about["id"], about["engine"])
        return cls(scenario=scenario, seeds=plan.seeds, provenance=manifest.provenance, **found)

    @property
    def contest(self) -> Contest | None:
        """What it is to find the best of, if anything."""
        return self.section.contest

    def save_tables(self, directory: Path) -> None:
        """Write `points`, `runs` and `measures`, `failures` where there are any, and those of a contest."""
        tables = {"points": self.points, "runs": self.runs, "measures": self.measures}
        if self.failures.height:
            tables["failures"] = self.failures
        tables |= contest_tables(self)
        save_tables(tables, directory)


class Asked(TypedDict):
    """What was asked for."""

    scenario: Mapping[str, object]
    seed: int
    replicates: int


class About(TypedDict):
    """What `study.json` says."""

    weirlab_study: int
    id: str
    engine: str
    store: str
    plan: Mapping[str, object]
    asked: Asked


def about_in(directory: Path) -> About:
    """What `study.json` says. Raises InputError."""
    about = read_json(directory / ABOUT)
    if about.get("weirlab_study") != 2:
        raise InputError(
            f"{directory / ABOUT}: of another version of weirlab ({about.get('weirlab_study')!r})"
        )
    try:
        return typed(About, about)
    except ValueError as error:
        raise InputError(f"{directory / ABOUT}: damaged: {error}") from error


def store_of(directory: Path, about: About) -> str:
    """The place of its store. One in the directory of the study may be moved with it."""
    return str(directory / "store") if about["store"] == "store" else about["store"]


def found_in(store: Store, plan: RunsPlan, name: str, engine: str, sitting: str = "") -> Found:
    """The fields of a `Study` that a store knows of a plan; those `kept` of which a sitting made nothing."""
    columns = ["point", "replicate", "seed", "status", "reason", *COUNTS, "measures", "document", "sitting"]
    rows = store.rows(plan=name, made_by=engine, columns=columns)
    asked, decided = asked_of(plan, rows)
    rows = rows.join(asked, on="point", how="inner", maintain_order="left")
    rows = rows.filter(pl.col("replicate") < pl.col("asked"))
    many = rows.group_by("point", "asked", maintain_order=True).len()
    whole = many.filter(pl.col("len") == pl.col("asked")).get_column("point")
    rows = rows.filter(pl.col("point").is_in(whole.implode()))
    good = rows.filter(pl.col("status") == "ok")
    impossible = rows.filter(pl.col("status") == "impossible").unique("point", maintain_order=True)
    numbers = good.get_column("point").unique(maintain_order=True).to_list()
    names = [*(["stage"] if plan.stages else []), *plan.section.names]
    levels = [plan.levels(number) for number in numbers]
    excluded = {
        tuple(plan.factors(point).items()): reason
        for point, reason in impossible.select("point", "reason").iter_rows()
    }
    order = {each: place for place, each in enumerate(plan.scenario.measure)}
    measures = (
        good.select("point", "replicate", "measures")
        .explode("measures")
        .drop_nulls("measures")
        .unnest("measures")
        .with_columns(_order=pl.col("measure").replace_strict(order, default=0))
        .sort("point", "_order", "replicate", maintain_order=True)
        .select(list(_MEASURES))
        .cast(pl.Schema(_MEASURES))
    )
    failures = rows.filter(~pl.col("status").is_in(["ok", "impossible"]))
    return {
        "kept": len(numbers) - good.filter(sitting=sitting)["point"].n_unique() if sitting else 0,
        "planned": asked.filter(pl.col("asked") > 0).height - impossible.height,
        "points": pl.DataFrame(
            {"point": numbers, **{each: [level[each] for level in levels] for each in names}},
            schema={"point": pl.UInt32, **dict.fromkeys(names, pl.String)},
        ),
        "runs": good.select(
            "point", pl.col("replicate").cast(pl.UInt64), "seed", *(pl.col(each) for each in COUNTS)
        ),
        "measures": measures,
        "failures": failures.select(list(FAILURES)),
        "impossible": tuple(Impossible(dict(each), reason) for each, reason in excluded.items()),
        **decided,
    }


def asked_of(plan: RunsPlan, rows: pl.DataFrame) -> tuple[pl.DataFrame, Decided]:
    """How many replicates each point is to have, by what is there (columns `point asked`), and what else was
    decided by it, as fields of a `Study`."""
    counts = np.full(len(plan.order), plan.replicates)
    decided: Decided = {}
    asking = asking_of(plan)
    if asking is not None:
        asking.read(rows.filter(pl.col("status").is_in(["ok", "impossible"])))
        counts = asking.asked()
    if isinstance(asking, Sequential):
        decided["reached"] = tuple(asking.reached())
    elif isinstance(asking, Contested):
        decided = {
            "standings": tuple(asking.standings),
            "finalists": tuple(asking.finalists),
            "limits": tuple(asking.limits),
        }
    schema = {"point": pl.UInt32, "asked": pl.Int64}
    return pl.DataFrame({"point": plan.order, "asked": counts}, schema=schema), decided


def _saved(tables: Path, directory: Path, plan: RunsPlan) -> Found:
    """The same from the tables of a study that is complete."""
    found: dict[str, pl.DataFrame] = {}
    for name in ("points", "runs", "measures"):
        try:
            found[name] = pl.read_parquet(tables / f"{name}.parquet")
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{tables / name}.parquet: not a table that can be read: {error}") from error
    decided = contest_saved(tables, plan) if plan.stages else _decided_in(found, plan)
    return {
        "planned": found["points"].height,
        "points": found["points"],
        "runs": found["runs"],
        "measures": found["measures"],
        "failures": pl.DataFrame(schema=FAILURES),
        "kept": 0,
        "impossible": impossible_in(directory),
        **decided,
    }


def _decided_in(found: Mapping[str, pl.DataFrame], plan: RunsPlan) -> Decided:
    """How precise points became, from the tables."""
    if plan.section.until is None:
        return {}
    values = found["measures"].group_by("point", "replicate").agg(measures=pl.struct("measure", "value"))
    rows = (
        found["runs"]
        .select(pl.col("point").cast(pl.UInt32), pl.col("replicate").cast(pl.UInt32), status=pl.lit("ok"))
        .join(values, on=["point", "replicate"], how="left", maintain_order="left")
        .with_columns(document=pl.lit(None, pl.String))
    )
    return asked_of(plan, rows)[1]


_VERDICT = ("chosen_by", "mean", "low", "high", "behind", "behind_low", "behind_high", "excess")
_LIMITS = {
    "measure": pl.String,
    "limit": pl.String,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


def contest_tables(study: Study) -> dict[str, pl.DataFrame]:
    """Of a contest: `rounds`, with the factors by which contests are apart and `round point replicates value
    excess kept`, `verdict`, with the levels of each finalist and `rank chosen_by mean low high behind
    behind_low behind_high excess`, and where there are some `limits`, with those factors and `point measure
    limit mean low high kept`. Nothing without one. See `Standing`, `Finalist` and `Kept`."""
    section = study.section
    if section.contest is None:
        return {}
    levels = {row["point"]: row for row in study.points.iter_rows(named=True)}
    apart = dict.fromkeys(apart_in(study.scenario), pl.String)
    rounds = dict.fromkeys(("round", "point", "replicates"), pl.UInt32)
    values = dict.fromkeys(("value", "excess"), pl.Float64)
    verdict = (
        dict.fromkeys(section.names, pl.String) | {"rank": pl.UInt32} | dict.fromkeys(_VERDICT, pl.Float64)
    )
    tables = {
        "rounds": pl.DataFrame(
            [{**each.levels, **_numbers(each)} for each in study.standings],
            schema={**apart, **rounds, **values, "kept": pl.Boolean},
        ),
        "verdict": pl.DataFrame(
            [{**levels[each.point], **_numbers(each)} for each in study.finalists],
            schema={"point": pl.UInt32, **verdict},
        ),
    }
    if section.contest.limits:
        tables["limits"] = pl.DataFrame(
            [{**each.levels, **_numbers(each)} for each in study.limits],
            schema={**apart, "point": pl.UInt32, **_LIMITS, "kept": pl.String},
        )
    return tables


def apart_in(scenario: Scenario) -> tuple[str, ...]:
    """The factors of which each combination of levels has a contest of its own."""
    section = scenario.study
    if section is None or section.contest is None:
        return ()
    return section.contest.apart if isinstance(section.contest, Halving) else tuple(section.factors)


def _numbers(row: Standing | Finalist | Kept) -> dict[str, object]:
    return {name: value for name, value in vars(row).items() if name != "levels"}


def contest_saved(tables: Path, plan: RunsPlan) -> Decided:
    """The fields of a `Study` that the tables of a contest hold."""
    found: dict[str, list[Any]] = {}
    contest = plan.section.contest
    limits = [] if contest is None else contest.limits
    kinds: dict[str, type[Standing | Finalist | Kept]] = {"rounds": Standing, "verdict": Finalist}
    for name, kind in (kinds | ({"limits": Kept} if limits else {})).items():
        try:
            rows = pl.read_parquet(tables / f"{name}.parquet").iter_rows(named=True)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{tables / name}.parquet: not a table that can be read: {error}") from error
        fields = [each for each in kind.__dataclass_fields__ if each != "levels"]
        apart = apart_in(plan.scenario)
        found[name] = [
            # Older versions knew no limits.
            kind(
                levels={factor: row[factor] for factor in apart},
                **{each: row.get(each, 0.0) if each == "excess" else row[each] for each in fields},
            )
            for row in rows
        ]
    return {
        "standings": tuple(found["rounds"]),
        "finalists": tuple(found["verdict"]),
        "limits": tuple(found.get("limits", ())),
    }
