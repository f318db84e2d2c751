"""Published runs of fabrics: single messages digit for digit, others within what one more run may give."""

import polars as pl

from weirlab.reproductions import Effort
from weirlab.reproductions.fabric import cases, reproduce
from weirlab.reproductions.fabric.cases import CASES, simulated
from weirlab.reproductions.fabric.rows import Found, claims, rows
from weirlab.reproductions.fabric.uet import UET
from weirlab.reproductions.verdicts import Verdict
from weirlab.runs import simulate


def only(monkeypatch, *names):
    monkeypatch.setattr(cases, "CASES", tuple(case for case in CASES if case.name in names))


def test_messages_alone_take_what_was_recorded_to_six_digits(monkeypatch):
    names = [f"{name}, nscc" for name in ("one", "message-10", "message-100")]
    only(monkeypatch, *names, "message-10, rccc", "message-100, rccc", "one, rccc", "one, both")
    found = rows(Found(simulated(Effort(quick=True, threads=1))))
    assert [row.verdict for row in found] == [Verdict.HOLDS] * 7
    assert all(row.tolerance <= 0.0005 for row in found)


def test_slow_links_have_a_quarter_of_the_queue_and_its_marks():
    (case,) = (case for case in CASES if case.name == "spray-bitmap-slow, rccc")
    queues = [case.changes[f"queues.{name}"]["classes"] for name in ("between", "slow")]
    assert [q["data"]["limit"] for q in queues] == [f"{42 * 4150} B", f"{43 * 4150 // 4 - 4150} B"]
    assert [q["data"]["marking"]["k_min"] for q in queues] == [
        f"{8 * 4150} B",
        f"{9 * 4150 // 4 - 4150} B",
    ]


def test_credit_gives_the_first_message_of_an_outcast_the_time_that_was_recorded_to_six_digits(monkeypatch):
    only(monkeypatch, "outcast, rccc", "outcast, both")
    found = rows(Found(simulated(Effort(quick=True, threads=1))))
    assert [row.verdict for row in found if "first" in row.name] == [Verdict.HOLDS] * 2


def test_flows_that_join_with_a_first_window_of_50_packets_lose_the_80_packets_that_were_recorded():
    (case,) = (case for case in CASES if case.name == "join, nscc")
    records = simulate(case.scenario(1), [1])
    assert records["messages"]["retransmits"].sum() == 80


def test_web_search_is_marked_by_rate_as_frames_leave_and_resends_nothing_that_waits():
    (case,) = (case for case in CASES if case.name == "websearch 50, dcqcn")
    queues = [case.changes[f"queues.{name}"]["classes"]["data"]["marking"] for name in ("hosts", "between")]
    assert [marks["k_max"] for marks in queues] == ["400 kB", "1600 kB"]
    assert {marks["when"] for marks in queues} == {"departure"}
    for name in ("web", "short"):
        transport = case.changes[f"traffic.{name}.transport"]
        # Buffers of 32 MB at 25 Gbit/s hold 10 ms.
        assert (transport["timeout"], transport["answers"]) == ("1 s", {"class": 6})
    # 48 of 63 messages of 16 hosts with 25 Gbit/s fill half of a link with 100.
    assert abs(16 * 25 * 48 / 63 * case.changes["traffic.web.source.load"] - 50) < 1e-9


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
    assert sum(row.verdict is Verdict.HOLDS for row in found.rows) >= 25
    assert all(row.decides for row in found.rows if row.verdict is Verdict.HOLDS)


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
            "value": [2.50e8, 2.51e8, 2.52e8, 1.8796e8, 1.8797e8, 1.8798e8],
        }
    )
    found = Found(table)
    assert [row.verdict for row in rows(found)] == [Verdict.MISFIT, Verdict.HOLDS]
    (limit,) = claims(found)
    assert limit.verdict is Verdict.MISFIT


def test_outcast_flows_are_known_where_no_run_differs_and_not_where_all_end_later():
    for shift, verdict in ((0.0, Verdict.KNOWN), (20_000.0, Verdict.MISFIT), (-995_920.0, Verdict.GONE)):
        table = pl.DataFrame(
            {
                "case": "outcast, both",
                "measure": ["tail"] * 5 + ["first"] * 5,
                "replicate": [*range(5)] * 2,
                "value": [1_635_105_920.0 + shift] * 5 + [200_107_830.0] * 5,
            }
        )
        tail, first = rows(Found(table))
        assert (tail.verdict, first.verdict) == (verdict, Verdict.HOLDS), tail


def test_a_median_below_a_published_bound_is_known_where_it_repeats_and_gone_where_it_passes():
    drawn = [26_140_193.0, 28_776_496.0, 27_772_067.0, 27_319_813.0, 28_100_000.0]
    for shift, verdict in ((0.0, Verdict.KNOWN), (-16e6, Verdict.MISFIT), (8e6, Verdict.GONE)):
        values = [value + shift for value in drawn]
        table = pl.DataFrame(
            {"case": "mice, dcqcn", "measure": "mice", "replicate": range(5), "value": values}
        )
        (claim,) = claims(Found(table))
        assert claim.verdict is verdict, claim.evidence
