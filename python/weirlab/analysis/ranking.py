"""The dual ranking for a scenario: its hot queues by what they demand of the gains, and the parameters."""

from __future__ import annotations

from dataclasses import dataclass

from weirlab.analysis.queues import ControlledQueue
from weirlab.errors import ScenarioError
from weirlab.scenario import Scenario
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.ranking import PARAMETERS, Demand, margin_elasticities

PATHS = {
    "sampling": "control.bcn.congestion_point.sample_every",
    "gd": "control.bcn.reaction_point.gd",
    "gi": "control.bcn.reaction_point.gi",
    "ru_fps": "control.bcn.reaction_point.ru",
    "w": "control.bcn.congestion_point.w",
    "q_eq_frames": "control.bcn.congestion_point.q_eq",
}
"""Where the parameters stand in a scenario."""


@dataclass(frozen=True)
class QueueLine:
    """A hot queue, and what it demands."""

    queue: ControlledQueue
    demand: Demand


@dataclass(frozen=True)
class ParameterLine:
    """A parameter of BCN, and how much hangs on it."""

    name: str
    title: str
    demand_increase: int
    """Elasticity of the demand on Gi: per cent for each per cent."""
    demand_decrease: int
    """The same of Gd."""
    margin: float
    """Elasticity of the delay margin of the hardest queue."""
    why: str


_WHY = {
    "sampling": (
        -1,
        -1,
        "in the denominator of both equations (7) and (10): half the samples, twice the gain",
    ),
    "gd": (0, 1, "the gain of equation (10), which grows with the square of HSD/mu"),
    "gi": (1, 0, "the gain of equation (7), which grows with HSD/mu"),
    "ru_fps": (1, 0, "acts as a factor of Gi"),
    "w": (0, 0, "drops out of both equations; it sets the lead of the loop, and with it the margin"),
    "q_eq_frames": (
        0,
        0,
        "drops out of the linear model; it bounds the feedback, and so the escape from PAUSE",
    ),
}


def rank_queues(scenario: Scenario, queues: list[ControlledQueue]) -> list[QueueLine]:
    """BCN's queues, the most demanding first. Raises ScenarioError where the scheme is not BCN."""
    lines = [
        QueueLine(
            queue,
            Demand(queue.point.flows, queue.point.service_fps / queue.line_fps, queue.point.sampling),
        )
        for queue in queues
        if isinstance(queue.point, BcnPoint)
    ]
    if not lines:
        raise ScenarioError([scenario.problem("control", "the ranking is made for BCN; write 'control.bcn'")])
    return sorted(lines, key=lambda line: -line.demand.decrease)


def rank_parameters(hardest: BcnPoint) -> list[ParameterLine]:
    """The six parameters by the weight that they have in the demands, then in the delay margin."""
    margins = margin_elasticities(hardest)
    lines = [
        ParameterLine(name, PARAMETERS[name], *_WHY[name][:2], margins[name], _WHY[name][2])
        for name in PARAMETERS
    ]

    def weight(line: ParameterLine) -> tuple[float, float, float]:
        demands = abs(line.demand_increase) + abs(line.demand_decrease)
        return (-demands, -abs(line.demand_decrease), -abs(line.margin))

    return sorted(lines, key=weight)
