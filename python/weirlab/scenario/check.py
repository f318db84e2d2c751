"""What no field can say alone: names that must exist, fields that need or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab import _core
from weirlab.errors import Problem, ScenarioError
from weirlab.scenario.flows import Flow, TrafficFault, departures, flows_of, frame_sizes
from weirlab.scenario.layout import FIXED_NODES, Layout, NoMatchError, layout_of, matches, plan_network
from weirlab.scenario.measure import (
    DelayPercentile,
    DeliveredRate,
    FlowMeasure,
    JainFairness,
    PortMeasure,
    RmsFairness,
)
from weirlab.scenario.problems import did_you_mean, listed
from weirlab.scenario.record import (
    DelayRecord,
    FlowRecord,
    FrameRecord,
    LimiterRecord,
    PStreamRecord,
    QueueRecord,
)
from weirlab.scenario.resolve import resolve, selected_traffic, unsupported
from weirlab.scenario.testbeds import Command, Netns, Sim
from weirlab.scenario.traffic import Bernoulli, Bulk, Departing, OnOff, Ping, Raw, Tcp, Traffic, Udp
from weirlab.units import FrameRate, Frames, Interval, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

__all__ = ["faults"]

Where = tuple[str | int, ...]
Fault = tuple[Where, str]


def faults(scenario: Scenario) -> list[Problem]:
    """Every fault of a scenario whose fields are legal one by one."""
    layout, found = _network(scenario)
    found += _testbed(scenario)
    if layout is not None:
        found += _queues(scenario, layout)
        found += _traffic(scenario, layout)
        found += _records(scenario, layout)
        found += _measures(scenario, layout)
        found += _control(scenario, layout)
    found += _run(scenario)
    found += _search(scenario, layout)
    found += _campaign(scenario)
    problems = [scenario.problem_at(path, message) for path, message in found]
    if not problems:
        problems = _simulation(scenario) or _study(scenario)
    return problems


def _network(scenario: Scenario) -> tuple[Layout | None, list[Fault]]:
    if scenario.network is None:
        fixed = isinstance(scenario.testbed, Netns | Command) or (
            isinstance(scenario.testbed, Sim) and scenario.testbed.device is not None
        )
        if fixed:
            return Layout(FIXED_NODES, frozenset(FIXED_NODES), ()), []
        example = "{kind: star, hosts: 4, link: {rate: 10 Gbit/s}}"
        return None, [((), f"'network' is missing: nodes and links, such as {example}")]
    plan = plan_network(scenario.network)
    if plan.faults:
        return None, plan.faults
    try:
        return layout_of(plan.spec), []
    except _core.SpecError as error:
        message, pointer = error.args
        at = f"/network{pointer}" if not pointer.startswith("/network") else pointer
        while at and at not in plan.origins:
            at = at.rpartition("/")[0]
        return None, [(plan.origins.get(at, ("network",)), message)]


def _testbed(scenario: Scenario) -> Iterator[Fault]:
    bed = scenario.testbed
    has_device = isinstance(bed, Sim) and bed.device is not None
    if isinstance(bed, Netns) and (bed.router is None) == (bed.path is None):
        yield ("testbed",), "say what it builds: either 'router: linux' or 'path: emulator'"
        return
    own = "a device" if has_device else "a Linux router" if isinstance(bed, Netns) and bed.router else ""
    own = "a command" if isinstance(bed, Command) else own
    if own and scenario.network is not None:
        yield (
            ("network",),
            f"{own} has its own network, with the hosts 'sender' and 'receiver'; leave this out",
        )
    if own and scenario.search is None:
        yield ("testbed",), f"{own} is measured by a search; write 'search', or a network to simulate"
    if own:
        for section in ("queues", "record", "measure"):
            if getattr(scenario, section):
                yield (section,), f"{own} has none that could be named; leave this out"


def _queues(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    for name, queue in scenario.queues.items():
        yield from _ports(layout, queue.at, ("queues", name, "at"))


def _ports(layout: Layout, patterns: Sequence[str], path: Where) -> Iterator[Fault]:
    try:
        layout.port_ids(patterns)
    except NoMatchError as error:
        yield path, str(error)


def _nodes(layout: Layout, patterns: Sequence[str], path: Where, *, hosts: bool) -> Iterator[Fault]:
    try:
        names = [layout.nodes[i] for i in layout.node_ids(patterns)]
    except NoMatchError as error:
        yield path, str(error)
        return
    wrong = [name for name in names if (name in layout.hosts) != hosts]
    if wrong:
        yield path, f"only {'hosts' if hosts else 'switches'} can stand here (got {listed(wrong, 4)})"


def _traffic(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    for name, traffic in scenario.traffic.items():
        path: Where = ("traffic", name)
        varied = scenario.search is not None and scenario.search.vary.startswith(f"traffic.{name}.source.")
        amiss = [*_source(traffic, varied=varied), *_transport(traffic)]
        if traffic.stop is not None and traffic.stop <= traffic.start:
            amiss.append((("stop",), f"is not after 'start' ({traffic.start})"))
        yield from ((path + place, message) for place, message in amiss)
        try:
            flows = flows_of(traffic, layout)
            if not amiss and not varied:
                _gaps(traffic, flows, layout)
        except TrafficFault as fault:
            yield path + fault.path, str(fault)


def _gaps(traffic: Traffic, flows: list[Flow], layout: Layout) -> None:
    """Work out the departures of each flow, so that what is wrong with them is known."""
    source = traffic.source
    if not isinstance(source, Departing) or not layout.ports:
        return
    for flow in flows:
        port = layout.host_port(flow.source)
        process = departures(source, port)
        if isinstance(source, OnOff) and process is not None and port is not None:
            wire = sum(port.wire_ps(size) * weight for size, weight in frame_sizes(source))
            share = wire / sum(weight for _, weight in frame_sizes(source)) / process["gap_ps"]
            if share > 1 + 1e-9:
                message = f"while on, it would send at {share:.4g} times the line rate; lengthen 'mean_on'"
                raise TrafficFault(message, "source")


def _source(traffic: Traffic, *, varied: bool) -> Iterator[Fault]:
    source = traffic.source
    if not isinstance(source, Departing):
        return
    if source.load is not None and source.rate is not None:
        yield ("source", "rate"), "stands beside 'load'; write one of them"
    if source.load is None and source.rate is None and not varied:
        yield ("source",), "how much? write 'load: 50 %', 'rate: 300 Mbit/s' or 'rate: 10 kframe/s'"
    sizes = [name for name in ("frame_size", "mix", "payload") if getattr(source, name) is not None]
    if not sizes:
        yield (
            ("source",),
            "how long are the frames? write 'frame_size: 1500 B', 'mix: imix' or 'payload: 1470 B'",
        )
    for extra in sizes[1:]:
        yield ("source", extra), f"stands beside '{sizes[0]}'; write one of them"
    if source.payload is not None and isinstance(traffic.transport, Raw):
        yield (
            ("source", "payload"),
            "only 'transport: {kind: udp}' has a payload; write 'frame_size' for raw frames",
        )
    if isinstance(source, Bernoulli) and source.mix is not None:
        yield ("source", "mix"), "slots need frames of one size; write 'frame_size'"


def _transport(traffic: Traffic) -> Iterator[Fault]:
    match traffic.source, traffic.transport:
        case Bulk(), Raw() | Udp():
            yield (
                ("transport",),
                "bulk data needs a transport: {kind: tcp, congestion_control: {kind: reno}}",
            )
        case Departing(), Tcp():
            yield (
                ("transport",),
                "tcp carries 'source: {kind: bulk}'; this source sets its own rate: use raw or udp",
            )
        case Ping(), Tcp() | Udp():
            yield ("transport",), "echo requests have no transport; leave this out"
    if traffic.streams > 1 and not isinstance(traffic.transport, Tcp):
        yield ("streams",), "only tcp has several connections; write more entries of traffic"


def _records(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    names = list(scenario.traffic)
    taken: dict[tuple[str, int], str] = {}
    for name, record in scenario.record.items():
        match record:
            case QueueRecord():
                yield from _ports(layout, record.queue, ("record", name, "queue"))
                if not list(_ports(layout, record.queue, ())):
                    ids = [("port", i) for i in layout.port_ids(record.queue)]
                    yield from _twice(taken, ids, name, [port.name for port in layout.ports])
            case FlowRecord():
                yield from _traffic_names(record.flow, names, ("record", name, "flow"))
                ids = [("traffic", i) for i in selected_traffic(record.flow, names)]
                yield from _twice(taken, ids, name, names)
            case DelayRecord():
                yield from _traffic_names(record.delays, names, ("record", name, "delays"))
            case PStreamRecord():
                yield from _traffic_names(record.p_streams, names, ("record", name, "p_streams"))
            case LimiterRecord():
                yield from _nodes(layout, record.limiter, ("record", name, "limiter"), hosts=True)
            case FrameRecord():
                yield from _ports(layout, record.frames, ("record", name, "frames"))


def _twice(
    taken: dict[tuple[str, int], str], ids: list[tuple[str, int]], name: str, names: Sequence[str]
) -> Iterator[Fault]:
    for key in ids:
        if key in taken:
            yield ("record", name), f"'{names[key[1]]}' is recorded twice, also by '{taken[key]}'"
            return
        taken[key] = name


def _traffic_names(patterns: Sequence[str], names: Sequence[str], path: Where) -> Iterator[Fault]:
    for pattern in patterns:
        if not any(matches(pattern, name) for name in names):
            hint = did_you_mean(pattern, names) or f"; traffic: {listed(names) or 'none'}"
            yield path, f"no traffic is called '{pattern}'{hint}"


def _control(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    if scenario.control is None:
        return
    if (bcn := scenario.control.bcn) is not None:
        point: Where = ("control", "bcn", "congestion_point")
        yield from _ports(layout, bcn.congestion_point.at, (*point, "at"))
        yield from _nodes(
            layout, bcn.reaction_point.at, ("control", "bcn", "reaction_point", "at"), hosts=True
        )
        if isinstance(bcn.congestion_point.q_eq, Frames) and bcn.congestion_point.frame_size is None:
            yield (*point, "q_eq"), "frames of which size? write 'frame_size' beside it"
    if (pause := scenario.control.pause) is not None:
        yield from _nodes(layout, pause.at, ("control", "pause", "at"), hosts=False)
        if pause.xon >= pause.xoff:
            yield ("control", "pause", "xon"), f"is not below 'xoff' ({pause.xoff})"


def _measures(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    for name, measure in scenario.measure.items():
        path: Where = ("measure", name)
        window = getattr(measure, "window", None)
        if window is not None and scenario.run.duration is not None and window.high > scenario.run.duration:
            yield (*path, "window"), f"ends after the run ({scenario.run.duration})"
        if isinstance(measure, PortMeasure):
            amiss = list(_ports(layout, measure.of, (*path, "of")))
            yield from amiss or _port_data(scenario, layout, measure, path)
        else:
            amiss = list(_traffic_names(measure.of, list(scenario.traffic), (*path, "of")))
            yield from amiss or _flow_data(scenario, layout, measure, path)


def _port_data(scenario: Scenario, layout: Layout, measure: PortMeasure, path: Where) -> Iterator[Fault]:
    if measure.window is None:
        return
    records = [record for record in scenario.record.values() if isinstance(record, QueueRecord)]
    for port in layout.port_ids(measure.of):
        every = next((r.every for r in records if port in layout.port_ids(r.queue)), None)
        name = layout.ports[port].name
        if every is None:
            entry = f"{{queue: {name}, every: 100 us}}"
            yield (*path, "window"), f"needs '{name}' over time; add an entry such as {entry} to 'record'"
            return
        if not _on_edges(measure.window, every):
            yield (
                (*path, "window"),
                f"does not begin and end on intervals of {every}, in which '{name}' is recorded",
            )
            return


def _flow_data(scenario: Scenario, layout: Layout, measure: FlowMeasure, path: Where) -> Iterator[Fault]:
    names = list(scenario.traffic)
    chosen = selected_traffic(measure.of, names)
    if isinstance(measure, DelayPercentile):
        recorded = [r.delays for r in scenario.record.values() if isinstance(r, DelayRecord)]
        for i in chosen:
            if not any(i in selected_traffic(patterns, names) for patterns in recorded):
                entry = f"{{delays: {names[i]}}}"
                yield path, f"needs the delays of '{names[i]}'; add an entry such as {entry} to 'record'"
                return
    if not isinstance(measure, RmsFairness | JainFairness | DeliveredRate) or measure.window is None:
        return
    by_flow = not isinstance(measure, DeliveredRate)
    for i in chosen:
        several = by_flow and _flow_count(scenario.traffic[names[i]], layout) > 1
        record = next(
            (
                r
                for r in scenario.record.values()
                if isinstance(r, FlowRecord)
                and i in selected_traffic(r.flow, names)
                and (r.by == "flow" or not several)
            ),
            None,
        )
        if record is None:
            entry = f"{{flow: {names[i]}, {'by: flow, ' if several else ''}every: 1 ms}}"
            yield (*path, "window"), f"needs '{names[i]}' over time; add an entry such as {entry} to 'record'"
            return
        if not _on_edges(measure.window, record.every):
            yield (
                (*path, "window"),
                f"does not begin and end on intervals of {record.every}, in which '{names[i]}' is recorded",
            )
            return


def _flow_count(traffic: Traffic, layout: Layout) -> int:
    try:
        return sum(len(flow.targets) for flow in flows_of(traffic, layout))
    except TrafficFault:
        return 1


def _on_edges(window: Interval[Span], every: Span) -> bool:
    return window.low.ps % every.ps == 0 and window.high.ps % every.ps == 0


def _run(scenario: Scenario) -> Iterator[Fault]:
    if scenario.search is not None and scenario.campaign is not None:
        yield ("campaign",), "stands beside 'search'; a scenario has one of them"
    planned = scenario.search is not None or scenario.campaign is not None
    if scenario.run.duration is None and not planned:
        yield ("run",), "how long? write 'run: {duration: 100 ms}'"
    if not scenario.traffic:
        yield ("traffic",), "is missing: who sends what to whom"


def _search(scenario: Scenario, layout: Layout | None) -> Iterator[Fault]:
    search = scenario.search
    if search is None:
        return
    entries = {f"traffic.{name}.source.rate": name for name in scenario.traffic}
    name = entries.get(search.vary)
    if name is None:
        hint = did_you_mean(search.vary, entries) or f"; write {listed(map(repr, entries), 4)}"
        yield ("search", "vary"), f"there is no rate at '{search.vary}'{hint}"
        return
    source = scenario.traffic[name].source
    if not isinstance(source, Departing):
        yield ("search", "vary"), f"the source of '{name}' has no rate that a search could set"
    elif source.load is not None:
        yield ("traffic", name, "source", "load"), "is what the search varies as 'rate'; leave it out"
    elif source.mix is not None:
        yield ("traffic", name, "source", "mix"), "a search needs frames of one size; write 'frame_size'"
    if not search.goals:
        yield ("search", "goals"), "at least one goal is needed, such as NDR: {loss: 0 %, width: 0.5 %}"
    for goal_name, goal in search.goals.items():
        path: Where = ("search", "goals", goal_name)
        if goal.loss >= 1:
            yield (*path, "loss"), "a loss ratio below 100 % is needed"
        if goal.exceed_ratio >= 1:
            yield (*path, "exceed_ratio"), "a ratio below 100 % is needed"
        if goal.width is not None and not 1e-6 <= goal.width < 1:
            yield (*path, "width"), "a width from 0.0001 % to below 100 % is needed"
        if goal.duration_sum is not None and goal.duration_sum < search.trial.duration:
            yield (*path, "duration_sum"), f"is less than one trial ({search.trial.duration})"
    low = search.between.low
    if not isinstance(low, FrameRate) and layout is not None and not layout.ports and isinstance(low, float):
        yield (
            ("search", "between"),
            "this testbed has no line rate; write frame rates, such as [10 kframe/s, 400 kframe/s]",
        )
    elif (low if isinstance(low, float) else low.stored) == 0:
        yield ("search", "between"), "the least load is more than zero"


def _campaign(scenario: Scenario) -> Iterator[Fault]:
    if scenario.campaign is None:
        return
    taken: set[str] = set()
    for i, step in enumerate(scenario.campaign.cycle):
        path: Where = ("campaign", "cycle", i)
        yield from _traffic_names(step.run, list(scenario.traffic), (*path, "run"))
        if step.name in taken:
            yield (*path, "name"), f"two parts of the cycle are called '{step.name}'"
        taken.add(step.name)


def _simulation(scenario: Scenario) -> list[Problem]:
    """What the network itself refuses, where the scenario can be simulated as it stands."""
    simulable = isinstance(scenario.testbed, Sim) and scenario.network is not None
    if (
        not simulable
        or scenario.run.duration is None
        or scenario.search is not None
        or any(unsupported(scenario))
    ):
        return []
    try:
        resolve(scenario)
    except ScenarioError as error:
        return error.problems
    return []


def _study(scenario: Scenario) -> list[Problem]:
    """Faults of the levels, each assigned alone."""
    if scenario.study is None:
        return []
    problems: list[Problem] = []
    base = scenario.assign({"study": None})
    for factor, levels in scenario.study.factors.items():
        names = [level.name for level in levels]
        for level in levels:
            path: Where = ("study", "factors", factor, level.name)
            if names.count(level.name) > 1:
                problems.append(scenario.problem_at(path, f"two levels are called '{level.name}'"))
                break
            try:
                base.assign(level.assignments)
            except ScenarioError as error:
                problems += [_in_level(scenario, path, problem) for problem in error.problems]
    return problems


def _in_level(scenario: Scenario, path: Where, problem: Problem) -> Problem:
    """A problem that a level causes, at the place of that level."""
    inside = f"{problem.path}: {problem.message}" if problem.path else problem.message
    return scenario.problem_at(path, inside)
