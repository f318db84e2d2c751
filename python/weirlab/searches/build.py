"""The search that a scenario describes. A new algorithm is a controller, a model in `weirlab.scenario.plan`,
and a case here; one of another package is a controller and a model that makes it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from weirlab.errors import ScenarioError
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.searches.controlled import ControlledSearch
from weirlab.searches.controller import Controller
from weirlab.searches.goals import DEFAULT_WIDTH, goal_of
from weirlab.searches.mdr import Mdr
from weirlab.searches.mlr import Mlr
from weirlab.searches.weir import Weir

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.scenario.plan import Search
    from weirlab.units import Span


def build(scenario: Scenario, *, limited: bool | None = None) -> ControlledSearch:
    """The search in the section `search` of ``scenario``. Raises ScenarioError when it has none.

    Args:
        limited: Whether it ends by itself where it takes very long. None: where the scenario has no timeout.
    """
    from weirlab.scenario.traffic.offered import offered

    if scenario.search is None:
        raise ScenarioError([scenario.problem("search", "is missing: which load to vary, and what to find")])
    what = offered(scenario)
    _refuse_idle_hints(scenario, scenario.search)
    return ControlledSearch(
        _controller(scenario.search, LoadRange(what.min_fps, what.max_fps)),
        frame_size_bytes=what.frame_size_bytes,
        directions=what.flows,
        unsent=scenario.search.trial.unsent,
        warm_up_s=scenario.search.trial.warm_up.s,
        repeat_disturbed=not scenario.search.strict,
        limited=scenario.search.timeout is None if limited is None else limited,
    )


def _controller(search: Search, loads: LoadRange) -> Controller:
    from weirlab.scenario import plan

    match search.algorithm:
        case plan.Binary(threshold=threshold) if threshold is not None:
            return Binary(_goals(search, None), loads, threshold_fps=threshold.fps)
        case plan.Binary():
            return Binary(_goals(search, DEFAULT_WIDTH), loads)
        case plan.Mdr() as mdr:
            return Mdr(
                _goals(search, DEFAULT_WIDTH, _s(mdr.initial_duration)),
                loads,
                intermediate_phases=mdr.intermediate_phases,
                phase_timeout_s=mdr.phase_timeout.s,
            )
        case plan.Mlr() as mlr:
            return Mlr(
                _goals(search, DEFAULT_WIDTH, _s(mlr.initial_duration)),
                loads,
                preceding_targets=mlr.preceding_targets,
                effective=mlr.effective,
                hints_fps=_hints_fps(search),
            )
        case plan.Weir() as weir:
            return Weir(
                _goals(search, DEFAULT_WIDTH, _s(weir.initial_duration)),
                loads,
                early_stop=weir.early_stop,
                guard=weir.guard,
                checks=weir.checks,
                steady_s=weir.steady.s,
                sweep=weir.sweep,
                effective=weir.effective,
                hints_fps=_hints_fps(search),
            )
        case plan.Algorithm() as other:
            hints = _hints_fps(search) if other.TAKES_HINTS else {}
            from weirlab.searches.foreign import ForeignController

            goals = _goals(search, DEFAULT_WIDTH)
            return ForeignController(other, partial(other.controller, goals, loads, hints))


def _hints_fps(search: Search) -> dict[str, float]:
    return {name: goal.hint.fps for name, goal in search.goals.items() if goal.hint is not None}


def _refuse_idle_hints(scenario: Scenario, search: Search) -> None:
    """Raise ScenarioError for hints that the algorithm would not take."""
    if search.algorithm.TAKES_HINTS:
        return
    problems = [
        scenario.problem(
            f"search.goals.{name}.hint",
            f"{search.algorithm.kind} starts at the highest load; leave this out, or take 'weir' or 'mlr'",
        )
        for name in _hints_fps(search)
    ]
    if problems:
        raise ScenarioError(problems)


def _s(span: Span | None) -> float | None:
    return None if span is None else span.s


def _goals(search: Search, width: float | None, initial_s: float | None = None) -> list[SearchGoal]:
    return [
        goal_of(
            terms,
            name=name,
            width=width if search.goals[name].width is None else search.goals[name].width,
            initial_duration_s=initial_s,
        )
        for name, terms in search.terms.items()
    ]
