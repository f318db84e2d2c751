"""Reproductions: a verdict for each row, with a small made-up study."""

import math
from importlib import import_module

import polars as pl
import pytest

from weirlab import reproductions
from weirlab.errors import InputError
from weirlab.execution.calls import CallsPlan
from weirlab.report.reproduce import constant_table, row_table
from weirlab.reproductions import Claim, Effort, Findings, KnownMisfit, Reproduction, Row, Verdict
from weirlab.results import Provenance

BAND = KnownMisfit("their timer was coarser", low=12.0, high=14.0)


def row(ours, *, published=10.0, tolerance=0.5, **more):
    return Row(name="mean", published=published, ours=ours, tolerance=tolerance, unit="s", **more)


def limit(ours):
    """A limit of 10 s that ours is known to exceed."""
    holds = ours is not None and ours <= 10.0
    return Claim(
        statement="within 10 s", holds=holds, evidence=f"{ours} s", known=BAND.reason, ours=ours, band=BAND
    )


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
        (row(9.7, tolerance_below=0.2), Verdict.MISFIT),
        (row(9.9, tolerance_below=0.2), Verdict.HOLDS),
        (row(-10.4, published=-10.0), Verdict.HOLDS),
        (row(10.4, known=KnownMisfit("at the edge", low=10.3, high=10.9)), Verdict.KNOWN),
        (row(0.3, published=0.1, tolerance=0.2), Verdict.HOLDS),
        (row(10.1, rivals={"slower": 11.0}), Verdict.HOLDS),
        (row(10.1, tolerance=2.0, rivals={"slower": 11.0}), Verdict.UNDECIDED),
        (row(10.1, tolerance=2.0, rivals={"slower": 11.0, "faster": 1.0}), Verdict.HOLDS),
        (row(10.1, tolerance=2.0, rivals={"as fast": 10.0}), Verdict.HOLDS),
        (row(10.1, tolerance=2.0, step=1.0, rivals={"as fast, as printed": 11.0}), Verdict.HOLDS),
        (row(13.0, tolerance=2.0, rivals={"slower": 11.0}), Verdict.MISFIT),
        (row(13.0, tolerance=2.0, rivals={"slower": 11.0}, known=BAND), Verdict.KNOWN),
        (Claim(statement="faster", holds=True, evidence="3 s < 4 s"), Verdict.HOLDS),
        (Claim(statement="faster", holds=False, evidence="4 s"), Verdict.MISFIT),
        (Claim(statement="faster", holds=False, evidence="4 s", known="one CPU"), Verdict.KNOWN),
        (Claim(statement="faster", holds=True, evidence="3 s", known="one CPU"), Verdict.GONE),
        (limit(13.0), Verdict.KNOWN),
        (limit(15.0), Verdict.MISFIT),
        (limit(None), Verdict.MISFIT),
        (limit(9.0), Verdict.GONE),
    ],
)
def test_every_case_has_its_verdict(made, verdict):
    assert made.verdict is verdict
    assert made.verdict.fails == (verdict not in (Verdict.HOLDS, Verdict.UNDECIDED, Verdict.KNOWN))


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
    words = "1 of 2 published numbers hold; 1 of 1 statements hold; 1 known misfit: nothing unexpected"
    assert made.summary == f"made-up: {words}"


def test_an_undecided_row_is_counted_apart_and_neither_holds_nor_fails():
    made = findings(row(10.0), row(10.1, tolerance=2.0, rivals={"slower": 11.0}))
    assert made.holds
    assert made.summary == "x: 1 of 2 published numbers hold; 1 undecided: nothing unexpected"
    assert Findings.from_json(made.to_json(), {}).summary == made.summary


def test_one_failing_row_fails_the_study():
    made = findings(row(10.0), row(13.0, known=BAND), row(10.0, known=BAND), row(None), row(99.0), row(98.0))
    assert not made.holds
    assert made.summary == (
        "x: 1 of 6 published numbers hold; 1 known misfit; 2 misfits; 1 known misfit gone; 1 missing: "
        "UNEXPECTED, see the verdicts"
    )


