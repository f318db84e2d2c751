"""Counters of a TRex server, read so that they can be believed.

Counters of different ports are not read at the same instant, and frames may be under way between them. What
they say while traffic runs is therefore never a result: loss comes from counters that were read after the
traffic had stopped, the last frames had time to arrive, and the counters had stopped moving.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from weirlab.documents import section, typed
from weirlab.errors import TestbedError
from weirlab.testbed.trex.server import Server
from weirlab.testbed.trex.streams import Lane


class Clock(Protocol):
    """Time of the tester [s]."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class MonotonicClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


@dataclass(frozen=True)
class LaneCount:
    """Frames of one lane."""

    sent: int
    received: int

    def since(self, earlier: LaneCount) -> LaneCount:
        """What was counted after ``earlier``."""
        return LaneCount(self.sent - earlier.sent, self.received - earlier.received)


class Counters(Protocol):
    """Where the frames of lanes are counted."""

    def read(self) -> list[LaneCount]:
        """One count per lane, in their order."""
        ...


class PortCounters:
    """Everything that the ports send and receive, frames of others included."""

    def __init__(self, server: Server, lanes: Sequence[Lane]) -> None:
        self._server = server
        self._lanes = lanes
        self._ports = sorted({port for lane in lanes for port in (lane.sender, lane.receiver)})

    def read(self) -> list[LaneCount]:
        counts = self._server.counts(self._ports)
        return [LaneCount(counts[lane.sender].sent, counts[lane.receiver].received) for lane in self._lanes]


class GroupCounters:
    """The frames of packet groups alone: a lane counts its groups where they leave and where they belong."""

    def __init__(self, server: Server, lanes: Sequence[Lane], groups: Sequence[Sequence[int]]) -> None:
        self._server = server
        self._lanes = lanes
        self._groups = groups

    def read(self) -> list[LaneCount]:
        wanted = [group for of_lane in self._groups for group in of_lane]
        statistics = self._server.groups(wanted, "flow_stats")
        return [
            LaneCount(
                sum(_frames(statistics, group, "tp", lane.sender) for group in groups),
                sum(_frames(statistics, group, "rp", lane.receiver) for group in groups),
            )
            for lane, groups in zip(self._lanes, self._groups, strict=True)
        ]


class Standstill:
    """How long a counter stands still while frames pass: the pace at which the tester renews it."""

    _ENOUGH_FRAMES = 100
    """A counter that then moves by fewer had little to count, and says nothing about its pace."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last: list[tuple[int, float]] = []
        """Of every counter, its value and when it was first seen."""

    def begin(self, at_s: float, counts: Sequence[LaneCount]) -> None:
        """Take the first reading of a stretch of traffic."""
        self._last = [(count, at_s) for lane in counts for count in (lane.sent, lane.received)]

    def see(self, at_s: float, counts: Sequence[LaneCount]) -> None:
        """Take a further reading."""
        values = [count for lane in counts for count in (lane.sent, lane.received)]
        for place, (value, (last, since_s)) in enumerate(zip(values, self._last, strict=True)):
            if value == last:
                continue
            if value - last >= self._ENOUGH_FRAMES:
                self.longest_s = max(self.longest_s, at_s - since_s)
            self._last[place] = (value, at_s)


def settled(
    counters: Counters, clock: Clock, *, settle_s: float, stable_s: float, poll_s: float, timeout_s: float
) -> list[LaneCount]:
    """Counts after the last frames had ``settle_s`` to arrive and nothing moved for ``stable_s``.

    Raises:
        TestbedError: They still move after ``timeout_s``.
    """
    clock.sleep(settle_s)
    begin = clock.now()
    last = counters.read()
    since = clock.now()
    while True:
        clock.sleep(min(poll_s, stable_s))
        asked = clock.now()
        counts = counters.read()
        if counts == last:
            if asked - since >= stable_s:
                return last
            continue
        last, since = counts, clock.now()
        if since - begin > timeout_s:
            raise TestbedError(
                f"the counters of TRex still move {timeout_s + settle_s:g} s after its traffic was stopped: "
                f"something else sends to its ports"
            )


def _frames(statistics: Mapping[str, object], group: int, what: str, port: int) -> int:
    try:
        return typed(dict[str, int], section(statistics, str(group))[what]).get(str(port), 0)
    except (KeyError, ValueError) as error:
        raise TestbedError(f"TRex answered get_pgid_stats without '{what}' of group {group}") from error
