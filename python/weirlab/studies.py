"""Studies: a scenario at every combination of the levels of its factors, with replicates, in this process.

All points have the seeds of the scenario (`run.seed`, `run.seed + 1`, ...), whatever their number or order.
So a point can be repeated alone, and points that differ in one factor meet the same chance, which makes
their difference more precise.

In a directory, every finished point is a line of `points.jsonl`, on disk before it counts. A study that was
interrupted goes on where it stopped when it is run into the same directory again.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from weirlab.errors import InputError, Interrupted, UnsupportedError, WeirlabError
from weirlab.evaluation import measured
from weirlab.journal import Journal, JournalKind, read_journal
from weirlab.measures.rows import FRAMES, frame_counts
from weirlab.records import Records, save_tables
from weirlab.results import Manifest, Provenance, Status, read_json, usable_cpus, write_json
from weirlab.runs import Judge, Progress, estimated, replicate_seeds, resolve, save_scenario, simulate
from weirlab.scenario import Scenario, load
from weirlab.scenario.plan.combinations import Impossible, Point, level_names, possible

__all__ = ["Impossible", "Point", "Study", "planned", "points_of", "run_study"]

FORMAT = 1
"""Version of `points.jsonl`."""
_LOG = "points.jsonl"
_IMPOSSIBLE = "impossible.json"


def _filled(about: Mapping[str, Any]) -> dict[str, Any]:
    """What must agree for a study to be continued, as this version has it."""
    return {**about, "scenario": Scenario(**about["scenario"]).dump()}


_KIND = JournalKind("weirlab_points", FORMAT, "log of points", "study", _filled)
_MANY = 100
"""Runs from which it is worth a few to know what they need."""
_STEPS = 1_000_000
"""Progress of one point."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What a study found, as far as it came."""

    scenario: Scenario
    seeds: tuple[int, ...]
    """One per replicate, the same for all points."""
    planned: int
    """Number of points when it is complete."""
    kept: int = 0
    """How many of the points an earlier sitting had run, when this one continued it."""
    points: pl.DataFrame
    """Columns `point` and one per factor, with the names of the levels."""
    runs: pl.DataFrame
    """Columns `point replicate seed events sent_frames delivered_frames dropped_frames live_frames`, of data
    alone, and `acknowledgement_frames dropped_acknowledgements`, null where an older version counted these as
    data."""
    measures: pl.DataFrame
    """Columns `point measure replicate value unit`."""
    impossible: tuple[Impossible, ...]
    """Combinations of the factors that cannot be, where the study lists them."""
    provenance: Provenance

    @property
    def complete(self) -> bool:
        """Whether every point was run."""
        return self.points.height == self.planned

    @classmethod
    def load(cls, directory: str | Path) -> Study:
        """Read a study, complete or not. Raises InputError when the directory holds none."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "study":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a study")
        scenario = load(directory / "scenario.yaml")
        seeds = replicate_seeds(manifest.seed or 0, manifest.replicates or 1)
        if scenario.study is None:
            raise InputError(f"{directory / 'scenario.yaml'}: has no 'study' section")
        names = level_names(scenario)
        outcomes = read_journal(directory / _LOG, _KIND, _Reader(names, seeds), _identity(scenario, seeds))
        path = directory / _IMPOSSIBLE
        found = read_json(path)["combinations"] if path.exists() else []
        impossible = [Impossible(**each) for each in found]
        many = sum(1 for _ in scenario.study.combinations())
        count = len(names) - len(impossible) * (len(names) // many)
        return _study(scenario, seeds, outcomes, manifest.provenance, count, impossible)


@dataclass(frozen=True)
class _Outcome:
    """What is kept of one point."""

    point: int
    levels: Mapping[str, str]
    runs: Sequence[Mapping[str, int]]
    measures: Sequence[Mapping[str, Any]]


def points_of(scenario: Scenario) -> list[Point]:
    """Every point that can be, each combination of levels checked as a scenario of its own; see `planned`."""
    return planned(scenario)[0]


def planned(scenario: Scenario) -> tuple[list[Point], list[Impossible]]:
    """The points of a study, and the combinations of its factors that cannot be, with the reason.

    Raises ScenarioError when a combination is not legal, and UnsupportedError when the simulator cannot run
    it.
    """
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    if scenario.search is not None or scenario.campaign is not None:
        what = "search" if scenario.search is not None else "campaign"
        hint = f"start it with 'weir {'search' if what == 'search' else 'bulk'}'"
        hint += "" if what == "search" else "; leave 'study' out to run it once"
        message = f"a study of this is not run on the simulator; {hint}"
        raise UnsupportedError([scenario.problem(what, message)])
    return possible(scenario, resolve)


def run_study(
    scenario: str | Path | Scenario,
    *,
    directory: str | Path | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    judge: Judge | None = None,
) -> Study:
    """Run every point of a study on all cores, and return what was found.

    Args:
        scenario: A scenario with a section `study`, or the file of one.
        directory: Where to keep it; an empty directory, or one of the same study, which is then continued.
        seed: Of the first replicate of every point. Default: that of the scenario.
        replicates: Of every point. Default: those of the study.
        threads: How many replicates to run at once. Default: one per CPU that this process may use.
        overrides: The changes of a command line, to be noted.
        progress: Told how much of how much is done.
        judge: Told before the first point what a large study will need, from a few runs of it; may raise.

    Raises:
        ScenarioError, UnsupportedError: A point is not legal, or cannot be run. Nothing was run then.
        InputError: The directory holds something else.
        Interrupted: Ctrl-C. Finished points are kept.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    points, impossible = planned(scenario)
    assert scenario.study is not None
    first = scenario.run.seed if seed is None else seed
    many = scenario.study.replicates if replicates is None else replicates
    if many * len(points) >= _MANY:
        needed = estimated(points[0].scenario, first, many, threads, len(points))
        needed.refuse()
        if judge is not None:
            judge(needed)
    seeds = replicate_seeds(first, many)
    if directory is None:
        outcomes = _Sitting(points, seeds, threads, progress, {}).run()
        return _study(scenario, seeds, outcomes, provenance.ended(), len(points), impossible)
    directory = Path(directory)
    manifest = Manifest(
        kind="study",
        name=scenario.name,
        seed=seeds[0],
        replicates=len(seeds),
        overrides=overrides or {},
        provenance=provenance,
    )
    with _open_log(directory, scenario, seeds) as log:
        if not (directory / "manifest.json").exists():
            save_scenario(scenario, directory)
            write_json(directory / _IMPOSSIBLE, {"combinations": [asdict(each) for each in impossible]})
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        done = {outcome.point: outcome for outcome in log.entries}
        sitting = _Sitting(points, seeds, threads, progress, done)
        try:
            outcomes = sitting.run(lambda outcome: log.append(asdict(outcome)))
        except BaseException as error:
            status: Status = "interrupted" if isinstance(error, Interrupted) else "failed"
            with suppress(WeirlabError):  # on a full disk, what went wrong first is what is told
                manifest.ended(status, str(error)).write(directory)
            raise
    manifest = manifest.ended("complete")
    study = _study(scenario, seeds, outcomes, manifest.provenance, len(points), impossible)
    study = replace(study, kept=len(done))
    _save_tables(study, directory / "tables")
    manifest.write(directory)
    return study


