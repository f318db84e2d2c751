"""What is wrong with measures beyond single fields: above all, data that nobody records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab.errors import ForeignFault
from weirlab.fields.base import kind_of
from weirlab.foreign import blamed
from weirlab.measures import base
from weirlab.measures.fairness import JainFairness
from weirlab.scenario.checks.records import amiss
from weirlab.scenario.file.problems import did_you_mean
from weirlab.scenario.network.layout import Layout, NoMatchError
from weirlab.scenario.network.selecting import EntryFault, Fault, ports_amiss, traffic_amiss
from weirlab.scenario.record import (
    DelayRecord,
    FlowRecord,
    LevelRecord,
    LimiterRecord,
    PStreamRecord,
    QueueRecord,
)
from weirlab.scenario.resolve import selected_traffic
from weirlab.scenario.resolve.buffers import buffered
from weirlab.scenario.traffic import Carried, Rdma, Tcp, Traffic
from weirlab.scenario.traffic.flows import flows_of
from weirlab.scenario.traffic.hotspots import InputGenerated
from weirlab.scenario.traffic.probing import Probing
from weirlab.scenario.traffic.rapid import Rapid
from weirlab.spec import Where
from weirlab.units import Interval, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def check_measures(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `measure`."""
    for name, measure in scenario.measure.items():
        path: Where = ("measure", name)
        try:
            with blamed(type(measure), base.GROUP, kind_of(type(measure)), "what it needs"):
                yield from list(_faults(scenario, layout, measure, path))
        except ForeignFault as error:
            yield path, str(error)


def _faults(scenario: Scenario, layout: Layout, measure: base.Measure, path: Where) -> Iterator[Fault]:
    window = measure.limits
    if window is not None and scenario.run.duration is not None and window.high > scenario.run.duration:
        yield (
            (*path, "window"),
            f"ends after the run ({scenario.run.duration}); end it by then, or remove it "
            f"(--set {'.'.join(map(str, path))}.window=)",
        )
    absent = [each.name for each in _hotspots(measure) if each.name not in scenario.hotspots]
    if absent:
        hint = did_you_mean(absent[0], scenario.hotspots)
        yield (*path, "hotspot"), f"no hotspot is called '{absent[0]}'{hint}"
    else:
        yield from _selector(scenario, layout, measure, path) or _data(scenario, layout, measure, path)


def _hotspots(measure: base.Measure) -> list[base.Hotspot]:
    return [need for need in measure.needs() if isinstance(need, base.Hotspot)]


def _selector(scenario: Scenario, layout: Layout, measure: base.Measure, path: Where) -> list[Fault]:
    """Ports or traffic that there are not."""
    if isinstance(measure, base.PortMeasure):
        return list(ports_amiss(layout, measure.of, (*path, "of")))
    assert isinstance(measure, base.FlowMeasure), "a measure is one of ports or of flows"
    names = list(scenario.traffic)
    if len(_hotspots(measure)) == len(list(measure.needs())):
        # Of the traffic of hotspots there are totals, but no series.
        hot = (name for name, each in scenario.hotspots.items() if isinstance(each, InputGenerated))
        names += [f"hotspot-{name}" for name in hot]
    return list(traffic_amiss(measure.of, names, (*path, "of")))


def _data(scenario: Scenario, layout: Layout, measure: base.Measure, path: Where) -> list[Fault]:
    """What the measure itself finds wrong, or else data that it needs and nobody records."""
    own: list[Fault] = [((*path, field), message) for field, message in measure.faults()]
    if isinstance(measure, JainFairness):
        own += _of_one(scenario, measure, path)
    if own or _has_wrong_records(scenario, layout):
        return own
    return [fault for need in measure.needs() for fault in _lack(scenario, layout, measure, need, path)]


