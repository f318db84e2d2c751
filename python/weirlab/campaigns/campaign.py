"""Runs a campaign and keeps each measurement on disk when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from weirlab.campaigns import tools
from weirlab.campaigns.measurement import Measurement
from weirlab.campaigns.plan import Measured, Place, Plan, plan_of
from weirlab.campaigns.planned import CampaignPlan
from weirlab.campaigns.real import RealHosts
from weirlab.campaigns.simulated import measure_simulated
from weirlab.documents import section
from weirlab.errors import InputError, Interrupted, TestbedError
from weirlab.execution import Executor, carry
from weirlab.journal import Journal, JournalKind, read_journal
from weirlab.results import Manifest, Provenance, write_json
from weirlab.runs import save_scenario
from weirlab.scenario import Scenario, load
from weirlab.scenario.file.moving import movable
from weirlab.scenario.network.path import PathPlan
from weirlab.scenario.testbeds import AnyTestbed, Hosts, Sim
from weirlab.store import Store
from weirlab.working import at_work, left_over

LOG = "measurements.jsonl"
ATTEMPTS = 3
"""How often a measurement is tried before its failure is kept in its place."""


def _identity(scenario: Scenario) -> dict[str, object]:
    """What must agree for a campaign to be continued: all but the number of cycles, of which there may be
    more."""
    plain = scenario.dump()
    plain["campaign"] = {key: value for key, value in section(plain, "campaign").items() if key != "cycles"}
    return {"scenario": plain}


def _filled(about: Mapping[str, object]) -> dict[str, object]:
    """The same of what an earlier version kept."""
    scenario = section(about, "scenario")
    return _identity(Scenario(**{**scenario, "campaign": {**section(scenario, "campaign"), "cycles": 1}}))


_KIND = JournalKind("weirlab_measurements", 2, "measurement log", "campaign", _filled)

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
    """In the order of the plan; of a measurement that was tried again in a later sitting, what that gave."""

    @property
    def complete(self) -> bool:
        """Whether every measurement was made, or failed."""
        return len(self.kept) == len(self.plan.places())

    @property
    def failed(self) -> tuple[Kept, ...]:
        """The measurements whose every attempt failed."""
        return tuple(kept for kept in self.kept if kept.measurement is None)

    @property
    def failures(self) -> dict[str, int]:
        """Why measurements failed, in the last of their attempts, and how many; the most frequent first."""
        return dict(Counter(kept.failures[-1] for kept in self.failed).most_common())

    @property
    def joined(self) -> tuple[tuple[str, ...], ...]:
        """The values of `Measurement.joined`, each once; several where sittings had several kernels."""
        reported = (kept.measurement.joined for kept in self.kept if kept.measurement is not None)
        return tuple(sorted({transports for transports in reported if transports is not None}))

    @classmethod
    def load(cls, directory: str | Path) -> Campaign:
        """Read a campaign, complete or not. Raises InputError when the directory holds none."""
        directory = Path(directory)
        manifest = Manifest.read(directory)
        if manifest.kind != "campaign":
            raise InputError(f"{directory}: holds a {manifest.kind}, not a campaign")
        plan = plan_of(load(directory / "scenario.yaml"))
        entries = read_journal(directory / LOG, _KIND, _Reader(plan), _identity(plan.scenario))
        return cls(plan, _latest(plan, entries))


def run_campaign(
    scenario: str | Path | Scenario,
    directory: str | Path,
    *,
    overrides: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    measure: Measure | None = None,
    on: str | Executor | None = None,
    store: str | Path | None = None,
) -> Campaign:
    """Make all measurements of a campaign, or those that earlier sittings left open.

    Each is on disk when it ends, and none is made twice: after an interruption, of whatever kind, the next
    sitting goes on with the first that is missing, and then tries again what had failed. A campaign that is
    continued may have more cycles than before.

    Args:
        scenario: A scenario with a section `campaign`, or the file of one.
        directory: Where to keep it: an empty directory, or one of the same campaign.
        overrides: The changes of a command line, to be noted.
        progress: Called with how many measurements of how many are done.
        measure: Makes one measurement; None: as the testbed does.
        on: Who measures in simulated time: see `weirlab.execution.opened`. Default: this process, one by one.
        store: A path or URL of results that campaigns share. Default, with `on`: one of its own in
            `directory`.

    Raises:
        ScenarioError, UnsupportedError: It cannot be run. Nothing was measured then.
        InputError: The directory holds something else, or nobody can work there.
        MissingCapability: Not Linux, no namespaces for this user, or a program is missing.
        TestbedError: A server that has to run at the far end does not answer.
        Interrupted: Ctrl-C. What was measured is kept.
    """
    provenance = Provenance.now()
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    scenario = movable(scenario)
    plan, directory = plan_of(scenario), Path(directory)
    bed = scenario.testbed
    facts: Callable[[], Mapping[str, object]] | None = None
    reach: Callable[[int], None] | None = None
    if measure is None:
        measure, facts, reach = _measure_of(bed, Path(scenario.file).parent, tls=_has_tls(plan))
    path = directory / LOG
    if not path.exists() and directory.is_dir() and any(not left_over(each) for each in directory.iterdir()):
        raise InputError(f"{directory}: holds other files; name a new or an empty directory")
    # What is missing on this host or another is reported before anything is kept.
    continued = (directory / "manifest.json").exists()
    if reach is not None and not continued:
        reach(plan.servers)
    reported = facts() if facts is not None and not continued else None
    manifest = Manifest(
        kind="campaign",
        name=scenario.name,
        seed=scenario.run.seed,
        overrides=overrides or {},
        provenance=provenance,
    )
    with (
        Journal(path, _KIND, _identity(scenario), _Reader(plan)) as log,
        at_work(directory, "campaign", scenario.name),
    ):
        save_scenario(scenario, directory)  # again: it may have more cycles now
        if reported is not None:
            write_json(directory / "tools.json", reported)
        manifest = manifest.begun_in(directory)
        manifest.write(directory)
        kept = {entry.place: entry for entry in log.entries}
        places = plan.places()
        failed = [place for place in places if place in kept and kept[place].measurement is None]
        todo = [*(place for place in places if place not in kept), *failed]
        try:
            if reach is not None and continued and todo:
                reach(plan.servers)
            measure = _made_elsewhere(scenario, on, store, directory, progress) or measure
            for made, place in enumerate(todo, start=len(places) - len(todo)):
                if progress is not None:
                    progress(made, len(places))
                entry = _measured(plan, place, measure)
                log.append(asdict(entry))
                kept[place] = entry
        except BaseException as error:
            manifest.failed(directory, error)
            if isinstance(error, KeyboardInterrupt):
                done = f"{sum(place in kept for place in places)} of {len(places)} measurements"
                raise Interrupted(f"interrupted after {done}; they are kept") from None
            raise
    campaign = Campaign(plan, tuple(kept[place] for place in places))
    remark = ""
    if campaign.failed:
        reasons = "; ".join(f"{count} with: {reason}" for reason, count in campaign.failures.items())
        remark = f"{len(campaign.failed)} of {len(places)} measurements failed, {reasons}"
    manifest.ended("failed" if campaign.failed else "complete", remark).write(directory)
    return campaign


def _made_elsewhere(
    scenario: Scenario,
    on: str | Executor | None,
    store: str | Path | None,
    directory: Path,
    progress: Progress | None,
) -> Measure | None:
    """Have all measurements made that a store lacks, and return what gives them; None where they are to be
    made here."""
    if on is None and store is None:
        return None
    plan = CampaignPlan(scenario)
    kept = Store.open(directory / "store" if store is None else store, create=True)
    return plan.measure(kept, carry(plan, kept, on, progress=progress).plan)


def _latest(plan: Plan, entries: Sequence[Kept]) -> tuple[Kept, ...]:
    """One entry for each place, the last one, in the order of the plan."""
    kept = {entry.place: entry for entry in entries}
    return tuple(kept[place] for place in plan.places() if place in kept)


def _has_tls(plan: Plan) -> bool:
    return any(step.requests is not None and step.requests.tls for steps in plan.steps for step in steps)


def _measure_of(
    bed: AnyTestbed, beside: Path, *, tls: bool
) -> tuple[Measure, Callable[[], Mapping[str, object]] | None, Callable[[int], None] | None]:
    """How a testbed measures, what reports on its programs, and what tries so many servers that others have
    started. Raises MissingCapability."""
    if isinstance(bed, Sim):
        return partial(measure_simulated, window_factor=bed.window_factor), None, None
    if isinstance(bed, Hosts):
        hosts = RealHosts(bed, beside)
        return hosts.measure, hosts.facts, hosts.reach
    tools.require(tls=tls)
    return tools.measure, lambda: {**tools.versions(tls=tls), "sysctls": tools.sysctls()}, None


def _measured(plan: Plan, place: Place, measure: Measure) -> Kept:
    failures: list[str] = []
    while len(failures) < ATTEMPTS:
        try:
            found = measure(plan.measured(place), plan.paths[place.point], plan.seed(place))
            return Kept(place, found, tuple(failures))
        except TestbedError as error:
            failures.append(str(error))
    return Kept(place, None, tuple(failures))


class _Reader:
    """Reads the entries of a log: the first measurements of the plan, in its order, and between them further
    attempts at those that had failed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._places: Sequence[Place] = plan.places()
        self._next = 0
        self._failed: set[Place] = set()
        self._adapter = TypeAdapter(Kept)

    def __call__(self, entry: Mapping[str, object]) -> Kept:
        """Raises ValueError when it is none, or neither the next nor one that had failed."""
        kept = self._adapter.validate_python(entry)
        if self._next < len(self._places) and kept.place == self._places[self._next]:
            self._next += 1
        elif kept.place.cycle >= self._plan.cycles:
            raise ValueError(
                f"a measurement of cycle {kept.place.cycle + 1}, but campaign.cycles is {self._plan.cycles}: "
                "a campaign that is continued may have more cycles, not fewer"
            )
        elif kept.place not in self._failed:
            raise ValueError(f"not the next measurement of the campaign: {kept.place}")
        (self._failed.add if kept.measurement is None else self._failed.discard)(kept.place)
        return kept
