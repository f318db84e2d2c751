"""Bulk throughput: the printed numbers from the simulator, and the page of a quick reproduction."""

import dataclasses

import polars as pl
import pytest

from weirlab.campaigns import run_campaign
from weirlab.errors import MissingCapability
from weirlab.report import write_report
from weirlab.reproductions import find
from weirlab.reproductions.bulk import work
from weirlab.reproductions.bulk.claims import claims
from weirlab.reproductions.bulk.rows import PUBLISHED, rows
from weirlab.reproductions.bulk.work import Data, measure_all
from weirlab.reproductions.frame import Effort, Findings
from weirlab.reproductions.verdicts import Verdict
from weirlab.results import Provenance


@pytest.fixture(scope="module")
def data() -> Data:
    return measure_all(Effort(quick=True))


@pytest.fixture(scope="module")
def findings(data) -> Findings:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weirlab.reproductions.bulk.measure_all", lambda effort: data)
        return find("bulk").run(Effort(quick=True))


def test_every_number_of_the_tables_is_judged(data):
    made = rows(data)
    published = [row for row in made if row.about == "published"]
    # Of four configurations two statistics of goodput, four round-trip times and dRTT; of rate
    # variability six of two kinds.
    assert len(published) == 4 * (2 + 4 + 1) + 2 * 6
    assert sum("least" in row.name and "RTT" in row.name for row in published) == 8
    assert {round(row.published, 1) for row in published if "dRTT" in row.name} == {2, 15.6, 4, 12}
    assert sum(row.published == 0 for row in published) == 3
    again = [row for row in made if row.about == "again"]
    assert {row.name.partition(", 2")[0].partition(", 8")[0] for row in again} == {"CERN, random losses"}


def test_tolerances_are_of_the_errors_of_both_sides_and_not_chosen(data):
    by_name = {row.name: row for row in rows(data)}
    median = by_name["Caltech, 8 x 64 KiB, simulated: median goodput"]
    # 2.6 standard errors of the median of 200 cycles with an interquartile range of 4.6; ours has none.
    error = 1.2533 * 4.6 / 1.349 / 200**0.5
    assert median.tolerance == pytest.approx(2.6 * error + 0.05, rel=0.05)
    assert median.verdict is Verdict.HOLDS


def test_an_idle_path_passes_no_difference_of_round_trips_but_the_least(data):
    passed = {
        row.published: bool(row.straw) for row in rows(data) if "CERN, " in row.name and "dRTT" in row.name
    }
    assert [straw for published, straw in passed.items() if published > 2] == [False]
    caltech = [row for row in rows(data) if "Caltech" in row.name and "dRTT" in row.name]
    assert not any(row.straw for row in caltech)
    # Our two streams to Caltech add 0.6 ms where 4 are published: no longer excused by an absolute tolerance.
    (two,) = (row for row in caltech if row.published == 4)
    assert two.verdict is Verdict.KNOWN
    assert not two.passes(two.ours)


def test_no_claim_is_excused_that_holds_and_none_fails(data):
    verdicts = {claim.statement: claim.verdict for claim in claims(data)}
    assert [statement for statement, verdict in verdicts.items() if verdict.fails] == []
    assert len(verdicts) >= 25


def test_no_number_of_a_quick_run_fails(data):
    assert [row.name for row in rows(data) if row.verdict.fails] == []


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
        "simulated, BBR",
        "simulated, CUBIC",
    ]


def test_every_order_of_streams_is_the_printed_one(data):
    order = data.tables["streams"].get_column("streams").unique(maintain_order=True).to_list()
    assert order == PUBLISHED["findings"]["streams_order"]


def test_the_page_shows_the_table_of_the_text_and_its_plots(findings, tmp_path):
    findings.save(tmp_path, Provenance.now())
    report = write_report(tmp_path, pictures=False)
    page = report.page.read_text()
    for words in (
        "Windows against streams",
        "26.80",
        "Streams over time: 8 x 64 KiB to CERN",
        "Streams to CERN",
        "Rate predictability against dRTT",
        "From Daresbury",
        "Delay and its variation against streams: 55 KiB",
        "Distribution of the goodput",
        "Lost pings without a transfer against streams",
    ):
        assert words in page


