"""What is wrong with records and measures beyond single fields: above all, data that nobody records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab.scenario.flows import flows_of
from weirlab.scenario.hotspots import InputGenerated
from weirlab.scenario.layout import Layout
from weirlab.scenario.measure import (
    BurstDelay,
    CompletionTime,
    DelayPercentile,
    DeliveredRate,
    DropTime,
    Estimate,
    FlowMeasure,
    Goodput,
    PortMeasure,
    QueuePercentile,
    QueueSpread,
    RecoveryTime,
    RelativeFairness,
    TimeToConverge,
    WindowedPortMeasure,
)
from weirlab.scenario.probing import Probing
from weirlab.scenario.problems import did_you_mean, listed
from weirlab.scenario.rapid import Rapid
from weirlab.scenario.record import (
    DelayRecord,
    FlowRecord,
    FrameRecord,
    LevelRecord,
    LimiterRecord,
    PStreamRecord,
    QueueRecord,
    TcpRecord,
)
from weirlab.scenario.resolve import selected_traffic
from weirlab.scenario.selecting import EntryFault, Fault, Where, nodes_amiss, ports_amiss, traffic_amiss
from weirlab.scenario.traffic import Tcp, Traffic
from weirlab.units import Interval, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

__all__ = ["check_measures", "check_records"]


def check_records(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `record`."""
    names = list(scenario.traffic)
    taken: dict[tuple[str, int], str] = {}
    for name, record in scenario.record.items():
        match record:
            case QueueRecord():
                yield from ports_amiss(layout, record.queue, ("record", name, "queue"))
                if not list(ports_amiss(layout, record.queue, ())):
                    ids = [("port", i) for i in layout.port_ids(record.queue)]
                    yield from _twice(taken, ids, name, [port.name for port in layout.ports])
            case FlowRecord():
                yield from traffic_amiss(record.flow, names, ("record", name, "flow"))
                ids = [(record.by, i) for i in selected_traffic(record.flow, names)]
                yield from _twice(taken, ids, name, names)
            case TcpRecord():
                yield from traffic_amiss(record.tcp, names, ("record", name, "tcp"))
                chosen = selected_traffic(record.tcp, names)
                yield from _twice(taken, [("tcp", i) for i in chosen], name, names)
                for i in chosen:
                    if not isinstance(scenario.traffic[names[i]].transport, Tcp):
                        yield ("record", name, "tcp"), f"no tcp carries the traffic '{names[i]}'"
            case DelayRecord():
                yield from traffic_amiss(record.delays, names, ("record", name, "delays"))
            case PStreamRecord():
                yield from traffic_amiss(record.p_streams, names, ("record", name, "p_streams"))
                chosen = selected_traffic(record.p_streams, names)
                yield from _twice(taken, [("p_streams", i) for i in chosen], name, names)
                for i in chosen:
                    transport = scenario.traffic[names[i]].transport
                    if not (isinstance(transport, Tcp) and isinstance(transport.congestion_control, Rapid)):
                        place = ("record", name, "p_streams")
                        yield place, f"the traffic '{names[i]}' has no probe streams: no 'rapid' carries it"
            case LimiterRecord():
                path: Where = ("record", name, "limiter")
                amiss = list(nodes_amiss(layout, record.limiter, path, hosts=True))
                yield from amiss or _unlimited(scenario, layout, record, path)
                if not amiss:
                    ids = [("limiter", i) for i in layout.host_ids(record.limiter)]
                    yield from _twice(taken, ids, name, layout.nodes)
            case LevelRecord():
                yield from ports_amiss(layout, record.levels, ("record", name, "levels"))
                if not list(ports_amiss(layout, record.levels, ())):
                    ids = [("levels", i) for i in layout.port_ids(record.levels)]
                    yield from _twice(taken, ids, name, [port.name for port in layout.ports])
                yield from _ends_late(scenario, name, record.window)
            case FrameRecord():
                yield from ports_amiss(layout, record.frames, ("record", name, "frames"))
                if not list(ports_amiss(layout, record.frames, ())):
                    ids = [("frames", i) for i in layout.port_ids(record.frames)]
                    yield from _twice(taken, ids, name, [port.name for port in layout.ports])
                yield from _ends_late(scenario, name, record.window)


