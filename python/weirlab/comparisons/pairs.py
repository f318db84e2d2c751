"""The levels of a factor compared within a study, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from weirlab.columns import Columns, table_of
from weirlab.comparisons.differences import Difference, difference, variance
from weirlab.comparisons.quantities import Quantity
from weirlab.stats import mean_interval
from weirlab.studies import Study


@dataclass(frozen=True)
class Paired:
    """How a measure at a point differs from that at the baseline of the comparison."""

    point: int
    baseline: int
    """The point that it is compared with: another level of one factor, and the same of all others."""
    measure: str
    found: Difference
    saved: float
    """How many times the runs the same interval would take with seeds of their own: (s1^2 + s2^2) / s^2 of
    the differences. NaN where nothing is random."""
    ratio: tuple[float, float, float]
    """Here over baseline, seed by seed: the geometric mean, and from where to where it lies with 95 %
    confidence. NaN where a value is not above 0, and the ends with a single seed."""
    differences: Mapping[int, float]
    """By replicate."""


def pairs(study: Study) -> list[Paired]:
    """All differences that the study asks for, by point and measure; none without `study.compare`.

    Both points have the same seeds, so that a part of what chance does to one it does to the other, too: the
    interval is that of the mean of the differences, Student's t. Source: Law 2015, section 11.2.
    """
    section = study.scenario.study
    if section is None or section.compare is None:
        return []
    groups: dict[object, list[int]] = {}
    baselines: dict[object, int] = {}
    for row in study.points.iter_rows(named=True):
        found = section.pair({name: level for name, level in row.items() if name != "point"})
        assert found is not None
        rest, is_baseline = found
        if is_baseline:
            baselines[rest] = row["point"]
        else:
            groups.setdefault(rest, []).append(row["point"])
    values: dict[tuple[int, str], dict[int, float]] = {}
    units: dict[str, str] = {}
    known = study.measures.drop_nulls("value").filter(pl.col("value").is_finite())
    for point, measure, replicate, value, unit in known.iter_rows():
        values.setdefault((point, measure), {})[replicate] = value
        units[measure] = unit
    return [
        _paired(point, baselines[rest], measure, units[measure], values)
        for rest, points in groups.items()
        if rest in baselines
        for point in points
        for measure in study.scenario.measure
        if (point, measure) in values and (baselines[rest], measure) in values
    ]


def pairs_frame(found: list[Paired]) -> pl.DataFrame:
    """A row for each: `point baseline measure unit baseline_mean mean difference low high pairs saved ratio
    ratio_low ratio_high`."""
    return table_of(_COLUMNS, found)


_COLUMNS: Columns[Paired] = {
    "point": (pl.UInt32, lambda each: each.point),
    "baseline": (pl.UInt32, lambda each: each.baseline),
    "measure": (pl.String, lambda each: each.measure),
    "unit": (pl.String, lambda each: each.found.after.unit),
    "baseline_mean": (pl.Float64, lambda each: each.found.first),
    "mean": (pl.Float64, lambda each: each.found.second),
    "difference": (pl.Float64, lambda each: each.found.change),
    "low": (pl.Float64, lambda each: each.found.low),
    "high": (pl.Float64, lambda each: each.found.high),
    "pairs": (pl.UInt32, lambda each: len(each.differences)),
    "saved": (pl.Float64, lambda each: each.saved),
    "ratio": (pl.Float64, lambda each: each.ratio[0]),
    "ratio_low": (pl.Float64, lambda each: each.ratio[1]),
    "ratio_high": (pl.Float64, lambda each: each.ratio[2]),
}


def _paired(
    point: int,
    baseline: int,
    measure: str,
    unit: str,
    values: Mapping[tuple[int, str], Mapping[int, float]],
) -> Paired:
    one, other = values[baseline, measure], values[point, measure]
    both = sorted(one.keys() & other.keys())
    before, after = (
        Quantity(name=measure, unit=unit, values={replicate: each[replicate] for replicate in both})
        for each in (one, other)
    )
    apart = {replicate: other[replicate] - one[replicate] for replicate in both}
    scatter = variance(list(apart.values()))
    own = variance([one[i] for i in both]) + variance([other[i] for i in both])
    saved = own / scatter if scatter > 0 else math.nan
    ratio = _ratio([(one[replicate], other[replicate]) for replicate in both])
    return Paired(point, baseline, measure, difference(before, after), saved, ratio, apart)


def _ratio(paired: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Student's t of the logarithms."""
    if not paired or min(map(min, paired)) <= 0:
        return math.nan, math.nan, math.nan
    logs = [math.log(after) - math.log(before) for before, after in paired]
    interval = mean_interval(logs)
    assert interval is not None, "there are values"
    return _exp(interval.mean), _exp(interval.low), _exp(interval.high)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