def test_campaigns_on_real_stacks_are_kept_where_the_next_sitting_finds_them(data, monkeypatch, tmp_path):
    asked = []

    def run(scenario, directory):
        asked.append((scenario.testbed.kind, directory))
        quick = scenario.assign({"testbed.kind": "sim", "campaign.cycles": 1})
        short = [{**step, "for": "2 s"} for step in quick.dump()["campaign"]["cycle"]]
        return run_campaign(quick.assign({"campaign.cycle": short}), tmp_path / "simulated" / directory.name)

    monkeypatch.setattr(work, "run_campaign", run)
    live = work._Live(Effort(directory=tmp_path))
    (sites, table), since = live.sites(), live.since()
    names = ("bulk-cern-random", "bulk-caltech")
    later = [f"{name}-{kind}" for kind in ("cubic", "bbr") for name in names]
    assert asked == [("netns", tmp_path / "campaigns" / name) for name in (*names, *later)]
    beside = rows(dataclasses.replace(data, live=sites, tables={**data.tables, "live": table}))
    assert sum("Linux" in row.name for row in beside) == 24
    assert {row.about for row in beside if "Linux" in row.name} == {"again"}
    told = claims(dataclasses.replace(data, live=sites, since={**data.since, **since}))
    assert sum("Since 2000" in claim.statement and "Linux" in claim.statement for claim in told) == 4


@pytest.mark.parametrize("effort", [Effort(quick=True), Effort()])
def test_what_is_not_to_be_measured_live_says_why(effort):
    with pytest.raises(MissingCapability, match=r"quick run|no directory"):
        work._Live(effort).sites()


def cpu(cost, *, per_stream=0.07, server=3.0):
    """Measurements of a machine where a Mbit/s costs `cost(window)` % of a CPU, nearly all in its kernel."""
    common = {"duration_s": 10.0, "goodput_bps": 387e6}
    plain = [
        {
            "streams": streams,
            "window_bytes": window << 10,
            "duration_s": duration,
            "goodput_bps": 1e6 * rate,
            "user_percent": user,
            "system_percent": cost(window) * rate,
            "receiver_percent": server * (user + cost(window) * rate),
        }
        for duration in (10.0, 60.0)
        for streams in (1, 4)
        for window in (16, 64, 256)
        for rate, user in ((streams * window * 0.3, 0.04 if window == 64 else 0.03),)
    ]
    fixed = [
        {
            **common,
            "streams": streams,
            "window_bytes": (2 << 20) // streams,
            "user_percent": 0.05,
            "system_percent": 1.0 + per_stream * streams + 0.01 * cycle,
            "receiver_percent": 12.0,
        }
        for cycle in range(3)
        for streams in (1, 2, 4, 8, 16, 32, 64)
    ]
    return {"cpu": pl.DataFrame(plain), "cpu_streams": pl.DataFrame(fixed)}


def test_the_slopes_of_cpu_are_rows_with_the_bands_of_machines_of_today(data):
    tables = {**data.tables, **cpu(lambda window: 0.4 / window)}
    made = {row.name: row for row in rows(dataclasses.replace(data, tables=tables)) if "CPU" in row.name}
    assert [row.published for row in made.values()] == [0.14, 0.15, 0.91, 0.30]
    assert not any(row.verdict.fails for row in made.values())
    slow = {**data.tables, **cpu(lambda _: 0.145)}
    first = next(row for row in rows(dataclasses.replace(data, tables=slow)) if "CPU" in row.name)
    assert first.verdict is Verdict.GONE, "a machine of 336 MHz"


def verdicts(data, tables):
    made = dataclasses.replace(data, tables={**data.tables, **tables})
    return {claim.statement: claim.verdict for claim in claims(made) if "CPU" in claim.statement}


def test_cpu_is_judged_as_the_machine_of_today_uses_it(data):
    found = verdicts(data, cpu(lambda window: 0.4 / window))
    assert len(found) == 7
    assert found["User and kernel CPU grow roughly linearly with goodput."] is Verdict.KNOWN
    assert found["The server uses about as much CPU as the client."] is Verdict.KNOWN
    assert [statement for statement, verdict in found.items() if verdict.fails] == []


def test_cpu_in_proportion_to_goodput_ends_the_excuse(data):
    found = verdicts(data, cpu(lambda _: 0.02))
    assert found["User and kernel CPU grow roughly linearly with goodput."] is Verdict.GONE


def test_streams_that_cost_nothing_and_an_equal_server_are_told(data):
    found = verdicts(data, cpu(lambda window: 0.4 / window, per_stream=0.0, server=1.0))
    statement = "At a fixed product of streams and windows, more streams use more kernel CPU."
    assert found[statement] is Verdict.MISFIT
    assert found["The server uses about as much CPU as the client."] is Verdict.GONE
