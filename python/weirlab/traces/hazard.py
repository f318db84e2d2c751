"""Whether losses come with a queue: how likely one is, by what waited.

A path that loses at random loses whatever waits; a queue that overflows, or is managed, loses when much
waits. So the chance of a loss, as a function of what waited, is a constant, or a step, or a step upon a
constant.
"""

from __future__ import annotations

from dataclasses import dataclass

from weirlab.heavy import np

_EVIDENCE = 5.0
"""Logarithm of the likelihood ratio from which a step is believed: by chance it is reached in less than 1 %
of the traces of a constant (the step is free, and each place of it is another chance)."""
_MORE = 3.0
"""Gain in that logarithm from which bursts and single losses are judged apart."""
_RATIO = 10.0
"""A full queue loses so many times as often at least as one that is not. What varies with the load, as delays
of a radio link do, goes along with random losses by less."""
_BURST = 3
"""Packets of a burst: so many, and so many times the median of all events."""
_FULL = 0.99
"""The quantile of all samples that a queue reaches when it is full. The lengths of bursts speak for a queue
there alone: a path can lose several packets at once, whatever waits."""
_RARE = 0.5
"""A step lies where less than this share of all samples waited longer: what is usual proves nothing."""
_TOP = 0.9
"""But for a queue that is full nearly always: a step at this share of the usual wait, or more, is its end."""
_BELOW = 0.5
"""Events that waited less than this share of the step are no blurred ones of the queue."""
_LEVEL, _BAND, _STRAY = 0.75, 0.7, 0.1
"""A queue that loses when it is full has a level, which this quantile of the events estimates; what waited
this share of it is as much, and at most this share of the events strays."""
_LIKELIER = 3.0
"""Logarithm of the likelihood ratio (20 to 1) from which a full queue is believed without a step, and from
which a step is too likely for a constant to be believed."""
_USUAL = 0.95
"""The quantile of all samples that stands for what often waits: single ones waited for the host."""
_BINS = 32
"""Of what waits, to an octave."""
_HIGH = 0.3
"""A step lies at this share of the usual wait at least: stamps are blurred, and small shifts of many events
would prove what is none."""


_UNEVEN, _SURPRISE = 1 / 3, 3.0
"""Random losses fall on all that passes alike. They are not taken for random where more waited, by this share
of the samples and with a chance of less than exp(-3), 5 %."""


@dataclass(frozen=True)
class Blame:
    """Which of some events a queue explains."""

    queued: np.ndarray
    """Of each event, whether the queue explains it."""
    at_random: float
    """How many events a constant chance explains: those below the step, and their share of those above."""
    step_ps: float | None
    """What waited at least when the queue lost; None: losses do not depend on what waits."""
    decided: bool = True
    """Whether the events that no queue explains are known to be random: a step may be likely that is not
    proven, or they may come when much waits, at no one level."""


