"""Which parameters and which traffic stress BCN most: the dual ranking of algorithmic and parametrical (AP)
sensitivity.

One unit of feedback changes the rate of a flow by Gi p mu/HSD a second (increase) and by Gd p (mu/HSD)^2
(decrease). Seen from the gains: to act as strongly, Gi must grow with HSD / (p mu) and Gd with
(HSD/mu)^2 / p. HSD counts flows here, mu is a fraction of the line rate. Source: ZRL benchmark, equations
1 to 10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from weirlab.theory.bcn import BcnPoint

PARAMETERS: Mapping[str, str] = {
    "sampling": "sampling probability",
    "gd": "decrease gain",
    "gi": "increase gain",
    "ru_fps": "rate unit",
    "w": "weight of the queue's change",
    "q_eq_frames": "set point of the queue",
}
"""The six parameters of BCN by the names of `BcnPoint`."""


@dataclass(frozen=True)
class Demand:
    """What a hotspot demands of the gains."""

    flows: float
    """HSD as a number of flows."""
    service: float
    """mu as a fraction of the line rate."""
    sampling: float

    @property
    def increase(self) -> float:
        """Gain of an increase for one unit of control action: HSD / (p mu). Equation 7."""
        return self.flows / (self.sampling * self.service)

    @property
    def decrease(self) -> float:
        """Gain of a decrease for one unit of control action: (HSD / mu)^2 / p. Equation 10."""
        return (self.flows / self.service) ** 2 / self.sampling


@dataclass(frozen=True)
class ParameterRank:
    """How the demand on the two gains answers to one quantity: per cent for each per cent."""

    name: str
    increase: int
    """Elasticity of `Demand.increase`."""
    decrease: int
    """Elasticity of `Demand.decrease`."""

    @property
    def weight(self) -> int:
        """Sum of the absolute elasticities, by which the quantities are ranked."""
        return abs(self.increase) + abs(self.decrease)


def rank_parameters() -> list[ParameterRank]:
    """The quantities in equations 7 and 10, the most demanding first. They are the same at every point."""
    rows = [ParameterRank("HSD", 1, 2), ParameterRank("mu", -1, -2), ParameterRank("p", -1, -1)]
    return sorted(rows, key=lambda row: -row.weight)


def margin_elasticities(point: BcnPoint) -> dict[str, float]:
    """d ln(delay margin) / d ln(parameter) for each of `PARAMETERS`: by how many per cent one per cent of a
    parameter changes the delay that the worse loop bears. The rate unit is held apart from the gain."""
    return {name: _elasticity(point, name) for name in PARAMETERS}


def _elasticity(point: BcnPoint, name: str) -> float:
    step = 1e-4
    ends = [
        replace(point, **{name: getattr(point, name) * math.exp(sign * step)}).delay_margin_s
        for sign in (1, -1)
    ]
    return math.log(ends[0] / ends[1]) / (2 * step)
