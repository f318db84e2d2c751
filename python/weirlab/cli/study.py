"""The part of `weir run` that runs a study."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weirlab.cli.frame import print_json, show, show_place, tell, write_page
from weirlab.cli.progress import progress_bar

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.studies import Study

__all__ = ["run_points"]


def run_points(
    scenario: Scenario,
    seed: int | None,
    replicates: int | None,
    threads: int | None,
    overrides: dict[str, str],
    out: Path | None,
    *,
    report: bool,
    as_json: bool,
) -> None:
    """Run all points of a study, or those that an earlier sitting left open."""
    from weirlab.errors import Interrupted
    from weirlab.records import save_tables
    from weirlab.report.sensitivity import sensitivity_of, sensitivity_table, without_weights
    from weirlab.report.study import effect_table
    from weirlab.results import new_directory, write_json
    from weirlab.studies import points_of, run_study

    points = points_of(scenario)  # what cannot run is told before a directory is made
    continued = out is not None and (out / "points.jsonl").exists()
    directory = out if continued and out is not None else new_directory(scenario.name, out)
    began = time.monotonic()
    try:
        with progress_bar("simulating", f"{len(points)} points") as progress:
            study = run_study(
                scenario,
                directory=directory,
                seed=seed,
                replicates=replicates,
                threads=threads,
                overrides=overrides,
                progress=progress,
            )
    except Interrupted as error:
        raise Interrupted(f"{error}. Continue with the same command and --out {directory}") from None
    seconds = time.monotonic() - began
    influence = sensitivity_of(study)
    document = describe(study, directory, seconds)
    if influence is not None:
        save_tables({"sensitivity": influence}, directory / "tables")
        document["sensitivity"] = influence.to_dicts()
    write_json(directory / "result.json", document)
    page = write_page(directory) if report else None
    if as_json:
        print_json(document)
        return
    if continued:
        tell(f"continued {directory}")
    ran = f"{len(points)} points of {len(study.seeds)} replicates"
    ran += f", {len(points) - study.kept} of them" if study.kept else ""
    typer.echo(
        f"{scenario.name}: {ran} in {seconds:.2f} s"
        + (f", {study.kept} kept from before" if study.kept else "")
    )
    if study.impossible:
        typer.echo(
            f"combinations that cannot be: {len(study.impossible)}; see {directory / 'impossible.json'}"
        )
    table = effect_table(study) if influence is None else sensitivity_table(study, influence)
    if influence is None or table.rows:
        show(table)
    for sentence in [] if influence is None else without_weights(influence):
        typer.echo(sentence)
    show_place(directory, page)


def describe(study: Study, directory: Path, seconds: float) -> dict[str, Any]:
    """A study as JSON values: one entry per point."""
    from weirlab.measures import summary

    by_point = {point: group for (point,), group in study.measures.group_by("point", maintain_order=True)}
    factors = [column for column in study.points.columns if column != "point"]
    return {
        "kind": "study",
        "name": study.scenario.name,
        "directory": str(directory),
        "seeds": list(study.seeds),
        "seconds": round(seconds, 3),
        "kept_points": study.kept,
        "points": [
            {
                "point": row["point"],
                "levels": {factor: row[factor] for factor in factors},
                "measures": summary(by_point[row["point"]]) if row["point"] in by_point else [],
            }
            for row in study.points.iter_rows(named=True)
        ],
        "impossible": [asdict(each) for each in study.impossible],
    }
