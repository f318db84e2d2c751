"""What became of every place of a plan, and which places are next."""

from __future__ import annotations

import random

import numpy as np

from weirlab.execution.batches import Ranges

_PILOT_RUNS = 4
"""So many runs of a point say what others need; if time is left, more of each follow: few short runs of a
point take little longer than the point itself."""
_PILOT_MORE = 252
_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, lie apart from each other, however many there are."""

_OPEN, _TAKEN, _DONE, _FAILED, _UNASKED = range(5)


class Places:
    """Replicates of points, in the order of a plan, each open, taken, done, failed, or not asked for."""

    def __init__(self, order: np.ndarray, replicates: int, *, asked: bool) -> None:
        """All open; with `asked` each is when it is asked for."""
        self.replicates = replicates
        self._state = np.full(len(order) * replicates, _UNASKED if asked else _OPEN, dtype=np.uint8)
        self._by_point = self._state.reshape(len(order), replicates)
        self._place_of = np.full(int(order.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._place_of[order] = np.arange(len(order))
        self._scattered = asked
        self._next = 0
        self._spread = 0.0

    def __len__(self) -> int:
        return len(self._state)

    @property
    def open(self) -> int:
        """How many nobody has."""
        return int((self._state == _OPEN).sum())

    @property
    def left(self) -> int:
        """How many have not ended."""
        return int((self._state < _DONE).sum())

    @property
    def done(self) -> int:
        """How many have a result."""
        return int((self._state == _DONE).sum())

    @property
    def failed(self) -> int:
        """How many have ended without."""
        return int((self._state == _FAILED).sum())

    @property
    def ended(self) -> int:
        """How many are done or failed."""
        return self.done + self.failed

    @property
    def wanted(self) -> int:
        """How many are asked for."""
        return int((self._state != _UNASKED).sum())

    def located(self, numbers: np.ndarray, replicates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of some replicates of points have a place, and the places of these."""
        fits = (numbers < len(self._place_of)) & (replicates < self.replicates)
        return fits, self._place_of[numbers[fits]] * self.replicates + replicates[fits]

    def ask(self, counts: np.ndarray) -> int:
        """Open so many replicates of each point that were not asked for; how many these are in all."""
        asked = np.arange(self.replicates) < counts[:, np.newaxis]
        self._by_point[asked & (self._by_point == _UNASKED)] = _OPEN
        return int(asked.sum())

    def end(self, done: np.ndarray, failed: np.ndarray) -> None:
        """Places that have ended."""
        self._state[failed] = _FAILED
        self._state[done] = _DONE

    def take(self, places: Ranges) -> None:
        """Somebody has them now."""
        for first, stop in places:
            self._state[first:stop] = _TAKEN

    def settle(self, places: Ranges, left: Ranges) -> None:
        """A batch has come back, with what is `left` of it."""
        for first, stop in places:
            self._state[first:stop] = np.where(self._state[first:stop] == _FAILED, _FAILED, _DONE)
        for first, stop in left:
            self._state[first:stop] = _OPEN

    def reopen(self, places: Ranges) -> None:
        """Nobody has them any more: what has not ended begins again."""
        for first, stop in self.still_open(places):
            self._state[first:stop] = _OPEN

    def still_open(self, places: Ranges) -> Ranges:
        """The places without those that somebody else has finished meanwhile."""
        return tuple(
            run
            for first, stop in places
            for run in _ranges(np.flatnonzero(self._state[first:stop] < _DONE) + first)
        )

    def go_elsewhere(self) -> None:
        """Cut on somewhere else: another runner is at it here."""
        self._next = random.SystemRandom().randrange(len(self._state))

    def cut(self, many: int) -> Ranges:
        """The next open places, at most so many; none where none is open."""
        ahead = self._state[self._next :] == _OPEN
        if not ahead.any():
            self._next = 0
            ahead = self._state == _OPEN
            if not ahead.any():
                return ()
        first = self._next + int(ahead.argmax())
        if self._scattered:  # points have other places between them
            stop = min(len(self._state), first + many * self.replicates)
            places = np.flatnonzero(self._state[first:stop] == _OPEN)[:many] + first
            self._next = int(places[-1]) + 1
            return _ranges(places)
        window = self._state[first : first + many] == _OPEN
        length = len(window) if window.all() else int((~window).argmax())
        self._next = first + length
        return ((first, first + length),)

    def apart(self, many: int) -> Ranges:
        """Open places that lie apart, as their costs may: a few replicates of some points."""
        places = np.flatnonzero(self._state == _OPEN)
        chosen: dict[int, tuple[int, int]] = {}
        for _ in range(min(many, len(places))):
            self._spread = (self._spread + _GOLDEN) % 1.0
            number = int(places[int(len(places) * self._spread)]) // self.replicates
            is_open = self._by_point[number] == _OPEN
            first = int(is_open.argmax())
            run = is_open[first : first + _PILOT_RUNS + _PILOT_MORE]
            first += number * self.replicates
            chosen[number] = (first, first + (len(run) if run.all() else int(run.argmin())))
        runs = [(first, min(stop, first + _PILOT_RUNS)) for first, stop in chosen.values()]
        if many > 1:
            rest = ((first + _PILOT_RUNS, stop) for first, stop in chosen.values())
            runs += [each for each in rest if each[0] < each[1]]
        return tuple(runs)


def _ranges(places: np.ndarray) -> Ranges:
    """Sorted numbers as ranges, cut where one is missing."""
    if not len(places):
        return ()
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return tuple((int(run[0]), int(run[-1]) + 1) for run in runs)


def count(places: Ranges) -> int:
    """How many these are."""
    return sum(stop - first for first, stop in places)


def halved(places: Ranges) -> list[Ranges]:
    """The same places as two batches; one place alone stays one."""
    total = count(places)
    if total == 1:
        return [places]
    front: list[tuple[int, int]] = []
    back: list[tuple[int, int]] = []
    room = total // 2
    for first, stop in places:
        cut = min(stop, first + room)
        if cut > first:
            front.append((first, cut))
        if cut < stop:
            back.append((cut, stop))
        room -= cut - first
    return [tuple(front), tuple(back)]
