"""The hotspots of a scenario in numbers: severity, degree, their classes, and what a network could carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weirlab import spec as core
from weirlab.heavy import np
from weirlab.measures.utilisation import Utilisation
from weirlab.scenario import Scenario
from weirlab.scenario.file.problems import listed
from weirlab.scenario.network.layout import Layout, layout_of, plan_network
from weirlab.scenario.resolve import translated
from weirlab.scenario.resolve.hotspots import degree_hosts, hosts_of_flows
from weirlab.scenario.traffic.demands import demands, middle_ps, services, window_ps
from weirlab.scenario.traffic.hotspots import AnyHotspot, InputGenerated, OutputGenerated
from weirlab.theory.hotspot import Hotspot, degree_class, severity_class
from weirlab.units import Span

MOST_HOSTS = 256
"""The shares without control are worked out for networks up to this size."""


@dataclass(frozen=True)
class HotspotFacts:
    """One hotspot, computed for what is simulated."""

    name: str
    kind: str
    at: str
    severity: float
    """HSV."""
    degree: float
    """HSD."""
    sources: int
    """Hosts that make it: HSD as a number of flows."""
    service: float
    """What the hot output serves, in line rates: mu."""
    throughput_max: float
    """Aggregate throughput with perfect control, as a share of capacity."""
    innocent_max: float | None
    """What outputs that are no hotspot could carry, as a share of theirs; None where there are none."""
    throughput_without_control: float | None
    """The aggregate when the hot frames fill the shared memory of a single switch, which stops the hosts by
    PAUSE; None for large or several switches, and where hosts are not stopped: frames are lost instead."""
    contradictions: tuple[str, ...]
    """Where the scenario's own words do not fit."""
    loads_known: bool = True
    """Whether all traffic offers a load that is known; streams of TCP offer what they can get, and count for
    nothing."""
    steady: bool = True
    """Whether loads and services stay the same all through its window; if not, numbers are of its middle."""
    remarks: tuple[str, ...] = ()
    """Where what is simulated is not what was asked for, or other hotspots take part."""

    @property
    def severity_class(self) -> str:
        """`mild`, `moderate`, `severe`."""
        return severity_class(self.severity)

    @property
    def degree_class(self) -> str:
        """`small`, `medium`, `large`, or between two of them."""
        return degree_class(self.degree)


def hotspot_facts(scenario: Scenario) -> list[HotspotFacts]:
    """All hotspots of a scenario, in the order of the file. All that are there in the middle of the window of
    one count for it. Raises what resolving the scenario raises."""
    if not scenario.hotspots:
        return []
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    return [_facts(name, scenario.hotspots, spec, layout) for name in scenario.hotspots]


def utilisation_measures(scenario: Scenario) -> tuple[str | None, str | None]:
    """Which measures of a scenario with one hotspot are the aggregate throughput, which is the utilisation of
    several outputs, and the utilisation of the hot output: the first of each, by name."""
    if scenario.network is None:
        return None, None
    layout = layout_of(plan_network(scenario.network).spec)
    (hotspot,) = scenario.hotspots.values()
    throughput = hot = None
    for name, measure in scenario.measure.items():
        if isinstance(measure, Utilisation):
            targets = [layout.ports[port].target for port in layout.port_ids(measure.of)]
            if targets == [hotspot.at]:
                hot = hot or name
            elif len(targets) > 1:
                throughput = throughput or name
    return throughput, hot


