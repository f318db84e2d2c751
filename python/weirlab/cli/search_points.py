"""The part of `weir search` that makes a study of searches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weirlab.cli.frame import print_json, show, show_place, tell, write_page

if TYPE_CHECKING:
    from weirlab.results import Status
    from weirlab.scenario import Scenario
    from weirlab.searches import SearchResult
    from weirlab.searches.points import PointSearch

__all__ = ["search_points"]

SearchInto = Callable[["Scenario", Path], "SearchResult"]
"""Makes one search in a directory, or goes on with the one that is there."""


def search_points(
    scenario: Scenario,
    directory: Path,
    search_into: SearchInto,
    overrides: dict[str, str],
    *,
    report: bool,
    as_json: bool,
) -> None:
    """Make all searches of a study that are not finished, and show the rates of all."""
    from weirlab.errors import Interrupted, WeirlabError
    from weirlab.files import locked_directory
    from weirlab.records import save_tables
    from weirlab.report.search_points import evidence_tables, rate_table, terms_of_all
    from weirlab.results import Manifest, Provenance, write_json
    from weirlab.runs import save_scenario
    from weirlab.searches import Ending
    from weirlab.searches.points import (
        directions_table,
        point_searches,
        rates_table,
        run_point_searches,
    )

    searches = point_searches(scenario)  # what cannot be searched is told before anything is measured
    manifest = Manifest(
        kind="search-study",
        name=scenario.name,
        seed=scenario.run.seed,
        replicates=scenario.study.replicates if scenario.study is not None else None,
        overrides=overrides,
        provenance=Provenance.now(),
    )

    def run(each: PointSearch, place: Path) -> SearchResult:
        finished = _finished(place)
        if finished is not None:
            return finished
        tell(f"{each.name}: {each.where}")
        place.mkdir(parents=True, exist_ok=True)
        return search_into(each.scenario, place)

    with locked_directory(directory):
        if not (directory / "manifest.json").exists():
            save_scenario(scenario, directory)
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        try:
            results = run_point_searches(searches, directory, run)
            rates = rates_table(results)
            save_tables({"rates": rates, "directions": directions_table(results)}, directory / "tables")
            document: dict[str, Any] = {
                "kind": "search-study",
                "name": scenario.name,
                "directory": str(directory),
                "planned": len(searches),
                "searches": len(results),
                "rates": rates.to_dicts(),
            }
            write_json(directory / "result.json", document)
            endings = {result.ending for _, result in results}
            failed = [each.name for each, result in results if result.ending is Ending.TESTBED_FAILED]
            status: Status = (
                "interrupted" if Ending.INTERRUPTED in endings else "failed" if failed else "complete"
            )
            manifest.ended(status, ", ".join(failed)).write(directory)
        except BaseException as error:
            with suppress(WeirlabError):  # on a full disk, what went wrong first is what is told
                manifest.ended("failed", str(error)).write(directory)
            raise
    page = write_page(directory) if report else None
    if as_json:
        print_json(document)
    else:
        for table in (rate_table(rates), *terms_of_all(results), *evidence_tables(results)):
            show(table)
        show_place(directory, page)
    if Ending.TIMED_OUT in endings:
        hint = f"go on with:  weir search --resume {directory} --timeout TIME, longer than before"
        tell(f"weir: searches have timed out\n      {hint}")
    if Ending.INTERRUPTED in endings:
        tell(f"weir: interrupted\n      go on with:  weir search --resume {directory}")
        raise typer.Exit(Interrupted.exit_code)
    if not rates.get_column("regular").all():
        raise typer.Exit(1)


def _finished(place: Path) -> SearchResult | None:
    """The result of an earlier sitting, if it came to its end."""
    from weirlab.report.search import replay
    from weirlab.searches import Ending

    if not (place / "result.json").exists():
        return None
    result = replay(place).result
    return result if result.ending is Ending.FINISHED else None
