"""The report of a reproduction: published compared with ours, and a verdict for each."""

from __future__ import annotations

from collections.abc import Mapping

from weirlab.errors import InputError
from weirlab.plots.style import Plot
from weirlab.report.page import Block, Callout, Card, Numbers, Page, Section, Table, Text, Tone, heads, number
from weirlab.report.shared import result_page, section
from weirlab.reproductions import Findings, KnownMisfit, Row, Tally, Verdict, find
from weirlab.reproductions.verdicts import About
from weirlab.results import Manifest

_TONES: dict[Verdict, Tone] = {
    Verdict.HOLDS: "good",
    Verdict.UNDECIDED: "middling",
    Verdict.KNOWN: "middling",
    Verdict.MISFIT: "bad",
    Verdict.GONE: "bad",
    Verdict.MISSING: "bad",
}


def _shown_by_study(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """What the page of the study has besides verdicts; nothing where the study is no longer there."""
    try:
        study = find(findings.name)
    except InputError:
        return [], [], []
    shown: tuple[list[Section], list[Section], list[Plot]] = study.sections(findings)
    return shown


def reproduce_page(findings: Findings, manifest: Manifest) -> tuple[Page, list[Plot]]:
    """The page, and its plots: those of the study."""
    before, after, plots = _shown_by_study(findings)
    verdicts = findings.verdicts
    count = {verdict: verdicts.count(verdict) for verdict in Verdict}
    failed = sum(verdict.fails for verdict in verdicts)
    lead: list[Block] = [
        Callout(
            "Nothing unexpected" if findings.holds else "Not as it was known",
            findings.summary,
            "good" if findings.holds else "bad",
        ),
        Numbers(
            [
                *(_card(tally) for tally in findings.tallies),
                Card(
                    "Known misfits", str(count[Verdict.KNOWN]), "what is known of them below", tone="middling"
                ),
                Card("Fail", str(failed), "misfits, gone, missing", tone="bad" if failed else "good"),
            ]
        ),
    ]
    known = [
        [row.name, row.known.reason, _band(row.known)] for row in findings.rows if row.known is not None
    ] + [[claim.statement, claim.known, _band(claim.band)] for claim in findings.claims if claim.known]
    constants: list[Block] = [_CONSTANTS, constant_table(findings)] if findings.constants else []
    columns = heads("row: | what is known of it: | band of ours")
    misfits = Table("What is different, and what is known of it", columns, known)
    page = result_page(
        "Reproduction",
        manifest,
        title=findings.title,
        subtitle=f"{findings.source}{' — quick run' if findings.quick else ''}",
        lead=lead,
        sections=[
            *before,
            section("Claims", claim_table(findings) if findings.claims else None),
            *after,
            section("Numbers", row_table(findings)),
            section("What a constant would score", *constants),
            section("Known misfits", misfits if known else None),
            section("Remarks", *map(Text, findings.remarks)),
        ],
        story=_story(findings),
    )
    return page, plots


_CONSTANTS = Text(
    "A row says something when not everything would pass it. For each group of rows: the one number that "
    "counts as equal in most of them, with the same tolerances, and how many those are. A row that it passes "
    "does not discriminate, as one does not that another straw man passes."
)


def _story(findings: Findings) -> list[str]:
    """The verdict, and how many numbers and claims stand behind it."""
    verdicts = findings.verdicts
    failed = sum(verdict.fails for verdict in verdicts)
    known, undecided = verdicts.count(Verdict.KNOWN), verdicts.count(Verdict.UNDECIDED)
    whose = f"{len(verdicts)} numbers and claims of {findings.title}"
    said = [f"{verdicts.count(Verdict.HOLDS)} of {whose} hold."]
    if undecided:
        said.append(
            f"{undecided} {'is' if undecided == 1 else 'are'} undecided: the published numbers of all "
            "rivals, such as other controllers, lie within the tolerance, too."
        )
    if known:
        said.append(f"{known} {'differs' if known == 1 else 'differ'} as is known, for reasons given below.")
    otherwise = " otherwise" if known else ""
    said.append(
        f"{failed} {'differs' if failed == 1 else 'differ'}{otherwise}."
        if failed
        else f"None differs{otherwise}."
    )
    return said


def _band(known: KnownMisfit | None) -> str:
    return "" if known is None else f"{number(known.low)} … {number(known.high)}"


def _card(tally: Tally) -> Card:
    detail = ", ".join(filter(None, [f"of {tally.all} hold", tally.detail]))
    return Card(tally.kind.capitalize(), str(tally.hold), detail, tone="good")


def row_table(findings: Findings) -> Table:
    """Published numbers compared with ours."""
    return Table.of(
        "Published and ours",
        findings.rows,
        {
            "number:": "name",
            "verdict:": lambda row: row.verdict + _ABOUT[row.about] + (" (fitted)" if row.fitted else ""),
            "published": lambda row: f"{number(row.published)} {row.unit}".rstrip(),
            "ours": _ours,
            "difference": _difference,
            "tolerance": _tolerance,
            "what passes, too:": lambda row: findings.straw(row) or "–",
        },
        tones=[_TONES[row.verdict] for row in findings.rows],
        most=500,
        note="± behind our number: its standard error. Tolerance: 99 % of the difference of two such "
        "numbers, by the errors of both, and half a unit of the last printed digit. What passes, too: a "
        "straw man whose number lies within the tolerance. Fitted: something of ours was chosen so that this "
        "number comes out, and the row is no validation of it. Undecided: the published numbers of all "
        "rivals, such as other controllers, lie within the tolerance, too.",
    )


def constant_table(findings: Findings) -> Table:
    """What the best constant scores in each group of rows."""
    return Table.of(
        "The best constant of each group",
        findings.constants,
        {
            "group:": "group",
            "constant": lambda one: f"{number(one.value, 3)} {one.unit or ''}".rstrip(),
            "rows": ("rows", str),
            "pass with it": lambda one: str(max(1, len(one.passed))),
            "pass with ours": ("ours", str),
        },
    )


def claim_table(findings: Findings) -> Table:
    """Statements, what we found, and the verdicts."""
    return Table.of(
        "Claims",
        findings.claims,
        {
            "statement:": "statement",
            "published numbers:": lambda claim: claim.published or "–",
            "ours:": "evidence",
            "true of, too:": lambda claim: claim.straw or "–",
            "verdict:": lambda claim: claim.verdict + _ABOUT[claim.about],
        },
        tones=[_TONES[claim.verdict] for claim in findings.claims],
    )


_ABOUT: Mapping[About, str] = {
    "published": "",
    "again": " (judged again)",
    "identity": " (of ours)",
    "own": " (ours alone)",
}
"""What stands behind a verdict, by what it is about."""


def _ours(row: Row) -> str:
    text = number(row.ours)
    return f"{text} ± {number(row.error, 2)}" if row.error else text


def _tolerance(row: Row) -> str:
    if row.tolerance_below is None or number(row.tolerance, 3) == number(row.tolerance_below, 3):
        return f"± {number(row.tolerance, 3)}"
    return f"+{number(row.tolerance, 3)} −{number(row.tolerance_below, 3)}"


def _difference(row: Row) -> str:
    """The difference with its sign, and its share of the published number."""
    if row.difference is None:
        return "–"
    sign = "+" if row.difference >= 0 else "−"
    text = f"{sign}{number(abs(row.difference), 3)}"
    return text if row.published == 0 else f"{text} ({sign}{abs(row.difference / row.published):.1%})"
