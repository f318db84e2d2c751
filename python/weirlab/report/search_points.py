"""The report of a study of searches: the rates by factor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from weirlab.errors import InputError
from weirlab.plots.study import effect_plots
from weirlab.plots.style import Plot, scaled
from weirlab.report import shared
from weirlab.report.page import (
    Block,
    Card,
    Cell,
    Numbers,
    Page,
    Table,
    Text,
    number,
)
from weirlab.report.search import replay
from weirlab.report.search_tables import direction_table, evidence_table, stacked
from weirlab.report.search_terms import terms_table
from weirlab.results import Manifest
from weirlab.scenario import load
from weirlab.scenario.plan.combinations import short_names
from weirlab.searches.base import FoundRates
from weirlab.searches.points import PointSearch, point_searches, rates_table


def found_so_far(directory: Path) -> list[tuple[PointSearch, FoundRates]]:
    """The searches of a study that were begun, read from their directories."""
    searches = point_searches(load(directory / "scenario.yaml"))
    begun = [each for each in searches if (directory / each.name / "manifest.json").exists()]
    return [(each, replay(directory / each.name).result) for each in begun]


def points_page(directory: Path, manifest: Manifest) -> tuple[Page, list[Plot]]:
    """The page, and its plots."""
    scenario = load(directory / "scenario.yaml")
    planned = len(point_searches(scenario))
    results = found_so_far(directory)
    if manifest.status == "complete" and len(results) != planned:
        raise InputError(
            f"{directory}: holds {len(results)} of {planned} searches, but manifest.json says that it came "
            f"to its end"
        )
    rates = rates_table(results)
    plots = rate_plots(rates)
    irregular = rates.filter(~pl.col("regular")).height
    time_s = sum(result.time_s for _, result in results)
    lead: list[Block] = [
        Numbers(
            [
                Card(
                    "Searches",
                    f"{len(results)}" + ("" if len(results) == planned else f" of {planned}"),
                    f"{sum(len(found.trials) for _, found in results)} trials, {shared.seconds_text(time_s)}",
                    tone="good" if len(results) == planned else "bad",
                ),
                Card(
                    "Irregular results",
                    str(irregular),
                    f"of {rates.height}",
                    tone="bad" if irregular else "good",
                ),
            ]
        ),
    ]
    own_pages = (
        "Each search has its own directory next to this page. Its own report is made by 'weir report DIR' "
        "with that directory."
    )
    page = shared.result_page(
        "Study of searches",
        manifest,
        scenario,
        lead=lead,
        sections=[
            shared.section("Rates", rate_table(rates), *terms_of_all(results)),
            shared.section("Evidence", *evidence_tables(results), otherwise="This algorithm gives none."),
            shared.section("Rates by factor", plots=plots, otherwise="Nothing was found yet."),
            shared.section("Searches", Text(own_pages)),
        ],
        story=points_sentences(rates, len(results)),
    )
    return page, plots


def points_sentences(rates: pl.DataFrame, searches: int) -> list[str]:
    """Between which values the rate of each goal lies, and which are irregular."""
    factor, unit = scaled(_largest(rates), "frame_rate")
    ranges = []
    for (goal,), rows in rates.group_by("goal", maintain_order=True):
        known = rows.get_column("lower_fps").drop_nulls().to_list()
        ends = " … ".join(number(each * factor, 4) for each in (min(known), max(known))) if known else "none"
        ranges.append(f"{goal} {ends} {unit if known else 'found'}")
    irregular = rates.filter(~pl.col("regular")).height
    doubt = f"{irregular} of {rates.height} rates are irregular" if irregular else "all rates are regular"
    return [f"{'; '.join(ranges) or 'Nothing was found'}; {doubt}.", f"{searches} searches."]


def rate_table(rates: pl.DataFrame) -> Table:
    """One row per search and goal."""
    factors = factors_of(rates)
    factor, unit = scaled(_largest(rates), "frame_rate")
    replicates = rates.get_column("replicate").n_unique() > 1
    classified = rates.get_column("conditional_throughput_fps").null_count() < rates.height

    def rate(fps: float | None) -> str:
        return number(None if fps is None else fps * factor, 5)

    def bits(bps: float | None) -> str:
        return number(None if bps is None else bps / 1e9, 4)

    levels: dict[str, Cell] = {f"{name}:": (path, str) for path, name in short_names(factors).items()}
    cells: dict[str, Cell] = {
        "replicate": ("replicate", str),
        "goal:": "goal",
        f"rate [{unit}]": ("lower_fps", rate),
        f"conditional\nthroughput [{unit}]": ("conditional_throughput_fps", rate),
        f"upper bound [{unit}]": ("upper_fps", rate),
        f"per direction [{unit}]": ("lower_per_direction_fps", rate),
        "L2 [Gbit/s]": ("l2_bps", bits),
        "L1 [Gbit/s]": ("l1_bps", bits),
        "trials": ("trials", str),
        "time": ("time_s", shared.seconds_text),
        "result:": lambda row: "regular" if row["regular"] else f"irregular: {row['irregular']}",
    }
    left_out = [] if replicates else ["replicate"]
    left_out += [] if classified else [f"conditional\nthroughput [{unit}]"]
    return Table.of(
        "Rates found (lower bounds), sums over all directions",
        rates,
        levels,
        {head: cell for head, cell in cells.items() if head not in left_out},
        tones=["good" if regular else "bad" for regular in rates["regular"]],
        where="tables/rates.parquet",
        note="Trials and time are those of the whole search, which all its goals share.",
    )


def evidence_tables(results: Sequence[tuple[PointSearch, FoundRates]]) -> list[Table]:
    """What speaks for the rates, and the counts of each direction, of all searches; those that have rows."""
    replicates = any(each.replicate for each, _ in results)
    tables = []
    for table_of in (evidence_table, direction_table):
        made = []
        for each, result in results:
            where = dict(each.levels) | ({"replicate": str(each.replicate)} if replicates else {})
            made.append((where, table_of(result)))
        if any(table.rows for _, table in made):
            tables.append(stacked(made))
    return tables


def terms_of_all(results: Sequence[tuple[PointSearch, FoundRates]]) -> list[Table]:
    """What the goals ask for: once where all searches ask for the same, else by the levels."""
    made = [(each.levels, terms_table(result, each.scenario)) for each, result in results]
    if not made:
        return []
    first = made[0][1]
    return [first] if all(table.rows == first.rows for _, table in made) else [stacked(made)]


def rate_plots(rates: pl.DataFrame) -> list[Plot]:
    """The rate of each goal against the factor with most levels."""
    factors = factors_of(rates)
    factor, unit = scaled(_largest(rates), "frame_rate")
    measures = rates.select(
        "point",
        measure="goal",
        replicate="replicate",
        value=pl.col("lower_fps") * factor,
        unit=pl.lit(unit),
        irregular=~pl.col("regular"),
    )
    points = rates.select("point", *factors).unique(maintain_order=True)
    return effect_plots(points, measures, factors)


def factors_of(rates: pl.DataFrame) -> Sequence[str]:
    """The columns that hold levels."""
    columns = rates.columns
    return columns[2 : columns.index("goal")]


def _largest(rates: pl.DataFrame) -> float:
    return max((value for value in rates.get_column("lower_fps") if value is not None), default=1.0)
