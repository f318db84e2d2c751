"""Published runs of fabrics: single messages digit for digit, others within what one more run may give."""

import polars as pl

from weirlab.reproductions import Effort
from weirlab.reproductions.fabric import cases, reproduce
from weirlab.reproductions.fabric.cases import CASES, UET, simulated
from weirlab.reproductions.fabric.rows import Found, claims, rows
from weirlab.reproductions.verdicts import Verdict


def only(monkeypatch, *names):
    monkeypatch.setattr(cases, "CASES", tuple(case for case in CASES if case.name in names))


def test_messages_alone_take_what_was_recorded_to_six_digits(monkeypatch):
    names = [f"{name}, nscc" for name in ("one", "message-10", "message-100")]
    only(monkeypatch, *names, "message-10, rccc", "message-100, rccc")
    found = rows(Found(simulated(Effort(quick=True, threads=1))))
    assert [row.verdict for row in found] == [Verdict.HOLDS] * 5
    assert all(row.tolerance <= 0.0005 for row in found)


def test_each_row_is_of_the_control_that_it_is_called_after():
    kinds = {"nscc": "nscc", "rccc": "line-rate", "both": "nscc"}
    for case in CASES:
        name = case.name.rpartition(", ")[2]
        if name in kinds:
            transport = case.changes["traffic.all"]["transport"]
            assert transport["kind"] == "rdma", case.name
            assert transport["congestion_control"]["kind"] == kinds[name], case.name
            assert ("credit" in transport) is (name != "nscc"), case.name


def test_a_quick_run_finds_nothing_unexpected_and_most_recorded_runs_hold():
    found = reproduce(Effort(quick=True, threads=1))
    assert [row.name for row in found.rows if row.verdict.fails] == []
    assert [claim.statement for claim in found.claims if claim.verdict.fails] == []
    assert len(found.rows) >= 50
    assert sum(row.verdict is Verdict.HOLDS for row in found.rows) >= 35


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
            "case": ["permutation-16, nscc"] * 6,
            "measure": ["tail"] * 3 + ["first"] * 3,
            "replicate": [0, 1, 2] * 2,
            "value": [2.50e8, 2.51e8, 2.52e8, 1.87e8, 1.88e8, 1.89e8],
        }
    )
    found = Found(table)
    assert [row.verdict for row in rows(found)] == [Verdict.MISFIT, Verdict.HOLDS]
    (limit,) = claims(found)
    assert limit.verdict is Verdict.MISFIT
