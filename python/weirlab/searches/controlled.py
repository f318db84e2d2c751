"""What all algorithms share: the walk from loads that an algorithm wants to trials that a tester makes, and
back.

A `Controller` decides loads. `ControlledSearch` wraps it into a `Search`: it numbers the trials, warms the
device up, reads the loss ratio as the search asked for it, has a trial repeated that the tester spoiled, and
words the results.

**The tester's fault is not the device's.** A trial whose sent frames fall short of the intended ones by more
than `OFFER_TOLERANCE` is repeated: once, or up to `OFFERED_ATTEMPTS` in all where the tester has offered that
load or higher ones before, for as long in all. When the last attempt falls short too, the load is beyond
the tester: it fails every goal that trials sent in full have not decided there, loads at or above it are
answered from that trial instead of being offered again, and an upper bound that rests on it makes the result
tester-limited. But where in each of these attempts the device lost more of the frames that were sent than a
goal allows of all, the goal would have failed whatever became of the others: for that goal the upper bound is
the device's.

**Nor is the rest of the machine's.** Where a goal is exceeded only by frames whose loss a disturbance
explains, the trial is made again, within the bounds of `weirlab.searches.disturbed`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal, get_args

from weirlab.errors import ForeignFault, ImpossibleTrial, InputError
from weirlab.searches.base import Ending, FoundRates, GoalResult, SearchGoal, SearchState
from weirlab.searches.controller import Controller, Finding, Outcome, Wish, judge
from weirlab.searches.disturbed import Repeats
from weirlab.searches.outlook import time_left_s
from weirlab.searches.patience import PATIENCE, patience_s
from weirlab.testbed.base import Trial, TrialSpec

OFFER_TOLERANCE = 0.005
"""Share of the intended frames that the tester may fail to send, or send too many, before a trial is its
fault."""

ATTEMPTS = 2
"""Trials in a row that fall short of a load before it is beyond the tester."""
OFFERED_ATTEMPTS = 6
"""The same for a load that the tester has offered before: it can, and was disturbed. If it is disturbed in
one trial of three, at random, six in a row happen once in 729 times, two in a row once in 9."""

Unsent = Literal["excluded", "lost"]
"""What frames are that the tester intended and did not send: excluded from the loss ratio, or lost (the
default of RFC 9971)."""


class ControlledSearch:
    """A `Search` that follows a controller."""

    def __init__(
        self,
        controller: Controller,
        *,
        frame_size_bytes: int,
        directions: int = 1,
        unsent: Unsent = "excluded",
        warm_up_s: float = 0.0,
        offer_tolerance: float = OFFER_TOLERANCE,
        repeat_disturbed: bool = True,
        limited: bool = True,
    ) -> None:
        """Args:
        repeat_disturbed: Whether trials are made again that the rest of the machine disturbed. Else they
            count as they are.
        limited: Whether it ends by itself when it has taken much longer than such searches do: see
            `weirlab.searches.patience`. No part of the settings: it decides no trial, but how many there are.
        """
        names = [goal.name for goal in controller.goals]
        if not names or len(set(names)) < len(names):
            raise InputError(f"a search needs goals with names that differ (got {names})")
        if unsent not in get_args(Unsent):
            raise InputError(f"unsent frames are 'excluded' or 'lost' (got {unsent!r})")
        if not warm_up_s >= 0.0:
            raise InputError(f"the warm-up must be 0 s or more (got {warm_up_s})")
        self._controller = controller
        self._frame_size_bytes = frame_size_bytes
        self._directions = directions
        self._unsent: Unsent = unsent
        self._warm_up_s = warm_up_s
        self._offer_tolerance = offer_tolerance
        self._repeat_disturbed = repeat_disturbed
        self._limited = limited
        self._trials: list[Trial] = []
        self._elapsed_s = 0.0
        self._waited_s = 0.0
        self._spoiled = 0
        """How many trials in a row fell short of their load and are made again."""
        self._certain: list[float] = []
        """Of these: the share of all frames that the device lost for certain."""
        self._offered: list[tuple[float, float]] = []
        """Load [frames/s] and duration [s] of the trials that were sent in full."""
        self._repeats = Repeats()
        self._disturbed = False
        """Whether the last trial is made again because the rest of the machine disturbed it."""
        self._outcomes: list[Outcome] = []
        """Of all trials, those that are made again for a disturbance included."""
        self._beyond: Trial | None = None
        """The trial with the lowest load that is beyond the tester."""
        self._asked: TrialSpec | None = None
        self._advance()

    @property
    def goals(self) -> Sequence[SearchGoal]:
        """What is looked for."""
        return self._controller.goals

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials so far."""
        return self._trials

    def settings(self) -> Mapping[str, object]:
        """Everything that decides which trials are asked for, as JSON values."""
        return {
            "algorithm": dict(self._controller.settings()),
            "goals": [asdict(goal) for goal in self.goals],
            "loads": asdict(self._controller.loads),
            "frame_size_bytes": self._frame_size_bytes,
            "directions": self._directions,
            "unsent": self._unsent,
            "warm_up_s": self._warm_up_s,
            "offer_tolerance": self._offer_tolerance,
            "repeat_disturbed": self._repeat_disturbed,
        }

    def ask(self) -> TrialSpec | None:
        """The next trial to measure, or None when the search has ended."""
        return None if self._is_over() else self._asked

    def tell(self, trial: Trial) -> None:
        """Take the result of the trial that ``ask`` gave last."""
        if trial.spec != self._asked:
            raise ValueError(f"told of {trial.spec}, but asked for {self._asked}")
        off = (trial.sent_frames - trial.intended_frames) / max(trial.intended_frames, 1)
        slack = trial.spec.directions / max(trial.intended_frames, 1)
        if off > max(self._offer_tolerance, slack):
            raise ImpossibleTrial(
                f"trial {trial.spec.index}: {trial.sent_frames} frames were sent where "
                f"{trial.intended_frames} were intended"
            )
        fell_short = max(-off, _lateness(trial)) > max(self._offer_tolerance, slack) or bool(
            _hanging_on(trial.doubtful_frames, trial, self.goals, self._unsent)
        )
        self._trials.append(trial)
        self._elapsed_s += trial.effective_duration_s
        self._waited_s += max(0.0, trial.effective_duration_s - trial.ran_s)
        if trial.spec.purpose != "warm-up":
            if fell_short:
                self._certain.append(_certain_loss_ratio(trial))
            self._disturbed = (
                self._repeat_disturbed
                and not fell_short
                and self._repeats.wants(
                    trial,
                    _hanging_on(trial.disturbed_frames, trial, self.goals, self._unsent),
                    len(self._trials),
                )
            )
            if fell_short and self._spoiled + 1 < self._attempts(trial.spec):
                self._spoiled += 1
            elif self._disturbed:
                self._outcomes.append(self._outcome(trial))
            else:
                self._spoiled = 0
                if fell_short:
                    self._beyond = trial
                outcome = self._outcome(trial)
                self._certain = []
                if not fell_short:
                    self._offered.append((outcome.load_fps, trial.ran_s))
                self._outcomes.append(outcome)
                self._controller.tell(outcome)
        self._advance()

    def state(self) -> SearchState:
        """Where the search stands."""
        bounds: dict[str, tuple[float | None, float | None]] = {}
        for result in self._results():
            bounds[result.goal.name] = (
                result.lower.load_fps if result.lower else None,
                result.upper.load_fps if result.upper else None,
            )
        warming = self._asked is not None and self._asked.purpose == "warm-up"
        return SearchState(
            "warm-up" if warming else self._controller.phase,
            bounds,
            beyond_tester_fps=None if self._beyond is None else self._beyond.spec.intended_load_fps,
        )

    def time_left_s(self) -> float | None:
        """An estimate of the time that the remaining trials take: see `weirlab.searches.outlook`."""
        try:
            return time_left_s(self._controller, self._trials)
        except ForeignFault:  # a controller of another package that cannot be copied or rehearsed
            return None

    def result(self) -> FoundRates:
        """What has been found so far."""
        outcomes = list(self._outcomes)
        goals = [replace(goal, outcomes=outcomes) for goal in self._results()]
        timed_out = [finding.timed_out for finding in self._controller.findings() if finding.timed_out]
        ending = Ending.UNFINISHED if self._asked else Ending.TIMED_OUT if timed_out else Ending.FINISHED
        result = FoundRates(
            goals,
            list(self._trials),
            ending,
            timed_out[0] if timed_out else "",
            disturbance=self._repeats.summary(),
        )
        if not self._is_over():
            return result
        return result.ended(
            Ending.TIMED_OUT,
            f"{self._elapsed_s:.1f} s used, {PATIENCE:g} times as long as binary searches for its goals; "
            f"the device may have no such rate, or set search.timeout",
        )

    def _is_over(self) -> bool:
        """Whether it has taken so long that it ends, though it has more trials to ask for."""
        if not self._limited or self._asked is None or not self._trials:
            return False
        wait_s = self._waited_s / len(self._trials)
        return self._elapsed_s >= patience_s(self.goals, self._controller.loads, wait_s)

    def _attempts(self, spec: TrialSpec) -> int:
        """How many trials in a row have to fall short before the load is beyond the tester."""
        offered_s = math.fsum(
            duration_s for load_fps, duration_s in self._offered if load_fps >= spec.intended_load_fps
        )
        return OFFERED_ATTEMPTS if offered_s >= spec.duration_s * (1.0 - 1e-9) else ATTEMPTS

    def _advance(self) -> None:
        """Settle what is asked next."""
        if self._warm_up_s > 0.0 and not self._trials:
            self._asked = self._spec(Wish(self._controller.loads.max_fps, self._warm_up_s, purpose="warm-up"))
            return
        if self._spoiled or self._disturbed:
            last = self._trials[-1].spec
            self._asked = self._spec(
                Wish(last.intended_load_fps, last.duration_s, last.loss_budget, last.look_s, "repeat")
            )
            return
        wish = self._controller.ask()
        while wish is not None and self._beyond and wish.load_fps >= self._beyond.spec.intended_load_fps:
            self._controller.tell(self._outcome_beyond(wish, self._beyond))
            wish = self._controller.ask()
        self._asked = None if wish is None else self._spec(wish)

    def _spec(self, wish: Wish) -> TrialSpec:
        loads = self._controller.loads
        if not loads.min_fps <= wish.load_fps <= loads.max_fps:
            raise ValueError(
                f"{self._controller.settings()['kind']} asked for {wish.load_fps:g} frames/s, outside of "
                f"{loads.min_fps:g} .. {loads.max_fps:g}"
            )
        return TrialSpec(
            index=len(self._trials),
            elapsed_s=self._elapsed_s,
            intended_load_fps=wish.load_fps,
            duration_s=wish.duration_s,
            frame_size_bytes=self._frame_size_bytes,
            directions=self._directions,
            purpose=wish.purpose,
            loss_budget=wish.loss_budget,
            look_s=wish.look_s,
        )

    def _outcome(self, trial: Trial) -> Outcome:
        spec = trial.spec
        if trial is self._beyond:
            wish = Wish(spec.intended_load_fps, spec.duration_s)
            return replace(self._outcome_beyond(wish, trial), certain_loss_ratio=min(self._certain))
        loss_ratio = trial.loss_ratio_of_intended if self._unsent == "lost" else trial.loss_ratio
        return Outcome(
            load_fps=spec.intended_load_fps,
            duration_s=spec.duration_s,
            loss_ratio=loss_ratio,
            forwarding_rate_fps=_forwarding_rate_fps(trial),
            trial=trial,
        )

    @staticmethod
    def _outcome_beyond(wish: Wish, trial: Trial) -> Outcome:
        return Outcome(
            load_fps=wish.load_fps,
            duration_s=wish.duration_s,
            loss_ratio=1.0,
            forwarding_rate_fps=_forwarding_rate_fps(trial),
            trial=trial,
            beyond_tester=True,
        )

    def _results(self) -> list[GoalResult]:
        findings = self._controller.findings()
        if len(findings) != len(self.goals):
            raise ValueError(
                f"{self._controller.settings()['kind']} has {len(findings)} findings for {len(self.goals)} "
                f"goals; a controller has one for each, in their order"
            )
        judged = [
            judge(goal, self._of_offered(finding)) for goal, finding in zip(self.goals, findings, strict=True)
        ]
        return [self._repeats.reviewed(result) for result in judged]

    def _of_offered(self, finding: Finding) -> Finding:
        """What a controller holds, with the conditional throughput of what was offered. Where unsent frames
        are lost, they are missing from it already."""
        rate_fps, lower = finding.conditional_throughput_fps, finding.lower
        if rate_fps is None or lower is None or self._unsent == "lost":
            return finding
        offered = min(1.0, lower.trial.offered_load_fps / lower.trial.spec.intended_load_fps)
        return replace(finding, conditional_throughput_fps=rate_fps * offered)


