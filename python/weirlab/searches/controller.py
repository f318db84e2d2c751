"""What a search algorithm decides: which load to offer next, for how long, and what the outcomes mean.

A controller knows loads and outcomes only. Numbering trials, faults of the tester and the wording of results
are the business of `weirlab.searches.controlled`. A complete one:

    class Descend:  # from the maximum downwards, 10 % a trial, until the goal is met
        def __init__(self, goal, loads):
            self.goals, self.loads, self.phase = [goal], loads, "descending"
            self.lower = self.upper = None

        def settings(self):
            return {"kind": "descend"}

        def ask(self):
            load = self.loads.max_fps if self.upper is None else 0.9 * self.upper.load_fps
            return None if self.lower or load < self.loads.min_fps else Wish(load, self.goals[0].duration_s)

        def tell(self, outcome):
            if outcome.exceeds(self.goals[0]):
                self.upper = outcome
            else:
                self.lower = outcome

        def findings(self):
            return [Finding(lower=self.lower, upper=self.upper, ended=self.ask() is None)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from weirlab.errors import InputError
from weirlab.searches.base import Bound, GoalResult, Irregularity, LoadRange, SearchGoal
from weirlab.testbed.base import Purpose, Trial

if TYPE_CHECKING:
    from weirlab.searches.evidence import Evidence


@dataclass(frozen=True)
class Wish:
    """A trial that a controller wants."""

    load_fps: float
    """Summed over all directions."""
    duration_s: float
    loss_budget: float | None = None
    """See `TrialSpec.loss_budget`."""
    look_s: float | None = None
    """See `TrialSpec.look_s`."""
    purpose: Purpose = "search"
    following: int = 0
    """How many trials of this duration follow, while no load fails, before anything else is chosen: what is
    left of a list of loads. For an estimate of the time; it decides nothing."""


@dataclass(frozen=True)
class Outcome:
    """What came of a wish."""

    load_fps: float
    duration_s: float
    loss_ratio: float
    """In [0, 1]; 1 where the load is beyond the tester, so that it fails every goal."""
    forwarding_rate_fps: float
    """Frames/s that arrived, summed over all directions (RFC 2285 section 3.6.1)."""
    trial: Trial
    """The trial that says so. Its load is lower when this load was known to be beyond the tester."""
    beyond_tester: bool = False
    """Whether the tester could not offer the load."""
    certain_loss_ratio: float = 0.0
    """Of a load beyond the tester: share of all frames of the trial that were sent and lost in each attempt.
    A goal that allows less would have failed whatever the frames did that were not sent."""

    def exceeds(self, goal: SearchGoal) -> bool:
        """Whether more was lost than ``goal`` allows."""
        return self.loss_ratio > goal.loss_ratio

    def is_of_device(self, allowed_ratio: float) -> bool:
        """Whether what was lost is the device's for a goal that allows this loss ratio: the load was offered,
        or the device lost too much of what was."""
        return not self.beyond_tester or self.certain_loss_ratio > allowed_ratio


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a controller holds of one goal."""

    lower: Outcome | None
    """The load that stands as lower bound; it may exceed the goal, and then bounds nothing."""
    upper: Outcome | None
    """The load that stands as upper bound; it may meet the goal, and then bounds nothing."""
    ended: bool
    """Whether the controller wants no more trials for this goal."""
    timed_out: str = ""
    """Why it gave up, if it did."""
    not_stationary: str = ""
    """How the device was seen to have changed during the search, if it was."""
    conditional_throughput_fps: float | None = None
    evidence: Evidence | None = None


class Controller(Protocol):
    """An algorithm that chooses loads: pure, deterministic, and blind to everything but the outcomes it is
    told."""

    @property
    def goals(self) -> Sequence[SearchGoal]:
        """What it looks for."""
        ...

    @property
    def loads(self) -> LoadRange:
        """Where it looks."""
        ...

    def settings(self) -> Mapping[str, object]:
        """Its name as ``kind`` and its parameters, as JSON values; goals and loads excluded."""
        ...

    def ask(self) -> Wish | None:
        """The next trial, within ``loads``; None when it wants no more. Asking twice gives the same
        answer."""
        ...

    def tell(self, outcome: Outcome) -> None:
        """Take what came of the last wish."""
        ...

    @property
    def phase(self) -> str:
        """Where it stands, in a word or two."""
        ...

    def findings(self) -> Sequence[Finding]:
        """What it holds, in the order of ``goals``."""
        ...


def judge(goal: SearchGoal, finding: Finding) -> GoalResult:
    """Word what a controller holds of ``goal``: which bounds are valid, and why the result is not regular."""
    lower, upper = finding.lower, finding.upper
    irregularities: dict[Irregularity, str] = {}
    if not finding.ended:
        irregularities[Irregularity.UNFINISHED] = "the search has more trials to make"
    elif finding.timed_out:
        irregularities[Irregularity.TIMED_OUT] = finding.timed_out
    if finding.not_stationary:
        irregularities[Irregularity.NOT_STATIONARY] = finding.not_stationary
    if lower is not None and lower.exceeds(goal):
        lower, upper = None, lower
    elif upper is not None and not upper.exceeds(goal):
        lower, upper = upper, None
    if upper is None and lower is not None:
        irregularities[Irregularity.NO_UPPER_BOUND] = f"{lower.load_fps:,.0f} frames/s still met the goal"
    if lower is None and upper is not None:
        irregularities[Irregularity.NO_LOWER_BOUND] = f"{upper.load_fps:,.0f} frames/s did not meet the goal"
    if upper is not None and not upper.is_of_device(goal.loss_ratio):
        irregularities[Irregularity.TESTER_LIMITED] = (
            f"of {upper.trial.spec.intended_load_fps:,.0f} frames/s the tester sent "
            f"{upper.trial.offered_load_fps:,.0f}"
        )
    if finding.ended and goal.width is not None and lower is not None and upper is not None:
        width = 1.0 - lower.load_fps / upper.load_fps
        if width > goal.width * (1.0 + 1e-9):
            irregularities[Irregularity.TOO_WIDE] = f"{width:.3%} apart, the goal is {goal.width:.3%}"
    return GoalResult(
        goal=goal,
        lower=_bound(lower),
        upper=_bound(upper),
        irregularities=irregularities,
        conditional_throughput_fps=finding.conditional_throughput_fps,
        evidence=finding.evidence,
    )


def _bound(outcome: Outcome | None) -> Bound | None:
    return None if outcome is None else Bound(outcome.load_fps, outcome.trial)


def refuse_repeated_trials(algorithm: str, goals: Sequence[SearchGoal]) -> None:
    """Raise InputError for a goal that asks for more than one trial of a load, where the algorithm makes
    one."""
    for goal in goals:
        if goal.exceed_ratio > 0.0 or goal.duration_sum_s not in (None, goal.duration_s):
            raise InputError(
                f"goal {goal.name}: {algorithm} decides a load by one trial; it knows no exceed ratio and no "
                f"duration sum"
            )


def refuse_empty_trials(loads: LoadRange, shortest_s: float) -> None:
    """Raise InputError when a trial of this duration would have no frame at the lowest load."""
    if loads.min_fps * shortest_s < 1.0:
        raise InputError(
            f"the lowest load, {loads.min_fps:g} frames/s, sends no whole frame in a trial of "
            f"{shortest_s:g} s"
        )
