"""The default search: `mlr` whose trials end as soon as their outcome is decided, and a guard.

What differs from `mlr`:

- **Early stop.** A trial is offered with a loss budget: the loss ratio of the goal that asks, or the highest
  of those that need the load. A testbed with live counters stops when more is lost than that share of all
  frames of the trial. For a goal that this decides, the trial counts as one of full length with high loss, as
  it would have had it run on; its loss ratio is not used as a measurement. DEVIATION from RFC 9971: a trial
  input has a third part, the loss budget. Where a goal lets trials exceed, a load that failed it three times
  is tried in full.
- **Earlier look.** For a goal without exceed ratio a full trial may also end at the goal's initial duration,
  if by then more is lost than the goal allows in that time: it is then a short trial with high loss, which is
  an upper bound.
- **No middle targets.** Short trials find where to begin, full trials do the rest: failures are cheap.
- **Guard.** When all goals are reached, the lowest upper bound is tested again, and before that one of a
  goal without exceed ratio that a later trial clearly contradicts. If it does not fail again, though it had
  failed quickly, the device has changed since, or answers at random, and the result says so. Trials that have
  passed there or above since it failed count as such tests: see `weirlab.search.drift`. A lower bound that
  passed long ago is tested again, too. A search ends when a bound that nothing can lift is refuted, or when
  it has followed a device that does not come to rest for long.
- **Check.** A lower bound that one trial made is tested again by a short one where that is cheap beside the
  final trials. On a device that has contradicted itself a load has to pass short trials before its full one,
  and again when it has become a lower bound: a single pass near the knee of such a device is luck. A full
  trial that nearly failed, and lost more than the short ones there, is repeated in full.
- **Steadiness**, on request: before the search, trials at the highest load until two of them agree.
- **Sweep**, on request: after the search, short trials below the lower bound, to find loss inversion. A load
  that fails there is an upper bound, and the search goes on below it.

Source: RFC 9971, sections 4.5 to 4.8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weirlab.errors import InputError
from weirlab.search.base import LoadRange, SearchGoal
from weirlab.search.controller import Finding, Outcome, Wish
from weirlab.search.drift import (
    CLEAN_TESTS,
    Change,
    deterioration,
    failures_since_pass,
    improvement,
    is_at_random,
    last_failure,
    last_pass_s,
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
_NEAR_WIDTHS = 2
"""How far above an upper bound, in widths of the goal, contradictions speak of chance there. A pass there or
higher does not: a bound that no passes can lift is then tested at once, at that load."""
_CLEAR_TESTS = 4
"""How many passes there, in a row, refute the upper bound."""
_CHEAP = 20.0
"""How many times longer than a short trial a final one is, from which each lower bound is tested again; and
how many short trials ago a lower bound passed last that is tested again at the end."""
_FOLLOWED = 2.0
"""How many times the duration sums of all goals a search may take that follows a changing device."""
_AT_REST = 2.0
"""How many times longer than it was seen to change a device has been under test when it counts as at rest."""
_STOPPED = 3
"""After how many failures of a load its trials run in full for a goal that lets some exceed. Stopped trials
are short: more of them fit into a bad time of the device than into a good one of the same length, and would
outvote it."""
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
        self._sweep_top: int | None = None
        """The rung below which the sweep looks: the lower bound when it began."""
        self._busy = ""
        self._improvements: dict[int, Change | None] = {}
        """By goal, as far as it was asked for since the last trial."""
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
        self._improvements.clear()
        super()._take(outcome)
        if self._busy == "guard":
            self._note_guard(outcome)

    def _next(self) -> Wish | None:
        self._busy = ""
        if self._steady_s > 0.0 and not self._is_steady():
            self._busy = "steady"
            return Wish(self.loads.max_fps, self._steady_s, purpose="steady")
        if self._guard and self._ladder is not None:
            if self._is_over():
                return None
            if (wish := self._guarding_early()) is not None:
                return wish
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
        if goal.exceed_ratio > 0.0 and self._failures_at(place, wish.load_fps) >= _STOPPED:
            return wish
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

    def _failures_at(self, place: int, load_fps: float) -> int:
        """Trials at a load that exceeded the loss ratio of a goal."""
        return sum(
            verdict.high
            for record in self._final_records(place)
            if record.load_fps == load_fps
            for verdict in record.of_device
        )

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

    def _finding(self, place: int) -> Finding:
        finding = super()._finding(place)
        if not self._is_contradicted() or (self._wish is None and not self._timed_out()):
            return finding
        return replace(
            finding,
            ended=self._wish is None,
            timed_out=self._why_timed_out() if self._timed_out() else "",
        )

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

    def _is_at_random(self, place: int, upper: Record) -> bool:
        """Whether the device answered at random at the upper bound or below. How it contradicts itself well
        above says nothing of that load: where it warms up, it does so near its limit of the moment."""
        top_fps = upper.load_fps * (1.0 + _NEAR_WIDTHS * self._widths[place])
        return is_at_random([record for record in self._final_records(place) if record.load_fps <= top_fps])

    # ---- guard

    def _is_over(self) -> bool:
        """Whether the device has changed so that more trials are no use: a bound that no trial can lift is
        refuted, or it was followed for long and does not come to rest."""
        if any(self._is_clearly_refuted(place) for place in range(len(self.goals))):
            return True
        sums_s = [self._criteria[targets[-1]].duration_sum_s for targets in self._targets]
        return self._elapsed_s > _FOLLOWED * math.fsum(sums_s) and any(
            (change := self._change(place)) is not None and self._is_restless(change)
            for place in range(len(self.goals))
        )

    def _guarding_early(self) -> Wish | None:
        """A short trial clearly above an upper bound that no passes can lift, where one has passed."""
        for place in range(len(self.goals)):
            clear_fps = self._clear_fps(place)
            if clear_fps is not None and 0 < self._clear_passes(place, clear_fps) < _CLEAR_TESTS:
                self._busy, self._asker = "check", place
                return Wish(clear_fps, self._initial_s(place), self._budget(place), purpose="guard")
        return None

    def _clear_fps(self, place: int) -> float | None:
        """A load `_NEAR_WIDTHS` above the upper bound of a goal without exceed ratio, if there is one."""
        _, upper = self._bounds(place)
        if self.goals[place].exceed_ratio > 0.0 or upper is None or upper.beyond_tester:
            return None
        assert self._ladder is not None
        test_s = self._test_s(place, upper)
        if test_s is None or test_s > self._initial_s(place):
            return None
        widths = _NEAR_WIDTHS * self._ladder.rungs(self._widths[place])
        rung = self._ladder.rung_of(upper.load_fps) + widths
        return self._ladder.load_fps(rung) if rung < self._ladder.top else None

    def _clear_passes(self, place: int, clear_fps: float) -> int:
        """How many trials have passed at ``clear_fps`` or above since the upper bound failed; none where one
        up to there has failed, too."""
        _, upper = self._bounds(place)
        assert upper is not None
        records = self._final_records(place)
        since = last_failure(upper)
        if any(
            record.load_fps <= clear_fps and since < last_failure(record) < math.inf for record in records
        ):
            return 0
        return passes_since_failure(records, upper.load_fps, self._initial_s(place), clear_fps)

    def _is_clearly_refuted(self, place: int) -> bool:
        clear_fps = self._clear_fps(place)
        return clear_fps is not None and self._clear_passes(place, clear_fps) >= _CLEAR_TESTS

    def _guarding(self) -> Wish | None:
        """A second look at a lower bound that may owe its place to luck, or to how the device was long ago,
        or at the lowest upper bound."""
        for place in range(len(self.goals)):
            if (wish := self._check_of(place) or self._look_back_at(place)) is not None:
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

    def _look_back_at(self, place: int) -> Wish | None:
        """A trial at a lower bound that passed long ago, and has not failed often since."""
        lower, _ = self._bounds(place)
        if lower is None or lower.beyond_tester or self._sweep_top is not None or self._is_worse(place):
            return None
        goal, initial_s = self.goals[place], self._initial_s(place)
        if self._elapsed_s - last_pass_s(lower) <= _CHEAP * initial_s:
            return None
        self._busy, self._asker = "check", place
        duration_s = initial_s if goal.exceed_ratio == 0.0 else goal.duration_s
        return Wish(lower.load_fps, duration_s, self._budget(place), purpose="guard")

    def _guard_of(self, place: int) -> Wish | None:
        _, upper = self._bounds(place)
        if upper is None or upper.beyond_tester:
            return None
        guard = self._guard_at(place, upper)
        if guard is None:
            duration_s = self._test_s(place, upper)
            if duration_s is None:
                return None
            guard = self._guards[place] = _Guard(upper.load_fps, duration_s)
        if guard.failed or self._is_refuted(place) or (guard.clean and self._is_at_random(place, upper)):
            return None
        self._busy, self._asker = "guard", place
        return Wish(upper.load_fps, guard.duration_s, self._budget(place), purpose="guard")

    def _guard_at(self, place: int, upper: Record) -> _Guard | None:
        """The tests of this upper bound; None where it has none, as it was another one when it was tested."""
        guard = self._guards[place]
        return guard if guard is not None and guard.load_fps == upper.load_fps else None

    def _test_s(self, place: int, upper: Record) -> float | None:
        """How long a trial has to be that says something against the upper bound; None where it would be one
        of full length."""
        if (guard := self._guard_at(place, upper)) is not None:
            return guard.duration_s
        duration_s = self._guard_s(place, upper)
        if duration_s is None and self._has_improved_since(place):
            return self._initial_s(place)
        return duration_s

    def _is_refuted(self, place: int) -> bool:
        """Whether enough trials have passed since the upper bound failed, those of other goals among them."""
        _, upper = self._bounds(place)
        if upper is None or upper.beyond_tester:
            return False
        if self._is_clearly_refuted(place):
            return True
        guard = self._guard_at(place, upper)
        if guard is None or not guard.clean:
            return False
        passes = passes_since_failure(self._final_records(place), upper.load_fps, guard.duration_s)
        return passes >= CLEAN_TESTS and not self._is_at_random(place, upper)

    def _is_contradicted(self) -> bool:
        """Whether trials have passed that speak against an upper bound, and neither refute it nor are
        explained: the search that ends here does not know whether its results stand."""
        for place in range(len(self.goals)):
            _, upper = self._bounds(place)
            if upper is None or self._is_refuted(place):
                continue
            clear_fps = self._clear_fps(place)
            if clear_fps is not None and self._clear_passes(place, clear_fps):
                return True
            guard = self._guard_at(place, upper)
            if (
                guard is not None
                and guard.clean
                and not guard.failed
                and not self._is_at_random(place, upper)
            ):
                return True
        return False

    def _is_worse(self, place: int) -> bool:
        """Whether the lower bound has failed often since it passed last."""
        lower, _ = self._bounds(place)
        return lower is not None and failures_since_pass(lower) >= CLEAN_TESTS

    def _change(self, place: int) -> Change | None:
        """How the device was seen to change. What fails in a sweep fails far below what has passed: that is
        loss inversion, and none of the kind."""
        change = self._improvement(place)
        if change is None and self._sweep_top is None:
            return deterioration(self._final_records(place), self._widths[place])
        return change

    def _improvement(self, place: int) -> Change | None:
        if place not in self._improvements:
            self._improvements[place] = improvement(self._final_records(place), self._widths[place])
        return self._improvements[place]

    def _is_restless(self, change: Change) -> bool:
        """Whether the device was seen to change until shortly before now."""
        return self._elapsed_s < _AT_REST * change.since_s

    def _has_improved_since(self, place: int) -> bool:
        """Whether the device was seen to change after the upper bound had failed last."""
        _, upper = self._bounds(place)
        if upper is None or upper.beyond_tester:
            return False
        change = self._improvement(place)
        return change is not None and last_failure(upper) < change.since

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
        guard = self._guards[self._asker]
        assert guard is not None
        if outcome.beyond_tester:
            return
        if outcome.exceeds(self.goals[self._asker]):
            guard.failed += 1
        else:
            guard.clean += 1

    def _stationarity(self, place: int) -> Stationarity:
        if not self._guard or self._ladder is None:
            return Stationarity.NOT_TESTED
        if any(self._is_refuted(other) for other in range(len(self.goals))):
            return Stationarity.CHANGED
        if self._is_worse(place) or self._has_improved_since(place):
            return Stationarity.CHANGED
        changes = [self._change(other) for other in range(len(self.goals))]
        if any(change is not None and self._is_restless(change) for change in changes):
            return Stationarity.CHANGING
        if changes[place] is not None:
            return Stationarity.SETTLED
        _, upper = self._bounds(place)
        tested = None if upper is None else self._tested(place, upper)
        if upper is None or tested is None:
            return Stationarity.NOT_TESTED
        guard, _ = tested
        if guard.clean and (guard.failed or self._is_at_random(place, upper)):
            return Stationarity.RANDOM
        return Stationarity.CONFIRMED if guard.failed else Stationarity.NOT_TESTED

    def _tested(self, place: int, upper: Record) -> tuple[_Guard, int] | None:
        """The tests of the load of this upper bound, and the place of the goal that asked for them: the goal
        itself, or another one whose upper bound was the same load."""
        for other in (place, *range(len(self.goals))):
            guard = self._guard_at(other, upper)
            if guard is not None and (guard.clean or guard.failed):
                return guard, other
        return None

    def _stationarity_note(self, place: int) -> str:
        _, upper = self._bounds(place)
        tested = None if upper is None else self._tested(place, upper)
        stationarity = self._stationarity(place)
        if stationarity in (Stationarity.CONFIRMED, Stationarity.RANDOM) and tested is not None:
            return "" if tested[1] == place else f"tested for {self.goals[tested[1]].name}"
        if stationarity is not Stationarity.NOT_TESTED:
            return ""
        if not self._guard:
            return "'guard' is off"
        if upper is None:
            return "there is no upper bound"
        if upper.beyond_tester:
            return "the tester could not offer the upper bound"
        if tested is not None:
            return "the search ended amid the tests"
        strictest = min(range(len(self.goals)), key=self._strictness)
        if self._test_s(strictest, self._bounds(strictest)[1] or upper) is None:
            whose = "its failure" if strictest == place else f"the failure of {self.goals[strictest].name}"
            return f"{whose} took longer than a tenth of a trial"
        if strictest != place:
            return f"only the lowest upper bound is, that of {self.goals[strictest].name}"
        return "the search ended before"

    def _why_not_stationary(self, place: int) -> str:
        if self._stationarity(place) not in (Stationarity.CHANGED, Stationarity.CHANGING):
            return ""
        for other in (place, *range(len(self.goals))):
            if self._is_refuted(other):
                _, upper = self._bounds(other)
                assert upper is not None
                passes = passes_since_failure(self._final_records(other), upper.load_fps)
                return _said(upper.load_fps, "failed", f"{passes} trials there or above passed since")
        for other in (place, *range(len(self.goals))):
            if (change := self._change(other)) is not None:
                first, later = ("failed", "above passed") if change.improved else ("passed", "below failed")
                seen = f"seen until {change.since_s:.0f} of {self._elapsed_s:.0f} s"
                return _said(change.load_fps, first, f"{change.trials} trials there or {later} since, {seen}")
        lower, _ = self._bounds(place)
        assert lower is not None
        return _said(lower.load_fps, "passed", f"{failures_since_pass(lower)} trials there failed since")

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
        rungs = {top - round(span * part / (self._sweep + 1)) for part in range(1, self._sweep + 1)}
        swept = [self._ladder.load_fps(rung) for rung in sorted(rungs, reverse=True)]
        loads = [fps for fps in swept if fps < lower.load_fps and fps not in measured]
        if not loads:
            return None
        self._busy, self._asker = "sweep", place
        budget = max(goal.loss_ratio for goal in self.goals) if self._early_stop else None
        duration_s = self._initial_s(place)
        return Wish(loads[0], duration_s, budget, purpose="sweep", following=len(loads) - 1)


def _said(load_fps: float, first: str, later: str) -> str:
    return f"{load_fps:g} frames/s {first} at first, and {later}"
