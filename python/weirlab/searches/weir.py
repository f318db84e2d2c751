"""The default search: `mlr` whose trials end as soon as their outcome is decided, and that looks back.

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
- **Check.** Lower bounds are tested again where a pass may be luck: `weirlab.searches.checks`.
- **Guard.** Bounds are tested again at the end, and whether the device has changed: `weirlab.searches.guard`.
- **Steadiness**, on request: before the search, trials at the highest load until two of them agree.
- **Sweep**, on request: after the search, short trials below the lower bound, to find loss inversion. A load
  that fails there is an upper bound, and the search goes on below it.

Source: RFC 9971, sections 4.5 to 4.8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from weirlab.errors import InputError
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.controller import Finding, Outcome, Wish
from weirlab.searches.guard import Guarded
from weirlab.searches.ledger import Effective
from weirlab.searches.selection import Choice, Target

_STOPPED = 3
"""After how many failures of a load its trials run in full for a goal that lets some exceed. Stopped trials
are short: more of them fit into a bad time of the device than into a good one of the same length, and would
outvote it."""
_STEADY_TRIALS = 24
"""Most trials that wait for the device to become steady."""
_SWEPT = 10.0
"""A sweep covers the loads from the lower bound down to this part of it."""


class Weir(Guarded):
    """The controller `weir`."""

    kind = "weir"

    def __init__(
        self,
        goals: Sequence[SearchGoal],
        loads: LoadRange,
        *,
        early_stop: bool = True,
        guard: bool = True,
        checks: int = 1,
        steady_s: float = 0.0,
        sweep: int = 0,
        effective: Effective = "trial",
        timeout_s: float | None = None,
        hints_fps: Mapping[str, float] | None = None,
    ) -> None:
        """Args:
        checks: Short trials that a load has to pass before its full one where the device has contradicted
            itself, and again when it has become a lower bound.
        steady_s: Duration of the trials before the search that wait until two agree; 0: none.
        sweep: How many loads to try below the lowest lower bound, evenly spaced in their logarithm.
        """
        if not steady_s >= 0.0:
            raise InputError(f"steadiness is waited for in trials of 0 s (none) or more (got {steady_s:g})")
        if sweep < 0:
            raise InputError(f"a sweep has 0 loads or more (got {sweep})")
        self._early_stop = early_stop
        self._steady_s = steady_s
        self._sweep = sweep
        self._steady: list[float] = []
        self._sweep_top: int | None = None
        """The rung below which the sweep looks: the lower bound when it began."""
        self._busy = ""
        super().__init__(
            goals,
            loads,
            guard=guard,
            checks=checks,
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
        elif self._busy == "compare":
            self._note_comparison(outcome)
        elif self._busy == "wait":
            self._ledger.add(outcome)
        else:
            super()._take(outcome)
            if self._busy == "guard":
                self._note_test(outcome)

    def _next(self) -> Wish | None:
        self._busy = ""
        if self._steady_s > 0.0 and not self._is_steady():
            self._busy = "steady"
            return Wish(self.loads.max_fps, self._steady_s, purpose="steady")
        if self._guard:
            if self._change is not None:
                return None
            if (wish := self._comparing()) is not None:
                return wish
            if self._ladder is not None and self._asks(
                max(self._clearly_passed(), self._contradicted_for_long())
            ):
                return self._comparing()
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

    def _budget(self, place: int) -> float | None:
        return self.goals[place].loss_ratio if self._early_stop else None

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
        if self._wish is None and not self._timed_out():
            return finding
        if not self._is_unsure():
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

    # ---- sweep

    def _is_sweeping(self) -> bool:
        return self._sweep_top is not None

    def _sweeping(self) -> Wish | None:
        """A short trial at the highest load of the sweep that was not measured yet."""
        place = self._strictest()
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
