"""The load that half of the trials pass: a best estimate from all trials of a search, with its interval.

The verdict of a search rests on a few trials at two loads. Where a device, or the machine beneath it, answers
at random near its limit, all trials together say more: the share that passes falls with the load along a
curve, and where that is one half is known without any load being decided. The estimate is reported
with the verdict and does not change it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt

from weirlab.heavy import np
from weirlab.searches.base import SearchGoal
from weirlab.searches.controller import Outcome
from weirlab.searches.ledger import initial_duration_s, sample_of

Floats = npt.NDArray[np.float64]

USABLE = 0.2
"""Relative error up to which the load is an estimate. Beyond, the ends of its interval are a factor of 1.5
apart, or more."""
LEAST_UNDISTURBED = 10
"""So many undisturbed trials, passed and failed among them, are enough to leave the others out."""
_MEDIANS, _SLOPES = 241, 41
"""Places on the grid over which the likelihood is looked at, and is then looked at again around its best."""
_GENTLEST, _STEEPEST = 3.0, 1000.0
"""Slopes that are looked at, all as likely as each other in their logarithm: at 3 the share that passes falls
from 3 in 4 to 1 in 4 over a factor of 2 in load, at 1000 over 0.2 %."""
_FORGOTTEN = 1e-4
"""What is less likely than this share of the likeliest is left out."""
_BEYOND = math.log(2.0)
"""How far beyond the loads that were offered the median may lie, in logarithms of load."""


@dataclass(frozen=True, kw_only=True)
class HalfLoad:
    """Where half of the trials pass."""

    load_fps: float
    """Frames/s, summed over all directions."""
    low_fps: float | None
    """Lower end of the 95 % interval; None where it lies below all that was looked at."""
    high_fps: float | None
    """Upper end."""
    isotonic_fps: float
    """The same load by a fit that assumes only that the share of trials that pass falls with the load."""
    trials: int
    """How many it rests on."""
    left_out: int
    """Trials left out because the rest of the machine disturbed them; 0 where all are in."""

    @property
    def relative_error(self) -> float | None:
        """Half the width of the interval as a share of the load; None where an end is missing."""
        if self.low_fps is None or self.high_fps is None:
            return None
        return (self.high_fps - self.low_fps) / (2.0 * self.load_fps)

    @property
    def is_usable(self) -> bool:
        """Whether the interval is narrow enough for the load to be an estimate: see `USABLE`."""
        error = self.relative_error
        return error is not None and error <= USABLE

    @property
    def is_doubtful(self) -> bool:
        """Whether the isotonic fit lies outside of the interval: the curve assumed does not describe the
        device."""
        low, high = self.low_fps or 0.0, self.high_fps or math.inf
        return not low <= self.isotonic_fps <= high


def half_load(goal: SearchGoal, outcomes: Sequence[Outcome]) -> HalfLoad | None:
    """Where half of the trials meet ``goal``; None while none passed or none failed.

    The chance that a trial of the goal's duration passes at load x is 1 / (1 + (x / m)^b). The likelihood of
    m, averaged over slopes b, has its median and its 95 % interval; slopes end at one that falls within 0.2 %
    of load, so that the likelihood ends where loads that pass and loads that fail do not overlap. The median
    is held between the loads where the isotonic fit crosses one half. A shorter trial that passed weighs as
    much less as it is shorter; one that failed would have failed in full, too. Trials that the rest of the
    machine disturbed are left out, passed or failed, if enough others remain. Loads beyond the tester say
    nothing here.

    Source: McCullagh & Nelder 1989, section 4.3, with flat priors of ln m and ln b.
    """
    seen = _seen(goal, outcomes)
    undisturbed = [each for each in seen if not each.disturbed]
    used = undisturbed if len(undisturbed) >= LEAST_UNDISTURBED and _both(undisturbed) else seen
    if not _both(used):
        return None
    logs = np.log([each.load_fps for each in used])
    passed = np.array([each.passed for each in used], dtype=float)
    weights = np.array([each.weight for each in used])
    median, low, high = _fit(logs, passed, weights)
    lowest, highest = _isotonic_bounds(logs, passed, weights)
    median = min(max(median, lowest), highest)
    return HalfLoad(
        load_fps=math.exp(median),
        low_fps=None if low is None else math.exp(min(low, median)),
        high_fps=None if high is None else math.exp(max(high, median)),
        isotonic_fps=math.exp((lowest + highest) / 2.0),
        trials=len(used),
        left_out=len(seen) - len(used),
    )


@dataclass(frozen=True)
class _Seen:
    """A trial with the eyes of a goal."""

    load_fps: float
    passed: bool
    weight: float
    disturbed: bool


def _seen(goal: SearchGoal, outcomes: Sequence[Outcome]) -> list[_Seen]:
    initial_s = initial_duration_s(goal.initial_duration_s, goal.duration_s)
    found = []
    for outcome in outcomes:
        if outcome.beyond_tester:
            continue
        sample = sample_of(outcome, goal.loss_ratio, initial_s, "trial")
        if sample is not None:
            passed = sample.loss_ratio <= goal.loss_ratio
            weight = min(1.0, sample.duration_s / goal.duration_s) if passed else 1.0
            disturbed = bool(outcome.trial.disturbance)
            found.append(_Seen(outcome.trial.offered_load_fps, passed, weight, disturbed))
    return found


def _both(seen: Sequence[_Seen]) -> bool:
    return len({each.passed for each in seen}) == 2


def _fit(logs: Floats, passed: Floats, weights: Floats) -> tuple[float, float | None, float | None]:
    """Median and ends of its interval, in logarithms of load; None for an end that was not reached."""
    edges = float(logs.min()) - _BEYOND, float(logs.max()) + _BEYOND
    wide = np.linspace(*edges, _MEDIANS)
    likely = _likelihood(wide, logs, passed, weights)
    held = np.flatnonzero(likely > _FORGOTTEN * likely.max())
    # Once more where it matters, with a grid as fine as that needs.
    first, last = max(0, int(held[0]) - 1), min(_MEDIANS - 1, int(held[-1]) + 1)
    medians = np.linspace(wide[first], wide[last], _MEDIANS)
    likely = _likelihood(medians, logs, passed, weights)
    share = np.cumsum(likely) / likely.sum()
    low, middle, high = (float(np.interp(level, share, medians)) for level in (0.025, 0.5, 0.975))
    cut_low, cut_high = (likely[end] > _FORGOTTEN * likely.max() for end in (0, -1))
    return middle, None if cut_low else low, None if cut_high else high


def _likelihood(medians: Floats, logs: Floats, passed: Floats, weights: Floats) -> Floats:
    """How likely the trials are with each median, averaged over slopes; up to a factor."""
    slopes = np.exp(np.linspace(math.log(_GENTLEST), math.log(_STEEPEST), _SLOPES))
    sign = np.where(passed == 1.0, -1.0, 1.0)
    # By slope, by median, by trial.
    away = sign * (medians[:, None] - logs[None, :])
    found = np.stack([-(np.logaddexp(0.0, slope * away) @ weights) for slope in slopes])
    likely: Floats = np.exp(found - found.max()).sum(axis=0)
    return likely


def _isotonic_bounds(logs: Floats, passed: Floats, weights: Floats) -> tuple[float, float]:
    """Between which loads the isotonic regression of passing on the load crosses one half, in logarithms of
    load: the last at which it is above, and the first at which it is below.

    Source: Barlow 1972, chapter 1, the pool-adjacent-violators algorithm.
    """
    order = np.argsort(logs, kind="stable")
    blocks: list[tuple[float, float, float, float]] = []
    """Share that passes, weight, first and last load."""
    for place in order:
        block = (float(passed[place]), float(weights[place]), float(logs[place]), float(logs[place]))
        while blocks and (blocks[-1][0] <= block[0] or blocks[-1][3] == block[2]):
            before = blocks.pop()
            weight = before[1] + block[1]
            share = (before[0] * before[1] + block[0] * block[1]) / weight
            block = (share, weight, before[2], block[3])
        blocks.append(block)
    above = [block for block in blocks if block[0] > 0.5]
    half = [block for block in blocks if block[0] == 0.5]
    below = [block for block in blocks if block[0] < 0.5]
    if half:
        return half[0][2], half[-1][3]
    if not above:
        return below[0][2], below[0][2]
    if not below:
        return above[-1][3], above[-1][3]
    return above[-1][3], below[0][2]
