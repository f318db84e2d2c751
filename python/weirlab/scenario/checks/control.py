"""What is wrong with congestion control beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from weirlab import spec as core
from weirlab.scenario.control import Control, Pause
from weirlab.scenario.control.bcn import Bcn, BcnReactionPoint
from weirlab.scenario.control.dcqcn import Dcqcn, DcqcnReactionPoint
from weirlab.scenario.control.qcn import Qcn, QcnReactionPoint
from weirlab.scenario.file.problems import listed
from weirlab.scenario.network import marking_of, shared_memory
from weirlab.scenario.network.aqm import Managed, Marking, Threshold
from weirlab.scenario.network.layout import Layout, NoMatchError
from weirlab.scenario.network.selecting import Fault, nodes_amiss, ports_amiss
from weirlab.scenario.resolve import queue_limits
from weirlab.scenario.resolve.control import in_bytes, unit_of
from weirlab.spec import Where
from weirlab.units import Frames, Rate, Size, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


_SCHEMES = ("bcn", "qcn", "dcqcn")
_LONGEST_CONTROL_FRAME = Size(2000)
"""Source: IEEE 802.3, the longest frame with all envelopes"""


def check_control(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `control`."""
    found = list(_each_alone(scenario, layout))
    yield from found
    if not found:
        yield from _out_of_reach(scenario, layout)


