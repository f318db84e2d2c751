"""The tests of AI fabrics: those that take long are left out, and a wrong network fails what theory says."""

import re
from pathlib import Path

import polars as pl
import pytest

from weirlab.reproductions import Effort
from weirlab.reproductions.ai_fabric import DRAFTS, TRIALS, of_trial, reproduce, summary
from weirlab.reproductions.ai_fabric.checks import Results, claims
from weirlab.reproductions.verdicts import Verdict


@pytest.fixture(scope="module")
def found():
    return reproduce(Effort(quick=True, threads=1))


def test_all_that_theory_says_holds(found):
    assert [claim.statement for claim in found.claims if claim.verdict is not Verdict.HOLDS] == []
    assert len(found.claims) >= 30


def test_every_test_that_a_network_alone_can_run_has_values_and_how_much_they_vary(found):
    tests = found.tables["tests"]
    wanted = DRAFTS.filter(runs="yes").get_column("id")
    assert len(wanted) > 30
    assert set(wanted) - set(tests.drop_nulls("mean").get_column("id")) == set()
    assert set(tests.get_column("id")) - set(DRAFTS.get_column("id")) == set()
    assert tests.filter(pl.col("mean") != 0).get_column("cv").null_count() == 0


def test_the_page_has_every_test_that_is_run():
    page = (Path(__file__).parents[2] / "docs" / "reproduce-ai-fabric.md").read_text(encoding="utf-8")
    shown = {id_ for row in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE) for id_ in listed(row)}
    assert set(DRAFTS.filter(runs="yes").get_column("id")) - shown == set()


def listed(row: str) -> list[str]:
    """The tests that a row is about: '8.1 to 8.4', 'I 7.1, 7.3'."""
    front = "I " if row.startswith("I ") else ""
    found: list[str] = []
    for part in row.removeprefix("I ").split(", "):
        first, _, last = part.partition(" to ")
        found.append(front + first)
        if last:
            chapter, place = first.split(".")
            found += [f"{front}{chapter}.{i}" for i in range(int(place), int(last.split(".")[1]) + 1)]
    return found


def test_spread_over_seeds_is_reported(found):
    row = found.tables["tests"].filter(
        pl.col("id") == "8.1", pl.col("condition") == "1 queue pairs", pl.col("measure") == "jfi"
    )
    assert row.item(0, "cv") > 0, "another seed hashes flows to other links"


def with_values(found, value):
    return claims(Results(found.tables["values"].with_columns(value=value)))


def test_every_check_fails_in_one_of_two_other_networks(found):
    value, measure = pl.col("value"), pl.col("measure")
    slow = with_values(found, pl.when(measure == "utilisation").then(value / 2).otherwise(value * 1.3 + 1))
    is_base = pl.col("condition").str.contains("alone|no failure|watchdog|1 queue pairs|normal")
    same = with_values(found, pl.when(is_base).then(value * 1e3).otherwise(value))
    hold = [a.statement for a, b in zip(slow, same, strict=True) if a.holds and b.holds]
    assert hold == ["Every run answers what is checked."]


def test_a_network_that_carries_nothing_or_always_the_same_fails(found):
    for constant in (1.0, 1e9):
        held = [claim.statement for claim in with_values(found, pl.lit(constant)) if claim.holds]
        assert held == ["Every run answers what is checked."]


def test_a_check_whose_names_select_nothing_fails(found):
    renamed = found.tables["values"].with_columns(pl.col("condition").str.replace("RCCC", "credit"))
    failed = [claim.statement for claim in claims(Results(renamed)) if not claim.holds]
    assert [statement[:33] for statement in failed if "credit" in statement] == [
        "By credit those that come share w"
    ]


@pytest.mark.parametrize("measure", ["loss", "utilisation", "mean", "drops", "marked", "held", "jfi", "job"])
def test_a_run_without_an_answer_fails_a_check(found, measure):
    value = pl.when(pl.col("measure") == measure, pl.col("replicate") == 0).then(None).otherwise("value")
    *_, last = with_values(found, value)
    assert not last.holds
    assert f": {measure}" in last.evidence


def test_a_measure_that_no_run_answers_is_unknown(found):
    value = pl.when(pl.col("measure") == "latency").then(None).otherwise("value")
    *_, last = with_values(found, value)
    assert "GPCNeT, alone: latency" in last.evidence


def test_a_mean_is_unknown_where_a_run_gives_no_answer():
    names = {name: ["a"] * 2 for name in ("id", "condition", "measure", "unit")}
    assert summary(pl.DataFrame({**names, "value": [1.0, None]})).item(0, "mean") is None


def test_a_trial_runs_its_seeds():
    trial = next(trial for trial in TRIALS if trial.id == "5.2")
    assert of_trial(trial, 1, 3, 1).get_column("replicate").n_unique() == 3
