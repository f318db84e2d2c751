"""The search that a scenario describes. A new algorithm is a controller, a model in `weirlab.scenario.plan`,
and a case here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.errors import ScenarioError
from weirlab.search.base import LoadRange, SearchGoal
from weirlab.search.binary import Binary
from weirlab.search.controlled import ControlledSearch
from weirlab.search.controller import Controller
from weirlab.search.mdr import Mdr

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.scenario.plan import Search

__all__ = ["DEFAULT_WIDTH", "build"]

DEFAULT_WIDTH = 0.005
"""Final relative width where a goal names none. Source: CSIT MDR, section 2.8.2.1."""


def build(scenario: Scenario) -> ControlledSearch:
    """The search in the section `search` of ``scenario``. Raises ScenarioError when it has none."""
    from weirlab.scenario.offered import offered

    if scenario.search is None:
        raise ScenarioError([scenario.problem("search", "is missing: which load to vary, and what to find")])
    what = offered(scenario)
    return ControlledSearch(
        _controller(scenario.search, LoadRange(what.min_fps, what.max_fps)),
        frame_size_bytes=what.frame_size_bytes,
        directions=what.flows,
        unsent=scenario.search.trial.unsent,
        warm_up_s=scenario.search.trial.warm_up.s,
    )


def _controller(search: Search, loads: LoadRange) -> Controller:
    from weirlab.scenario import plan

    match search.algorithm:
        case plan.Binary(threshold=threshold) if threshold is not None:
            return Binary(_goals(search, None), loads, threshold_fps=threshold.fps)
        case plan.Binary():
            return Binary(_goals(search, DEFAULT_WIDTH), loads)
        case plan.Mdr() as mdr:
            initial_s = None if mdr.initial_duration is None else mdr.initial_duration.s
            return Mdr(
                _goals(search, DEFAULT_WIDTH, initial_s),
                loads,
                intermediate_phases=mdr.intermediate_phases,
                phase_timeout_s=mdr.phase_timeout.s,
            )


def _goals(search: Search, width: float | None, initial_s: float | None = None) -> list[SearchGoal]:
    return [
        SearchGoal(
            name=name,
            loss_ratio=goal.loss,
            width=width if goal.width is None else goal.width,
            duration_s=search.trial.duration.s,
            initial_duration_s=initial_s,
        )
        for name, goal in search.goals.items()
    ]
