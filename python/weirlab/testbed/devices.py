"""Simulated devices under test: what arrives of what was offered, without simulating a single frame.

A device is a function of the offer and of chance. Chance derives from the seed, the index of the trial and
the time that the device has been under test, so that a resumed search sees what an undisturbed one would have
seen. What it carries over from earlier trials (a bucket of credit, a table, heat) is a function of what it
was offered before, which the offer says (`Offer.past`): so it holds no state of its own, and can be asked
twice. Rates are frames/s summed over all directions. A device of your own needs one method:

    class Mine:  # 7 Mframe/s, whatever happens
        def received_frames(self, offer):
            return min(offer.frames, round(7e6 * offer.duration_s))

One law makes early stop possible: an offer that differs from another in its duration alone is the beginning
of the same trial, so that the frames lost up to a time never become fewer as the offer gets longer.

The random streams are numpy's Philox; their draws are the same on any machine with the same version of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from weirlab.errors import InputError


class Spell(NamedTuple):
    """A time in which a device was offered a load; between two of them it was offered nothing."""

    begin_s: float
    """Time under test, as in `Offer.elapsed_s`."""
    end_s: float
    load_fps: float


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a tester sends to a device in one trial, or in the beginning of it."""

    frames: int
    duration_s: float
    frame_size_bytes: int
    index: int
    """Place of the trial in its search."""
    elapsed_s: float
    """Time that the device has been under test when the trial begins."""
    seed: int
    steady_fps: float | None = None
    """Frames/s that the tester keeps up in all of the trial. None: the frames over the duration, which in
    the first moments of a trial is not the same, as frames are whole."""
    past: Sequence[Spell] = ()
    """What the device was offered before, in the order of time."""

    @property
    def load_fps(self) -> float:
        """Frames/s offered."""
        return self.frames / self.duration_s if self.steady_fps is None else self.steady_fps

    def chance_of_search(self) -> np.random.Generator:
        """Fresh random stream of the search: the same draws in each of its trials."""
        return _stream(self.seed, 0)

    def chance_of_trial(self) -> np.random.Generator:
        """Fresh random stream of this trial."""
        return _stream(self.seed, 1, self.index, round(self.elapsed_s * 1e9))


class Device(Protocol):
    """A device under test."""

    def received_frames(self, offer: Offer) -> int:
        """How many frames of ``offer`` come out, in [0, offer.frames]. The same offer gives the same
        answer."""
        ...


@dataclass(frozen=True, kw_only=True)
class Knee:
    """A consistent device: forwards up to its capacity, and loses all that is above.

    received = min(offered, capacity x duration). The capacity may differ between searches and between trials.
    """

    capacity_fps: float
    run_spread: float = 0.0
    """Relative standard deviation of the capacity between searches."""
    trial_spread: float = 0.0
    """Relative standard deviation of the capacity between the trials of a search."""

    def __post_init__(self) -> None:
        _require(self.capacity_fps > 0.0, "the capacity must be above 0", self.capacity_fps)

    def received_frames(self, offer: Offer) -> int:
        capacity_fps = self.capacity_fps * (
            1.0 + self.run_spread * offer.chance_of_search().standard_normal()
        )
        capacity_fps *= 1.0 + self.trial_spread * offer.chance_of_trial().standard_normal()
        return _forwarded(offer, capacity_fps)


@dataclass(frozen=True, kw_only=True)
class Ip4Published:
    """The consistent device of the published comparison of MDR with binary search.

    A knee that differs between searches and trials. Above it the share ``1 - overload_cost`` of it is
    forwarded. Below, small losses come at random times, with the hazard exp((load - knee of the search) /
    (burst_fold x capacity)) / burst_every_s; each loses ``burst_frames``.

    Source: CSIT MDR, section 2.8.4 (suite Ethip4-Ip4Base). The parameters were fitted to the published means
    and deviations of search times: they are no property of the device that CSIT measured."""

    capacity_fps: float = 10.6e6
    run_spread: float = 0.002
    trial_spread: float = 0.002
    burst_every_s: float = 12.5
    burst_fold: float = 0.00043
    burst_frames: int = 32
    overload_cost: float = 0.001

    def received_frames(self, offer: Offer) -> int:
        of_search, of_trial = offer.chance_of_search(), offer.chance_of_trial()
        knee_fps = self.capacity_fps * (1.0 + self.run_spread * of_search.standard_normal())
        now_fps = knee_fps * (1.0 + self.trial_spread * of_trial.standard_normal())
        if offer.load_fps > now_fps:
            return _forwarded(offer, now_fps * (1.0 - self.overload_cost))
        folds = (offer.load_fps - knee_fps) / (self.burst_fold * self.capacity_fps)
        return _after_bursts(offer, folds, self.burst_every_s, self.burst_frames, of_trial)


