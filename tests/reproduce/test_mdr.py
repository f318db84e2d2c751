"""The reproduction of the published comparison of MDR with binary search."""

import math
from dataclasses import replace
from functools import partial

import polars as pl
import pytest

from weirlab.reproduce import Effort, Findings, Verdict
from weirlab.reproduce import mdr as study
from weirlab.reproduce.mdr import phases, tables
from weirlab.reproduce.mdr.claims import STATEMENTS, Time, published_view
from weirlab.reproduce.mdr.graphs import CASES as GRAPHS
from weirlab.reproduce.mdr.graphs import read_graph, trial_table
from weirlab.reproduce.mdr.searches import (
    ALGORITHMS,
    DEVICES,
    DURATIONS_S,
    SUITES,
    Case,
    made,
    measured,
    seed_of,
)
from weirlab.reproduce.mdr.tables import PUBLISHED_RUNS, SPREAD_FACTORS, cells, published_time, time_rows
from weirlab.reproduce.mdr.traces import CASES, replayed
from weirlab.search.parallel import mapped

CELLS = [(suite, duration_s) for suite in SUITES for duration_s in DURATIONS_S]


def small(monkeypatch, *, searches: int = 50, of_phases: int = 6) -> None:
    """Make a quick run of a tenth and a third of these."""
    monkeypatch.setattr(study, "SEARCHES", searches)
    monkeypatch.setattr(study, "PHASE_SEARCHES", of_phases)


def statement(words: str):
    found = [each for each in STATEMENTS if words in each.text]
    assert len(found) == 1
    return found[0]


# --- searches ---


def test_results_do_not_depend_on_the_number_of_workers():
    some = [Case(d, a, 10.0, i) for d in SUITES for a in ALGORITHMS for i in range(5)]
    one, three = (mapped(partial(measured, seed=4), some, processes=number) for number in (1, 3))
    assert one == three


def test_a_search_does_not_depend_on_those_before_it():
    case = Case("vhost", "mdr", 10.0, 7)
    first = measured(case, 1)
    measured(Case("vhost", "mdr", 10.0, 8), 1)
    assert measured(case, 1) == first


def test_all_algorithms_meet_the_same_devices_and_every_search_another_one():
    case = Case("vhost", "mdr", 10.0, 0)
    assert seed_of(case, 1) == seed_of(replace(case, algorithm="ndr-binary", phases=4), 1)
    others = [replace(case, index=1), replace(case, duration_s=30.0), replace(case, device="ip4")]
    assert len({seed_of(each, seed) for each in (case, *others) for seed in (0, 1)}) == 8


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_times_are_those_of_the_trials_with_their_overheads(algorithm):
    result = made(Case("ip4", algorithm, 10.0, 3), 1)
    binary = algorithm.endswith("-binary")
    assert (result.trials[0].spec.purpose == "warm-up") is binary
    for trial in result.trials:
        if trial.spec.purpose == "warm-up":
            assert trial.effective_duration_s == 5.0
        elif not trial.stopped_early:
            overhead_s = trial.effective_duration_s - trial.spec.duration_s
            assert overhead_s == pytest.approx(0.43 if binary else 0.50)


@pytest.mark.parametrize("device", DEVICES)
def test_bounds_and_counts_of_a_search_are_possible(device):
    row = measured(Case(device, "mdr", 10.0, 1), 1)
    assert row["ndr_lower_fps"] <= row["pdr_lower_fps"] < row["pdr_upper_fps"]
    assert 0 < row["final_trials"] < row["trials"]
    assert row["final_s"] + row["outside_s"] <= row["time_s"] + 60.0
    assert row["final_s"] < row["time_s"]


# --- tables and rows ---


def made_up_cells(mdr_s: dict[tuple[str, int], tuple[float, float]]) -> pl.DataFrame:
    """Cells with the published binary times and these means and deviations of MDR."""
    rows = [
        {
            "device": suite,
            "duration_s": float(duration_s),
            "algorithm": algorithm,
            "searches": 300,
            "mean_s": mean_s,
            "sd_s": sd_s,
            "error_s": sd_s / math.sqrt(300),
        }
        for suite, duration_s in CELLS
        for algorithm, (mean_s, sd_s) in {
            "mdr": mdr_s[suite, duration_s],
            "ndr-binary": (published_time(suite, duration_s, "ndr-binary")[0], 0.0),
            "pdr-binary": (published_time(suite, duration_s, "pdr-binary")[0], 0.0),
        }.items()
    ]
    return pl.DataFrame(rows)


