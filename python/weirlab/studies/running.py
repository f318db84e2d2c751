"""Running a study: the plan into the store, the store into tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from weirlab.documents import section
from weirlab.errors import InputError, Interrupted, RunFailed, WeirlabError
from weirlab.execution import NO_LIMITS, Carried, Executor, Limits, Need, carry
from weirlab.files import Scratch, locked_directory
from weirlab.journal import first_difference
from weirlab.results import Manifest, Provenance, Status, write_json
from weirlab.runs import Estimate, Judge, Progress, estimated, save_scenario, size_text
from weirlab.scenario import Scenario, load
from weirlab.store import Store, engine
from weirlab.studies import journalled
from weirlab.studies.adopting import adopt
from weirlab.studies.asking import asking_of
from weirlab.studies.intervals import Intervals
from weirlab.studies.journalled import IMPOSSIBLE
from weirlab.studies.plan import RunsPlan
from weirlab.studies.study import ABOUT, Asked, Study, about_in, found_in
from weirlab.working import at_work, left_over

_MANY = 100
"""Runs from which it is worth a few to know what they need."""
_MOST_LISTED = 1_000_000
"""Replicates from which that is known before there is a list of them, which alone may fill the memory."""
_JOURNAL = "journal.txt"


def run_study(
    scenario: str | Path | Scenario,
    *,
    directory: str | Path | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    on: str | Executor | None = None,
    store: str | Path | None = None,
    limits: Limits | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    judge: Judge | None = None,
) -> Study:
    """Run what is missing of every point of a study, and return what was found.

    Results depend on the scenario and its seeds alone: not on who runs them, on how many workers, or in which
    batches. A run that fails, takes too long or ends its process leaves a row in `failures`; the others go
    on.

    Args:
        scenario: A scenario with a section `study`, or the file of one.
        directory: Where to keep it; an empty directory, or one of the same study, which is then continued, or
            extended by more replicates, levels or factors.
        threads: How many processes of this machine to use. Default: one per CPU that this process may use.
        seed, replicates, on, store, limits, overrides, progress, judge: As of `weirlab.study`.

    Raises:
        ScenarioError, UnsupportedError: A point is not legal, or cannot be run. Nothing was run then.
        InputError: The directory holds something else, or nobody can work.
        RunFailed: No run gave a result.
        Interrupted: Ctrl-C. What has ended is kept.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    if threads is not None and threads < 1:
        raise InputError(f"at least 1 thread is needed (got {threads})")
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    many = scenario.study.replicates if replicates is None else replicates
    first = scenario.run.seed if seed is None else seed
    if many > _MOST_LISTED:
        estimated(scenario.assign({"study": None}), first, many, threads, points=1).refuse()
    plan = RunsPlan(scenario, first, many)
    plan.check()
    until = scenario.study.until

    def work(kept: Store, told: Callable[[str], object]) -> Carried:
        if many_there := adopt(plan, kept):
            told(f"{many_there} runs are in the store already, from other studies")
        return carry(
            plan,
            kept,
            on,
            threads=threads,
            limits=limits or NO_LIMITS,
            progress=progress,
            judge=_judging(kept, judge),
            told=told,
            reader=Intervals() if many > 1 and progress is not None else None,
            asking=asking_of(plan),
        )

    if directory is None:
        scratch = Scratch()
        kept = Store.open(scratch.path if store is None else store, create=True)
        study, _ = _executed(plan, kept, work, provenance, str)
        return replace(study, provenance=provenance.ended())
    directory = Path(directory)
    manifest = Manifest(
        kind="study",
        name=scenario.name,
        seed=plan.seeds[0],
        replicates=len(plan.seeds),
        overrides=overrides or {},
        provenance=provenance,
    )
    with _opened(directory, plan, store) as kept, at_work(directory, "study", scenario.name):
        manifest = replace(manifest.begun_in(directory), replicates=len(plan.seeds))
        manifest.write(directory)
        journal = _Journal(directory / _JOURNAL)
        up_to = "" if until is None else f" to {plan.replicates}"
        journal(f"{len(plan.order)} points of {many}{up_to} replicates on {on or 'local'}, store {kept.url}")
        try:
            with _keeping(plan, kept):
                study, carried = _executed(plan, kept, work, provenance, journal)
                complete = manifest.ended(*_ending(carried))
                study = replace(study, provenance=complete.provenance)
                study.save_tables(directory / "tables")
                found = [asdict(each) for each in study.impossible]
                write_json(directory / IMPOSSIBLE, {"combinations": found})
                complete.write(directory)
                journal(f"{complete.status}: {study.points.height} of {study.planned} points")
        except BaseException as error:
            journal(f"ended: {error}")
            manifest.failed(directory, error)
            raise
    return study


