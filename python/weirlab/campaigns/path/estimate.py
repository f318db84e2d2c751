"""Links and queues of a path from the probes that were answered. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weirlab.campaigns.path.route import ANSWERS, Hop
from weirlab.heavy import np
from weirlab.stats import mean_interval, median, quantile
from weirlab.stats.hops import (
    Crossing,
    Floor,
    Link,
    crossing,
    link_between,
    queueing_times,
    rtt_floor,
)
from weirlab.stats.robust import RobustLine, fit_robust_line, wilson_interval

_LEAST_SIZES = 5
"""Without answers to so many sizes there is no line."""


@dataclass(frozen=True)
class Waiting:
    """How long probes waited in queues, both ways."""

    median_s: float
    p95_s: float
    mean_s: float
    added_s: float
    """Mean, less that up to the hop before."""
    added_low_s: float
    added_high_s: float


@dataclass(frozen=True)
class HopEstimate:
    """A hop, and what lies between it and the one before that answers."""

    hop: Hop
    after: int
    """Distance of the hop before that answers; 0: this host."""
    sent: int
    """Probes of the last pace."""
    answered: int
    withholds: bool
    """Whether it leaves probes without an answer that pass it: its loss is not known."""
    least_s: float | None
    """Least round-trip time, of any size."""
    floor: Floor | None
    """None: too few sizes were answered."""
    line: RobustLine | None
    """Of the floors of the round-trip times to this hop."""
    link: Link | None
    loss: Crossing | None
    waiting: Waiting | None


def answered(probes: pl.DataFrame) -> pl.DataFrame:
    """The probes that gave a round-trip time."""
    return probes.filter(pl.col("word").is_in(ANSWERS))


def estimate(
    probes: pl.DataFrame, hops: Sequence[Hop], *, confidence: float = 0.95, share: float = 0.05
) -> tuple[HopEstimate, ...]:
    """What the probes show of each hop that answers.

    Args: probes: Rows with `hops size_bytes t_s rtt_s word gap_s`. hops: The route. share: See `rtt_floor`.
    """
    answering = [hop for hop in hops if hop.routers]
    counts = [_counts(probes, hop.hops) for hop in answering]
    withholding = _withholding(counts, confidence)
    found: list[HopEstimate] = []
    before: HopEstimate | None = None
    counted: tuple[int, int] | None = None
    excess_before = np.zeros(1)
    for hop, reported, withholds in zip(answering, counts, withholding, strict=True):
        rows = answered(probes.filter(pl.col("hops") == hop.hops))
        floor = line = link = waiting = None
        if rows["size_bytes"].n_unique() >= _LEAST_SIZES:
            sizes, rtts = rows["size_bytes"].to_numpy().astype(float), rows["rtt_s"].to_numpy()
            floor = rtt_floor(sizes, rtts, share=share)
            line = fit_robust_line(floor.sizes_bytes, floor.rtts_s, confidence=confidence)
            reference = None if before is None else before.floor
            if reference is None or np.intersect1d(reference.sizes_bytes, floor.sizes_bytes).size >= 3:
                link = link_between(reference, floor, confidence=confidence)
            excess = queueing_times(line, sizes, rtts)
            waiting = _waiting(excess_before, excess, confidence)
            excess_before = excess
        loss = None
        if reported[1] and not withholds:
            loss = crossing(counted, reported, confidence=confidence)
            counted = reported
        after = 0 if before is None else before.hop.hops
        least = rows["rtt_s"].min()
        least_s = least if isinstance(least, float) else None
        entry = HopEstimate(
            hop, after, reported[1], reported[0], withholds, least_s, floor, line, link, loss, waiting
        )
        found.append(entry)
        if floor is not None:
            before = entry
    return tuple(found)


def _counts(probes: pl.DataFrame, hops: int) -> tuple[int, int]:
    """How many probes to a hop were answered, of how many that were sent; only at the last pace, because an
    earlier one was given up when answers failed to come."""
    rows = probes.filter((pl.col("hops") == hops) & pl.col("t_s").is_not_null())
    if rows.height:
        rows = rows.filter(pl.col("gap_s") == rows["gap_s"].max())
    return answered(rows).height, rows.height


def _withholding(counts: Sequence[tuple[int, int]], confidence: float) -> list[bool]:
    """For each hop whether one beyond it answers significantly more: those probes came past it."""
    found = []
    for place, (reported, sent) in enumerate(counts):
        beyond = [wilson_interval(*each, confidence=confidence)[0] for each in counts[place + 1 :] if each[1]]
        high = wilson_interval(reported, sent, confidence=confidence)[1] if sent else 1.0
        found.append(max(beyond, default=0.0) > high)
    return found


def _waiting(before: np.ndarray, own: np.ndarray, confidence: float) -> Waiting:
    here, there = (
        mean_interval(list(own), confidence=confidence),
        mean_interval(list(before), confidence=confidence),
    )
    assert here is not None, "there are answers"
    assert there is not None, "there were, or one zero"
    half = math.hypot(*(0.0 if math.isnan(each.half_width) else each.half_width for each in (here, there)))
    added = here.mean - there.mean
    return Waiting(median(own), quantile(own, 0.95), here.mean, added, added - half, added + half)
