"""Studies of searches: every point and replicate a search of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from weirlab.errors import InputError, ScenarioError
from weirlab.report.search_points import evidence_tables, rate_table, terms_of_all
from weirlab.scenario import loads
from weirlab.searches import run_search
from weirlab.searches.base import Bound, Ending, FoundRates
from weirlab.searches.build import build
from weirlab.searches.evidence import Stationarity
from weirlab.searches.points import (
    PointSearch,
    directions_table,
    point_searches,
    rates_table,
    run_point_searches,
)
from weirlab.testbed import open_testbed
from weirlab.testbed.base import Direction

FILE = """\
weirlab: 1
name: sizes
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 2 Mframe/s]
  goals: {NDR: {loss: 0 %, width: 1 %}, PDR: {loss: 1 %, width: 1 %}}
  trial: {duration: 1 s}
study:
  replicates: 2
  factors:
    traffic.offered.source.frame_size: [64 B, 512 B, 1518 B]
    device: {slow: {testbed.device.capacity: 500 kframe/s}, fast: {}}
"""


def run(each: PointSearch, directory: Path) -> FoundRates:
    bed = open_testbed(each.scenario)
    return run_search(build(each.scenario), bed, log=directory / "trials.jsonl")


def test_every_combination_and_replicate_is_a_search_with_its_own_seed_and_directory():
    searches = point_searches(loads(FILE))
    assert len(searches) == 3 * 2 * 2
    assert len({each.name for each in searches}) == len(searches)
    assert [each.scenario.run.seed for each in searches[:4]] == [1, 2, 1, 2]
    assert searches[-1].levels == {"traffic.offered.source.frame_size": "1518 B", "device": "fast"}
    assert {each.scenario.offered().frame_size_bytes for each in searches} == {64, 512, 1518}


def test_each_point_finds_its_own_device(tmp_path):
    results = run_point_searches(point_searches(loads(FILE)), tmp_path, run)
    table = rates_table(results)
    assert table.height == len(results) * 2
    for row in table.filter(goal="NDR").iter_rows(named=True):
        capacity_fps = 5e5 if row["device"] == "slow" else 1e6
        assert row["lower_fps"] <= capacity_fps <= row["upper_fps"]
        assert row["regular"]


def test_rates_stand_beside_their_bits_directions_and_evidence(tmp_path):
    file = FILE.replace(
        "from: sender, to: receiver", "pattern: {kind: list, flows: [sender->receiver, receiver->sender]}"
    )
    results = run_point_searches(point_searches(loads(file)), tmp_path, run)
    for row in rates_table(results).iter_rows(named=True):
        size = int(row["traffic.offered.source.frame_size"].removesuffix(" B"))
        assert (row["frame_size_bytes"], row["directions"]) == (size, 2)
        assert row["lower_per_direction_fps"] == row["lower_fps"] / 2
        assert row["l2_bps"] == row["lower_fps"] * size * 8
        assert row["l1_bps"] - row["l2_bps"] == pytest.approx(row["lower_fps"] * 160)
        assert (row["full_trials"], row["exceeding_trials"]) == (1, 0)
        assert (row["exceed_estimate"], row["exceed_low"], row["exceed_high"]) == (None, None, None)
        assert row["lower_trials"] >= 1 <= row["upper_trials"]
        assert row["conditional_throughput_fps"] == pytest.approx(
            min(row["lower_fps"], row["lower_fps"] * (1 - row["loss_ratio"]))
        )
        assert 0.0 < row["reached_s"] <= row["time_s"]
        assert row["stationarity"] in set(Stationarity)


def test_factors_that_end_alike_have_a_column_each(tmp_path):
    widths = {f"search.goals.{goal}.width": ["5 %", "10 %"] for goal in ("NDR", "PDR")}
    scenario = loads(FILE, {"study.factors": widths, "study.replicates": 1})
    table = rate_table(rates_table([(each, run(each, tmp_path)) for each in point_searches(scenario)[:1]]))
    assert [column.name for column in table.columns][:3] == ["NDR.width", "PDR.width", "goal"]
    assert table.rows[0][:3] == ["5 %", "5 %", "NDR"]


def test_the_counts_of_each_direction_are_a_table_and_add_up_to_those_of_the_trials(tmp_path):
    file = FILE.replace(
        "from: sender, to: receiver", "pattern: {kind: list, flows: [sender->receiver, receiver->sender]}"
    )
    searches = point_searches(loads(file))[:2]
    told = [(each, _in_two_directions(run(each, tmp_path / each.name))) for each in searches]
    table = directions_table(told)
    assert table.columns[:4] == ["point", "replicate", "traffic.offered.source.frame_size", "device"]
    assert table.height == len(told) * 2 * 2 * 2
    for each, result in told:
        for goal in result.goals:
            for side, bound in (("lower", goal.lower), ("upper", goal.upper)):
                rows = table.filter(
                    point=each.point, replicate=each.replicate, goal=goal.goal.name, bound=side
                )
                assert rows["direction"].to_list() == ["there", "back"]
                assert set(rows["trial"]) == {bound.trial.spec.index}
                assert rows["sent_frames"].sum() == bound.trial.sent_frames
                assert rows["received_frames"].sum() == bound.trial.received_frames
                assert rows["loss_ratio"].to_list() == [way.loss_ratio for way in bound.trial.per_direction]


def _in_two_directions(result: FoundRates) -> FoundRates:
    """The same result from a testbed that tells directions apart."""

    def divided(bound: Bound) -> Bound:
        trial = bound.trial
        sent, received = trial.sent_frames // 2, trial.received_frames // 2
        back = Direction(
            name="back",
            sent_frames=trial.sent_frames - sent,
            received_frames=trial.received_frames - received,
        )
        there = Direction(name="there", sent_frames=sent, received_frames=received)
        return replace(bound, trial=replace(trial, per_direction=(there, back)))

    goals = [replace(goal, lower=divided(goal.lower), upper=divided(goal.upper)) for goal in result.goals]
    return replace(result, goals=goals)


def test_without_counts_of_directions_their_table_is_empty_but_has_its_columns(tmp_path):
    each = point_searches(loads(FILE))[0]
    table = directions_table([(each, run(each, tmp_path))])
    assert table.height == 0
    assert table.columns[-3:] == ["sent_frames", "received_frames", "loss_ratio"]


@pytest.mark.parametrize("name", ["goal", "point", "trials", "bound"])
def test_a_factor_that_is_called_like_a_column_is_refused_at_its_place(name):
    text = FILE.replace("    device: {slow", f"    {name}: {{slow")
    with pytest.raises(ScenarioError, match=rf"study.factors.{name}.*have a column '{name}' already"):
        point_searches(loads(text))


def test_a_search_without_evidence_has_nulls_for_it(tmp_path):
    scenario = loads(FILE, {"search.algorithm": {"kind": "binary"}})
    table = rates_table(run_point_searches(point_searches(scenario)[:1], tmp_path, run))
    assert table.get_column("lower_fps").null_count() == 0
    for column in ("full_trials", "exceed_estimate", "stationarity", "reached_s"):
        assert table.get_column(column).null_count() == table.height


def test_the_evidence_of_all_points_is_one_table_with_their_levels_before_it(tmp_path):
    results = run_point_searches(point_searches(loads(FILE)), tmp_path, run)
    (table,) = evidence_tables(results)
    assert [column.name for column in table.columns][:4] == ["frame_size", "device", "replicate", "goal"]
    assert len(table.rows) == 2 * len(results)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.rows[0][:4] == ["64 B", "slow", "0", "NDR"]


def test_the_goals_of_all_points_are_told_once_where_they_are_the_same(tmp_path):
    results = run_point_searches(point_searches(loads(FILE)), tmp_path / "same", run)
    (table,) = terms_of_all(results)
    assert [row[0] for row in table.rows] == ["NDR †", "PDR †"]
    assert "conditional\nthroughput" in [column.name for column in rate_table(rates_table(results)).columns]
    other = FILE.replace("{testbed.device.capacity: 500 kframe/s}", "{search.goals.PDR.loss: 2 %}")
    results = run_point_searches(point_searches(loads(other)), tmp_path / "other", run)
    (table,) = terms_of_all(results)
    assert len(table.rows) == 2 * len(results)
    assert [row[1] for row in table.rows if row[2] == "PDR †" and row[3] == "2 %"] == ["slow"] * 6
    assert terms_of_all([]) == []


def test_a_study_that_was_interrupted_goes_on_without_repeating_a_trial(tmp_path):
    searches = point_searches(loads(FILE))
    made = []

    def counting(each: PointSearch, directory: Path) -> FoundRates:
        def interrupt(progress):
            made.append(each.name) if progress.trial is not None else None
            if each is searches[2] and progress.trials == 3:
                raise KeyboardInterrupt

        bed = open_testbed(each.scenario)
        return run_search(build(each.scenario), bed, log=directory / "trials.jsonl", on_progress=interrupt)

    first = run_point_searches(searches, tmp_path, counting)
    assert [result.ending for _, result in first] == [Ending.FINISHED, Ending.FINISHED, Ending.INTERRUPTED]
    again = run_point_searches(searches, tmp_path, run)
    undisturbed = run_point_searches(searches, tmp_path / "other", run)
    assert rates_table(again).equals(rates_table(undisturbed))
    assert [r.trials for _, r in again[:2]] == [r.trials for _, r in first[:2]]
    assert list(again[2][1].trials[:3]) == list(first[2][1].trials)


def test_two_factors_that_set_the_same_field_are_refused_at_the_second():
    payload = "fast: {traffic.offered.source.payload: 100 B, traffic.offered.source.frame_size: null}"
    text = FILE.replace("fast: {}", payload).replace(
        "frame_size: 64 B}", "frame_size: 64 B}, transport: {kind: udp}"
    )
    factors = "    traffic.offered.source.frame_size: [64 B, 512 B, 1518 B]\n"
    text = text.replace(factors, "") + factors
    with pytest.raises(ScenarioError) as caught:
        point_searches(loads(text))
    (problem,) = map(str, caught.value.problems)
    assert "sets 'traffic.offered.source.frame_size', as does factor 'device'" in problem


def test_a_scenario_without_a_study_has_no_points():
    with pytest.raises(InputError, match="needs the sections 'study' and 'search'"):
        point_searches(loads(FILE).assign({"study": None}))
