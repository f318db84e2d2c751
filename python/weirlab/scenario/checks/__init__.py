"""What no field can say alone: names that must exist, fields that need or exclude each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weirlab import _core
from weirlab.errors import Problem, ScenarioError
from weirlab.scenario.checks.buffers import check_buffers
from weirlab.scenario.checks.control import check_control, marking_amiss
from weirlab.scenario.checks.measures import check_measures
from weirlab.scenario.checks.path import check_emulated
from weirlab.scenario.checks.plan import check_campaign, check_run, check_search
from weirlab.scenario.checks.records import check_records
from weirlab.scenario.checks.study import check_study
from weirlab.scenario.checks.traffic import check_traffic
from weirlab.scenario.file.problems import listed
from weirlab.scenario.network import ClassQueues, DropTail, marking_of
from weirlab.scenario.network.events import AnyEvent, BufferChange, Hold, LinkDown, Storm
from weirlab.scenario.network.layout import FIXED_NODES, Layout, layout_of, plan_network
from weirlab.scenario.network.selecting import Fault, ports_amiss
from weirlab.scenario.resolve import resolve, unsupported
from weirlab.scenario.sections import follows_from
from weirlab.scenario.testbeds import Gradual, Hosts, Netns, Sim, VhostPublished
from weirlab.spec import Where, origin_of
from weirlab.units import Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def faults(scenario: Scenario, broken: Collection[str] = ()) -> list[Problem]:
    """Every fault of a scenario whose fields are legal one by one.

    `broken` names sections that were left out because their fields are not legal; what depends on them is not
    judged.
    """
    whole = not broken
    found: list[Fault] = []
    layout: Layout | None = None
    if not {"network", "testbed"} & set(broken):
        layout, amiss = _network(scenario)
        found += amiss
    if layout is not None:
        found += _queues(scenario, layout)
        found += _events(scenario, layout, searched="search" not in broken)
        found += check_buffers(scenario, layout)
        found += check_control(scenario, layout)
        found += _traffic(scenario, layout, searched="search" not in broken)
        if not {"buffers", "traffic", "record", "control", "hotspots"} & set(broken):
            found += check_records(scenario, layout)
            found += _measures(scenario, layout)
    if whole:
        found += _testbed(scenario)
        found += _devices(scenario)
        found += check_run(scenario)
        found += _hotspots(scenario)
        found += _classes(scenario)
    if "traffic" not in broken:
        found += check_search(scenario, layout)
        found += check_campaign(scenario)
    problems = [scenario.problem_at(path, message) for path, message in found]
    if whole and not problems:
        problems = _simulation(scenario) or check_study(scenario)
    return problems


def _devices(scenario: Scenario) -> Iterator[Fault]:
    device = scenario.testbed.device if isinstance(scenario.testbed, Sim) else None
    at: Where = ("testbed", "device")
    match device:
        case Gradual() if device.onset >= device.capacity:
            yield (*at, "onset"), f"is not below the capacity ({device.capacity})"
        case VhostPublished() if device.overload_low > device.overload_high:
            yield (*at, "overload_low"), f"is not below 'overload_high' ({device.overload_high})"


@follows_from("network", "traffic", "search", "testbed")
def _traffic(scenario: Scenario, layout: Layout, *, searched: bool) -> Sequence[Fault]:
    return tuple(check_traffic(scenario, layout, searched=searched))


@follows_from("network", "buffers", "traffic", "hotspots", "record", "measure", "run", "testbed")
def _measures(scenario: Scenario, layout: Layout) -> Sequence[Fault]:
    return tuple(check_measures(scenario, layout))


@follows_from("network", "testbed")
def _network(scenario: Scenario) -> tuple[Layout | None, Sequence[Fault]]:
    if scenario.network is None:
        fixed = (
            bool(scenario.testbed.OWN_NETWORK)
            or isinstance(scenario.testbed, Netns | Hosts)
            or (
                isinstance(scenario.testbed, Sim)
                and (scenario.testbed.device is not None or bool(scenario.testbed.hops))
            )
        )
        if fixed:
            behind = scenario.testbed.hosts if isinstance(scenario.testbed, Netns) else ()
            nodes = (*FIXED_NODES, *behind)
            return Layout(nodes, frozenset(nodes), ()), []
        example = "{kind: star, hosts: 4, link: {rate: 10 Gbit/s}}"
        return None, [((), f"'network' is missing: nodes and links, such as {example}")]
    plan = plan_network(scenario.network)
    if plan.faults:
        return None, plan.faults
    try:
        return layout_of(plan.spec), ()
    except _core.SpecError as error:
        message, pointer = error.args
        return None, [(origin_of(plan.spec, pointer.removeprefix("/network"), scenario.fields_at), message)]


def _testbed(scenario: Scenario) -> Iterator[Fault]:
    bed = scenario.testbed
    has_device = isinstance(bed, Sim) and bed.device is not None
    if (
        isinstance(bed, Netns)
        and [bed.router is not None, bed.path is not None, bool(bed.hops)].count(True) != 1
    ):
        yield ("testbed",), "say what it builds: one of 'router: linux', 'path: emulator' and 'hops'"
        return
    if isinstance(bed, Netns | Sim) and bed.on_path:
        if has_device:
            yield ("testbed", "device"), "cannot be combined with a path; write one of them"
        yield from check_emulated(scenario, bed)
        return
    if isinstance(bed, Hosts):
        if scenario.campaign is None:
            yield ("campaign",), "is missing: what real hosts measure ('weir bulk')"
        for section in ("network", "queues", "control", "record", "measure", "search"):
            if getattr(scenario, section):
                yield (section,), "has no form on real hosts; leave this out"
        return
    own = "a device" if has_device else "a router" if isinstance(bed, Netns) and bed.router else ""
    if own := bed.OWN_NETWORK or own:
        yield from _own_network(scenario, own)


def _own_network(scenario: Scenario, own: str) -> Iterator[Fault]:
    """Faults of a scenario whose testbed is a network already."""
    if scenario.network is not None:
        yield (
            ("network",),
            f"{own} has its own network, with the hosts 'sender' and 'receiver'; leave this out",
        )
    if scenario.search is None:
        yield ("testbed",), f"{own} is measured by a search; write 'search', or a network to simulate"
    for section in ("queues", "record", "measure"):
        if getattr(scenario, section):
            yield (section,), f"{own} has none that could be named; leave this out"


def _events(scenario: Scenario, layout: Layout, *, searched: bool) -> Iterator[Fault]:
    duration, what = scenario.run.duration, "the run ends"
    if scenario.search is not None:
        duration = scenario.search.shortest_trial if searched else None
        what = "the shortest trials of the search end"
    for name, event in scenario.events.items():
        amiss = list(ports_amiss(layout, event.at, ("events", name, "at")))
        yield from amiss
        if event.until is not None and event.until <= event.when:
            yield ("events", name, "until"), f"is not after 'when' ({event.when})"
        elif not amiss:
            yield from _overlaps(scenario, layout, name)
        if duration is not None and event.when >= duration:
            yield ("events", name, "when"), f"starts after {what} ({duration})"


def _overlaps(scenario: Scenario, layout: Layout, name: str) -> Iterator[Fault]:
    """Earlier events of the file that change the same as event `name` while it lasts."""
    event = scenario.events[name]
    changed = _changed(event, layout)
    for other, before in scenario.events.items():
        if other == name:
            return
        apart = _ends_by(before, event.when) or _ends_by(event, before.when)
        if apart or type(before) is not type(event) or list(ports_amiss(layout, before.at, ())):
            continue
        both = changed.keys() & _changed(before, layout).keys()
        if both:
            line = scenario.problem_at(("events", other), "").line
            place = f"'{other}' (line {line})" if line else f"'{other}'"
            what = listed(dict.fromkeys(changed[key] for key in sorted(both)), 4)
            message = f"overlaps in time with {place}, which has the same kind, at {what}"
            yield ("events", name), f"{message}; end one before the other starts, or leave one out"


def _ends_by(event: AnyEvent, time: Span) -> bool:
    return event.until is not None and event.until <= time


def _changed(event: AnyEvent, layout: Layout) -> dict[tuple[int, int], str]:
    """What `event` changes, by port and class, with the names of the ports. A link is its two ports."""
    ports = {port: layout.ports[port].name for port in layout.port_ids(event.at)}
    classes: Collection[int] = (0,)
    match event:
        case LinkDown():
            ports |= {port ^ 1: layout.ports[port ^ 1].name for port in ports}
        case BufferChange(class_=int(class_)):
            classes = (class_,)
        case Hold() | Storm():
            classes = range(8) if event.classes is None else event.classes
    return {(port, class_): name for port, name in ports.items() for class_ in classes}


def _classes(scenario: Scenario) -> Iterator[Fault]:
    """Traffic classes and events are known to the simulator of networks alone."""
    bed = scenario.testbed
    if isinstance(bed, Sim) and not bed.on_path and bed.device is None:
        return
    for name, traffic in scenario.traffic.items():
        if not traffic.has_default("class_"):
            yield ("traffic", name, "class"), "means something in simulated networks only; leave this out"
    for name, queue in scenario.queues.items():
        if isinstance(queue, ClassQueues):
            yield ("queues", name), "has queues for classes, which simulated networks alone have"
    if scenario.events:
        yield ("events",), "happen in simulated networks only; leave this out"


def _hotspots(scenario: Scenario) -> Iterator[Fault]:
    duration = scenario.run.duration
    for name, hotspot in scenario.hotspots.items():
        if duration is not None and hotspot.window is not None and hotspot.window.low >= duration:
            yield ("hotspots", name, "window"), f"begins when the run has ended ({duration})"


def _queues(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    for name, queue in scenario.queues.items():
        amiss = list(ports_amiss(layout, queue.at, ("queues", name, "at")))
        yield from amiss
        if isinstance(queue, DropTail) and queue.overrun is not None:
            yield from ports_amiss(layout, queue.overrun.inputs, ("queues", name, "overrun", "inputs"))
        marking = marking_of(queue)
        if marking is not None and not amiss:
            yield from marking_amiss(layout, queue.at, marking, ("queues", name))


def _simulation(scenario: Scenario) -> list[Problem]:
    """What the network itself refuses, where the scenario can be simulated as it stands."""
    bed = scenario.testbed
    if not isinstance(bed, Sim) or bed.on_path or scenario.network is None or unsupported(scenario):
        return []
    try:
        if scenario.search is not None:
            longest_s = max(terms.duration.s for terms in scenario.search.terms.values())
            scenario.at_load(scenario.offered().max_fps, longest_s)
        elif scenario.run.duration is not None:
            resolve(scenario)
    except ScenarioError as error:
        when = "at the greatest load of the search: " if scenario.search is not None else ""
        return [replace(problem, message=f"{when}{problem.message}") for problem in error.problems]
    return []
