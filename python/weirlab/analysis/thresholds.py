"""Thresholds of queues that are legal and hardly ever met: of queues that hold no whole frame, and above the
level from which PAUSE holds all that could make the queue longer; and ends of marking above what queues hold.

Thresholds above what a queue holds are refused when a file is read (`weirlab.scenario.checks.control`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weirlab import spec as core
from weirlab.analysis.headroom import longest_data
from weirlab.scenario import Scenario
from weirlab.scenario.network.aqm import Marking, Threshold
from weirlab.scenario.network.layout import Layout, layout_of
from weirlab.scenario.resolve import limit_of, translated
from weirlab.spec import origin_of
from weirlab.units import Size


@dataclass(frozen=True)
class _Threshold:
    """What queues are compared with."""

    path: str
    """Place in the scenario."""
    level: int
    """Bytes."""
    ports: frozenset[int]


def unmet_thresholds(scenario: Scenario) -> list[str]:
    """A sentence for each threshold that its queues hardly ever meet.

    Nothing without a network or a time to run. Raises ScenarioError where the scenario is no network."""
    if scenario.network is None or scenario.run.duration is None:
        return []
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    thresholds = [*_of_control(spec), *_of_marks(scenario, layout)]
    pauses = [*_pauses_of_queues(spec, layout)]
    found = [*_without_frames(spec, layout, [*thresholds, *pauses]), *_beyond_limits(scenario, spec, layout)]
    pauses += _pauses_of_memories(spec, layout)
    for threshold in thresholds:
        for pause in pauses:
            if threshold.ports and threshold.ports <= pause.ports and threshold.level > pause.level:
                found.append(
                    f"{threshold.path}: {Size(threshold.level)}, and {pause.path} holds all neighbours from "
                    f"{Size(pause.level)} on: a queue hardly gets there"
                )
    return found


def _without_frames(spec: core.Spec, layout: Layout, thresholds: list[_Threshold]) -> Iterator[str]:
    """Of queues that hold less than a frame: nothing ever waits there."""
    longest = longest_data(spec)
    limits = _limits(spec, layout)
    for threshold in thresholds:
        held = [limits[port] for port in threshold.ports if port in limits]
        if held and len(held) == len(threshold.ports) and max(held) < longest:
            queues = "its queue holds" if len(held) == 1 else "its queues hold at most"
            yield (
                f"{threshold.path}: {queues} {Size(max(held))}, less than a frame has ({Size(longest)}): "
                "none ever waits there, and whatever the threshold, it is never met"
            )


def _beyond_limits(scenario: Scenario, spec: core.Spec, layout: Layout) -> Iterator[str]:
    """Of marks that would become certain only where queues are full already."""
    limits = _limits(spec, layout)
    for path, at, marks in _marks(scenario):
        ports = layout.port_ids(at)
        held = max((limits.get(port, math.inf) for port in ports), default=math.inf)
        frames_wait = held >= longest_data(spec)  # else `_without_frames` tells
        if marks.k_max is None or not (frames_wait and marks.k_min.bytes < held < marks.k_max.bytes):
            continue
        share = marks.p_max * (held - marks.k_min.bytes) / (marks.k_max.bytes - marks.k_min.bytes)
        queues = "its queue holds" if len(ports) == 1 else "its queues hold at most"
        yield (
            f"{path}.k_max: {marks.k_max} is never reached: {queues} {Size(int(held))}, so at most "
            f"{100 * share:.3g} % of the frames are marked, and then frames are dropped"
        )


def _marks(scenario: Scenario) -> Iterator[tuple[str, Sequence[str], Marking]]:
    """All marks by what waits: where they stand, at which ports, and themselves."""
    dcqcn = None if scenario.control is None else scenario.control.dcqcn
    if dcqcn is not None and dcqcn.marking is not None:
        yield "control.dcqcn.marking", dcqcn.marking.at, dcqcn.marking
    for name, queue in scenario.queues.items():
        if isinstance(queue, Threshold):
            yield f"queues.{name}", queue.at, queue
        elif (marking := getattr(queue, "marking", None)) is not None:
            yield f"queues.{name}.marking", queue.at, marking


def _limits(spec: core.Spec, layout: Layout) -> dict[int, int]:
    """What can wait at each port with a limit; a later rule replaces an earlier one. A limit in frames holds
    as many of the longest."""
    longest = longest_data(spec)
    rules = {port: limit_of(rule.discipline) for rule in spec.queues for port in rule.ports}
    limits = {port: limit.bytes for port, limit in rules.items() if isinstance(limit, core.LimitBytes)}
    in_frames = {port: limit.frames for port, limit in rules.items() if isinstance(limit, core.LimitFrames)}
    limits |= {port: frames * longest for port, frames in in_frames.items()}
    for memory in spec.switching.memories:
        switches = {layout.nodes[node] for node in memory.nodes}
        ports = [p for p, port in enumerate(layout.ports) if port.source in switches]
        limits |= {p: min(memory.bytes, limits.get(p, memory.bytes)) for p in ports}
    return limits


def _of_control(spec: core.Spec) -> Iterator[_Threshold]:
    for name, scheme in (("bcn", spec.control.bcn), ("qcn", spec.control.qcn)):
        if scheme is None:
            continue
        point = scheme.congestion_point
        ports = frozenset(point.ports)
        yield _Threshold(f"control.{name}.congestion_point.q_eq", point.q_eq_bytes, ports)
        severe = point.severe if isinstance(point, core.BcnCongestionPoint) else None
        if severe is not None and severe.action != "none":
            yield _Threshold(f"control.{name}.severe.above", severe.above_bytes, ports)


def _of_marks(scenario: Scenario, layout: Layout) -> Iterator[_Threshold]:
    for path, at, marking in _marks(scenario):
        yield _Threshold(f"{path}.k_min", marking.k_min.bytes, frozenset(layout.port_ids(at)))


def _pauses_of_queues(spec: core.Spec, layout: Layout) -> Iterator[_Threshold]:
    for rule in spec.control.pause:
        switches = {layout.nodes[node] for node in rule.nodes}
        ports = frozenset(p for p, port in enumerate(layout.ports) if port.source in switches)
        path = ".".join(map(str, origin_of(rule, "")))
        yield _Threshold(f"{path}.xoff", rule.xoff_bytes, ports)


def _pauses_of_memories(spec: core.Spec, layout: Layout) -> Iterator[_Threshold]:
    """Of memories as a whole: one queue is never longer than what waits in its switch. An input's share says
    nothing of a queue, which many inputs fill."""
    for memory in spec.switching.memories:
        pause = memory.pause
        if pause is not None and pause.scope == "switch":
            switches = {layout.nodes[node] for node in memory.nodes}
            ports = frozenset(p for p, port in enumerate(layout.ports) if port.source in switches)
            yield _Threshold("network.switch.memory.pause.xoff", pause.xoff_bytes, ports)
