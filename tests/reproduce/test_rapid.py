"""The reproduction of Rapid: arithmetic of the published numbers, books of ours, and the better variant."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from weirlab.reproductions.published import RapidUdp, read
from weirlab.reproductions.rapid.bookkeeping import identities, published_offs
from weirlab.reproductions.rapid.cases import (
    BETTER,
    OVERRUNS,
    REPRODUCTION,
    Case,
    available_bps,
    goodput_bps,
    of_case,
    records_of,
)
from weirlab.reproductions.rapid.facts import brought, off_times, smoothed
from weirlab.reproductions.rapid.rows import KNOWN_COUNTERS, overruns, rows
from weirlab.reproductions.verdicts import Verdict

PUBLISHED = read("rapid-udp-cross-traffic", RapidUdp)
CASES = {case.name: case for case in (*REPRODUCTION, *OVERRUNS, *BETTER)}


def test_the_leftover_capacity_allows_646_and_253_mbit_per_s() -> None:
    assert goodput_bps(available_bps(300e6)) / 1e6 == pytest.approx(646, abs=1)
    assert goodput_bps(available_bps(700e6)) / 1e6 == pytest.approx(253, abs=1)


def test_the_published_log_is_off_for_half_of_the_time_that_the_text_says() -> None:
    offs = published_offs(PUBLISHED)
    assert offs["off_s"] == pytest.approx(1.1437, abs=1e-4)
    assert offs["off_last_s"] == pytest.approx(0.327, abs=1e-3)
    assert offs["double_offs"] == PUBLISHED["counters"]["sack_retransmits_failed"] == 3


def test_the_published_counters_add_up_but_for_what_the_trace_and_the_router_saw() -> None:
    runs = pl.DataFrame(
        {
            **{
                f"{name}_retransmits": [1.0]
                for name in ("fast", "forward", "slow_start", "timeout", "rescue")
            },
            "retransmits": [5.0],
            "recovery_failures": [2.0],
            "double_offs": [1.0],
            "resent_sum": [5.0],
            **{f"resent_{times}": [1.0] for times in (1, 2, 3)},
            "off_s": [1.0],
            "off_last_s": [0.5],
            "dropped_tcp": [5.0],
        }
    )
    claims = identities(PUBLISHED, runs)
    words = [claim.published.split(":")[0] for claim in claims]
    assert words == ["PASS", "PASS", "MISMATCH", "MISMATCH", "MISMATCH"]
    assert "93 are missing, which 31 segments" in claims[2].published
    assert [claim.holds for claim in claims] == [True, False, True, True, True]
    assert {claim.about for claim in claims} == {"identity"}


def test_two_offs_before_an_on_count_once_from_the_first_and_once_from_the_last() -> None:
    states = pl.DataFrame({"t_ps": [1e12, 3e12, 4e12, 6e12, 7e12], "state": [1, 2, 0, 1, 0]})
    # One of them had no timeout, and lasted for a second.
    assert off_times(states) == {"off_s": 4.0, "off_last_s": 2.0, "double_offs": 1, "repair_ms": 1000.0}


def test_a_smoothed_estimate_follows_a_step_with_its_time_constant() -> None:
    streams = pl.DataFrame(
        {"closed_ps": [i * 10**9 for i in range(1000)], "available_bps": [0.0] * 500 + [1e9] * 500}
    )
    rows = smoothed(streams)
    at = rows.filter((pl.col("t_s") - 0.6).abs() < 5e-4).get_column("smooth_mbps").item()
    assert at == pytest.approx(1000 * (1 - 0.3679), rel=0.01)


@pytest.fixture(scope="module")
def flawed() -> tuple[pl.DataFrame, pl.DataFrame]:
    return of_case(CASES["flawed-later"], [1, 2], None)


@pytest.fixture(scope="module")
def overrun() -> tuple[pl.DataFrame, pl.DataFrame]:
    return of_case(CASES["overrun-tenth"], [1, 2], None)


def test_the_router_counts_what_its_queue_drops_and_not_what_its_inputs_lose(
    flawed: tuple[pl.DataFrame, pl.DataFrame], overrun: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    def ratio(runs: pl.DataFrame) -> float:
        return float(runs.select(pl.col("retransmits").sum() / pl.col("dropped_tcp").sum()).item())

    assert ratio(flawed[0]) < 1.1
    assert ratio(overrun[0]) > 10
    books = {claim.statement.split(",")[0]: claim.holds for claim in identities(PUBLISHED, overrun[0])}
    assert [holds for statement, holds in books.items() if not statement.startswith("The router")] == [
        True
    ] * 4


def test_variants_stand_beside_every_published_number_of_the_run(
    flawed: tuple[pl.DataFrame, pl.DataFrame], overrun: tuple[pl.DataFrame, pl.DataFrame]
) -> None:
    made = [(case, *facts) for case, facts in (("flawed-later", flawed), ("overrun-tenth", overrun))]
    made.append(("overrun", *overrun))
    runs = pl.concat([table.with_columns(case=pl.lit(case)) for case, table, _ in made])
    bins = pl.concat([table.with_columns(case=pl.lit(case)) for case, _, table in made])
    table = overruns(PUBLISHED, runs, bins)
    numbers = table.filter(pl.col("case") == "overrun")
    assert numbers.height == 14 + 1 + 2 + 10 + 3
    found = numbers.row(by_predicate=pl.col("number") == "retransmissions", named=True)
    mine = overrun[0].get_column("retransmits").cast(pl.Float64)
    assert (found["ours"], found["published"]) == (mine.mean(), 3174)
    assert table.filter(pl.col("number") == "segments of the flow dropped").get_column("ours").n_unique() == 2


def test_our_books_balance_in_every_run(flawed: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    runs, _ = flawed
    assert runs.get_column("retransmits").min() > 100
    causes = identities(PUBLISHED, runs)
    assert all(claim.holds for claim in causes), [claim.evidence for claim in causes if not claim.holds]
    assert (runs["dropped"] == runs["dropped_tcp"] + runs["dropped_udp"]).all()


def test_intervals_add_up_to_what_was_carried(flawed: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    runs, bins = flawed
    for replicate, mbytes in enumerate(runs.get_column("mbytes")):
        mine = bins.filter(pl.col("replicate") == replicate).get_column("mbps").sum() * 0.5 / 8
        # What is acknowledged last comes a round trip later.
        assert mine == pytest.approx(mbytes * 2**20 / 1e6, rel=0.01)


@pytest.mark.parametrize("kind", ["constant-300", "poisson-300", "constant-700", "poisson-700"])
def test_half_a_second_after_a_change_the_smoothed_estimate_is_within_15_percent(kind: str) -> None:
    case = CASES[f"better-{kind}"]
    records = records_of(case, 3)
    rows = smoothed(records["probe_streams"], brought(records, 0))
    for from_s, to_s in ((2.5, 5.0), (5.5, 6.2)):
        settled = rows.filter(pl.col("t_s").is_between(from_s, to_s))
        assert settled.height > 300
        error = (settled["smooth_mbps"] / settled["smooth_true_mbps"] - 1.0).abs()
        assert error.max() < 0.15, (from_s, error.max())
        # The truth is smoothed alike; that it has settled, too, is seen beside what is left in the long run.
        left = case.available_mbps if from_s < 5.0 else 1000.0
        assert (settled["smooth_true_mbps"] / left - 1.0).abs().max() < 0.15


@pytest.mark.parametrize("name", ["better-constant-300", "better-poisson-700", "better-coalesced-300"])
def test_the_better_rapid_takes_what_is_left_and_seldom_loses(name: str) -> None:
    case: Case = CASES[name]
    runs, _ = of_case(case, [1, 2], None)
    allowed = goodput_bps(case.available_mbps * 1e6) / 1e6
    assert runs.get_column("settled_mbps").min() > 0.95 * allowed
    assert runs.get_column("loss_events").max() < 5
    assert runs.get_column("worst_estimate").max() < 0.15


def test_an_interval_may_lie_where_one_more_run_of_ours_would_and_no_further() -> None:
    published = read("rapid-udp-cross-traffic", RapidUdp)
    spread = [-120.0, -80.0, -40.0, -20.0, 0.0, 0.0, 20.0, 40.0, 80.0, 120.0]
    told = published["throughput"]["intervals"]
    of_bins = [
        {"case": "flawed-later", "replicate": run, "bin": place, "mbps": mbps + off}
        for place, (_, _, mbps) in enumerate(told)
        for run, off in enumerate(spread)
    ]
    names = [
        *("mbytes", "end_s", "dropped_tcp", "dropped_udp", "retransmits", "fast_retransmits", "paws_rejects"),
        *("forward_retransmits", "slow_start_retransmits", "recovery_failures", "resent_1", "resent_2"),
        *("recoveries", "off_s", "late_mbps", "repair_ms"),
    ]
    runs = [
        {"case": case, **dict.fromkeys(names, 1.0)}
        for case in ("flawed-later", "flawed-alone")
        for _ in spread
    ]
    made = {row.name: row for row in rows(published, pl.DataFrame(runs), pl.DataFrame(of_bins))}
    # Student's t of nine degrees of freedom, 99 %: 3.250; and half of the last printed digit.
    within = 3.250 * float(np.std(spread, ddof=1)) * math.sqrt(1.1) + 0.5
    assert made["3.5-4.0 s"].tolerance == pytest.approx(within, rel=1e-3)
    # Of runs that all differ alike the mean of several bins is as far off as each.
    assert made["3.0-5.0 s together"].tolerance == pytest.approx(within, rel=1e-3)


def test_counters_without_a_spread_are_judged_by_the_print_and_by_what_is_known() -> None:
    published = read("rapid-udp-cross-traffic", RapidUdp)
    names = [name for name in KNOWN_COUNTERS if name != "late_mbps"]
    names += ["mbytes", "end_s", "recovery_failures", "paws_rejects", "recoveries", "off_s", "late_mbps"]
    runs = [
        {"case": case, **dict.fromkeys(names, 3.0)} for case in ("flawed-later", "flawed-alone") for _ in "ab"
    ]
    of_bins = [
        {"case": "flawed-later", "replicate": run, "bin": place, "mbps": 0.0}
        for place in range(14)
        for run in range(2)
    ]
    made = {row.name: row for row in rows(published, pl.DataFrame(runs), pl.DataFrame(of_bins))}
    assert made["failed recoveries"].tolerance == pytest.approx(0.5)
    assert made["failed recoveries"].verdict is Verdict.HOLDS
    assert made["refused by time stamp"].verdict is Verdict.MISFIT
    assert made["receiver: segments sent again"].verdict is Verdict.KNOWN
    # The log has four recoveries without a timeout: 107.9, 9.4, 103.2 and 90.4 ms.
    assert made["mean recovery without a timeout"].published == pytest.approx(77.72, abs=0.01)
    assert made["mean recovery without a timeout"].verdict is Verdict.MISFIT
