"""The quantities of a result: each with a value per seed or cycle, or with the bounds that a search found."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import polars as pl

from weirlab.errors import InputError
from weirlab.evaluation import evaluated
from weirlab.records import Records
from weirlab.results import Manifest, read_json
from weirlab.runs import Run
from weirlab.scenario import Scenario, load


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One number of a result."""

    name: str
    at: str = ""
    """The point of a study or campaign: `factor level, factor level`; empty elsewhere."""
    unit: str
    """As measures have them: `bit/s`, `ps`, `B`, `frame/s`, `1` ..."""
    values: Mapping[Hashable, float] = field(default_factory=dict)
    """One per seed of a simulation, or cycle of a campaign."""
    bounds: tuple[float, float] | None = None
    """Of a search, instead of values: the highest load that met the goal and the lowest that did not."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same quantity in another result."""
        return self.at, self.name, self.unit


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A result with its quantities."""

    name: str
    """What it is called among the others: as much of its path as distinguishes it."""
    directory: Path
    manifest: Manifest
    scenario: Scenario
    quantities: Sequence[Quantity]
    repeats: str = "seeds"
    """What `values` are counted by: `seeds` or `cycles`."""
    records: Records | None = None
    """Of a run: its tables."""
    failed: Sequence[str] = ()
    """Of a run: why measures failed, which are not compared."""
    random: frozenset[str] = frozenset()
    """Of a study: the points whose replicates counted different frames or events, whatever was measured."""

    @cached_property
    def exact(self) -> frozenset[str]:
        """The points (`at`) all of whose quantities are the same to the last bit in two replicates or
        more."""
        by_point: dict[str, list[Quantity]] = {}
        for quantity in self.quantities:
            by_point.setdefault(quantity.at, []).append(quantity)
        return frozenset(
            at
            for at, found in by_point.items()
            if at not in self.random
            and all(each.bounds is None and len(set(each.values.values())) < 2 for each in found)
            and max(len(each.values) for each in found) > 1
        )


def compared(directories: Sequence[Path]) -> list[Compared]:
    """The results in these directories, all of one kind.

    Raises InputError when one holds no result, a result that cannot be compared, one that did not end, or
    one of another kind than the first.
    """
    names = names_of(directories)
    manifests = [Manifest.read(directory) for directory in directories]
    for directory, manifest in zip(directories, manifests, strict=True):
        if manifest.kind not in _READERS:
            known = ", ".join(_READERS)
            raise InputError(f"{directory}: holds a {manifest.kind}; what can be compared is a {known}")
        if manifest.kind != manifests[0].kind:
            raise InputError(
                f"{directory}: holds a {manifest.kind}, {directories[0]} a {manifests[0].kind}; "
                "compare results of one kind"
            )
    return [
        _READERS[manifest.kind](
            directory, partial(Compared, name=name, directory=directory, manifest=manifest)
        )
        for name, directory, manifest in zip(names, directories, manifests, strict=True)
    ]


def names_of(directories: Sequence[Path]) -> list[str]:
    """What results are called, by their directories: as much of the path as distinguishes them.

    Raises InputError when a directory is named twice.
    """
    parts = [directory.resolve().parts for directory in directories]
    if len(set(parts)) < len(parts):
        raise InputError("a comparison is of different directories; one is named twice")
    length = next(n for n in range(1, 1 + max(map(len, parts))) if len({p[-n:] for p in parts}) == len(parts))
    return ["/".join(part[-length:]) for part in parts]


def _run(directory: Path, compared_of: partial[Compared]) -> Compared:
    run = Run.load(directory)
    measures = evaluated(run.records, run.scenario)
    values = measures.values.filter(~pl.col("measure").is_in(list(measures.errors)))
    return compared_of(
        scenario=run.scenario,
        quantities=[*_measured(values, run.seeds), *_of_traffic(run.records, run.seeds)],
        records=run.records,
        failed=list(measures.faults.values()),
    )


def _measured(
    measures: pl.DataFrame, seeds: Sequence[int], levels: Mapping[int, str] | None = None
) -> Iterator[Quantity]:
    """Columns `measure replicate value unit`, with `levels` also `point`."""
    keys = ["measure", "unit"] if levels is None else ["point", "measure", "unit"]
    for key, rows in measures.group_by(keys, maintain_order=True):
        *point, measure, unit = key
        pairs = rows.select("replicate", "value").drop_nulls().iter_rows()
        yield Quantity(
            name=str(measure),
            at="" if levels is None else levels[int(str(point[0]))],
            unit=str(unit),
            values={seeds[replicate]: value for replicate, value in pairs},
        )


def _of_traffic(records: Records, seeds: Sequence[int]) -> Iterator[Quantity]:
    """What became of the frames of each entry of traffic, whatever the scenario measures."""
    flows = records.named("flows")
    if flows.is_empty():
        return
    if "carries" in flows.columns:
        flows = flows.filter(pl.col("carries") == "data")
    ends = records["runs"].select("replicate", "end_ps")
    delivered = pl.col("delivered_frames").sum()
    rows = (
        flows.join(ends, on="replicate")
        .group_by("traffic_name", "replicate", maintain_order=True)
        .agg(
            rate=8e12 * pl.col("delivered_bytes").cast(pl.Float64).sum() / pl.col("end_ps").first(),
            loss=pl.col("dropped_frames").sum() / pl.col("sent_frames").sum(),
            mean=pl.col("delay_sum_ps").cast(pl.Float64).sum() / delivered,
            most=pl.col("delay_max_ps").max().cast(pl.Float64),
        )
    )
    what = {
        "rate": ("delivered rate", "bit/s"),
        "loss": ("loss ratio", "1"),
        "mean": ("mean delay", "ps"),
        "most": ("largest delay", "ps"),
    }
    for (traffic,), group in rows.group_by("traffic_name", maintain_order=True):
        for column, (name, unit) in what.items():
            pairs = group.select("replicate", pl.col(column).fill_nan(None)).drop_nulls().iter_rows()
            values = {seeds[replicate]: value for replicate, value in pairs}
            yield Quantity(name=f"{traffic}: {name}", unit=unit, values=values)


def _study(directory: Path, compared_of: partial[Compared]) -> Compared:
    from weirlab.studies import Study

    study = Study.load(directory)
    if not study.complete:
        raise InputError(
            f"{directory}: {study.points.height} of {study.planned} points have been run; "
            f"'weir study ... --resume {directory}' goes on"
        )
    factors = [column for column in study.points.columns if column != "point"]
    levels = {
        int(row["point"]): ", ".join(f"{_short(factor)} {row[factor]}" for factor in factors)
        for row in study.points.iter_rows(named=True)
    }
    return compared_of(
        scenario=study.scenario,
        quantities=list(_measured(study.measures, study.seeds, levels)),
        random=frozenset(
            levels[int(str(point))]
            for (point,), runs in study.runs.drop("replicate", "seed").group_by("point")
            if runs.n_unique() > 1
        ),
    )


def _short(factor: str) -> str:
    """The last part of a path, which is what a reader looks for; two that end alike have different levels."""
    return factor.rpartition(".")[2]


def _search(directory: Path, compared_of: partial[Compared]) -> Compared:
    path = directory / "result.json"
    goals = read_json(path).get("goals")
    if not isinstance(goals, list):
        raise InputError(f"{path}: not the result of a search: it has no list 'goals'; {_AGAIN}")
    found = [
        Quantity(name=str(goal["name"]), unit="frame/s", bounds=bounds)
        for place, goal in enumerate(goals, start=1)
        if (bounds := _bounds(goal, f"{path}: goal {place} of {len(goals)}")) is not None
    ]
    return compared_of(scenario=load(directory / "scenario.yaml"), quantities=found)


_AGAIN = "restore the file, or search again"


def _bounds(goal: object, place: str) -> tuple[float, float] | None:
    """The rates between which a goal is; None where one was not found. Raises InputError."""
    if not isinstance(goal, Mapping) or not isinstance(goal.get("name"), str):
        raise InputError(f"{place}: not the result of a search: it has no 'name'; {_AGAIN}")
    rates = []
    for side in ("lower", "upper"):
        if side not in goal:
            raise InputError(f"{place}: not the result of a search: '{side}' is missing; {_AGAIN}")
        if goal[side] is None:
            return None
        rate = goal[side].get("load_fps") if isinstance(goal[side], Mapping) else None
        if not isinstance(rate, int | float) or rate <= 0:
            raise InputError(
                f"{place}: not the result of a search: '{side}' needs a 'load_fps' above 0 "
                f"(got {goal[side]!r}); {_AGAIN}"
            )
        rates.append(float(rate))
    return rates[0], rates[1]


def _campaign(directory: Path, compared_of: partial[Compared]) -> Compared:
    from weirlab.campaigns import Campaign
    from weirlab.campaigns.tables import measurement_table

    campaign = Campaign.load(directory)
    table = measurement_table(campaign)
    levels = [
        ", ".join(f"{_short(factor)} {level}" for factor, level in point.items())
        for point in campaign.plan.levels
    ]
    cycles = table.group_by("point", "cycle", maintain_order=True).agg(
        goodput=pl.col("goodput_bps").cast(pl.Float64).sum(), added=1e12 * pl.col("rtt_difference_s").mean()
    )
    what = {"goodput": ("goodput", "bit/s"), "added": ("added round-trip time", "ps")}
    found = [
        Quantity(
            name=quantity,
            at=levels[int(str(point))],
            unit=unit,
            values=dict(rows.select("cycle", pl.col(column).fill_nan(None)).drop_nulls().iter_rows()),
        )
        for (point,), rows in cycles.group_by("point", maintain_order=True)
        for column, (quantity, unit) in what.items()
    ]
    return compared_of(scenario=campaign.plan.scenario, quantities=found, repeats="cycles")


_READERS = {"run": _run, "study": _study, "search": _search, "campaign": _campaign}