def _each_alone(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    control = scenario.control
    if control is None:
        return
    present = [scheme for scheme in _SCHEMES if getattr(control, scheme) is not None]
    for scheme in present[1:]:
        yield ("control", scheme), f"cannot be combined with '{present[0]}'; senders obey one scheme"
    for scheme in present:
        yield from _scheme(getattr(control, scheme), layout, ("control", scheme))
    for name, rule in control.pause.items():
        path: Where = ("control", "pause", name)
        yield from nodes_amiss(layout, rule.at, (*path, "at"), hosts=False)
        if rule.xon > rule.xoff:
            yield (*path, "xon"), f"is above 'xoff' ({rule.xoff})"
        if rule.quanta is not None and not 0 < rule.quanta < 2**16:
            yield (*path, "quanta"), f"a pause is 1 to 65535 quanta long (got {rule.quanta})"
        yield from _too_long(rule.frame_size, path)
        yield from _repeated_too_soon(rule, layout, path)
    for name, entry in control.responses.items():
        yield from nodes_amiss(layout, entry.at, ("control", "responses", name, "at"))


def _repeated_too_soon(rule: Pause, layout: Layout, path: Where) -> Iterator[Fault]:
    """PAUSE frames that are repeated before they have left leave no room for anything else."""
    if rule.refresh is None:
        return
    try:
        senders = {layout.nodes[node] for node in layout.node_ids(rule.at)}
    except NoMatchError:  # reported of 'at'
        return
    wires = [port.wire_ps(rule.frame_size.bytes) for port in layout.ports if port.source in senders]
    if wires and rule.refresh.ps <= max(wires):
        yield (*path, "refresh"), f"is not longer than a PAUSE frame takes on the link ({Span(max(wires))})"


def _too_long(size: Size, path: Where) -> Iterator[Fault]:
    """Control frames are short: a longer one is a slip of the unit."""
    if size.bytes > _LONGEST_CONTROL_FRAME.bytes:
        longest = f"{_LONGEST_CONTROL_FRAME} (got {size})"
        yield (*path, "frame_size"), f"control frames have 64 B or little more, and at most {longest}"


def _scheme(scheme: Bcn | Qcn | Dcqcn, layout: Layout, path: Where) -> Iterator[Fault]:
    sender: Where = (*path, "reaction_point")
    if not isinstance(scheme, Dcqcn) and scheme.reaction_point.gd <= 0:
        yield (*sender, "gd"), f"is more than 0, or nobody would slow down (got {scheme.reaction_point.gd:g})"
    notifying = path if isinstance(scheme, Dcqcn) else (*path, "congestion_point")
    notification = scheme.notification if isinstance(scheme, Dcqcn) else scheme.congestion_point.notification
    yield from _too_long(notification.frame_size, (*notifying, "notification"))
    amiss = list(nodes_amiss(layout, scheme.reaction_point.at, (*sender, "at"), hosts=True))
    yield from amiss or (
        *_beyond_the_line(scheme.reaction_point, layout, sender),
        *_drifts_too_often(scheme.reaction_point, layout, sender),
    )
    if isinstance(scheme, Dcqcn):
        if scheme.marking is not None:
            amiss = list(ports_amiss(layout, scheme.marking.at, (*path, "marking", "at")))
            yield from amiss or marking_amiss(layout, scheme.marking.at, scheme.marking, (*path, "marking"))
        return
    at: Where = (*path, "congestion_point")
    sampled = scheme.congestion_point
    yield from ports_amiss(layout, sampled.at, (*at, "at"))
    yield from _in_frames(sampled.q_eq, sampled.frame_size, (*at, "q_eq"))
    if isinstance(scheme, Qcn):
        return
    point = scheme.congestion_point
    if scheme.severe is not None:
        severe, above = scheme.severe, (*path, "severe", "above")
        yield from _in_frames(severe.above, point.frame_size, above)
        sized = point.frame_size is not None or not any(
            isinstance(amount, Frames) for amount in (severe.above, point.q_eq)
        )
        if sized and in_bytes(severe.above, point.frame_size) < in_bytes(point.q_eq, point.frame_size):
            yield above, f"is below the set point, 'q_eq' ({point.q_eq})"
    if unit_of(point) is None:
        yield at, "Fb in which unit? write 'frame_size: 1500 B', or a 'unit' such as 64 B"


def _beyond_the_line(
    point: BcnReactionPoint | QcnReactionPoint | DcqcnReactionPoint, layout: Layout, path: Where
) -> Iterator[Fault]:
    """Rates that are given and that a line cannot have: the line rate would count in their place."""
    names = {layout.nodes[node] for node in layout.node_ids(point.at)}
    lines = [port for port in layout.ports if port.source in names]
    if not lines:
        return
    slowest = min(lines, key=lambda port: port.rate_bps)
    fields = ("min_rate", "initial_rate", "removal_rate")
    rates: list[tuple[Where, Rate | None]] = [
        ((field,), getattr(point, field, None)) for field in fields if not point.has_default(field)
    ]
    if isinstance(point, BcnReactionPoint) and not point.stop.has_default("r_min"):
        rates.append((("stop", "r_min"), point.stop.r_min))
    for where, rate in rates:
        if rate is not None and rate.bps > slowest.rate_bps:
            line = f"{slowest.name} ({Rate(slowest.rate_bps)})"
            yield (*path, *where), f"is above the line rate of {line}, which would count in its place"


def _drifts_too_often(
    point: BcnReactionPoint | QcnReactionPoint | DcqcnReactionPoint, layout: Layout, path: Where
) -> Iterator[Fault]:
    """Rates that grow more often than frames leave take a run without end."""
    if not isinstance(point, BcnReactionPoint) or point.drift is None:
        return
    names = {layout.nodes[node] for node in layout.node_ids(point.at)}
    shortest = min((port.wire_ps(64) for port in layout.ports if port.source in names), default=0)
    if point.drift.every.ps < shortest:
        message = f"is less than the shortest frame, 64 B, takes on the link ({Span(shortest)})"
        yield (*path, "drift", "every"), f"{message}; the published drift adds 1 Mbit/s every 100 us"


def marking_amiss(layout: Layout, at: Sequence[str], marking: Marking, path: Where) -> Iterator[Fault]:
    """Faults of marks at the ports `at`, which exist; `path` is where `at` stands."""
    of_hosts = [layout.ports[i].name for i in layout.port_ids(at) if layout.ports[i].source in layout.hosts]
    if of_hosts:
        yield (*path, "at"), f"only ports of switches mark (got {listed(of_hosts, 4)})"
    if marking.k_max is not None and marking.k_min > marking.k_max:
        below: Where = () if "dcqcn" in path else ("marking",)
        yield (*path, *below, "k_min"), f"is above 'k_max' ({marking.k_max})"


def _who_marks(scenario: Scenario, dcqcn: Dcqcn, layout: Layout) -> Iterator[Fault]:
    """DCQCN needs queues that mark, and each of them needs one rule."""
    marking = [queue for queue in scenario.queues.values() if marking_of(queue) is not None]
    if dcqcn.marking is None:
        if not marking:
            example = "{at: '@switches->*', k_min: 40 kB, k_max: 160 kB, p_max: 20 %}"
            yield ("control", "dcqcn"), f"no queue marks: add 'marking', such as {example}"
        return
    taken = {port for queue in marking for port in layout.port_ids(queue.at)}
    twice = [layout.ports[port].name for port in layout.port_ids(dcqcn.marking.at) if port in taken]
    if twice:
        yield ("control", "dcqcn", "marking", "at"), f"{listed(twice, 4)} marks already, as 'queues' says"
    managers = [queue for queue in scenario.queues.values() if isinstance(queue, Managed)]
    managed = {port for queue in managers for port in layout.port_ids(queue.at)}
    both = [layout.ports[port].name for port in layout.port_ids(dcqcn.marking.at) if port in managed - taken]
    if both:
        message = "under active management, as 'queues' says; only drop-tail queues mark for DCQCN"
        yield ("control", "dcqcn", "marking", "at"), f"{listed(both, 4)}: {message}"


def _in_frames(amount: Size | Frames, frame_size: Size | None, path: Where) -> Iterator[Fault]:
    if isinstance(amount, Frames) and frame_size is None:
        yield path, "needs the size of a frame: write 'frame_size', too"


def _out_of_reach(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Thresholds that the queues they are for never exceed: what they call for would never happen."""
    control = scenario.control or Control()
    try:
        limits = queue_limits(scenario, layout)
    except NoMatchError:  # reported of the queues
        return
    for name, rule in control.pause.items():
        senders = {layout.nodes[node] for node in layout.node_ids(rule.at)}
        ports = [i for i, port in enumerate(layout.ports) if port.source in senders]
        path: Where = ("control", "pause", name, "xoff")
        yield from _never_exceeded(layout, rule.xoff, None, ports, limits, path)
    if control.dcqcn is not None:
        yield from _who_marks(scenario, control.dcqcn, layout)
    for where, at, marking in _marks(scenario):
        ports = layout.port_ids(at)
        yield from _never_exceeded(layout, marking.k_min, None, ports, limits, (*where, "k_min"))
    for scheme in ("bcn", "qcn"):
        chosen = getattr(control, scheme)
        if chosen is None:
            continue
        point = chosen.congestion_point
        ports, at = layout.port_ids(point.at), ("control", scheme)
        of_point = (*at, "congestion_point", "q_eq")
        yield from _never_exceeded(layout, point.q_eq, point.frame_size, ports, limits, of_point)
        memory = shared_memory(scenario.network)
        if memory is not None and in_bytes(memory.size, memory.frame_size) <= in_bytes(
            point.q_eq, point.frame_size
        ):
            yield of_point, f"is never exceeded: the memory of a switch holds {memory.size}"
        severe = getattr(chosen, "severe", None)
        if severe is not None and severe.action != "none":
            of_severe = (*at, "severe", "above")
            yield from _never_exceeded(layout, severe.above, point.frame_size, ports, limits, of_severe)


def _marks(scenario: Scenario) -> Iterator[tuple[Where, Sequence[str], Marking]]:
    """All marks of a scenario: where they stand, and at which ports."""
    for name, queue in scenario.queues.items():
        marking = marking_of(queue)
        if marking is not None:
            yield ("queues", name, "marking"), queue.at, marking
        elif isinstance(queue, Threshold):
            yield ("queues", name), queue.at, queue
    dcqcn = scenario.control.dcqcn if scenario.control else None
    if dcqcn is not None and dcqcn.marking is not None:
        yield ("control", "dcqcn", "marking"), dcqcn.marking.at, dcqcn.marking


def _never_exceeded(
    layout: Layout,
    threshold: Size | Frames,
    frame_size: Size | None,
    ports: Sequence[int],
    limits: Mapping[int, core.Limit],
    path: Where,
) -> Iterator[Fault]:
    """Only where every queue has a limit, in bytes or in frames of a known size."""
    backwards = ports[::-1]
    # The first port of each limit: most have the same one.
    first = sorted(dict(zip(map(id, map(limits.get, backwards)), backwards, strict=True)).values())
    held = [(_bytes_held(limits.get(port, "unlimited"), frame_size), port) for port in first]
    known = [(size, port) for size, port in held if size is not None]
    if not held or len(known) < len(held):
        return
    size, port = max(known, key=lambda pair: pair[0])
    if size <= in_bytes(threshold, frame_size):
        which = "the queue" if len(ports) == 1 else "the longest of its queues, that"
        comma = "" if len(ports) == 1 else ","
        yield path, f"is never exceeded: {which} of {layout.ports[port].name}{comma} holds {Size(size)}"


def _bytes_held(limit: core.Limit, frame_size: Size | None) -> int | None:
    match limit:
        case core.LimitBytes():
            return limit.bytes
        case core.LimitFrames() if frame_size is not None:
            return limit.frames * frame_size.bytes
        case _:
            return None
