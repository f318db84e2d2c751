"""`weir search`: find the highest rates that meet the goals of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli import shared
from weirlab.cli.completion import complete_scenario
from weirlab.cli.display import search_display
from weirlab.cli.viewing import ViewFlag, viewed
from weirlab.errors import InputError, Interrupted

if TYPE_CHECKING:
    from weirlab.api.searched import SearchesResult, SearchResult, Watch
    from weirlab.scenario import Scenario
    from weirlab.searches import SearchGoal


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search")(search)


def search(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A scenario file with a section 'search', or the name of a ready-made one.",
            autocompletion=complete_scenario,
        ),
    ] = None,
    sets: shared.SetOption = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="DIR", help="Continue the search in this directory; no trial is repeated."
        ),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Start at the rates that the search in this directory found; every bound is measured again.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Most time for all trials, such as '10 min'. Default: that of the scenario."
        ),
    ] = None,
    on: shared.OnOption = None,
    store: shared.StoreOption = None,
    out: shared.OutOption = None,
    report: shared.ReportFlag = False,
    view: ViewFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Find the NDR, the PDR or other rates of a simulated device, of a real router or of your own tester.

    Every trial is kept when it ends. After Ctrl-C or a timeout the results so far are marked as irregular,
    and --resume continues from there. With a section 'study', every combination of its levels is a separate
    search, such as one per frame size, and one table shows all rates. Exit code 0 if all results are
    regular, 1 if one is not, 130 after Ctrl-C.

    \b
    Examples:
      weir search search-knee
      weir search router-ndr --set search.trial.duration='2 s'
      weir search --resume results/router-ndr-20260101-120000
      weir search router-ndr --from results/router-ndr-20260101-120000
      weir search my-devices.yaml --on tcp://head:8786
    """
    from weirlab.analysis.goals import lenient_goals
    from weirlab.api.searched import hints_of, resumed
    from weirlab.units import Span

    if timeout is not None:
        shared.quantity("--timeout", Span, timeout)
    if file is None and resume is None:
        raise InputError(
            "name a scenario file, or --resume DIR to continue an earlier search; see 'weir scenarios'"
        )
    if file is not None and resume is not None:
        raise InputError("name a scenario file, or --resume DIR to continue an earlier search; not both")
    if resume is not None:
        if sets or out is not None or earlier is not None:
            raise InputError("--resume continues the search unchanged; leave --set, --out and --from out")
        scenario = resumed(resume)
        _may_build(scenario)
        with viewed(resume, view):
            result = _searched(scenario, resume, timeout, None, on, store)
    else:
        assert file is not None
        from weirlab.results import claimed_directory
        from weirlab.scenario.file.moving import movable

        scenario = movable(shared.read_scenario(file, sets))
        shared.check_command(scenario, file, "search")
        _may_build(scenario)
        for note in lenient_goals(scenario):
            shared.tell(f"note: {note}")
        hints = {} if earlier is None else hints_of(scenario, earlier)
        scenario = scenario.assign(hints)
        _refuse_unfinished(out)
        changes = shared.overrides(sets) | {path: str(rate) for path, rate in hints.items()}
        with claimed_directory(scenario.name, out) as directory, viewed(directory, view):
            result = _searched(scenario, directory, timeout, changes, on, store)
    _show(result, report=report, as_json=as_json)


def _searched(
    scenario: Scenario,
    directory: Path,
    timeout: str | None,
    changes: dict[str, str] | None,
    on: str | None,
    store: str | None,
) -> SearchResult | SearchesResult:
    """Search, and show how it goes."""
    from weirlab.api.searched import search_in
    from weirlab.cli.progress import progress_bar

    if on is None and store is None:
        return search_in(
            scenario, directory, timeout=timeout, overrides=changes, display=_display, tell=shared.tell
        )
    with progress_bar("searching") as progress:
        return search_in(
            scenario, directory, timeout=timeout, overrides=changes, on=on, store=store, carried=progress
        )


@contextmanager
def _display(scenario: Scenario, goals: Sequence[SearchGoal], limit_s: float | None) -> Iterator[Watch]:
    """What shows how a search goes."""
    from weirlab.testbed import warning

    if busy := warning(scenario):
        shared.tell(f"weir: {busy}; trials that others disturb are made again")
    with search_display(f"{scenario.name}: {scenario.testbed.kind}", goals, limit_s) as display:
        yield display


def _show(result: SearchResult | SearchesResult, *, report: bool, as_json: bool) -> None:
    """Say what was found and how to continue, and leave with the exit code that says whether it is
    regular."""
    from weirlab.api.searched import SearchResult
    from weirlab.searches import Ending

    directory = result.directory
    assert directory is not None
    page = shared.write_page(directory) if report else None
    if as_json:
        shared.print_json({**result.document, "directory": str(directory)})
    else:
        shared.show_result(result, page)
    found = [result.found] if isinstance(result, SearchResult) else [each for _, each in result.found]
    endings = {each.ending: each.message for each in found}
    for ending in (Ending.TESTBED_FAILED, Ending.TIMED_OUT, Ending.INTERRUPTED, Ending.UNFINISHED):
        if ending in endings:
            more_time = " --timeout TIME, longer than before" if ending is Ending.TIMED_OUT else ""
            hint = f"continue with:  weir search --resume {directory}{more_time}"
            shared.tell(f"weir: {ending}: {endings[ending]}\n      {hint}")
    if Ending.INTERRUPTED in endings:
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


def _refuse_unfinished(out: Path | None) -> None:
    """Raise InputError where ``out`` holds a search that can be continued."""
    from weirlab.results import Manifest

    if out is None or not (out / "manifest.json").exists():
        return
    manifest = Manifest.read(out)
    if manifest.kind in ("search", "search-study") and manifest.status != "complete":
        raise InputError(
            f"{out}: holds a search that has not ended; continue with:  weir search --resume {out}\n"
            f"or name a new or an empty directory"
        )
