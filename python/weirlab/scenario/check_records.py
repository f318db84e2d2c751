"""What is wrong with records beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weirlab.scenario.layout import Layout
from weirlab.scenario.problems import listed
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
from weirlab.scenario.selecting import Fault, Where, nodes_amiss, ports_amiss, traffic_amiss
from weirlab.scenario.traffic import Tcp
from weirlab.units import Interval, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

__all__ = ["check_records"]


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
