"""`weir run`: execute a scenario on the simulator."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weirlab.cli import shared
from weirlab.cli.progress import judge_in, progress_bar
from weirlab.cli.study import Repeats, Where, run_points, write_cluster_file
from weirlab.cli.tables import say
from weirlab.cli.viewing import ViewFlag, viewed
from weirlab.errors import InputError, WeirlabError

if TYPE_CHECKING:
    from weirlab.api.simulated import RunResult
    from weirlab.scenario import Scenario


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)
    app.command("study")(study)


def run(
    file: shared.ScenarioArgument,
    *,
    repeats: Repeats,
    where: Where,
    sets: shared.SetOption = None,
    out: shared.OutOption = None,
    report: shared.ReportFlag = False,
    perfetto: shared.PerfettoOption = None,
    view: ViewFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Run a scenario, or the study in it, on the packet-level simulator and keep the records.

    All points of a 'study' section are run; the same command with --out DIR continues an interrupted study.

    \b
    Examples:
      weir run incast.yaml
      weir run incast --replicates 20 --set traffic.load.source.load='80 %'
      weir run load-and-buffer --out results/first --report
      weir run tcp-loss --perfetto frames.perfetto-trace
    """
    from weirlab.analysis.notes import notes_of
    from weirlab.analysis.timeline import with_frames

    scenario = shared.read_scenario(file, sets)
    shared.check_command(scenario, file, "run")
    for note in notes_of(scenario):
        shared.tell(f"note: {note}")
    changes = shared.overrides(sets)
    if scenario.study is None:
        if where.on or where.store or where.limit:
            raise InputError(f"{file}: has no section 'study', which --on, --store and --limit are for")
        if perfetto is not None:
            scenario = with_frames(scenario)
        found = _run_once(scenario, repeats, changes, out, report=report, view=view, perfetto=perfetto)
        _show(*found, as_json=as_json)
        return
    if perfetto is not None:
        raise InputError(f"{file}: is a study, of whose runs no frames are kept; --perfetto is for one run")
    where.check()
    if where.on is not None and where.on.partition(":")[0] in ("slurm", "kubernetes"):
        write_cluster_file(scenario, file, repeats, where, sets, out, report=report)
        return
    run_points(scenario, repeats, where, changes, out, report=report, view=view, as_json=as_json)


@functools.wraps(run)
def study(**options: Any) -> None:
    file = options["file"]
    scenario = shared.read_scenario(file, options["sets"])
    shared.check_command(scenario, file, "run")
    if scenario.study is None:
        raise InputError(f"{file}: has no section 'study'; run it with:  weir run {file}")
    run(**options)


study.__doc__ = """Run all points of the study in a scenario, on the packet-level simulator.

The same command with --out DIR continues an interrupted study. 'weir run' does the same,
also without a study. Run studies of searches with 'weir search'.

\b
Examples:
  weir study load-and-buffer --report
  weir study zrl-full --out results/space --threads 2
  weir study zrl-full --on tcp://head:8786 \\
          --store s3://lab/results --limit '10 min'
"""


def _run_once(
    scenario: Scenario,
    repeats: Repeats,
    changes: dict[str, str],
    out: Path | None,
    *,
    report: bool,
    view: bool,
    perfetto: Path | None,
) -> tuple[RunResult, Path | None]:
    from weirlab import runs
    from weirlab.api.simulated import run
    from weirlab.results import claimed_directory

    runs.resolve(scenario)  # what cannot run is reported before a directory is made
    with (
        claimed_directory(scenario.name, out) as directory,
        viewed(directory, view),
        progress_bar("simulating", f"{repeats.replicates or 1} replicates") as progress,
    ):
        result = run(
            scenario,
            seed=repeats.seed,
            replicates=repeats.replicates,
            threads=repeats.threads,
            overrides=changes,
            out=directory,
            progress=progress,
            judge=judge_in(directory, progress),
        )
    if perfetto is not None:
        from weirlab.api.timelines import perfetto as write_perfetto

        shared.tell_timeline(write_perfetto(result, perfetto), perfetto)
    return result, shared.write_page(directory) if report else None


def _show(result: RunResult, page: Path | None, *, as_json: bool) -> None:
    if as_json:
        shared.print_json(result.document)
    else:
        say(_headline(result))
        shared.show_result(result, page)
    for error in result.errors.values():
        shared.debug(error)
    if result.errors:
        raise typer.Exit(WeirlabError.exit_code)


def _headline(result: RunResult) -> str:
    """What was run, and how fast."""
    sums, seconds = result.totals, result.seconds or 0.0
    many = f"{len(result.seeds)} replicates from seed" if len(result.seeds) > 1 else "seed"
    line = f"{result.name}: {many} {result.seeds[0]}, {sums['events']:,} events in {seconds:.2f} s"
    if seconds >= 1:  # below, starting and collecting take most of it
        line += f" ({(sums['packet_hops'] or 0) / seconds / 1e6:.1f} M packet-hops/s)"
    return line
