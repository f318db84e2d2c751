"""`weirlab.search`: the highest rates that meet the goals of a scenario.

One file: a search and a study of searches share how they begin, go on and end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from weirlab.api.kept import AnyScenario, place_for, scenario_of
from weirlab.api.result import Result, Shelf
from weirlab.documents import fields_of
from weirlab.errors import InputError
from weirlab.files import Scratch
from weirlab.results import Manifest, Provenance, Status, claimed_directory, write_json
from weirlab.runs import save_scenario
from weirlab.scenario import Scenario, load
from weirlab.searches import Ending, FoundRates as Found, GoalResult, Progress, SearchGoal, run_search
from weirlab.searches.build import build
from weirlab.testbed import Trial, open_testbed
from weirlab.units import FrameRate, Span
from weirlab.working import at_work

if TYPE_CHECKING:
    from weirlab.plots.style import Plot
    from weirlab.report.page import Block, Page
    from weirlab.searches.points import PointSearch


Watch = Callable[[Progress], None]
"""Called with the state of a search: at its start, after every trial and after every failure."""
Display = Callable[[Scenario, Sequence[SearchGoal], float | None], AbstractContextManager[Watch | None]]
"""What is informed how the search of a scenario goes that has these goals and this much time [s]."""


class SearchResult(Result):
    """The rates that a search found, and its trials."""

    kind = "search"

    def __init__(
        self, found: Found, scenario: Scenario, directory: Path, kept: Scratch | None = None
    ) -> None:
        super().__init__(Manifest.read(directory), directory, kept=kept)
        self.found = found
        """The result itself."""
        self.scenario = scenario
        """What was searched."""

    @property
    def goals(self) -> Sequence[GoalResult]:
        """What was found for each goal."""
        return self.found.goals

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials in the order of measurement."""
        return self.found.trials

    @property
    def regular(self) -> bool:
        """Whether every goal has a regular result."""
        return self.found.regular

    @property
    def rates(self) -> dict[str, float | None]:
        """The rate found for each goal [frames/s], offered, summed over all directions; None where none
        was."""
        return {goal.goal.name: None if goal.lower is None else goal.lower.offered_fps for goal in self.goals}

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds."""
        from weirlab.report.search import result_json

        return result_json(self.found, self.scenario)

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """`goals` and `trials`; see `Result.tables`."""
        return Shelf({"goals": self._goals_table, "trials": self._trials_table})

    def _goals_table(self) -> pl.DataFrame:
        rows = [
            {
                "goal": goal.goal.name,
                "loss_ratio": goal.goal.loss_ratio,
                "lower_fps": None if goal.lower is None else goal.lower.offered_fps,
                "lower_intended_fps": None if goal.lower is None else goal.lower.load_fps,
                "upper_fps": None if goal.upper is None else goal.upper.offered_fps,
                **fields_of(goal, "width", "conditional_throughput_fps", "regular", "remark"),
            }
            for goal in self.goals
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _trials_table(self) -> pl.DataFrame:
        rows = [
            {
                "trial": trial.spec.index,
                "intended_fps": trial.spec.intended_load_fps,
                "offered_fps": trial.offered_load_fps,
                "duration_s": trial.spec.duration_s,
                **fields_of(trial, "effective_duration_s", "sent_frames", "received_frames"),
                **fields_of(trial, "loss_ratio", "stopped_early", "disturbance"),
                **{f"latency_{name}_s": value for name, value in trial.latency_s.items()},
            }
            for trial in self.trials
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.search import search_sentences

        return search_sentences(self.found, self.scenario)

    def blocks(self) -> list[Block]:
        """The rates, the terms of the goals, and what speaks for the bounds."""
        from weirlab.report.page import Text
        from weirlab.report.search import replay
        from weirlab.report.search_tables import (
            bound_lines,
            direction_table,
            evidence_table,
            goal_table,
            half_texts,
            sweep_text,
        )
        from weirlab.report.search_terms import terms_table

        found = self.found
        replayed = replay(self.directory) if self.directory is not None else None
        bounds = [] if replayed is None else bound_lines(replayed.states, found)
        further = [each for each in (evidence_table(found), direction_table(found)) if each.rows]
        texts = filter(None, [*half_texts(found), sweep_text(found)])
        return [
            goal_table(found, self.scenario),
            terms_table(found, self.scenario),
            *further,
            *([Text("\n".join(bounds))] if bounds else []),
            *map(Text, texts),
        ]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.search import replay, search_page

        assert self.directory is not None
        return search_page(replay(self.directory), self._manifest)


class SearchesResult(Result):
    """The rates of a search at every combination of the levels of its factors."""

    kind = "search-study"

    def __init__(
        self,
        found: Sequence[tuple[PointSearch, Found]],
        scenario: Scenario,
        directory: Path,
        kept: Scratch | None = None,
    ) -> None:
        super().__init__(Manifest.read(directory), directory, kept=kept)
        self.found = found
        """Each search with its result."""
        self.scenario = scenario
        """What was searched."""

    @property
    def rates(self) -> pl.DataFrame:
        """The rates of all searches, one row per goal of each."""
        return self.tables["rates"]

    @property
    def regular(self) -> bool:
        """Whether every goal of every search has a regular result."""
        return bool(self.rates.get_column("regular").all())

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """`rates` and `directions`; see `Result.tables`."""
        from weirlab.searches.points import directions_table, rates_table

        return Shelf(
            {"rates": lambda: rates_table(self.found), "directions": lambda: directions_table(self.found)}
        )

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds."""
        from weirlab.searches.points import point_searches

        return {
            "kind": "search-study",
            "name": self.name,
            "directory": str(self.directory),
            "planned": len(point_searches(self.scenario)),
            "searches": len(self.found),
            "rates": self.rates.to_dicts(),
        }

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.search_points import points_sentences

        return points_sentences(self.rates, len(self.found))

    def blocks(self) -> list[Block]:
        """The rates by factor, the terms of the goals, and what speaks for the bounds."""
        from weirlab.report.search_points import evidence_tables, rate_table, terms_of_all

        return [rate_table(self.rates), *terms_of_all(self.found), *evidence_tables(self.found)]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.search_points import points_page

        assert self.directory is not None
        return points_page(self.directory, self._manifest)


