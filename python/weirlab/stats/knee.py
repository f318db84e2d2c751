"""How many streams are enough: four definitions, and how certain each of them is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.heavy import np
from weirlab.stats.arrays import Array, paired

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Sweep:
    """Cycles of measurements at several numbers of streams. NaN where a measurement is missing."""

    streams: Array
    """Numbers of streams [levels], ascending."""
    goodputs: Array
    """[cycles, levels]."""
    rtts: Array
    """Mean loaded round-trip time of each measurement [cycles, levels]."""
    rtt_differences: Array
    """dRTT of each measurement [cycles, levels], in the unit of `rtts`."""

    def __post_init__(self) -> None:
        """Raises ValueError unless shapes agree, levels ascend, and every level was measured once or more."""
        levels = self.streams.size
        if (
            self.streams.ndim != 1
            or levels == 0
            or np.any(np.diff(self.streams) <= 0)
            or self.streams[0] <= 0
        ):
            raise ValueError("sweep: numbers of streams must be positive and ascend")
        for name in ("goodputs", "rtts", "rtt_differences"):
            values = getattr(self, name)
            if values.shape != self.goodputs.shape or values.ndim != 2 or values.shape[1] != levels:
                raise ValueError(f"sweep: {name} has the shape {values.shape}, not (cycles, {levels})")
            missing = self.streams[~np.isfinite(values).any(axis=0)] if len(values) else self.streams
            if missing.size:
                raise ValueError(f"sweep: {name} has no value for {missing[0]:g} streams")

    @classmethod
    def of(
        cls,
        cycles: Iterable[int],
        streams: Iterable[float],
        goodputs: Iterable[float],
        rtts: Iterable[float],
        rtt_differences: Iterable[float],
    ) -> Sweep:
        """Out of one row per measurement. Raises ValueError when a cycle measured a number of streams
        twice.
        """
        rounds, rows = np.unique(list(cycles), return_inverse=True)
        levels, columns = np.unique(list(streams), return_inverse=True)
        if np.unique(np.stack([rows, columns]), axis=1).shape[1] != rows.size:
            raise ValueError("sweep: a cycle measures each number of streams once")

        def table(values: Iterable[float]) -> Array:
            cells = np.full((rounds.size, levels.size), np.nan)
            cells[rows, columns] = list(values)
            return cells

        return cls(levels.astype(np.float64), table(goodputs), table(rtts), table(rtt_differences))

    def drawn(self, rows: npt.NDArray[np.int64]) -> Sweep:
        """The sweep of these cycles, which may repeat; levels that none of them measured are left out."""
        tables = [table[rows] for table in (self.goodputs, self.rtts, self.rtt_differences)]
        kept = np.all([np.isfinite(table).any(axis=0) for table in tables], axis=0)
        return Sweep(self.streams[kept], *(table[:, kept] for table in tables))


def two_segments(sweep: Sweep) -> float:
    """(i) Where two straight lines meet that together fit the median goodputs best; they meet at the knee.

    Least squares over both lines and the place where they join, which may lie between two numbers of streams
    (exact, not a search on a grid). NaN with fewer than four levels, and where the line does not get flatter.
    Source: Hudson 1966.
    """
    return joint(sweep.streams, np.nanmedian(sweep.goodputs, axis=0))


def near_maximum(sweep: Sweep, share: float = 0.95) -> float:
    """(ii) The least N whose median goodput is `share` of the greatest median or more."""
    medians = np.nanmedian(sweep.goodputs, axis=0)
    return float(sweep.streams[np.argmax(medians >= share * medians.max())])


def highest_power(sweep: Sweep) -> float:
    """(iii) The N with the greatest power: median goodput over mean round-trip time; the least of
    equals.

    Of little use where the propagation dwarfs the queue: the power then grows with the goodput alone.
    Source: Kleinrock 1979.
    """
    power = np.nanmedian(sweep.goodputs, axis=0) / np.nanmean(sweep.rtts, axis=0)
    return float(sweep.streams[np.argmax(power)])


def least_delay_per_goodput(sweep: Sweep, share: float = 0.9) -> float:
    """(iv) The N with the least mean dRTT per median goodput, among those with `share` of the greatest
    median.

    Without the condition one stream, which delays nobody, would always win. A dRTT below 0 counts as 0, and
    the least of equals wins. Source: SLAC 2000, effect of streams ("minimizing the ratio of RTT difference
    to thruput"), without the condition.
    """
    medians = np.nanmedian(sweep.goodputs, axis=0)
    if medians.max() <= 0:
        return math.nan
    fast = (medians >= share * medians.max()) & (medians > 0)
    delays = np.maximum(np.nanmean(sweep.rtt_differences, axis=0), 0.0)
    ratios = np.divide(delays, medians, out=np.full_like(medians, np.inf), where=fast)
    return float(sweep.streams[np.argmin(ratios)])


DEFINITIONS: dict[str, Callable[[Sweep], float]] = {
    "two segments": two_segments,
    "95 % of the maximum": near_maximum,
    "highest power": highest_power,
    "least delay per goodput": least_delay_per_goodput,
}
"""The four definitions by the name that tables give them."""


@dataclass(frozen=True)
class Knee:
    """A number of streams and the interval that resampled cycles give it."""

    streams: float
    """Of the cycles as they are; NaN: none."""
    low: float
    high: float
    found: float
    """Share of the resampled sweeps in which there was a knee, in [0, 1]; the interval is of these."""


def knee_interval(
    sweep: Sweep,
    definition: Callable[[Sweep], float],
    rng: np.random.Generator,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Knee:
    """The knee, and the percentile interval of the bootstrap: whole cycles are drawn with replacement.

    Cycles, not measurements, because the measurements of one cycle share the state of the path. With one
    cycle there is nothing to draw: low = high = NaN. Source: Efron & Tibshirani 1993, section 13.3.
    """
    cycles = sweep.goodputs.shape[0]
    found = definition(sweep)
    if cycles < 2:
        return Knee(found, math.nan, math.nan, float(math.isfinite(found)))
    drawn = np.array([definition(sweep.drawn(rows)) for rows in rng.integers(cycles, size=(draws, cycles))])
    knees = drawn[np.isfinite(drawn)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(knees, [tail, 1 - tail]) if knees.size else (math.nan, math.nan)
    return Knee(found, float(low), float(high), knees.size / draws)


def joint(x: Iterable[float], y: Iterable[float]) -> float:
    """Where the two lines meet that are fitted to points (x, y), x ascending and each once; see
    `two_segments`.
    """
    a, b = paired(x, y, "two segments", least=1)
    if a.size < 4:
        return math.nan
    candidates = [_lines(a, b, split) for split in range(2, a.size - 1)]
    candidates += [_hinge(a, b, place) for place in a[1:-1].tolist()]
    _, knee, bend = min(candidates, key=lambda candidate: candidate[0])
    scale = float(np.abs(b).max()) / float(a[-1] - a[0])
    return knee if bend < -1e-9 * scale else math.nan


def _lines(a: Array, b: Array, split: int) -> tuple[float, float, float]:
    """Sum of squares, meeting place and change of slope of two free lines through the first `split` points
    and the others; infinite unless they meet between the two groups, because only then are they one
    function.
    """
    (slope_1, start_1, squares_1), (slope_2, start_2, squares_2) = (
        _line(a[:split], b[:split]),
        _line(a[split:], b[split:]),
    )
    bend = slope_2 - slope_1
    meeting = (start_1 - start_2) / bend if bend else math.inf
    if not a[split - 1] <= meeting <= a[split]:
        return math.inf, meeting, bend
    return squares_1 + squares_2, meeting, bend


def _line(a: Array, b: Array) -> tuple[float, float, float]:
    """Slope, intercept and sum of squares of the line of least squares."""
    mean_a, mean_b = a.mean(), b.mean()
    slope = float(((a - mean_a) @ (b - mean_b)) / ((a - mean_a) @ (a - mean_a)))
    start = float(mean_b - slope * mean_a)
    rest = b - slope * a - start
    return slope, start, float(rest @ rest)


def _hinge(a: Array, b: Array, place: float) -> tuple[float, float, float]:
    """Sum of squares, place and change of slope of the best bent line whose joint is at `place`."""
    design = np.stack([np.ones_like(a), a, np.maximum(a - place, 0.0)], axis=1)
    beta = np.linalg.lstsq(design, b)[0]
    rest = b - design @ beta
    return float(rest @ rest), place, float(beta[2])
