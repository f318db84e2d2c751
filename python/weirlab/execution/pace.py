"""How far the work is, how fast it goes, and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

_WINDOW_S = 60.0
"""The rate is that of the last minute: batches differ, and workers come and go."""
_SURE_S = 2.0
"""No rate is given before that."""


@dataclass(frozen=True, kw_only=True)
class State:
    """How far it is."""

    done: int
    """Runs that have ended, failed ones included."""
    planned: int
    failed: int
    rate_per_s: float | None
    """Runs that ended in a second, of the last minute; None: too early."""
    left_s: float | None
    """If it goes on like that."""
    remark: str = ""
    """What whoever asked for the work says of the results so far."""

    def __str__(self) -> str:
        parts = [f"{self.done:,} of {self.planned:,} runs".replace(",", " ")]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.rate_per_s is not None:
            parts.append(f"{_rate(self.rate_per_s)}")
        if self.left_s is not None:
            parts.append(f"{_duration(self.left_s)} left")
        return ", ".join([*parts, *filter(None, [self.remark])])


def _rate(per_s: float) -> str:
    if per_s >= 1:
        return f"{per_s:.3g} a second" if per_s < 1000 else f"{per_s:.0f} a second"
    return f"{60 * per_s:.2g} a minute" if per_s >= 1 / 60 else f"{3600 * per_s:.2g} an hour"


def _duration(seconds: float) -> str:
    for most, unit_s, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < most:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


class Pace:
    """Tells the rate from what has ended at which time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Time is that of a clock that nobody sets. Where one jumps all the same, what was before does not
        count."""
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()

    def forget(self) -> None:
        """What was before does not count."""
        self._seen.clear()

    def rate_per_s(self, done: float) -> float | None:
        """The rate, when so much is done now."""
        now = self._clock()
        if self._seen and not 0 <= now - self._seen[-1][0] <= _WINDOW_S:
            self.forget()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _WINDOW_S:
            self._seen.popleft()
        then, before = self._seen[0]
        return None if now - then < _SURE_S or done <= before else (done - before) / (now - then)
