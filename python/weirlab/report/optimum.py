"""The optimum of a study of hotspots: where it lies, how large it is, and how theory ranks the parameters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import polars as pl

from weirlab.analysis.optimum import BEST, FED, WITHIN, Optimum, optimum_of
from weirlab.analysis.queues import controlled_queues
from weirlab.analysis.ranking import PATHS, rank_parameters, rank_queues
from weirlab.errors import WeirlabError
from weirlab.plots.optimum import optimum_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.shared import display_unit
from weirlab.scenario import Scenario
from weirlab.scenario.plan.combinations import short_names
from weirlab.studies import Study
from weirlab.theory.bcn import BcnPoint

_ENOUGH = 100
"""Points of a combination below which the page warns: a share is then known to ± 10 % at worst."""


def optimum_section(study: Study, influence: pl.DataFrame) -> tuple[page.Section | None, list[Plot]]:
    """The section of a report and its plots, for a study of one hotspot with a design that fills the space;
    `influence` is what `sensitivity_of` found."""
    optimum = optimum_of(study.scenario, study.points, study.measures)
    if optimum is None:
        return None, []
    assert study.section.design is not None
    plots = optimum_plots(optimum, dict(study.section.design.parameters))
    blocks: list[page.Block] = [
        page.Text(
            f"A point is fed when the hot output carries at least {FED:.0%} of what it serves, and optimal "
            f"when it is fed and the aggregate throughput is within {WITHIN:.0%} of what the traffic allows: "
            "the theoretical maximum, or the best of the fed points where bursts offered less."
        ),
        *few_points(optimum),
        _level_table(optimum),
        page.Text(_agreement(optimum)),
    ]
    if (ranking := ranking_table(study.scenario, influence)) is not None:
        blocks.append(ranking)
    blocks += [*(page.figure(plot) for plot in plots), region_table(study, optimum)]
    return page.Section("Where the optimum lies", blocks), plots


def few_points(optimum: Optimum) -> list[page.Callout]:
    """A warning where shares rest on few points."""
    fewest = min(optimum.combinations.get_column("points").to_list())
    if fewest >= _ENOUGH:
        return []
    return [
        page.Callout(
            "Few points",
            f"A combination has {fewest} points: its share of optimal ones is known to "
            f"± {page.percent(1 / fewest**0.5)} at worst (95 %), and its best {BEST:.0%} are "
            f"{math.ceil(BEST * fewest)} of them. Where the optimum lies is a hint until the design has "
            f"{_ENOUGH} points or more.",
        )
    ]


def _agreement(optimum: Optimum) -> str:
    found = optimum.agreement
    if found.rho != found.rho:
        return "Too few combinations to compare with the analytical ranking of traffic."
    return (
        "The analytical ranking orders traffic by its demand on the decrease gain, (HSD/µ)². Its rank "
        f"correlation with the share of points that are not optimal is {found.rho:.2f} ({found.low:.2f} to "
        f"{found.high:.2f}) over {optimum.combinations.height} combinations."
    )


def _level_table(optimum: Optimum) -> page.Table:
    """How large the optimum is, by level of each factor."""
    levels = optimum.by_level()
    names = short_names(levels["factor"].unique(maintain_order=True).to_list())
    return page.Table.of(
        "How much of the space is optimal, by level of each factor",
        levels,
        {
            "factor:": ("factor", names.__getitem__),
            "level:": "level",
            "combinations": ("combinations", str),
            "optimal": ("optimal", page.percent),
            "95 % interval": lambda row: f"{page.percent(row['low'])} to {page.percent(row['high'])}",
            "fed": ("fed", page.percent),
            "demand (HSD/µ)²": ("demand", partial(page.number, digits=3)),
        },
        note="Mean over the combinations with this level, each with all its points; its interval is "
        "Wilson's, with as many points as the scatter of the combinations leaves: of a level without "
        "any optimal point it ends where more points may still find some. Demand: the median.",
    )


def region_table(study: Study, optimum: Optimum) -> page.Table:
    """The region of the best tenth of points of each class of traffic, in the units of the scenario."""
    assert study.section.design is not None
    ranges = study.section.design.parameters
    scales = {name: display_unit(given.between[2], given.between[1]) for name, given in ranges.items()}
    rows = []
    groups: Any = [((), optimum.regions)]
    if optimum.traffic:
        groups = optimum.regions.group_by(*optimum.traffic, maintain_order=True)
    for key, group in groups:
        first = group.row(0, named=True)
        cells = [*map(str, key), str(first["points"]), page.percent(first["optimal"])]
        for row in group.iter_rows(named=True):
            given = ranges[row["parameter"]]
            if row["low"] is None:
                cells.append("–")
                continue
            factor = scales[row["parameter"]][0]
            ends = (float(given.level(row[name]).split(" ")[0]) for name in ("low", "middle", "high"))
            cells.append(" … ".join(page.number(end * factor, 3) for end in ends))
        rows.append(cells)
    return page.Table(
        f"The best {BEST:.0%} of the points of each class of traffic",
        [
            *(page.Column(name, numeric=False) for name in short_names(optimum.traffic).values()),
            *page.heads("points | optimal"),
            *(page.Column(name, scales[path][1]) for path, name in short_names([*ranges]).items()),
        ],
        rows,
        note="Of the fed points those with the greatest throughput, and all that reach as much as the last "
        "of them: their 10 %, 50 % and 90 % quantiles. Of a parameter that does not matter these lie "
        "near 10 %, 50 % and 90 % of the way through its range.",
    )


def ranking_table(scenario: Scenario, influence: pl.DataFrame) -> page.Table | None:
    """The parameters by the weight that theory gives them, and that of the simulation; None where theory
    has no word on the scenario."""
    try:
        (hardest, *_) = rank_queues(scenario, controlled_queues(scenario))
    except WeirlabError:
        return None
    if not isinstance(hardest.queue.point, BcnPoint):
        return None
    known = influence.drop_nulls("pawn")
    measures = known.get_column("measure").unique(maintain_order=True).to_list()
    found = {(row["measure"], row["parameter"]): row for row in known.iter_rows(named=True)}
    places = {
        (measure, row["parameter"]): place
        for measure in measures
        for place, row in enumerate(known.filter(measure=measure).iter_rows(named=True), start=1)
    }
    rows: list[dict[page.Head, str]] = []
    for place, line in enumerate(rank_parameters(hardest.queue.point), start=1):
        cells: dict[page.Head, str] = {
            "parameter:": line.title,
            "rank in theory": str(place),
            "in the demands on Gi / Gd": f"{line.demand_increase:+d} / {line.demand_decrease:+d}",
            "in the delay margin": f"{line.margin:+.2f}",
        }
        for measure in measures:
            text = "–"
            if (row := found.get((measure, PATHS[line.name]))) is not None:
                faint = " (chance)" if row["pawn"] <= row["pawn_chance"] else ""
                text = f"{places[measure, PATHS[line.name]]}: {row['pawn']:.3f}{faint}"
            cells[page.Column(f"rank and PAWN for {measure}")] = text
        rows.append(cells)
    return page.Table.by_head(
        "Parameters: the analytical and the simulated ranking",
        rows,
        note="Theory: elasticities of the demands and of the delay margin, as in 'weir rank'. Simulation: "
        "PAWN indices over all traffic; 'chance' is what a parameter without effect reaches as well.",
    )
