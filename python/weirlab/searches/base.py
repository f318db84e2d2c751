"""What a search is: it asks for a trial and receives the result. It owns no loop and reads no clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from weirlab.errors import InputError
from weirlab.testbed.base import Trial, TrialSpec

if TYPE_CHECKING:
    from weirlab.searches.controller import Outcome
    from weirlab.searches.disturbed import Disturbance
    from weirlab.searches.evidence import Evidence
    from weirlab.searches.half import HalfLoad

_SHORT_APART = 0.05
"""How much more load a shorter trial has to have passed to contradict one that failed, as it had less time to
see a loss."""


@dataclass(frozen=True, kw_only=True)
class SearchGoal:
    """A rate to find: the highest load whose loss ratio does not exceed ``loss_ratio``. Source: RFC 9971,
    section 4.4."""

    name: str
    loss_ratio: float
    """In [0, 1). 0: NDR."""
    width: float | None
    """Relative distance of the bounds at which the search ends: (upper - lower) / upper, in [1e-6, 1). None
    where the algorithm has a stop rule of its own."""
    duration_s: float
    """Final trial duration."""
    exceed_ratio: float = 0.0
    """Share of the duration sum that may be spent in trials with more loss, in [0, 1). 0: no such trial."""
    duration_sum_s: float | None = None
    """Summed duration of the final trials that decide about a load. None: one trial of ``duration_s``."""
    initial_duration_s: float | None = None
    """Shortest trial worth making. None: 1 s, or ``duration_s`` where that is less."""

    def __post_init__(self) -> None:
        def refuse(what: str, value: float | None) -> None:
            raise InputError(f"goal {self.name}: {what} (got {value})")

        if not 0.0 <= self.loss_ratio < 1.0:
            refuse("loss ratio must lie in [0, 1)", self.loss_ratio)
        if self.width is not None and not 1e-6 <= self.width < 1.0:
            refuse("width must lie in [1e-6, 1)", self.width)
        if not (math.isfinite(self.duration_s) and self.duration_s > 0.0):
            refuse("trial duration must be above 0 s", self.duration_s)
        if not 0.0 <= self.exceed_ratio < 1.0:
            refuse("exceed ratio must lie in [0, 1)", self.exceed_ratio)
        if self.duration_sum_s is not None and not 0.0 < self.duration_sum_s < math.inf:
            refuse("duration sum must be finite and above 0 s", self.duration_sum_s)
        if self.initial_duration_s is not None and not 0.0 < self.initial_duration_s <= self.duration_s:
            refuse("initial trial duration must lie in (0, final trial duration]", self.initial_duration_s)

    @classmethod
    def ndr(cls, *, duration_s: float, width: float | None = 0.005) -> SearchGoal:
        """The non-drop rate: no frame lost in one trial."""
        return cls(name="NDR", loss_ratio=0.0, width=width, duration_s=duration_s)

    @classmethod
    def pdr(cls, loss_ratio: float = 0.005, *, duration_s: float, width: float | None = 0.005) -> SearchGoal:
        """A partial drop rate: at most ``loss_ratio`` lost in one trial."""
        return cls(name="PDR", loss_ratio=loss_ratio, width=width, duration_s=duration_s)


@dataclass(frozen=True)
class LoadRange:
    """Loads that a search may offer [frames/s], summed over all directions. It asks for none outside."""

    min_fps: float
    max_fps: float

    def __post_init__(self) -> None:
        if not (self.min_fps > 0.0 and math.isfinite(self.max_fps)):
            raise InputError(
                f"loads must be finite and above 0 (got {self.min_fps:g} .. {self.max_fps:g} frames/s)"
            )
        if not self.min_fps < self.max_fps:
            raise InputError(f"min load {self.min_fps:g} is not below max load {self.max_fps:g} frames/s")

    def clip(self, load_fps: float) -> float:
        """The load of the range that is nearest to ``load_fps`` [frames/s]."""
        return min(max(load_fps, self.min_fps), self.max_fps)


class Irregularity(StrEnum):
    """Why a result is not regular: what was found is then no pair of valid bounds within the goal's width."""

    NO_UPPER_BOUND = "no upper bound seen"
    """The highest load that was offered still met the goal: the device, or the tester, ends above."""
    NO_LOWER_BOUND = "no lower bound seen"
    """No load that was offered met the goal."""
    TESTER_LIMITED = "tester-limited"
    """The upper bound is a load that the tester could not offer: it says nothing about the device."""
    TOO_WIDE = "bounds wider than the goal"
    NOT_STATIONARY = "device not stationary"
    """A bound no longer held when it was tested again, or the device was still changing at the end."""
    DISTURBED = "machine busy"
    """It rests on trials that the rest of the machine disturbed: it says as much of that as of the device."""
    TIMED_OUT = "timed out"
    """The search took longer than it was allowed to."""
    TESTBED_FAILED = "testbed failed"
    INTERRUPTED = "interrupted"
    UNFINISHED = "unfinished"
    """The search still has trials to ask for."""


class Ending(StrEnum):
    """How far a search came."""

    FINISHED = "finished"
    UNFINISHED = "unfinished"
    """It still has trials to ask for: resume it from its log."""
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    TESTBED_FAILED = "testbed failed"


@dataclass(frozen=True)
class Bound:
    """A load that was measured, and the trial that says so."""

    load_fps: float
    """Frames/s intended, summed over all directions: what the search has chosen."""
    trial: Trial

    @property
    def offered_fps(self) -> float:
        """Frames/s that the device was really offered in that trial: the rate that it shows."""
        return self.trial.offered_load_fps


