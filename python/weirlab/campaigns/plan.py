"""What a campaign measures, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weirlab.campaigns import refusals
from weirlab.errors import Problem, UnsupportedError
from weirlab.heavy import np
from weirlab.scenario import Scenario
from weirlab.scenario.network.path import PathPlan, path_plan
from weirlab.scenario.plan.combinations import Point, combinations
from weirlab.scenario.resolve import selected_traffic
from weirlab.scenario.testbeds import Hosts, Sim
from weirlab.scenario.traffic import Bulk, Constant, Ping, Requests, Stamp, Tcp, Udp
from weirlab.units import Rate, Span


class _Timed:
    """What loads the path for a part of a step."""

    start_s: float
    stop_s: float | None

    def seconds(self, duration_s: float) -> float:
        """How long it lasts in a step of this length."""
        return min(duration_s, math.inf if self.stop_s is None else self.stop_s) - self.start_s


class _Repeated:
    """What is sent at equal distances."""

    every_s: float

    def count(self, duration_s: float) -> int:
        """How often it is sent in a step of this length."""
        return max(1, round(duration_s / self.every_s))


@dataclass(frozen=True)
class Load(_Timed):
    """A bulk transfer."""

    forward: bool
    """Whether it goes from the near end to the far one."""
    streams: int
    window_bytes: int | None
    """Of each stream, as asked for; None: the system's choice."""
    congestion_control: str
    tcp: Tcp
    """All settings, of which real stacks take these two."""
    start_s: float = 0.0
    """When it starts, since the step does."""
    stop_s: float | None = None
    """When it stops; None: with the step."""
    host: str | None = None
    """The host behind the near end that is its end there; None: the near end itself."""


@dataclass(frozen=True)
class Datagrams(_Timed):
    """UDP at a rate of its own, whatever becomes of it."""

    forward: bool
    streams: int
    rate_bps: float
    """Of the payloads of all streams together."""
    payload_bytes: int
    start_s: float = 0.0
    stop_s: float | None = None
    host: str | None = None


@dataclass(frozen=True)
class Probe(_Repeated):
    """Pings during the transfer, or without one."""

    forward: bool
    every_s: float
    payload_bytes: int
    timeout_s: float


@dataclass(frozen=True)
class RequestSeries(_Repeated):
    """Small requests during the transfer, or without one, each on a new connection."""

    forward: bool
    every_s: float
    timeout_s: float
    tls: bool = False
    """Whether they are made over TLS."""


@dataclass(frozen=True)
class StampSeries(_Repeated):
    """Test packets during the transfer, or without one, that measure one-way delays; from the near end and
    back."""

    every_s: float
    payload_bytes: int
    timeout_s: float


@dataclass(frozen=True)
class Measured:
    """One step of a cycle at one point."""

    name: str
    duration_s: float
    load: Load | None
    probe: Probe | None
    requests: RequestSeries | None = None
    stamps: StampSeries | None = field(default=None, kw_only=True)
    beside: Mapping[str, Load | Datagrams] = field(default_factory=dict)
    """What else loads the path at the same time, by the name of its traffic; `load` is the first transfer."""
    load_name: str = ""
    """What the traffic of `load` is called."""

    @property
    def loads(self) -> tuple[Load | Datagrams, ...]:
        """All that loads the path."""
        return (*(() if self.load is None else (self.load,)), *self.beside.values())


@dataclass(frozen=True)
class Place:
    """Where a measurement stands in a campaign; from 0."""

    cycle: int
    point: int
    step: int