@dataclass(frozen=True, kw_only=True)
class VhostPublished:
    """The inconsistent device of the published comparison of MDR with binary search.

    Above the PDR knee K it forwards a share of K that differs from trial to trial, uniform in [overload_low,
    overload_high]. Below, small losses come with the hazard exp((load - N) / burst_fold_fps) / burst_every_s,
    where the NDR knee N = ndr_knee_fps + shared_spread x (K - pdr_knee_fps) + its own deviation. K and N are
    drawn for each search.

    Source: CSIT MDR, sections 2.8.4 and 2.8.5 (suite L2Bdbasemaclrn-Vhostvr1024-1Vm). The parameters were
    fitted like those of `Ip4Published`."""

    pdr_knee_fps: float = 3.7575e6
    pdr_knee_spread_fps: float = 0.066e6
    trial_spread: float = 0.0005
    ndr_knee_fps: float = 3.66e6
    ndr_knee_spread_fps: float = 0.109e6
    shared_spread: float = 0.65
    burst_every_s: float = 1 / 0.0693
    burst_fold_fps: float = 0.0616e6
    burst_frames: int = 32
    overload_low: float = 0.86
    overload_high: float = 1.005

    def received_frames(self, offer: Offer) -> int:
        of_search, of_trial = offer.chance_of_search(), offer.chance_of_trial()
        deviation_fps = self.pdr_knee_spread_fps * of_search.standard_normal()
        knee_fps = self.pdr_knee_fps + deviation_fps
        ndr_fps = self.ndr_knee_fps + self.shared_spread * deviation_fps
        ndr_fps += self.ndr_knee_spread_fps * of_search.standard_normal()
        now_fps = knee_fps * (1.0 + self.trial_spread * of_trial.standard_normal())
        if offer.load_fps > now_fps:
            return _forwarded(offer, knee_fps * of_trial.uniform(self.overload_low, self.overload_high))
        folds = (offer.load_fps - ndr_fps) / self.burst_fold_fps
        return _after_bursts(offer, folds, self.burst_every_s, self.burst_frames, of_trial)


@dataclass(frozen=True, kw_only=True)
class RandomDrops:
    """A knee that besides loses single frames at random times, at ``1 / drop_every_s`` when offered its
    capacity and in proportion to the load below: each frame is lost with probability 1 / (drop_every_s x
    capacity)."""

    capacity_fps: float = 10e6
    drop_every_s: float = 2.0

    def received_frames(self, offer: Offer) -> int:
        every_s = self.drop_every_s * self.capacity_fps / min(offer.load_fps, self.capacity_fps)
        dropped = random_events(offer, 1.0 / every_s, offer.chance_of_trial())
        return max(0, _forwarded(offer, self.capacity_fps) - dropped)


@dataclass(frozen=True, kw_only=True)
class Gradual:
    """A device whose losses grow slowly: none up to the onset, then each frame is lost with the probability
    loss_at_capacity x ((load - onset) / (capacity - onset))^2; above the capacity it forwards what it
    forwards there."""

    capacity_fps: float = 10e6
    onset_fps: float = 8e6
    loss_at_capacity: float = 0.01

    def __post_init__(self) -> None:
        _require(self.onset_fps < self.capacity_fps, "the onset must lie below the capacity", self.onset_fps)

    def received_frames(self, offer: Offer) -> int:
        admitted_fps = min(offer.load_fps, self.capacity_fps)
        above = max(0.0, (admitted_fps - self.onset_fps) / (self.capacity_fps - self.onset_fps))
        lost_fps = admitted_fps * self.loss_at_capacity * above * above
        lost = random_events(offer, lost_fps, offer.chance_of_trial())
        return max(0, _forwarded(offer, self.capacity_fps) - lost)


@dataclass(frozen=True, kw_only=True)
class DeepBuffer:
    """A knee behind a buffer that hides overload from short trials: received = min(offered, capacity x
    duration + buffer). It is empty when a trial begins."""

    capacity_fps: float = 10e6
    buffer_frames: int = 600_000

    def received_frames(self, offer: Offer) -> int:
        return min(offer.frames, _forwarded(offer, self.capacity_fps) + self.buffer_frames)


