"""How near ours must be to a published number, and what a constant would score.

A tolerance is the 99 % interval of the difference between two numbers of one and the same thing, given the
errors of both, and half a unit of the last printed digit. Where something else is in it, the row says what.
Of a hundred rows that agree one is a misfit by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from weirlab.reproductions.verdicts import About, KnownMisfit, Row, Verdict
from weirlab.stats import STATISTICS, Margin, mean_margin, statistic_margin, t_quantile
from weirlab.stats.distributions import f_quantile

FloatArray = npt.NDArray[np.float64]
CONFIDENCE = 0.99
_RECORDED = 10
"""Known misfits are recorded to this part of a printed digit, at least."""
_LEAST_SPREAD = 2
"""Runs of which a spread is known."""
_LEAST_PASSED = 2
"""Rows that a constant must pass to count: each number alone is passed by itself."""


@dataclass(frozen=True)
class Printed:
    """A number as it was printed."""

    value: float
    step: float = 0.0
    """A unit of its last digit."""
    deviation: float | None = None
    """Standard deviation of the runs that it is of, as far as it is known."""
    runs: int = 0
    """How many these are; 0 where it is not known."""


class Sample(NamedTuple):
    """Runs of ours in short."""

    mean: float
    deviation: float
    """Standard deviation, with n - 1; 0 of a single run."""
    runs: int

    @classmethod
    def of(cls, values: FloatArray) -> Sample:
        """Of one value per run."""
        deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
        return cls(float(values.mean()), deviation, int(values.size))


@dataclass(frozen=True)
class Misfit:
    """A misfit that is known: why, and what ours was when it was recorded, in one or more sets of runs. Its
    band is where a repetition of one of them would lie."""

    reason: str
    ours: float
    others: tuple[float, ...] = ()

    def band(self, again: Margin, digit: float) -> KnownMisfit:
        """Where ours lies when it is made `again`; it was recorded to this `digit`."""
        every = (self.ours, *self.others)
        return KnownMisfit(self.reason, min(every) - again.below - digit, max(every) + again.above + digit)


def repeated(known: Misfit, values: FloatArray, step: float) -> KnownMisfit:
    """Where the mean of our `values`, one per run, lies when they are made again; `step` is a unit of the
    last digit that counts."""
    return known.band(_again(Sample.of(values)), step / _RECORDED)


def _again(mine: Sample) -> Margin:
    if mine.runs < _LEAST_SPREAD:
        return Margin(0.0, 0.0, 0.0)
    return mean_margin(mine.deviation, mine.runs, mine.deviation, mine.runs, confidence=CONFIDENCE)


class Words(TypedDict, total=False):
    """What every row may say besides its numbers; see `Row`."""

    group: str
    fitted: str
    straws: Mapping[str, float]
    rivals: Mapping[str, float]
    about: About
    unit: str
    source: str


def mean_row(
    name: str,
    printed: Printed,
    ours: Sample | FloatArray,
    *,
    known: Misfit | None = None,
    **words: Unpack[Words],
) -> Row:
    """A printed mean compared with that of our runs, or of values, one per run.

    Of a printed mean without a standard deviation that of ours stands for it; without a number of runs it is
    taken as exact.
    """
    mine = ours if isinstance(ours, Sample) else Sample.of(ours)
    margin = Margin(0.0, 0.0, 0.0)
    if mine.runs >= _LEAST_SPREAD:
        theirs = mine.deviation if printed.deviation is None else printed.deviation
        margin = (
            mean_margin(mine.deviation, mine.runs, theirs, printed.runs, confidence=CONFIDENCE)
            if printed.runs > 1
            else _exact(mine)
        )
    known_error = printed.deviation is not None and printed.runs > 0
    published_error = printed.deviation / printed.runs**0.5 if known_error and printed.deviation else None
    basis = f"means of {mine.runs} and {printed.runs or 'unknown'} runs"
    return _row(name, printed, mine.mean, margin, _again(mine), known, basis, published_error, words)


def deviation_row(
    name: str,
    printed: Printed,
    ours: Sample,
    *,
    known: Misfit | None = None,
    **words: Unpack[Words],
) -> Row:
    """A printed standard deviation of few runs compared with ours: of normal values the ratio of their
    squares has the distribution F. Source: Snedecor 1934.
    """
    least, most = (_spread_ratio(part, ours.runs, printed.runs) for part in _PARTS)
    margin = Margin((1 - least) * printed.value, (most - 1) * printed.value, _deviation_error(ours))
    again_least, again_most = (_spread_ratio(part, ours.runs, ours.runs) for part in _PARTS)
    recorded = ours.deviation if known is None else known.ours
    again = Margin((1 - again_least) * recorded, (again_most - 1) * recorded)
    basis = f"standard deviations of {ours.runs} and {printed.runs} runs"
    return _row(name, printed, ours.deviation, margin, again, known, basis, None, words)


_PARTS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


def _spread_ratio(probability: float, runs: int, other_runs: int) -> float:
    """The ratio of two standard deviations that is not exceeded with this probability."""
    return math.sqrt(f_quantile(probability, runs - 1, other_runs - 1))


def _deviation_error(ours: Sample) -> float:
    return ours.deviation / math.sqrt(2.0 * (ours.runs - 1))


def statistic_row(
    name: str,
    printed: Printed,
    values: FloatArray,
    statistic: str,
    *,
    known: Misfit | None = None,
    low: float = -np.inf,
    high: float = np.inf,
    **words: Unpack[Words],
) -> Row:
    """A printed `statistic` (`min`, `max`, `std`, `median`, `iqr`) compared with that of our `values`; the
    published runs are taken to vary as ours do. None of them lies below `low` or above `high`."""
    of = STATISTICS[statistic]
    ours = float(of(values[np.newaxis])[0])
    margin = statistic_margin(values, printed.runs, of, confidence=CONFIDENCE, low=low, high=high)
    # The band of what is known is that of the recorded runs, as many as were published.
    basis = f"{statistic} of {values.size} and of {printed.runs} runs that vary as ours"
    return _row(name, printed, ours, margin, margin, known, basis, None, words)


def one_run_margin(mine: Sample) -> Margin:
    """How far from the mean of ours one more run may lie: t(n - 1) s sqrt(1 + 1/n), and nothing where the
    spread is not known.

    Source: Student 1908.
    """
    if mine.runs < _LEAST_SPREAD:
        return Margin(0.0, 0.0, 0.0)
    half = t_quantile((1 + CONFIDENCE) / 2, mine.runs - 1) * mine.deviation
    reach = half * (1 + 1 / mine.runs) ** 0.5
    return Margin(reach, reach, mine.deviation / mine.runs**0.5)


def one_run_row(
    name: str,
    printed: Printed,
    values: FloatArray,
    *,
    known: Misfit | None = None,
    **words: Unpack[Words],
) -> Row:
    """A printed number of one run compared with the mean of our `values`: it may lie where one more run of
    ours would.
    """
    mine = Sample.of(values)
    margin = one_run_margin(mine)
    basis = f"one run, and {mine.runs} of ours"
    return _row(name, printed, mine.mean, margin, _again(mine), known, basis, mine.deviation, words)


def number_row(
    name: str,
    printed: Printed,
    ours: float | None,
    *,
    known: KnownMisfit | None = None,
    allowance: float = 0.0,
    because: str = "",
    **words: Unpack[Words],
) -> Row:
    """A printed number compared with one of ours that has no spread; `allowance` is in the tolerance,
    `because`."""
    return Row(
        name=name,
        published=printed.value,
        ours=ours,
        tolerance=allowance + printed.step / 2,
        step=printed.step,
        basis=because or "rounding of the print",
        known=known,
        **words,
    )


def _exact(ours: Sample) -> Margin:
    error = ours.deviation / ours.runs**0.5
    half = t_quantile((1 + CONFIDENCE) / 2, ours.runs - 1) * error
    return Margin(half, half, error)


def _row(
    name: str,
    printed: Printed,
    ours: float,
    margin: Margin,
    again: Margin,
    known: Misfit | None,
    basis: str,
    published_error: float | None,
    words: Words,
) -> Row:
    rounding = printed.step / 2
    return Row(
        name=name,
        published=printed.value,
        ours=ours,
        tolerance=margin.above + rounding,
        tolerance_below=margin.below + rounding,
        basis=basis,
        step=printed.step,
        error=margin.error,
        published_error=published_error,
        known=None if known is None else known.band(again, printed.step / _RECORDED),
        **words,
    )


@dataclass(frozen=True)
class Constant:
    """What the best constant scores in a group of rows."""

    group: str
    unit: str
    rows: int
    ours: int
    """Rows that hold."""
    value: float
    passed: Sequence[str] = field(default_factory=list)
    """Names of the rows that it passes."""


def constants(rows: Sequence[Row]) -> list[Constant]:
    """For each group of two rows or more about published numbers, the number that counts as equal in most of
    them; of several such numbers one that passes most of the rows that hold."""
    grouped = sorted((row for row in rows if row.group and row.about == "published"), key=lambda r: r.group)
    order = list(dict.fromkeys(row.group for row in rows if row.group))
    found = {group: _best(group, list(members)) for group, members in groupby(grouped, key=lambda r: r.group)}
    return [found[group] for group in order if group in found and found[group].rows >= _LEAST_PASSED]


def _best(group: str, rows: Sequence[Row]) -> Constant:
    held = [row for row in rows if row.verdict is Verdict.HOLDS]
    ends = sorted({end for row in rows for end in (row.low, row.high)})
    middles = [(low + high) / 2 for low, high in pairwise(ends)]
    value = max(
        [*ends, *middles],
        key=lambda at: (sum(row.passes(at) for row in rows), sum(row.passes(at) for row in held)),
    )
    passed = [row.name for row in rows if row.passes(value)]
    return Constant(
        group, rows[0].unit, len(rows), len(held), value, passed if len(passed) >= _LEAST_PASSED else []
    )