def search(
    scenario: AnyScenario,
    *,
    assign: Mapping[str, object] | None = None,
    timeout: str | None = None,
    earlier: str | Path | SearchResult | None = None,
    out: str | Path | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Watch | None = None,
    on: str | None = None,
    store: str | Path | None = None,
) -> SearchResult | SearchesResult:
    """Find the NDR, the PDR or other rates of a device, as `weir search` does. With a section `study`, every
    combination of its levels is a search of its own.

    Args:
        scenario: A file, the name of a ready-made scenario, a dict of what a file would hold, or a Scenario.
        assign: Other values at dotted paths.
        timeout: Most time that all trials may take, such as `"10 min"`. Default: that of the scenario.
        earlier: A search whose rates this one begins at.
        out: A new or empty directory, or one that holds the same search unfinished, which then goes on.
            Default: one that is removed with the result, unless that is saved.
        overrides: The changes of a command line, to be noted.
        progress: Called after each trial with the state of the search.
        on: Who makes the searches of a study on the simulator: `"local:4"`, `"tcp://HOST:8786"` or
            `"ssh:HOST,HOST"`. Default: this process, one by one.
        store: A path or URL of results that studies share. Default, with `on`: one of its own in `out`.

    Raises:
        ScenarioError: The scenario is not legal.
        InputError: It is no search, or `out` holds something else.
        MissingCapability: This machine cannot do what the testbed needs.
        TestbedError: A search whose testbed failed still gives a result; its `ending` and remarks say so.
    """
    from weirlab.scenario.file.moving import movable

    asked = movable(scenario_of(scenario, assign))
    if asked.search is None:
        raise InputError(
            f"{asked.name}: this scenario has no section 'search'; start it with weirlab.run or weirlab.study"
        )
    hints = {} if earlier is None else hints_of(asked, earlier)
    asked = asked.assign(hints)
    notes = {**(overrides or {}), **{path: str(rate) for path, rate in hints.items()}}
    place, kept = place_for(out)

    def display(*_: object) -> AbstractContextManager[Watch | None]:
        return nullcontext(progress)

    if (place / "manifest.json").exists():
        return search_in(resumed(place), place, timeout=timeout, display=display, on=on, store=store)
    with claimed_directory(asked.name, place) as directory:
        return search_in(
            asked,
            directory,
            timeout=timeout,
            overrides=notes,
            display=display,
            kept=kept,
            on=on,
            store=store,
        )


