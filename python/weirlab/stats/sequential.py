"""How many replicates are enough: a sequential rule that ends when intervals are as narrow as asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from weirlab.stats.replicates import Interval, mean_interval

GROWTH = 2.0
"""Most times the values there are that a rule asks for at once: a first guess of the spread may be wrong."""
_STEP = 1.1
"""Least times: fewer looks at the values spoil the interval less."""


def enough(
    count: int, series: Sequence[Sequence[float]], narrow: Sequence[Callable[[Interval], bool]], most: int
) -> int:
    """How many replicates to have, after `count` of them: `count` where these are enough.

    Replicates go on while a 95 % interval of the mean (Student's t) is wider than asked, or less than `count`
    values are there: at least a tenth more, at most twice as many, and in between as many as the spread seen
    so far makes necessary.

    Args:
        series: The values of each mean asked about, one per replicate.
        narrow: For each, whether an interval is narrow enough.
        most: More are never asked for.

    Source: Chow & Robbins 1965, with a least number of values; Law 2015, section 9.4.1.
    """
    wanted = count
    for values, is_narrow in zip(series, narrow, strict=True):
        interval = mean_interval(values) if len(values) == count else None
        if interval is not None and count > 1 and is_narrow(interval):
            continue
        wanted = max(wanted, _predicted(count, interval, is_narrow))
    return min(max(most, count), wanted)


def _predicted(count: int, interval: Interval | None, is_narrow: Callable[[Interval], bool]) -> int:
    """As many as make an interval narrow enough if the spread stays what it is."""
    least, most = math.ceil(_STEP * count + 0.5), math.ceil(GROWTH * count)
    if interval is None or not math.isfinite(interval.half_width):
        return most
    while least < most:
        middle = (least + most) // 2
        half = interval.half_width * math.sqrt(count / middle)
        if is_narrow(Interval(interval.mean, interval.mean - half, interval.mean + half, middle)):
            most = middle
        else:
            least = middle + 1
    return least
