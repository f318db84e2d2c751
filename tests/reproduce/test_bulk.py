"""Bulk throughput: the printed numbers from the simulator, and the page of a quick reproduction."""

import dataclasses

import polars as pl
import pytest

from weirlab.bulk import run_campaign
from weirlab.errors import MissingCapability
from weirlab.report import write_report
from weirlab.reproduce import find
from weirlab.reproduce.bulk import work
from weirlab.reproduce.bulk.claims import claims
from weirlab.reproduce.bulk.rows import PUBLISHED, rows
from weirlab.reproduce.bulk.work import Data, measure_all
from weirlab.reproduce.frame import Effort, Findings, Verdict
from weirlab.results import Provenance


@pytest.fixture(scope="module")
def data() -> Data:
    return measure_all(Effort(quick=True))


@pytest.fixture(scope="module")
def findings() -> Findings:
    return find("bulk").run(Effort(quick=True))


def test_the_four_medians_come_from_each_choice_of_paths(data):
    medians = {row.name: row for row in rows(data, quick=True) if "median goodput" in row.name}
    assert len(medians) == 6
    assert {row.published for row in medians.values()} == {9.45, 26.8, 46.5, 63.5}
    assert all(row.verdict is Verdict.HOLDS for row in medians.values())


def test_the_path_to_cern_gives_the_printed_round_trip_under_eight_streams_too(data):
    (row,) = (
        row for row in rows(data, quick=True) if row.name == "CERN, 8 x 64 KiB, simulated: mean loaded RTT"
    )
    assert row.published == 181
    assert abs(row.difference) <= 5


def test_no_claim_is_excused_that_holds_and_none_fails(data):
    verdicts = {claim.statement: claim.verdict for claim in claims(data)}
    assert [statement for statement, verdict in verdicts.items() if verdict.fails] == []
    assert len(verdicts) >= 25


def test_no_number_of_a_quick_run_fails(data):
    assert [row.name for row in rows(data, quick=True) if row.verdict.fails] == []


def test_claims_fail_when_the_measurements_say_the_contrary(data):
    turned = {site: points[::-1] for site, points in data.simulated.items()}
    streams = data.tables["streams"].with_columns(rtt_difference_s=pl.lit(0.001))
    contrary = dataclasses.replace(data, simulated=turned, tables={**data.tables, "streams": streams})
    failed = [claim.statement for claim in claims(contrary) if claim.verdict is Verdict.MISFIT]
    assert any("eight streams of 64 KiB carry more" in statement for statement in failed)
    assert any("Above 7 streams of 55 KiB" in statement for statement in failed)


def test_a_quick_run_says_that_nothing_was_measured_on_real_stacks(findings):
    assert findings.quick
    assert "Nothing was measured on real stacks" in findings.remarks[0]
    assert findings.tables["sites"].get_column("how").unique().sort().to_list() == [
        "simulated",
        "simulated, CUBIC",
    ]


def test_every_order_of_streams_is_the_printed_one(data):
    order = data.tables["streams"].get_column("streams").unique(maintain_order=True).to_list()
    assert order == PUBLISHED["findings"]["streams_order"]


def test_the_page_shows_the_table_of_the_text_and_its_plots(findings, tmp_path):
    findings.save(tmp_path, Provenance.now())
    report = write_report(tmp_path, pictures=False)
    page = report.page.read_text()
    for words in ("Windows against streams", "26.80", "Streams to CERN", "Rate predictability against dRTT"):
        assert words in page


def test_campaigns_on_real_stacks_are_kept_where_the_next_sitting_finds_them(data, monkeypatch, tmp_path):
    asked = []

    def run(scenario, directory):
        asked.append((scenario.testbed.kind, directory))
        quick = scenario.assign({"testbed.kind": "sim", "campaign.cycles": 1})
        return run_campaign(quick, tmp_path / "simulated" / directory.name)

    monkeypatch.setattr(work, "run_campaign", run)
    live, why_not = work._live(Effort(directory=tmp_path))
    assert why_not == ""
    names = ("bulk-cern-random", "bulk-caltech")
    assert asked == [("netns", tmp_path / "campaigns" / name) for name in names]
    beside = rows(dataclasses.replace(data, live=live))
    assert sum("Linux" in row.name for row in beside) == 12


def test_a_machine_that_cannot_measure_says_what_is_missing(monkeypatch, tmp_path):
    def lacks(scenario, directory):
        raise MissingCapability("a campaign needs more programs")

    monkeypatch.setattr(work, "run_campaign", lacks)
    assert work._live(Effort(directory=tmp_path)) == ({}, "a campaign needs more programs")