def published_mdr() -> dict[tuple[str, int], tuple[float, float]]:
    times = {cell: published_time(*cell, "mdr") for cell in CELLS}
    return {
        cell: (mean_s, avgdev_s * math.sqrt(PUBLISHED_RUNS)) for cell, (mean_s, avgdev_s) in times.items()
    }


def test_the_published_numbers_hold_against_themselves_but_for_the_misfit_that_would_be_gone():
    verdicts = {row.name: row.verdict for row in time_rows(made_up_cells(published_mdr()), quick=False)}
    assert len(verdicts) == 36
    steadier = "ip4, 10 s trials: MDR, standard deviation of the time"
    assert verdicts.pop(steadier) is Verdict.GONE
    assert set(verdicts.values()) == {Verdict.HOLDS}


def test_a_mean_more_than_a_tenth_away_is_a_misfit():
    times = published_mdr()
    mean_s, sd_s = times["vhost", 30]
    for factor, verdict in ((1.09, Verdict.HOLDS), (1.11, Verdict.MISFIT), (0.89, Verdict.MISFIT)):
        times["vhost", 30] = (factor * mean_s, sd_s)
        rows = {row.name: row for row in time_rows(made_up_cells(times), quick=False)}
        assert rows["vhost, 30 s trials: MDR, mean time"].verdict is verdict
        assert rows["vhost, 30 s trials: MDR as a share of NDR binary"].verdict is verdict


def test_a_spread_is_judged_by_what_six_runs_leave_open():
    chi2 = pytest.importorskip("scipy.stats").chi2
    expected = [math.sqrt(5 / chi2.ppf(probability, 5)) for probability in (0.975, 0.025)]
    assert pytest.approx(expected, abs=1e-3) == SPREAD_FACTORS
    times = published_mdr()
    mean_s, sd_s = times["vhost", 10]
    cases = ((2.4, Verdict.HOLDS), (2.5, Verdict.MISFIT), (0.65, Verdict.HOLDS), (0.6, Verdict.MISFIT))
    for factor, verdict in cases:
        times["vhost", 10] = (mean_s, factor * sd_s)
        rows = {row.name: row for row in time_rows(made_up_cells(times), quick=False)}
        assert rows["vhost, 10 s trials: MDR, standard deviation of the time"].verdict is verdict


def test_the_published_ratios_are_those_of_the_published_means():
    for suite, duration_s in CELLS:
        ratio = published_view().ratio(suite, duration_s)
        printed, _ = tables.PUBLISHED[suite]["mdr_percent_of_ndr_binary"][str(duration_s)]
        assert 100.0 * ratio == pytest.approx(printed, abs=0.06)


def test_avgdev_is_the_standard_deviation_of_a_mean_of_six():
    rows = [
        {**measured(Case("ip4", "mdr", 10.0, 0), 1), "time_s": time_s, "index": index}
        for index, time_s in enumerate((40.0, 50.0, 60.0))
    ]
    cell = cells(pl.DataFrame(rows)).row(0, named=True)
    assert (cell["mean_s"], cell["sd_s"], cell["longest_s"]) == (50.0, 10.0, 60.0)
    assert cell["avgdev_s"] == pytest.approx(10.0 / math.sqrt(6.0))
    assert cell["error_s"] == pytest.approx(10.0 / math.sqrt(3.0))


# --- traces ---


@pytest.mark.parametrize("name", CASES)
def test_every_published_search_is_replayed_trial_by_trial(name):
    replay = replayed(name)
    assert replay.complete
    assert replay.distance < 5e-4
    assert replay.moved == (4 if name == "mdr_60" else 0)


def test_a_search_that_asks_for_something_else_is_not_taken_for_a_published_one(monkeypatch):
    monkeypatch.setattr(
        "weirlab.reproduce.mdr.traces.CASES", {**CASES, "mdr_60": Case("vhost", "mdr", 60.0, 0, phases=3)}
    )
    assert not replayed("mdr_60").complete


# --- claims ---


def test_what_the_published_numbers_say_of_each_claim():
    answers = {each.text: each.check(published_view()).holds for each in STATEMENTS}
    assert sum(answer is True for answer in answers.values()) == 8
    assert not any(answer is False for answer in answers.values())
    for words in ("less than half", "almost half", "not by half", "vary wildly", "final phase", "outside of"):
        assert answers[statement(words).text] is True
    for words in ("in all cases", "worst case", "non-repeatable", "10 s trials two"):
        assert answers[statement(words).text] is None