def blame(
    waits_ps: np.ndarray,
    samples: np.ndarray,
    events_ps: np.ndarray,
    least_ps: float,
    packets: np.ndarray | None = None,
    blur_ps: float = 0.0,
    slight_ps: float = 0.0,
) -> Blame:
    """Compare what waited when something was lost (`events_ps`) with what waits at all (`waits_ps`, of which
    there are so many `samples`). Less than `least_ps` is no queue. An event lost so many `packets`; None:
    one each. What waited is known to `blur_ps`. Less than `slight_ps` is what hosts add, too: a step
    there that is not proven leaves a constant as likely as it is.

    The likelihood is that of a Poisson process whose rate is one constant below a step and another, larger
    one, above; the step is where it is greatest. Single losses and bursts have rates of their own, since a
    queue that overflows mostly loses several packets at once and a path one here and there: a path that loses
    at random hides no full queue. Where the queue was full, how many packets an event lost is
    evidence, too: a path loses as many whatever waits, be it one each or, in bursts, more.

    Source: Cox 1955, Poisson processes whose rates differ; Gilbert 1960, bursts of geometric lengths
    DEVIATION: where the ratio decides nothing, as when a queue was full nearly always, or when few events are
    known, a queue that loses when it is full is compared with a constant.
    """
    events = coarse_ps(events_ps)
    if not len(events):
        return Blame(np.zeros(0, bool), 0.0, None)
    seen = _Seen(waits_ps, samples, len(events))
    lowest = max(least_ps, _HIGH * seen.quantile(_USUAL))
    kinds = [np.ones(len(events), bool)]
    step, gain = _best(events, kinds, lowest, seen)
    apart = _kinds(packets, len(events))
    step_apart, gain_apart = _best(events, apart, lowest, seen, packets)
    if gain_apart >= max(gain, _EVIDENCE) + _MORE:
        kinds, step, gain = apart, step_apart, gain_apart
    blamed = None
    if step is not None and gain >= _EVIDENCE:
        blamed = _by_step(events, kinds, step, seen, blur_ps)
        if not _even(events[~blamed.queued], seen, step, blur_ps):
            blamed = Blame(blamed.queued, 0.0, step, decided=False)
        if (~blamed.queued).sum() <= _BELOW * len(events):
            return blamed
    # It explains few, or none.
    level = float(np.quantile(events, _LEVEL))
    full = max(_BAND * level, least_ps)
    count = int((events >= full).sum())
    outside = len(events) - count
    share = min(max((seen.above(full) + count) / seen.total, 1e-9), 1 - 1e-9)
    stray_share = min(_STRAY, (outside + 0.5) / (len(events) + 1))
    ratio = count * np.log((1 - stray_share) / share) + outside * np.log(stray_share / (1 - share))
    # No more than what fills it can wait in a queue.
    fills = level >= _BAND * seen.quantile(_USUAL)
    if count and fills and ratio > (gain if blamed else _LIKELIER):
        return Blame(np.ones(len(events), bool), 0.0, full)
    most = step is not None and step >= slight_ps and (events >= step).sum() > _BELOW * len(events)
    decided = not (most and gain >= _LIKELIER) and _even(events, seen, None, blur_ps)
    return blamed or Blame(np.zeros(len(events), bool), float(len(events)), None, decided)


class _Seen:
    """What waits at all, with that at events: a loss is a sample, too."""

    def __init__(self, waits_ps: np.ndarray, samples: np.ndarray, events: int) -> None:
        order = np.argsort(waits_ps)
        self._waits = np.asarray(waits_ps, float)[order]
        self._reached = np.concatenate([[0.0], np.cumsum(np.asarray(samples, float)[order])])
        self.total = float(self._reached[-1]) + events

    def above(self, wait_ps: float) -> float:
        """Samples that waited so long, without those at events."""
        return float(self._reached[-1] - self._reached[np.searchsorted(self._waits, wait_ps)])

    def places(self, waits_ps: np.ndarray, most_ps: float | None) -> np.ndarray:
        """The shares of the samples up to `most_ps` that waited less than so long, by a bin at least."""
        most = self._reached[-1] if most_ps is None else self._reached[np.searchsorted(self._waits, most_ps)]
        less = self._reached[np.searchsorted(self._waits, waits_ps / (1 + 1 / _BINS))]
        return np.asarray(np.minimum(less / max(most, 1.0), 1.0))

    def quantile(self, at: float) -> float:
        if not len(self._waits):
            return 0.0
        place = int(np.searchsorted(self._reached[1:], at * self._reached[-1]))
        return float(self._waits[min(place, len(self._waits) - 1)])


def _best(
    events: np.ndarray,
    kinds: list[np.ndarray],
    lowest: float,
    seen: _Seen,
    packets: np.ndarray | None = None,
) -> tuple[float | None, float]:
    """The likeliest step, common to all kinds, and its gain over constants: in how often they are, and, where
    `packets` of each are given, in how many packets they lose."""
    step, best = None, 0.0
    top, full = _TOP * seen.quantile(_USUAL), _TOP * seen.quantile(_FULL)
    for place in np.unique(events[events >= lowest]):
        time = seen.above(float(place)) + int((events >= place).sum())
        gain = sum(_gain(events[kind], float(place), time, seen.total) for kind in kinds)
        if gain and packets is not None and place >= full:
            gain += _longer(packets[events >= place], packets[events < place])
        if (time <= _RARE * seen.total or place >= top) and gain > best:
            step, best = float(place), gain
    return step, best


