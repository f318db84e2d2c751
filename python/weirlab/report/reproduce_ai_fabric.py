"""What the report of the tests of AI fabrics shows besides claims: every value, by test, and bandwidths."""

from __future__ import annotations

import polars as pl

from weirlab.plots.reproduction import condition_plot
from weirlab.plots.style import Plot
from weirlab.report.page import Block, Column, Section, Table, figure, number
from weirlab.report.shared import display_unit
from weirlab.reproductions import Findings
from weirlab.reproductions.ai_fabric import DRAFTS

_DRAWN = ("bandwidth", "worst")


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """A table of each test before the claims, with a plot of bandwidths where there are some."""
    rows = findings.tables["tests"]
    titles = dict(DRAFTS.select("id", "test").iter_rows())
    blocks: list[Block] = []
    plots = []
    for (id_,), found in rows.group_by("id", maintain_order=True):
        title = ", ".join(filter(None, [str(id_), titles.get(str(id_))]))
        drawn = found.filter(pl.col("measure").is_in(_DRAWN), pl.col("unit") == "bit/s").drop_nulls("mean")
        if drawn.get_column("condition").n_unique() > 1:
            values = drawn.select("condition", "measure", "mean", "deviation").rows()
            name = f"bandwidth-{id_}".replace(".", "-")
            plots.append(condition_plot(values, name=name, title=f"{title}: bus bandwidth", kind="rate"))
            blocks.append(figure(plots[-1]))
        blocks.append(_table(title, found))
    return [Section("Tests", blocks)], [], plots


def _table(title: str, rows: pl.DataFrame) -> Table:
    """A row for each condition, a column for each measure."""
    units = {}
    for measure, unit, most in (
        rows.group_by("measure", "unit", maintain_order=True).agg(pl.col("mean").abs().max()).iter_rows()
    ):
        units[measure] = display_unit(unit, most or 0.0)

    def cell(row: dict[str, object] | None) -> str:
        mean, cv = (None, None) if row is None else (row["mean"], row["cv"])
        if row is None or not isinstance(mean, float):
            return "–"
        text = number(mean * units[row["measure"]][0])
        return f"{text} ± {number(100 * cv, 2)} %" if isinstance(cv, float) else text

    by_condition: dict[str, dict[str, dict[str, object]]] = {}
    for row in rows.iter_rows(named=True):
        by_condition.setdefault(row["condition"], {})[row["measure"]] = row
    return Table(
        title,
        [Column("condition", numeric=False), *(Column(name, unit) for name, (_, unit) in units.items())],
        [
            [condition, *(cell(found.get(measure)) for measure in units)]
            for condition, found in by_condition.items()
        ],
        note="Means; ±: coefficient of variation over seeds. A dash: a run gave no answer."
        if rows.get_column("cv").count()
        else "",
    )
