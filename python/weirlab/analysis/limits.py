"""Gains of congestion control that ask for more than a rate has, and are cut off without a word."""

from __future__ import annotations

from collections.abc import Iterator

from weirlab.scenario import Scenario
from weirlab.scenario.bcn import Bcn
from weirlab.scenario.qcn import Qcn
from weirlab.scenario.resolve_control import in_bytes, unit_of

__all__ = ["cut_off_gains"]

_QCN_LEVELS = 63
"""Largest feedback of QCN, which has 6 bits."""


def cut_off_gains(scenario: Scenario) -> list[str]:
    """A sentence for each gain with which the largest feedback takes more than a decrease may."""
    control = scenario.control
    if control is None:
        return []
    found = [*_of_bcn(control.bcn)] if control.bcn is not None else []
    return found + ([*_of_qcn(control.qcn)] if control.qcn is not None else [])


def _of_bcn(bcn: Bcn) -> Iterator[str]:
    point, sender = bcn.congestion_point, bcn.reaction_point
    unit = unit_of(point)
    assert unit is not None, "checked: Fb has a unit"
    most = (1 + 2 * point.w) * in_bytes(point.q_eq, point.frame_size) / unit.bytes
    if sender.gd * most >= 1:
        yield (
            f"control.bcn.reaction_point.gd: Fb of {1 / sender.gd:.3g} and more ({most:.3g} are possible) "
            f"takes all of a rate: it falls to 'min_rate' ({sender.min_rate}) at once"
        )


def _of_qcn(qcn: Qcn) -> Iterator[str]:
    sender = qcn.reaction_point
    if sender.gd * _QCN_LEVELS > 1 - sender.min_decrease_factor:
        level = (1 - sender.min_decrease_factor) / sender.gd
        yield (
            f"control.qcn.reaction_point.gd: feedback of {level:.3g} and more ({_QCN_LEVELS} are possible) "
            f"counts alike: 'min_decrease_factor' leaves {sender.min_decrease_factor:g} of a rate"
        )
