"""Whether a device changed during a search: trials that contradict each other, and the order they came in.

A trial that failed and one that passed contradict each other where the one that passed offered no less, and
lasted no shorter than the other took to fail. Where the device stands still and answers at random near its
limit, either order is equally likely, and the two loads differ as much in one order as in the other. A device
that warms up fails first and passes later, one that is throttled passes first: by more than chance explains
where the loads differ by more than those of the contradictions in the opposite order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weirlab.search.ledger import Record, Verdict

__all__ = [
    "CLEAN_TESTS",
    "Change",
    "deterioration",
    "failures_since_pass",
    "improvement",
    "is_at_random",
    "last_failure",
    "last_pass_s",
    "passes_since_failure",
]

CLEAN_TESTS = 5
"""Trials that have to contradict an earlier one before the device counts as changed. Had one of six trials
of a device that stands still failed, it would have been the first of them once in six searches."""
CHANCE_FACTOR = 2.0
"""How many times further than the furthest contradiction in the opposite order a change has to reach, and"""
CHANCE_WIDTHS = 2.0
"""by how many widths of the goal more."""


class Change(NamedTuple):
    """A load at which the device answers differently from before."""

    load_fps: float
    improved: bool
    """Whether it failed there at first; else it passed at first."""
    trials: int
    """Trials that contradict its earlier answer at that load."""
    since: int
    """Index of the latest trial that contradicted another one for the first time."""
    since_s: float
    """When that trial ended [s]."""


def is_at_random(records: Sequence[Record]) -> bool:
    """Whether the device has passed a trial and failed a later one, no longer and at no higher load: with
    passes where it had failed, it has not changed once. It is better now and worse then."""
    best: list[tuple[float, float]] = []
    for verdict in _in_order(records):
        load_fps = verdict.outcome.load_fps
        if not verdict.high:
            best.append((load_fps, verdict.sample.duration_s))
        elif any(load_fps <= passed_fps and _ran_s(verdict) <= passed_s for passed_fps, passed_s in best):
            return True
    return False


def passes_since_failure(
    records: Sequence[Record], load_fps: float, at_least_s: float = 0.0, from_fps: float = 0.0
) -> int:
    """How many trials at ``load_fps`` or above, and of ``at_least_s`` or longer, have passed since that load
    failed last; ``from_fps``: at that load or above, where it is higher."""
    failed = last_failure(next(record for record in records if record.load_fps == load_fps))
    return sum(
        verdict.sample.duration_s >= at_least_s and _index(verdict) > failed
        for record in records
        if record.load_fps >= max(load_fps, from_fps)
        for verdict in record.of_device
        if not verdict.high
    )


def last_failure(record: Record) -> float:
    """Index of the last trial that failed at this load; infinite where none did."""
    return max((_index(verdict) for verdict in record.of_device if verdict.high), default=math.inf)


def failures_since_pass(record: Record) -> int:
    """How many trials have failed at this load since it passed last; 0 where it never passed."""
    failed: list[bool] = [verdict.high for verdict in record.of_device]
    return failed[::-1].index(False) if False in failed else 0


def last_pass_s(record: Record) -> float:
    """When the last trial that passed at this load ended [s]; 0 where none did."""
    return max((_end_s(verdict) for verdict in record.of_device if not verdict.high), default=0.0)


def improvement(records: Sequence[Record], width: float) -> Change | None:
    """The load of which it is plainest that the device carries it now and did not at first; None where fewer
    than `CLEAN_TESTS` trials speak for that, or chance is as good an explanation.

    Args:
        width: That of the goal.
    """
    return _change(records, width, improved=True)


def deterioration(records: Sequence[Record], width: float) -> Change | None:
    """The mirror of `improvement`: the load that the device carried at first and does not carry now."""
    return _change(records, width, improved=False)


def _change(records: Sequence[Record], width: float, *, improved: bool) -> Change | None:
    verdicts = _in_order(records)
    if not verdicts:
        return None
    logs = np.array([math.log(verdict.outcome.load_fps) for verdict in verdicts])
    high = np.array([verdict.high for verdict in verdicts])
    ran_s = np.array([_ran_s(verdict) for verdict in verdicts])
    gaps = logs[None, :] - logs[:, None]
    # A failure in each row, a pass in each column.
    contradict = high[:, None] & ~high[None, :] & (gaps >= 0.0) & (ran_s[:, None] <= ran_s[None, :])
    failed_first = np.triu(contradict)
    passed_first = contradict & ~failed_first
    # From here on the earlier trial in each row, the later one in each column.
    forth, back = (failed_first, passed_first.T) if improved else (passed_first.T, failed_first)
    sizes = gaps if improved else gaps.T
    margin = CHANCE_WIDTHS * -math.log1p(-width)
    if back.any():
        margin += CHANCE_FACTOR * float((gaps.T if improved else gaps)[back].max())
    forth = forth & (sizes > margin)
    forth[~_is_last(logs, high == improved)] = False
    counts = forth.sum(axis=1)
    if counts.max() < CLEAN_TESTS:
        return None
    best = int(counts.argmax())
    since = int(forth[counts > 0].argmax(axis=1).max())
    return Change(
        verdicts[best].outcome.load_fps,
        improved,
        int(counts[best]),
        _index(verdicts[since]),
        _end_s(verdicts[since]),
    )


def _is_last(logs: npt.NDArray[np.float64], those: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether each of ``those`` trials is the last of them at its load."""
    last: dict[float, int] = {}
    for place in np.flatnonzero(those):
        last[float(logs[place])] = int(place)
    found = np.zeros(len(logs), dtype=bool)
    found[list(last.values())] = True
    return found


def _in_order(records: Sequence[Record]) -> list[Verdict]:
    return sorted((verdict for record in records for verdict in record.of_device), key=_index)


def _index(verdict: Verdict) -> int:
    return verdict.outcome.trial.spec.index


def _end_s(verdict: Verdict) -> float:
    trial = verdict.outcome.trial
    return trial.spec.elapsed_s + trial.effective_duration_s


def _ran_s(verdict: Verdict) -> float:
    """How long a trial took to pass, or to fail."""
    return verdict.sample.duration_s if verdict.decided_s is None else verdict.decided_s
