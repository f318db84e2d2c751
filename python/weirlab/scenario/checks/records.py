"""What is wrong with records beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab.fields.base import kind_of
from weirlab.scenario.file.problems import listed
from weirlab.scenario.network.layout import Layout
from weirlab.scenario.network.selecting import Fault, nodes_amiss, ports_amiss, traffic_amiss
from weirlab.scenario.record import (
    AnyRecord,
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
from weirlab.scenario.traffic import Carried, Tcp, Traffic
from weirlab.scenario.traffic.rapid import Rapid
from weirlab.spec import Where
from weirlab.units import Interval, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def check_records(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `record`."""
    taken: dict[tuple[str, int], str] = {}
    for name, record in scenario.record.items():
        yield from amiss(scenario, layout, record, name)
        ids, names = _recorded(scenario, layout, record)
        yield from _twice(taken, ids, name, names)
        if isinstance(record, LevelRecord | FrameRecord):
            yield from _ends_late(scenario, name, record.window)


def amiss(scenario: Scenario, layout: Layout, record: AnyRecord, name: str) -> Iterator[Fault]:
    """Parts that there are not, and those that have nothing of that kind."""
    path: Where = ("record", name, kind_of(type(record)))
    match record:
        case QueueRecord(queue=ports) | LevelRecord(levels=ports) | FrameRecord(frames=ports):
            yield from ports_amiss(layout, ports, path)
        case FlowRecord(flow=traffic) | DelayRecord(delays=traffic):
            yield from traffic_amiss(traffic, list(scenario.traffic), path)
        case TcpRecord(tcp=traffic) | PStreamRecord(p_streams=traffic):
            yield from traffic_amiss(traffic, list(scenario.traffic), path)
            for entry in scenario.traffic:
                if selected_traffic(traffic, [entry]):
                    yield from _carried(scenario.traffic[entry], record, entry, path)
        case LimiterRecord():
            unknown = list(nodes_amiss(layout, record.limiter, path, hosts=True))
            yield from unknown or _unlimited(scenario, layout, record, path)


def _carried(traffic: Traffic, record: TcpRecord | PStreamRecord, name: str, path: Where) -> Iterator[Fault]:
    """Traffic without the transport that is recorded."""
    transport = traffic.transport
    if isinstance(record, TcpRecord) and isinstance(traffic.source, Carried):
        yield (
            path,
            f"the connections of '{name}' come and go; the table 'messages' has what became of them",
        )
    elif isinstance(record, TcpRecord) and not isinstance(transport, Tcp):
        yield path, f"no tcp carries the traffic '{name}'"
    if isinstance(record, PStreamRecord) and not (
        isinstance(transport, Tcp) and isinstance(transport.congestion_control, Rapid)
    ):
        yield path, f"the traffic '{name}' has no probe streams: no 'rapid' carries it"


def _recorded(
    scenario: Scenario, layout: Layout, record: AnyRecord
) -> tuple[list[tuple[str, int]], Sequence[str]]:
    """What is recorded, each as (kind of series, id), and the names of the ids; nothing where some of it is
    amiss."""
    names, port_names = list(scenario.traffic), [port.name for port in layout.ports]
    match record:
        case QueueRecord(queue=ports) | LevelRecord(levels=ports) | FrameRecord(frames=ports):
            found = [] if list(ports_amiss(layout, ports, ())) else layout.port_ids(ports)
            return [(kind_of(type(record)), i) for i in found], port_names
        case FlowRecord():
            return [(record.by, i) for i in selected_traffic(record.flow, names)], names
        case TcpRecord(tcp=traffic) | PStreamRecord(p_streams=traffic):
            return [(kind_of(type(record)), i) for i in selected_traffic(traffic, names)], names
        case LimiterRecord():
            unknown = list(nodes_amiss(layout, record.limiter, (), hosts=True))
            return [
                ("limiter", i) for i in ([] if unknown else layout.host_ids(record.limiter))
            ], layout.nodes
        case DelayRecord():
            return [], names


def _ends_late(scenario: Scenario, name: str, window: Interval[Span] | None) -> Iterator[Fault]:
    duration = scenario.run.duration
    if window is not None and duration is not None and window.high > duration:
        yield (
            ("record", name, "window"),
            f"ends after the run ({duration}); end it by then, or remove it (--set record.{name}.window=)",
        )


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