def _ends_late(scenario: Scenario, name: str, window: Interval[Span] | None) -> Iterator[Fault]:
    duration = scenario.run.duration
    if window is not None and duration is not None and window.high > duration:
        yield ("record", name, "window"), f"ends after the run ({duration})"


def _twice(
    taken: dict[tuple[str, int], str], ids: list[tuple[str, int]], name: str, names: Sequence[str]
) -> Iterator[Fault]:
    for key in ids:
        if key in taken:
            yield ("record", name), f"'{names[key[1]]}' is recorded twice, also by '{taken[key]}'"
            return
        taken[key] = name


def _unlimited(scenario: Scenario, layout: Layout, record: LimiterRecord, path: Where) -> Iterator[Fault]:
    """Hosts that have no limiter."""
    control = scenario.control
    schemes = (control.bcn, control.qcn, control.dcqcn) if control is not None else ()
    obeying: set[int] = set()
    for scheme in schemes:
        if scheme is None:
            continue
        if list(nodes_amiss(layout, scheme.reaction_point.at, ())):
            return
        obeying |= set(layout.node_ids(scheme.reaction_point.at))
    free = [layout.nodes[i] for i in layout.host_ids(record.limiter) if i not in obeying]
    if free:
        yield path, f"{listed(free, 4)} has no rate limiter: it is no reaction point of 'control'"


