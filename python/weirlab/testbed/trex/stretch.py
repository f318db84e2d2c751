"""One stretch of traffic: start it, watch it, stop it, and count when everything stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weirlab.errors import TestbedError
from weirlab.testbed.trex.counters import (
    Clock,
    Counters,
    GroupCounters,
    LaneCount,
    PortCounters,
    Standstill,
    settled,
)
from weirlab.testbed.trex.delays import Delays
from weirlab.testbed.trex.server import Server
from weirlab.testbed.trex.settings import TrexSettings, core_mask
from weirlab.testbed.trex.streams import Lane, Ramp, Traffic
from weirlab.testbed.trex.wire import understood

_POLL_S = 0.1
_MOST_SETTLING_S = 5.0
_LATE_END_S = 2.0
"""How much later than asked a port may stop by itself before it is stopped."""


@dataclass(frozen=True)
class Budget:
    """How many frames may be lost in the beginning of a stretch."""

    until_s: float
    """Where the beginning ends, from the start of the load."""
    most_lost: float
    """Frames, summed over the lanes."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """What was counted."""

    lanes: Sequence[Lane]
    counts: Sequence[LaneCount]
    stopped_early: bool
    sending_s: tuple[float, float]
    """The least and the most time that the load can have been sent."""
    delays: Delays | None
    facts: Mapping[str, int]

    @property
    def lost(self) -> int:
        """Frames that were sent and not received, summed over the lanes."""
        return sum(max(0, count.sent - count.received) for count in self.counts)


class Tester:
    """The ports of a server, and what is known of their counters."""

    __test__ = False

    def __init__(self, server: Server, settings: TrexSettings, clock: Clock) -> None:
        self._server = server
        self._settings = settings
        self._clock = clock
        self._standstill = Standstill()
        self._is_quiet = False
        """Whether the counters stood still and nothing was sent since."""
        self._received_at_rest: dict[int, int] = {}
        """What each port had received when the counters last stood still."""
        self._at_rest_s = 0.0
        self._disbelief = ""
        """Why nothing that was counted can be believed any more."""

    def disturbed(self) -> None:
        """Forget what was known of the counters: something may have been sent, or another server may
        count."""
        self._is_quiet = False
        self._received_at_rest.clear()

    def send(self, traffic: Sequence[Traffic], duration_s: float, budgets: Sequence[Budget]) -> Stretch:
        """Send the traffic for ``duration_s``, or until surely more frames are lost than one of the budgets
        allows.

        Raises:
            TestbedError: The counters do not come to rest, or moved after they had been believed: then the
                trials before were told to have lost more than they did, and no further one is made.
        """
        if self._disbelief:
            raise TestbedError(self._disbelief)
        settings, server, clock = self._settings, self._server, self._clock
        senders = [each.lane.sender for each in traffic]
        server.clear(settings.ports)
        if settings.ramp_up_s > 0.0 and settings.count == "ports":
            self._ramp_up(traffic)
        server.add_streams({each.lane.sender: each.streams() for each in traffic})
        counters = self._counters(traffic)
        before = counters.read() if self._is_quiet else self._at_rest(counters)
        self._check_late_frames(traffic, before)
        health = self._health()
        ramp_s = max(each.ramp_s for each in traffic)

        self._is_quiet = False
        asked_s = clock.now()
        server.start(senders, ramp_s + duration_s, core_mask(settings))
        started_s = clock.now()
        end_s = started_s + ramp_s + duration_s
        stopped_early = self._watch(counters, before, started_s + ramp_s, duration_s, budgets)
        if not stopped_early:
            self._await_end(senders, end_s)
        stop_s = clock.now()
        server.stop(senders)
        stopped_s = clock.now()

        after = self._at_rest(counters)
        self._note_rest(traffic, after)
        since = {name: value - health[name] for name, value in self._health().items()}
        return Stretch(
            lanes=[each.lane for each in traffic],
            counts=[now.since(then) for now, then in zip(after, before, strict=True)],
            stopped_early=stopped_early,
            sending_s=(max(0.0, stop_s - started_s - ramp_s), stopped_s - asked_s - ramp_s),
            delays=self._delays(traffic),
            facts=since,
        )

    def _ramp_up(self, traffic: Sequence[Traffic]) -> None:
        """Approach the load, and stop: the counters of ports cannot tell these frames from those of the
        load."""
        ramps = [replace(each, ramp=Ramp(self._settings.ramp_up_s)) for each in traffic]
        senders = [each.lane.sender for each in ramps]
        self.disturbed()
        self._server.add_streams({each.lane.sender: each.ramp_streams() for each in ramps})
        ramp_s = max(each.ramp_s for each in ramps)
        self._server.start(senders, ramp_s + _LATE_END_S, core_mask(self._settings))
        end_s = self._clock.now() + ramp_s
        self._clock.sleep(ramp_s)
        self._await_end(senders, end_s)
        self._server.clear(self._settings.ports)

    def _watch(
        self,
        counters: Counters,
        before: Sequence[LaneCount],
        begin_s: float,
        duration_s: float,
        budgets: Sequence[Budget],
    ) -> bool:
        """Look at the counters for ``duration_s`` from ``begin_s``, or until surely more frames are lost than
        a budget allows: True. A budget that ends before is only looked at until then: afterwards its losses
        cannot be told from later ones.

        A frame counts as lost for sure when it was counted as sent at least the settling time before the
        received frames were counted: sent(t - settling) - received(t) is a lower bound of the loss.
        """
        clock = self._clock
        self._standstill.begin(clock.now(), before)
        sent_by: list[tuple[float, int]] = []
        while (left_s := begin_s + duration_s - clock.now()) > 0.0:
            clock.sleep(min(_POLL_S, left_s))
            asked_s = clock.now()
            counts = counters.read()
            answered_s = clock.now()
            self._standstill.see(answered_s, counts)
            if not budgets:
                continue
            since = [now.since(then) for now, then in zip(counts, before, strict=True)]
            received = sum(each.received for each in since)
            settled_s = asked_s - self._settings.settle_s
            sent = max((sent for at_s, sent in sent_by if at_s <= settled_s), default=0)
            begun_s = answered_s - begin_s
            most_lost = [b.most_lost for b in budgets if begun_s <= b.until_s or b.until_s >= duration_s]
            if any(sent - received > most for most in most_lost):
                return True
            sent_by.append((answered_s, sum(each.sent for each in since)))
        return False

    def _await_end(self, senders: Sequence[int], end_s: float) -> None:
        while self._server.is_sending(senders) and self._clock.now() < end_s + _LATE_END_S:
            self._clock.sleep(_POLL_S / 5.0)

    def _counters(self, traffic: Sequence[Traffic]) -> Counters:
        lanes = [each.lane for each in traffic]
        if self._settings.count == "ports":
            return PortCounters(self._server, lanes)
        return GroupCounters(self._server, lanes, [each.groups for each in traffic])

    def _at_rest(self, counters: Counters) -> list[LaneCount]:
        """Counters that can be believed."""
        return settled(
            counters,
            self._clock,
            settle_s=self._settings.settle_s,
            stable_s=max(self._settings.stable_s, 2.0 * self._standstill.longest_s),
            poll_s=_POLL_S,
            timeout_s=_MOST_SETTLING_S,
        )

    def _note_rest(self, traffic: Sequence[Traffic], counts: Sequence[LaneCount]) -> None:
        self._is_quiet = True
        self._at_rest_s = self._clock.now()
        if self._settings.count == "ports":
            self._received_at_rest = {
                each.lane.receiver: count.received for each, count in zip(traffic, counts, strict=True)
            }

    def _check_late_frames(self, traffic: Sequence[Traffic], counts: Sequence[LaneCount]) -> None:
        """Notice frames that arrived after the counters of the trial before had been believed. Those that
        others send may be as many in each second as in a trial."""
        late_frames = sum(
            count.received - self._received_at_rest.get(each.lane.receiver, count.received)
            for each, count in zip(traffic, counts, strict=True)
        )
        idle_s = max(1.0, self._clock.now() - self._at_rest_s)
        if late_frames > self._settings.stray_frames * len(traffic) * idle_s:
            self._disbelief = (
                f"{late_frames} frames arrived after their trial had been counted: frames or counters are "
                f"later than the time to settle ({self._settings.settle_s:g} s) and 'stable' "
                f"({self._settings.stable_s:g} s) allow, and the trials so far lost less than was said"
            )
            raise TestbedError(self._disbelief)

    def _health(self) -> dict[str, int]:
        """Faults that the tester counts of itself, all its ports together."""
        ports = self._server.counts(self._settings.ports).values()
        return {
            "send_errors": sum(port.send_errors for port in ports),
            "receive_errors": sum(port.receive_errors for port in ports),
            "queue_full": self._server.queue_full(),
        }

    def _delays(self, traffic: Sequence[Traffic]) -> Delays | None:
        """The delays of all directions together; None when they were not measured."""
        groups = [each.latency_group for each in traffic if each.latency_group is not None]
        if not groups:
            return None
        latency = self._server.groups(groups, "latency")
        with understood("get_pgid_stats"):
            texts = [latency.get(str(group), {}).get("lat", {}).get("hdrh") for group in groups]
        return Delays.merged([Delays.decode(text) for text in texts if isinstance(text, str) and text])