class _Sitting:
    """One uninterrupted stretch of a study."""

    def __init__(
        self,
        points: Sequence[Point],
        seeds: Sequence[int],
        threads: int | None,
        progress: Progress | None,
        done: Mapping[int, _Outcome],
    ) -> None:
        self._seeds = seeds
        self._open = [point for point in _spread(points) if point.number not in done]
        self._outcomes = dict(done)
        self._total = len(points) * _STEPS
        self._progress = progress
        self._share = dict.fromkeys(done, _STEPS)
        cpus = usable_cpus() if threads is None else threads
        self._threads = min(cpus, len(seeds))
        self._workers = max(1, cpus // self._threads)
        self._stop = threading.Event()

    def run(self, keep: Callable[[_Outcome], None] | None = None) -> list[_Outcome]:
        """Run the points that are open; `keep` is told of each as it ends."""
        with ThreadPoolExecutor(self._workers) as pool:
            coming = iter(self._open)
            waiting: set[Future[_Outcome]] = set()
            try:
                while True:
                    # A window of points, as a study may have tens of thousands of them.
                    fresh = itertools.islice(coming, max(0, 4 * self._workers - len(waiting)))
                    waiting |= {pool.submit(self._run_point, point) for point in fresh}
                    if not waiting:
                        break
                    ended, waiting = wait(waiting, timeout=0.05, return_when=FIRST_COMPLETED)
                    for future in ended:
                        outcome = future.result()
                        if keep is not None:
                            keep(outcome)
                        self._outcomes[outcome.point] = outcome
                    self._report()
            except BaseException as error:
                self._stop.set()
                for future in waiting:
                    future.cancel()
                if not isinstance(error, KeyboardInterrupt):
                    raise
                done, planned = len(self._outcomes), self._total // _STEPS
                raise Interrupted(f"interrupted after {done} of {planned} points; they are kept") from None
        return [self._outcomes[number] for number in sorted(self._outcomes)]

    def _run_point(self, point: Point) -> _Outcome:
        def watch(done: int, total: int) -> None:
            if self._stop.is_set():
                raise Interrupted("stopped")
            self._share[point.number] = done * _STEPS // max(1, total)

        scenario = point.scenario
        records = simulate(scenario, self._seeds, threads=self._threads, progress=watch)
        self._share[point.number] = _STEPS
        return _outcome(point, scenario, records)

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(sum(self._share.values()), self._total)


def _spread(points: Sequence[Point]) -> list[Point]:
    """The first point of each combination of the factors, then the second of each, and so on: what an
    interrupted study leaves then covers all combinations. Points of one combination share their base."""
    turns: Counter[int] = Counter()
    turn_of = {}
    for point in points:
        turn_of[point.number] = turns[id(point.base)]
        turns[id(point.base)] += 1
    return sorted(points, key=lambda point: (turn_of[point.number], point.number))


def _open_log(directory: Path, scenario: Scenario, seeds: Sequence[int]) -> Journal[_Outcome]:
    """The log of a study in its directory; no other study writes it until it is closed."""
    path = directory / _LOG
    if not path.exists() and directory.is_dir() and next(directory.iterdir(), None) is not None:
        raise InputError(f"{directory}: holds other files; name a new or an empty directory")
    return Journal(path, _KIND, _identity(scenario, seeds), _Reader(level_names(scenario), seeds))


class _Reader:
    """Reads the entries of a log, each of which must be another point of the study."""

    def __init__(self, levels: Sequence[Mapping[str, str]], seeds: Sequence[int]) -> None:
        self._levels = levels
        self._seeds = list(seeds)
        self._seen: set[int] = set()

    def __call__(self, entry: Mapping[str, Any]) -> _Outcome:
        """Raises ValueError, TypeError or KeyError when it is none."""
        outcome = _Outcome(**entry)
        number = outcome.point
        if type(number) is not int or not 0 <= number < len(self._levels):
            raise ValueError(f"point {number!r}, but the study has points 0 to {len(self._levels) - 1}")
        if number in self._seen:
            raise ValueError(f"point {number} for the second time")
        if outcome.levels != self._levels[number]:
            raise ValueError(
                f"point {number} has the levels {dict(self._levels[number])} (got {outcome.levels})"
            )
        if [(row["replicate"], row["seed"]) for row in outcome.runs] != list(enumerate(self._seeds)):
            raise ValueError(f"point {number}: the replicates are not those of the study")
        for row in outcome.runs:
            counts = [*(row[name] for name in _COUNTS), *(row[name] for name in _BACK if name in row)]
            if any(type(count) is not int or count < 0 for count in counts):
                raise ValueError(f"point {number}: a count that is none, in {row}")
        for row in outcome.measures:
            _check_measure(row, len(self._seeds))
        self._seen.add(number)
        return outcome


def _check_measure(row: Mapping[str, Any], replicates: int) -> None:
    """Raises ValueError or KeyError when a row of measures cannot have been written."""
    name, replicate, value, unit = (row[name] for name in ("measure", "replicate", "value", "unit"))
    number = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    if not (number and isinstance(name, str) and isinstance(unit, str)):
        raise ValueError(f"not a measure: {row}")
    if type(replicate) is not int or not 0 <= replicate < replicates:
        raise ValueError(f"measure {name} of replicate {replicate!r}")


def _identity(scenario: Scenario, seeds: Sequence[int]) -> dict[str, Any]:
    """What must agree for a study to be continued."""
    return {"scenario": scenario.dump(), "seed": seeds[0], "replicates": len(seeds)}


def _outcome(point: Point, scenario: Scenario, records: Records) -> _Outcome:
    runs = frame_counts(records)
    return _Outcome(
        point=point.number,
        levels=dict(point.levels),
        runs=runs.select("replicate", "seed", *_COUNTS, *_BACK).to_dicts(),
        measures=measured(records, scenario).to_dicts(),
    )


_COUNTS = ["events", *FRAMES]
_BACK = ["acknowledgement_frames", "dropped_acknowledgements"]


def _study(
    scenario: Scenario,
    seeds: tuple[int, ...],
    outcomes: Iterable[_Outcome],
    provenance: Provenance,
    planned: int,
    impossible: Sequence[Impossible],
) -> Study:
    """The tables of the outcomes, by point."""
    assert scenario.study is not None
    ordered = sorted(outcomes, key=lambda outcome: outcome.point)
    design = scenario.study.design
    factors = [*scenario.study.factors, *(design.parameters if design is not None else ())]
    run_columns = ["replicate", "seed", *_COUNTS, *_BACK]
    measure_schema = {
        "point": pl.UInt32,
        "measure": pl.String,
        "replicate": pl.UInt32,
        "value": pl.Float64,
        "unit": pl.String,
    }
    return Study(
        scenario=scenario,
        seeds=seeds,
        planned=planned,
        impossible=tuple(impossible),
        points=pl.DataFrame(
            [{"point": outcome.point, **outcome.levels} for outcome in ordered],
            schema={"point": pl.UInt32, **dict.fromkeys(factors, pl.String)},
        ),
        runs=pl.DataFrame(
            [{"point": outcome.point, **row} for outcome in ordered for row in outcome.runs],
            schema={"point": pl.UInt32, **dict.fromkeys(run_columns, pl.UInt64)},
        ),
        measures=pl.DataFrame(
            [{"point": outcome.point, **row} for outcome in ordered for row in outcome.measures],
            schema=measure_schema,
        ),
        provenance=provenance,
    )


def _save_tables(study: Study, directory: Path) -> None:
    save_tables({"points": study.points, "runs": study.runs, "measures": study.measures}, directory)