@contextmanager
def _keeping(plan: RunsPlan, kept: Store) -> Iterator[None]:
    """Say of an interruption, whenever it comes, how many points are kept."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:
        if isinstance(error, Interrupted) and str(error) != "interrupted":
            raise
        name = kept.keep("plans", plan.document())
        ended = found_in(kept, plan, name, engine())["points"].height
        message = f"interrupted after {ended} of {len(plan.order)} points; runs that have ended are kept"
        raise Interrupted(message) from None


def _executed(
    plan: RunsPlan,
    kept: Store,
    work: Callable[[Store, Callable[[str], object]], Carried],
    provenance: Provenance,
    told: Callable[[str], object],
) -> tuple[Study, Carried]:
    """Carry the plan out; the study, and how it went."""
    carried = work(kept, told)
    if carried.failed and carried.failed == carried.planned - carried.kept and not carried.kept:
        raise RunFailed(f"no run gave a result; the first failure: {carried.first_failure}")
    found = found_in(kept, plan, carried.plan, engine(), carried.sitting)
    study = Study(
        scenario=plan.scenario,
        seeds=plan.seeds,
        provenance=provenance,
        notes=tuple(carried.notes),
        **found,
    )
    return study, carried


def _ending(carried: Carried) -> tuple[Status, str]:
    if not carried.failed:
        return "complete", ""
    return "failed", f"{carried.failed} of {carried.planned} runs failed; the first: {carried.first_failure}"


def _judging(kept: Store, judge: Judge | None) -> Callable[[Need, Need], None]:
    def judging(least: Need, most: Need) -> None:
        if most.runs < _MANY:
            return
        needed = replace(_estimate(least), most=_estimate(most) if most != least else None)
        needed.refuse()
        free = kept.free_bytes()
        if free is not None and least.disk_bytes > free:
            raise InputError(
                f"{needed}, but {size_text(free)} are free for the store {kept.url}; run less of it, or "
                "name another place with --store"
            )
        if judge is not None:
            judge(needed)

    return judging


def _estimate(need: Need) -> Estimate:
    return Estimate(need.runs, need.seconds, need.memory_bytes, need.disk_bytes)


@contextmanager
def _opened(directory: Path, plan: RunsPlan, store: str | Path | None) -> Iterator[Store]:
    """The store of a study in its directory, which no other process writes meanwhile."""
    if journalled.is_one(directory):
        raise InputError(
            f"{directory}: a study of an older version, which can be read and reported; run it again in "
            "another directory"
        )
    if not (directory / ABOUT).exists():
        if directory.is_dir() and any(not left_over(each) for each in directory.iterdir()):
            raise InputError(f"{directory}: holds other files; name a new or an empty directory")
        if directory.exists() and not directory.is_dir():
            raise InputError(f"{directory}: this is a file; name a directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot make this directory: {error.strerror}") from error
    with locked_directory(directory):
        asked: Asked = {
            "scenario": plan.scenario.dump(),
            "seed": plan.seeds[0],
            "replicates": len(plan.seeds),
        }
        place = "store" if store is None else str(Store.open(store, create=True).url)
        if (directory / ABOUT).exists():
            about = about_in(directory)
            _refuse_another(directory, about["asked"], asked)
            place = about["store"] if store is None else place
        kept = Store.open(directory / "store" if place == "store" else place, create=True)
        document = plan.document()
        about = {
            "weirlab_study": 2,
            "id": kept.keep("plans", document),
            "engine": engine(),
            "store": place,
            "plan": document,
            "asked": asked,
        }
        save_scenario(plan.scenario, directory)
        write_json(directory / ABOUT, about)
        yield kept


def _refuse_another(directory: Path, before: Asked, now: Asked) -> None:
    """Raises InputError unless a study is the one that was begun there, or an extension of it."""
    with suppress(ValueError, TypeError, KeyError, WeirlabError):  # defaults of what is new since
        before = {**before, "scenario": Scenario(**before["scenario"]).dump()}
    if before == now or _extends(before, now):
        return
    where, then, here = first_difference(before, now)
    raise InputError(
        f"{directory / ABOUT}: another study: {where} was {then} there and is {here} here; continue with the "
        "same settings, or name another place; results that both have are shared with --store"
    )


def _extends(before: Asked, now: Asked) -> bool:
    """Whether all points and replicates of a study are among those of another."""
    if before["seed"] != now["seed"] or before["replicates"] > now["replicates"]:
        return False
    then, here = before["scenario"], now["scenario"]
    if {**then, "study": None} != {**here, "study": None}:
        return False
    more = section(here, "study", "factors")
    return _fixed(then) == _fixed(here) and all(
        factor in more and section(levels).items() <= section(more, factor).items()
        for factor, levels in section(then, "study", "factors").items()
    )


def _fixed(scenario: Mapping[str, object]) -> dict[str, object]:
    """What of a study must stay when it is extended, but for its factors."""
    free = {"replicates", "until", "compare", "where", "halving", "factors"}
    fixed = {name: value for name, value in section(scenario, "study").items() if name not in free}
    design = section(fixed, "design")
    if design.get("kind") == "optimise":
        more = {"generations", "most", "finalists", "verdict"}
        fixed["design"] = {name: value for name, value in design.items() if name not in more}
    return fixed


class _Journal:
    """What happened, a line each, for a person."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, text: str) -> None:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{moment} {text}\n")
