"""Runs a campaign and keeps each measurement on disk when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from weirlab.bulk import tools
from weirlab.bulk.measurement import Measurement
from weirlab.bulk.plan import Measured, Place, Plan, plan_of
from weirlab.bulk.real import RealHosts
from weirlab.bulk.simulated import measure_simulated
from weirlab.errors import InputError, Interrupted, TestbedError, WeirlabError
from weirlab.journal import Journal, JournalKind, read_journal
from weirlab.results import Manifest, Provenance, Status, write_json
from weirlab.runs import save_scenario
from weirlab.scenario import Scenario, load
from weirlab.scenario.path import PathPlan
from weirlab.scenario.testbeds import AnyTestbed, Sim, Ssh

__all__ = ["LOG", "Campaign", "Kept", "run_campaign"]

LOG = "measurements.jsonl"
ATTEMPTS = 3
"""How often a measurement is tried before its failure is kept in its place."""
_KIND = JournalKind("weirlab_measurements", 2, "measurement log", "campaign")

Measure = Callable[[Measured, PathPlan | None, int], Measurement]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Kept:
    """One entry of the log."""

    place: Place
    measurement: Measurement | None
    """None: every attempt failed."""
    failures: tuple[str, ...]
    """Why earlier attempts, or all of them, failed."""


@dataclass(frozen=True)
class Campaign:
    """A campaign as far as it came."""

    plan: Plan
    kept: tuple[Kept, ...]

    @property
    def complete(self) -> bool:
        """Whether every measurement was made."""
        return len(self.kept) == len(self.plan.places())

    @property
    def joined(self) -> tuple[tuple[str, ...], ...]:
        """What `Measurement.joined` tells, each answer once; several where sittings had several kernels."""
        told = (kept.measurement.joined for kept in self.kept if kept.measurement is not None)
        return tuple(sorted({transports for transports in told if transports is not None}))

    @classmethod
    def load(cls, directory: str | Path) -> Campaign:
        """Read a campaign, complete or not. Raises InputError when the directory holds none."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "campaign":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a campaign")
        plan = plan_of(load(directory / "scenario.yaml"))
        return cls(plan, tuple(read_journal(directory / LOG, _KIND, _Reader(plan), _identity(plan.scenario))))


def run_campaign(
    scenario: str | Path | Scenario,
    directory: str | Path,
    *,
    overrides: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    measure: Measure | None = None,
) -> Campaign:
    """Make all measurements of a campaign, or those that earlier sittings left open.

    Each is on disk when it ends, and none is made twice: after an interruption, of whatever kind, the next
    sitting goes on with the first that is missing.

    Args: scenario: A scenario with a section `campaign`, or the file of one. directory: Where to keep it:
    an empty directory, or one of the same campaign. overrides: The changes of a command line, to be noted.
    progress: Told how many measurements of how many are done. measure: Makes one measurement; None: as the
    testbed does.

    Raises: ScenarioError, UnsupportedError: It cannot be run. Nothing was measured then. InputError: The
    directory holds something else. MissingCapability: Not Linux, not root, or a program is missing.
    Interrupted: Ctrl-C. What was measured is kept.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    plan, directory = plan_of(scenario), Path(directory)
    bed = scenario.testbed
    facts: Callable[[], Mapping[str, Any]] | None = None
    if measure is None:
        measure, facts = _measure_of(bed, Path(scenario.file).parent, tls=_has_tls(plan))
    path = directory / LOG
    if not path.exists() and directory.is_dir() and next(directory.iterdir(), None) is not None:
        raise InputError(f"{directory}: holds other files; name a new or an empty directory")
    # What is missing on this host or another is told before anything is kept.
    told = facts() if facts is not None and not (directory / "manifest.json").exists() else None
    manifest = Manifest(
        kind="campaign",
        name=scenario.name,
        seed=scenario.run.seed,
        overrides=overrides or {},
        provenance=provenance,
    )
    with Journal(path, _KIND, _identity(scenario), _Reader(plan)) as log:
        if not (directory / "manifest.json").exists():
            save_scenario(scenario, directory)
            if told is not None:
                write_json(directory / "tools.json", told)
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        kept = list(log.entries)
        places = plan.places()
        try:
            for place in places[len(kept) :]:
                if progress is not None:
                    progress(len(kept), len(places))
                entry = _measured(plan, place, measure)
                log.append(asdict(entry))
                kept.append(entry)
        except BaseException as error:
            status: Status = "interrupted" if isinstance(error, KeyboardInterrupt | Interrupted) else "failed"
            with suppress(WeirlabError):
                manifest.ended(status, str(error)).write(directory)
            if isinstance(error, KeyboardInterrupt):
                done = f"{len(kept)} of {len(places)} measurements"
                raise Interrupted(f"interrupted after {done}; they are kept") from None
            raise
    manifest.ended("complete").write(directory)
    return Campaign(plan, tuple(kept))


def _has_tls(plan: Plan) -> bool:
    return any(step.requests is not None and step.requests.tls for steps in plan.steps for step in steps)


def _measure_of(
    bed: AnyTestbed, beside: Path, *, tls: bool
) -> tuple[Measure, Callable[[], Mapping[str, Any]] | None]:
    """How a testbed measures, and what tells of its programs. Raises MissingCapability."""
    if isinstance(bed, Sim):
        return partial(measure_simulated, window_factor=bed.window_factor), None
    if isinstance(bed, Ssh):
        hosts = RealHosts(bed, beside)
        return hosts.measure, hosts.facts
    tools.require(tls=tls)
    return tools.measure, lambda: {**tools.versions(tls=tls), "sysctls": tools.sysctls()}


def _measured(plan: Plan, place: Place, measure: Measure) -> Kept:
    failures: list[str] = []
    while len(failures) < ATTEMPTS:
        try:
            found = measure(plan.measured(place), plan.paths[place.point], plan.seed(place))
            return Kept(place, found, tuple(failures))
        except TestbedError as error:
            failures.append(str(error))
    return Kept(place, None, tuple(failures))


def _identity(scenario: Scenario) -> dict[str, Any]:
    """What must agree for a campaign to be continued."""
    return {"scenario": scenario.dump()}


class _Reader:
    """Reads the entries of a log, which are the first measurements of the plan, in its order."""

    def __init__(self, plan: Plan) -> None:
        self._places: Sequence[Place] = plan.places()
        self._next = 0
        self._adapter = TypeAdapter(Kept)

    def __call__(self, entry: Mapping[str, Any]) -> Kept:
        """Raises ValueError when it is none, or not the next."""
        kept = self._adapter.validate_python(entry)
        if self._next >= len(self._places) or kept.place != self._places[self._next]:
            raise ValueError(f"not the next measurement of the campaign: {kept.place}")
        self._next += 1
        return kept