@dataclass(frozen=True, kw_only=True)
class Drifting:
    """A knee whose capacity is (1 + excess x exp(-t / time_constant_s)) times the final one at time t: it
    warms up where the excess lies below 0, and is throttled where it lies above. It also differs from trial
    to trial by ``trial_spread``. Lost is the integral of what is offered above the capacity of the moment.
    """

    capacity_fps: float = 10e6
    excess: float = -0.15
    time_constant_s: float = 8.0
    trial_spread: float = 0.0

    def received_frames(self, offer: Offer) -> int:
        capacity_fps = self.capacity_fps * (
            1.0 + self.trial_spread * offer.chance_of_trial().standard_normal()
        )
        return offer.frames - min(offer.frames, math.ceil(self._lost(offer, capacity_fps) - 0.5))

    def _lost(self, offer: Offer, capacity_fps: float) -> float:
        tau_s = self.time_constant_s
        begin_s, end_s = offer.elapsed_s, offer.elapsed_s + offer.duration_s
        above = offer.load_fps / capacity_fps - 1.0
        if above * self.excess > 0.0:
            # The capacity passes the load at this time.
            passing_s = tau_s * math.log(self.excess / above)
            begin_s, end_s = (
                (begin_s, min(end_s, passing_s)) if self.excess < 0.0 else (max(begin_s, passing_s), end_s)
            )
        elif above < 0.0 or (above == 0.0 and self.excess >= 0.0):
            return 0.0
        if end_s <= begin_s:
            return 0.0
        moved_s = tau_s * self.excess * (math.exp(-begin_s / tau_s) - math.exp(-end_s / tau_s))
        return (offer.load_fps - capacity_fps) * (end_s - begin_s) - capacity_fps * moved_s


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """A device that begins cold: its capacity at time t is capacity x (1 - deficit x exp(-t /
    time_constant_s))."""

    capacity_fps: float = 10e6
    deficit: float = 0.15
    time_constant_s: float = 8.0

    def received_frames(self, offer: Offer) -> int:
        fields = {"capacity_fps": self.capacity_fps, "time_constant_s": self.time_constant_s}
        return Drifting(excess=-self.deficit, **fields).received_frames(offer)


@dataclass(frozen=True, kw_only=True)
class Inversion:
    """A knee that also loses frames in a band of loads far below it: loss inversion. At loads in [band_low,
    band_high) x capacity the share ``band_loss`` is lost."""

    capacity_fps: float = 10e6
    run_spread: float = 0.002
    trial_spread: float = 0.0005
    band_low: float = 0.80
    band_high: float = 0.83
    band_loss: float = 0.01

    def __post_init__(self) -> None:
        _require(self.band_low < self.band_high, "the band must end above its beginning", self.band_high)

    def received_frames(self, offer: Offer) -> int:
        capacity_fps = self.capacity_fps * (
            1.0 + self.run_spread * offer.chance_of_search().standard_normal()
        )
        if self.band_low <= offer.load_fps / capacity_fps < self.band_high:
            return offer.frames - math.floor(self.band_loss * offer.load_fps * offer.duration_s)
        capacity_fps *= 1.0 + self.trial_spread * offer.chance_of_trial().standard_normal()
        return _forwarded(offer, capacity_fps)


@dataclass(frozen=True, kw_only=True)
class RegimeSwitch:
    """A knee whose capacity switches between two values at random times that go on through the trials: the
    full capacity for ``high_s`` on average, then (1 - deficit) of it for ``low_s``."""

    capacity_fps: float = 10e6
    run_spread: float = 0.002
    deficit: float = 0.05
    high_s: float = 60.0
    low_s: float = 15.0

    def received_frames(self, offer: Offer) -> int:
        chance = offer.chance_of_search()
        capacity_fps = self.capacity_fps * (1.0 + self.run_spread * chance.standard_normal())
        low = bool(chance.uniform() < self.low_s / (self.high_s + self.low_s))
        lost, began_s = 0.0, 0.0
        begin_s, end_s = offer.elapsed_s, offer.elapsed_s + offer.duration_s
        while began_s < end_s:
            ended_s = began_s + chance.exponential(self.low_s if low else self.high_s)
            excess_fps = max(0.0, offer.load_fps - capacity_fps * (1.0 - self.deficit * low))
            lost += excess_fps * max(0.0, min(ended_s, end_s) - max(began_s, begin_s))
            began_s, low = ended_s, not low
        return offer.frames - min(offer.frames, round(lost))


def _forwarded(offer: Offer, capacity_fps: float) -> int:
    return min(offer.frames, max(0, round(capacity_fps * offer.duration_s)))


def _after_bursts(
    offer: Offer, folds: float, every_s: float, frames: int, chance: np.random.Generator
) -> int:
    """What is left after bursts of ``frames`` lost frames with the hazard exp(folds) / every_s."""
    bursts = random_events(offer, math.exp(min(folds, 30.0)) / every_s, chance)
    return max(0, offer.frames - bursts * frames)


REGULAR_ABOVE_PER_S = 1000.0
"""Random events more frequent than this come at regular times."""


def random_events(offer: Offer, per_s: float, chance: np.random.Generator) -> int:
    """How many events of a Poisson process lie within the offer. Their times are drawn one after the other,
    so that a shorter offer sees the first of them."""
    if per_s > REGULAR_ABOVE_PER_S:
        return math.floor(per_s * offer.duration_s)
    if per_s <= 0.0:
        return 0
    # Counted in units of the mean time between two events, which may be longer than any number.
    end = per_s * offer.duration_s
    events, passed = 0, 0.0
    at_once = 16
    while True:
        times = passed + np.cumsum(chance.standard_exponential(at_once))
        within = int(np.searchsorted(times, end, side="right"))
        events += within
        if within < at_once:
            return events
        passed = float(times[-1])
        at_once = min(2 * at_once, 4096)


def _stream(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


def _require(holds: bool, what: str, value: float) -> None:
    if not holds:
        raise InputError(f"{what} (got {value:g})")
