"""`weir search`: find the highest rates that meet the goals of a scenario."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.display import search_display
from weirlab.cli.frame import (
    JsonFlag,
    OutOption,
    ReportFlag,
    SetOption,
    check_command,
    complete_scenario,
    overrides,
    print_json,
    quantity,
    read_scenario,
    show,
    show_place,
    tell,
    write_page,
)

if TYPE_CHECKING:
    from weirlab.results import Status
    from weirlab.scenario import Scenario
    from weirlab.searches import SearchResult
    from weirlab.units import FrameRate

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search", short_help="Find the NDR, PDR or other rates of a device.")(search)


def search(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A scenario file with a section 'search', or the name of a ready-made one.",
            autocompletion=complete_scenario,
            show_default=False,
        ),
    ] = None,
    sets: SetOption = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help="Go on with the search that this directory holds; no trial is repeated.",
            show_default=False,
        ),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Begin at the rates that the search in this directory found; every bound is measured anew.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Most time that all trials may take, such as '10 min'. Default: that of the scenario.",
            show_default=False,
        ),
    ] = None,
    out: OutOption = None,
    report: ReportFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Find the NDR, the PDR or other rates of a simulated device, of a real router or of your own tester.

    Every trial is kept when it ends. Ctrl-C and timeouts give what was found so far, marked as irregular, and
    --resume goes on from there. With a section 'study', every combination of its levels is a search of its
    own, such as one per frame size, and one table shows the rates of all. Exit code 0 when all results are
    regular, 1 when one is not, 130 after Ctrl-C.

    \b
    Examples:
      weir search search-knee
      weir search router-ndr --set search.trial.duration='2 s'
      weir search --resume results/router-ndr-20260101-120000
      weir search router-ndr --from results/router-ndr-20260101-120000
    """
    from weirlab.errors import InputError, Interrupted
    from weirlab.searches import Ending

    if file is None and resume is None:
        raise InputError(
            "name a scenario file, or --resume DIR to go on with an earlier search; see 'weir scenarios'"
        )
    if file is not None and resume is not None:
        raise InputError("name a scenario file, or --resume DIR to go on with an earlier search; not both")
    if resume is not None:
        if sets or out is not None or earlier is not None:
            raise InputError("--resume goes on with the search as it was; leave --set, --out and --from out")
        scenario, directory = _earlier(resume), resume
        _may_build(scenario)
        if scenario.study is not None:
            _search_points(scenario, directory, timeout, {}, report=report, as_json=as_json)
            return
        result = _search(scenario, directory, timeout)
    else:
        assert file is not None
        from weirlab.results import claimed_directory
        from weirlab.scenario.moving import movable

        scenario = movable(read_scenario(file, sets))
        check_command(scenario, file, "search")
        _may_build(scenario)
        hints = {} if earlier is None else _hints(scenario, earlier)
        scenario = scenario.assign(hints)
        _refuse_unfinished(out)
        with claimed_directory(scenario.name, out) as directory:
            if scenario.study is not None:
                _search_points(scenario, directory, timeout, overrides(sets), report=report, as_json=as_json)
                return
            changes = overrides(sets) | {path: str(rate) for path, rate in hints.items()}
            result = _search(scenario, directory, timeout, changes)
    page: Path | None = write_page(directory) if report else None
    from weirlab.report.search import result_json
    from weirlab.report.search_tables import (
        direction_table,
        evidence_table,
        goal_table,
        half_texts,
        sweep_text,
    )
    from weirlab.report.search_terms import terms_table

    if as_json:
        print_json({**result_json(result, scenario), "directory": str(directory)})
    else:
        show(goal_table(result, scenario))
        show(terms_table(result, scenario))
        for table in (evidence_table(result), direction_table(result)):
            if table.rows:
                show(table)
        for text in filter(None, [*half_texts(result), sweep_text(result)]):
            typer.echo(text)
        for goal in result.goals:
            if not goal.regular:
                tell(f"{goal.goal.name} is irregular: {goal.remark}")
        typer.echo(f"{len(result.trials)} trials, {result.time_s:.1f} s of trial time")
        show_place(directory, page)
    if result.ending is not Ending.FINISHED:
        more_time = " --timeout TIME, longer than before" if result.ending is Ending.TIMED_OUT else ""
        hint = f"go on with:  weir search --resume {directory}{more_time}"
        tell(f"weir: {result.ending}: {result.message}\n      {hint}")
    if result.ending is Ending.INTERRUPTED:
        raise typer.Exit(Interrupted.exit_code)
    if not result.regular:
        raise typer.Exit(1)


def _may_build(scenario: Scenario) -> None:
    """Make sure that this command may build a router, where one is measured; nothing has been told or made
    yet. Raises MissingCapability."""
    from weirlab.privileges import acquire
    from weirlab.scenario.testbeds import Netns
    from weirlab.testbed import unhonoured

    if isinstance(scenario.testbed, Netns) and not unhonoured(scenario):
        acquire()


