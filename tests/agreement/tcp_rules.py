"""One TCP sender after the rules of the RFCs, segment by segment, over a path that loses segments at random.

Written from the RFCs and not from the engine: no bytes, no frames, no queues. A path without a rate gives
each segment back after one round trip, or loses it; nothing is overtaken, and what a lost acknowledgement
told is told by the next one. Windows are in segments, times in seconds.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from random import Random

DUPLICATES = 3
"""Source: RFC 5681, 3.2; RFC 8985, 6.2."""
LEAST_THRESHOLD = 2.0
"""Source: RFC 5681, equation 4."""


class Reno:
    """Source: RFC 5681, 3.1, equations 2 to 4; RFC 3465, 2, with L = 2, and 1 after a timeout."""

    limit = 2

    def __init__(self) -> None:
        self.window, self.threshold, self.counted = 10.0, math.inf, 0.0

    def reduce(self, flight: int) -> None:
        self.threshold = max(flight / 2, LEAST_THRESHOLD)
        self.limit, self.counted = 2, 0.0

    def collapse(self) -> None:
        self.window, self.limit = 1.0, 1

    def grow(self, segments: int, now: float, rtt: float) -> None:
        if self.window < self.threshold:
            self.window += min(segments, self.limit)
        else:
            self.avoid(segments, now, rtt)

    def avoid(self, segments: int, now: float, rtt: float) -> None:
        self.counted += segments
        if self.counted >= self.window:
            self.counted -= self.window
            self.window += 1


class Cubic(Reno):
    """Source: RFC 9438, 4: equations 1, 2 and 4, 4.2 to 4.8, with fast convergence."""

    C, BETA = 0.4, 0.7
    limit = 8

    def __init__(self) -> None:
        super().__init__()
        self.most = self.before = self.friendly = self.plateau = 0.0
        self.begun: float | None = None

    def reduce(self, flight: int) -> None:
        shrinks = self.window < self.most
        self.before = self.window
        self.most = self.window * (1 + self.BETA) / 2 if shrinks else self.window
        self.threshold = max(flight * self.BETA, LEAST_THRESHOLD)
        self.limit, self.begun = 2, None

    def collapse(self) -> None:
        super().collapse()
        self.most, self.begun = 0.0, None

    def avoid(self, segments: int, now: float, rtt: float) -> None:
        if self.begun is None:
            self.begun, self.friendly, self.most = now, self.window, max(self.most, self.window)
            self.plateau = ((self.most - self.window) / self.C) ** (1 / 3)
        slope = 1.0 if self.friendly >= self.before else 3 * (1 - self.BETA) / (1 + self.BETA)
        self.friendly += slope * segments / self.window
        if self.at(now - self.begun) < self.friendly:
            self.window = max(self.window, self.friendly)
        else:
            target = min(max(self.at(now - self.begun + rtt), self.window), 1.5 * self.window)
            self.window += (target - self.window) / self.window * segments

    def at(self, time: float) -> float:
        return self.C * (time - self.plateau) ** 3 + self.most


@dataclass(slots=True)
class Copy:
    """The last copy of a segment: which of all copies, when it was sent, and whether it is lost."""

    order: int
    at: float
    again: bool
    lost: bool = False
    arrived: bool = False


class Sender:
    """A bulk sender over a path of `rtt` that loses segments and acknowledgements with the chance `ratio`.

    `rack`: RFC 8985 with tail loss probes, and RFC 9937; otherwise RFC 6675, RFC 8985, 6.2, for what was sent
    again, and RFC 6937.
    """

    def __init__(
        self, control: Reno, ratio: float, rtt: float, timeout: float, chance: Random, *, rack: bool
    ) -> None:
        self.control, self.ratio, self.rtt, self.chance, self.rack = control, ratio, rtt, chance, rack
        self.timeout, self.doublings = timeout, 0
        self.path: deque[tuple[float, int, int, float]] = deque()
        self.flight: dict[int, Copy] = {}
        self.una = self.new = self.copies = self.flying = 0
        self.now, self.window = 0.0, control.window
        self.expires = self.probes = self.reorders = math.inf
        self.repairs = self.restarts = False
        self.end = self.delivered = self.out = self.before = 0
        self.latest = 0
        self.probed: tuple[int, bool] | None = None

    def carry(self, seconds: float) -> int:
        """Segments acknowledged in order within `seconds`."""
        told: list[tuple[int, int, float]] = []
        while True:
            self.send()
            timer = min(self.expires, self.probes, self.reorders)
            if not self.path or self.path[0][0] >= timer:
                self.now = timer
                self.run_out()
            else:
                self.now, *copy = self.path.popleft()
                told.append(tuple(copy))
                if self.chance.random() >= self.ratio:
                    self.hear(told)
                    told = []
            if self.now > seconds:
                return self.una

    def send(self) -> None:
        # Source: RFC 6675, 4, `NextSeg`, rules 1 and 2; 5, step 4.3, for the first of a recovery.
        while self.flying + 1 <= self.window or (self.repairs and self.out == 0):
            lost = next((number for number, copy in self.flight.items() if copy.lost), None)
            self.transmit(self.new if lost is None else lost)

    def transmit(self, number: int) -> None:
        self.copies += 1
        self.out += 1
        old = self.flight.get(number)
        self.flying += old is None or old.lost
        self.flight[number] = Copy(self.copies, self.now, old is not None)
        if self.chance.random() >= self.ratio:
            self.path.append((self.now + self.rtt, number, self.copies, self.now))
        if self.expires == math.inf:
            self.expires = self.now + self.timeout
        if number == self.new:
            self.new += 1
            self.schedule()

    def schedule(self) -> None:
        # Source: RFC 8985, 7.2; the longest delay of an acknowledgement is the timeout.
        is_open = not self.repairs and not self.restarts and self.probed is None
        if self.rack and self.flight and is_open and not any(copy.arrived for copy in self.flight.values()):
            alone = self.timeout if len(self.flight) == 1 else 0.0
            self.probes = min(self.now + 2 * self.rtt + alone, self.expires)
        else:
            self.probes = math.inf

    def run_out(self) -> None:
        if self.now == self.reorders:
            self.reorders = math.inf
            self.react(self.lose(self.now), 0, ends=False, moved=False)
        elif self.now == self.probes:
            # Source: RFC 8985, 7.3: something new if there is any, which there always is here.
            self.probes = math.inf
            self.probed = (self.new + 1, False)
            self.transmit(self.new)
            self.probes, self.expires = math.inf, self.now + self.timeout * 2**self.doublings
        else:
            self.collapse()

    def collapse(self) -> None:
        # Source: RFC 6298, 5.4 to 5.6; RFC 5681, 3.1; RFC 8985, 6.3.
        self.doublings += 1
        self.expires, self.reorders, self.probed = self.now + self.timeout * 2**self.doublings, math.inf, None
        if not self.repairs and not self.restarts:
            self.control.reduce(min(self.new - self.una, math.floor(self.control.window)))
        self.control.collapse()
        for number, copy in self.flight.items():
            old = not self.rack or number == self.una or copy.at + self.rtt <= self.now
            copy.lost = copy.lost or (not copy.arrived and old)
        self.count()
        self.repairs, self.restarts, self.end, self.window = False, True, self.new, self.control.window
        self.transmit(self.una)

    def count(self) -> None:
        self.flying = sum(not (copy.lost or copy.arrived) for copy in self.flight.values())

    def hear(self, told: list[tuple[int, int, float]]) -> None:
        fresh = 0
        for number, order, _ in told:
            copy = self.flight.get(number)
            if copy is not None and not copy.arrived:
                fresh += 1
                copy.arrived = True
            self.latest = max(self.latest, order)
        before, sent = self.una, told[-1][2]
        while self.una in self.flight and self.flight[self.una].arrived:
            del self.flight[self.una]
            self.una += 1
        found = self.lose(sent)
        if self.una > before:
            self.doublings, self.expires = 0, self.now + self.timeout if self.flight else math.inf
            if self.probed is not None and self.una >= self.probed[0]:
                self.probed = None
        ends = self.repairs and self.una >= self.end
        if self.una >= self.end and (self.repairs or self.restarts):
            # Source: RFC 6582, 3.2, step 3; RFC 6937, 3.1.
            self.control.window = self.control.threshold if self.repairs else self.control.window
            self.repairs = self.restarts = False
        if fresh:
            self.react(found, fresh, ends=ends, moved=self.una > before)
        if self.una > before:
            self.schedule()

    def lose(self, sent: float) -> bool:
        """Whether losses show, `sent` being when what arrived last was sent, or the time of a timer."""
        arrived, found, waits = 0, False, False
        gathered = sum(copy.arrived for copy in self.flight.values())
        # Source: RFC 8985, 6.2, step 4: nothing is ever overtaken here.
        patience = 0.0 if gathered >= DUPLICATES or self.repairs or self.restarts else self.rtt / 4
        for copy in reversed(list(self.flight.values())):
            if copy.arrived:
                arrived += 1
            elif not copy.lost and copy.order < self.latest:
                if self.rack:
                    copy.lost = copy.at + self.rtt + patience <= self.now + 1e-12
                    waits |= not copy.lost
                else:
                    # Source: RFC 6675, 4, `IsLost`.
                    copy.lost = sent - copy.at > self.rtt / 4 if copy.again else arrived >= DUPLICATES
                found |= copy.lost
        self.reorders = self.now + patience if waits else math.inf
        self.count()
        return found

    def react(self, found: bool, fresh: int, *, ends: bool, moved: bool) -> None:
        if found and not self.repairs and not self.restarts:
            self.control.reduce(min(self.new - self.una, math.floor(self.control.window)))
            self.repairs, self.end, self.probes = True, self.new, math.inf
            arrived = sum(copy.arrived for copy in self.flight.values())
            self.delivered, self.out, self.before = 0, 0, self.new - self.una - arrived + fresh
        if self.repairs:
            # Source: RFC 6937, 3.1; RFC 9937, 6.
            self.delivered += fresh
            if self.flying > self.control.threshold:
                more = math.ceil(self.delivered * self.control.threshold / self.before) - self.out
            else:
                grows = 1 if not self.rack or (moved and not found) else 0
                limit = max(self.delivered - self.out, fresh) + grows
                more = min(self.control.threshold - self.flying, limit)
            self.window = self.flying + max(more, 0)
            return
        if moved and not ends:
            self.control.grow(fresh, self.now, self.rtt)
        self.window = self.control.window
