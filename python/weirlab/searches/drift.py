"""Whether a device changed during a search: an exact test over trials that differ in nothing but time.

The same load is offered in a few equal trials early in the search, and again when there is a reason to ask.
Of a device that stands still, all orders of their results are equally likely, whatever their distribution and
whatever came of other trials. So the chance that the `late` results all lie on one side of the `early` ones
is 1 / C(early + late, early). When it is asked for the q-th time, a change in either direction is believed
where it would come by chance in `ERROR` / (2 q (q + 1)) of the searches or fewer. These add up to `ERROR`
over both directions and all q: so often at most is a device that stands still ever said to have changed.
Shares that halve with each q would ask for thousands of trials after some tens of questions.

A change has to matter, too: it has to exceed half of the finest width that is looked for.

Source: Wilcoxon 1945, the extreme of the rank sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from weirlab.heavy import np
from weirlab.searches.ledger import Record, Verdict

ERROR = 0.02
"""Most searches on a device that stands still in which it is said to have changed."""
FIRST = 3
"""Trials that the first comparison begins with: the fewer, the more are needed later, the more, the longer
every search takes."""


@dataclass(frozen=True)
class Change:
    """What all late trials differ in from all early ones."""

    early: Sequence[float]
    """Results of the early trials, in any unit."""
    late: Sequence[float]
    at_s: float
    """When the last of them had ended [s]."""
    apart_s: float = math.inf
    """How much later the late ones ended, on average [s]."""

    @property
    def size(self) -> float:
        """ln(mean of the late ones / mean of the early ones): above 0 where it improved."""
        return math.log(math.fsum(self.late) / len(self.late) * len(self.early) / math.fsum(self.early))

    @property
    def rate(self) -> float:
        """The size by the time that it took [1/s]."""
        return self.size / self.apart_s

    @property
    def chance(self) -> float:
        """Probability that equal trials of a device that stands still are so far apart in this direction."""
        return 1.0 / math.comb(len(self.early) + len(self.late), len(self.early))


@cache
def trials_needed(early: int, level: float) -> int:
    """The fewest late trials that lie on one side of ``early`` ones by chance with probability ``level`` at
    most."""
    late = 1
    while math.comb(early + late, early) * level < 1.0:
        late += 1
    return late


class Comparison:
    """Early trials, and late ones as often as it is asked whether the device has changed."""

    def __init__(self, margin: float) -> None:
        """Args:
        margin: The relative change that matters.
        """
        self._margin = margin
        self._early: list[float] = []
        self._late: list[float] | None = None
        self._early_s: list[float] = []
        """When they ended."""
        self._late_s: list[float] = []
        self._questions = 0

    @property
    def begins(self) -> bool:
        """Whether more early trials are needed."""
        return len(self._early) < FIRST

    @property
    def asked(self) -> bool:
        """Whether a question is open: more late trials are needed."""
        return self._late is not None

    @property
    def following(self) -> int:
        """How many late trials the open question still takes at most."""
        return 0 if self._late is None else self._needed() - len(self._late)

    def ask(self) -> None:
        """Begin another question."""
        self._late, self._late_s = [], []
        self._questions += 1

    def add(self, result: float, at_s: float) -> Change | None:
        """Take the result of a trial that ended at ``at_s``; a change where it completes the proof of one.
        The question is then answered, as it is with the first trial that does not fit; and the late trials of
        a change are the early ones of the next question."""
        if self._late is None:
            self._early.append(result)
            self._early_s.append(at_s)
            return None
        self._late.append(result)
        self._late_s.append(at_s)
        if not self._is_apart():
            self._late = None
        elif len(self._late) >= self._needed():
            change = Change(self._early, self._late, at_s, fmean(self._late_s) - fmean(self._early_s))
            self._early, self._late, self._early_s = self._late, None, self._late_s
            return change
        return None

    def _is_apart(self) -> bool:
        assert self._late is not None
        better = min(self._late) > max(self._early) * (1.0 + self._margin)
        return better or max(self._late) < min(self._early) * (1.0 - self._margin)

    def _needed(self) -> int:
        # Two directions; the levels of all questions add up to less than the error.
        share = 1.0 / (self._questions * (self._questions + 1))
        return trials_needed(len(self._early), ERROR / 2.0 * share)


def contradicted_at(records: Sequence[Record], after: int = -1) -> int:
    """Index of the latest trial, later than trial ``after``, that contradicts an earlier one: it passed at no
    lower a load than the other failed at, and lasted no shorter than that took to fail; or the other way
    about. -1 where none does."""
    verdicts = sorted((verdict for record in records for verdict in record.of_device), key=_index)
    load_fps = np.array([verdict.outcome.load_fps for verdict in verdicts])
    high = np.array([verdict.high for verdict in verdicts], dtype=bool)
    ran_s = np.array([_ran_s(verdict) for verdict in verdicts])
    for place in range(len(verdicts) - 1, 0, -1):
        if _index(verdicts[place]) <= after:
            break
        before = slice(0, place)
        if high[place]:
            contradicts = (load_fps[before] >= load_fps[place]) & (ran_s[before] >= ran_s[place])
        else:
            contradicts = (load_fps[before] <= load_fps[place]) & (ran_s[before] <= ran_s[place])
        if np.any(contradicts & (high[before] != high[place])):
            return _index(verdicts[place])
    return -1


def _index(verdict: Verdict) -> int:
    return verdict.outcome.trial.spec.index


def _ran_s(verdict: Verdict) -> float:
    """How long a trial took to pass, or to fail."""
    return verdict.sample.duration_s if verdict.decided_s is None else verdict.decided_s