def _hanging_on(frames: int, trial: Trial, goals: Sequence[SearchGoal], unsent: Unsent) -> list[SearchGoal]:
    """The goals that are exceeded only because of so many lost ``frames``, which may not be the device's."""
    if frames == 0:
        return []
    lost = trial.sent_frames - trial.received_frames
    expected = [trial.sent_frames]
    if unsent == "lost" and not trial.stopped_early:
        expected = [max(trial.sent_frames, trial.intended_frames)]
        lost = expected[0] - trial.received_frames
    if trial.stopped_early:
        spec = trial.spec
        expected = [round(spec.intended_load_fps * (s or spec.duration_s)) for s in (spec.look_s, None)]
    return [
        goal for goal in goals if any(lost - frames <= goal.loss_ratio * count < lost for count in expected)
    ]


def _certain_loss_ratio(trial: Trial) -> float:
    """The share of the frames of the whole trial that were sent and lost, those left out that the tester
    itself may have lost."""
    lost = trial.sent_frames - trial.received_frames - trial.doubtful_frames
    return lost / max(trial.intended_frames, trial.spec.intended_frames, 1)


def _lateness(trial: Trial) -> float:
    """Share by which the tester sent more slowly than intended, in [0, 1]; it may have sent all frames, but
    late."""
    return max(0.0, 1.0 - trial.offered_load_fps / trial.spec.intended_load_fps)


def _forwarding_rate_fps(trial: Trial) -> float:
    """Exactly the load where every intended frame arrived."""
    return trial.spec.intended_load_fps * min(1.0, trial.received_frames / trial.intended_frames)