def _of_one(scenario: Scenario, measure: base.FlowMeasure, path: Where) -> Iterator[Fault]:
    """A single entry of messages: tcp and rdma count all of them as one flow."""
    names = list(scenario.traffic)
    chosen = [names[i] for i in selected_traffic(measure.of, names)]
    if len(chosen) == 1 and _is_one_flow(scenario.traffic[chosen[0]]):
        yield (
            (*path, "of"),
            f"the messages of '{chosen[0]}' count as one flow, and Jain's index of one is always 1: give "
            "each sender an entry of its own, and select them all",
        )


def _is_one_flow(traffic: Traffic) -> bool:
    return isinstance(traffic.source, Carried) and isinstance(traffic.transport, Tcp | Rdma)


def _has_wrong_records(scenario: Scenario, layout: Layout) -> bool:
    """Whether something is recorded that is not there, which is reported of `record`."""
    series = ((name, each) for name, each in scenario.record.items() if not isinstance(each, LimiterRecord))
    return any(fault for name, record in series for fault in amiss(scenario, layout, record, name))


def _lack(
    scenario: Scenario, layout: Layout, measure: base.Measure, need: base.Need, path: Where
) -> Iterator[Fault]:
    at: Where = (*path, "window") if measure.limits is not None else path
    match need, measure:
        case base.PortSeries(), base.PortMeasure():
            yield from _port_series(scenario, layout, measure, at)
        case base.SharedBuffers(), base.PortMeasure():
            yield from _shared_buffers(scenario, layout, measure, path)
        case base.Levels(), base.PortMeasure():
            yield from _levels(scenario, layout, measure, path)
        case base.FlowSeries(), base.FlowMeasure():
            yield from _flow_series(scenario, layout, measure, need, at)
        case base.Delays(), base.FlowMeasure():
            yield from _delays(scenario, measure, path)
        case base.Streams(), base.FlowMeasure():
            yield from _streams(scenario, measure, path)
        case base.MessageRows(of=kinds), base.FlowMeasure():
            yield from _messages(scenario, measure, kinds, path)
        case base.Estimates(), base.FlowMeasure():
            yield from _estimates(scenario, measure, path)


def _shared_buffers(
    scenario: Scenario, layout: Layout, measure: base.PortMeasure, path: Where
) -> Iterator[Fault]:
    try:
        with_buffer = {layout.nodes[node] for node in buffered(scenario, layout)}
    except NoMatchError:  # reported of 'buffers'
        return
    ports = [layout.ports[port] for port in layout.port_ids(measure.of)]
    if other := next((port.name for port in ports if port.source not in with_buffer), None):
        yield (*path, "of"), f"needs ports that leave a switch of 'buffers' ('{other}' does not)"
        return
    shortest: dict[str, Span] = {}
    for place, every in _recorded_ports(scenario, layout).items():
        switch = layout.ports[place].source
        shortest[switch] = min(every, shortest.get(switch, every), key=lambda span: span.ps)
    for switch in dict.fromkeys(port.source for port in ports):
        if switch in shortest and not _on_edges(measure.limits, shortest[switch]):
            message = f"does not start and end on intervals of {shortest[switch]}, in which the buffer of "
            yield (*path, "window"), f"{message}'{switch}' is recorded, as one of its ports is"
            return


def _recorded_ports(scenario: Scenario, layout: Layout) -> dict[int, Span]:
    """The ports that are recorded over time, with the length of their intervals."""
    intervals: dict[int, Span] = {}
    for record in scenario.record.values():
        if isinstance(record, QueueRecord):
            intervals = dict.fromkeys(layout.port_ids(record.queue), record.every) | intervals
    return intervals


def _port_series(scenario: Scenario, layout: Layout, measure: base.PortMeasure, at: Where) -> Iterator[Fault]:
    intervals = _recorded_ports(scenario, layout)
    for port in layout.port_ids(measure.of):
        every = intervals.get(port)
        name = layout.ports[port].name
        if every is None:
            entry = f"{{queue: {name}, every: 100 us}}"
            yield at, f"needs '{name}' over time; add an entry such as {entry} to 'record'"
            return
        if not _on_edges(measure.limits, every):
            yield at, f"does not start and end on intervals of {every}, in which '{name}' is recorded"
            return


