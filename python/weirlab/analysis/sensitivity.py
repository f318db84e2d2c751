"""Which parameters of a design matter, for each measure of a study.

What is computed depends on the design: elementary effects of a Morris design, Sobol indices of Saltelli's
sampling, rank correlations and PAWN indices of points that fill the space. Parameters count in parts of
their ranges, replicates with their mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weirlab.heavy import np
from weirlab.scenario import Scenario
from weirlab.scenario.plan.design import LatinHypercube, Morris, Optimise, Sobol, salib, unit_problem
from weirlab.stats.sensitivity import SLICES, pawn, pawn_of_chance, rank_correlation, within_strata

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "morris": ("mu_star", "mu_star_half", "mu", "sigma"),
    "sobol": ("st", "st_half", "s1", "s1_half"),
    "latin-hypercube": ("pawn", "pawn_chance", "rho", "rho_low", "rho_high"),
}
"""The columns of each design; the first one ranks the parameters."""

MEANINGS: Mapping[str, str] = {
    "mu_star": "mean of the absolute elementary effects, in units of the measure, over the full range",
    "mu_star_half": "half of its 95 % interval, by resampling",
    "mu": "mean of the elementary effects with their signs",
    "sigma": "their standard deviation: large where the effect is not linear, or depends on other parameters",
    "s1": "part of the variance that the parameter causes alone",
    "s1_half": "half of its 95 % interval, by resampling",
    "st": "part of the variance that it causes together with others",
    "st_half": "half of its 95 % interval, by resampling",
    "pawn": "PAWN index: how much the distribution of the measure changes along the range, 0 to 1",
    "pawn_chance": "what a parameter without any effect exceeds in one case of 20",
    "rho": "Spearman's rank correlation, within combinations of the factors",
    "rho_low": "low end of its 95 % interval",
    "rho_high": "high end of its 95 % interval",
}

SAME = "the same at all points"
"""The reason of a measure on which nothing has an effect."""


@dataclass(frozen=True)
class _Sample:
    """The points of some combinations of the factors, in their order."""

    parts: np.ndarray
    """Shape (points, parameters), 0 to 1."""
    values: np.ndarray
    """Of a measure, one for each point."""
    strata: np.ndarray
    """The combination of each point."""


def sensitivity(
    scenario: Scenario, points: pl.DataFrame, measures: pl.DataFrame, by: Sequence[str] | None = None
) -> pl.DataFrame:
    """A row for each group of points, measure and parameter, the weightiest parameter first: columns of `by`,
    `measure`, `parameter`, `points`, those that `COLUMNS` has for the design, and `reason`.

    `by`: factors whose levels make the groups; without it, and always with Morris and Sobol, those that have
    several. Points without a value are left out of a design that fills the space; of the others a
    combination is left out unless all of its points are there. Where points are too few, or a measure is the
    same everywhere, the numbers are null, and `reason` says why; it is null elsewhere.

    Raises MissingCapability without SALib where that is needed, and ValueError when there is no design.
    """
    design = scenario.study.design if scenario.study is not None else None
    if scenario.study is None or design is None or isinstance(design, Optimise):
        raise ValueError(f"{scenario.name} has no design that samples")
    if by is None or not isinstance(design, LatinHypercube):
        by = [factor for factor, levels in scenario.study.factors.items() if len(levels) > 1]
    each = design_points(scenario, points, measures)
    groups = [((), each)] if not by else list(each.group_by(*by, maintain_order=True))
    names = [name for name in scenario.measure if name in each.columns]
    rows: list[Mapping[str, object]] = []
    for key, group in groups:
        levels = dict(zip(by, key, strict=True))
        for name in names:
            sample = _sample(design, group, name)
            found = _indices(design, sample)
            ranked = sorted(found, key=lambda row: -float(row[COLUMNS[design.kind][0]] or 0.0))
            rows += [levels | {"measure": name, "points": len(sample.values)} | row for row in ranked]
    schema: dict[str, type[pl.DataType]] = {
        **dict.fromkeys([*by, "measure", "parameter"], pl.String),
        "points": pl.UInt32,
        **dict.fromkeys(COLUMNS[design.kind], pl.Float64),
        "reason": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def design_points(scenario: Scenario, points: pl.DataFrame, measures: pl.DataFrame) -> pl.DataFrame:
    """The points of a study with a design: the names of their levels, each parameter as the part 0 to 1 of
    its range, and a column for each measure with its mean over the replicates."""
    assert scenario.study is not None
    assert scenario.study.design is not None
    parts = [
        pl.Series(name, [given.part(level) for level in points.get_column(name)], dtype=pl.Float64)
        for name, given in scenario.study.design.parameters.items()
    ]
    means = measures.group_by("point", "measure").agg(pl.col("value").mean())
    wide = means.pivot("measure", index="point", values="value")
    return points.with_columns(parts).join(wide, on="point", how="left", maintain_order="left").sort("point")


def _sample(design: LatinHypercube | Morris | Sobol, group: pl.DataFrame, measure: str) -> _Sample:
    """The points of a group that can be used."""
    size = _size(design)
    used = group.with_columns(stratum=pl.col("point") // size)
    if isinstance(design, LatinHypercube):
        used = used.drop_nulls(measure)
    else:
        whole = pl.col(measure).is_not_null().all().over("stratum")
        used = used.filter(whole & (pl.len().over("stratum") == size))
    return _Sample(
        parts=used.select(list(design.parameters)).to_numpy(),
        values=used.get_column(measure).to_numpy(),
        strata=used.get_column("stratum").to_numpy(),
    )


def _size(design: LatinHypercube | Morris | Sobol) -> int:
    """Points of each combination of the factors."""
    count = len(design.parameters)
    match design:
        case LatinHypercube():
            return design.points
        case Morris():
            return design.trajectories * (count + 1)
        case Sobol():
            return design.base * (count + 2)


def _indices(design: LatinHypercube | Morris | Sobol, sample: _Sample) -> list[dict[str, float | str | None]]:
    names = list(design.parameters)
    columns = COLUMNS[design.kind]
    if (reason := _nothing_to_tell(design, sample)) is not None:
        return [{"parameter": name, **dict.fromkeys(columns), "reason": reason} for name in names]
    if isinstance(design, LatinHypercube):
        return list(_of_ranks(names, sample))
    found = _of_morris(design, sample) if isinstance(design, Morris) else _of_sobol(design, sample)
    return [
        {"parameter": name, **dict(zip(columns, map(_finite, row), strict=True)), "reason": None}
        for name, row in zip(names, found, strict=True)
    ]


def _nothing_to_tell(design: LatinHypercube | Morris | Sobol, sample: _Sample) -> str | None:
    """Why the sample says nothing of the parameters; None where it does."""
    count = len(sample.values)
    if isinstance(design, LatinHypercube):
        if count < 2 * SLICES:
            return f"{2 * SLICES} points with a value are needed (got {count})"
        if np.unique(sample.strata, return_counts=True)[1].max() == 1:
            return "ranks are those within a combination of the factors, and each has one point with a value"
    elif count == 0:
        return "no combination of the factors has a value at all of its points"
    if np.ptp(sample.values) == 0.0:
        return SAME
    if isinstance(design, LatinHypercube) and not _varies(sample):
        return f"{SAME} of a combination"
    return None


def _varies(sample: _Sample) -> bool:
    """Whether the measure differs within any combination of the factors."""
    return bool(within_strata(sample.values.tolist(), sample.strata.tolist()).any())


def _finite(value: float) -> float | None:
    """Null for what is not a number, such as an interval from draws that are all the same."""
    return float(value) if np.isfinite(value) else None


def _of_ranks(names: Sequence[str], sample: _Sample) -> Iterator[dict[str, float | str | None]]:
    values, strata = sample.values.tolist(), sample.strata.tolist()
    chance = pawn_of_chance(values, strata)
    for place, name in enumerate(names):
        parts = sample.parts[:, place].tolist()
        rank = rank_correlation(parts, values, strata)
        yield {
            "parameter": name,
            "pawn": pawn(parts, values, strata),
            "pawn_chance": chance,
            "rho": _finite(rank.rho),
            "rho_low": _finite(rank.low),
            "rho_high": _finite(rank.high),
            "reason": None,
        }


def _of_morris(design: Morris, sample: _Sample) -> np.ndarray:
    """Rows of `COLUMNS`. Source: Morris 1991; Campolongo 2007.

    SALib takes a seed of 0 for none."""
    analyze = salib("SALib.analyze.morris").analyze
    found = analyze(unit_problem(design), sample.parts, sample.values, seed=design.seed + 1)
    return np.column_stack([found[key] for key in ("mu_star", "mu_star_conf", "mu", "sigma")])


def _of_sobol(design: Sobol, sample: _Sample) -> np.ndarray:
    """Rows of `COLUMNS`. Source: Saltelli 2010.

    SALib takes a seed of 0 for none."""
    analyze = salib("SALib.analyze.sobol").analyze
    found = analyze(unit_problem(design), sample.values, calc_second_order=False, seed=design.seed + 1)
    return np.column_stack([found[key] for key in ("ST", "ST_conf", "S1", "S1_conf")])
