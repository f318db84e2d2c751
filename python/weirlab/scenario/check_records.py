"""What is wrong with records and measures beyond single fields: above all, data that nobody records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab.scenario.flows import TrafficFault, flows_of
from weirlab.scenario.layout import Layout
from weirlab.scenario.measure import (
    DelayPercentile,
    DeliveredRate,
    FlowMeasure,
    JainFairness,
    PortMeasure,
    RmsFairness,
)
from weirlab.scenario.record import (
    DelayRecord,
    FlowRecord,
    FrameRecord,
    LimiterRecord,
    PStreamRecord,
    QueueRecord,
)
from weirlab.scenario.resolve import selected_traffic
from weirlab.scenario.selecting import Fault, Where, nodes_amiss, ports_amiss, traffic_amiss
from weirlab.scenario.traffic import Traffic
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
                ids = [("traffic", i) for i in selected_traffic(record.flow, names)]
                yield from _twice(taken, ids, name, names)
            case DelayRecord():
                yield from traffic_amiss(record.delays, names, ("record", name, "delays"))
            case PStreamRecord():
                yield from traffic_amiss(record.p_streams, names, ("record", name, "p_streams"))
            case LimiterRecord():
                yield from nodes_amiss(layout, record.limiter, ("record", name, "limiter"), hosts=True)
            case FrameRecord():
                yield from ports_amiss(layout, record.frames, ("record", name, "frames"))


def _twice(
    taken: dict[tuple[str, int], str], ids: list[tuple[str, int]], name: str, names: Sequence[str]
) -> Iterator[Fault]:
    for key in ids:
        if key in taken:
            yield ("record", name), f"'{names[key[1]]}' is recorded twice, also by '{taken[key]}'"
            return
        taken[key] = name


def check_measures(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `measure`."""
    for name, measure in scenario.measure.items():
        path: Where = ("measure", name)
        window = getattr(measure, "window", None)
        if window is not None and scenario.run.duration is not None and window.high > scenario.run.duration:
            yield (*path, "window"), f"ends after the run ({scenario.run.duration})"
        if isinstance(measure, PortMeasure):
            amiss = list(ports_amiss(layout, measure.of, (*path, "of")))
            yield from amiss or _port_data(scenario, layout, measure, path)
        else:
            amiss = list(traffic_amiss(measure.of, list(scenario.traffic), (*path, "of")))
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
