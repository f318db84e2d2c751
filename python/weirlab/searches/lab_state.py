"""Devices of the laboratory that carry something over from one trial to the next: credit, weakness, a mode,
heat.

Each is a function of what it was offered before (`Offer.past`), and holds no state of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from weirlab.testbed.devices import Offer, Spell


@dataclass(frozen=True, kw_only=True)
class TokenBucket:
    """It forwards ``capacity_fps`` as long as its bucket holds tokens, one for each frame, and ``base_fps``
    when it is empty. Tokens come at ``base_fps``, ``depth_frames`` of them at most; the bucket is full when
    the search begins, and fills up while nothing is offered."""

    carries_state: ClassVar[bool] = True
    capacity_fps: float = 10e6
    base_fps: float = 8e6
    depth_frames: float = 20e6

    def received_frames(self, offer: Offer) -> int:
        """Frames of the offer that come out."""
        tokens = self.depth_frames
        for idle_s, spell in _spells(offer):
            tokens = min(self.depth_frames, tokens + idle_s * self.base_fps)
            tokens = self._after(tokens, spell.load_fps, spell.end_s - spell.begin_s)
        tokens = min(self.depth_frames, tokens + _idle_s(offer) * self.base_fps)
        spent_fps = min(offer.load_fps, self.capacity_fps) - self.base_fps
        empty_s = min(offer.duration_s, tokens / spent_fps) if spent_fps > 0.0 else offer.duration_s
        lost = max(0.0, offer.load_fps - self.capacity_fps) * empty_s
        lost += max(0.0, offer.load_fps - self.base_fps) * (offer.duration_s - empty_s)
        return offer.frames - min(offer.frames, math.floor(lost))

    def _after(self, tokens: float, load_fps: float, duration_s: float) -> float:
        left = tokens - (min(load_fps, self.capacity_fps) - self.base_fps) * duration_s
        return min(max(left, 0.0), self.depth_frames)


@dataclass(frozen=True, kw_only=True)
class Recovering:
    """Overload leaves it weak: a time t after a trial in which it lost frames has ended, its capacity is (1 -
    weakness x exp(-t / recovery_s)) times the whole."""

    carries_state: ClassVar[bool] = True
    capacity_fps: float = 10e6
    weakness: float = 0.1
    recovery_s: float = 5.0

    def received_frames(self, offer: Offer) -> int:
        """Frames of the offer that come out."""
        overload_s = -math.inf
        for _, spell in _spells(offer):
            if self._lost(spell.load_fps, spell.begin_s - overload_s, spell.end_s - spell.begin_s) >= 1.0:
                overload_s = spell.end_s
        lost = self._lost(offer.load_fps, offer.elapsed_s - overload_s, offer.duration_s)
        return offer.frames - min(offer.frames, math.floor(lost))

    def _lost(self, load_fps: float, rested_s: float, duration_s: float) -> float:
        """Frames that a trial loses which begins that long after the last overload."""
        above = load_fps - self.capacity_fps
        weak_fps = self.capacity_fps * self.weakness * math.exp(-rested_s / self.recovery_s)
        if above <= 0.0:
            if weak_fps <= -above:
                return 0.0
            # The capacity reaches the load at this time.
            recovered_s = self.recovery_s * math.log(weak_fps / -above) if above < 0.0 else math.inf
            duration_s = min(duration_s, recovered_s)
        return above * duration_s - weak_fps * self.recovery_s * math.expm1(-duration_s / self.recovery_s)


@dataclass(frozen=True, kw_only=True)
class Hysteresis:
    """Offered more than its capacity it falls into a slow mode, with the share ``slow`` of the capacity. It
    comes back when what is offered has been below that for ``rest_s``."""

    carries_state: ClassVar[bool] = True
    capacity_fps: float = 10e6
    slow: float = 0.9
    rest_s: float = 0.6

    def received_frames(self, offer: Offer) -> int:
        """Frames of the offer that come out."""
        slow, rested_s = False, 0.0
        for idle_s, spell in _spells(offer):
            rested_s += idle_s
            slow = slow and rested_s < self.rest_s
            if spell.load_fps > self._capacity_fps(slow=slow):
                slow, rested_s = True, 0.0
            else:
                rested_s += spell.end_s - spell.begin_s
        slow = slow and rested_s + _idle_s(offer) < self.rest_s
        if offer.load_fps > self._capacity_fps(slow=slow):
            lost = (offer.load_fps - self._capacity_fps(slow=True)) * offer.duration_s
            return offer.frames - min(offer.frames, math.floor(lost))
        return offer.frames

    def _capacity_fps(self, *, slow: bool) -> float:
        return self.capacity_fps * (self.slow if slow else 1.0)


@dataclass(frozen=True, kw_only=True)
class Leak:
    """What it forwards uses something up for good: after ``life_frames`` frames ``left`` of the capacity is
    left, and less in proportion before."""

    carries_state: ClassVar[bool] = True
    capacity_fps: float = 10e6
    life_frames: float = 20e9
    left: float = 0.2

    def received_frames(self, offer: Offer) -> int:
        """Frames of the offer that come out."""
        used = 0.0
        for _, spell in _spells(offer):
            used = self._used(used, spell.load_fps, spell.end_s - spell.begin_s)
        after = self._used(used, offer.load_fps, offer.duration_s)
        return offer.frames - min(offer.frames, max(0, math.floor(offer.frames - (after - used) + 1e-6)))

    def _capacity_fps(self, used: float) -> float:
        return self.capacity_fps * (1.0 - (1.0 - self.left) * min(1.0, used / self.life_frames))

    def _used(self, used: float, load_fps: float, duration_s: float) -> float:
        """Frames forwarded in all after a trial. The capacity falls as capacity x exp(-rate x t) while it
        limits."""
        per_frame = self.capacity_fps * (1.0 - self.left) / self.life_frames
        free_s = max(0.0, (self._capacity_fps(used) - load_fps) / (per_frame * load_fps))
        if free_s >= duration_s or load_fps <= self.left * self.capacity_fps:
            return used + load_fps * duration_s
        used += load_fps * free_s
        limited_s = duration_s - free_s
        fallen = self.left * self.capacity_fps / self._capacity_fps(used) if self.left > 0.0 else 0.0
        falls_s = -math.log(fallen) / per_frame if fallen > 0.0 else math.inf
        fallen_s = min(limited_s, falls_s)
        used -= self._capacity_fps(used) * math.expm1(-per_frame * fallen_s) / per_frame
        return used + self.left * self.capacity_fps * (limited_s - fallen_s)


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """It begins with the share ``begins`` of its capacity, and takes ``steps`` equal steps up to the whole,
    one after each ``step_s`` of overload."""

    carries_state: ClassVar[bool] = True
    capacity_fps: float = 10e6
    begins: float = 0.8
    steps: int = 8
    step_s: float = 0.5

    def received_frames(self, offer: Offer) -> int:
        """Frames of the offer that come out."""
        overloaded_s = 0.0
        for _, spell in _spells(offer):
            overloaded_s, _ = self._after(overloaded_s, spell.load_fps, spell.end_s - spell.begin_s)
        _, lost = self._after(overloaded_s, offer.load_fps, offer.duration_s)
        return offer.frames - min(offer.frames, math.floor(lost))

    def _after(self, overloaded_s: float, load_fps: float, duration_s: float) -> tuple[float, float]:
        """Time in overload until then, and frames lost in the trial."""
        lost = 0.0
        while duration_s > 0.0:
            step = min(self.steps, math.floor(overloaded_s / self.step_s + 1e-9))
            share = self.begins + (1.0 - self.begins) * step / self.steps
            above_fps = load_fps - share * self.capacity_fps
            if above_fps <= 0.0:
                break
            left_s = (
                duration_s if step == self.steps else min(duration_s, (step + 1) * self.step_s - overloaded_s)
            )
            left_s = max(left_s, 1e-9)
            lost += above_fps * left_s
            overloaded_s += left_s
            duration_s -= left_s
        return overloaded_s, lost


def _spells(offer: Offer) -> Iterator[tuple[float, Spell]]:
    """What was offered before, and for how long nothing was before each."""
    until_s = 0.0
    for spell in offer.past:
        yield spell.begin_s - until_s, spell
        until_s = spell.end_s


def _idle_s(offer: Offer) -> float:
    """For how long nothing was offered before the offer."""
    return offer.elapsed_s - (offer.past[-1].end_s if offer.past else 0.0)
