"""Published runs of fabrics: single messages digit for digit; what cannot be run is named and not counted."""

import polars as pl
import pytest

from weirlab.reproductions import Effort
from weirlab.reproductions.fabric import cases
from weirlab.reproductions.fabric.cases import CASES, UET, Case, simulated
from weirlab.reproductions.fabric.rows import Found, claims, rows
from weirlab.reproductions.verdicts import Verdict


def only(monkeypatch, *names):
    monkeypatch.setattr(cases, "CASES", tuple(case for case in CASES if case.name in names))


def test_messages_alone_take_what_was_recorded_to_six_digits(monkeypatch):
    only(monkeypatch, "one, nscc", "message-10, nscc", "message-100, nscc")
    table, missing = simulated(Effort(quick=True, threads=1))
    found = rows(Found(table))
    assert missing == []
    assert [row.verdict for row in found] == [Verdict.HOLDS] * 3
    assert all(row.tolerance <= 0.0005 for row in found)


def test_what_the_simulator_does_not_have_is_named_and_has_no_row(monkeypatch):
    unknown = Case(
        "incast-15, nscc", CASES[0].text, {"traffic.all": {"transport": {"kind": "carrier-pigeon"}}}
    )
    alone = next(case for case in CASES if case.name == "one, nscc")
    monkeypatch.setattr(cases, "CASES", (alone, unknown))
    table, missing = simulated(Effort(quick=True, threads=1))
    assert missing == ["incast-15, nscc"]
    assert {row.name for row in rows(Found(table))} == {"one, nscc: last message"}


def test_a_case_that_is_wrong_is_a_defect_and_not_missing(monkeypatch):
    text = next(case.text for case in CASES if case.name == "joining, dcqcn")
    monkeypatch.setattr(cases, "CASES", (Case("wrong", text, {"run.duration": "never"}),))
    with pytest.raises(Exception, match="duration"):
        simulated(Effort(quick=True))


def test_every_recorded_run_has_a_case_and_is_at_least_as_long_as_arithmetic_says():
    names = {case.name for case in CASES}
    for experiment, runs in UET["runs"].items():
        for control, tail in runs["tail"].items():
            assert f"{experiment}, {control}" in names
            assert tail >= runs.get("bound", 0.0) - 0.001
    assert sum(len(runs["tail"]) for runs in UET["runs"].values()) >= 60


def test_a_run_that_is_too_slow_fails_its_limit_and_its_row():
    table = pl.DataFrame(
        {
            "case": ["incast-15, nscc"] * 6,
            "measure": ["tail"] * 3 + ["first"] * 3,
            "replicate": [0, 1, 2] * 2,
            "value": [9.0e9, 9.1e9, 9.2e9, 1.2e9, 1.3e9, 1.4e9],
        }
    )
    found = Found(table)
    assert [row.verdict for row in rows(found)] == [Verdict.MISFIT, Verdict.HOLDS]
    (limit,) = claims(found)
    assert limit.verdict is Verdict.MISFIT