def test_claims_are_denied_by_numbers_that_deny_them():
    view = published_view()
    slow = {
        key: time._replace(mean_s=2.0 * time.mean_s) for key, time in view.times.items() if key[2] == "mdr"
    }
    steady = {key: Time(time.mean_s, 0.1, 0.0) for key, time in view.times.items() if key[2] == "mdr"}
    for words in ("less than half", "almost half", "not by half"):
        assert statement(words).check(replace(view, times={**view.times, **slow})).holds is False
    assert statement("vary wildly").check(replace(view, times={**view.times, **steady})).holds is False
    few = view.searches.with_columns(final_s=0.1 * pl.col("time_s"), outside_s=0.1 * pl.col("time_s"))
    few = few.with_columns(trials=pl.lit(8), ndr_lower_fps=pl.lit(3.5e6))
    for words in ("more trials", "values that searches", "final phase", "outside of"):
        assert statement(words).check(replace(view, searches=few)).holds is False


def test_similar_means_within_a_width_on_average():
    def searches(offset: float) -> pl.DataFrame:
        rows = [
            {
                **measured(Case(suite, algorithm, duration_s, index), 1),
                "ndr_lower_fps": 3e6 * (1.0 + offset * (algorithm == "mdr")),
                "pdr_lower_fps": 4e6,
            }
            for suite, duration_s in CELLS
            for algorithm in ("mdr", "ndr-binary", "pdr-binary")
            for index in range(3)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    similar = statement("same or similar")
    view = published_view()
    assert similar.check(replace(view, searches=searches(0.007))).holds is True
    assert similar.check(replace(view, searches=searches(0.009))).holds is False


# --- phases ---


def test_the_experiment_finds_the_least_number_of_phases_that_is_as_fast_as_any():
    mean_s = {0: 110.0, 1: 100.5, 2: 100.0, 3: 99.5, 4: 130.0}
    rows = [
        {
            "device": device,
            "duration_s": float(duration_s),
            "phases": number,
            "mean_s": time_s,
            "error_s": 1.0,
        }
        for device in DEVICES
        for duration_s in DURATIONS_S
        for number, time_s in mean_s.items()
    ]
    table = phases.compared(pl.DataFrame(rows))
    assert phases.fastest(table, "vhost") == [1, 1, 1]
    assert table.filter(phases=0)["relative"].to_list() == pytest.approx([1.1] * 18)
    said = phases.says(table)
    assert "1.10, 1.00, 1.00, 0.99, 1.30 times as long as two" in said
    assert said.startswith(
        "Three is the best number on the well behaved devices (knee and ip4), three over all"
    )


def test_more_phases_make_more_trials_in_all():
    trials = [
        sum(measured(Case("knee", "mdr", 60.0, index, number), 1)["trials"] for index in range(10))
        for number in phases.PHASES
    ]
    assert trials == sorted(set(trials))


# --- graphs ---


def test_the_searches_of_all_graphs_can_be_drawn_again_from_their_table():
    table = trial_table(1)
    for name, case in GRAPHS.items():
        graph = read_graph(table, name, "ours")
        assert graph.result.time_s == made(case, 1).time_s
        assert len(graph.states) == len(graph.trials) + 1
        assert graph.result.regular
    assert read_graph(table, "mdr_60", "published").result.regular
    assert table.filter(graph="pdr_60", whose="published").is_empty()


# --- the whole ---


@pytest.fixture(scope="module")
def findings() -> Findings:
    with pytest.MonkeyPatch.context() as monkeypatch:
        small(monkeypatch)
        return study.reproduce(Effort(quick=True, threads=1))


def test_a_small_run_has_every_row_and_claim_with_a_number_of_ours(findings):
    assert len(findings.rows) == 36 + 3 * len(CASES)
    assert len(findings.claims) == len(STATEMENTS)
    assert Verdict.MISSING not in findings.verdicts
    binary = [row for row in findings.rows if "binary, mean time" in row.name]
    assert len(binary) == 18
    assert all(row.verdict is Verdict.HOLDS and row.allowed == 0.8 for row in binary)
    assert findings.tables["cells"].height == 34
    assert findings.tables["phases"].height == len(DEVICES) * len(DURATIONS_S) * len(phases.PHASES)


def test_the_whole_does_not_depend_on_the_number_of_workers(findings, monkeypatch):
    small(monkeypatch)
    told: list[tuple[int, int]] = []
    other = study.reproduce(
        Effort(quick=True, threads=3, progress=lambda done, total: told.append((done, total)))
    )
    assert other.to_json() == findings.to_json()
    for name, table in findings.tables.items():
        assert table.equals(other.tables[name]), name
    assert (
        told[-1][0]
        == told[-1][1]
        == findings.tables["searches"].height + findings.tables["phase_searches"].height
    )


def test_known_misfits_say_why_and_where(findings):
    known = [row.known for row in findings.rows if row.known] + [c.known for c in findings.claims if c.known]
    assert len(known) == 3
    assert any("fitted" in remark for remark in findings.remarks)