def _levels(scenario: Scenario, layout: Layout, measure: base.PortMeasure, path: Where) -> Iterator[Fault]:
    records = [record for record in scenario.record.values() if isinstance(record, LevelRecord)]
    for port in layout.port_ids(measure.of):
        record = next((r for r in records if port in layout.port_ids(r.levels)), None)
        name = layout.ports[port].name
        if record is None:
            entry = f"{{levels: {name}}}"
            yield path, f"needs the levels of '{name}'; add an entry such as {entry} to 'record'"
            return
        if record.window != measure.limits:
            recorded = record.window or "the whole run"
            yield (*path, "window"), f"is not that of the record of '{name}' ({recorded})"
            return


def _flow_series(
    scenario: Scenario, layout: Layout, measure: base.FlowMeasure, need: base.FlowSeries, at: Where
) -> Iterator[Fault]:
    names = list(scenario.traffic)
    series = [record for record in scenario.record.values() if isinstance(record, FlowRecord)]
    for i in selected_traffic(measure.of, names):
        name = names[i]
        crowded = need.by_flow and _flow_count(scenario.traffic[name], layout) > 1
        several = need.recorded_by_flow or crowded
        fit = (r for r in series if i in selected_traffic(r.flow, names) and (r.by == "flow" or not several))
        record = next(fit, None)
        if record is None:
            entry = f"{{flow: {name}, {'by: flow, ' if several else ''}every: 1 ms}}"
            yield at, f"needs '{name}' over time; add an entry such as {entry} to 'record'"
            return
        if not _on_edges(measure.limits, record.every):
            yield at, f"does not start and end on intervals of {record.every}, in which '{name}' is recorded"
            return


def _delays(scenario: Scenario, measure: base.FlowMeasure, path: Where) -> Iterator[Fault]:
    names = list(scenario.traffic)
    recorded = [r.delays for r in scenario.record.values() if isinstance(r, DelayRecord)]
    for i in selected_traffic(measure.of, names):
        if not any(i in selected_traffic(patterns, names) for patterns in recorded):
            entry = f"{{delays: {names[i]}}}"
            yield path, f"needs the delays of '{names[i]}'; add an entry such as {entry} to 'record'"
            return


def _streams(scenario: Scenario, measure: base.FlowMeasure, path: Where) -> Iterator[Fault]:
    for name, traffic in scenario.traffic.items():
        if selected_traffic(measure.of, [name]) and isinstance(traffic.source, Carried):
            yield (*path, "of"), f"'{name}' has messages; take 'message-time' or 'slowdown'"
        elif selected_traffic(measure.of, [name]) and not isinstance(traffic.transport, Tcp):
            yield (*path, "of"), f"counts streams of TCP; no tcp carries the traffic '{name}'"


def _messages(
    scenario: Scenario, measure: base.FlowMeasure, kinds: Sequence[str], path: Where
) -> Iterator[Fault]:
    known = kinds or [kind_of(each) for each in Carried.__subclasses__()]
    for name, traffic in scenario.traffic.items():
        kind = kind_of(type(traffic.source))
        if selected_traffic(measure.of, [name]) and kind not in known:
            what = "' or '".join(known)
            yield (*path, "of"), f"needs the source '{what}'; that of '{name}' is '{kind}'"


def _estimates(scenario: Scenario, measure: base.FlowMeasure, path: Where) -> Iterator[Fault]:
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
        if isinstance(traffic.source, Carried):
            return 1
        return sum(len(flow.targets) for flow in flows_of(traffic, layout))
    except EntryFault:
        return 1


def _on_edges(window: Interval[Span] | None, every: Span) -> bool:
    return window is None or (window.low.ps % every.ps == 0 and window.high.ps % every.ps == 0)
