"""What the links of a path are like, from round-trip times to each router on it (pathchar).

A probe of s bytes to the n-th router that meets no queue takes m_n(s) = sum over the links up to n of
(l_i + s/C_i): each link takes all of it before it sends it on. So the floor of the round-trip time grows with
s by the sum of 1/C_i, and from one router to the next by 1/C_n. The answers must be of one size; their way
back is part of l.

Sizes in bytes, times in s, rates in bit/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from weirlab.heavy import np
from weirlab.stats.arrays import Array, paired
from weirlab.stats.robust import RobustLine, fit_robust_line, ratio_interval, wilson_interval
from weirlab.stats.samples import quantile


@dataclass(frozen=True)
class Floor:
    """The round-trip time of each size to one router when nothing is in the way."""

    sizes_bytes: Array
    """Ascending [sizes]."""
    rtts_s: Array
    """[sizes]"""


def rtt_floor(sizes_bytes: Iterable[float], rtts_s: Iterable[float], *, share: float = 0.05) -> Floor:
    """A low quantile of the round-trip times of each size: with enough probes, some met no queue.

    Raises ValueError with a share outside of [0, 1]. Source: Jacobson 1997; Downey 1999, abstract and
    introduction. DEVIATION: they take the least, which is share 0. Hosts are rarely, and by chance, faster
    than usual (somebody was awake already), so the least depends on luck and hardly improves with more
    probes. A quantile does; and since what a probe waits does not depend on its own size, slopes are not
    changed by it.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"floor: the share must lie in [0, 1] (got {share})")
    sizes, rtts = paired(sizes_bytes, rtts_s, "floor of the round-trip times", least=1)
    distinct = np.unique(sizes)
    return Floor(distinct, np.array([quantile(rtts[sizes == size], share) for size in distinct]))


@dataclass(frozen=True)
class Link:
    """A link, or several between which nobody answered."""

    capacity_bps: float | None
    """None: not resolved, or round trips became shorter with size."""
    capacity_low_bps: float | None
    """The capacity is hardly less; None: nothing can be said, because round trips became shorter."""
    capacity_high_bps: float | None
    """The capacity is hardly more; None: not bounded, because sizes do not show it."""
    round_trip_s: float
    """What the link adds to the round trip of a probe of size 0: propagation both ways, transmission of the
    answer, and the work of the router less that of the one before."""
    round_trip_low_s: float
    round_trip_high_s: float
    line: RobustLine
    """Of what the link adds, against size."""

    @property
    def resolved(self) -> bool:
        """Whether sizes show a capacity."""
        return self.capacity_bps is not None


def link_between(before: Floor | None, own: Floor, *, confidence: float = 0.95) -> Link:
    """The link to a router, from the floors of the round-trip times to it and to the one before; None: it is
    the first.

    A robust line is fitted to the differences at sizes that both have: with least squares, its slope would
    be the difference of the slopes of both, 1/C_n, and its intercept that of the intercepts. Fitted to the
    differences it has one interval, without a rule to join two. Where that holds 0, the
    capacity is not resolved, and its upper end is a bound: C >= 8 / high. Where it lies below 0, something
    else than transmission took time.

    Raises ValueError with fewer than three sizes in common. Source: Jacobson 1997; Downey 1999, abstract and
    introduction.
    """
    if before is None:
        sizes, added = own.sizes_bytes, own.rtts_s
    else:
        sizes, first, second = np.intersect1d(before.sizes_bytes, own.sizes_bytes, return_indices=True)
        added = own.rtts_s[second] - before.rtts_s[first]
    line = fit_robust_line(sizes, added, confidence=confidence)

    def rate(slope: float) -> float | None:
        return 8 / slope if slope > 0 else None

    resolved = line.slope_low > 0
    return Link(
        capacity_bps=rate(line.slope) if resolved else None,
        capacity_low_bps=rate(line.slope_high),
        capacity_high_bps=rate(line.slope_low) if resolved else None,
        round_trip_s=line.intercept,
        round_trip_low_s=line.intercept_low,
        round_trip_high_s=line.intercept_high,
        line=line,
    )


def queueing_times(line: RobustLine, sizes_bytes: Iterable[float], rtts_s: Iterable[float]) -> Array:
    """What each round trip took beyond the floor of its size: waiting, both ways [probes].

    Below 0 where a probe was faster than the line. Source: Downey 1999, abstract and introduction.
    """
    sizes, rtts = paired(sizes_bytes, rtts_s, "queueing", least=1)
    return rtts - (line.slope * sizes + line.intercept)


@dataclass(frozen=True)
class Crossing:
    """Share of the probes that a link, or what answers behind it, loses."""

    loss_ratio: float
    low: float
    high: float


def crossing(
    before: tuple[int, int] | None, own: tuple[int, int], *, confidence: float = 0.95
) -> Crossing | None:
    """The loss between two routers from how many probes each answered of how many: 1 - (a_n/s_n) /
    (a_m/s_m), both ways; None before: it is the first. None where the one before answered too little.

    The interval is that of the ratio of two shares, each with its Wilson interval. Within [0, 1]: a router
    that answers more than the one before it shows no loss.
    """

    def share(counts: tuple[int, int]) -> tuple[float, float, float]:
        answered, sent = counts
        return (answered / sent, *wilson_interval(answered, sent, confidence=confidence))

    here = share(own)
    if before is None:
        return Crossing(1 - here[0], 1 - here[2], 1 - here[1])
    there = share(before)
    if there[0] == 0:
        return None
    low, high = ratio_interval(here, there)
    ends = (1 - here[0] / there[0], 1 - high, 1 - low)
    kept = [min(1.0, max(0.0, end)) if math.isfinite(end) else 0.0 for end in ends]
    return Crossing(kept[0], kept[1], kept[2])
