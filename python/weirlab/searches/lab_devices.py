"""Devices of the laboratory: the models of `weirlab.testbed.devices`, and some that make a search stumble."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weirlab.testbed import devices


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """Under overload it forwards only the share ``under_overload`` of its capacity."""

    capacity_fps: float = 10e6
    under_overload: float = 0.6

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        share = 1.0 if offer.load_fps <= self.capacity_fps else self.under_overload
        return min(offer.frames, round(self.capacity_fps * share * offer.duration_s))


@dataclass(frozen=True, kw_only=True)
class UnevenQueues:
    """Frames are spread unevenly over four queues of equal rate; each loses what is above its rate."""

    capacity_fps: float = 10e6
    shares: tuple[float, ...] = (0.28, 0.26, 0.24, 0.22)
    trial_spread: float = 0.0005

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        each_fps = self.capacity_fps / 4.0
        each_fps *= 1.0 + self.trial_spread * offer.chance_of_trial().standard_normal()
        lost_fps = sum(max(0.0, share * offer.load_fps - each_fps) for share in self.shares)
        return offer.frames - min(offer.frames, math.floor(lost_fps * offer.duration_s))


@dataclass(frozen=True, kw_only=True)
class Pauses:
    """It stands still for ``pause_s`` every ``every_s``, behind a buffer of ``buffer_frames``."""

    capacity_fps: float = 10e6
    every_s: float = 20.0
    pause_s: float = 1e-3
    buffer_frames: int = 6000

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        phase_s = self.every_s * float(offer.chance_of_search().uniform())
        first_s = math.ceil((offer.elapsed_s - phase_s) / self.every_s) * self.every_s + phase_s
        end_s = offer.elapsed_s + offer.duration_s
        pauses = max(0, math.ceil((end_s - first_s) / self.every_s))
        lost = pauses * max(0, round(offer.load_fps * self.pause_s) - self.buffer_frames)
        forwarded = min(offer.frames, round(self.capacity_fps * offer.duration_s))
        return max(0, forwarded - lost)


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """Each trial above ``from_fps``, which differs between trials, loses ``frames`` frames within its first
    10 ms."""

    capacity_fps: float = 10e6
    from_fps: float = 7e6
    trial_spread: float = 0.01
    frames: int = 50

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        chance = offer.chance_of_trial()
        from_fps = self.from_fps * (1.0 + self.trial_spread * chance.standard_normal())
        lost = self.frames if offer.load_fps > from_fps and offer.duration_s > 0.01 * chance.random() else 0
        forwarded = min(offer.frames, round(self.capacity_fps * offer.duration_s))
        return max(0, forwarded - lost)


@dataclass(frozen=True, kw_only=True)
class RandomBursts:
    """A knee that besides loses ``burst_frames`` at random times, ``burst_every_s`` apart on average, at any
    load."""

    capacity_fps: float = 10e6
    burst_every_s: float = 20.0
    burst_frames: int = 200

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        bursts = devices.random_events(offer, 1.0 / self.burst_every_s, offer.chance_of_trial())
        forwarded = min(offer.frames, round(self.capacity_fps * offer.duration_s))
        return max(0, forwarded - bursts * self.burst_frames)


@dataclass(frozen=True, kw_only=True)
class Outages:
    """A knee that forwards nothing for ``outage_s`` at random times, ``outage_every_s`` apart on average, at
    any load. What is offered in an outage counts as lost when it begins."""

    capacity_fps: float = 10e6
    outage_every_s: float = 10.0
    outage_s: float = 0.02

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        outages = devices.random_events(offer, 1.0 / self.outage_every_s, offer.chance_of_trial())
        forwarded = min(offer.frames, round(self.capacity_fps * offer.duration_s))
        return max(0, forwarded - round(outages * offer.load_fps * self.outage_s))


@dataclass(frozen=True, kw_only=True)
class TwoKnees:
    """Above the lower knee it loses ``low_loss`` of the load, above the capacity all that is above; both
    knees move together from trial to trial."""

    capacity_fps: float = 10e6
    low_fps: float = 7e6
    low_loss: float = 0.001
    trial_spread: float = 0.003

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        scale = 1.0 + self.trial_spread * offer.chance_of_trial().standard_normal()
        lost = 0.0
        if offer.load_fps > self.low_fps * scale:
            lost = self.low_loss * offer.load_fps * offer.duration_s
        lost += max(0.0, offer.load_fps - self.capacity_fps * scale) * offer.duration_s
        return offer.frames - min(offer.frames, math.floor(lost))


@dataclass(frozen=True, kw_only=True)
class Rehash:
    """Frames of ``flows`` flows are spread over the cores by a hash that differs from trial to trial; each
    core has an equal part of the capacity, and loses what is above it."""

    capacity_fps: float = 10e6
    flows: int = 4096
    cores: int = 4

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        flows = offer.chance_of_trial().multinomial(self.flows, [1.0 / self.cores] * self.cores)
        each_fps = self.capacity_fps / self.cores
        lost_fps = sum(max(0.0, int(part) / self.flows * offer.load_fps - each_fps) for part in flows)
        return offer.frames - min(offer.frames, math.floor(lost_fps * offer.duration_s))


@dataclass(frozen=True, kw_only=True)
class Collections:
    """It stands still for ``pause_s`` whenever it has handled ``every_frames`` frames, to collect garbage,
    behind a buffer of ``buffer_frames``. Where in this cycle a trial begins is random."""

    capacity_fps: float = 10e6
    every_frames: int = 150_000_000
    pause_s: float = 1e-3
    buffer_frames: int = 8000

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        forwarded = min(offer.frames, round(self.capacity_fps * offer.duration_s))
        pauses = math.floor(forwarded / self.every_frames + float(offer.chance_of_trial().uniform()))
        return max(0, forwarded - pauses * max(0, round(offer.load_fps * self.pause_s) - self.buffer_frames))


@dataclass(frozen=True, kw_only=True)
class FlowTable:
    """One frame in ``frames_per_flow`` begins a flow, and ``expired_per_s`` flows leave the table again. When
    it is full, ``overflow`` of the capacity is left. It is empty when a trial begins."""

    capacity_fps: float = 10e6
    frames_per_flow: int = 10
    expired_per_s: float = 0.8e6
    entries: int = 300_000
    overflow: float = 0.7

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        growth_per_s = offer.load_fps / self.frames_per_flow - self.expired_per_s
        full_s = self.entries / growth_per_s if growth_per_s > 0.0 else math.inf
        lost = max(0.0, offer.load_fps - self.capacity_fps) * min(full_s, offer.duration_s)
        left_fps = self.overflow * self.capacity_fps
        lost += max(0.0, offer.load_fps - left_fps) * max(0.0, offer.duration_s - full_s)
        return offer.frames - min(offer.frames, math.floor(lost))


@dataclass(frozen=True, kw_only=True)
class Governor:
    """A processor that saves power between trials: for the first ``wake_s`` of each it has the share
    ``asleep`` of its capacity, behind a buffer of ``buffer_frames``."""

    capacity_fps: float = 10e6
    asleep: float = 0.6
    wake_s: float = 0.03
    wake_spread: float = 0.1
    buffer_frames: int = 30_000

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        wake_s = self.wake_s * (1.0 + self.wake_spread * offer.chance_of_trial().standard_normal())
        asleep_fps = offer.load_fps - self.asleep * self.capacity_fps
        lost = max(0.0, asleep_fps * min(max(wake_s, 0.0), offer.duration_s) - self.buffer_frames)
        lost += max(0.0, offer.load_fps - self.capacity_fps) * max(0.0, offer.duration_s - wake_s)
        return offer.frames - min(offer.frames, math.floor(lost))


@dataclass(frozen=True, kw_only=True)
class Timer:
    """A job that a timer starts every ``every_s`` takes the share ``taken`` of the capacity for ``job_s``.
    The times go on through the trials of a search."""

    capacity_fps: float = 10e6
    every_s: float = 45.0
    job_s: float = 8.0
    taken: float = 0.03

    def received_frames(self, offer: devices.Offer) -> int:
        """Frames of the offer that come out."""
        begin_s = offer.elapsed_s + self.every_s * float(offer.chance_of_search().uniform())
        busy_s = self._busy_s(begin_s + offer.duration_s) - self._busy_s(begin_s)
        lost = max(0.0, offer.load_fps - self.capacity_fps) * (offer.duration_s - busy_s)
        lost += max(0.0, offer.load_fps - self.capacity_fps * (1.0 - self.taken)) * busy_s
        return offer.frames - min(offer.frames, math.floor(lost))

    def _busy_s(self, until_s: float) -> float:
        """How long the job has run up to a time."""
        jobs, left_s = divmod(until_s, self.every_s)
        return float(jobs * self.job_s + min(left_s, self.job_s))


Draw = Callable[[random.Random], float]
"""A value that differs from search to search."""
Family = Callable[[random.Random], devices.Device]
"""Devices that do."""


def family(device: Callable[..., devices.Device], **fields: Draw | float | tuple[float, ...]) -> Family:
    """Devices of one class. Each draws its fields in this order; a field that is a number is that number."""

    def draw(chance: random.Random) -> devices.Device:
        return device(**{name: field(chance) if callable(field) else field for name, field in fields.items()})

    return draw


def around(value: float, spread: float = 0.01) -> Draw:
    """A value that differs by ``spread``."""
    return lambda chance: value * chance.gauss(1.0, spread)


def between(low: float, high: float) -> Draw:
    """Uniform in the logarithm."""
    return lambda chance: low * math.exp(chance.random() * math.log(high / low))


CAPACITY = around(10e6)


def with_capacity(device: Callable[..., devices.Device], **fields: Draw | float) -> Family:
    """The same of devices whose capacity differs from search to search."""
    return family(device, capacity_fps=CAPACITY, **fields)


def _queues(chance: random.Random) -> devices.Device:
    shares = [around(share)(chance) for share in (0.28, 0.26, 0.24, 0.22)]
    return UnevenQueues(capacity_fps=CAPACITY(chance), shares=tuple(s / sum(shares) for s in shares))


def _warming(trial_spread: float) -> Family:
    excess, time_constant_s = between(0.03, 0.4), between(3.0, 150.0)
    return with_capacity(
        devices.Drifting,
        excess=lambda chance: -excess(chance),
        time_constant_s=time_constant_s,
        trial_spread=trial_spread,
    )


DEVICES: Mapping[str, devices.Device | Family] = {
    "knee": with_capacity(devices.Knee, trial_spread=0.0005),
    "ip4": devices.Ip4Published(),
    "vhost": devices.VhostPublished(),
    "regime": with_capacity(devices.RegimeSwitch, deficit=around(0.05, 0.1), run_spread=0.0),
    "drops": with_capacity(devices.RandomDrops),
    "gradual": with_capacity(devices.Gradual, onset_fps=around(8e6)),
    "buffer": with_capacity(devices.DeepBuffer),
    "warm-up": _warming(0.0),
    "warm-noisy": _warming(0.003),
    "throttling": with_capacity(
        devices.Drifting, excess=between(0.03, 0.2), time_constant_s=between(10.0, 150.0)
    ),
    "inversion": with_capacity(devices.Inversion, run_spread=0.0),
    "noisy": with_capacity(devices.Knee, trial_spread=0.01),
    "collapse": with_capacity(Collapse),
    "queues": _queues,
    "pauses": with_capacity(Pauses),
    "cold-start": family(ColdStart, from_fps=around(7e6)),
    # Below: devices that no constant of `weir` was chosen on.
    "stalls": with_capacity(Pauses, every_s=40.0, pause_s=0.4e-3, buffer_frames=1000),
    "bursts": with_capacity(RandomBursts),
    "outages": with_capacity(Outages),
    "two-knees": with_capacity(TwoKnees, low_fps=around(7e6)),
    "uneasy": with_capacity(devices.Knee, trial_spread=0.004),
    # Below: devices that were written before the present guard, and only judge it.
    "rehash": with_capacity(Rehash),
    "collections": with_capacity(Collections),
    "flow-table": with_capacity(FlowTable, expired_per_s=around(0.8e6)),
    "governor": with_capacity(Governor),
    "flaps": with_capacity(Outages, outage_every_s=200.0, outage_s=0.2),
    "timer": with_capacity(Timer),
}
