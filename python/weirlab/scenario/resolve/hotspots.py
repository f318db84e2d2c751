"""What hotspots make of a spec: sources of hot traffic, gaps in other traffic, outputs that serve less.

One file: what a hotspot sends, what it pauses and what it slows are worked out of the same loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab import spec as core
from weirlab.errors import ScenarioError
from weirlab.scenario.network.layout import Layout, NoMatchError, Port
from weirlab.scenario.network.selecting import EntryFault
from weirlab.scenario.traffic.hotspots import AnyHotspot, HotFlow, InputGenerated, OutputGenerated
from weirlab.spec import At, Runs, Where

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def add_hotspots(
    scenario: Scenario, layout: Layout, traffic: list[core.Traffic], duration_ps: int
) -> list[core.Service]:
    """Put the hotspots of a scenario into its resolved `traffic`, and return the services of its outputs.

    Raises ScenarioError, with the place, for what cannot be: more
    than a host can send, a host that is none, a hotspot of which another leaves nothing.
    """
    services: list[core.Service] = []
    problems = []
    outputs: list[str] = []
    lasting: set[str] = set()
    for name, hotspot in scenario.hotspots.items():
        at: Where = ("hotspots", name)
        try:
            host, port = _place(layout, hotspot.at)
            window = within_run(hotspot, duration_ps)
            if isinstance(hotspot, OutputGenerated):
                services.append(_output(name, hotspot, layout, host, port, traffic, window))
                outputs.append(name)
                without = {outputs[place] for place in _covered(services)}
                how = f"says what {hotspot.at} serves in all that is left of its time: leave one of them out"
            else:
                _input(name, hotspot, layout, host, traffic, window)
                still = {each for each in [*lasting, name] if _lasts(each, traffic)}
                without, lasting = lasting - still, still
                how = f"has all of its hosts send to {hotspot.at} alone in all of its time: name other hosts "
                how += "in 'flows', or write 'background: continues' there"
        except EntryFault as fault:
            problems.append(scenario.problem_at((*at, *fault.path), str(fault)))
            continue
        problems += [
            scenario.problem_at(
                ("hotspots", other),
                f"has no effect: '{name}', a later entry, {how}, or change a window",
            )
            for other in sorted(without)
        ]
    if problems:
        raise ScenarioError(problems)
    return services


def within_run(hotspot: AnyHotspot, duration_ps: int) -> tuple[int, int]:
    """From when until when a hotspot lasts in a run: its window as far as the run goes, or all of the run."""
    if hotspot.window is None:
        return 0, duration_ps
    low = hotspot.window.low.ps
    return low, max(low, min(hotspot.window.high.ps, duration_ps))


def _covered(services: Sequence[core.Service]) -> Iterator[int]:
    """Places of the services of which the last one leaves nothing, and those before it left something."""
    for place, service in enumerate(services[:-1]):
        later = [each for each in services[place + 1 :] if each.port == service.port]
        before = [each for each in later if each is not services[-1]]
        if _is_left(service, before) and not _is_left(service, later):
            yield place


def _is_left(service: core.Service, later: Sequence[core.Service]) -> bool:
    """Whether a service holds at any time at which none of the `later` ones does."""
    reached, end = service.from_ps, service.to_ps
    for each in sorted(later, key=lambda each: each.from_ps):
        if each.from_ps > reached:
            break
        reached = max(reached, each.to_ps)
    return reached < end


def _lasts(name: str, traffic: Sequence[core.Traffic]) -> bool:
    """Whether hosts send for an input-generated hotspot at any time."""
    own = (entry for entry in traffic if entry.hotspot == name)
    return any(source.start_ps < source.stop_ps for entry in own for source in entry.sources)


def _place(layout: Layout, name: str) -> tuple[int, int]:
    """The host of a hotspot, and the port towards it."""
    try:
        (host,) = layout.host_ids([name])
    except NoMatchError as error:
        raise EntryFault(str(error), "at") from None
    ports = [i for i, port in enumerate(layout.ports) if port.target == name]
    if len(ports) != 1:
        raise EntryFault(f"'{name}' has {len(ports)} links; a hotspot needs a host with one", "at")
    return host, ports[0]


def _output(
    name: str,
    hotspot: OutputGenerated,
    layout: Layout,
    host: int,
    port: int,
    traffic: list[core.Traffic],
    window: tuple[int, int],
) -> core.Service:
    if (hotspot.service is None) == (hotspot.severity is None):
        raise EntryFault("write either 'service' or 'severity'", "service" if hotspot.service else "severity")
    if hotspot.sources is not None and hotspot.degree is not None:
        raise EntryFault("cannot be combined with 'sources'; write one of them", "degree")
    senders = None
    if hotspot.sources is not None:
        senders = set(_hosts(layout, hotspot.sources, "sources"))
    elif hotspot.degree is not None:
        senders = set(_first(layout, hotspot.degree, without=None))
    if senders is not None:
        _avoid(traffic, host, senders)
    line = layout.ports[port]
    share = hotspot.service
    if share is None:
        assert hotspot.severity is not None
        arrivals = _arrivals(traffic, line, host, window)
        if not arrivals:
            message = (
                f"nothing is sent to '{hotspot.at}' in this time; write 'service', such as 'service: 20 %'"
            )
            raise EntryFault(message, "severity")
        share = arrivals / _severity(hotspot)
        if share > 1:
            message = f"{arrivals:.4g} line rates are offered: write at least {arrivals:.4g}"
            raise EntryFault(f"{message} (got {hotspot.severity:g})", "severity")
    return core.Service(
        port=port,
        rate_bps=max(1, round(share * line.rate_bps)),
        from_ps=window[0],
        to_ps=window[1],
        origin=At("hotspots", name, "window"),
    )


def _input(
    name: str,
    hotspot: InputGenerated,
    layout: Layout,
    host: int,
    traffic: list[core.Traffic],
    window: tuple[int, int],
) -> None:
    loads = _hot_loads(hotspot, layout, host)
    _, port = _place(layout, hotspot.at)
    line = layout.ports[port]
    size = _hot_size(hotspot, traffic)
    mean_burst = _mean_burst(hotspot, traffic)
    if mean_burst < 1:
        message = f"a burst has at least one frame: write 1 for single frames (got {mean_burst:g})"
        raise EntryFault(message, "mean_burst")
    by_chance = _starts_by_chance(hotspot, traffic)
    if hotspot.background == "stops":
        _pause_background(name, traffic, set(loads), window)
    if hotspot.severity is not None:
        if hotspot.flows is not None:
            raise EntryFault("cannot be combined with 'flows'; write one of them", "severity")
        needed = _severity(hotspot) - _arrivals(traffic, line, host, window)
        each = needed / len(loads)
        if not 0 < each <= 1:
            message = (
                _too_severe(hotspot.severity, needed, len(loads), len(layout.hosts) - (not hotspot.own))
                if each > 1
                else f"the other traffic alone offers {hotspot.severity - needed:.4g} line rates there: "
                f"write more than that (got {hotspot.severity:g})"
            )
            raise EntryFault(message, "severity")
        loads = dict.fromkeys(loads, each)
    sources: list[core.Source] = []
    origin = At("hotspots", name, start_ps="window")
    frames = core.FrameSizeFixed(fixed=size, origin=At("hotspots", name, "frame_size"))
    for sender, load in loads.items():
        own = layout.host_port(sender)
        assert own is not None, "a host that sends has a port"
        sources.append(
            core.Source(
                from_=sender,
                to=core.DestinationUniform(uniform=[host])
                if sender == host
                else core.DestinationNode(node=host),
                start_ps=window[0],
                stop_ps=window[1],
                departures=core.DeparturesBursts(
                    slot_ps=own.wire_ps(size), load=load, mean_frames=mean_burst, starts_by_chance=by_chance
                ),
                frame_size=frames,
                stream=core.StreamNamed(),
                origin=origin,
            )
        )
    traffic.append(
        core.Traffic(
            name=f"hotspot-{name}",
            class_=0,
            sources=sources,
            tcp=None,
            probers=None,
            messages=None,
            hotspot=name,
            continues=None,
            origin=At("hotspots", name),
        )
    )


def _too_severe(severity: float, needed: float, senders: int, most: int) -> str:
    """Why so many hosts do not offer the line rates that are needed, and what to write: a greater degree, or
    where all hosts that there can be are too few, a severity that these give."""
    each = needed / senders
    hosts = "1 host" if senders == 1 else f"{senders} hosts"
    reported = f"{hosts} would have to send {each:.4g} line rates" + (" each" if senders > 1 else "")
    if needed <= most:
        return f"{reported}; choose a greater degree"
    others = severity - needed
    greatest = round(others + senders, 3)
    if greatest - others > senders:
        greatest = round(greatest - 0.001, 3)
    reported = f"{reported}, and no degree is great enough"
    return f"{reported}: write at most {greatest:.12g} with this one (got {severity:g})"


def _hot_loads(hotspot: InputGenerated, layout: Layout, host: int) -> dict[int, float]:
    """Who sends how much to an input-generated hotspot."""
    if (hotspot.flows is None) == (hotspot.degree is None):
        raise EntryFault("write either 'degree' or 'flows'", "flows" if hotspot.flows else "degree")
    if hotspot.degree is not None:
        senders = _first(layout, hotspot.degree, without=None if hotspot.own else host)
        return dict.fromkeys(senders, 1.0)
    assert hotspot.flows is not None
    if not hotspot.flows:
        example = "[{from: host-1, load: 50 %}, {from: host-2}]"
        raise EntryFault(f"is empty: write who sends, such as {example}, or 'degree'", "flows")
    if hotspot.own:
        raise EntryFault(
            f"cannot be combined with 'flows': name '{hotspot.at}' there, or leave this out", "own"
        )
    named = hosts_of_flows(hotspot.flows, layout)
    loads: dict[int, float] = {}
    for i, flow in enumerate(hotspot.flows):
        if all(any(sender in later for later in named[i + 1 :]) for sender in named[i]):
            message = "all of these hosts are named again below, where their load counts; name each once"
            raise EntryFault(message, "flows", i, "from")
        loads |= dict.fromkeys(named[i], flow.load)
    return loads


def hosts_of_flows(flows: Sequence[HotFlow], layout: Layout) -> list[list[int]]:
    """The hosts of each entry of a hot flow matrix. Raises EntryFault."""
    return [_hosts(layout, flow.from_, "flows", i, "from") for i, flow in enumerate(flows)]


def _hot_size(hotspot: InputGenerated, traffic: list[core.Traffic]) -> int:
    if hotspot.frame_size is not None:
        return hotspot.frame_size.bytes
    for source in _all_sources(traffic):
        if isinstance(source.frame_size, core.FrameSizeFixed):
            return source.frame_size.fixed
    raise EntryFault("how long are the hot frames? write 'frame_size: 64 B'", "frame_size")


def _mean_burst(hotspot: InputGenerated, traffic: list[core.Traffic]) -> float:
    if hotspot.mean_burst is not None:
        return hotspot.mean_burst
    return next((each.mean_frames for each in _bursts_of(traffic)), 1.0)


def _starts_by_chance(hotspot: InputGenerated, traffic: list[core.Traffic]) -> bool:
    if hotspot.starts is not None:
        return hotspot.starts == "chance"
    return next((each.starts_by_chance for each in _bursts_of(traffic)), False)


def _bursts_of(traffic: list[core.Traffic]) -> Iterator[core.DeparturesBursts]:
    found = (source.departures for source in _all_sources(traffic))
    return (each for each in found if isinstance(each, core.DeparturesBursts))


def _hosts(layout: Layout, selector: tuple[str, ...], *path: str | int) -> list[int]:
    try:
        return layout.host_ids(selector)
    except NoMatchError as error:
        raise EntryFault(str(error), *path) from None


def _first(layout: Layout, degree: float, without: int | None) -> list[int]:
    """The first hosts, as many as the degree says, but at least one."""
    hosts = [i for i, node in enumerate(layout.nodes) if node in layout.hosts and i != without]
    return hosts[: degree_hosts(layout, degree)]


def degree_hosts(layout: Layout, degree: float) -> int:
    """How many hosts a degree stands for, at least one."""
    return max(1, round(degree * len(layout.hosts)))


def _severity(hotspot: OutputGenerated | InputGenerated) -> float:
    assert hotspot.severity is not None
    if hotspot.severity <= 1:
        raise EntryFault(f"only what is above 1 is a hotspot (got {hotspot.severity:g})", "severity")
    return hotspot.severity


def _avoid(traffic: list[core.Traffic], host: int, senders: set[int]) -> None:
    """Take `host` from the destinations of all that are not among the senders."""

    def avoiding(source: core.Source) -> core.Source:
        if source.from_ in senders or not isinstance(source.to, core.DestinationUniform):
            return source
        others = Runs(source.to.uniform).without(host)
        if len(others) in (0, len(source.to.uniform)):
            return source
        return _changed(source, to=core.DestinationUniform(uniform=others))

    for place, entry in enumerate(traffic):
        traffic[place] = _with_sources(entry, [avoiding(source) for source in entry.sources])


def _pause_background(
    name: str, traffic: list[core.Traffic], hosts: set[int], window: tuple[int, int]
) -> None:
    """Interrupt the sources of some hosts; what follows the hotspot is traffic of its own."""
    begin, end = window
    later_entries: list[core.Traffic] = []
    origin = At("hotspots", name, start_ps="window")
    for place, entry in enumerate(traffic):
        sooner: list[core.Source] = []
        later: list[core.Source] = []
        for source in entry.sources:
            if source.from_ not in hosts or source.stop_ps <= begin or source.start_ps >= end:
                sooner.append(source)
                continue
            if source.stop_ps > end:
                later.append(_changed(source, start_ps=end, origin=origin))
            sooner.append(_changed(source, stop_ps=max(begin, source.start_ps)))
        traffic[place] = _with_sources(entry, sooner)
        if later:
            later_entries.append(
                core.Traffic(
                    name=f"{entry.name}-after-{name}",
                    class_=entry.class_,
                    sources=later,
                    tcp=None,
                    probers=None,
                    messages=None,
                    hotspot=entry.hotspot,
                    continues=place,
                    origin=At("hotspots", name),
                )
            )
    traffic.extend(later_entries)


def _changed(
    source: core.Source,
    *,
    to: core.Destination | None = None,
    start_ps: int | None = None,
    stop_ps: int | None = None,
    origin: At | None = None,
) -> core.Source:
    """The same source with other destinations, or at another time."""
    return core.Source(
        from_=source.from_,
        to=source.to if to is None else to,
        start_ps=source.start_ps if start_ps is None else start_ps,
        stop_ps=source.stop_ps if stop_ps is None else stop_ps,
        departures=source.departures,
        frame_size=source.frame_size,
        stream=source.stream,
        origin=origin or source.origin,
    )


def _with_sources(entry: core.Traffic, sources: Sequence[core.Source]) -> core.Traffic:
    """The same entry of traffic with other sources."""
    return core.Traffic(
        name=entry.name,
        class_=entry.class_,
        sources=sources,
        tcp=entry.tcp,
        probers=entry.probers,
        messages=entry.messages,
        hotspot=entry.hotspot,
        continues=entry.continues,
        origin=entry.origin,
    )


def continuations(traffic: Sequence[core.Traffic]) -> dict[int, int]:
    """Places of the entries that are the rest of another, which hotspots have interrupted, each with the
    place of that one."""
    wholes: dict[int, int] = {}
    for place, entry in enumerate(traffic):
        if entry.continues is not None:
            wholes[place] = wholes.get(entry.continues, entry.continues)
    return wholes


def _arrivals(traffic: list[core.Traffic], line: Port, host: int, window: tuple[int, int]) -> float:
    """What is offered to a host in the middle of the window, in line rates of the port towards it."""
    middle = (window[0] + window[1]) / 2
    total = 0.0
    for source in _all_sources(traffic):
        targets = targets_of(source)
        if host in targets and source.start_ps <= middle < source.stop_ps:
            size = mean_size_bytes(source)
            total += mean_rate_fps(source.departures) / len(targets) * line.wire_ps(round(size)) / 1e12
    return total


def _all_sources(traffic: Sequence[core.Traffic]) -> Iterator[core.Source]:
    for entry in traffic:
        yield from entry.sources


def targets_of(source: core.Source) -> Sequence[int]:
    """Ids of the hosts that a source of a spec sends to, all alike."""
    return [source.to.node] if isinstance(source.to, core.DestinationNode) else source.to.uniform


def mean_size_bytes(source: core.Source) -> float:
    """Mean frame size of a source of a spec."""
    if isinstance(source.frame_size, core.FrameSizeFixed):
        return float(source.frame_size.fixed)
    sizes = source.frame_size.mix
    return sum(size * weight for size, weight in sizes) / sum(weight for _, weight in sizes)


def mean_rate_fps(departures: core.Departures) -> float:
    """Mean rate of a departure process of a spec, in frames/s."""
    match departures:
        case core.DeparturesPoisson():
            return 1e12 / departures.mean_gap_ps
        case core.DeparturesConstant():
            return 1e12 / departures.gap_ps
        case core.DeparturesBernoulli():
            return 1e12 * departures.probability / departures.slot_ps
        case core.DeparturesBursts():
            return 1e12 * departures.load / departures.slot_ps
        case core.DeparturesOnOff():
            on, off = departures.mean_on_ps, departures.mean_off_ps
            return 1e12 / departures.gap_ps * on / (on + off)
