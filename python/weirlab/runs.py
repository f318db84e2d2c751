"""Runs: a scenario executed on the simulator, one replicate per seed, with what it recorded and where it
ran.

One file: a run from its seeds to the check of what it recorded.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl
import psutil

from weirlab import _core
from weirlab.errors import InputError, Interrupted, RunFailed, UnsupportedError
from weirlab.fields.base import Named
from weirlab.files import whole
from weirlab.interruptions import uninterrupted
from weirlab.measures.rows import FRAMES
from weirlab.records import Parts, Records, empty_table
from weirlab.results import Manifest, Provenance, usable_cpus, write_text
from weirlab.scenario import Resolved, Scenario, load
from weirlab.scenario.record import FrameRecord
from weirlab.scenario.testbeds import Netns, Sim

Progress = Callable[[int, int], None]
"""Informed how much is done, and of how much, about every 50 ms; see `TakesNews`, too."""

_SEEDS = 2**64
PART_ROWS = 2**18
"""Rows of series that a run keeps in memory before they leave: 20 MB or so."""


@runtime_checkable
class TakesNews(Protocol):
    """Progress that also learns what the first replicate of a batch has counted."""

    def news(self, replicate: int, rows: Sequence[tuple[int, ...]]) -> None:
        """A row for each count, as `_core.simulate` reports it."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A scenario that was executed, once per seed."""

    scenario: Scenario
    seeds: tuple[int, ...]
    """One per replicate."""
    records: Records
    provenance: Provenance
    captures: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Capture files that the scenario asks for, by name: `NAME-REPLICATE.pcapng`. A loaded run has none in
    memory; they lie in its directory."""
    remark: str = ""
    """Why there are fewer replicates than were asked for; empty where there are all."""

    @property
    def text(self) -> str:
        """What it is, in a few words."""
        many = f"{len(self.seeds)} replicates from seed" if len(self.seeds) > 1 else "seed"
        return f"Run of {self.scenario.name}: {many} {self.seeds[0]}"

    def __repr__(self) -> str:
        return f"<{self.text}, {self.records!r}>"

    def save(self, directory: str | Path, *, overrides: Mapping[str, str] | None = None) -> None:
        """Write scenario, tables and manifest into `directory`, which is made if needed.

        The manifest is written last, so that a directory with one is whole; an interruption waits for it.
        `overrides` are the changes that a user made to the scenario file; they are part of the scenario
        already and noted for people.
        """
        directory = Path(directory)
        manifest = Manifest(
            kind="run",
            name=self.scenario.name,
            status="interrupted" if self.remark else "complete",
            remark=self.remark,
            seed=self.seeds[0],
            replicates=len(self.seeds),
            overrides=overrides or {},
            provenance=self.provenance,
        )
        with uninterrupted():
            save_scenario(self.scenario, directory)
            self.records.save(directory / "tables")
            for name, content in self.captures.items():
                with whole(directory / name) as unfinished:
                    unfinished.write_bytes(content)
            manifest.write(directory)

    @classmethod
    def load(cls, directory: str | Path) -> Run:
        """Read what `save` wrote. Raises InputError when it is no complete run."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "run":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a run")
        if manifest.status != "complete" and not (manifest.status == "interrupted" and manifest.remark):
            raise InputError(f"{directory}: this run did not end ({manifest.status})")
        records = Records.load(directory / "tables", needed=["runs"])
        seeds = tuple(records["runs"].get_column("seed").to_list())
        if seeds != replicate_seeds(manifest.seed or 0, len(seeds)) or len(seeds) != manifest.replicates:
            raise InputError(
                f"{directory / 'tables' / 'runs.parquet'}: {len(seeds)} replicates with the seeds "
                f"{', '.join(map(str, seeds[:3]))} …, but manifest.json has {manifest.replicates} from seed "
                f"{manifest.seed}"
            )
        return cls(
            scenario=load(directory / "scenario.yaml"),
            seeds=seeds,
            records=records,
            provenance=manifest.provenance,
            remark=manifest.remark,
        )


