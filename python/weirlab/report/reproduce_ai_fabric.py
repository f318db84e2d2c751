"""What the report of the tests of AI fabrics shows besides claims: every value, by test."""

from __future__ import annotations

from typing import Any

from weirlab.report.page import Column, Section, Table, number
from weirlab.reproductions import Findings


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Any]]:
    """The tables of tests before the claims."""
    return [Section("Tests", [_table(findings)])], [], []


def _table(findings: Findings) -> Table:
    columns = [
        Column("test", numeric=False),
        Column("condition", numeric=False),
        Column("measure", numeric=False),
    ]
    rows = [
        [
            row["id"],
            row["condition"],
            row["measure"],
            number(row["mean"], 4),
            row["unit"],
            number(row["cv"], 2),
        ]
        for row in findings.tables["tests"].iter_rows(named=True)
    ]
    return Table(
        "What each test reports",
        [*columns, Column("mean"), Column("unit", numeric=False), Column("coefficient of variation")],
        rows,
        note="A dash: a run gave no answer, or there is one run.",
    )
