"""What theory says of a plane of a study: the limits to draw over what was simulated.

A limit is where a ratio passes 1. It is worked out at every level of the two factors, from the resolved spec
of the scenario there, and interpolated in between: so any factor may be varied, of control, traffic or
network.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from weirlab import spec as core
from weirlab.analysis.hotspots import utilisation_measures
from weirlab.analysis.queues import ControlledQueue, queues_in
from weirlab.analysis.stability import loops_of
from weirlab.errors import InputError, ScenarioError, UnsupportedError
from weirlab.heavy import np
from weirlab.measures.utilisation import Utilisation
from weirlab.scenario import Scenario
from weirlab.scenario.network.layout import layout_of
from weirlab.scenario.resolve import translated
from weirlab.scenario.traffic.demands import middle_ps
from weirlab.scenario.traffic.hotspots import OutputGenerated
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.large import SharedMemory, escape_ratio, starvation_gain, starvation_sampling
from weirlab.theory.plane import Plane, Segment
from weirlab.theory.qcn import QcnPoint

STABILITY = "limit of linear stability"
ESCAPE = "escape before the window"
STARVES = "one message starves"
LASTS = "the floor lasts"


@dataclass(frozen=True)
class Side:
    """One side of a plane: a factor that is a number."""

    factor: str
    """A path in the scenario."""
    levels: Mapping[str, float]
    """Place by name of the level, growing: its number, but for a 0 on a logarithmic side."""
    logarithmic: bool
    zero: float | None = None
    """Where a level of 0 stands on a logarithmic side: a step below the least of the others."""


@dataclass(frozen=True)
class Boundary:
    """A limit."""

    label: str
    pieces: tuple[Segment, ...]
    """In the numbers of the sides, (across, up)."""


def boundaries(scenario: Scenario, across: Side, up: Side, others: Mapping[str, str]) -> list[Boundary]:
    """The limits that cross the plane of two factors of a study, the others being at the levels named.

    Of the severest queue that BCN or QCN controls, or of the hot output where the scenario has one hotspot:
    the limit of linear stability, and for an output-generated hotspot under BCN those of large signals
    (`weirlab.theory.large`; the escape from PAUSE only for a single switch with one shared memory whose PAUSE
    stops all inputs). None where nothing is controlled.
    """
    assert scenario.study is not None
    if scenario.control is None:
        return []
    factors = {
        name: {level.name: level.assignments for level in levels}
        for name, levels in scenario.study.factors.items()
    }
    base = scenario.assign({"study": None})
    found: dict[str, list[list[float]]] = {}
    for row, up_name in enumerate(up.levels):
        for column, across_name in enumerate(across.levels):
            names = {**others, across.factor: across_name, up.factor: up_name}
            changes = {
                path: value for name, level in names.items() for path, value in factors[name][level].items()
            }
            for label, ratio in _ratios(base, changes):
                empty = [[math.nan] * len(across.levels) for _ in up.levels]
                found.setdefault(label, empty)[row][column] = math.log(ratio) if ratio > 0 else -math.inf
    drawn = ((label, _contour(values, across, up)) for label, values in found.items())
    return [Boundary(label, pieces) for label, pieces in drawn if pieces]


def _contour(values: list[list[float]], across: Side, up: Side) -> tuple[Segment, ...]:
    # Beyond any picture, yet a number, as an interpolation needs one.
    numbers = np.clip(np.asarray(values), -700.0, 700.0)
    x, y = (np.array(list(side.levels.values())) for side in (across, up))
    plane = Plane(np.log(x) if across.logarithmic else x, np.log(y) if up.logarithmic else y, numbers)

    def placed(point: tuple[float, float]) -> tuple[float, float]:
        return (
            math.exp(point[0]) if across.logarithmic else point[0],
            math.exp(point[1]) if up.logarithmic else point[1],
        )

    return tuple((placed(first), placed(second)) for first, second in plane.contour(0.0))


def _ratios(base: Scenario, changes: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """What is needed over what there is, by name of the limit; nothing where the combination cannot be."""
    try:
        scenario = base.assign(dict(changes))
        spec = translated(scenario).spec
        queue = _queue(scenario, spec)
    except (ScenarioError, UnsupportedError):
        return
    if queue is None:
        return
    with suppress(InputError):  # QCN without an equilibrium
        yield STABILITY, _instability(queue.point)
    if not isinstance(queue.point, BcnPoint) or not _is_output_generated(scenario):
        return
    yield from _large(scenario, spec, queue, queue.point)


def _instability(point: BcnPoint | QcnPoint) -> float:
    """How far the worst loop is on its way to its limit, which is at 1: by its delay, or by the gain that no
    delay could be small enough for. Raises InputError for a QCN without an equilibrium."""
    ratios = [loop.delay_s / loop.decisive_s for loop in loops_of(point) if loop.decisive_s > 0]
    if isinstance(point, BcnPoint):
        ratios += [
            loop.gain * loop.interval_s * (loop.interval_s + 2 * loop.lead_s) / 4
            for loop in (point.increase, point.decrease)
        ]
    return max(ratios, default=math.inf)


def _queue(scenario: Scenario, spec: core.Spec) -> ControlledQueue | None:
    """The severest queue, or that of the hotspot."""
    if len(scenario.hotspots) != 1:
        return next(iter(queues_in(spec)), None)
    (hotspot,) = scenario.hotspots.values()
    ports = [q for q, port in enumerate(layout_of(spec.network).ports) if port.target == hotspot.at]
    return next(iter(queues_in(spec, ports, middle_ps(hotspot, spec))), None)


def _is_output_generated(scenario: Scenario) -> bool:
    return len(scenario.hotspots) == 1 and all(
        isinstance(hotspot, OutputGenerated) for hotspot in scenario.hotspots.values()
    )


def _large(
    scenario: Scenario, spec: core.Spec, queue: ControlledQueue, point: BcnPoint
) -> Iterator[tuple[str, float]]:
    memory = _memory(spec, queue)
    window_s = _until_the_window_s(scenario)
    if memory is not None and window_s is not None:
        yield ESCAPE, escape_ratio(point, memory, window_s)
    arriving = SharedMemory(0.0, queue.offered_fps)
    # Without a decrease nothing starves.
    yield STARVES, point.gd / starvation_gain(replace(point, gd=0.0), arriving)
    limit = starvation_sampling(point)
    yield LASTS, point.sampling / limit if limit > 0 else math.inf


def _memory(spec: core.Spec, queue: ControlledQueue) -> SharedMemory | None:
    """The memory of the only switch, where its PAUSE stops all inputs."""
    layout, memories = layout_of(spec.network), spec.switching.memories
    if len(layout.nodes) - len(layout.hosts) != 1 or len(memories) != 1:
        return None
    pause = memories[0].pause
    if pause is None or pause.scope != "switch":
        return None
    return SharedMemory(pause.xoff_bytes / queue.frame_bytes, queue.offered_fps)


def _until_the_window_s(scenario: Scenario) -> float | None:
    """From the start of the hotspot to that of the window in which the throughput is taken; 0 where that
    begins first."""
    name = utilisation_measures(scenario)[0]
    (hotspot,) = scenario.hotspots.values()
    measure = scenario.measure.get(name) if name else None
    if not isinstance(measure, Utilisation) or measure.window is None or hotspot.window is None:
        return None
    return max(0.0, float(measure.window.low.s - hotspot.window.low.s))
