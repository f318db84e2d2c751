"""`weir compare`: what changed from one result to others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli.shared import JsonFlag, conclude, print_json, tell
from weirlab.cli.tables import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.comparisons import Compared, Condition, Difference, Judgement

    Change = tuple[Compared, Difference]
    Judged = tuple[Condition, Compared, Difference, Judgement]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR DIR...",
            help="Directories of results of one kind: runs, studies, searches or campaigns. Each is compared "
            "with the first.",
        ),
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit with 1 if this holds with 95 % confidence: 'mean delay > +5 %' for a change, "
            "'loss > 0.1 %' for a value. Repeatable.",
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Also write comparison.html into the first directory.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the conditions as JUnit XML."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare results of one kind: the change of each quantity with its interval (seed by seed if the seeds
    are the same), and the differences of scenarios, versions and machines.

    \b
    Examples:
      weir compare results/before results/after
      weir compare results/before results/after \\
          --fail-if 'mean delay > +5 %' --junit delay.xml
      weir compare results/reno results/cubic results/bbr --report
    """
    from weirlab.comparisons import compared, condition, settings, unmatched
    from weirlab.errors import InputError
    from weirlab.report.compare import (
        changes,
        comparison_sentences,
        difference_document,
        difference_table,
        setting_table,
    )

    if len(directories) < 2:
        raise InputError(f"{directories[0]}: name two results or more")
    conditions = [condition(text) for text in fail_if or []]
    results = compared(directories)
    found = changes(results)
    if missing := unmatched(conditions, [each for _, each in found]):
        raise InputError(missing)
    judged: list[Judged] = [
        (each, other, one, each.judged(one))
        for each in conditions
        for other, one in found
        if each.applies(one)
    ]
    other = settings(results)
    page = None
    if report:
        from weirlab.report import write_comparison

        page = write_comparison(directories).page
    if junit is not None:
        from weirlab.results import write_text

        write_text(junit, _junit(judged))
    if as_json:
        print_json(
            {
                "results": [{"name": each.name, "directory": str(each.directory)} for each in results],
                "differences": [difference_document(*each) for each in found],
                "settings": [{"name": e.name, "of": e.of, "values": list(e.values)} for e in other],
                "conditions": [_judged_document(each) for each in judged],
                "report": None if page is None else str(page),
            }
        )
    else:
        if found:
            show(difference_table(results, found))
        many = len(other) if not found and len(other) > _MOST_SETTINGS else 0
        if other and not many:
            show(setting_table(results, other))
        unlike = [f"They differ in {many} settings, which --json lists."] if many else []
        conclude([*_verdicts(judged), *comparison_sentences(results, found), *unlike])
        if page is not None:
            typer.echo(f"Report: {page}")
        if junit is not None:
            tell(f"conditions as JUnit XML in {junit}")
    if any(judgement.verdict == "met" for *_, judgement in judged):
        raise typer.Exit(1)


_MOST_SETTINGS = 20
"""That are shown of results with nothing to compare."""


def _verdicts(judged: Sequence[Judged]) -> list[str]:
    from weirlab.report.compare import values_text

    order = ("met", "undecided", "not met")
    words = {"met": "FAILED", "undecided": "UNDECIDED", "not met": "passed"}
    remedy = {"undecided": "; more replicates would decide it"}
    return [
        f"{words[verdict]}: {each.text}, in {_place(other, one)} ({values_text(one)})"
        f"{remedy.get(verdict, '')}."
        for verdict in order
        for each, other, one, judgement in judged
        if judgement.verdict == verdict
    ]


def _place(other: Compared, found: Difference) -> str:
    return f"{other.name} at {found.after.at}" if found.after.at else other.name


def _judged_document(judged: Judged) -> dict[str, object]:
    each, other, found, judgement = judged
    return {
        "condition": each.text,
        "result": other.name,
        "at": found.after.at,
        "quantity": found.after.name,
        "verdict": judgement.verdict,
        "beyond": judgement.estimate,
    }


def _junit(judged: Sequence[Judged]) -> str:
    """One test case for each condition and result: failed where it is met, skipped where it is undecided."""
    from xml.etree import ElementTree

    from weirlab.report.compare import values_text

    counts = [judgement.verdict for *_, judgement in judged]
    suite = ElementTree.Element(
        "testsuite",
        name="weir compare",
        tests=str(len(counts)),
        failures=str(counts.count("met")),
        skipped=str(counts.count("undecided")),
        errors="0",
    )
    for each, other, found, judgement in judged:
        case = ElementTree.SubElement(suite, "testcase", classname=_place(other, found), name=each.text)
        if judgement.verdict == "met":
            ElementTree.SubElement(case, "failure", message=values_text(found))
        elif judgement.verdict == "undecided":
            message = f"{values_text(found)}; more replicates would decide it"
            ElementTree.SubElement(case, "skipped", message=message)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
