"""The part of a spec that says what happens in the course of a run."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from weirlab import spec as core
from weirlab.scenario.network.classes import limit_spec
from weirlab.scenario.network.events import AnyEvent, BufferChange, Hold, LinkDown, RateChange, Storm
from weirlab.scenario.network.layout import Layout
from weirlab.spec import At

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


ALL_CLASSES = tuple(range(8))

ORDER = ("until", "when", "reroute")
"""The fields that times come from, in the order in which changes of one instant happen."""

V = TypeVar("V", bound=Hashable)


def resolve_events(scenario: Scenario, layout: Layout, rules: Sequence[core.QueueRule]) -> list[core.Event]:
    """`events` of the spec; `rules` says what queues hold without them. In order of time; at an instant
    what ends comes before what starts, and what switches learn comes last. Raises NoMatchError."""
    disciplines = {port: rule.discipline for rule in rules for port in rule.ports}
    changes = (
        (at_ps, ORDER.index(field), name, change)
        for name, event in scenario.events.items()
        for at_ps, field, change in _changes(name, event, layout, disciplines)
    )
    return [
        core.Event(at_ps=at_ps, change=change, origin=At("events", name, at_ps=ORDER[rank]))
        for at_ps, rank, name, change in sorted(changes, key=lambda found: found[:2])
    ]


def _changes(
    name: str, event: AnyEvent, layout: Layout, disciplines: Mapping[int, core.Discipline]
) -> Iterator[tuple[int, str, core.Change]]:
    """Times, the field that each comes from, and what changes then."""
    ports = layout.port_ids(event.at)
    start, end = event.when.ps, None if event.until is None else event.until.ps
    at = At("events", name, ports="at")
    match event:
        case LinkDown():
            both = sorted({port ^ way for port in ports for way in (0, 1)})
            yield start, "when", core.ChangeDown(ports=both, origin=at)
            yield from _reroute(event, start, both, at)
            if end is not None:
                yield end, "until", core.ChangeUp(ports=both, origin=at)
                yield from _reroute(event, end, both, at)
        case RateChange():
            of_rate = At("events", name, ports="at")
            yield start, "when", core.ChangeRate(ports=ports, rate_bps=event.rate.bps, origin=of_rate)
            if end is not None:
                for rate, alike in _alike({port: layout.ports[port].rate_bps for port in ports}):
                    yield end, "until", core.ChangeRate(ports=alike, rate_bps=rate, origin=of_rate)
        case BufferChange():
            of_limit = At("events", name, ports="at")
            limit = limit_spec(event.limit)
            yield (
                start,
                "when",
                core.ChangeLimit(ports=ports, limit=limit, class_=event.class_, origin=of_limit),
            )
            if end is not None:
                before = {port: _limit(disciplines.get(port), event.class_) for port in ports}
                for limit, alike in _alike(before):
                    change = core.ChangeLimit(ports=alike, limit=limit, class_=event.class_, origin=of_limit)
                    yield end, "until", change
        case Hold() | Storm():
            yield start, "when", _stop(event, ports, at)
            if end is not None:
                yield end, "until", _go_on(event, ports, at)


def _stop(event: Hold | Storm, ports: list[int], at: At) -> core.Change:
    classes = ALL_CLASSES if event.classes is None else event.classes
    if isinstance(event, Hold):
        return core.ChangeHold(ports=ports, classes=classes, origin=at)
    return core.ChangeStorm(ports=ports, classes=classes, every_ps=event.every.ps, origin=at)


def _go_on(event: Hold | Storm, ports: list[int], at: At) -> core.Change:
    classes = ALL_CLASSES if event.classes is None else event.classes
    if isinstance(event, Hold):
        return core.ChangeRelease(ports=ports, classes=classes, origin=at)
    return core.ChangeCalm(ports=ports, origin=at)


def _reroute(
    event: LinkDown, changed_ps: int, ports: Sequence[int], at: At
) -> Iterator[tuple[int, str, core.Change]]:
    if event.reroute is not None:
        yield changed_ps + event.reroute.ps, "reroute", core.ChangeReroute(ports=ports, origin=at)


def _alike(values: Mapping[int, V]) -> Iterator[tuple[V, list[int]]]:
    """Each value with the ports that have it."""
    groups: dict[V, list[int]] = {}
    for port, value in values.items():
        groups.setdefault(value, []).append(port)
    return iter(groups.items())


def _limit(discipline: core.Discipline | None, class_: int | None) -> core.Limit:
    """What the queue of a port holds, of a class where it has queues for classes."""
    if isinstance(discipline, core.DisciplineClasses):
        of_class = (known.discipline for known in discipline.list if known.class_ == class_)
        discipline = next(of_class, None)
    return (
        "unlimited"
        if discipline is None or isinstance(discipline, core.DisciplineClasses)
        else discipline.limit
    )
