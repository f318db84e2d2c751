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
    CAPACITY,
    ColdStart,
    Collapse,
    Collections,
    Draw,
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
    between,
    family,
    with_capacity,
)
from weirlab.searches.lab_state import Adaptive, Hysteresis, Leak, Recovering, TokenBucket
from weirlab.testbed import devices


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

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        chance = offer.chance_of_trial()
        capacity_fps = self.capacity_fps * (1.0 + self.trial_spread * chance.standard_normal())
        factor = max(0.0, 1.0 + self.loss_spread * chance.standard_normal())
        admitted_fps = min(offer.load_fps, capacity_fps)
        above = max(0.0, (admitted_fps - self.onset_fps) / (self.capacity_fps - self.onset_fps))
        ratio = min(1.0, (self.floor + self.at_knee * above * above) * factor)
        lost = devices.random_events(offer, admitted_fps * ratio, chance)
        overflow = max(0.0, (offer.load_fps - capacity_fps) * offer.duration_s - self.buffer_frames)
        return offer.frames - min(offer.frames, lost + math.floor(overflow))


_SPREAD = between(1e-4, 1e-2)
"""Of the capacity, from trial to trial."""


def _uniform(low: float, high: float, unit: float = 1.0) -> Draw:
    return lambda chance: unit * chance.uniform(low, high)


def _whole(low: float, high: float) -> Draw:
    """The same as `between`, rounded."""
    number = between(low, high)
    return lambda chance: round(number(chance))


def _gradual(chance: random.Random) -> devices.Device:
    capacity_fps = CAPACITY(chance)
    return Lossy(
        capacity_fps=capacity_fps,
        onset_fps=capacity_fps * chance.uniform(0.3, 0.95),
        at_knee=between(1e-5, 0.1)(chance),
        loss_spread=chance.uniform(0.0, 0.5),
    )


def _two_knees(chance: random.Random) -> devices.Device:
    capacity_fps = CAPACITY(chance)
    return TwoKnees(
        capacity_fps=capacity_fps,
        low_fps=capacity_fps * chance.uniform(0.2, 0.99),
        low_loss=between(1e-4, 2e-2)(chance),
        trial_spread=_SPREAD(chance),
    )


def _queues(chance: random.Random) -> devices.Device:
    shares = [chance.uniform(0.5, 1.5) for _ in range(4)]
    return UnevenQueues(
        capacity_fps=CAPACITY(chance),
        shares=(shares[0] / sum(shares), *(share / sum(shares) for share in shares[1:])),
        trial_spread=_SPREAD(chance),
    )


def _inversion(chance: random.Random) -> devices.Device:
    low = chance.uniform(0.3, 0.95)
    return devices.Inversion(
        capacity_fps=CAPACITY(chance),
        run_spread=0.0,
        trial_spread=_SPREAD(chance),
        band_low=low,
        band_high=low * (1.0 + between(0.003, 0.1)(chance)),
        band_loss=between(1e-5, 0.1)(chance),
    )


STEADY: Mapping[str, devices.Device | Family] = {
    "any-knee": with_capacity(devices.Knee, trial_spread=between(1e-4, 3e-2)),
    "any-drops": with_capacity(devices.RandomDrops, drop_every_s=between(1e-3, 1e3)),
    "any-floor": with_capacity(Lossy, trial_spread=_SPREAD, floor=between(1e-10, 1e-4)),
    "any-gradual": _gradual,
    "any-buffer": with_capacity(Lossy, trial_spread=_SPREAD, buffer_frames=_whole(1e4, 5e6)),
    "any-vhost": family(
        devices.VhostPublished,
        trial_spread=_SPREAD,
        burst_every_s=between(2.0, 60.0),
        burst_fold_fps=between(0.01e6, 0.3e6),
        overload_low=_uniform(0.7, 1.0),
    ),
    "any-ip4": family(
        devices.Ip4Published,
        trial_spread=_SPREAD,
        burst_every_s=between(2.0, 60.0),
        burst_fold=between(1e-4, 1e-2),
        overload_cost=between(1e-4, 0.1),
    ),
    "any-bursts": with_capacity(RandomBursts, burst_every_s=between(1.0, 1e3), burst_frames=_whole(1.0, 1e5)),
    "any-outages": with_capacity(Outages, outage_every_s=between(2.0, 1e3), outage_s=between(1e-3, 0.5)),
    "any-pauses": with_capacity(
        Pauses, every_s=between(0.5, 100.0), pause_s=between(1e-4, 1e-2), buffer_frames=_whole(1e2, 2e4)
    ),
    "any-cold-start": family(
        ColdStart, from_fps=_uniform(0.3, 1.0, 10e6), trial_spread=between(1e-3, 0.1), frames=_whole(1.0, 1e5)
    ),
    "any-two-knees": _two_knees,
    "any-rehash": with_capacity(Rehash, flows=_whole(64, 65536), cores=lambda chance: chance.randint(2, 16)),
    "any-collections": with_capacity(
        Collections,
        every_frames=_whole(5e6, 2e9),
        pause_s=between(1e-4, 1e-2),
        buffer_frames=_whole(1e2, 2e4),
    ),
    "any-flow-table": with_capacity(
        FlowTable,
        expired_per_s=_uniform(0.3, 1.0, 1e6),
        entries=_whole(1e4, 3e6),
        overflow=_uniform(0.2, 0.99),
    ),
    "any-governor": with_capacity(
        Governor,
        asleep=_uniform(0.3, 0.95),
        wake_s=between(1e-3, 0.3),
        wake_spread=between(0.01, 0.3),
        buffer_frames=_whole(1e3, 1e5),
    ),
    "any-collapse": with_capacity(Collapse, under_overload=_uniform(0.2, 1.0)),
    "any-queues": _queues,
    "any-inversion": _inversion,
    "any-bucket": with_capacity(
        TokenBucket, base_fps=_uniform(0.3, 0.95, 10e6), depth_frames=between(1e5, 5e7)
    ),
    "any-recovering": with_capacity(Recovering, weakness=between(0.01, 0.4), recovery_s=between(0.1, 20.0)),
    "any-hysteresis": with_capacity(Hysteresis, slow=_uniform(0.6, 0.99), rest_s=between(0.05, 5.0)),
}
"""Families that answer alike at any time."""


def _drift(sign: float, low: float, high: float) -> Family:
    excess = between(low, high)
    return family(
        devices.Drifting,
        excess=lambda chance: sign * excess(chance),
        capacity_fps=CAPACITY,
        time_constant_s=between(3.0, 300.0),
        trial_spread=_SPREAD,
    )


CHANGING: Mapping[str, devices.Device | Family] = {
    "any-warming": _drift(-1.0, 0.02, 0.4),
    "any-throttling": _drift(1.0, 0.02, 0.3),
    "any-leak": with_capacity(Leak, life_frames=between(3e8, 1e11)),
    "any-adaptive": with_capacity(
        Adaptive,
        begins=_uniform(0.5, 0.97),
        steps=lambda chance: chance.randint(1, 20),
        step_s=between(0.05, 5.0),
    ),
    "any-regime": with_capacity(
        devices.RegimeSwitch,
        run_spread=0.0,
        deficit=between(0.01, 0.2),
        high_s=between(5.0, 300.0),
        low_s=between(2.0, 60.0),
    ),
    "any-timer": with_capacity(
        Timer, every_s=between(20.0, 200.0), job_s=between(1.0, 15.0), taken=between(0.01, 0.2)
    ),
}
"""Families that change."""