def test_the_summary_counts_apart_what_says_nothing_of_a_published_number():
    claims = [
        Claim(statement="our own goal", holds=True, evidence="1", about="own"),
        Claim(statement="our own goal, missed", holds=False, evidence="1", about="own", known="slow"),
        Claim(statement="books balance", holds=True, evidence="1", about="identity"),
        Claim(statement="published", holds=True, evidence="1"),
        Claim(statement="true of nothing, too", holds=True, evidence="1", straw="nothing at all"),
    ]
    made = findings(row(10.0), row(10.1, about="again"), row(9.9, fitted="the timer"), claims=claims)
    assert made.summary == (
        "x: 2 of 2 published numbers hold (1 that nothing was fitted to); 2 of 2 statements hold (1 that no "
        "straw man passes); 1 of 1 numbers judged again hold; 2 of 3 own checks hold; 1 known misfit: "
        "nothing unexpected"
    )
    again = Findings.from_json(made.to_json(), {})
    assert again.summary == made.summary


def grouped(*pairs, tolerance=0.5):
    return [
        Row(name=f"row {i}", published=published, ours=ours, tolerance=tolerance, group="rates")
        for i, (published, ours) in enumerate(pairs)
    ]


def test_a_row_that_one_constant_passes_with_others_does_not_discriminate():
    made = findings(*grouped((1.0, 1.1), (1.2, 1.2), (1.3, 9.0), (7.0, 7.0)))
    (constant,) = made.constants
    assert (constant.rows, constant.ours) == (4, 3)
    assert constant.passed == ["row 0", "row 1", "row 2"]
    assert 0.8 <= constant.value <= 1.5
    assert [made.straw(each) != "" for each in made.rows] == [True, True, True, False]
    assert "3 of 4 published numbers hold (1 that no straw man passes)" in made.summary
    written = made.to_json()
    assert [bool(each["straw_man"]) for each in written["rows"]] == [True, True, True, False]
    assert written["constants"][0]["passed"] == ["row 0", "row 1", "row 2"]


def test_a_constant_that_meets_one_number_alone_is_that_number_and_no_straw_man():
    made = findings(*grouped((1.0, 1.0), (3.0, 3.0)))
    assert made.constants[0].passed == []
    assert [made.straw(each) for each in made.rows] == ["", ""]


def test_rows_without_a_group_have_no_constant():
    assert findings(row(10.0), row(10.0)).constants == []


def test_an_idle_path_that_meets_a_number_is_named():
    straws = {"an idle path": 9.8, "a full one": 20.0}
    passed, beaten = row(10.1, straws=straws), row(10.1, tolerance=0.15, straws=straws)
    made = findings(passed, beaten)
    assert [made.straw(each) for each in made.rows] == ["an idle path: 9.8", ""]


def test_the_tables_show_straw_men_and_what_a_constant_scores():
    made = findings(*grouped((1.0, 1.1), (1.2, 1.2), (7.0, 7.0)))
    shown = row_table(made)
    column = [each.name for each in shown.columns].index("what passes, too")
    assert [cells[column].split(":")[0] for cells in shown.rows] == ["a constant", "a constant", "–"]
    assert constant_table(made).rows[0][2:] == ["3", "2", "3"]


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
    assert reproductions.find("zrl").title == "BCN under the ZRL congestion benchmark"
    with pytest.raises(InputError, match="did you mean 'rapid'"):
        reproductions.find("rapdi")
    with pytest.raises(InputError, match="there are ai-fabric, bcn, bulk"):
        reproductions.find("qqq")


@pytest.mark.parametrize("name", reproductions.STUDIES)
def test_what_the_registry_names_exists(name):
    study = reproductions.STUDIES[name]
    for place in filter(None, [study.rows, study.page]):
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function)), place


class AskedError(Exception):
    """Raised where a store is asked for."""


@pytest.mark.parametrize("name", ["zrl", "rapid", "bcn", "fabric", "ai-fabric"])
def test_a_store_alone_is_asked_before_anything_is_simulated_whatever_the_threads(name, monkeypatch):
    keys = []

    def asked(function, items, *, store, **_):
        plan = CallsPlan(function, items)
        keys.append([plan.point(place).key(0) for place in range(len(items))])
        assert store == "lab"
        raise AskedError

    monkeypatch.setattr("weirlab.reproductions.frame.mapped", asked)
    for threads in (1, 3):
        with pytest.raises(AskedError):
            reproductions.find(name).run(Effort(quick=True, threads=threads, store="lab"))
    assert keys[0] == keys[1]