def check_measures(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `measure`."""
    for name, measure in scenario.measure.items():
        path: Where = ("measure", name)
        window = getattr(measure, "window", None)
        if window is not None and scenario.run.duration is not None and window.high > scenario.run.duration:
            yield (*path, "window"), f"ends after the run ({scenario.run.duration})"
        if isinstance(measure, RecoveryTime | RelativeFairness) and measure.hotspot not in scenario.hotspots:
            hint = did_you_mean(measure.hotspot, scenario.hotspots)
            yield (*path, "hotspot"), f"no hotspot is called '{measure.hotspot}'{hint}"
            continue
        if isinstance(measure, PortMeasure):
            amiss = list(ports_amiss(layout, measure.of, (*path, "of")))
            yield from amiss or _port_data(scenario, layout, measure, path)
        else:
            names = [*scenario.traffic, *_hot_traffic(scenario, measure)]
            amiss = list(traffic_amiss(measure.of, names, (*path, "of")))
            yield from amiss or _flow_data(scenario, layout, measure, path)


def _hot_traffic(scenario: Scenario, measure: FlowMeasure) -> list[str]:
    """Names of the traffic of hotspots, for measures that need totals only: there are no series of it."""
    series = isinstance(measure, CompletionTime | DelayPercentile | Estimate | Goodput | TimeToConverge)
    if series or getattr(measure, "window", None) is not None:
        return []
    return [f"hotspot-{name}" for name, each in scenario.hotspots.items() if isinstance(each, InputGenerated)]


def _port_data(scenario: Scenario, layout: Layout, measure: PortMeasure, path: Where) -> Iterator[Fault]:
    if isinstance(measure, QueuePercentile):
        yield from _level_data(scenario, layout, measure, path)
        return
    needs_series = isinstance(measure, QueueSpread | DropTime | RecoveryTime)
    window = measure.window if isinstance(measure, WindowedPortMeasure) else None
    if window is None and not needs_series:
        return
    at: Where = (*path, "window") if window is not None else path
    intervals: dict[int, Span] = {}
    for record in scenario.record.values():
        if isinstance(record, QueueRecord):
            intervals = dict.fromkeys(layout.port_ids(record.queue), record.every) | intervals
    for port in layout.port_ids(measure.of):
        every = intervals.get(port)
        name = layout.ports[port].name
        if every is None:
            entry = f"{{queue: {name}, every: 100 us}}"
            yield at, f"needs '{name}' over time; add an entry such as {entry} to 'record'"
            return
        if window is not None and not _on_edges(window, every):
            yield at, f"does not begin and end on intervals of {every}, in which '{name}' is recorded"
            return


def _level_data(scenario: Scenario, layout: Layout, measure: QueuePercentile, path: Where) -> Iterator[Fault]:
    records = [record for record in scenario.record.values() if isinstance(record, LevelRecord)]
    records = [record for record in records if not list(ports_amiss(layout, record.levels, ()))]
    for port in layout.port_ids(measure.of):
        record = next((r for r in records if port in layout.port_ids(r.levels)), None)
        name = layout.ports[port].name
        if record is None:
            entry = f"{{levels: {name}}}"
            yield path, f"needs the levels of '{name}'; add an entry such as {entry} to 'record'"
            return
        if record.window != measure.window:
            recorded = record.window or "the whole run"
            yield (*path, "window"), f"is not that of the record of '{name}' ({recorded})"
            return


def _flow_data(scenario: Scenario, layout: Layout, measure: FlowMeasure, path: Where) -> Iterator[Fault]:
    names = list(scenario.traffic)
    chosen = selected_traffic(measure.of, names)
    if isinstance(measure, Estimate):
        yield from _estimates(scenario, measure, path)
        return
    if isinstance(measure, Goodput | CompletionTime):
        for name in scenario.traffic:
            chosen = selected_traffic(measure.of, [name])
            if chosen and not isinstance(scenario.traffic[name].transport, Tcp):
                yield (*path, "of"), f"counts streams of TCP; no tcp carries the traffic '{name}'"
        return
    if isinstance(measure, DelayPercentile):
        recorded = [r.delays for r in scenario.record.values() if isinstance(r, DelayRecord)]
        for i in chosen:
            if not any(i in selected_traffic(patterns, names) for patterns in recorded):
                entry = f"{{delays: {names[i]}}}"
                yield path, f"needs the delays of '{names[i]}'; add an entry such as {entry} to 'record'"
                return
    window = getattr(measure, "window", None)
    if window is None and not isinstance(measure, TimeToConverge):
        return
    if isinstance(measure, BurstDelay) and measure.take == "longest":
        told = "the longest is known of the whole run only; take the mean, or leave this out"
        yield (*path, "window"), told
        return
    at: Where = (*path, "window") if window is not None else path
    by_flow = not isinstance(measure, DeliveredRate)
    for i in chosen:
        several = isinstance(measure, BurstDelay) or (
            by_flow and _flow_count(scenario.traffic[names[i]], layout) > 1
        )
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
            yield at, f"needs '{names[i]}' over time; add an entry such as {entry} to 'record'"
            return
        if window is not None and not _on_edges(window, record.every):
            yield (
                at,
                f"does not begin and end on intervals of {record.every}, in which '{names[i]}' is recorded",
            )
            return


def _estimates(scenario: Scenario, measure: Estimate, path: Where) -> Iterator[Fault]:
    recorded = [r.p_streams for r in scenario.record.values() if isinstance(r, PStreamRecord)]
    for name in scenario.traffic:
        if not selected_traffic(measure.of, [name]) or isinstance(scenario.traffic[name].source, Probing):
            continue
        transport = scenario.traffic[name].transport
        if not (isinstance(transport, Tcp) and isinstance(transport.congestion_control, Rapid)):
            yield (*path, "of"), f"'{name}' estimates nothing: it is no 'pathload', 'pbprobe' or 'rapid'"
        elif not any(selected_traffic(patterns, [name]) for patterns in recorded):
            entry = f"{{p_streams: {name}}}"
            yield path, f"needs the probe streams of '{name}'; add an entry such as {entry} to 'record'"


def _flow_count(traffic: Traffic, layout: Layout) -> int:
    try:
        return sum(len(flow.targets) for flow in flows_of(traffic, layout))
    except EntryFault:
        return 1


def _on_edges(window: Interval[Span], every: Span) -> bool:
    return window.low.ps % every.ps == 0 and window.high.ps % every.ps == 0