def run(
    scenario: str | Path | Scenario,
    *,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    judge: Judge | None = None,
    parts: Parts | None = None,
) -> Run:
    """Execute a scenario on the packet-level simulator.

    Records depend on scenario and seeds alone, not on the number of threads or the machine.

    Args:
        scenario: A scenario, the file of one, or the name of a ready-made one.
        seed, replicates, threads, progress, judge: As of `weirlab.run`, which says what is raised, too.
        parts: Where rows of series go while runs go on, if there are many. Default: files that are removed
            with the run.

    Raises:
        RunInterrupted: Ctrl-C after some of the replicates; it holds these.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    if scenario.search is not None:
        raise InputError(f"{scenario.name}: this scenario is a search; start it with weirlab.search")
    if scenario.study is not None:
        raise InputError(f"{scenario.name}: this scenario is a study; start it with weirlab.study")
    first = scenario.run.seed if seed is None else seed
    replicate_seeds(first, 1)  # says what is wrong with it
    many = 1 if replicates is None else replicates
    batches: list[_Part] = []
    remark = ""
    try:
        for part in _batches(scenario, first, many, threads, progress, judge, parts):
            batches.append(part)
    except KeyboardInterrupt:
        if not batches:
            raise
        done = sum(len(part.seeds) for part in batches)
        remark = f"interrupted after {done} of {many} replicates"
    made = Run(
        scenario=scenario,
        seeds=tuple(seed for part in batches for seed in part.seeds),
        records=Records.joined([part.records for part in batches], [len(part.seeds) for part in batches]),
        provenance=provenance.ended(),
        captures={name: content for part in batches for name, content in part.captures.items()},
        remark=remark,
    )
    if remark:
        raise RunInterrupted(made)
    return made


class RunInterrupted(Interrupted):
    """Ctrl-C ended a run of several replicates, of which some had ended."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.remark)
        self.run = run
        """What was finished."""


@dataclass(frozen=True)
class Estimate:
    """What replicates will need, from the first of them."""

    runs: int
    seconds: float
    """Wall-clock time."""
    memory_bytes: int
    """Of the records in memory, at most."""
    disk_bytes: int
    """Of the tables, at most."""
    most: Estimate | None = None
    """Where results decide how much is run: what they need at most, and the rest is the least."""

    def __str__(self) -> str:
        most = self.most or self
        runs, time, memory, disk = (
            one if one == other else f"{one} to {other}"
            for one, other in zip(self._texts(), most._texts(), strict=True)
        )
        return f"{runs} runs take about {time}, {memory} of memory and {disk} on disk"

    def _texts(self) -> tuple[str, str, str, str]:
        time = (
            f"{self.seconds:.0f} s"
            if self.seconds < 120
            else f"{self.seconds / 60:.0f} min"
            if self.seconds < 7200
            else f"{self.seconds / 3600:.0f} h"
        )
        return f"{self.runs:,}", time, size_text(self.memory_bytes), size_text(self.disk_bytes)

    def refuse(self) -> None:
        """Raise InputError when they need more memory than is free."""
        free = psutil.virtual_memory().available
        if self.memory_bytes > free:
            raise InputError(
                f"{self}, but {size_text(free)} of memory are free; run fewer replicates, or record less"
            )


Judge = Callable[[Estimate], None]
"""Informed what the work will need, before most of it; may raise to stop it."""


