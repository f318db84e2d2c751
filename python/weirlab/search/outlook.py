"""How long a search will still take: play a copy of its controller against the device that it seems to have.

The believed device has one knee for each goal, in the geometric middle of the goal's current bounds; a
missing bound is replaced by the end of the range. It answers every trial as a device with these knees would.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

from weirlab.search.controller import Controller, Finding, Outcome, Wish
from weirlab.testbed.base import Trial

__all__ = ["time_left_s"]

_MOST_TRIALS = 1000


def time_left_s(controller: Controller, trials: Sequence[Trial]) -> float | None:
    """Time that the rest of a search is likely to take, overheads like those of ``trials`` included. None
    before the first trial, and where the copy of the controller does not come to an end."""
    if not trials:
        return None
    knees = [
        (goal.loss_ratio, _knee_fps(controller, finding))
        for goal, finding in zip(controller.goals, controller.findings(), strict=True)
    ]
    overhead_s = max(0.0, math.fsum(t.effective_duration_s - t.spec.duration_s for t in trials) / len(trials))
    rehearsal = copy.deepcopy(controller, {id(trial): trial for trial in trials})
    left_s = 0.0
    for _ in range(_MOST_TRIALS):
        wish = rehearsal.ask()
        if wish is None:
            return left_s
        left_s += wish.duration_s + overhead_s
        rehearsal.tell(_believed(wish, knees, trials[-1]))
    return None


def _knee_fps(controller: Controller, finding: Finding) -> float:
    lower = finding.lower.load_fps if finding.lower else controller.loads.min_fps
    upper = finding.upper.load_fps if finding.upper else controller.loads.max_fps
    return math.sqrt(lower * upper)


def _believed(wish: Wish, knees: Sequence[tuple[float, float]], like: Trial) -> Outcome:
    """The outcome of ``wish`` on a device with these knees [loss ratio of the goal, frames/s]: between two
    knees it loses what lies between the two goals, above the last one all that it does not forward."""
    exceeded = [loss_ratio for loss_ratio, knee_fps in knees if wish.load_fps > knee_fps]
    if exceeded:
        floor = max(exceeded)
        stricter_than = [loss_ratio for loss_ratio, _ in knees if loss_ratio > floor]
        if stricter_than:
            loss_ratio = (floor + min(stricter_than)) / 2.0
        else:
            last_fps = max(knee_fps for _, knee_fps in knees)
            loss_ratio = max(1.0 - last_fps / wish.load_fps, floor + (1.0 - floor) / 1000.0)
    else:
        loss_ratio = 0.0
    return Outcome(wish.load_fps, wish.duration_s, loss_ratio, wish.load_fps * (1.0 - loss_ratio), like)