def _facts(name: str, hotspots: Mapping[str, AnyHotspot], spec: core.Spec, layout: Layout) -> HotspotFacts:
    hotspot = hotspots[name]
    middle = middle_ps(hotspot, spec)
    hosts = [i for i, node in enumerate(layout.nodes) if node in layout.hosts]
    places = np.zeros(len(layout.nodes), np.int64)
    places[hosts] = range(len(hosts))
    hot_host = layout.nodes.index(hotspot.at)
    rows = np.zeros((len(hosts), len(hosts))) if len(hosts) <= MOST_HOSTS else None
    offered = np.zeros(len(hosts))
    makers: set[int] = set()
    for own, targets, load in demands(spec, layout, middle):
        at = places[list(targets)]
        np.add.at(offered, at, load)
        if rows is not None:
            np.add.at(rows[places[own]], at, load)
        if hot_host in targets:
            makers.add(own)
    if isinstance(hotspot, InputGenerated):
        # Hosts that a later hotspot has for itself then send nothing for this one.
        makers = {
            source.from_
            for entry in spec.traffic
            if entry.hotspot == name
            for source in entry.sources
            if source.start_ps <= middle < source.stop_ps
        }
    served = np.array(services(spec, layout, hosts, middle))
    hot = int(places[hot_host])
    severity = float(offered[hot] / served[hot])
    degree = _degree(hotspot, makers, hosts)
    without = None
    switches = len(layout.nodes) - len(hosts)
    if rows is not None and switches == 1 and _pauses(spec):
        spot = Hotspot(tuple(map(tuple, rows.tolist())), tuple(served.tolist()), hot, len(makers))
        without = spot.throughput_without_control
    carried = np.minimum(offered, served)
    changes = _changes(window_ps(hotspot, spec), spec)
    streams = [entry.name for entry in spec.traffic if entry.tcp is not None]
    named = {each.at for each in hotspots.values()}
    innocent = [place for place, host in enumerate(hosts) if layout.nodes[host] not in named]
    return HotspotFacts(
        name=name,
        kind=hotspot.kind,
        at=hotspot.at,
        severity=severity,
        degree=degree,
        sources=len(makers),
        service=float(served[hot]),
        throughput_max=float(carried.sum()) / len(hosts),
        innocent_max=float(carried[innocent].mean()) if innocent else None,
        throughput_without_control=without,
        contradictions=() if streams else tuple(_contradictions(hotspot, severity, degree)),
        loads_known=not streams,
        steady=not changes,
        remarks=(
            *(
                [
                    f"loads or services change at {listed([str(Span(edge)) for edge in changes], 3)} in its "
                    "window: the numbers hold in its middle only, and nothing measured is set against them"
                ]
                if changes
                else []
            ),
            *(
                [f"TCP offers what it can get: severity and throughput do not count {listed(streams, 3)}"]
                if streams
                else []
            ),
            *_asked_and_got(hotspot, severity, makers, hosts, layout),
            *_not_kept_off(hotspot, makers, hosts, spec, layout),
            *_own_words(name, hotspot, spec, layout),
            *_company(name, hotspots, spec),
        ),
    )


def _changes(window: tuple[int, int], spec: core.Spec) -> list[int]:
    """When traffic or services begin or end inside of a window [ps]; the end of the run is none."""
    sources = [
        (source.start_ps, source.stop_ps)
        for entry in spec.traffic
        for source in entry.sources
        if source.start_ps < source.stop_ps
    ]
    slow = [(each.from_ps, each.to_ps) for each in spec.switching.services]
    end = min(window[1], spec.run.duration_ps)
    return sorted({edge for pair in (*sources, *slow) for edge in pair if window[0] < edge < end})


def _pauses(spec: core.Spec) -> bool:
    """Whether switches have a shared memory that stops their neighbors by PAUSE."""
    return any(memory.pause is not None for memory in spec.switching.memories)


def _degree(hotspot: AnyHotspot, makers: set[int], hosts: list[int]) -> float:
    """Uniform traffic of all others to an output is a degree of 100 %: nobody sends to itself."""
    if isinstance(hotspot, InputGenerated):
        return len(makers) / len(hosts)
    own = len(hosts) - 1
    return 1.0 if len(makers) >= own else len(makers) / len(hosts)


def _contradictions(hotspot: AnyHotspot, severity: float, degree: float) -> Iterator[str]:
    found = severity_class(severity)
    if hotspot.called is not None and hotspot.called != found:
        yield (
            f"called '{hotspot.called}', but a severity of {severity:.2f} is '{found}' "
            "(mild up to 2, moderate up to 10, severe above)"
        )
    if found == "none":
        yield f"no hotspot: a severity of {severity:.2f} is not above 1"
    if degree_class(degree).startswith("between"):
        classes = "small below 10 %, medium 20 to 60 %, large above 90 %"
        yield f"a degree of {degree:.0%} is in no class ({classes})"


def _asked_and_got(
    hotspot: AnyHotspot, severity: float, makers: set[int], hosts: list[int], layout: Layout
) -> Iterator[str]:
    """Where the numbers are not those that the scenario asks for."""
    if hotspot.severity is not None and abs(severity / hotspot.severity - 1) > 0.005:
        yield (
            f"a severity of {hotspot.severity:g} is requested; with all that is offered there in the middle "
            f"of its window it is {severity:.2f}"
        )
    if hotspot.degree is None or abs(len(makers) / len(hosts) - hotspot.degree) < 0.005:
        return
    count = degree_hosts(layout, hotspot.degree)
    text = f"a degree of {hotspot.degree:.3g} stands for {count} of {len(hosts)} hosts"
    hint = ""
    verb = "makes" if len(makers) == 1 else "make"
    if len(makers) < count and isinstance(hotspot, InputGenerated):
        text += f"; in the middle of its window {len(makers)} {verb} it"
    elif len(makers) < count:
        text += f"; {hotspot.at} is among the first {count} and does not send to itself, so that"
        text += f" {len(makers)} {verb} it"
        if len(hosts) > count:
            hint = f"; 'sources' instead of 'degree' can name {count} others"
    yield f"{text}: {len(makers) / len(hosts):.2%}{hint}"


