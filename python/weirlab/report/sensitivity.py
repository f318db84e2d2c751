"""Sensitivity of a study with a design: tables, plots and values for programs."""

from __future__ import annotations

from typing import Any

import polars as pl

from weirlab.analysis.sensitivity import COLUMNS, MEANINGS, sensitivity
from weirlab.errors import MissingCapability
from weirlab.plots.sensitivity import sensitivity_plots
from weirlab.plots.style import Plot
from weirlab.report.optimum import optimum_section
from weirlab.report.page import Block, Column, Details, Section, Table, Text, figure, heads, number
from weirlab.scenario.plan.combinations import short_names
from weirlab.scenario.plan.design import LatinHypercube, Optimise
from weirlab.studies import Study

_TITLES = {
    "mu_star": "µ*",
    "mu_star_half": "±",
    "mu": "µ",
    "sigma": "σ",
    "s1": "S1",
    "s1_half": "±",
    "st": "ST",
    "st_half": "±",
    "pawn": "PAWN",
    "pawn_chance": "chance",
    "rho": "ρ",
    "rho_low": "from",
    "rho_high": "to",
}
_INTRODUCTIONS = {
    "morris": "Elementary effects (Morris): the whole range of a parameter changes the measure by µ* on "
    "average; a σ as large as µ* says that the effect is not linear, or depends on other parameters.",
    "sobol": "Sobol indices: S1 is the part of the variance over the whole space that a parameter causes "
    "alone, ST what it causes together with others; all ST together exceed 1 by what several cause jointly.",
    "latin-hypercube": "PAWN is how much the distribution of the measure changes along the range of a "
    "parameter, whatever the shape of the effect; ρ is Spearman's rank correlation, whose sign gives the "
    "direction. Both see ranks within each combination of the factors.",
}


def sensitivity_of(study: Study) -> pl.DataFrame | None:
    """What `weirlab.analysis.sensitivity` finds in a study; None without a design, or without a point. A
    design that fills the space is looked at as a whole, the others by combination of the factors."""
    plan = study.section
    if plan.design is None or isinstance(plan.design, Optimise):
        return None
    if study.points.is_empty() or study.measures.is_empty():
        return None
    by: list[str] | None = [] if isinstance(plan.design, LatinHypercube) else None
    return sensitivity(study.scenario, study.points, study.measures, by)


def sensitivity_table(study: Study, table: pl.DataFrame) -> Table:
    """The parameters of a study with a design, the weightiest first, for each measure."""
    kind, by = _kind(study), _by(study, table)
    columns = COLUMNS[kind]
    units = dict(study.measures.select("measure", "unit").unique().iter_rows())
    shown = table.drop_nulls(columns[0])
    parameters = short_names(shown["parameter"].unique().to_list())
    reported = [] if shown.is_empty() else [f"{_TITLES[name]}: {MEANINGS[name]}" for name in columns]
    reported += without_weights(table)
    return Table(
        "Parameters by their weight",
        [
            *(Column(name, numeric=False) for name in short_names(by).values()),
            *heads("measure: | parameter:"),
            *(Column(_TITLES[column]) for column in columns),
        ],
        [
            [
                *(str(row[factor]) for factor in by),
                row["measure"]
                if units[row["measure"]] == "1"
                else f"{row['measure']} [{units[row['measure']]}]",
                parameters[row["parameter"]],
                *("–" if row[column] is None else number(row[column], 3) for column in columns),
            ]
            for row in shown.iter_rows(named=True)
        ],
        note="; ".join(reported) + ".",
        where="tables/sensitivity.parquet",
    )


def without_weights(table: pl.DataFrame) -> list[str]:
    """The measures for which no parameter has a weight, by reason."""
    never = table.filter(pl.col("reason").is_not_null().all().over("measure"))
    return [
        f"no weights for {', '.join(group.get_column('measure').unique(maintain_order=True))}: {reason}"
        for (reason,), group in never.group_by("reason", maintain_order=True)
    ]


def sensitivity_sections(study: Study, found: pl.DataFrame | None = None) -> tuple[list[Section], list[Plot]]:
    """The sections of a report, and their plots; none where there is nothing to analyse. `found` is what
    `sensitivity_of` found, where that is known."""
    try:
        table = sensitivity_of(study) if found is None else found
    except MissingCapability as error:
        return [Section("Sensitivity", [Text(str(error))])], []
    if table is None or table.is_empty():
        return [], []
    optimum, drawn = optimum_section(study, table)
    section, plots = _section(study, table)
    return [section, *([] if optimum is None else [optimum])], [*plots, *drawn]


def _section(study: Study, table: pl.DataFrame) -> tuple[Section, list[Plot]]:
    kind = _kind(study)
    plots = sensitivity_plots(table, kind, _by(study, table))
    blocks: list[Block] = [Text(_INTRODUCTIONS[kind]), *(figure(plot) for plot in plots)]
    full = sensitivity_table(study, table)
    blocks.append(full if len(full.rows) <= 40 else Details(f"All numbers: {len(full.rows)} rows", [full]))
    return Section("Sensitivity", blocks), plots


def _kind(study: Study) -> Any:
    assert study.section.design is not None
    return study.section.design.kind


def _by(study: Study, table: pl.DataFrame) -> list[str]:
    """The factors whose levels the table distinguishes."""
    return [factor for factor in study.section.factors if factor in table.columns]