@dataclass(frozen=True, kw_only=True)
class GoalResult:
    """What a search found for one goal."""

    goal: SearchGoal
    lower: Bound | None
    """Highest load that met the goal; the result of the search. None when no load met it."""
    upper: Bound | None
    """Lowest load above it that did not. None when none was seen."""
    irregularities: Mapping[Irregularity, str] = field(default_factory=dict)
    """Why the result is not regular, each reason with a sentence that has the figures."""
    conditional_throughput_fps: float | None = None
    """Forwarding rate at the lower bound that the exceed ratio promises (RFC 9971 section 4.8.3), of what was
    offered there. None where the algorithm does not classify loads, or without a lower bound."""
    evidence: Evidence | None = None
    """What speaks for the two bounds. None where the algorithm does not classify loads."""
    outcomes: Sequence[Outcome] = field(default=(), repr=False, compare=False)
    """What came of all trials of the search, those for other goals included."""

    @cached_property
    def half(self) -> HalfLoad | None:
        """The load that half of the trials pass, from all of them. None while none passed or none failed."""
        from weirlab.searches.half import half_load

        return half_load(self.goal, self.outcomes)

    @cached_property
    def disputed(self) -> tuple[Outcome, Outcome] | None:
        """A trial that failed and one at a higher load that passed, as far apart as there are: between them
        luck decides, or time. None where no trials contradict each other by more than the width of the goal,
        or by 5 % if the one that passed was shorter; and for a goal with an exceed ratio."""
        if self.goal.exceed_ratio > 0.0:
            return None
        own = [each for each in self.outcomes if each.is_of_device(self.goal.loss_ratio)]
        passed = [each for each in own if not each.exceeds(self.goal)]
        pairs = [
            (bad, good)
            for bad in own
            if bad.exceeds(self.goal)
            for good in passed
            if good.load_fps > bad.load_fps * (1.0 + self._apart(bad, good))
        ]
        return max(pairs, key=lambda pair: pair[1].load_fps / pair[0].load_fps, default=None)

    def _apart(self, bad: Outcome, good: Outcome) -> float:
        return (self.goal.width or 0.0) if good.duration_s >= bad.trial.effective_duration_s else _SHORT_APART

    @property
    def regular(self) -> bool:
        """Whether both bounds exist, are valid, come from the device and lie within the goal's width."""
        return not self.irregularities

    @property
    def remark(self) -> str:
        """All irregularities in one line, such as ``no upper bound seen: ...``; empty for a regular
        result."""
        return "; ".join(
            f"{kind}: {text}" if text else str(kind) for kind, text in self.irregularities.items()
        )

    @property
    def width(self) -> float | None:
        """(upper - lower) / upper of the intended loads, in [0, 1]; None without both bounds."""
        if self.lower is None or self.upper is None:
            return None
        return 1.0 - self.lower.load_fps / self.upper.load_fps


@dataclass(frozen=True)
class SearchState:
    """Where a search stands, for a display."""

    phase: str
    bounds: Mapping[str, tuple[float | None, float | None]]
    """Lower and upper bound [frames/s] by goal, as far as they are valid."""
    beyond_tester_fps: float | None = None
    """Lowest load [frames/s] that the tester could not offer, and that is not asked for again; None where
    there is none."""


@dataclass(frozen=True)
class FoundRates:
    """What a search found. `weirlab.search` gives it with tables, plots and a report, as a `SearchResult`."""

    goals: Sequence[GoalResult]
    trials: Sequence[Trial] = field(default_factory=list)
    """All trials in the order of measurement, those that decided nothing included."""
    ending: Ending = Ending.FINISHED
    message: str = ""
    """Why it ended before it had finished, for a person."""
    disturbance: Disturbance | None = None
    """What the rest of the machine cost; None where no trial was disturbed."""

    @property
    def regular(self) -> bool:
        """Whether every goal has a regular result."""
        return all(goal.regular for goal in self.goals)

    @property
    def time_s(self) -> float:
        """Sum of the effective durations of all trials."""
        return math.fsum(trial.effective_duration_s for trial in self.trials)

    def ended(self, ending: Ending, message: str) -> FoundRates:
        """The same result of a search that was ended from outside. Each goal says so instead of
        ``unfinished``."""
        why = {Irregularity(ending.value): message}
        goals = [
            replace(goal, irregularities=why | _without_unfinished(goal.irregularities))
            if Irregularity.UNFINISHED in goal.irregularities
            else goal
            for goal in self.goals
        ]
        return replace(self, goals=goals, ending=ending, message=message)


class Search(Protocol):
    """A search algorithm: pure, deterministic, resumable by telling it the trials of its log again."""

    def settings(self) -> Mapping[str, object]:
        """Everything that decides which trials it asks for, as JSON values. Two searches with equal settings
        that receive the same trials ask the same."""
        ...

    def ask(self) -> TrialSpec | None:
        """The next trial to measure, or None when the search has ended. Asking twice gives the same
        answer."""
        ...

    def tell(self, trial: Trial) -> None:
        """Take the result of the trial that ``ask`` gave last. Any other trial is a ValueError. Raises
        ImpossibleTrial, and forgets the trial, when the tester sent more than it was asked to."""
        ...

    def state(self) -> SearchState:
        """Where the search stands."""
        ...

    def time_left_s(self) -> float | None:
        """An estimate of the time that the remaining trials take; None where there is nothing to go by."""
        ...

    def result(self) -> FoundRates:
        """What has been found so far; irregular while the search has not ended."""
        ...


def _without_unfinished(irregularities: Mapping[Irregularity, str]) -> dict[Irregularity, str]:
    return {kind: text for kind, text in irregularities.items() if kind is not Irregularity.UNFINISHED}