def _not_kept_off(
    hotspot: AnyHotspot, makers: set[int], hosts: list[int], spec: core.Spec, layout: Layout
) -> Iterator[str]:
    """Hosts that send to an output-generated hotspot although they are not named."""
    if isinstance(hotspot, InputGenerated) or (hotspot.sources is None and hotspot.degree is None):
        return
    if hotspot.sources is not None:
        named = set(layout.host_ids(hotspot.sources))
    else:
        assert hotspot.degree is not None
        named = set(hosts[: degree_hosts(layout, hotspot.degree)])
    rushing = {
        source.from_ for entry in spec.traffic if entry.hotspot is not None for source in entry.sources
    }
    if others := sorted(makers - named - rushing):
        names = listed([layout.nodes[host] for host in others], 3)
        yield (
            f"{names} send{'s' if len(others) == 1 else ''} to {hotspot.at} all the same: only uniform "
            "traffic that has other destinations is kept off it"
        )


def _own_words(name: str, hotspot: AnyHotspot, spec: core.Spec, layout: Layout) -> Iterator[str]:
    """What an entry says that may not be meant."""
    end = spec.run.duration_ps
    if hotspot.window is not None and hotspot.window.high.ps > end:
        yield f"its window goes on to {hotspot.window.high}, and the run ends at {Span(end)}"
    if not isinstance(hotspot, InputGenerated):
        return
    if hotspot.flows is not None:
        named = hosts_of_flows(hotspot.flows, layout)
        for i, senders in enumerate(named):
            again = [host for host in senders if any(host in later for later in named[i + 1 :])]
            if again:
                names = listed([layout.nodes[host] for host in again], 3)
                yield (
                    f"{names} of 'flows.{i}' stand{'s' if len(again) == 1 else ''} in a later entry as well, "
                    "whose load counts"
                )
    loads = _loads(name, spec)
    hot = layout.nodes.index(hotspot.at)
    if hot in loads and not hotspot.own:
        yield f"{hotspot.at} is among its own sources: its line carries what it sends to itself both ways"
    if hotspot.background == "continues":
        begin, stop = window_ps(hotspot, spec)
        offered: dict[int, float] = {}
        for sender, receivers, load in demands(spec, layout, (begin + stop) / 2):
            offered[sender] = offered.get(sender, 0.0) + load * len(receivers)
        over = [offered[host] for host in loads if offered.get(host, 0.0) > 1.0 + 1e-9]
        if over:
            yield (
                f"{len(over)} of its hosts are offered up to {max(over):.3g} line rates, as their "
                "background goes on: severity and degree count what is offered, not what their lines carry"
            )


def _company(name: str, hotspots: Mapping[str, AnyHotspot], spec: core.Spec) -> Iterator[str]:
    """Other hotspots that share the output, or hosts that send, at the same time."""
    hotspot = hotspots[name]
    mine, senders = window_ps(hotspot, spec), _loads(name, spec)
    for other, beside in hotspots.items():
        theirs = window_ps(beside, spec)
        begin, end = max(mine[0], theirs[0]), min(mine[1], theirs[1])
        if other == name or begin >= end:
            continue
        when = f"from {Span(begin)} to {Span(end)}"
        if beside.at == hotspot.at:
            if isinstance(hotspot, OutputGenerated) and isinstance(beside, OutputGenerated):
                later = [each for each in hotspots if each in (name, other)][1]
                what = f"the output serves what '{later}' says, the later entry"
            else:
                what = "severity and degree count what both offer there"
            yield f"'{other}' is at {beside.at}, too, {when}: {what}"
        both_loads = _loads(other, spec)
        shared = senders.keys() & both_loads.keys()
        last = hotspots[[each for each in hotspots if each in (name, other)][1]]
        if shared and isinstance(last, InputGenerated) and last.background == "stops":
            yield (
                f"{len(shared)} of its hosts are hosts of '{other}' as well {when}: they send to {last.at} "
                "alone then, as the later entry says; with 'background: continues' there they send to both"
            )
        elif busy := [host for host in shared if senders[host] + both_loads[host] > 1]:
            yield (
                f"{len(busy)} of its hosts send to '{other}' as well {when}: "
                "both loads together are more than a line carries"
            )


def _loads(name: str, spec: core.Spec) -> dict[int, float]:
    """What each host sends of the traffic that an input-generated hotspot adds, in line rates."""
    return {
        source.from_: source.departures.load
        for entry in spec.traffic
        if entry.hotspot == name and entry.continues is None
        for source in entry.sources
        if isinstance(source.departures, core.DeparturesBursts)
    }
