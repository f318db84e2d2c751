"""Which load to measure next for a goal: descent to the highest load that passes.

Passing trials of full length are dear, failing ones cheap where they are stopped early; short trials lie in
between. The order of business:

1. *Start*: a short trial a little above the hint (what the device forwarded under overload). Where it
   passes, climb in steps that triple.
2. *Bracket*: where the upper bound failed fast and nothing is known close below, descend in steps that
   double; then halve the gap between the upper bound and the highest load that a short trial passed.
3. *Try from the top*: with few rungs left, a trial of full length one width below the upper bound. If it
   passes, the goal is reached; if not, the upper bound has come closer at little cost.
4. *Late failures*: where a full trial failed at a load that a short one passes, short trials say nothing.
   Descend in full trials, twice as far as before, but not beyond the load that passes with even odds (see
   `weirlab.searches.hazard`). After the first that passes, try the next rung above it if that is likely to
   fail, and so to end the search; otherwise close the gap where a pass is as likely as `_CLOSE`. A belief
   that does not fit the device descends or closes slowly: then the descent is doubled, the gap halved.
5. *Confirm*: measure the bounds until both are decided; a goal with an exceed ratio needs several trials.

Every rule reads only what was measured: the next load is a function of the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weirlab.searches.classify import LoadClass
from weirlab.searches.hazard import Belief, Observation, onset_log
from weirlab.searches.ladder import Ladder
from weirlab.searches.ledger import Record

_EVEN = 0.5
"""Chance of passing that a descent does not go below in one step."""
_CLOSE = 0.4
"""Chance of passing where a gap is closed: a pass costs more than a failure."""
_END = 0.35
"""Chance of failing from which the next rung above a passing load is tried at once."""
_FAST = 0.2
"""Share of the initial duration within which a failure is one of overload, which short trials show as
well."""
_PATIENCE = 2
"""Trials that may leave more than half of a gap before it is halved, whatever is believed."""
_CRAWL = 3
"""Failures that may bring an upper bound less than twice as far down, before it is taken twice as far."""
_FEW = 4
"""Widths between the bounds from which they are tried from the top."""
_SEEN_S = 0.05
"""Most that a failure is seen late [s]."""


@dataclass(frozen=True)
class Target:
    """What to reach for a goal: the goal itself, or a coarser one on the way to it."""

    criterion: int
    """Its place in the ledger."""
    loss_ratio: float
    duration_s: float
    initial_s: float
    width: int
    """Rungs."""
    tries_from_top: int = _FEW
    """Widths between the bounds from which full trials go down from the top."""


class Choice(NamedTuple):
    """The next trial."""

    rung: int
    duration_s: float
    confirms: bool = False
    """Whether it is made to decide one of two neighbouring bounds."""


@dataclass(frozen=True)
class _Sight:
    """What a goal sees of the ladder."""

    upper: int | None
    """Lowest rung that leans to an upper bound."""
    lower: int | None
    """Highest rung below that leans to a lower bound by trials of full length."""
    passed: int | None
    """Highest rung in between that short trials passed."""
    at: dict[int, Record]

    def load_class(self, rung: int) -> LoadClass:
        return self.at[rung].load_class


def choose(records: Sequence[Record], target: Target, ladder: Ladder, start: int) -> Choice | None:
    """The next trial for ``target``; None when it is reached, or cannot be reached within the range.

    Args:
        records: All loads measured so far, seen with the target's criterion, in ascending order.
        start: The rung to begin at.
    """
    sight = _look(records, ladder)
    if (confirmation := _confirm(sight, target, ladder)) is not _OPEN:
        return confirmation
    if (late := _late_failures(sight, target)) is not None:
        return _after_late_failure(sight, target, ladder, late)
    return _bracket(sight, target, ladder, start)


_OPEN = Choice(0, -1.0)
"""There is no pair of neighbouring bounds to confirm yet."""


def _look(records: Sequence[Record], ladder: Ladder) -> _Sight:
    at = {ladder.rung_of(record.load_fps): record for record in records}
    upper = min((rung for rung, record in at.items() if record.lean == "upper"), default=None)
    below = [rung for rung in at if upper is None or rung < upper]
    lower = max((rung for rung in below if at[rung].lean == "lower"), default=None)
    between = [rung for rung in below if lower is None or rung > lower]
    passed = max((rung for rung in between if at[rung].lean == "short"), default=None)
    return _Sight(upper, lower, passed, at)


def _confirm(sight: _Sight, target: Target, ladder: Ladder) -> Choice | None:
    """A bound of a neighbouring pair that is not decided; None when both are; `_OPEN` without such a pair."""
    lower, upper = sight.lower, sight.upper
    needed: list[tuple[int, LoadClass]] = []
    if upper is not None and upper <= ladder.bottom:
        needed = [(upper, LoadClass.UPPER)]
    elif lower is not None and lower >= ladder.top:
        needed = [(lower, LoadClass.LOWER)]
    elif lower is not None and upper is not None and upper - lower <= target.width:
        needed = [(upper, LoadClass.UPPER), (lower, LoadClass.LOWER)]
    else:
        return _OPEN
    for rung, load_class in needed:
        if sight.load_class(rung) is not load_class:
            return Choice(rung, target.duration_s, confirms=True)
    return None


def _late_failures(sight: _Sight, target: Target) -> int | None:
    """The highest rung where a full trial failed though a short one would have passed, if the upper bound
    lies no higher and did not fail fast itself."""
    if sight.upper is None:
        return None
    passed_short = max((rung for rung, record in sight.at.items() if _passed_short(record)), default=None)
    late = [
        rung
        for rung, record in sight.at.items()
        if _failed_full(record) and _is_late(rung, record, target, passed_short)
    ]
    if not late or sight.upper > max(late):
        return None
    time_s = _time_to_failure(sight.at[sight.upper])
    fast = time_s is not None and time_s <= _FAST * target.initial_s + _SEEN_S
    return None if fast or not _failed_full(sight.at[sight.upper]) else max(late)


def _is_late(rung: int, record: Record, target: Target, passed_short: int | None) -> bool:
    time_s = _time_to_failure(record)
    if time_s is not None and is_late(time_s, target.initial_s):
        return True
    return passed_short is not None and (rung == passed_short if time_s is not None else rung <= passed_short)


def is_late(failed_s: float, initial_s: float) -> bool:
    """Whether a trial that failed after that time says that one of the initial duration would have passed."""
    return failed_s > initial_s + 2.0 * _SEEN_S


def _after_late_failure(sight: _Sight, target: Target, ladder: Ladder, top: int) -> Choice:
    upper, lower, width = sight.upper, sight.lower, target.width
    assert upper is not None
    onset = _onset(sight, target, ladder)
    if lower is None:
        descended = max(width, top - upper)
        if onset is None and _is_crawling(sight, top):
            onset = upper - descended
        elif onset is None:
            belief = _belief(sight, target, ladder, top)
            upper_log = _log(upper, ladder)
            even = belief.where(_EVEN, upper_log - 2.0 * descended * ladder.step, upper_log)
            onset = math.floor((even - upper_log) / ladder.step) + upper
            onset = max(onset, upper - 2 * descended)
        return Choice(max(min(upper - width, onset), ladder.bottom), target.duration_s)
    gap = upper - lower
    if gap <= 2 * width:
        return Choice(upper - width if gap < 2 * width else lower + width, target.duration_s)
    if onset is not None and lower < onset <= upper - width:
        return Choice(onset, target.duration_s)
    if _is_slow(sight):
        return Choice(lower + gap // 2, target.duration_s)
    belief = _belief(sight, target, ladder, top)
    if 1.0 - belief.passes(_log(lower + width, ladder)) >= _END:
        climbed = sum(
            1 for rung, record in sight.at.items() if rung < upper and record.tally.full_low_s > 0.0
        )
        stride = width * 2 ** min(climbed - 1, 20)
        return Choice(lower + max(width, min(stride, gap // 2)), target.duration_s)
    close = belief.where(_CLOSE, _log(lower + width, ladder), _log(upper - width, ladder))
    return Choice(_rung(close, lower + width, upper - width, ladder), target.duration_s)


def _in_order(sight: _Sight) -> list[tuple[int, int, bool]]:
    """Index, rung and failure of the trials that passed in full length or failed, as they were made."""
    return sorted(
        (verdict.outcome.trial.spec.index, rung, verdict.high)
        for rung, record in sight.at.items()
        for verdict in record.verdicts
        if verdict.high or record.full(verdict)
    )


def _is_crawling(sight: _Sight, top: int) -> bool:
    """Whether the last `_CRAWL` failures brought the upper bound less than twice as far below ``top``."""
    failed = [rung for _, rung, high in _in_order(sight) if high and rung <= top]
    return len(failed) > _CRAWL and top - min(failed) < 2 * (top - min(failed[:-_CRAWL]))


def _is_slow(sight: _Sight) -> bool:
    """Whether the last `_PATIENCE` trials have left more than half of the gap."""
    passed: list[int] = []
    failed: list[int] = []
    gaps: list[int] = []
    for _, rung, high in _in_order(sight):
        (failed if high else passed).append(rung)
        upper = min(failed, default=None)
        below = [rung for rung in passed if upper is None or rung < upper]
        if upper is not None and below:
            gaps.append(upper - max(below))
    return len(gaps) > _PATIENCE and 2 * gaps[-1] > gaps[-1 - _PATIENCE]


def _onset(sight: _Sight, target: Target, ladder: Ladder) -> int | None:
    """Rung at which failures begin, where their times lie on a line."""
    failures = [
        (record.load_fps, time_s - _SEEN_S)
        for record in sight.at.values()
        if (time_s := _time_to_failure(record)) is not None
        and time_s - _SEEN_S > 0.2
        and (target.loss_ratio == 0.0 or is_late(time_s, target.initial_s))
    ]
    onset = onset_log(failures, target.duration_s)
    if onset is None:
        return None
    return math.floor((onset - _log(0, ladder)) / ladder.step)


def _belief(sight: _Sight, target: Target, ladder: Ladder, top: int) -> Belief:
    observations = []
    for rung, record in sight.at.items():
        if rung > top:
            continue
        log_load = math.log(record.load_fps)
        for verdict in record.verdicts:
            duration_s = verdict.sample.duration_s
            if target.loss_ratio > 0.0:
                # Whether a share of all frames is lost does not depend on the duration.
                if verdict.high or record.full(verdict):
                    observations.append(Observation(log_load, target.duration_s, verdict.high))
            else:
                observations.append(Observation(log_load, duration_s, verdict.high, verdict.decided_s))
    assert sight.upper is not None
    return Belief(observations, target.duration_s, _log(sight.upper, ladder), ladder.step)


def _bracket(sight: _Sight, target: Target, ladder: Ladder, start: int) -> Choice:
    upper, width = sight.upper, target.width
    low = [rung for rung in (sight.lower, sight.passed) if rung is not None]
    base = max(low, default=None)
    near = upper is not None and upper < ladder.top
    if not near:
        highest = ladder.top if upper is None else upper - width
        begin = max(min(start, highest), ladder.bottom)
        if base is None or base < begin:
            full = begin >= ladder.top
            return Choice(begin, target.duration_s if full else target.initial_s)
        return _climb(base, begin, upper, target, ladder)
    assert upper is not None
    if base is None:
        failures = [rung for rung, record in sight.at.items() if record.lean == "upper" and rung < ladder.top]
        if len(failures) == 1:
            return Choice(max(upper - width, ladder.bottom), target.duration_s)
        stride = max(2 * width, max(failures) - upper)
        return Choice(max(upper - stride, ladder.bottom), target.initial_s)
    gap = upper - base
    if gap <= target.tries_from_top * width:
        return Choice(max(upper - width, base), target.duration_s)
    return Choice(base + gap // 2, target.initial_s)


def _climb(base: int, begin: int, upper: int | None, target: Target, ladder: Ladder) -> Choice:
    """Up from ``base`` while nothing has failed but perhaps the highest load."""
    rung = base + max(target.width, 2 * (base - begin))
    if upper is not None and rung > upper - target.width:
        gap = upper - base
        if gap <= target.width:
            return Choice(base, target.duration_s)
        return Choice(base + max(1, gap // 2), target.initial_s)
    if rung >= ladder.top:
        return Choice(ladder.top, target.duration_s)
    return Choice(rung, target.initial_s)


def _time_to_failure(record: Record) -> float | None:
    """When the last trial failed that was stopped for it [s]; None where none was."""
    times_s = [verdict.decided_s for verdict in record.verdicts if verdict.decided_s is not None]
    return times_s[-1] if times_s else None


def _failed_full(record: Record) -> bool:
    return any(
        verdict.high and verdict.outcome.duration_s >= record.tally.criterion.duration_s
        for verdict in record.verdicts
    )


def _passed_short(record: Record) -> bool:
    return any(not verdict.high and not record.full(verdict) for verdict in record.verdicts)


def _log(rung: int, ladder: Ladder) -> float:
    return math.log(ladder.load_fps(rung))


def _rung(log_load: float, lowest: int, highest: int, ladder: Ladder) -> int:
    rung = lowest + round((log_load - _log(lowest, ladder)) / ladder.step)
    return min(max(rung, lowest), highest)
