"""The reproduction of the BCN calibration: its tables, claims and pictures."""

import math

import numpy as np
import polars as pl
import pytest

from weirlab.reproductions import Effort, Verdict, find
from weirlab.reproductions.bcn import cases, claims, tables, traces, variants, victims
from weirlab.reproductions.bcn.cases import CASES, LITERAL_CASES, Case
from weirlab.reproductions.judging import constants

FEW = [1, 2]


def case_id(case):
    return case.name


def published():
    return tables.published_spreads()


def test_there_are_twelve_configurations_and_four_with_the_literal_rule():
    assert len(set(CASES)) == 12
    assert [case.scheme for case in LITERAL_CASES] == ["stop"] * 4
    assert len({case.name for case in (*CASES, *LITERAL_CASES)}) == 16


def test_published_tables_are_where_they_were_printed():
    assert published()["fairness", Case("max", True, False)].mean == 0.33
    assert published()["utilisation", Case("stop", False, True)].least == 0.92
    assert published()["fairness", Case("none", False, True)].sd == 0.048
    for spread in published().values():
        assert spread.least <= spread.mean <= spread.greatest


@pytest.mark.parametrize("case", [*CASES, *LITERAL_CASES], ids=case_id)
def test_a_configuration_runs_what_its_name_says(case):
    control = cases.scenario_of(case).control
    assert control.bcn.severe.action == case.scheme
    assert bool(control.pause) == case.pause
    assert (control.bcn.reaction_point.drift is not None) == case.drift
    stop = control.bcn.reaction_point.stop
    assert (stop.restart, stop.r_min_factor) == (
        ("r-min", 0.5) if case.literal else ("lesser-of-r-min-and-before", 1.0)
    )


def test_the_gains_are_those_that_the_slides_work_out():
    reaction = cases.scenario_of(CASES[0]).control.bcn.reaction_point
    q_eq, w, line_mbps = 16, 2, 10_000
    # Rounded on the slides to two digits per page of 64 B, then times 1500 / 64.
    assert reaction.gi == pytest.approx(line_mbps / 10 / ((1 + 2 * w) * q_eq), rel=0.01)
    assert reaction.gd == pytest.approx(0.5 / ((1 + 2 * w) * q_eq), rel=0.03)
    assert reaction.gi == pytest.approx(0.53 * 1500 / 64, rel=1e-3)
    assert reaction.gd == pytest.approx(2.6e-4 * 1500 / 64, rel=1e-3)


def test_spreads_are_those_of_the_values():
    spread = tables.spread(pl.Series([1.0, 2.0, 3.0, 4.0]))
    assert (spread.least, spread.mean, spread.greatest, spread.runs) == (1.0, 2.5, 4.0, 4)
    assert spread.sd == pytest.approx(math.sqrt(5 / 3))
    assert spread.error == pytest.approx(spread.sd / 2)


@pytest.fixture(scope="module")
def alike():
    """Runs of each configuration with the published mean and standard deviation."""
    rng = np.random.default_rng(1)
    values = {}
    for key, spread in published().items():
        drawn = rng.normal(size=300)
        values[key] = spread.mean + spread.sd * (drawn - drawn.mean()) / drawn.std(ddof=1)
    return values


def test_all_96_published_numbers_are_judged_and_those_of_bcn00_once_more(alike):
    rows = list(tables.table_rows(alike))
    told = [row for row in rows if row.about == "published"]
    assert len(told) == 96
    assert sum(row.about == "again" for row in rows) == len(rows) - 96 == 32
    printed = sorted(
        value
        for one in published()
        if not one[1].literal
        for value in map(published()[one].of, tables.STATISTICS)
    )
    assert sorted(row.published for row in told) == printed


def test_means_and_deviations_as_published_are_no_misfits(alike):
    for row in tables.table_rows(alike):
        if row.name.endswith((", mean", ", std")):
            at_edge = row.known is not None and row.known.low <= row.published <= row.known.high
            gone = Verdict.KNOWN if at_edge else Verdict.GONE
            assert row.verdict is (Verdict.HOLDS if row.known is None else gone), row.name


def test_the_tolerance_of_a_mean_is_that_of_the_errors_of_both_sides_and_of_the_print(alike):
    case = Case("none", False, True)
    (row,) = (row for row in tables.table_rows(alike) if row.name == tables._name("fairness", case, "mean"))
    # 300 runs on either side, each with 0.048.
    assert row.tolerance == pytest.approx(2.584 * 0.048 * math.sqrt(2 / 300) + 0.005, rel=1e-3)
    assert row.fitted


def test_a_link_that_is_never_idle_and_a_constant_are_told(alike):
    rows = list(tables.table_rows(alike))
    full = [row for row in rows if "utilisation" in row.name and row.name.endswith("drift, mean")]
    assert sum(row.straw != "" for row in full) >= 6
    scores = {one.group: one for one in constants(rows)}
    assert len(scores) == 8
    assert all(one.rows == 12 for one in scores.values())
    assert len(scores["CS utilisation, 5-20 ms: mean"].passed) >= 6
    assert scores["CS utilisation, 5-20 ms: mean"].value == pytest.approx(1.0, abs=0.01)


def test_what_drift_takes_off_is_the_mean_of_six_schemes(alike):
    row = tables.drift_row(alike)
    assert row.published == pytest.approx(0.07)
    assert row.ours == pytest.approx(0.07)
    assert row.verdict is Verdict.GONE
    half = {
        key: values - 0.03 if key[0] == "fairness" and not key[1].drift else values
        for key, values in alike.items()
    }
    assert tables.drift_row(half).verdict is Verdict.KNOWN


