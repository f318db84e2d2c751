"""Reproductions: a verdict for each row, with a small made-up study."""

import math

import polars as pl
import pytest

from weirlab import reproduce
from weirlab.errors import InputError
from weirlab.reproduce import Claim, Effort, Findings, KnownMisfit, Reproduction, Row, Verdict
from weirlab.results import Provenance

BAND = KnownMisfit("their timer was coarser", low=12.0, high=14.0)


def row(ours, *, published=10.0, tolerance=0.5, **more):
    return Row(name="mean", published=published, ours=ours, tolerance=tolerance, unit="s", **more)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (row(10.4), Verdict.HOLDS),
        (row(10.5), Verdict.HOLDS),
        (row(10.6), Verdict.MISFIT),
        (row(9.4), Verdict.MISFIT),
        (row(None), Verdict.MISSING),
        (row(math.nan), Verdict.MISSING),
        (row(13.0, known=BAND), Verdict.KNOWN),
        (row(15.0, known=BAND), Verdict.MISFIT),
        (row(11.0, known=BAND), Verdict.MISFIT),
        (row(10.1, known=BAND), Verdict.GONE),
        (row(None, known=BAND), Verdict.MISSING),
        (row(10.9, tolerance=0.1, relative=True), Verdict.HOLDS),
        (row(11.1, tolerance=0.1, relative=True), Verdict.MISFIT),
        (row(-10.9, published=-10.0, tolerance=0.1, relative=True), Verdict.HOLDS),
        (row(0.3, published=0.1, tolerance=0.2), Verdict.HOLDS),
        (Claim(statement="faster", holds=True, evidence="3 s < 4 s"), Verdict.HOLDS),
        (Claim(statement="faster", holds=False, evidence="4 s"), Verdict.MISFIT),
        (Claim(statement="faster", holds=False, evidence="4 s", known="one CPU"), Verdict.KNOWN),
        (Claim(statement="faster", holds=True, evidence="3 s", known="one CPU"), Verdict.GONE),
    ],
)
def test_every_case_has_its_verdict(made, verdict):
    assert made.verdict is verdict
    assert made.verdict.fails == (verdict not in (Verdict.HOLDS, Verdict.KNOWN))


def made_up(effort: Effort) -> Findings:
    """A study of our own making, with one row of each harmless kind."""
    return Findings(
        name="made-up",
        title="A made-up study",
        source="nobody, nowhere",
        quick=effort.quick,
        rows=[row(10.2), row(13.0, known=BAND)],
        claims=[Claim(statement="longer is longer", holds=True, evidence="2 s > 1 s")],
        remarks=["Made up."],
        tables={"cells": pl.DataFrame({"cell": [1, 2]})},
    )


def findings(*rows, claims=()):
    return Findings(name="x", title="X", source="y", quick=False, rows=rows, claims=claims)


def test_known_misfits_do_not_fail_a_study_and_the_summary_counts_them():
    made = made_up(Effort())
    assert made.holds
    assert made.summary == "made-up: 2 of 3 hold, 1 known misfit: reproduced"


def test_one_failing_row_fails_the_study():
    made = findings(row(10.0), row(13.0, known=BAND), row(10.0, known=BAND), row(None), row(99.0), row(98.0))
    assert not made.holds
    expected = "x: 1 of 6 hold, 1 known misfit, 2 misfits, 1 known misfit gone, 1 missing: NOT reproduced"
    assert made.summary == expected


def test_the_summary_tells_apart_what_holds_without_a_published_number_behind_it():
    claims = [
        Claim(statement="our own goal", holds=True, evidence="1", about="own"),
        Claim(statement="our own goal, missed", holds=False, evidence="1", about="own", known="slow"),
        Claim(statement="books balance", holds=True, evidence="1", about="identity"),
        Claim(statement="published", holds=True, evidence="1"),
    ]
    made = findings(row(10.0), row(12.0, tolerance=10.0), row(0.5, published=0.0), claims=claims)
    assert [each.wide for each in made.rows] == [False, True, False]
    words = "of ours alone, 1 identities of our counters, 1 with a tolerance above the number"
    assert made.summary == f"x: 6 of 7 hold (of them 1 {words}), 1 known misfit: reproduced"
    again = Findings.from_json(made.to_json(), {})
    assert again.summary == made.summary


def test_a_study_that_compared_nothing_has_not_been_reproduced():
    assert not findings().holds


def test_findings_survive_the_way_to_the_disk_and_back(tmp_path):
    made = made_up(Effort(quick=True))
    made.save(tmp_path, Provenance.now().ended())
    loaded = Findings.load(tmp_path)
    assert loaded.rows == list(made.rows)
    assert loaded.claims == list(made.claims)
    assert loaded.summary == made.summary
    assert loaded.tables["cells"].equals(made.tables["cells"])


def test_a_study_is_imported_only_when_it_runs():
    study = Reproduction("A made-up study", "nobody", f"{made_up.__module__}:made_up")
    assert study.title == "A made-up study"
    missing = Reproduction("None", "nobody", "weirlab.no_such_module:run")
    with pytest.raises(ModuleNotFoundError):
        missing.run(Effort())


def test_an_unknown_study_names_the_nearest():
    studies = {"made-up": Reproduction("A", "b", "c:d")}
    assert reproduce.find("made-up", studies).title == "A"
    with pytest.raises(InputError, match="did you mean 'made-up'"):
        reproduce.find("madeup", studies)
    with pytest.raises(InputError, match="there are made-up"):
        reproduce.find("zzz", studies)
    with pytest.raises(InputError, match="none is ready"):
        reproduce.find("zzz", {})
