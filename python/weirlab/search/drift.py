"""Whether a device changed during a search: trials that contradict each other, and the order they came in.

Two trials contradict each other when one failed, and one passed at no lower load and lasted no shorter. Where
the device stands still and answers at random near its limit, either order is equally likely. A device that
warms up fails first and passes later, and never the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from weirlab.search.ledger import Record, Verdict

__all__ = [
    "CLEAN_TESTS",
    "Improvement",
    "improvement",
    "is_at_random",
    "last_failure",
    "passes_since_failure",
]

CLEAN_TESTS = 5
"""Passes since a failure, at no lower load, after which the device counts as changed. Had one of six trials
of a device that stands still failed, it would have been the first of them once in six searches."""


class Improvement(NamedTuple):
    """A load that failed at first and passes now."""

    load_fps: float
    passes: int
    """Trials at that load or above that passed since it failed last."""
    since: int
    """Index of the latest trial that passed where another one had failed before."""


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


def passes_since_failure(records: Sequence[Record], load_fps: float, at_least_s: float = 0.0) -> int:
    """How many trials at ``load_fps`` or above, and of ``at_least_s`` or longer, have passed since that load
    failed last."""
    failed = last_failure(next(record for record in records if record.load_fps == load_fps))
    return sum(
        verdict.sample.duration_s >= at_least_s and _index(verdict) > failed
        for record in records
        if record.load_fps >= load_fps
        for verdict in record.of_device
        if not verdict.high
    )


def last_failure(record: Record) -> float:
    """Index of the last trial that failed at this load; infinite where none did."""
    return max((_index(verdict) for verdict in record.of_device if verdict.high), default=math.inf)


def improvement(records: Sequence[Record]) -> Improvement | None:
    """The load of which it is plainest that the device carries it now and did not at first; None where
    fewer than `CLEAN_TESTS` trials speak for that, or any against it."""
    since = -1
    failures: list[Verdict] = []
    for verdict in _in_order(records):
        if verdict.high:
            failures.append(verdict)
            continue
        left = [each for each in failures if not _is_overtaken(each, verdict)]
        if len(left) < len(failures):
            since, failures = _index(verdict), left
    if since < 0 or is_at_random(records):
        return None
    passes = {
        record.load_fps: passes_since_failure(records, record.load_fps, min(map(_ran_s, failed)))
        for record in records
        if (failed := [verdict for verdict in record.of_device if verdict.high])
    }
    load_fps = max(passes, key=lambda each: passes[each])
    return Improvement(load_fps, passes[load_fps], since) if passes[load_fps] >= CLEAN_TESTS else None


def _is_overtaken(failed: Verdict, passed: Verdict) -> bool:
    """Whether a pass contradicts a failure."""
    return failed.outcome.load_fps <= passed.outcome.load_fps and _ran_s(failed) <= passed.sample.duration_s


def _in_order(records: Sequence[Record]) -> list[Verdict]:
    return sorted((verdict for record in records for verdict in record.of_device), key=_index)


def _index(verdict: Verdict) -> int:
    return verdict.outcome.trial.spec.index


def _ran_s(verdict: Verdict) -> float:
    """How long a trial took to fail."""
    return verdict.sample.duration_s if verdict.decided_s is None else verdict.decided_s