def _even(events: np.ndarray, seen: _Seen, step_ps: float | None, blur_ps: float) -> bool:
    """Whether events fall on all that waits, below a step if they do, as those at random would: not where
    much waits. Of those that waited less than `blur_ps` no more is known.

    Source: Stephens 1974, the test of Kolmogorov and Smirnov for few values
    """
    below = step_ps if step_ps is not None and bool((events < step_ps).all()) else None
    places, count = np.sort(np.where(events < blur_ps, 0.0, seen.places(events, below))), len(events)
    apart = max(float((places - np.arange(count) / count).max(initial=0.0)), 0.0)
    surprise = 2 * ((count**0.5 + 0.12 + 0.11 / max(count, 1) ** 0.5) * apart) ** 2
    return apart < _UNEVEN or surprise < _SURPRISE


def _kinds(packets: np.ndarray | None, events: int) -> list[np.ndarray]:
    """Bursts and single losses, if there are both; else all events."""
    if packets is not None:
        bursts = packets >= max(_BURST, _BURST * float(np.median(packets)))
        if bursts.any():
            return [bursts, ~bursts]
    return [np.ones(events, bool)]


def _stepped(events: np.ndarray, step: float, time: float, total: float) -> bool:
    """Whether events above a step are so much more frequent than below."""
    count = int((events >= step).sum())
    return count * (total - time) > _RATIO * (len(events) - count) * time


def _gain(events: np.ndarray, step: float, time: float, total: float) -> float:
    """Logarithm of the likelihood ratio of a step, of which there were `time` of `total` samples above."""
    if not _stepped(events, step, time, total):
        return 0.0
    count = int((events >= step).sum())
    below = len(events) - count
    return _log_rate(count, time) + _log_rate(below, total - time) - _log_rate(len(events), total)


def _longer(above: np.ndarray, below: np.ndarray) -> float:
    """Logarithm of the likelihood ratio of events that lose more packets each `above` a step than `below`,
    over one mean for all; their numbers are geometric. A few more fall in a longer round trip by chance."""
    if not len(above) or not len(below) or above.mean() < _BURST * below.mean():
        return 0.0
    return _log_length(above) + _log_length(below) - _log_length(np.concatenate([above, below]))


def _log_length(packets: np.ndarray) -> float:
    mean = float(packets.mean())
    more = (mean - 1) * float(np.log((mean - 1) / mean)) if mean > 1 else 0.0
    return len(packets) * (more - float(np.log(mean)))


def _by_step(events: np.ndarray, kinds: list[np.ndarray], step: float, seen: _Seen, blur_ps: float) -> Blame:
    queued, at_random = np.zeros(len(events), bool), 0.0
    time = seen.above(step) + int((events >= step).sum())
    edge = _BELOW * step
    if (events >= edge).sum() > _BELOW * len(events):
        edge = min(edge, step - blur_ps)
    if edge <= 0:
        # The queue is shorter than what can be determined of any.
        return Blame(np.ones(len(events), bool), 0.0, step)
    blurred = seen.above(edge) + int((events >= edge).sum())
    for kind in kinds:
        above = kind & (events >= edge)
        stray = int((kind & ~above).sum())
        if stray and not _stepped(events[kind], step, time, seen.total):
            at_random += float(kind.sum())
            continue
        queued |= above
        constant = stray / max(seen.total - blurred, 1.0)
        at_random += min(stray + constant * blurred, float(kind.sum()))
    return Blame(queued, at_random, step)


def coarse_ps(waits_ps: np.ndarray) -> np.ndarray:
    """The lower ends of the bins of the table `waits`: 32 to an octave."""
    waits = np.maximum(np.asarray(waits_ps, float), 0.0)
    width = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(waits, 1.0))) - 5, 0)
    return np.asarray(np.floor(waits / width) * width)


def _log_rate(events: int, time: float) -> float:
    return events * float(np.log(events / time)) if events and time > 0 else 0.0