def _search_points(
    scenario: Scenario,
    directory: Path,
    timeout: str | None,
    sets: dict[str, str],
    *,
    report: bool,
    as_json: bool,
) -> None:
    """The searches of a study, each as if it were alone."""
    from weirlab.cli.search_points import search_points

    def search_into(point: Scenario, place: Path) -> SearchResult:
        return _search(point, place, timeout, sets)

    search_points(scenario, directory, search_into, sets, report=report, as_json=as_json)


def _search(
    scenario: Scenario, directory: Path, timeout: str | None, sets: dict[str, str] | None = None
) -> SearchResult:
    """Search, keep everything in the directory, and return what was found."""
    from weirlab.errors import InputError, WeirlabError
    from weirlab.report.search import result_json
    from weirlab.results import Manifest, Provenance, write_json
    from weirlab.runs import save_scenario
    from weirlab.searches import Ending, run_search
    from weirlab.searches.build import build
    from weirlab.testbed import open_testbed, warning
    from weirlab.units import Span

    algorithm = build(scenario, limited=None if timeout is None else False)
    limit = None if timeout is None else quantity("--timeout", Span, timeout).s
    if limit is None and scenario.search is not None and scenario.search.timeout is not None:
        limit = scenario.search.timeout.s
    if limit is not None and limit <= 0:
        raise InputError("--timeout must be above 0 s")
    manifest = Manifest(
        kind="search",
        name=scenario.name,
        seed=scenario.run.seed,
        overrides=sets or {},
        provenance=Provenance.now(),
    )
    begun = False

    def begin() -> None:
        nonlocal begun, manifest
        if not (directory / "manifest.json").exists():
            save_scenario(scenario, directory)
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        begun = True

    testbed = open_testbed(scenario)
    if busy := warning(scenario):
        tell(f"weir: {busy}; trials that others disturb are made again")
    try:
        with search_display(f"{scenario.name}: {scenario.testbed.kind}", algorithm.goals, limit) as display:
            result = run_search(
                algorithm,
                testbed,
                log=directory / "trials.jsonl",
                about={"scenario": scenario.dump()},
                on_begin=begin,
                on_progress=display,
                timeout_s=limit,
            )
        write_json(directory / "result.json", result_json(result, scenario))
        endings: dict[Ending, Status] = {Ending.FINISHED: "complete", Ending.TESTBED_FAILED: "failed"}
        manifest.ended(endings.get(result.ending, "interrupted"), result.message).write(directory)
    except BaseException as error:
        if begun:
            with suppress(WeirlabError):  # on a full disk, what went wrong first is what is told
                manifest.ended("failed", str(error)).write(directory)
            error.add_note(f"the trials are kept; go on with:  weir search --resume {directory}")
        raise
    finally:
        testbed.close()
    return result


def _refuse_unfinished(out: Path | None) -> None:
    """Raise InputError where ``out`` holds a search that can go on."""
    from weirlab.errors import InputError
    from weirlab.results import Manifest

    if out is None or not (out / "manifest.json").exists():
        return
    manifest = Manifest.read(out)
    if manifest.kind in ("search", "search-study") and manifest.status != "complete":
        raise InputError(
            f"{out}: holds a search that has not ended; go on with:  weir search --resume {out}\n"
            f"or name a new or an empty directory"
        )


def _earlier(directory: Path) -> Scenario:
    """The scenario of an earlier search whose trials are all there."""
    from weirlab.errors import InputError
    from weirlab.report.search import kept_ending
    from weirlab.results import Manifest
    from weirlab.scenario import load
    from weirlab.searches.log import read_trials

    manifest = Manifest.read(directory)
    if manifest.kind not in ("search", "search-study"):
        raise InputError(f"{directory}: holds a {manifest.kind}, not a search")
    if manifest.kind == "search":
        log = directory / "trials.jsonl"
        kept_ending(directory, len(read_trials(log)) if log.exists() else 0)
    return load(directory / "scenario.yaml")


def _hints(scenario: Scenario, earlier: Path) -> dict[str, FrameRate]:
    """Where to begin, by path of the scenario: the rates of the goals that an earlier search had, too."""
    from weirlab.errors import InputError
    from weirlab.report.search import replay
    from weirlab.units import FrameRate

    assert scenario.search is not None
    if scenario.study is not None:
        raise InputError("--from begins one search at the rates of one; leave it out for a study")
    kind = scenario.search.algorithm.kind
    if kind not in ("weir", "mlr"):
        raise InputError(
            f"--from has no effect on the algorithm {kind}, which begins at the highest load; leave it out, "
            "or take another:  --set search.algorithm.kind=weir"
        )
    hints = {
        f"search.goals.{goal.goal.name}.hint": FrameRate.from_fps(goal.lower.load_fps)
        for goal in replay(earlier).result.goals
        if goal.lower is not None and goal.goal.name in scenario.search.goals
    }
    if not hints:
        raise InputError(f"{earlier}: that search found no rate for any of the goals of this one")
    return hints
