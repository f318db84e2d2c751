"""The part of `weir run` that runs a study."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.progress import judge_in, progress_bar
from weirlab.cli.shared import print_json, quantity, show_result, tell, write_page
from weirlab.cli.tables import say
from weirlab.cli.viewing import viewed
from weirlab.errors import InputError, Interrupted, RunFailed

if TYPE_CHECKING:
    from weirlab.execution import Limits
    from weirlab.scenario import Scenario


@dataclass(frozen=True)
class Repeats:
    """Options: how often something runs."""

    seed: Annotated[
        int | None, typer.Option(help="Seed of the first replicate. Default: that of the scenario.")
    ] = None
    replicates: Annotated[
        int | None,
        typer.Option(min=1, help="How often to run, each with the next seed. Default: 1, or the study's."),
    ] = None
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many replicates to run at once. Default: one per CPU.")
    ] = None


@dataclass(frozen=True)
class Where:
    """Options: who executes a study, where its results go, and what a run may need."""

    on: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Where the runs of a study take place: local:N (processes), tcp://HOST:8786 (a Dask "
            "scheduler) or ssh:HOST,HOST. slurm:N and kubernetes:N write a job for N workers. "
            "Default: processes of this machine.",
        ),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Where studies share their results: a directory, or a URL such as s3://bucket/name. "
            "Default: in the result.",
        ),
    ] = None
    limit: Annotated[
        list[str] | None,
        typer.Option(help="Most time or memory of one run of a study, such as '60 s' or '2 GB'. Repeatable."),
    ] = None

    def check(self) -> None:
        """Raises InputError, before there is a directory, for what nobody can honour."""
        from weirlab.execution import check_on
        from weirlab.execution.clusters import KINDS

        if (self.on or "").partition(":")[0] not in KINDS:
            check_on(self.on)
        self.limits()

    def limits(self) -> Limits:
        """What a run may need. Raises InputError."""
        from weirlab.execution import Limits
        from weirlab.units import Size, Span

        seconds, memory_bytes = None, None
        for text in self.limit or []:
            if text.strip().endswith("B"):
                memory_bytes = quantity("--limit", Size, text).bytes
            else:
                seconds = quantity("--limit", Span, text).ps / 1e12
        if seconds == 0 or memory_bytes == 0:
            raise InputError("--limit 0: nothing can run; leave it out for no limit")
        return Limits(seconds, memory_bytes)


def write_cluster_file(
    scenario: Scenario,
    file: str,
    repeats: Repeats,
    where: Where,
    sets: Sequence[str] | None,
    out: Path | None,
    *,
    report: bool,
) -> None:
    """Write a file that starts the same study on a cluster, and say how to use it."""
    from weirlab.execution.clusters import KINDS, cluster_file
    from weirlab.results import write_text
    from weirlab.studies import RunsPlan

    assert scenario.study is not None
    assert where.on is not None
    RunsPlan(scenario, scenario.run.seed, scenario.study.replicates).check()
    kind = where.on.partition(":")[0]
    if kind == "kubernetes" and "://" not in (where.store or ""):
        raise InputError("--on kubernetes: name object storage that all pods reach with --store s3://...")
    path = Path(f"{scenario.name}.{KINDS[kind]}")
    words = ["weir", "study", file]
    given = {
        "--seed": repeats.seed,
        "--replicates": repeats.replicates,
        "--store": where.store,
        "--out": out or f"results/{scenario.name}",
    }
    for name, value in given.items():
        words += [name, str(value)] if value is not None else []
    for name, values in (("--set", sets), ("--limit", where.limit)):
        for value in values or []:
            words += [name, value]
    words += ["--report"] if report else []
    content = cluster_file(where.on, words, scenario.name, path.name)
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
    repeats: Repeats,
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
    many = scenario.study.replicates if repeats.replicates is None else repeats.replicates
    seed = scenario.run.seed if repeats.seed is None else repeats.seed
    points = len(RunsPlan(scenario, seed, many).order)
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
                seed=repeats.seed,
                replicates=repeats.replicates,
                threads=repeats.threads,
                on=where.on,
                store=where.store,
                limits=where.limits(),
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
