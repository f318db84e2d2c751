"""Families of devices of the laboratory: each seed draws another one, with parameters over decades.

They calibrate what a search claims of a device: no constant is chosen for a single member. `STEADY` answer
alike at any time, up to chance and to what they carry over from one trial to the next; `CHANGING` do not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from weirlab.searches.lab_devices import (
    ColdStart,
    Collapse,
    Collections,
    Drifting,
    Family,
    FlowTable,
    Governor,
    Outages,
    Pauses,
    RandomBursts,
    Rehash,
    Timer,
    TwoKnees,
    UnevenQueues,
    around,
    between,
)
from weirlab.searches.lab_state import Adaptive, Hysteresis, Leak, Recovering, TokenBucket
from weirlab.testbed.devices import (
    Device,
    Inversion,
    Ip4Published,
    Knee,
    Offer,
    RandomDrops,
    RegimeSwitch,
    VhostPublished,
    random_events,
)


@dataclass(frozen=True, kw_only=True)
class Lossy:
    """A knee behind a buffer, which differs by ``trial_spread`` from trial to trial. Below it each frame is
    lost with the probability ``floor`` + ``at_knee`` x ((load - onset) / (capacity - onset))^2 above the
    onset, times a factor that differs by ``loss_spread`` from trial to trial."""

    capacity_fps: float = 10e6
    trial_spread: float = 0.0
    buffer_frames: int = 0
    floor: float = 0.0
    onset_fps: float = 8e6
    at_knee: float = 0.0
    loss_spread: float = 0.0

    def received_frames(self, offer: Offer) -> int:
        """Frames of the offer that come out."""
        chance = offer.chance_of_trial()
        capacity_fps = self.capacity_fps * (1.0 + self.trial_spread * chance.standard_normal())
        factor = max(0.0, 1.0 + self.loss_spread * chance.standard_normal())
        admitted_fps = min(offer.load_fps, capacity_fps)
        above = max(0.0, (admitted_fps - self.onset_fps) / (self.capacity_fps - self.onset_fps))
        ratio = min(1.0, (self.floor + self.at_knee * above * above) * factor)
        lost = random_events(offer, admitted_fps * ratio, chance)
        overflow = max(0.0, (offer.load_fps - capacity_fps) * offer.duration_s - self.buffer_frames)
        return offer.frames - min(offer.frames, lost + math.floor(overflow))


def _drops(chance: random.Random) -> Device:
    return RandomDrops(capacity_fps=around(chance, 10e6), drop_every_s=between(chance, 1e-3, 1e3))


def _floor(chance: random.Random) -> Device:
    return Lossy(
        capacity_fps=around(chance, 10e6),
        trial_spread=between(chance, 1e-4, 1e-2),
        floor=between(chance, 1e-10, 1e-4),
    )


def _knee(chance: random.Random) -> Device:
    return Knee(capacity_fps=around(chance, 10e6), trial_spread=between(chance, 1e-4, 3e-2))


def _gradual(chance: random.Random) -> Device:
    capacity_fps = around(chance, 10e6)
    return Lossy(
        capacity_fps=capacity_fps,
        onset_fps=capacity_fps * chance.uniform(0.3, 0.95),
        at_knee=between(chance, 1e-5, 0.1),
        loss_spread=chance.uniform(0.0, 0.5),
    )


def _buffer(chance: random.Random) -> Device:
    return Lossy(
        capacity_fps=around(chance, 10e6),
        trial_spread=between(chance, 1e-4, 1e-2),
        buffer_frames=round(between(chance, 1e4, 5e6)),
    )


def _vhost(chance: random.Random) -> Device:
    return VhostPublished(
        trial_spread=between(chance, 1e-4, 1e-2),
        burst_every_s=between(chance, 2.0, 60.0),
        burst_fold_fps=between(chance, 0.01e6, 0.3e6),
        overload_low=chance.uniform(0.7, 1.0),
    )


def _ip4(chance: random.Random) -> Device:
    return Ip4Published(
        trial_spread=between(chance, 1e-4, 1e-2),
        burst_every_s=between(chance, 2.0, 60.0),
        burst_fold=between(chance, 1e-4, 1e-2),
        overload_cost=between(chance, 1e-4, 0.1),
    )


def _bursts(chance: random.Random) -> Device:
    return RandomBursts(
        capacity_fps=around(chance, 10e6),
        burst_every_s=between(chance, 1.0, 1e3),
        burst_frames=round(between(chance, 1.0, 1e5)),
    )


def _outages(chance: random.Random) -> Device:
    return Outages(
        capacity_fps=around(chance, 10e6),
        outage_every_s=between(chance, 2.0, 1e3),
        outage_s=between(chance, 1e-3, 0.5),
    )


def _pauses(chance: random.Random) -> Device:
    return Pauses(
        capacity_fps=around(chance, 10e6),
        every_s=between(chance, 0.5, 100.0),
        pause_s=between(chance, 1e-4, 1e-2),
        buffer_frames=round(between(chance, 1e2, 2e4)),
    )


def _cold(chance: random.Random) -> Device:
    return ColdStart(
        from_fps=10e6 * chance.uniform(0.3, 1.0),
        trial_spread=between(chance, 1e-3, 0.1),
        frames=round(between(chance, 1.0, 1e5)),
    )


def _two_knees(chance: random.Random) -> Device:
    capacity_fps = around(chance, 10e6)
    return TwoKnees(
        capacity_fps=capacity_fps,
        low_fps=capacity_fps * chance.uniform(0.2, 0.99),
        low_loss=between(chance, 1e-4, 2e-2),
        trial_spread=between(chance, 1e-4, 1e-2),
    )


def _rehash(chance: random.Random) -> Device:
    return Rehash(
        capacity_fps=around(chance, 10e6),
        flows=round(between(chance, 64, 65536)),
        cores=chance.randint(2, 16),
    )


def _collections(chance: random.Random) -> Device:
    return Collections(
        capacity_fps=around(chance, 10e6),
        every_frames=round(between(chance, 5e6, 2e9)),
        pause_s=between(chance, 1e-4, 1e-2),
        buffer_frames=round(between(chance, 1e2, 2e4)),
    )


def _flow_table(chance: random.Random) -> Device:
    return FlowTable(
        capacity_fps=around(chance, 10e6),
        expired_per_s=1e6 * chance.uniform(0.3, 1.0),
        entries=round(between(chance, 1e4, 3e6)),
        overflow=chance.uniform(0.2, 0.99),
    )


def _governor(chance: random.Random) -> Device:
    return Governor(
        capacity_fps=around(chance, 10e6),
        asleep=chance.uniform(0.3, 0.95),
        wake_s=between(chance, 1e-3, 0.3),
        wake_spread=between(chance, 0.01, 0.3),
        buffer_frames=round(between(chance, 1e3, 1e5)),
    )


def _collapse(chance: random.Random) -> Device:
    return Collapse(capacity_fps=around(chance, 10e6), under_overload=chance.uniform(0.2, 1.0))


def _queues(chance: random.Random) -> Device:
    shares = [chance.uniform(0.5, 1.5) for _ in range(4)]
    return UnevenQueues(
        capacity_fps=around(chance, 10e6),
        shares=(shares[0] / sum(shares), *(share / sum(shares) for share in shares[1:])),
        trial_spread=between(chance, 1e-4, 1e-2),
    )


def _inversion(chance: random.Random) -> Device:
    low = chance.uniform(0.3, 0.95)
    return Inversion(
        capacity_fps=around(chance, 10e6),
        run_spread=0.0,
        trial_spread=between(chance, 1e-4, 1e-2),
        band_low=low,
        band_high=low * (1.0 + between(chance, 0.003, 0.1)),
        band_loss=between(chance, 1e-5, 0.1),
    )


def _bucket(chance: random.Random) -> Device:
    return TokenBucket(
        capacity_fps=around(chance, 10e6),
        base_fps=10e6 * chance.uniform(0.3, 0.95),
        depth_frames=between(chance, 1e5, 5e7),
    )


def _recovering(chance: random.Random) -> Device:
    return Recovering(
        capacity_fps=around(chance, 10e6),
        weakness=between(chance, 0.01, 0.4),
        recovery_s=between(chance, 0.1, 20.0),
    )


def _hysteresis(chance: random.Random) -> Device:
    return Hysteresis(
        capacity_fps=around(chance, 10e6),
        slow=chance.uniform(0.6, 0.99),
        rest_s=between(chance, 0.05, 5.0),
    )


STEADY: Mapping[str, Device | Family] = {
    "any-knee": _knee,
    "any-drops": _drops,
    "any-floor": _floor,
    "any-gradual": _gradual,
    "any-buffer": _buffer,
    "any-vhost": _vhost,
    "any-ip4": _ip4,
    "any-bursts": _bursts,
    "any-outages": _outages,
    "any-pauses": _pauses,
    "any-cold-start": _cold,
    "any-two-knees": _two_knees,
    "any-rehash": _rehash,
    "any-collections": _collections,
    "any-flow-table": _flow_table,
    "any-governor": _governor,
    "any-collapse": _collapse,
    "any-queues": _queues,
    "any-inversion": _inversion,
    "any-bucket": _bucket,
    "any-recovering": _recovering,
    "any-hysteresis": _hysteresis,
}
"""Families that answer alike at any time."""


def _drift(chance: random.Random, excess: float) -> Device:
    return Drifting(
        capacity_fps=around(chance, 10e6),
        excess=excess,
        time_constant_s=between(chance, 3.0, 300.0),
        trial_spread=between(chance, 1e-4, 1e-2),
    )


def _leak(chance: random.Random) -> Device:
    return Leak(capacity_fps=around(chance, 10e6), life_frames=between(chance, 3e8, 1e11))


def _adaptive(chance: random.Random) -> Device:
    return Adaptive(
        capacity_fps=around(chance, 10e6),
        begins=chance.uniform(0.5, 0.97),
        steps=chance.randint(1, 20),
        step_s=between(chance, 0.05, 5.0),
    )


def _regime(chance: random.Random) -> Device:
    return RegimeSwitch(
        capacity_fps=around(chance, 10e6),
        run_spread=0.0,
        deficit=between(chance, 0.01, 0.2),
        high_s=between(chance, 5.0, 300.0),
        low_s=between(chance, 2.0, 60.0),
    )


def _timer(chance: random.Random) -> Device:
    return Timer(
        capacity_fps=around(chance, 10e6),
        every_s=between(chance, 20.0, 200.0),
        job_s=between(chance, 1.0, 15.0),
        taken=between(chance, 0.01, 0.2),
    )


CHANGING: Mapping[str, Device | Family] = {
    "any-warming": lambda chance: _drift(chance, -between(chance, 0.02, 0.4)),
    "any-throttling": lambda chance: _drift(chance, between(chance, 0.02, 0.3)),
    "any-leak": _leak,
    "any-adaptive": _adaptive,
    "any-regime": _regime,
    "any-timer": _timer,
}
"""Families that change."""
