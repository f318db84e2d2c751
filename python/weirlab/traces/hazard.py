"""Whether losses come with a queue: how likely one is, by what waited.

A path that loses at random loses whatever waits; a queue that overflows, or is managed, loses when much
waits. So the chance of a loss, as a function of what waited, is a constant, or a step, or a step upon a
constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Blame", "blame", "coarse_ps"]

_EVIDENCE = 5.0
"""Logarithm of the likelihood ratio from which a step is believed: by chance it is reached in less than 1 %
of the traces of a constant (the step is free, and each place of it is another chance)."""
_RATIO = 10.0
"""A full queue loses so many times as often at least as one that is not. What varies with the load, as delays
of a radio link do, goes along with random losses by less."""
_RARE = 0.5
"""A step lies where less than this share of all samples waited longer: what is usual proves nothing."""
_BELOW = 0.5
"""Events that waited less than this share of the step are no blurred ones of the queue."""
_LEVEL, _BAND, _STRAY = 0.75, 0.7, 0.1
"""A queue that loses when it is full has a level, of which this quantile of the events tells; what waited
this share of it is as much, and at most this share of the events strays."""
_USUAL = 0.95
"""The quantile of all samples that stands for what often waits: single ones waited for the host."""
_HIGH = 0.3
"""A step lies at this share of the usual wait at least: stamps are blurred, and small shifts of many events
would prove what is none."""


@dataclass(frozen=True)
class Blame:
    """Which of some events a queue explains."""

    queued: np.ndarray
    """Of each event, whether the queue explains it."""
    at_random: float
    """How many events a constant chance explains: those below the step, and their share of those above."""
    step_ps: float | None
    """What waited at least when the queue lost; None: losses do not depend on what waits."""


def blame(waits_ps: np.ndarray, samples: np.ndarray, events_ps: np.ndarray, least_ps: float) -> Blame:
    """Compare what waited when something was lost (`events_ps`) with what waits at all (`waits_ps`, of which
    there are so many `samples`). Less than `least_ps` is no queue.

    The likelihood is that of a Poisson process whose rate is one constant below a step and another, larger
    one, above; the step is where it is greatest.

    Source: Cox 1955, Poisson processes whose rates differ
    DEVIATION: where the ratio decides nothing, as when a queue was full nearly always, or when few events are
    known, a queue that loses when it is full is compared with a constant.
    """
    events = coarse_ps(events_ps)
    if not len(events):
        return Blame(np.zeros(0, bool), 0.0, None)
    order = np.argsort(waits_ps)
    waits = np.asarray(waits_ps, float)[order]
    reached = np.concatenate([[0.0], np.cumsum(np.asarray(samples, float)[order])])
    total = float(reached[-1]) + len(events)

    def above(step: float) -> tuple[int, float]:
        count = int((events >= step).sum())
        return count, float(reached[-1] - reached[np.searchsorted(waits, step)]) + count

    def quantile(at: float) -> float:
        place = int(np.searchsorted(reached[1:], at * reached[-1])) if len(waits) else 0
        return float(waits[min(place, len(waits) - 1)]) if len(waits) else 0.0

    best, found = 0.0, None
    lowest = max(least_ps, _HIGH * quantile(_USUAL))
    for step in np.unique(events[events >= lowest]):
        count, time = above(float(step))
        below = len(events) - count
        gain = _log_rate(count, time) + _log_rate(below, total - time) - _log_rate(len(events), total)
        if time <= _RARE * total and count * (total - time) > _RATIO * below * time and gain > best:
            best, found = gain, float(step)
    told = None
    if found is not None and best >= _EVIDENCE:
        _, time = above(_BELOW * found)
        stray = int((events < _BELOW * found).sum())
        # One standard error less than what was counted: few events prove no constant.
        constant = max(stray - stray**0.5, 0.0) / max(total - time, 1.0)
        at_random = min(stray + constant * time, float(len(events)))
        told = Blame(events >= _BELOW * found, at_random, found)
        if stray <= _BELOW * len(events):
            return told
    # It explains few, or none.
    full = max(_BAND * float(np.quantile(events, _LEVEL)), least_ps)
    count, time = above(full)
    outside = len(events) - count
    share = min(max(time / total, 1e-9), 1 - 1e-9)
    stray_share = min(_STRAY, (outside + 0.5) / (len(events) + 1))
    ratio = count * np.log((1 - stray_share) / share) + outside * np.log(stray_share / (1 - share))
    if count and ratio > 0:
        return Blame(np.ones(len(events), bool), 0.0, full)
    return told or Blame(np.zeros(len(events), bool), float(len(events)), None)


def coarse_ps(waits_ps: np.ndarray) -> np.ndarray:
    """The lower ends of the bins of the table `waits`: eight to an octave."""
    waits = np.maximum(np.asarray(waits_ps, float), 0.0)
    width = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(waits, 1.0))) - 3, 0)
    return np.asarray(np.floor(waits / width) * width)


def _log_rate(events: int, time: float) -> float:
    return events * float(np.log(events / time)) if events and time > 0 else 0.0
