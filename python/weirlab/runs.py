"""Runs: a scenario executed on the simulator, one replicate per seed, with what it recorded and where it
ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from weirlab import _core
from weirlab.errors import InputError, RunFailed, UnsupportedError
from weirlab.fields.base import Named
from weirlab.files import whole
from weirlab.records import Records
from weirlab.results import Manifest, Provenance, usable_cpus, write_text
from weirlab.scenario import Resolved, Scenario, load
from weirlab.scenario.record import FrameRecord
from weirlab.scenario.testbeds import Netns, Sim

__all__ = [
    "Progress",
    "Run",
    "check_conservation",
    "replicate_seeds",
    "resolve",
    "run",
    "save_scenario",
    "simulate",
]

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much, about every 50 ms."""

_SEEDS = 2**64


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

    def __repr__(self) -> str:
        many = f"{len(self.seeds)} replicates from seed" if len(self.seeds) > 1 else "seed"
        return f"<Run of {self.scenario.name}: {many} {self.seeds[0]}, {self.records!r}>"

    def save(self, directory: str | Path, *, overrides: Mapping[str, str] | None = None) -> None:
        """Write scenario, tables and manifest into `directory`, which is made if needed.

        The manifest is written last, so that a directory with one is whole. `overrides` are the changes
        that a user made to the scenario file; they are part of the scenario already and noted for people.
        """
        directory = Path(directory)
        save_scenario(self.scenario, directory)
        self.records.save(directory / "tables")
        for name, content in self.captures.items():
            with whole(directory / name) as unfinished:
                unfinished.write_bytes(content)
        manifest = Manifest(
            kind="run",
            name=self.scenario.name,
            status="complete",
            seed=self.seeds[0],
            replicates=len(self.seeds),
            overrides=overrides or {},
            provenance=self.provenance,
        )
        manifest.write(directory)

    @classmethod
    def load(cls, directory: str | Path) -> Run:
        """Read what `save` wrote. Raises InputError when it is no complete run."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "run":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a run")
        if manifest.status != "complete":
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
        )


def run(
    scenario: str | Path | Scenario,
    *,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Execute a scenario on the packet-level simulator.

    Records depend on scenario and seeds alone, not on the number of threads or the machine.

    Args:
        scenario: A scenario, the file of one, or the name of a ready-made one.
        seed: Of the first replicate. Default: that of the scenario, `run.seed`.
        replicates: How often to run, each with the next seed. Default: 1.
        threads: How many replicates to run at once. Default: one per CPU that this process may use.
        progress: Told about every 50 ms how much of how much is done.

    Raises:
        ScenarioError: The file is not legal.
        InputError: It is a search, or a study.
        UnsupportedError: The simulator cannot honour a part of it.
        RunFailed: Frames were lost or made out of nothing, or a quantity overflowed.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    if scenario.search is not None:
        raise InputError(f"{scenario.name}: this scenario is a search; start it with weirlab.search")
    if scenario.study is not None:
        raise InputError(f"{scenario.name}: this scenario is a study; start it with weirlab.study")
    seeds = replicate_seeds(
        scenario.run.seed if seed is None else seed, 1 if replicates is None else replicates
    )
    records, captures = _simulate(scenario, seeds, threads, progress)
    return Run(
        scenario=scenario, seeds=seeds, records=records, provenance=provenance.ended(), captures=captures
    )


def replicate_seeds(seed: int, replicates: int) -> tuple[int, ...]:
    """The seeds of the replicates: replicate i has `seed + i`, modulo 2^64.

    Every stream of chance hashes its seed, so that neighbours are as independent as any other two.
    """
    if not 0 <= seed < _SEEDS:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1 (got {seed})")
    if replicates < 1:
        raise InputError(f"at least 1 replicate is needed (got {replicates})")
    return tuple((seed + replicate) % _SEEDS for replicate in range(replicates))


def simulate(
    scenario: Scenario, seeds: Sequence[int], *, threads: int | None = None, progress: Progress | None = None
) -> Records:
    """What the simulator records of a scenario, one replicate per seed, checked for conservation; no
    captures."""
    without = {
        name: record for name, record in scenario.record.items() if not isinstance(record, FrameRecord)
    }
    if len(without) < len(scenario.record):
        scenario = scenario.model_copy(update={"record": Named(without)})
    return _simulate(scenario, seeds, threads, progress)[0]


def _simulate(
    scenario: Scenario, seeds: Sequence[int], threads: int | None, progress: Progress | None
) -> tuple[Records, dict[str, bytes]]:
    """Records, and the capture files by name."""
    if threads is not None and threads < 1:
        raise InputError(f"at least 1 thread is needed (got {threads})")
    resolved = resolve(scenario)
    threads = usable_cpus() if threads is None else threads
    try:
        tables = _core.simulate(resolved.spec_json, list(seeds), threads, progress)
    except _core.SimulationError as error:
        raise RunFailed(f"{scenario.name}: {error}") from error
    captures = pl.DataFrame(tables["captures"])
    records = Records.made(tables, captures=captures.drop("content"))
    check_conservation(records)
    rows = captures.select("name", "replicate", "content").rows()
    files = {f"{name}-{replicate}.pcapng": content for name, replicate, content in rows}
    return records, files


def resolve(scenario: Scenario) -> Resolved:
    """What the simulator is told of a scenario. Raises UnsupportedError when another testbed is to run it."""
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
    return scenario.resolve()


def check_conservation(records: Records) -> None:
    """Raise RunFailed unless sent = delivered + dropped + live frames for every flow of every replicate.

    `live` was counted by walking links, queues and sources at the end.
    """
    accounted = pl.col("delivered_frames") + pl.col("dropped_frames") + pl.col("live_frames")
    broken = records["flows"].filter(pl.col("sent_frames") != accounted)
    if broken.is_empty():
        return
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
    write_text(directory / "scenario.yaml", scenario.to_yaml())
    bed = scenario.testbed
    if scenario.network is not None and scenario.search is None and isinstance(bed, Sim) and not bed.on_path:
        write_text(directory / "resolved.json", resolve(scenario).spec_json + "\n")
