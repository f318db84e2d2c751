"""The part of `weir run` that runs a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weirlab.cli.frame import print_json, show_result, tell, write_page
from weirlab.cli.progress import judge_in, progress_bar

if TYPE_CHECKING:
    from weirlab.scenario import Scenario


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
    from weirlab.api.simulated import study
    from weirlab.errors import Interrupted
    from weirlab.results import new_directory
    from weirlab.studies import points_of

    points = points_of(scenario)  # what cannot run is told before a directory is made
    continued = out is not None and (out / "points.jsonl").exists()
    directory = out if continued and out is not None else new_directory(scenario.name, out)
    try:
        with progress_bar("simulating", f"{len(points)} points") as progress:
            result = study(
                scenario,
                out=directory,
                seed=seed,
                replicates=replicates,
                threads=threads,
                overrides=overrides,
                progress=progress,
                judge=judge_in(directory, progress),
            )
    except Interrupted as error:
        raise Interrupted(f"{error}. Continue with the same command and --out {directory}") from None
    page = write_page(directory) if report else None
    if as_json:
        print_json(result.document)
        return
    if continued:
        tell(f"continued {directory}")
    kept = result.study.kept
    ran = f"{len(points)} points of {len(result.seeds)} replicates"
    ran += f", {len(points) - kept} of them" if kept else ""
    typer.echo(
        f"{scenario.name}: {ran} in {result.seconds or 0.0:.2f} s"
        + (f", {kept} kept from before" if kept else "")
    )
    show_result(result, page)