@dataclass(frozen=True)
class Plan:
    """A campaign."""

    scenario: Scenario
    cycles: int
    random_order: bool
    levels: Sequence[Mapping[str, str]]
    """Name of the level by factor, of each point."""
    paths: Sequence[PathPlan | None]
    """Of each point; None between real hosts."""
    steps: Sequence[Sequence[Measured]]
    """Of a cycle, for each point."""

    def places(self) -> list[Place]:
        """All measurements in the order in which they are made; a cycle takes every point with all its
        steps.
        """
        found = []
        for cycle in range(self.cycles):
            points = list(range(len(self.steps)))
            if self.random_order:
                np.random.default_rng([self.scenario.run.seed, cycle]).shuffle(points)
            found += [Place(cycle, point, step) for point in points for step in range(len(self.steps[point]))]
        return found

    def measured(self, place: Place) -> Measured:
        """What is measured there."""
        return self.steps[place.point][place.step]

    @property
    def servers(self) -> int:
        """How many servers of iperf3 a step needs at most: each serves one load at a time."""
        return max((len(step.loads) for steps in self.steps for step in steps), default=0)

    def seed(self, place: Place) -> int:
        """Of the path's chance there: another one for each measurement, the same when it is made again."""
        entropy = [self.scenario.run.seed, place.cycle, place.point, place.step]
        return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


_DEFAULT_WINDOW = Tcp.model_fields["window"].default
_LONGEST_S = 86_400


def plan_of(scenario: Scenario) -> Plan:
    """The campaign that a scenario describes.

    Raises:
        ScenarioError: A combination of levels is not legal.
        UnsupportedError: A part has no form on real stacks; every such part with its place.
    """
    if scenario.campaign is None:
        raise UnsupportedError([scenario.problem("", "has no 'campaign' section")])
    if path_plan(scenario) is None and not isinstance(scenario.testbed, Hosts):
        message = (
            "a campaign needs a path: write 'path: emulator' for the network of this file, or 'hops', with "
            "kind 'netns' (real stacks) or 'sim'"
        )
        raise UnsupportedError([scenario.problem("testbed", message)])
    points = [Point(0, {}, scenario)] if scenario.study is None else combinations(scenario, _steps)
    steps = [_steps(point.scenario) for point in points]
    paths = [path_plan(point.scenario) for point in points]
    return Plan(
        scenario,
        cycles=scenario.campaign.cycles,
        random_order=scenario.campaign.order == "random",
        levels=[dict(point.levels) for point in points],
        paths=paths,
        steps=steps,
    )


def _steps(scenario: Scenario) -> list[Measured]:
    assert scenario.campaign is not None
    problems: list[Problem] = []
    names = list(scenario.traffic)
    loads: dict[str, Load | Datagrams] = {}
    probes: dict[str, Probe] = {}
    series: dict[str, RequestSeries] = {}
    stamps: dict[str, StampSeries] = {}
    for name in names:
        match _understood(scenario, name, problems):
            case Load() | Datagrams() as load:
                loads[name] = load
            case Probe() as probe:
                probes[name] = probe
            case RequestSeries() as requests:
                series[name] = requests
            case StampSeries() as stamped:
                stamps[name] = stamped
    steps = []
    for i, step in enumerate(scenario.campaign.cycle):
        running = [names[place] for place in selected_traffic(step.run, names)]
        where = ("campaign", "cycle", i)
        simulated = isinstance(scenario.testbed, Sim)
        loading = {name: loads[name] for name in running if name in loads}
        for message in () if simulated else _odd_times(loading, step.for_):
            problems.append(scenario.problem_at((*where, "for"), message))
        single: dict[str, Mapping[str, object]] = {"series of pings": probes, "series of requests": series}
        single["series of test packets"] = stamps
        if simulated:
            single = {"bulk transfer": loads, **single}
        crowded = [kind for kind, known in single.items() if sum(name in known for name in running) > 1]
        for kind in crowded:
            place = "in simulated time" if single[kind] is loads else "at a time"
            problems.append(scenario.problem_at((*where, "run"), f"more than one {kind} {place}"))
        transfers = {name: load for name, load in loading.items() if isinstance(load, Load)}
        first = next(iter(transfers), "")
        steps.append(
            Measured(
                name=step.name,
                duration_s=step.for_.s,
                load=transfers.get(first),
                probe=next((probes[name] for name in running if name in probes), None),
                requests=next((series[name] for name in running if name in series), None),
                stamps=next((stamps[name] for name in running if name in stamps), None),
                beside={name: load for name, load in loading.items() if name != first},
                load_name=first,
            )
        )
    if loads and isinstance(scenario.testbed, Sim) and not problems:
        problems += _endless(scenario)
    if problems:
        raise UnsupportedError(problems)
    return steps


