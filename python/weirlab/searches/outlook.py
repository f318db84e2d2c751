"""How long a search will still take: play a copy of its controller against the device that it seems to have.

The believed device has one knee for each goal: in the geometric middle of the goal's bounds where these are
close; else at the highest rate that the device has carried, but between the bounds and half a width from
either. It answers each trial as a device with these knees would, and trials end early as the testbed ends
them. Trials that follow one another whatever comes (`Wish.following`) are counted, not played.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.controller import Controller, Finding, Outcome, Wish
from weirlab.testbed.base import Trial

_MOST_TRIALS = 100
"""Trials after which a rehearsal ends; the time of those played is then the estimate."""
_SEEN_S = 0.05
"""How late a testbed sees a loss."""
_CLOSE = 4.0
"""Widths between two bounds up to which the knee is believed in their middle."""
_WIDTH = 0.01
"""Width of a goal that has none."""


def time_left_s(controller: Controller, trials: Sequence[Trial]) -> float | None:
    """Time that the rest of a search is likely to take, overheads like those of ``trials`` included. None
    before the first trial."""
    if not trials:
        return None
    asked = controller.ask()
    if asked is None:
        return 0.0
    overhead_s = max(0.0, math.fsum(t.effective_duration_s - t.ran_s for t in trials) / len(trials))
    if asked.following:
        return _in_a_row_s(asked, overhead_s)
    knees = [
        (goal.loss_ratio, _knee_fps(controller.loads, goal, finding, trials))
        for goal, finding in zip(controller.goals, controller.findings(), strict=True)
    ]
    stops = all(trial.stopped_early for trial in trials if _over_budget(trial))
    rehearsal = copy.deepcopy(controller, {id(trial): trial for trial in trials})
    left_s = 0.0
    until_s = trials[-1].spec.elapsed_s + trials[-1].effective_duration_s
    for number in range(_MOST_TRIALS):
        wish = rehearsal.ask()
        if wish is None:
            break
        if wish.following:
            return left_s + _in_a_row_s(wish, overhead_s)
        outcome = _believed(
            wish, knees, trials[-1], len(trials) + number, until_s + left_s, overhead_s, stops=stops
        )
        left_s += outcome.trial.effective_duration_s
        rehearsal.tell(outcome)
    return left_s


def _in_a_row_s(wish: Wish, overhead_s: float) -> float:
    return (1 + wish.following) * (wish.duration_s + overhead_s)


def _over_budget(trial: Trial) -> bool:
    return trial.spec.loss_budget is not None and trial.loss_ratio > trial.spec.loss_budget


def _knee_fps(loads: LoadRange, goal: SearchGoal, finding: Finding, trials: Sequence[Trial]) -> float:
    lower_fps = finding.lower.load_fps if finding.lower else loads.min_fps
    upper_fps = finding.upper.load_fps if finding.upper else loads.max_fps
    width = goal.width or _WIDTH
    if finding.lower and finding.upper and 1.0 - lower_fps / upper_fps < _CLOSE * width:
        return math.sqrt(lower_fps * upper_fps)
    beside = 1.0 - width / 2.0
    carried_fps = max(
        (_carried_fps(trial, goal) for trial in trials if not trial.stopped_early),
        default=upper_fps,
    )
    return min(max(carried_fps, lower_fps / beside), upper_fps * beside)


def _carried_fps(trial: Trial, goal: SearchGoal) -> float:
    """What a trial shows that the device can do: the load that met the goal, or what was forwarded of one
    that did not."""
    if trial.loss_ratio <= goal.loss_ratio:
        return trial.spec.intended_load_fps
    forwarded_fps = trial.received_frames / trial.spec.duration_s / (1.0 - goal.loss_ratio)
    return min(forwarded_fps, trial.spec.intended_load_fps * (1.0 - 2.0 * (goal.width or _WIDTH)))


def _believed(
    wish: Wish,
    knees: Sequence[tuple[float, float]],
    like: Trial,
    index: int,
    elapsed_s: float,
    overhead_s: float,
    *,
    stops: bool,
) -> Outcome:
    """The outcome of ``wish`` on a device with these knees [loss ratio of the goal, frames/s]: between two
    knees it loses what lies between the two goals, above the last one all that it does not forward."""
    exceeded = [loss_ratio for loss_ratio, knee_fps in knees if wish.load_fps > knee_fps]
    loss_ratio = 0.0
    if exceeded:
        floor = max(exceeded)
        stricter_than = [loss_ratio for loss_ratio, _ in knees if loss_ratio > floor]
        if stricter_than:
            loss_ratio = (floor + min(stricter_than)) / 2.0
        else:
            last_fps = max(knee_fps for _, knee_fps in knees)
            loss_ratio = max(1.0 - last_fps / wish.load_fps, floor + (1.0 - floor) / 1000.0)
    ran_s = _stopped_s(wish, loss_ratio) if stops else wish.duration_s
    frames = max(1, round(wish.load_fps * ran_s))
    trial = replace(
        like,
        spec=replace(
            like.spec,
            index=index,
            elapsed_s=elapsed_s,
            intended_load_fps=wish.load_fps,
            duration_s=wish.duration_s,
            loss_budget=wish.loss_budget,
            look_s=wish.look_s,
            purpose=wish.purpose,
        ),
        intended_frames=frames,
        sent_frames=frames,
        received_frames=frames - math.ceil(loss_ratio * frames),
        doubtful_frames=0,
        disturbed_frames=0,
        disturbance="",
        effective_duration_s=ran_s + overhead_s,
        offered_load_fps=wish.load_fps,
        stopped_early=ran_s < wish.duration_s,
        per_direction=(),
    )
    return Outcome(wish.load_fps, wish.duration_s, loss_ratio, wish.load_fps * (1.0 - loss_ratio), trial)


def _stopped_s(wish: Wish, loss_ratio: float) -> float:
    """When a trial with that loss ratio ends: its losses exceed the budget, of all its frames or at the
    look."""
    if wish.loss_budget is None or loss_ratio <= wish.loss_budget:
        return wish.duration_s
    exceeded_s = wish.loss_budget / loss_ratio * wish.duration_s
    if wish.look_s is not None:
        exceeded_s = min(exceeded_s, wish.loss_budget / loss_ratio * wish.look_s)
    return min(wish.duration_s, exceeded_s + _SEEN_S)
