"""Where the optimum of a space of parameters lies, for each class of traffic of a study of hotspots.

A point is *fed* when the hot output carries at least 90 % of what it serves: aggregate throughput hides a
starved one. It is *optimal* when it is fed and its aggregate throughput is within 1 % of what the traffic
allows: the theoretical maximum, or the best of the fed points of the same traffic where bursts offered less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from weirlab.analysis.hotspots import HotspotFacts, hotspot_facts, utilisation_measures
from weirlab.analysis.sensitivity import design_points
from weirlab.scenario import Scenario
from weirlab.scenario.plan import Study
from weirlab.scenario.plan.design import LatinHypercube
from weirlab.stats.robust import mean_share_interval
from weirlab.stats.sensitivity import RankCorrelation, rank_correlation

FED = 0.9
"""Least share of its service that the hot output carries."""
WITHIN = 0.01
"""How far from the best an optimal point may be."""
BEST = 0.1
"""Part of all points that counts as the best, and those as good as the last of them."""
SLICES = 10
"""Equal parts of a range."""


@dataclass(frozen=True)
class Optimum:
    """What a study found."""

    throughput: str
    """The measure that is the aggregate throughput."""
    hot: str
    """The measure that shows how busy the hot output is."""
    traffic: tuple[str, ...]
    """The factors that make classes of traffic; over the others the classes are taken together."""
    points: pl.DataFrame
    """Those of `design_points`, with `stratum`, `fed`, `optimal` and `best` (1 or 0 each)."""
    combinations: pl.DataFrame
    """A row for each combination of the factors: its levels, `points`, `fed`, `optimal` (shares),
    `throughput_max`, `sources`, `service`, `severity`, `demand` ((HSD/mu)^2, in flows and line rates)."""
    regions: pl.DataFrame
    """A row for each class of traffic and parameter: the levels, `points`, `fed`, `optimal` (shares), `least`
    and `greatest` (of the optimal share over slices of the parameter), and of the best tenth `low`, `middle`,
    `high` (quantiles 10 %, 50 %, 90 %, as parts of the range)."""
    agreement: RankCorrelation
    """Of the demand of the analytical ranking with the share of points that are not optimal, over the
    combinations."""

    def slices(self, parameter: str, by: str | None = None) -> pl.DataFrame:
        """The share of optimal points along the range of a parameter: columns `group`, `part` (middle of the
        slice), `optimal`, `points`; a group for each level of the factor `by`."""
        place = (pl.col(parameter) * SLICES).floor().clip(0, SLICES - 1)
        return (
            self.points.with_columns(group=pl.col(by) if by else pl.lit(""), part=(place + 0.5) / SLICES)
            .group_by("group", "part", maintain_order=True)
            .agg(optimal=pl.col("optimal").mean(), points=pl.len())
            .sort("group", "part", maintain_order=True)
        )

    def by_level(self) -> pl.DataFrame:
        """For each level of each factor the mean of the share of optimal points over its combinations, with
        its 95 % interval (`mean_share_interval`): columns `factor`, `level`, `combinations`, `optimal`,
        `low`, `high`, `fed`, `demand` (median)."""
        rows = []
        own = {"points", "fed", "optimal", "throughput_max", "sources", "service", "severity", "demand"}
        for factor in [name for name in self.combinations.columns if name not in own]:
            for (level,), group in self.combinations.group_by(factor, maintain_order=True):
                shares = group.get_column("optimal").to_list()
                low, high = mean_share_interval(shares, group.get_column("points").to_list())
                rows.append(
                    {
                        "factor": factor,
                        "level": level,
                        "combinations": group.height,
                        "optimal": group.get_column("optimal").mean(),
                        "low": low,
                        "high": high,
                        "fed": group.get_column("fed").mean(),
                        "demand": group.get_column("demand").median(),
                    }
                )
        return pl.DataFrame(rows)


def optimum_of(scenario: Scenario, points: pl.DataFrame, measures: pl.DataFrame) -> Optimum | None:
    """The optimum of a study with a design that fills the space, one hotspot, and a utilisation both of
    several outputs and of the hot one; None of any other study."""
    plan = scenario.study
    if plan is None or not isinstance(plan.design, LatinHypercube) or len(scenario.hotspots) != 1:
        return None
    throughput, hot = utilisation_measures(scenario)
    if throughput is None or hot is None:
        return None
    each = design_points(scenario, points, measures)
    if throughput not in each.columns or hot not in each.columns:
        return None
    each = each.with_columns(stratum=(pl.col("point") // plan.design.points).cast(pl.Int64))
    each = each.drop_nulls([throughput, hot])
    if each.is_empty():
        return None
    facts = dict(_facts(scenario, plan, each.get_column("stratum")))
    known = pl.DataFrame(
        [
            {
                "stratum": stratum,
                "throughput_max": fact.throughput_max,
                "sources": fact.sources,
                "service": fact.service,
                "severity": fact.severity,
                "demand": (fact.sources / fact.service) ** 2,
            }
            for stratum, fact in facts.items()
        ],
        schema_overrides={"stratum": pl.Int64},
    )
    each = _judged(each.join(known, on="stratum", maintain_order="left"), throughput, hot)
    factors = [factor for factor, levels in plan.factors.items() if len(levels) > 1]
    traffic = tuple(
        factor
        for factor in factors
        if any(
            path.split(".")[0] in ("hotspots", "traffic")
            for level in plan.factors[factor]
            for path in level.assignments
        )
    )
    combinations = each.group_by("stratum", maintain_order=True).agg(
        *(pl.col(factor).first() for factor in factors),
        pl.len().alias("points"),
        pl.col("fed").mean(),
        pl.col("optimal").mean(),
        *(pl.col(name).first() for name in ("throughput_max", "sources", "service", "severity", "demand")),
    )
    agreement = RankCorrelation(float("nan"), float("nan"), float("nan"))
    if combinations.height >= 4:
        misses = (1.0 - combinations.get_column("optimal")).to_list()
        agreement = rank_correlation(combinations.get_column("demand").to_list(), misses)
    return Optimum(
        throughput=throughput,
        hot=hot,
        traffic=traffic,
        points=each,
        combinations=combinations.drop("stratum"),
        regions=_regions(each, traffic, list(plan.design.parameters)),
        agreement=agreement,
    )


def _facts(scenario: Scenario, plan: Study, strata: pl.Series) -> Iterator[tuple[int, HotspotFacts]]:
    """The hotspot of each of some combinations of the factors, by the place among those of the study."""
    wanted, base = set(strata), scenario.assign({"study": None})
    for stratum, (_, _, levels) in enumerate(plan.combinations()):
        if stratum in wanted:
            changes = {path: value for level in levels for path, value in level.assignments.items()}
            (fact,) = hotspot_facts(base.assign(changes))
            yield stratum, fact


def _judged(each: pl.DataFrame, throughput: str, hot: str) -> pl.DataFrame:
    fed = pl.col(hot) >= FED * pl.col("service")
    best_fed = pl.when(fed).then(pl.col(throughput)).max().over("stratum")
    each = each.with_columns(fed=fed, possible=pl.min_horizontal(pl.col("throughput_max"), best_fed))
    reached = pl.when("fed").then(pl.min_horizontal(pl.col(throughput), pl.col("possible"))).otherwise(-1.0)
    each = each.with_columns(reached=reached)
    place = pl.col("reached").rank("min", descending=True).over("stratum")
    wanted = (BEST * pl.len().over("stratum")).ceil()
    last = pl.when(place <= wanted).then(pl.col("reached")).min().over("stratum")
    enough = pl.col("possible") * (1 - WITHIN)
    return each.with_columns(
        pl.col("fed").cast(pl.Float64),
        optimal=(pl.col("fed") & (pl.col(throughput) >= enough).fill_null(value=False)).cast(pl.Float64),
        best=(pl.col("fed") & (pl.col("reached") >= last)).cast(pl.Float64),
    ).drop("possible", "reached")


def _regions(each: pl.DataFrame, traffic: tuple[str, ...], parameters: list[str]) -> pl.DataFrame:
    rows: list[Mapping[str, object]] = []
    groups = each.group_by(*traffic, maintain_order=True) if traffic else [((), each)]
    for key, group in groups:
        best = group.filter(pl.col("best") == 1.0)
        for parameter in parameters:
            slices = group.group_by((pl.col(parameter) * SLICES).floor().clip(0, SLICES - 1)).agg(
                pl.col("optimal").mean()
            )
            ends = [best.get_column(parameter).quantile(q, "linear") for q in (0.1, 0.5, 0.9)]
            rows.append(
                {
                    **dict(zip(traffic, key, strict=True)),
                    "parameter": parameter,
                    "points": group.height,
                    "fed": group.get_column("fed").mean(),
                    "optimal": group.get_column("optimal").mean(),
                    "least": slices.get_column("optimal").min(),
                    "greatest": slices.get_column("optimal").max(),
                    **dict(zip(("low", "middle", "high"), ends, strict=True)),
                }
            )
    return pl.DataFrame(rows)