def search_in(
    scenario: Scenario,
    directory: Path,
    *,
    timeout: str | None = None,
    overrides: Mapping[str, str] | None = None,
    display: Display = lambda *_: nullcontext(),
    tell: Callable[[str], None] = lambda _: None,
    kept: Scratch | None = None,
    on: str | None = None,
    store: str | Path | None = None,
    carried: Callable[[int, int], None] | None = None,
) -> SearchResult | SearchesResult:
    """Make the search of a scenario in a directory that is empty or holds its beginning; `tell` learns which
    of several searches begins, `carried` how far searches are that others make."""
    elsewhere = on is not None or store is not None
    if elsewhere and (why := amiss_elsewhere(scenario, timeout)):
        raise InputError(f"--on: {why}")
    if scenario.study is None:
        found = _search(scenario, directory, timeout, overrides, display)
        return SearchResult(found, scenario, directory, kept)

    def search_into(point: Scenario, place: Path) -> Found:
        return _search(point, place, timeout, overrides, display)

    def make_all() -> None:
        from weirlab.execution import carry
        from weirlab.searches.planned import SearchesPlan
        from weirlab.store import Store

        plan = SearchesPlan(scenario)
        at = Store.open(directory / "store" if store is None else store, create=True)
        done = carry(plan, at, on, progress=carried)
        if done.failed:
            tell(f"{done.failed} searches failed; the first: {done.first_failure}")
        plan.write_logs(at, done.plan, directory)

    return _searches(scenario, directory, search_into, overrides, tell, kept, make_all if elsewhere else None)


def amiss_elsewhere(scenario: Scenario, timeout: str | None) -> str:
    """Why nobody else can make the searches of a scenario, or nothing."""
    from weirlab.scenario.testbeds import Sim

    bed = scenario.testbed
    if scenario.study is None:
        return "one search is one process; a section 'study' makes several of it"
    if not isinstance(bed, Sim):
        return f"a testbed of the kind '{bed.kind}' is measured on this machine; leave this out"
    return "" if timeout is None else "write the timeout into the scenario: search.timeout"


def _search(
    scenario: Scenario,
    directory: Path,
    timeout: str | None,
    overrides: Mapping[str, str] | None,
    display: Display,
) -> Found:
    """Search, keep everything in the directory, and return what was found."""
    from weirlab.report.search import result_json

    algorithm = build(scenario, limited=None if timeout is None else False)
    limit = None if timeout is None else Span.parse(timeout).s
    if limit is None and scenario.search is not None and scenario.search.timeout is not None:
        limit = scenario.search.timeout.s
    if limit is not None and limit <= 0:
        raise InputError("the timeout of a search must be above 0 s")
    manifest = Manifest(
        kind="search",
        name=scenario.name,
        seed=scenario.run.seed,
        overrides=overrides or {},
        provenance=Provenance.now(),
    )
    begun = False
    noted = ExitStack()

    def begin() -> None:
        nonlocal begun, manifest
        if not (directory / "manifest.json").exists():
            save_scenario(scenario, directory)
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        noted.enter_context(at_work(directory, "search", scenario.name))
        begun = True

    testbed = open_testbed(scenario)
    try:
        with display(scenario, algorithm.goals, limit) as watch:
            found = run_search(
                algorithm,
                testbed,
                log=directory / "trials.jsonl",
                about={"scenario": scenario.dump()},
                on_begin=begin,
                on_progress=watch,
                timeout_s=limit,
            )
        write_json(directory / "result.json", result_json(found, scenario))
        endings: dict[Ending, Status] = {Ending.FINISHED: "complete", Ending.TESTBED_FAILED: "failed"}
        manifest.ended(endings.get(found.ending, "interrupted"), found.message).write(directory)
    except BaseException as error:
        if begun:
            manifest.failed(directory, error)
            error.add_note(f"the trials are kept; continue with:  weir search --resume {directory}")
        raise
    finally:
        testbed.close()
        noted.close()
    return found