def _odd_times(loading: Mapping[str, Load | Datagrams], step: Span) -> Iterator[str]:
    """What is wrong with the times of loads that iperf3 makes."""
    for name, load in loading.items():
        lasts = load.seconds(step.s)
        if not (0 < lasts <= _LONGEST_S and lasts.is_integer()):
            whole = load.start_s == 0 and load.stop_s is None
            got = step if whole else f"{name}: {lasts:g} s of {step}"
            yield f"iperf3 takes whole seconds, a day at most (got {got})"


def _endless(scenario: Scenario) -> Iterator[Problem]:
    """A path over which a window comes back at once carries more than any number in any time."""
    path = path_plan(scenario)
    if path is None:
        return
    lines = [line for hop in path.hops.values() for line in (hop.forward, hop.backward or hop.forward)]
    if not any(line.least_delay.ps or line.rate is not None or line.steps for line in lines):
        message = "a simulated path needs a delay or a rate: without both a transfer takes no time"
        yield scenario.problem("testbed.hops" if scenario.testbed.kind == "sim" else "testbed", message)


def _understood(
    scenario: Scenario, name: str, problems: list[Problem]
) -> Load | Datagrams | Probe | RequestSeries | StampSeries | None:
    """The load or the probes that an entry of traffic is; what it cannot be is added to `problems`."""
    traffic = scenario.traffic[name]

    def refuse(faults: Iterable[refusals.Beyond]) -> None:
        problems.extend(
            scenario.problem_at(("traffic", name, *place), reported) for place, reported in faults
        )

    refuse(refusals.beyond_ends(scenario, traffic))
    host, forward = refusals.placed(scenario, traffic)
    times = (traffic.start.s, None if traffic.stop is None else traffic.stop.s)
    match traffic.source, traffic.transport:
        case Ping() as ping, _:
            refuse(refusals.beyond_pings(scenario, traffic, ping))
            return Probe(forward, ping.every.s, ping.payload.bytes, ping.timeout.s)
        case Requests() as requests, _:
            refuse(refusals.beyond_requests(scenario, traffic, requests))
            return RequestSeries(forward, requests.every.s, requests.timeout.s, bool(requests.tls))
        case Stamp() as stamp, _:
            refuse(refusals.beyond_stamps(scenario, traffic, stamp, forward=forward))
            return StampSeries(stamp.every.s, stamp.payload.bytes, stamp.timeout.s)
        case Bulk(stop=None), Tcp() as tcp:
            refuse(refusals.beyond_transfers(scenario, traffic, tcp))
            window = None if tcp.window == _DEFAULT_WINDOW else tcp.window.bytes
            return Load(forward, traffic.streams, window, tcp.congestion_control.kind, tcp, *times, host)
        case Constant() as constant, Udp():
            refuse(refusals.beyond_datagrams(scenario, constant))
            if constant.payload is None or constant.rate is None:
                return None
            payload = constant.payload.bytes
            rate = constant.rate
            rate_bps = float(rate.bps) if isinstance(rate, Rate) else rate.fps * 8 * payload
            return Datagrams(forward, traffic.streams, rate_bps, payload, *times, host)
        case Bulk(), _:
            refuse(
                [(("transport",), "a bulk transfer is 'transport: {kind: tcp, ...}', without 'source.stop'")]
            )
        case _:
            kinds = "'bulk', 'ping', 'requests', 'stamp', and 'constant' over UDP"
            refuse([(("source",), f"a campaign measures {kinds}")])
    return None
