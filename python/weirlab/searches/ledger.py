"""What was measured so far, by load, and what it means for each goal.

A trial that was stopped early is counted for a goal by what it has decided for that goal:

- The frames lost exceed what the goal allows in the whole trial: a trial of full length with high loss, which
  it would have been had it run on. Its loss ratio is a lower bound; it is used as nothing else.
- They exceed the budget of the trial at its look, and that is no less than the goal allows: a short trial
  with high loss, of the duration of the look.
- They are no more than the goal allows in the time run, and that was its initial duration or longer: a short
  trial with low loss. What was lost when a trial ended for its losses is the most it can say.
- Else it says nothing of the goal, and is left out: a stricter goal ended it because of its losses, so that
  its loss ratio is too high.

A load beyond the tester is an upper bound at once, for every goal that its other trials have not decided:
repeating it would show the tester once more. The trial that says so is not counted among those of the device,
but where of the frames that were sent more are lost than the goal allows of all: then it is one of full
length with high loss, and the share lost for certain is its loss ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from weirlab.searches.classify import Criterion, LoadClass, RelevantBounds, Sample, Tally, relevant_bounds
from weirlab.searches.controller import Outcome

Effective = Literal["trial", "with-waits"]
"""What a trial adds to the sums of a load: its duration (the default of RFC 9971), or that and the waits
around it, as CSIT counts."""


@dataclass(frozen=True)
class Verdict:
    """One trial seen with the eyes of one goal."""

    outcome: Outcome
    sample: Sample
    high: bool
    decided_s: float | None
    """When a high loss was decided [s after the beginning]; None where the trial ran to its end, so that it
    is not known, and with low loss."""
    of_device: bool = True
    """Whether the trial shows the device; else the tester could not offer the load."""


@dataclass
class Record:
    """All trials of one load with regard to one criterion."""

    load_fps: float
    tally: Tally
    verdicts: list[Verdict] = field(default_factory=list)
    load_class: LoadClass = LoadClass.UNDECIDED
    """Lower bound, upper bound or undecided."""
    lean: Literal["lower", "upper", "short", "none"] = "none"
    """What the load will become if it goes on like this; ``short`` where only short trials speak for a
    lower bound."""

    def add(self, verdict: Verdict) -> None:
        """Count one more trial."""
        self.verdicts.append(verdict)
        if verdict.of_device:
            self.tally.add(verdict.sample)
        self.load_class = self.tally.load_class
        if self.load_class is LoadClass.UNDECIDED and self.beyond_tester:
            self.load_class = LoadClass.UPPER
        self.lean = self._lean()

    @property
    def beyond_tester(self) -> bool:
        """Whether the tester can no longer offer this load."""
        return any(not verdict.of_device for verdict in self.verdicts)

    @property
    def of_device(self) -> list[Verdict]:
        """The trials that show the device, in the order of measurement."""
        return [verdict for verdict in self.verdicts if verdict.of_device]

    def full(self, verdict: Verdict) -> bool:
        """Whether a trial has full length for the criterion."""
        return verdict.sample.duration_s >= self.tally.criterion.duration_s

    def _lean(self) -> Literal["lower", "upper", "short", "none"]:
        if self.load_class is LoadClass.UPPER:
            return "upper"
        if self.load_class is LoadClass.LOWER:
            return "lower"
        tally = self.tally
        counted_s = tally.full_low_s + tally.high_s
        if tally.high_s > tally.criterion.exceed_ratio * counted_s:
            return "upper"
        if tally.full_low_s > 0.0:
            return "lower"
        return "short" if tally.short_low_s > 0.0 else "none"


class Ledger:
    """The trials of a search by load, classified by several criteria."""

    def __init__(
        self, criteria: Sequence[Criterion], initial_s: Sequence[float], effective: Effective
    ) -> None:
        """Args:
        initial_s: For each criterion the duration of the shortest trial worth making.
        """
        self._initial_s = initial_s
        self._criteria = criteria
        self._effective: Effective = effective
        self._records: list[dict[float, Record]] = [{} for _ in criteria]
        # Asked for many times between two trials.
        self._ascending: dict[int, list[Record]] = {}
        self._bounds: dict[int, tuple[Record | None, Record | None]] = {}

    def add(self, outcome: Outcome) -> None:
        """Count a trial."""
        self._ascending.clear()
        self._bounds.clear()
        for criterion, initial_s, records in zip(self._criteria, self._initial_s, self._records, strict=True):
            record = records.setdefault(outcome.load_fps, Record(outcome.load_fps, Tally(criterion)))
            sample = sample_of(outcome, criterion.loss_ratio, initial_s, self._effective)
            if sample is not None:
                high = sample.loss_ratio > criterion.loss_ratio
                stopped = outcome.trial.stopped_early and not outcome.beyond_tester
                decided_s = outcome.trial.ran_s if high and stopped else None
                of_device = outcome.is_of_device(criterion.loss_ratio)
                record.add(Verdict(outcome, sample, high, decided_s, of_device))

    def records(self, criterion: int) -> Sequence[Record]:
        """All loads in ascending order."""
        if criterion not in self._ascending:
            records = self._records[criterion]
            self._ascending[criterion] = [records[load_fps] for load_fps in sorted(records)]
        return self._ascending[criterion]

    def bounds(self, criterion: int) -> tuple[Record | None, Record | None]:
        """The relevant lower and upper bound."""
        if criterion not in self._bounds:
            records = self.records(criterion)
            found: RelevantBounds = relevant_bounds([record.load_class for record in records])
            self._bounds[criterion] = (
                None if found.lower is None else records[found.lower],
                None if found.upper is None else records[found.upper],
            )
        return self._bounds[criterion]


def initial_duration_s(initial_s: float | None, duration_s: float) -> float:
    """Duration of the shortest trial worth making, where a goal may have left it open."""
    return min(1.0, duration_s) if initial_s is None else initial_s


def sample_of(
    outcome: Outcome, allowed_ratio: float, initial_s: float, effective: Effective
) -> Sample | None:
    """How a trial counts for a goal that allows ``allowed_ratio``; None where it says nothing of it."""
    trial = outcome.trial
    duration_s, loss_ratio = outcome.duration_s, outcome.loss_ratio
    if trial.stopped_early and not outcome.beyond_tester:
        lost = outcome.loss_ratio * max(trial.sent_frames, trial.intended_frames)
        stopped_s = trial.ran_s
        look_s = trial.spec.look_s
        if _exceeds(lost, outcome.load_fps * duration_s, allowed_ratio):
            high = True
        elif look_s is not None and (trial.spec.loss_budget or 0.0) >= allowed_ratio:
            duration_s, high = max(stopped_s, look_s), True
        elif stopped_s >= initial_s and not _exceeds(lost, outcome.load_fps * stopped_s, allowed_ratio):
            duration_s, high = stopped_s, False
        else:
            return None
        loss_ratio = min(lost / (outcome.load_fps * duration_s), 1.0)
        # Frames are whole: the comparison of counts has the last word.
        if high:
            loss_ratio = max(loss_ratio, math.nextafter(allowed_ratio, 1.0))
        else:
            loss_ratio = min(loss_ratio, allowed_ratio)
    elif outcome.beyond_tester and outcome.is_of_device(allowed_ratio):
        loss_ratio = outcome.certain_loss_ratio
    waits_s = max(0.0, trial.effective_duration_s - trial.ran_s)
    return Sample(duration_s, duration_s + (waits_s if effective == "with-waits" else 0.0), loss_ratio)


def _exceeds(lost: float, intended: float, allowed_ratio: float) -> bool:
    """Whether more is lost than the whole frames that a testbed compares with would allow."""
    return lost + 1e-6 >= math.floor(allowed_ratio * round(intended)) + 1