def _searches(
    scenario: Scenario,
    directory: Path,
    search_into: Callable[[Scenario, Path], Found],
    overrides: Mapping[str, str] | None,
    tell: Callable[[str], None],
    kept: Scratch | None,
    make_all: Callable[[], None] | None,
) -> SearchesResult:
    """Make all searches of a study that are not finished."""
    from weirlab.files import locked_directory
    from weirlab.records import save_tables
    from weirlab.searches.points import point_searches, run_point_searches

    searches = point_searches(scenario)  # what cannot be searched is reported before anything is measured
    manifest = Manifest(
        kind="search-study",
        name=scenario.name,
        seed=scenario.run.seed,
        replicates=scenario.study.replicates if scenario.study is not None else None,
        overrides=overrides or {},
        provenance=Provenance.now(),
    )

    def run(each: PointSearch, place: Path) -> Found:
        finished = _finished(place)
        if finished is not None:
            return finished
        tell(f"{each.name}: {each.where}")
        place.mkdir(parents=True, exist_ok=True)
        return search_into(each.scenario, place)

    with locked_directory(directory), at_work(directory, "search-study", scenario.name):
        if not (directory / "manifest.json").exists():
            save_scenario(scenario, directory)
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        try:
            if make_all is not None:
                make_all()
            found = run_point_searches(searches, directory, run)
            result = SearchesResult(found, scenario, directory, kept)
            save_tables(result.tables, directory / "tables")
            write_json(directory / "result.json", result.document)
            endings = {each.ending for _, each in found}
            failed = [point.name for point, each in found if each.ending is Ending.TESTBED_FAILED]
            status: Status = (
                "interrupted" if Ending.INTERRUPTED in endings else "failed" if failed else "complete"
            )
            manifest.ended(status, ", ".join(failed)).write(directory)
        except BaseException as error:
            manifest.failed(directory, error)
            raise
    return SearchesResult(found, scenario, directory, kept)


def _finished(place: Path) -> Found | None:
    """The result of an earlier sitting, if it came to its end."""
    from weirlab.report.search import replay

    if not (place / "result.json").exists():
        return None
    result = replay(place).result
    return result if result.ending is Ending.FINISHED else None


def resumed(directory: Path) -> Scenario:
    """The scenario of an earlier search whose trials are all there. Raises InputError."""
    from weirlab.report.search import kept_ending
    from weirlab.searches.log import read_trials

    manifest = Manifest.read(directory)
    if manifest.kind not in ("search", "search-study"):
        raise InputError(f"{directory}: holds a {manifest.kind}, not a search")
    if manifest.kind == "search":
        log = directory / "trials.jsonl"
        kept_ending(directory, len(read_trials(log)) if log.exists() else 0)
    return load(directory / "scenario.yaml")


def hints_of(scenario: Scenario, earlier: str | Path | SearchResult) -> dict[str, FrameRate]:
    """Where to begin, by path of the scenario: the rates of the goals that an earlier search had, too."""
    from weirlab.report.search import replay

    assert scenario.search is not None
    if scenario.study is not None:
        raise InputError("--from is for single searches; leave it out for a study")
    kind = scenario.search.algorithm.kind
    if kind not in ("weir", "mlr"):
        raise InputError(
            f"--from has no effect on the algorithm {kind}, which starts at the highest load; leave it out, "
            "or take another:  --set search.algorithm.kind=weir"
        )
    found = earlier.found if isinstance(earlier, SearchResult) else replay(Path(earlier)).result
    hints = {
        f"search.goals.{goal.goal.name}.hint": FrameRate.from_fps(goal.lower.load_fps)
        for goal in found.goals
        if goal.lower is not None and goal.goal.name in scenario.search.goals
    }
    if not hints:
        raise InputError(f"{earlier}: that search found no rate for any of the goals of this one")
    return hints
