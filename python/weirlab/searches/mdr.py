"""Multiple Drop Rate search: the rates of several loss ratios in one search, with short trials first.

An initial phase of up to three short trials (at the highest load, at the rate received there, at the rate
received then) gives the first interval. Each further phase has a trial duration, from the initial to the
final one in a geometric sequence, and a width goal, twice as wide for each phase that is still to come. It
ends when every goal has two valid bounds, near enough to each other and measured with the duration of the
phase:

1. a lower bound that loses too much is moved down by twice the interval's width (external search),
2. an upper bound that does not is moved up likewise,
3. the widest interval is halved (internal search),
4. bounds that were measured with a shorter duration are measured again.

Widths are relative to the upper bound, steps are logarithmic. The upper bound at the highest load counts as
valid; an interval whose lower bound at the lowest load is invalid is not refined.

Source: CSIT MDR, sections 2.8.2 and 2.8.3

DEVIATION: any number of goals, as the text suggests. The strictest goal takes the part of the NDR.
DEVIATION: the timeout of a phase is measured in effective duration of its trials, because a search reads no
clock, and a search that times out keeps what it found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weirlab.errors import InputError
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.controller import Finding, Outcome, Wish, refuse_empty_trials, refuse_repeated_trials

INITIAL_DURATION_S = 1.0
INTERMEDIATE_PHASES = 2
PHASE_TIMEOUT_S = 600.0


class Mdr:
    """Controller of an MDR search."""

    def __init__(
        self,
        goals: Sequence[SearchGoal],
        loads: LoadRange,
        *,
        intermediate_phases: int = INTERMEDIATE_PHASES,
        phase_timeout_s: float = PHASE_TIMEOUT_S,
    ) -> None:
        """Args:
        intermediate_phases: Phases between the initial and the final one.
        phase_timeout_s: Effective duration of the trials of one phase, beyond which the search gives up.
        """
        refuse_repeated_trials("mdr", goals)
        if intermediate_phases < 0:
            raise InputError(f"intermediate phases must be 0 or more (got {intermediate_phases})")
        if not (math.isfinite(phase_timeout_s) and phase_timeout_s > 0.0):
            raise InputError(f"the timeout of a phase must be above 0 s (got {phase_timeout_s:g})")
        final_s = _common("final trial duration", [goal.duration_s for goal in goals])
        initial_s = _common("initial trial duration", [_initial_duration_s(goal) for goal in goals])
        refuse_empty_trials(loads, initial_s)
        self.goals = goals
        self.loads = loads
        self._timeout_s = phase_timeout_s
        self._initial_s = initial_s
        self._phases = [
            _Phase(
                name=f"intermediate phase {place + 1}",
                duration_s=initial_s * (final_s / initial_s) ** (place / intermediate_phases),
                doublings=intermediate_phases - place,
            )
            for place in range(intermediate_phases)
        ]
        self._phases.append(_Phase(name="final phase", duration_s=final_s, doublings=0))
        self._place = -1
        """Place of the current phase; -1 in the initial one, len(phases) after the last."""
        self._initial: list[Outcome] = []
        strictest_first = sorted(range(len(goals)), key=lambda place: goals[place].loss_ratio)
        self._intervals = [_Interval(goals[place]) for place in strictest_first]
        self._places = [strictest_first.index(place) for place in range(len(goals))]
        self._used_s = 0.0
        """Effective duration of the trials of the current phase."""
        self._timed_out = ""
        self._next_fps: float | None = loads.max_fps

    def settings(self) -> Mapping[str, object]:
        """Name and parameters."""
        return {
            "kind": "mdr",
            "intermediate_phases": len(self._phases) - 1,
            "phase_timeout_s": self._timeout_s,
        }

    def ask(self) -> Wish | None:
        """The next trial."""
        if self._next_fps is None:
            return None
        duration_s = self._initial_s if self._place < 0 else self._phases[self._place].duration_s
        return Wish(self._next_fps, duration_s)

    def tell(self, outcome: Outcome) -> None:
        """Take what came of the last wish."""
        if self._next_fps is None:
            raise ValueError("received a trial after the end")
        if self._place < 0:
            self._initial.append(outcome)
            self._next_fps = self._next_initial_fps()
            if self._next_fps is not None:
                return
            *_, upper, lower = self._initial
            for interval in self._intervals:
                interval.lower, interval.upper = lower, upper
            self._place = 0
        else:
            self._used_s += outcome.trial.effective_duration_s
            for interval in self._intervals:
                interval.update(outcome)
        self._proceed()

    @property
    def phase(self) -> str:
        """The phase that is under way."""
        if self._place < 0:
            return "initial phase"
        return self._phases[self._place].name if self._place < len(self._phases) else "done"

    def findings(self) -> Sequence[Finding]:
        """The current interval of each goal."""
        return [self._finding(self._intervals[place]) for place in self._places]

    def _finding(self, interval: _Interval) -> Finding:
        lower, upper = interval.lower, interval.upper
        if self._place < 0 and self._initial:
            upper = self._initial[-1]
        return Finding(lower=lower, upper=upper, ended=self._next_fps is None, timed_out=self._timed_out)

    def _next_initial_fps(self) -> float | None:
        """MRR after the first trial, MRR2 after the second; far enough below for an interval of the final
        width. A MRR2 at the lowest load is not measured."""
        *before, last = self._initial
        if len(before) == 2:
            return None
        final_width = max(interval.goal_width for interval in self._intervals)
        wide_enough_fps = last.load_fps * (1.0 - 0.999 * final_width)
        received_fps = min(last.forwarding_rate_fps, wide_enough_fps)
        if before and received_fps <= self.loads.min_fps:
            return None
        return self.loads.clip(received_fps)

    def _proceed(self) -> None:
        """Settle the next load, in this phase or a later one."""
        while self._place < len(self._phases):
            phase = self._phases[self._place]
            self._next_fps = self._next_load_fps(phase)
            if self._next_fps is not None:
                if self._used_s > self._timeout_s:
                    self._next_fps = None
                    self._timed_out = (
                        f"{phase.name} took {self._used_s:.1f} s, more than {self._timeout_s:g} s"
                    )
                return
            self._place += 1
            self._used_s = 0.0
        self._next_fps = None

    def _next_load_fps(self, phase: _Phase) -> float | None:
        """The next load of a phase, or None when the phase has reached its goals."""
        return (
            self._external_down_fps(phase)
            or self._external_up_fps(phase)
            or self._internal_fps(phase)
            or self._remeasured_fps(phase)
        )

    def _external_down_fps(self, phase: _Phase) -> float | None:
        for interval in self._intervals:
            lower = interval.measured_lower
            if lower.exceeds(interval.goal):
                if lower.load_fps > self.loads.min_fps:
                    step = _doubled(interval.width_or(phase))
                    return max(self.loads.min_fps, lower.load_fps * (1.0 - step))
                if lower.duration_s < phase.duration_s:
                    return self.loads.min_fps
        return None

    def _external_up_fps(self, phase: _Phase) -> float | None:
        for interval in self._intervals:
            upper = interval.measured_upper
            if not upper.exceeds(interval.goal):
                if upper.load_fps < self.loads.max_fps:
                    step = _doubled(interval.width_or(phase))
                    return min(self.loads.max_fps, upper.load_fps / (1.0 - step))
                if upper.duration_s < phase.duration_s:
                    return self.loads.max_fps
        return None

    def _internal_fps(self, phase: _Phase) -> float | None:
        def excess(interval: _Interval) -> float:
            return interval.width / interval.width_goal(phase)

        refinable = [each for each in self._intervals if not each.measured_lower.exceeds(each.goal)]
        widest = max(refinable, key=excess, default=None)
        if widest is None or excess(widest) <= 1.0:
            return None
        return math.sqrt(widest.measured_lower.load_fps * widest.measured_upper.load_fps)

    def _remeasured_fps(self, phase: _Phase) -> float | None:
        bounds = [each.measured_lower for each in self._intervals]
        bounds += [each.measured_upper for each in self._intervals]
        return next((bound.load_fps for bound in bounds if bound.duration_s < phase.duration_s), None)


class _Phase(NamedTuple):
    """A phase after the initial one."""

    name: str
    duration_s: float
    doublings: int
    """How often the final width goal is doubled."""


class _Interval:
    """The two loads between which the rate of a goal is looked for."""

    def __init__(self, goal: SearchGoal) -> None:
        if goal.width is None:
            raise InputError(f"goal {goal.name}: an MDR search needs a width")
        self.goal = goal
        self.goal_width = goal.width
        self.lower: Outcome | None = None
        self.upper: Outcome | None = None

    @property
    def measured_lower(self) -> Outcome:
        assert self.lower is not None, "the initial phase sets both bounds"
        return self.lower

    @property
    def measured_upper(self) -> Outcome:
        assert self.upper is not None, "the initial phase sets both bounds"
        return self.upper

    @property
    def width(self) -> float:
        return 1.0 - self.measured_lower.load_fps / self.measured_upper.load_fps

    def width_goal(self, phase: _Phase) -> float:
        width = self.goal_width
        for _ in range(phase.doublings):
            width = _doubled(width)
        return width

    def width_or(self, phase: _Phase) -> float:
        """The interval's width, or the goal of the phase where that is more: no step is smaller."""
        return max(self.width, self.width_goal(phase))

    def update(self, new: Outcome) -> None:
        """Take a measurement for this or another goal into account.

        Above a valid upper bound it changes nothing, below a valid lower bound only with high loss; an
        invalid lower bound yields only downwards, an invalid upper one upwards or to a loss inside."""
        lower, upper = self.measured_lower, self.measured_upper
        if new.load_fps == lower.load_fps:
            self.lower = new
        elif new.load_fps == upper.load_fps:
            self.upper = new
        elif lower.exceeds(self.goal):
            if new.load_fps < lower.load_fps:
                self.lower, self.upper = new, lower
        elif new.load_fps < lower.load_fps:
            if new.exceeds(self.goal):
                self.lower = new
        elif new.load_fps > upper.load_fps:
            if not upper.exceeds(self.goal):
                self.lower, self.upper = upper, new
        elif new.exceeds(self.goal):
            self.upper = new
        else:
            self.lower = new


def _doubled(width: float) -> float:
    """The relative width of two adjacent intervals of this relative width; a trifle less, so that halving it
    meets the goal in spite of rounding."""
    return 1.999 * width - width * width


def _initial_duration_s(goal: SearchGoal) -> float:
    if goal.initial_duration_s is None:
        return min(INITIAL_DURATION_S, goal.duration_s)
    return goal.initial_duration_s


def _common(what: str, values: Sequence[float]) -> float:
    if len(set(values)) != 1:
        raise InputError(f"an MDR search needs one {what} for all goals (got {values})")
    return values[0]
