"""`weir reproduce` with studies that hold and studies that do not."""

import pytest

from weirlab.report import write_report
from weirlab.reproductions import STUDIES, Findings, Reproduction, Row

# --- reproduce ---


def holding(effort):
    rows = [Row(name="mean", published=10.0, ours=10.1, tolerance=0.5, unit="s")]
    return Findings(name="made-up", title="A made-up study", source="nobody", quick=effort.quick, rows=rows)


def failing(effort):
    rows = [Row(name="mean", published=10.0, ours=11.0, tolerance=0.5, unit="s")]
    return Findings(name="made-up", title="A made-up study", source="nobody", quick=effort.quick, rows=rows)


@pytest.fixture
def studies(monkeypatch):
    def register(function):
        study = Reproduction("A made-up study", "nobody", "made:up")
        monkeypatch.setitem(STUDIES, "made-up", study)
        monkeypatch.setattr(Reproduction, "run", lambda self, effort: function(effort))

    return register


def test_reproduce_without_a_name_lists_what_there_is(weir, studies):
    studies(holding)
    assert "made-up  A made-up study (nobody)" in weir("reproduce").out
    assert {"name": "made-up", "title": "A made-up study", "source": "nobody"} in weir(
        "reproduce", "--json"
    ).json["studies"]
    assert "did you mean 'made-up'" in weir("reproduce", "madeup").err


def test_a_study_that_holds_ends_well_and_a_sentence_sums_it_up(weir, studies, place):
    studies(holding)
    outcome = weir("reproduce", "made-up", "--quick", "--out", "r")
    assert outcome.code == 0
    said = "made-up: 1 of 1 published numbers hold: nothing unexpected (quick)"
    assert said in outcome.out.splitlines()
    assert "10.10" in outcome.out
    assert "Nothing unexpected" in write_report(place / "r").page.read_text()


def test_a_study_that_does_not_hold_fails(weir, studies):
    studies(failing)
    outcome = weir("reproduce", "made-up")
    assert outcome.code == 1
    assert "1 misfit: UNEXPECTED, see the verdicts\n" in outcome.out
    outcome = weir("reproduce", "made-up", "--json")
    assert outcome.code == 1
    assert outcome.json["rows"][0]["verdict"] == "misfit"
