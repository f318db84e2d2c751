"""The part of `weir run` that runs a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weirlab.cli.progress import judge_in, progress_bar
from weirlab.cli.shared import print_json, show_result, tell, write_page
from weirlab.cli.tables import say
from weirlab.cli.viewing import viewed
from weirlab.errors import InputError, Interrupted, RunFailed

if TYPE_CHECKING:
    from weirlab.execution import Limits
    from weirlab.scenario import Scenario


@dataclass(frozen=True)
class Where:
    """Who executes a study, where its results go, and what a run may need."""

    on: str | None
    store: str | None
    limits: Limits


def where_of(on: str | None, store: str | None, limits: Sequence[str] | None) -> Where:
    """What the options say. Raises InputError."""
    from weirlab.cli.shared import quantity
    from weirlab.execution import Limits, check_on
    from weirlab.execution.clusters import KINDS
    from weirlab.units import Size, Span

    if (on or "").partition(":")[0] not in KINDS:
        check_on(on)  # before there is a directory
    seconds, memory_bytes = None, None
    for text in limits or []:
        if text.strip().endswith("B"):
            memory_bytes = quantity("--limit", Size, text).bytes
        else:
            seconds = quantity("--limit", Span, text).ps / 1e12
    if seconds == 0 or memory_bytes == 0:
        raise InputError("--limit 0: nothing can run; leave it out for no limit")
    return Where(on, store, Limits(seconds, memory_bytes))


def write_cluster_file(
    scenario: Scenario,
    on: str,
    file: str,
    options: Mapping[str, object],
    several: Sequence[tuple[str, Sequence[str] | None]],
    *,
    report: bool,
) -> None:
    """Write a file that starts the same study on a cluster, and say how to use it."""
    from weirlab.execution.clusters import KINDS, cluster_file
    from weirlab.results import write_text
    from weirlab.studies import RunsPlan

    assert scenario.study is not None
    RunsPlan(scenario, scenario.run.seed, scenario.study.replicates).check()
    kind = on.partition(":")[0]
    if kind == "kubernetes" and "://" not in str(options["--store"] or ""):
        raise InputError("--on kubernetes: name object storage that all pods reach with --store s3://...")
    path = Path(f"{scenario.name}.{KINDS[kind]}")
    words = ["weir", "study", file]
    given = {**options, "--out": options["--out"] or f"results/{scenario.name}"}
    for name, value in given.items():
        words += [name, str(value)] if value is not None else []
    for name, values in several:
        for value in values or []:
            words += [name, value]
    words += ["--report"] if report else []
    content = cluster_file(on, words, scenario.name, path.name)
    if path.exists():
        itself = Path(file).resolve() == path.resolve()
        remedy = "give the scenario another 'name'" if itself else "remove it"
        what = "this is the scenario" if itself else "there is such a file"
        raise InputError(f"{path}: {what}; {remedy}, or work in another directory")
    write_text(path, content)
    start = f"sbatch --time=4:00:00 {path}" if kind == "slurm" else f"kubectl apply -f {path}"
    typer.echo(f"Written: {path}. Start the study with:  {start}")
    if kind == "kubernetes" and Path(file).exists():
        typer.echo(f"The image has to hold {file}, and what it extends, in its working directory.")


def run_points(
    scenario: Scenario,
    seed: int | None,
    replicates: int | None,
    threads: int | None,
    where: Where,
    overrides: dict[str, str],
    out: Path | None,
    *,
    report: bool,
    view: bool,
    as_json: bool,
) -> None:
    """Run all points of a study, or those that an earlier sitting left open."""
    from weirlab.api.simulated import study
    from weirlab.report.study import replicates_text
    from weirlab.results import claimed_directory
    from weirlab.studies import RunsPlan

    assert scenario.study is not None
    many = scenario.study.replicates if replicates is None else replicates
    points = len(RunsPlan(scenario, scenario.run.seed if seed is None else seed, many).order)
    before = out if out is not None and (out / "manifest.json").exists() else None
    try:
        with (
            nullcontext(before) if before is not None else claimed_directory(scenario.name, out) as directory,
            viewed(directory, view),
            progress_bar("simulating", f"{points} points") as progress,
        ):
            result = study(
                scenario,
                out=directory,
                seed=seed,
                replicates=replicates,
                threads=threads,
                on=where.on,
                store=where.store,
                limits=where.limits,
                overrides=overrides,
                progress=progress,
                judge=judge_in(directory, progress),
            )
    except Interrupted as error:
        raise Interrupted(f"{error}. Continue with the same command and --out {directory}") from None
    page = write_page(directory, result.whole_page) if report else None
    if as_json:
        print_json(result.document)
        return
    if before is not None:
        tell(f"continued {directory}")
    kept = result.study.kept
    points = result.study.planned
    ran = f"{points} points of {replicates_text(result.study)} replicates"
    ran += f", {points - kept} of them" if kept else ""
    say(
        f"{scenario.name}: {ran} in {result.seconds or 0.0:.2f} s"
        + (f", {kept} kept from before" if kept else "")
    )
    show_result(result, page)
    if result.study.failures.height:
        raise RunFailed(result.manifest_remark)
