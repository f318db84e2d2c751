"""Studies: a scenario at every combination of the levels of its factors, with replicates, in this process.

All points have the seeds of the scenario (`run.seed`, `run.seed + 1`, ...), whatever their number or order.
So a point can be repeated alone, and points that differ in one factor meet the same chance, which makes
their difference more precise.

In a directory, every finished point is a line of `points.jsonl`, on disk before it counts. A study that was
interrupted goes on where it stopped when it is run into the same directory again.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from weirlab.errors import InputError, Interrupted, UnsupportedError
from weirlab.measures import measured
from weirlab.records import Records, save_tables
from weirlab.results import Manifest, Provenance, usable_cpus
from weirlab.runs import Progress, replicate_seeds, resolve, save_scenario, simulate
from weirlab.scenario import Scenario, load
from weirlab.scenario.combinations import Point, combinations

__all__ = ["Point", "Study", "points_of", "run_study"]

FORMAT = 1
"""Version of `points.jsonl`."""
_LOG = "points.jsonl"
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
    points: pl.DataFrame
    """Columns `point` and one per factor, with the names of the levels."""
    runs: pl.DataFrame
    """Columns `point replicate seed events sent_frames delivered_frames dropped_frames live_frames`."""
    measures: pl.DataFrame
    """Columns `point measure replicate value unit`."""
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
        header, done, _ = _read_log(directory / _LOG)
        _refuse_another(directory, header, scenario, seeds)
        return _study(scenario, seeds, done.values(), manifest.provenance)


@dataclass(frozen=True)
class _Outcome:
    """What is kept of one point."""

    point: int
    levels: Mapping[str, str]
    runs: Sequence[Mapping[str, int]]
    measures: Sequence[Mapping[str, Any]]


def points_of(scenario: Scenario) -> list[Point]:
    """Every combination of levels, each checked as a scenario of its own.

    Raises ScenarioError when a combination is not legal, and UnsupportedError when the simulator cannot run
    it.
    """
    if scenario.study is None:
        raise InputError(f"{scenario.name}: has no 'study' section")
    if scenario.search is not None or scenario.campaign is not None:
        what = "search" if scenario.search is not None else "campaign"
        hint = "start it with 'weir search'" if what == "search" else "leave 'study' out"
        message = f"a study of this is not run on the simulator; {hint}"
        raise UnsupportedError([scenario.problem(what, message)])
    return combinations(scenario, resolve)


def run_study(
    scenario: str | Path | Scenario,
    *,
    directory: str | Path | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Progress | None = None,
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

    Raises:
        ScenarioError, UnsupportedError: A point is not legal, or cannot be run. Nothing was run then.
        InputError: The directory holds something else.
        Interrupted: Ctrl-C. Finished points are kept.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    points = points_of(scenario)
    assert scenario.study is not None
    seeds = replicate_seeds(
        scenario.run.seed if seed is None else seed,
        scenario.study.replicates if replicates is None else replicates,
    )
    if directory is None:
        outcomes = _Sitting(points, seeds, threads, progress, {}).run()
        return _study(scenario, seeds, outcomes, provenance.ended())
    directory = Path(directory)
    manifest = Manifest(
        kind="study",
        name=scenario.name,
        seed=seeds[0],
        replicates=len(seeds),
        overrides=overrides or {},
        provenance=provenance,
    )
    with _Log(directory, scenario, seeds) as log:
        save_scenario(scenario, directory)
        manifest.write(directory)
        sitting = _Sitting(points, seeds, threads, progress, log.done)
        try:
            outcomes = sitting.run(log.append)
        except BaseException as error:
            manifest.ended("interrupted" if isinstance(error, Interrupted) else "failed", str(error)).write(
                directory
            )
            raise
    manifest = manifest.ended("complete")
    study = _study(scenario, seeds, outcomes, manifest.provenance)
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
        self._open = [point for point in points if point.number not in done]
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
            waiting: set[Future[_Outcome]] = {pool.submit(self._run_point, point) for point in self._open}
            try:
                while waiting:
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

        records = simulate(point.scenario, self._seeds, threads=self._threads, progress=watch)
        self._share[point.number] = _STEPS
        return _outcome(point, records)

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(sum(self._share.values()), self._total)


class _Log:
    """`points.jsonl`, open for appending; one study at a time."""

    def __init__(self, directory: Path, scenario: Scenario, seeds: Sequence[int]) -> None:
        path = directory / _LOG
        if path.exists():
            header, self.done, good_bytes = _read_log(path)
            _refuse_another(directory, header, scenario, seeds)
        else:
            if directory.exists() and next(directory.iterdir(), None) is not None:
                raise InputError(f"{directory}: holds other files; name a new or an empty directory")
            directory.mkdir(parents=True, exist_ok=True)
            self.done, good_bytes = {}, 0
        self._file: BinaryIO = path.open("ab")
        self._file.truncate(good_bytes)
        if not good_bytes:
            self._write({"weirlab_points": FORMAT, **_identity(scenario, seeds)})

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, outcome: _Outcome) -> None:
        """Keep a point; it is on disk when this returns."""
        self._write(asdict(outcome))

    def _write(self, content: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _read_log(path: Path) -> tuple[Mapping[str, Any], dict[int, _Outcome], int]:
    """Header, outcomes by point, and the bytes up to the end of the last whole line. A last line without its
    line feed was cut short by a crash and does not count."""
    try:
        lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    try:
        header, *rest = [json.loads(line) for line in lines] or [{}]
        if header and header["weirlab_points"] != FORMAT:
            raise InputError(f"{path}: format {header['weirlab_points']}; this weirlab reads format {FORMAT}")
        outcomes = [_Outcome(**entry) for entry in rest]
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: damaged, or not the points of a study ({error})") from error
    return header, {outcome.point: outcome for outcome in outcomes}, sum(map(len, lines))


def _identity(scenario: Scenario, seeds: Sequence[int]) -> dict[str, Any]:
    """What must agree for a study to be continued."""
    return {"scenario": scenario.dump(), "seed": seeds[0], "replicates": len(seeds)}


def _refuse_another(
    directory: Path, header: Mapping[str, Any], scenario: Scenario, seeds: Sequence[int]
) -> None:
    expected = json.loads(json.dumps(_identity(scenario, seeds)))
    for name, value in expected.items():
        if header and header.get(name) != value:
            what = "another scenario" if name == "scenario" else f"another {name} ({header.get(name)})"
            raise InputError(
                f"{directory}: holds a study of {what}; continue that one, or name another directory"
            )


def _outcome(point: Point, records: Records) -> _Outcome:
    totals = records["flows"].group_by("replicate").agg(pl.col(_COUNTS[1:]).sum())
    runs = records["runs"].join(totals, on="replicate", how="left", maintain_order="left")
    return _Outcome(
        point=point.number,
        levels=dict(point.levels),
        runs=runs.select("replicate", "seed", *_COUNTS).to_dicts(),
        measures=measured(records, point.scenario).to_dicts(),
    )


_COUNTS = ["events", "sent_frames", "delivered_frames", "dropped_frames", "live_frames"]


def _study(
    scenario: Scenario, seeds: tuple[int, ...], outcomes: Iterable[_Outcome], provenance: Provenance
) -> Study:
    """The tables of the outcomes, by point."""
    assert scenario.study is not None
    ordered = sorted(outcomes, key=lambda outcome: outcome.point)
    factors = list(scenario.study.factors)
    planned = 1
    for levels in scenario.study.factors.values():
        planned *= len(levels)
    run_columns = ["replicate", "seed", *_COUNTS]
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
