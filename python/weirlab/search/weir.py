"""The default search: `mlr` whose trials end as soon as their outcome is decided, and a guard.

What differs from `mlr`:

- **Early stop.** A trial is offered with a loss budget: the loss ratio of the goal that asks, or the highest
  of those that need the load. A testbed with live counters stops when more is lost than that share of all
  frames of the trial. For a goal that this decides, the trial counts as one of full length with high loss, as
  it would have had it run on; its loss ratio is not used as a measurement. DEVIATION from RFC 9971: a trial
  input has a third part, the loss budget.
- **Earlier look.** For a goal without exceed ratio a full trial may also end at the goal's initial duration,
  if by then more is lost than the goal allows in that time: it is then a short trial with high loss, which is
  an upper bound.
- **No middle targets.** Short trials find where to begin, full trials do the rest: failures are cheap.
- **Guard.** When all goals are reached, the lowest upper bound is tested again. If it does not fail again,
  though it had failed quickly, the device has changed since, or answers at random, and the result says so.
  Trials that have passed there or above since it failed count as such tests: see `weirlab.search.drift`.
- **Check.** A lower bound that one trial made is tested again by a short one where that is cheap beside the
  final trials. On a device that has contradicted itself a load has to pass short trials before its full one,
  and again when it has become a lower bound: a single pass near the knee of such a device is luck. A full
  trial that nearly failed, and lost more than the short ones there, is repeated in full.
- **Steadiness**, on request: before the search, trials at the highest load until two of them agree.
- **Sweep**, on request: after the search, short trials below the lower bound, to find loss inversion. A load
  that fails there is an upper bound, and the search goes on below it.

Source: RFC 9971, sections 4.4 to 4.6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weirlab.errors import InputError
from weirlab.search.base import LoadRange, SearchGoal
from weirlab.search.controller import Outcome, Wish
from weirlab.search.drift import (
    CLEAN_TESTS,
    improvement,
    is_at_random,
    last_failure,
    passes_since_failure,
)
from weirlab.search.evidence import Stationarity
from weirlab.search.ledger import Effective, Record
from weirlab.search.mlr import Mlr
from weirlab.search.selection import Choice, Target, is_late

__all__ = ["Weir"]

_POWER = 10.0
"""How many times longer than the failure took its repetition lasts. If failures came at random times, it
would pass with probability 1 / (1 + _POWER)."""
_NEAR_WIDTHS = 2.0
"""How far above a guarded load, in widths of the goal, contradictions speak of chance there."""
_CHEAP = 20.0
"""How many times longer than a short trial a final one is, from which each lower bound is tested again."""
_STEADY_TRIALS = 24
"""Most trials that wait for the device to become steady."""
_SWEPT = 10.0
"""A sweep covers the loads from the lower bound down to this part of it."""


@dataclass
class _Guard:
    """Tests of an upper bound after its goal was reached."""

    load_fps: float
    duration_s: float
    clean: int = 0
    failed: int = 0


class Weir(Mlr):
    """The controller `weir`."""

    kind = "weir"

    def __init__(
        self,
        goals: Sequence[SearchGoal],
        loads: LoadRange,
        *,
        early_stop: bool = True,
        guard: bool = True,
        checks: int = 2,
        steady_s: float = 0.0,
        sweep: int = 0,
        effective: Effective = "trial",
        timeout_s: float | None = None,
        hints_fps: Mapping[str, float] | None = None,
    ) -> None:
        """Args:
        checks: Short trials that a lower bound with losses has to pass again where the device has
            contradicted itself, and one more before its full trial; one without losses one less each.
        steady_s: Duration of the trials before the search that wait until two agree; 0: none.
        sweep: How many loads to try below the lowest lower bound, evenly spaced in their logarithm.
        """
        if not steady_s >= 0.0:
            raise InputError(f"steadiness is waited for in trials of 0 s (none) or more (got {steady_s:g})")
        if checks < 0:
            raise InputError(f"a lower bound is checked 0 times or more (got {checks})")
        if sweep < 0:
            raise InputError(f"a sweep has 0 loads or more (got {sweep})")
        self._early_stop = early_stop
        self._guard = guard
        self._checks = checks
        self._steady_s = steady_s
        self._sweep = sweep
        self._steady: list[float] = []
        self._guards: list[_Guard | None] = [None] * len(goals)
        self._verdicts: list[Stationarity] = [Stationarity.NOT_TESTED] * len(goals)
        self._changed: list[str] = [""] * len(goals)
        self._sweep_top: int | None = None
        """The rung below which the sweep looks: the lower bound when it began."""
        self._busy = ""
        super().__init__(
            goals,
            loads,
            preceding_targets=0 if early_stop else 2,
            effective=effective,
            timeout_s=timeout_s,
            hints_fps=hints_fps,
        )

    def settings(self) -> Mapping[str, object]:
        """Its name and its parameters."""
        common = {name: value for name, value in super().settings().items() if name != "preceding_targets"}
        return {
            **common,
            "early_stop": self._early_stop,
            "guard": self._guard,
            "checks": self._checks,
            "steady_s": self._steady_s,
            "sweep": self._sweep,
        }

    @property
    def phase(self) -> str:
        """What is done, and for which goal."""
        return super().phase if self._wish is None or not self._busy else self._busy

    def _take(self, outcome: Outcome) -> None:
        if self._busy == "steady":
            self._steady.append(outcome.forwarding_rate_fps)
            return
        super()._take(outcome)
        if self._busy == "guard":
            self._note_guard(outcome)

    def _next(self) -> Wish | None:
        self._busy = ""
        if self._steady_s > 0.0 and not self._is_steady():
            self._busy = "steady"
            return Wish(self.loads.max_fps, self._steady_s, purpose="steady")
        wish = super()._next()
        if wish is None and self._guard:
            wish = self._guarding()
        if wish is None and self._sweep:
            wish = self._sweeping()
        return wish

    def _wish_of(self, place: int, choice: Choice) -> Wish:
        wish = super()._wish_of(place, choice)
        if not self._early_stop:
            return wish
        if self._needs_short_trial_first(place, wish):
            return Wish(wish.load_fps, self._initial_s(place), self._budget(place))
        goal = self.goals[place]
        wanting = [
            other.loss_ratio
            for number, other in enumerate(self.goals)
            if number != place
            and (wanted := self._choice(number)) is not None
            and wanted.confirms
            and self._is_bound(number, wish.load_fps)
        ]
        initial_s = self._initial_s(place)
        look_s = initial_s if goal.exceed_ratio == 0.0 and wish.duration_s > initial_s else None
        return replace(wish, loss_budget=max([goal.loss_ratio, *wanting]), look_s=look_s)

    def _is_bound(self, place: int, load_fps: float) -> bool:
        """Whether a goal still has to decide this load: it is one of its two neighbouring bounds."""
        records = self._final_records(place)
        uppers = [record.load_fps for record in records if record.lean == "upper"]
        upper_fps = min(uppers, default=math.inf)
        lowers = [r.load_fps for r in records if r.lean == "lower" and r.load_fps < upper_fps]
        return load_fps in (upper_fps, max(lowers, default=0.0))

    def _target(self, place: int, level: int) -> Target:
        target = super()._target(place, level)
        if not self._early_stop:
            return target
        short = target.duration_s <= target.initial_s
        return replace(target, tries_from_top=2 if short else Target.tries_from_top)

    # ---- steadiness

    def _is_steady(self) -> bool:
        rates = self._steady
        if len(rates) >= _STEADY_TRIALS:
            return True
        return len(rates) >= 2 and abs(rates[-1] / max(rates[-2], 1e-9) - 1.0) <= min(self._widths) / 2.0

    # ---- checks

    def _needs_short_trial_first(self, place: int, wish: Wish) -> bool:
        """Whether a load has to pass another short trial before a full one: the device contradicts itself,
        and its failures are of the kind that short trials show."""
        if wish.duration_s <= self._initial_s(place) or not self._may_check(place):
            return False
        passed = 0
        for record in self._final_records(place):
            for verdict in record.verdicts:
                if verdict.decided_s is not None and is_late(verdict.decided_s, self._initial_s(place)):
                    return False
                if record.load_fps == wish.load_fps and not verdict.high:
                    if record.full(verdict):
                        return False
                    passed += 1
        return passed < self._checks_of(place) + 1 and self._has_contradicted_itself()

    def _check_of(self, place: int) -> Wish | None:
        """A short trial at a lower bound that a single one made, where that costs little beside the final
        trials, or where the device has contradicted itself."""
        lower, _ = self._bounds(place)
        goal, initial_s = self.goals[place], self._initial_s(place)
        if lower is None or lower.beyond_tester or not self._may_check(place):
            return None
        needed = 1 if goal.duration_s >= _CHEAP * initial_s else 0
        if self._has_contradicted_itself():
            needed = max(needed, self._checks_of(place))
        duration_s = initial_s
        if sum(not verdict.high for verdict in lower.verdicts) > needed:
            if not self._is_in_doubt(place, lower):
                return None
            duration_s = goal.duration_s
        self._busy, self._asker = "check", place
        return Wish(lower.load_fps, duration_s, self._budget(place), purpose="guard")

    def _is_in_doubt(self, place: int, lower: Record) -> bool:
        """Whether a lower bound that one full trial made deserves a second: that one lost more than each
        short one there, by more than it leaves to the goal. What comes seldom, short trials miss. Where they
        lost nothing, a buffer may have hidden all of it from them: then they are no measure."""
        whole = [verdict for verdict in lower.verdicts if not verdict.outcome.trial.stopped_early]
        full = [verdict.sample.loss_ratio for verdict in whole if lower.full(verdict)]
        short = max((verdict.sample.loss_ratio for verdict in whole if not lower.full(verdict)), default=0.0)
        return len(full) == 1 and short > 0.0 and full[0] - short > self.goals[place].loss_ratio - full[0]

    def _may_check(self, place: int) -> bool:
        return self._checks > 0 and self.goals[place].exceed_ratio == 0.0

    def _checks_of(self, place: int) -> int:
        """How often a lower bound is checked on a device that has contradicted itself."""
        return self._checks if self.goals[place].loss_ratio > 0.0 else self._checks - 1

    def _has_contradicted_itself(self) -> bool:
        return any(self._contradicted(place) for place in range(len(self.goals)))

    def _contradicted(self, place: int) -> bool:
        """Whether the device has failed a goal at a load and passed it there or above, or passed when an
        upper bound was tested again."""
        records = self._final_records(place)
        failed = [r.load_fps for r in records if any(verdict.high for verdict in r.of_device)]
        passed = [r.load_fps for r in records if any(not verdict.high for verdict in r.of_device)]
        if failed and passed and max(passed) >= min(failed):
            return True
        return any(guard is not None and guard.clean > 0 for guard in self._guards)

    def _is_at_random(self, place: int, guard: _Guard) -> bool:
        """Whether the device answered at random at the guarded load or below. How it contradicts itself well
        above says nothing of that load: where it warms up, it does so near its limit of the moment."""
        top_fps = guard.load_fps * (1.0 + _NEAR_WIDTHS * self._widths[place])
        return is_at_random([record for record in self._final_records(place) if record.load_fps <= top_fps])

    # ---- guard

    def _guarding(self) -> Wish | None:
        """A second look at a lower bound that may owe its place to luck, or at the lowest upper bound."""
        for place in range(len(self.goals)):
            if (wish := self._check_of(place)) is not None:
                return wish
        strictest = min(range(len(self.goals)), key=self._strictness)
        wish = self._guard_of(strictest)
        for place in range(len(self.goals)):
            if wish is None and place != strictest and self._has_improved_since(place):
                wish = self._guard_of(place)
        return wish

    def _budget(self, place: int) -> float | None:
        return self.goals[place].loss_ratio if self._early_stop else None

    def _strictness(self, place: int) -> tuple[float, int]:
        _, upper = self._bounds(place)
        return (math.inf if upper is None else upper.load_fps, place)

    def _guard_of(self, place: int) -> Wish | None:
        lower, upper = self._bounds(place)
        if lower is None or upper is None or upper.beyond_tester:
            return None
        guard = self._guards[place]
        if guard is None or guard.load_fps != upper.load_fps:
            duration_s = self._guard_s(place, upper)
            if duration_s is None and self._has_improved_since(place):
                duration_s = self._initial_s(place)
            if duration_s is None:
                return None
            guard = self._guards[place] = _Guard(upper.load_fps, duration_s)
        if guard.failed or (
            guard.clean and (self._is_at_random(place, guard) or self._has_changed(place, guard))
        ):
            return None
        self._busy, self._asker = "guard", place
        return Wish(upper.load_fps, guard.duration_s, self._budget(place), purpose="guard")

    def _has_changed(self, place: int, guard: _Guard) -> bool:
        """Whether enough trials have passed since the upper bound failed, those of other goals among them."""
        records = self._final_records(place)
        return passes_since_failure(records, guard.load_fps, guard.duration_s) >= CLEAN_TESTS

    def _has_improved_since(self, place: int) -> bool:
        """Whether the device was seen to change after the upper bound had failed last."""
        _, upper = self._bounds(place)
        if (
            upper is None
            or upper.beyond_tester
            or (change := improvement(self._final_records(place))) is None
        ):
            return False
        return last_failure(upper) < change.since

    def _guard_s(self, place: int, upper: Record) -> float | None:
        """How long the upper bound has to be tested again to say something; None where that would take as
        long as a trial of full length, or where the bound was found after the lower one."""
        first = next(verdict for verdict in upper.verdicts if verdict.high)
        time_s = first.decided_s if first.decided_s is not None else first.sample.duration_s / 2.0
        initial_s = self._initial_s(place)
        goal = self.goals[place]
        if _POWER * time_s > max(goal.duration_s, _POWER * initial_s / 2.0):
            return None
        return min(goal.duration_s, max(initial_s, _POWER * time_s))

    def _note_guard(self, outcome: Outcome) -> None:
        place = self._asker
        guard, goal = self._guards[place], self.goals[place]
        assert guard is not None
        if outcome.beyond_tester:
            return
        if outcome.exceeds(goal):
            guard.failed += 1
        else:
            guard.clean += 1
        if guard.clean and (guard.failed or self._is_at_random(place, guard)):
            self._verdicts[place] = Stationarity.RANDOM
        elif guard.failed:
            self._verdicts[place] = Stationarity.CONFIRMED
        elif self._has_changed(place, guard):
            passes = passes_since_failure(self._final_records(place), guard.load_fps, guard.duration_s)
            why = _failed_and_passed(guard.load_fps, passes)
            for number in range(len(self.goals)):
                self._verdicts[number] = Stationarity.CHANGED
                self._changed[number] = why

    def _stationarity(self, place: int) -> Stationarity:
        verdict = self._verdicts[place]
        tested = verdict in (Stationarity.RANDOM, Stationarity.CHANGED)
        if tested or not self._guard or improvement(self._final_records(place)) is None:
            return verdict
        return Stationarity.CHANGED if self._has_improved_since(place) else Stationarity.SETTLED

    def _why_not_stationary(self, place: int) -> str:
        if self._stationarity(place) is not Stationarity.CHANGED:
            return ""
        if (change := improvement(self._final_records(place))) is not None:
            return _failed_and_passed(change.load_fps, change.passes)
        return self._changed[place]

    # ---- sweep

    def _sweeping(self) -> Wish | None:
        """A short trial at the highest load of the sweep that was not measured yet."""
        place = min(range(len(self.goals)), key=self._strictness)
        lower, _ = self._bounds(place)
        if lower is None or self._ladder is None:
            return None
        measured = {record.load_fps for record in self._final_records(place)}
        if self._sweep_top is None:
            self._sweep_top = self._ladder.rung_of(lower.load_fps)
        top = self._sweep_top
        span = min(top - self._ladder.bottom, round(math.log(_SWEPT) / self._ladder.step))
        for part in range(1, self._sweep + 1):
            rung = top - round(span * part / (self._sweep + 1))
            load_fps = self._ladder.load_fps(rung)
            if load_fps not in measured and load_fps < lower.load_fps:
                self._busy, self._asker = "sweep", place
                budget = max(goal.loss_ratio for goal in self.goals) if self._early_stop else None
                return Wish(load_fps, self._initial_s(place), budget, purpose="sweep")
        return None


def _failed_and_passed(load_fps: float, passes: int) -> str:
    return f"{load_fps:g} frames/s failed at first, and {passes} trials there or above passed since"