def size_text(size: float) -> str:
    """Bytes as sentences have them."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:,.0f} TB"


def estimated(scenario: Scenario, seed: int, replicates: int, threads: int | None, points: int) -> Estimate:
    """What `points` of so many replicates need if all are like a few of this scenario, which are run."""
    cpus = usable_cpus() if threads is None else threads
    seeds = replicate_seeds(seed, min(replicates, cpus))
    began = time.monotonic()
    records = simulate(scenario, seeds, threads=threads)
    seconds = time.monotonic() - began
    size = records.size_bytes() / len(seeds)
    # A point of few replicates leaves CPUs to other points.
    at_once = max(1, cpus // min(cpus, replicates))
    return Estimate(
        runs=points * replicates,
        seconds=seconds * points * replicates / cpus,
        memory_bytes=round(_COPIES * size * replicates * min(at_once, points)),
        disk_bytes=0,
    )


_COPIES = 3
"""Records in memory, of which columns, tables and measures are made."""
_BATCH_S = 2.0
"""Time of a batch of replicates, which an interruption loses."""


@dataclass(frozen=True)
class _Part:
    """A batch of replicates."""

    seeds: tuple[int, ...]
    records: Records
    captures: Mapping[str, bytes]


def _batches(
    scenario: Scenario,
    seed: int,
    many: int,
    threads: int | None,
    progress: Progress | None,
    judge: Judge | None,
    parts: Parts | None,
) -> Iterator[_Part]:
    """The replicates in batches, the first of one for each CPU. After that it is known what all of them
    need."""
    _check_number("replicates", many)
    if many < 1:
        raise InputError(f"at least 1 replicate is needed (got {many})")
    cpus = max(1, usable_cpus() if threads is None else threads)
    parts = Parts() if parts is None else parts
    done, size = 0, cpus
    while done < many:
        seeds = replicate_seeds((seed + done) % _SEEDS, min(size, many - done))

        def share(part: int, whole: int, before: int = done, count: int = len(seeds)) -> None:
            if progress is not None:
                progress(before * _STEPS + count * _STEPS * part // max(1, whole), many * _STEPS)

        news = functools.partial(progress.news, done) if isinstance(progress, TakesNews) else None
        began = time.monotonic()
        records, captures = _simulate(scenario, seeds, threads, share, news, first=done, parts=parts)
        seconds = max(time.monotonic() - began, 1e-3)
        if done == 0 and many > len(seeds):
            per_replicate = records.size_bytes() / len(seeds)
            content = sum(map(len, captures.values())) / len(seeds)
            estimate = Estimate(
                runs=many,
                seconds=seconds / len(seeds) * many,
                memory_bytes=round((_COPIES * per_replicate + content) * many),
                disk_bytes=round((per_replicate + content + parts.size_bytes() / len(seeds)) * many),
            )
            estimate.refuse()
            if judge is not None:
                judge(estimate)
        done += len(seeds)
        size = cpus * max(1, round(len(seeds) * _BATCH_S / seconds / cpus))
        yield _Part(seeds, records, captures)


_STEPS = 1000
"""Of a replicate, for progress."""


def replicate_seeds(seed: int, replicates: int) -> tuple[int, ...]:
    """The seeds of the replicates: replicate i has `seed + i`, modulo 2^64.

    Every stream of chance hashes its seed, so that neighbours are as independent as any other two.
    """
    _check_number("seed", seed)
    _check_number("replicates", replicates)
    if not 0 <= seed < _SEEDS:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1 (got {seed})")
    if replicates < 1:
        raise InputError(f"at least 1 replicate is needed (got {replicates})")
    return tuple((seed + replicate) % _SEEDS for replicate in range(replicates))


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, Integral):
        raise InputError(f"{name}: a whole number is wanted (got {value!r})")


def simulate(
    scenario: Scenario,
    seeds: Sequence[int],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    sums: bool = False,
) -> Records:
    """What the simulator records of a scenario, one replicate per seed, checked for conservation; no
    captures. With `sums` nobody will ask for single flows: what a source sends may be one in `flows`."""
    without = {
        name: record for name, record in scenario.record.items() if not isinstance(record, FrameRecord)
    }
    if len(without) < len(scenario.record):
        scenario = scenario.model_copy(update={"record": Named(without)})
    return _simulate(scenario, seeds, threads, progress, sums=sums)[0]


def _simulate(
    scenario: Scenario,
    seeds: Sequence[int],
    threads: int | None,
    progress: Progress | None,
    news: Callable[[Sequence[tuple[int, ...]]], None] | None = None,
    *,
    first: int = 0,
    parts: Parts | None = None,
    sums: bool = False,
) -> tuple[Records, dict[str, bytes]]:
    """Records, and the capture files by name; `first` is the number of the first replicate in these."""
    if threads is not None and threads < 1:
        raise InputError(f"at least 1 thread is needed (got {threads})")
    resolved = resolve(scenario, sums=sums)
    plan = resolved.plan(sums=sums)
    parts = Parts() if parts is None else parts
    threads = usable_cpus() if threads is None else threads
    try:
        leaving = (functools.partial(parts.take, first), PART_ROWS)
        tables = _core.simulate(plan, list(seeds), threads, progress, news, leaving)
    except _core.SimulationError as error:
        raise RunFailed(f"{scenario.name}: {error}") from error
    replicates = range(first, first + len(seeds))
    if not len(tables["captures"]):
        records = Records.made(tables, captures=empty_table("captures"))
        check_conservation(records)
        return records.with_parts(parts, replicates), {}
    captures = pl.DataFrame(tables["captures"])
    facts = pl.DataFrame([column for column in captures if column.name != "content"])
    records = Records.made(tables, captures=facts)
    check_conservation(records)
    rows = zip(captures["name"], captures["replicate"], captures["content"], strict=True)
    files = {f"{name}-{first + replicate}.pcapng": content for name, replicate, content in rows}
    return records.with_parts(parts, replicates), files


def resolve(scenario: Scenario, *, sums: bool = False) -> Resolved:
    """What the simulator gets of a scenario; see `Scenario.resolve`. Raises UnsupportedError when another
    testbed is to run it."""
    bed = scenario.testbed
    if isinstance(bed, Sim) and bed.on_path:
        raise UnsupportedError(
            [scenario.problem("testbed", "a path is loaded by a campaign; start it with:  weir bulk")]
        )
    if isinstance(bed, Netns) and bed.on_path:
        message = f"an emulated path is for real programs; start it with:  weir {scenario.command}"
        raise UnsupportedError([scenario.problem("testbed", message)])
    if not isinstance(bed, Sim):
        problem = scenario.problem("testbed", f"'{bed.kind}' measures searches, and runs no scenarios yet")
        raise UnsupportedError([problem])
    return scenario.resolve(sums=sums)


def check_conservation(records: Records) -> None:
    """Raise RunFailed unless sent = delivered + dropped + live frames for every flow of every replicate.

    `live` was counted by walking links, queues and sources at the end.
    """
    if records.made_of("flows").adds_up(FRAMES[0], FRAMES[1:]):
        return
    accounted = pl.col("delivered_frames") + pl.col("dropped_frames") + pl.col("live_frames")
    broken = records["flows"].filter(pl.col("sent_frames") != accounted)
    first = records["flow_names"].join(broken.head(1), on="flow", how="inner").row(0, named=True)
    raise RunFailed(
        f"conservation broken for {broken.height} flows; the first is '{first['name']}' in replicate "
        f"{first['replicate']}: sent {first['sent_frames']} frames, delivered {first['delivered_frames']} "
        f"+ dropped {first['dropped_frames']} + live {first['live_frames']} "
        f"= {first['delivered_frames'] + first['dropped_frames'] + first['live_frames']}"
    )


def save_scenario(scenario: Scenario, directory: Path) -> None:
    """Write `scenario.yaml`, complete with defaults, and what the simulator makes of it as
    `resolved.json`."""
    write_text(directory / "scenario.yaml", scenario.to_yaml(movable=True))
    bed = scenario.testbed
    if scenario.network is not None and scenario.search is None and isinstance(bed, Sim) and not bed.on_path:
        write_text(directory / "resolved.json", resolve(scenario).spec_json + "\n")
