"""The report of a reproduction: published beside ours, and a verdict for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weirlab.plots.style import Plot
from weirlab.report import reproduce_bcn, reproduce_bulk, reproduce_mdr, reproduce_rapid, reproduce_zrl
from weirlab.report.page import (
    Block,
    Callout,
    Card,
    Column,
    Numbers,
    Page,
    Section,
    Table,
    Text,
    Tone,
    number,
)
from weirlab.report.shared import footer, provenance_section, status_callouts
from weirlab.reproduce import Findings, Row, Verdict
from weirlab.results import Manifest

__all__ = ["claim_table", "reproduce_page", "row_table"]

_TONES: dict[Verdict, Tone] = {
    Verdict.HOLDS: "good",
    Verdict.KNOWN: "middling",
    Verdict.MISFIT: "bad",
    Verdict.GONE: "bad",
    Verdict.MISSING: "bad",
}


def reproduce_page(findings: Findings, manifest: Manifest) -> tuple[Page, list[Plot]]:
    """The page, and its plots: those of the study, see `_MORE`."""
    before, after, plots = _MORE.get(findings.name, _nothing)(findings)
    verdicts = findings.verdicts
    count = {verdict: verdicts.count(verdict) for verdict in Verdict}
    failed = sum(verdict.fails for verdict in verdicts)
    lead: list[Block] = [
        *status_callouts(manifest),
        Callout(
            "Reproduced" if findings.holds else "Not reproduced",
            findings.summary,
            "good" if findings.holds else "bad",
        ),
        Numbers(
            [
                Card("Hold", str(count[Verdict.HOLDS]), f"of {len(verdicts)}", tone="good"),
                Card(
                    "Known misfits", str(count[Verdict.KNOWN]), "what is known of them below", tone="middling"
                ),
                Card("Fail", str(failed), "misfits, gone, missing", tone="bad" if failed else "good"),
            ]
        ),
    ]
    known = [
        [row.name, row.known.reason, f"{number(row.known.low)} … {number(row.known.high)}"]
        for row in findings.rows
        if row.known is not None
    ] + [[claim.statement, claim.known, ""] for claim in findings.claims if claim.known]
    sections = [*before]
    if findings.claims:
        sections.append(Section("Claims", [claim_table(findings)]))
    sections += [*after, Section("Numbers", [row_table(findings)])]
    if known:
        columns = [
            Column("row", numeric=False),
            Column("what is known of it", numeric=False),
            Column("band of ours"),
        ]
        caption = "What is different, and what is known of it"
        sections.append(Section("Known misfits", [Table(caption, columns, known)]))
    if findings.remarks:
        sections.append(Section("Remarks", [Text(remark) for remark in findings.remarks]))
    sections.append(provenance_section(manifest, manifest.provenance))
    page = Page(
        title=findings.title,
        kind="Reproduction",
        subtitle=f"{findings.source}{' — quick run' if findings.quick else ''}",
        lead=lead,
        sections=sections,
        footer=footer(manifest.provenance),
    )
    return page, plots


def _nothing(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:  # noqa: ARG001 (of `_MORE`)
    return [], [], []


_MORE: Mapping[str, Callable[[Findings], tuple[list[Section], list[Section], list[Plot]]]] = {
    "bcn": reproduce_bcn.sections,
    "bulk": reproduce_bulk.sections,
    "mdr": reproduce_mdr.sections,
    "rapid": reproduce_rapid.sections,
    "zrl": reproduce_zrl.sections,
}
"""What a study shows besides verdicts: sections before and after its claims, and plots."""


def row_table(findings: Findings) -> Table:
    """Published numbers beside ours."""
    return Table(
        "Published and ours",
        [
            Column("number", numeric=False),
            Column("unit", numeric=False),
            Column("published"),
            Column("ours"),
            Column("difference"),
            Column("tolerance"),
            Column("verdict", numeric=False),
        ],
        [
            [
                row.name,
                row.unit,
                number(row.published),
                number(row.ours),
                _difference(row),
                _tolerance(row),
                row.verdict,
            ]
            for row in findings.rows
        ],
        tones=[_TONES[row.verdict] for row in findings.rows],
        most=500,
        note="wide: the tolerance is larger than the published number, so that 0 would hold, too."
        if any(row.wide for row in findings.rows)
        else "",
    )


def claim_table(findings: Findings) -> Table:
    """Statements, what we found, and the verdicts."""
    return Table(
        "Claims",
        [
            Column("statement", numeric=False),
            Column("published numbers", numeric=False),
            Column("ours", numeric=False),
            Column("verdict", numeric=False),
        ],
        [
            [claim.statement, claim.published or "–", claim.evidence, claim.verdict + _ABOUT[claim.about]]
            for claim in findings.claims
        ],
        tones=[_TONES[claim.verdict] for claim in findings.claims],
    )


_ABOUT = {"published": "", "identity": " (of ours)", "own": " (ours alone)"}
"""What stands behind the verdict of a claim, by what it is about."""


def _tolerance(row: Row) -> str:
    wide = "wide: " if row.wide else ""
    if row.tolerance_below is None:
        return f"{wide}± {number(row.allowed, 3)}"
    return f"{wide}+{number(row.allowed, 3)} −{number(row.allowed_below, 3)}"


def _difference(row: Row) -> str:
    """The difference with its sign, and its share of the published number."""
    if row.difference is None:
        return "–"
    sign = "+" if row.difference >= 0 else "−"
    text = f"{sign}{number(abs(row.difference), 3)}"
    return text if row.published == 0 else f"{text} ({sign}{abs(row.difference / row.published):.1%})"
