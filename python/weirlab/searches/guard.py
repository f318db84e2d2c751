"""Whether the bounds still hold at the end, and whether the device changed: `mlr` that looks back.

- The highest load is offered in three short trials at the beginning, which also show where to begin.
- When all goals are reached, the lowest upper bound is tested again, unless its failure took so long that a
  clean repetition would say nothing, and each lower bound that passed last long ago. A goal that lets some
  trials exceed has the test repeated until one fails, or the upper bound has become none: then the search
  goes on.
- Where trials have contradicted each other, the highest load is offered again: `drift` says whether
  the device changed or answers at random. At once where an upper bound that nothing can lift was passed
  clearly above, and each time the search has gone on for long; else at the end.
- A device that has changed makes the result irregular where a goal allows no trial to exceed: nothing can
  lift its upper bounds. Else the search starts over where it is, as long as the device changes slower each
  time, and does not end before a question has found it at rest, as long after the last change as that took.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weirlab.searches.checks import CHEAP, Checked
from weirlab.searches.controller import Outcome, Wish
from weirlab.searches.drift import FIRST, Change, Comparison, contradicted_at
from weirlab.searches.evidence import Stationarity
from weirlab.searches.ledger import Record

_POWER = 10.0
"""How many times longer than the failure took its repetition lasts. If failures came at random times, it
would pass with probability 1 / (1 + _POWER)."""
_CLEAR = 2
"""How far above an upper bound, in widths of the goal, a later pass is a reason to ask at once."""
_LONG = 64
"""Trials after which a search whose trials have contradicted each other asks before it goes on: more than
most searches need in all."""
_SLOWER = 0.9
"""Share of its rate before to which a change has to have slowed down for the device to come to rest."""


@dataclass
class _Test:
    """Tests of an upper bound after its goal was reached."""

    load_fps: float
    duration_s: float
    clean: int = 0
    failed: int = 0
    last: int = -1
    """Index of the last of them."""


class Guarded(Checked):
    """`mlr` that looks back."""

    def __init__(self, goals: Sequence[Any], *args: Any, guard: bool = True, **options: Any) -> None:
        self._guard = guard
        self._comparison: Comparison | None = None
        self._asked_at = -1
        """Index of the last trial that the last question whether the device has changed knew of: its own
        trials ask no other one."""
        self._change: Change | None = None
        """The one that ends the search."""
        self._changes: list[Change] = []
        """Those after which it started over."""
        self._rests = True
        """Whether the device has come to rest since it changed."""
        self._tests: list[_Test | None] = [None] * len(goals)
        super().__init__(goals, *args, **options)

    # ---- trials at the highest load

    def _comparing(self) -> Wish | None:
        """A trial at the highest load that is compared with others there."""
        if self._comparison is None and self._ladder is None:
            self._comparison = Comparison(min(self._widths) / 2.0)
        comparison = self._comparison
        if comparison is None or not (comparison.begins or comparison.asked):
            return None
        self._busy = "compare"
        duration_s = max(self._initial_s(place) for place in range(len(self.goals))) / FIRST
        return Wish(self.loads.max_fps, duration_s, purpose="guard" if comparison.asked else "search")

    def _note_comparison(self, outcome: Outcome) -> None:
        assert self._comparison is not None
        self._ledger.add(outcome)
        carried = self._comparison.begins and not any(outcome.exceeds(goal) for goal in self.goals)
        if outcome.beyond_tester or carried:
            # Nobody knows what it forwards at most, neither now nor later.
            self._comparison = None
        elif (change := self._comparison.add(outcome.forwarding_rate_fps, self._elapsed_s)) is not None:
            self._note_change(change)
        elif not self._comparison.asked and self._rests_from_s() <= self._elapsed_s:
            self._rests = True
        if self._comparison is not None and not self._comparison.begins and self._ladder is not None:
            self._asked_at = self._last_index
        if self._ladder is None and (self._comparison is None or not self._comparison.begins):
            self._begin_at(outcome)

    def _note_change(self, change: Change) -> None:
        comes_to_rest = not self._changes or 0.0 < change.rate / self._changes[-1].rate < _SLOWER
        if not comes_to_rest or any(goal.exceed_ratio == 0.0 for goal in self.goals):
            self._change = change
            return
        self._changes.append(change)
        self._rests = False
        forwarded_fps = change.late[-1]
        hints_fps = {}
        for place, goal in enumerate(self.goals):
            lower, _ = self._bounds(place)
            rate_fps = forwarded_fps / (1.0 - goal.loss_ratio) if lower is None else lower.load_fps
            hints_fps[goal.name] = self.loads.clip(rate_fps)
        self._tests = [None] * len(self.goals)
        self._start_over(hints_fps)

    def _rests_from_s(self) -> float:
        """Since when a question that finds the device as it was says that it has come to rest: as long after
        the last change as that took. What is asked sooner misses a change that goes on slowly."""
        return max((change.at_s + change.apart_s for change in self._changes), default=0.0)

    def _asks(self, since: int) -> bool:
        """Ask whether the device has changed, where that was not asked since the trial of this index."""
        if self._comparison is None or since <= self._asked_at or self._last_index <= self._asked_at:
            return False
        self._asked_at = self._last_index
        self._comparison.ask()
        return True

    def _contradicted_for_long(self) -> int:
        """Index of the latest trial that contradicted another one, where the search has gone on for long
        since the last question; -1 otherwise."""
        return self._contradicted_at() if self._last_index - self._asked_at >= _LONG else -1

    def _contradicted_at(self) -> int:
        return max(
            contradicted_at(self._final_records(place), self._asked_at) for place in range(len(self.goals))
        )

    def _clearly_passed(self) -> int:
        """Index of the latest trial that passed clearly above an upper bound that nothing can lift, after
        that had failed; -1 where there is none."""
        assert self._ladder is not None
        latest = -1
        for place, goal in enumerate(self.goals):
            _, upper = self._bounds(place)
            if goal.exceed_ratio > 0.0 or upper is None or upper.beyond_tester:
                continue
            rung = self._ladder.rung_of(upper.load_fps) + _CLEAR * self._ladder.rungs(self._widths[place])
            passes = [
                _index(verdict)
                for record in self._final_records(place)
                if self._ladder.rung_of(record.load_fps) >= rung
                for verdict in record.of_device
                if not verdict.high and verdict.sample.duration_s >= self._ran_s(upper)
            ]
            last = max(passes, default=-1)
            if last > _last_failure(upper):
                latest = max(latest, last)
        return latest

    # ---- tests of bounds

    def _guarding(self) -> Wish | None:
        """A second look at a lower bound that may owe its place to luck, or to how the device was long ago,
        or at the lowest upper bound; or the question whether the device has changed."""
        for place in range(len(self.goals)):
            if (wish := self._check_of(place) or self._look_back_at(place)) is not None:
                self._busy, self._asker = "check", place
                return wish
        strictest = self._strictest()
        if (wish := self._test_of(strictest)) is not None:
            self._busy, self._asker = "guard", strictest
            return wish
        if self._rests:
            return self._comparing() if self._asks(self._contradicted_at()) else None
        if (left_s := self._rests_from_s() - self._elapsed_s) > 0.0:
            self._busy = "wait"
            longest_s = max(goal.duration_sum_s or goal.duration_s for goal in self.goals)
            shortest_s = min(self._initial_s(place) for place in range(len(self.goals)))
            return Wish(self.loads.max_fps, max(shortest_s, min(left_s, longest_s)), purpose="steady")
        return self._comparing() if self._asks(self._last_index) else None

    def _strictest(self) -> int:
        return min(range(len(self.goals)), key=self._strictness)

    def _strictness(self, place: int) -> tuple[float, int]:
        _, upper = self._bounds(place)
        return (math.inf if upper is None else upper.load_fps, place)

    def _look_back_at(self, place: int) -> Wish | None:
        """A trial at a lower bound that passed long ago."""
        lower, _ = self._bounds(place)
        if lower is None or lower.beyond_tester or self._is_sweeping():
            return None
        goal, initial_s = self.goals[place], self._initial_s(place)
        if self._elapsed_s - _last_pass_s(lower) <= CHEAP * initial_s:
            return None
        duration_s = initial_s if goal.exceed_ratio == 0.0 else goal.duration_s
        return Wish(lower.load_fps, duration_s, self._budget(place), purpose="guard")

    def _test_of(self, place: int) -> Wish | None:
        """A test of an upper bound."""
        _, upper = self._bounds(place)
        if upper is None or upper.beyond_tester:
            return None
        test = self._test_at(place, upper)
        if test is None:
            duration_s = self._test_s(place, upper)
            if duration_s is None:
                return None
            test = self._tests[place] = _Test(upper.load_fps, duration_s)
        if test.failed or (test.clean and self.goals[place].exceed_ratio == 0.0):
            return None
        return Wish(upper.load_fps, test.duration_s, self._budget(place), purpose="guard")

    def _test_at(self, place: int, upper: Record) -> _Test | None:
        """The tests of this upper bound; None where it has none, as it was another one when it was tested."""
        test = self._tests[place]
        return test if test is not None and test.load_fps == upper.load_fps else None

    def _test_s(self, place: int, upper: Record) -> float | None:
        """How long the upper bound has to be tested again to say something; None where that would take as
        long as a trial of full length, or where the bound was found after the lower one."""
        initial_s = self._initial_s(place)
        goal = self.goals[place]
        time_s = self._ran_s(upper)
        if _POWER * time_s > max(goal.duration_s, _POWER * initial_s / 2.0):
            return None
        return min(goal.duration_s, max(initial_s, _POWER * time_s))

    def _ran_s(self, upper: Record) -> float:
        """How long the upper bound took to fail for the first time; half of the trial where that is not
        known."""
        first = next(verdict for verdict in upper.verdicts if verdict.high)
        return first.decided_s if first.decided_s is not None else first.sample.duration_s / 2.0

    def _note_test(self, outcome: Outcome) -> None:
        test = self._tests[self._asker]
        assert test is not None
        if outcome.beyond_tester:
            return
        test.last = self._last_index
        if outcome.exceeds(self.goals[self._asker]):
            test.failed += 1
        else:
            test.clean += 1

    def _contradicted(self, place: int) -> bool:
        return super()._contradicted(place) or any(test is not None and test.clean for test in self._tests)

    def _is_unsure(self) -> bool:
        """Whether a test of a bound has passed and nobody knows yet why: the search that ends here does not
        know whether its results stand."""
        if self._comparison is None:
            return False
        if self._comparison.asked:
            return True
        place = self._strictest()
        _, upper = self._bounds(place)
        test = None if upper is None else self._test_at(place, upper)
        return test is not None and test.clean > 0 and not test.failed and self._asked_at < test.last

    def _is_sweeping(self) -> bool:
        return False

    # ---- what it says of the device

    def _stationarity(self, place: int) -> Stationarity:
        if not self._guard or self._ladder is None:
            return Stationarity.NOT_TESTED
        if self._change is not None:
            return Stationarity.CHANGED if self._change.size > 0.0 else Stationarity.CHANGING
        if self._changes:
            return Stationarity.SETTLED
        tested = self._tested(place)
        if tested is None:
            return Stationarity.NOT_TESTED
        test, _ = tested
        if test.clean:
            return Stationarity.RANDOM
        return Stationarity.CONFIRMED

    def _tested(self, place: int) -> tuple[_Test, int] | None:
        """The tests of the load of this upper bound, and the place of the goal that asked for them: the goal
        itself, or another one whose upper bound was the same load."""
        _, upper = self._bounds(place)
        for other in (place, *range(len(self.goals))):
            test = None if upper is None else self._test_at(other, upper)
            if test is not None and (test.clean or test.failed):
                return test, other
        return None

    def _stationarity_note(self, place: int) -> str:
        stationarity = self._stationarity(place)
        if stationarity is Stationarity.SETTLED:
            started_s = ", ".join(f"{change.at_s:.0f}" for change in self._changes)
            return f"the search started over after {started_s} s"
        tested = self._tested(place)
        if stationarity in (Stationarity.CONFIRMED, Stationarity.RANDOM) and tested is not None:
            return "" if tested[1] == place else f"tested for {self.goals[tested[1]].name}"
        if stationarity is not Stationarity.NOT_TESTED:
            return ""
        return self._why_not_tested(place)

    def _why_not_tested(self, place: int) -> str:
        _, upper = self._bounds(place)
        if not self._guard:
            return "'guard' is off"
        if upper is None:
            return "there is no upper bound"
        if upper.beyond_tester:
            return "the tester could not offer the upper bound"
        strictest = self._strictest()
        if self._test_s(strictest, self._bounds(strictest)[1] or upper) is None:
            whose = "its failure" if strictest == place else f"the failure of {self.goals[strictest].name}"
            return f"{whose} took longer than a tenth of a trial"
        if strictest != place:
            return f"only the lowest upper bound is, that of {self.goals[strictest].name}"
        return "the search ended before"

    def _why_not_stationary(self, _place: int) -> str:
        change = self._change
        if change is None:
            return ""
        return (
            f"of {self.loads.max_fps:,.0f} frames/s it forwarded {_range(change.early)} in the first "
            f"{len(change.early)} trials, and {_range(change.late)} in the last {len(change.late)}; chance "
            f"does so once in {1.0 / change.chance:,.0f} searches"
        )


def _range(rates_fps: Sequence[float]) -> str:
    return f"{min(rates_fps):,.0f} to {max(rates_fps):,.0f}"


def _last_failure(record: Record) -> float:
    """Index of the last trial that failed at this load; infinite where none did."""
    return max((_index(verdict) for verdict in record.of_device if verdict.high), default=math.inf)


def _last_pass_s(record: Record) -> float:
    """When the last trial that passed at this load ended [s]; 0 where none did."""
    trials = [verdict.outcome.trial for verdict in record.of_device if not verdict.high]
    return max((trial.spec.elapsed_s + trial.effective_duration_s for trial in trials), default=0.0)


def _index(verdict: Any) -> int:
    return int(verdict.outcome.trial.spec.index)