def test_each_number_has_a_verdict_of_its_own(alike):
    case = Case("none", False, True)
    off = {**alike, ("fairness", case): alike["fairness", case] + 0.05}
    rows = list(tables.table_rows(off))
    verdicts = [tables.verdict_of(rows, "fairness", case, statistic) for statistic in ("mean", "std")]
    assert verdicts[0].fails
    assert not verdicts[1].fails or tables.verdict_of(rows, "fairness", case, "std") is Verdict.GONE


def answers(view):
    return {statement.text: statement.check(view) for statement in claims.STATEMENTS}


def test_the_slides_own_tables_bear_out_most_of_what_they_observe_and_deny_three_statements():
    given = answers(claims.published_view())
    denied = [text for text, answer in given.items() if answer.holds is False]
    assert [text[:30] for text in denied] == [
        "BCN(0,0) tends to be less fair",
        "BCN(MAX) is somewhat less fair",
        "... but better at transient in",
    ]
    borne_out = [text for text, answer in given.items() if answer.holds]
    assert len(borne_out) == 6


def test_what_the_slides_show_in_pictures_only_stays_open():
    given = answers(claims.published_view())
    assert sum(answer.holds is None for answer in given.values()) == 5


def test_equal_means_decide_nothing_and_a_statement_that_holds_of_them_says_so():
    given = answers(claims.alike_view())
    assert not any(answer.holds for text, answer in given.items() if "best for transient" not in text)
    made = claims.claims_of(claims.published_view(), quick=False)
    assert [claim.statement[:38] for claim in made if claim.straw] == [
        "Basic BCN is best for transient ineffi"
    ]


@pytest.fixture(scope="module")
def runs():
    chosen = [case for case in CASES if case.drift]
    return pl.concat([cases.of_case(case, FEW, None) for case in chosen])


def test_runs_of_a_configuration_carry_measures_and_transients(runs):
    assert runs.height == 6 * len(FEW)
    assert runs.get_column("fairness").is_between(0, 2).all()
    assert runs.get_column("utilisation").is_between(0.5, 1.001).all()
    assert runs.filter("pause", pl.col("scheme") == "none").get_column("paused_ms").min() > 0
    assert runs.filter(~pl.col("pause")).get_column("paused_ms").max() == 0
    assert runs.filter(~pl.col("pause")).get_column("lost_frames").min() > 0


def test_the_same_seeds_give_the_same_runs_on_any_number_of_threads(runs):
    again = cases.of_case(CASES[0], FEW, 1)
    first = runs.filter(pl.col("scheme") == "none", ~pl.col("pause"))
    assert again.equals(first)


def test_a_picture_has_a_queue_and_four_rates():
    queue, rates = traces.series_of(traces.PICTURES[0], 1)
    assert queue.height == 800
    assert queue.select((pl.col("mean_kb") <= pl.col("max_kb") + 1e-9).all()).item()
    assert queue.get_column("max_kb").max() <= 150.0
    assert rates.get_column("flow").n_unique() == 4
    # After the start every sender is limited, near its share of 2.5 Gbit/s.
    later = rates.filter(pl.col("t_ms") > 20)
    assert later.get_column("rate_gbps").null_count() < 0.05 * later.height
    assert 1.5 < later.get_column("rate_gbps").mean() < 3.5


def test_a_victim_suffers_from_pause_and_from_nothing_else():
    free, paused = (victims.of_variant(name, FEW, None) for name in ("BCN", "Pause + BCN"))
    assert free.get_column("delivered_share").mean() == pytest.approx(1.0, abs=0.03)
    assert paused.get_column("delivered_share").max() < free.get_column("delivered_share").min()
    assert free.get_column("paused_ms").max() == 0


def test_variants_are_legal_scenarios():
    for family in variants.FAMILIES.values():
        for variant in (family[0], family[-1]):
            for case in CASES:
                cases.scenario_of(case).assign(variant.of(case))


def test_a_variant_runs_only_what_it_concerns():
    (restart,) = (
        variant for variant in variants.FAMILIES["single"] if variant.name == "restart at the rate before"
    )
    rows = variants.judged([restart], CASES, FEW, short=True, threads=None)
    assert rows.get_column("configuration").to_list() == [c.name for c in CASES if c.scheme == "stop"]
    assert rows.get_column("ours").is_between(0, 1.001).all()
    (distance,) = variants.distances(rows).get_column("rms").to_list()
    assert 0 <= distance < 0.3


def test_variants_start_from_the_jitter_of_sampling_that_is_asked_for():
    by_name = {variant.name: variant for variant in variants.FAMILIES["single"]}
    base = {"control.bcn.congestion_point.sampling": {"kind": "uniform", "jitter": 0.5}}
    worst = [case for case in CASES if case.name == "Pause + BCN(MAX), without drift"]

    def ours(name, base=None):
        rows = variants.judged([by_name[name]], worst, FEW, short=True, threads=1, base=base)
        return rows.get_column("ours").item()

    assert ours("as it stands", base) == ours("sampling jitter 0.5") != ours("as it stands")
    exponential = "samples at exponential distances"
    assert ours(exponential, base) == ours(exponential), "a variant that says another has its own"


def test_the_study_is_known_by_name():
    assert find("bcn").source.startswith("BCN Calibration 2006")
    assert Effort(quick=True).quick
