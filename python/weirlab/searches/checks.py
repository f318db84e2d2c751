"""Short trials that a lower bound has to pass where a single full one made it: `mlr` with these.

A lower bound that one trial made is tested again by a short one where that is cheap compared with the final
trials. On a device that has contradicted itself a load has to pass short trials before its full one, and
again when it has become a lower bound: a single pass near the knee of such a device is luck. A looser goal
asks for one more before the full one for each goal that is stricter: where every trial runs to its end, those
made for the stricter goals test the looser ones, too; ended early they say nothing of them. A full trial that
nearly failed, and lost more than the short ones there, is repeated in full. Goals with an exceed ratio repeat
their trials anyway.
"""

from __future__ import annotations

from typing import Any

from weirlab.errors import InputError
from weirlab.searches.controller import Wish
from weirlab.searches.ledger import Record
from weirlab.searches.mlr import Mlr
from weirlab.searches.selection import is_late

CHEAP = 20.0
"""How many times longer than a short trial a final one is, from which each lower bound is tested again; and
how many short trials ago a lower bound passed last that is tested again at the end."""


class Checked(Mlr):
    """`mlr` whose lower bounds are tested again."""

    def __init__(self, *args: Any, checks: int = 1, **options: Any) -> None:
        if checks < 0:
            raise InputError(f"a lower bound is checked 0 times or more (got {checks})")
        self._checks = checks
        super().__init__(*args, **options)

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
        stricter = sum(goal.loss_ratio < self.goals[place].loss_ratio for goal in self.goals)
        return passed < self._checks + stricter and self._has_contradicted_itself()

    def _check_of(self, place: int) -> Wish | None:
        """A short trial at a lower bound that a single one made, where that costs little compared with the
        final trials, or where the device has contradicted itself."""
        lower, _ = self._bounds(place)
        goal, initial_s = self.goals[place], self._initial_s(place)
        if lower is None or lower.beyond_tester or not self._may_check(place):
            return None
        needed = 1 if goal.duration_s >= CHEAP * initial_s else 0
        if self._has_contradicted_itself():
            needed = max(needed, self._checks)
        duration_s = initial_s
        if sum(not verdict.high for verdict in lower.verdicts) > needed:
            if not self._is_in_doubt(place, lower):
                return None
            duration_s = goal.duration_s
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

    def _has_contradicted_itself(self) -> bool:
        return any(self._contradicted(place) for place in range(len(self.goals)))

    def _contradicted(self, place: int) -> bool:
        """Whether the device has failed a goal at a load and passed it there or above."""
        records = self._final_records(place)
        failed = [r.load_fps for r in records if any(verdict.high for verdict in r.of_device)]
        passed = [r.load_fps for r in records if any(not verdict.high for verdict in r.of_device)]
        return bool(failed and passed) and max(passed) >= min(failed)

    def _budget(self, _place: int) -> float | None:
        """The loss budget of a trial that only has to show whether a goal is met."""
        return None
