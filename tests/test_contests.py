"""Studies that find what is best: by halving, and by an optimiser; and what new seeds say of it."""

import json
import math
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weirlab
from made_contests import CHOSEN, HALVED, results
from test_study_designs import LOAD
from weirlab.errors import InputError, ScenarioError
from weirlab.scenario import loads
from weirlab.scenario.plan.contest import Halving
from weirlab.stats import mean_interval
from weirlab.store import Store
from weirlab.studies import RunsPlan, Study, run_study
from weirlab.studies.asking import asking_of
from weirlab.units import Span

SHORT = HALVED.replace("verdict: 20", "verdict: 20, duration: 0.3 ms, keep: 60 %, apart: [buffer]")


def of_rounds(study):
    found = {}
    for each in study.standings:
        found.setdefault((tuple(each.levels.values()), each.round), []).append(each)
    return found


# --- halving


def test_each_round_has_as_many_runs_and_keeps_those_that_did_best():
    study = run_study(loads(HALVED))
    assert study.complete
    rounds = of_rounds(study)
    assert [(len(each), each[0].replicates) for each in rounds.values()] == [(10, 2), (5, 4), (3, 8)]
    before = None
    for (_, _), standings in sorted(rounds.items()):
        rows = study.measures.filter(
            pl.col("measure") == "queue", pl.col("replicate") < standings[0].replicates
        )
        means = {point: group["value"].mean() for (point,), group in rows.group_by("point")}
        assert {each.point: each.value for each in standings} == pytest.approx(
            {each.point: means[each.point] for each in standings}
        )
        kept = [each.value for each in standings if each.kept]
        assert max(kept) <= min(each.value for each in standings if not each.kept)
        assert before is None or {each.point for each in standings} == before
        before = {each.point for each in standings if each.kept}
    assert len(study.finalists) == 2
    verdict = study.points.filter(stage="verdict")["point"].to_list()
    assert {each.point for each in study.finalists} == set(verdict)


def test_runs_grow_to_their_whole_duration_and_then_in_number():
    halving = Halving(measure="queue", duration=Span.from_s(1), finalists=1)
    rungs = halving.rungs(64, 3, Span.from_s(8))
    assert [(each.replicates, each.duration and each.duration.s, each.kept) for each in rungs] == [
        (3, 1, 32),
        (3, 2, 16),
        (3, 4, 8),
        (3, None, 4),
        (6, None, 2),
        (12, None, 1),
    ]
    assert halving.rungs(1, 3, None) == []


def test_short_runs_choose_and_whole_ones_judge_apart_for_each_level():
    study = run_study(loads(SHORT))
    stages = study.points["stage"].unique(maintain_order=True).to_list()
    assert stages == ["300 us", "500 us", "verdict"]
    sent = study.runs.join(study.points, on="point").group_by("stage").agg(pl.col("sent_frames").mean())
    by_stage = dict(sent.iter_rows())
    assert by_stage["300 us"] < by_stage["500 us"] < by_stage["verdict"]
    assert [tuple(each.levels.values()) for each in study.finalists] == [("small",)] * 2 + [("large",)] * 2
    buffers = dict(study.points.select("point", "buffer").iter_rows())
    assert all(each.levels["buffer"] == buffers[each.point] for each in study.standings)


def test_the_verdict_has_seeds_that_decided_nothing():
    for text in (HALVED, SHORT, CHOSEN):
        runs = run_study(loads(text))
        staged = runs.runs.join(runs.points, on="point")
        judged = set(staged.filter(stage="verdict")["seed"])
        assert len(judged) == 20
        assert not judged & set(staged.filter(pl.col("stage") != "verdict")["seed"])


def test_intervals_hold_after_selection_where_those_of_the_chosen_runs_do_not():
    scenario = loads(HALVED.replace("verdict: 20", "verdict: 12, keep: 20 %"))
    rng = np.random.default_rng(5)
    held = naive = together = 0
    studies = 400
    for _ in range(studies):
        plan = RunsPlan(scenario, 1, 6)
        asking = asking_of(plan)
        results(asking, plan, lambda point, replicate: float(rng.normal()), {})  # all are the same: 0
        best, other = asking.finalists
        held += best.low <= 0 <= best.high
        together += best.low <= 0 <= best.high and other.low <= 0 <= other.high
        chosen = next(each for each in reversed(asking.standings) if each.kept)
        values = asking.first(chosen.point, "queue", chosen.replicates)
        interval = mean_interval(values)
        naive += interval.low <= 0 <= interval.high
        assert best.behind == 0
        assert other.behind >= 0
    tolerance = 3 * math.sqrt(0.05 * 0.95 / studies)
    assert together / studies >= 0.95 - tolerance
    assert held / studies >= 0.95 - tolerance
    assert naive / studies < 0.9, "the runs that chose a point say that it is better than it is"


def test_all_pairs_of_finalists_have_intervals_that_hold_together():
    scenario = loads(HALVED.replace("finalists: 2, verdict: 20", "finalists: 4, verdict: 8"))
    rng = np.random.default_rng(6)
    truth = {0: 0.0, 1: 0.1, 2: 0.2, 3: 0.3}
    wrong, studies = 0, 400
    for _ in range(studies):
        plan = RunsPlan(scenario, 1, 2)
        common = rng.normal(size=100)
        asking = asking_of(plan)
        mean = lambda point: truth.get(point % 10, 9.0)  # noqa: E731
        results(asking, plan, lambda p, i: mean(p) + 3 * common[i] + 0.3 * rng.normal(), {})  # noqa: B023
        best, *rest = asking.finalists
        wrong += any(
            not each.behind_low <= mean(each.point) - mean(best.point) <= each.behind_high for each in rest
        )
    assert wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize("lacking", [1, 2])
def test_a_finalist_whose_runs_do_not_all_answer_is_not_judged_by_the_others(lacking):
    plan = RunsPlan(loads(HALVED), 1, 2)
    asking = asking_of(plan)
    last = len(plan.stages) - 1
    points = len(plan.order) // len(plan.stages)

    def value(point, replicate):
        base = point % points
        missing = plan.stage(point) == last and base < lacking and replicate == 3
        return math.nan if missing else float(base + 0.01 * replicate)

    results(asking, plan, value, {})
    best, other = asking.finalists
    assert math.isnan(other.mean)
    assert math.isnan(other.behind_low)
    assert math.isnan(best.mean) is (lacking == 2)
    if lacking == 1:
        assert best.point % points == 1, "point 0 has the lower mean of those that answer"


def test_points_that_cannot_be_are_left_out_of_the_contest(tmp_path):
    text = HALVED.replace("hosts: 3", "hosts: 4").replace(
        "factors:\n",
        "factors:\n    network.hosts: [3, 4]\n    ends: {near: {}, far: {traffic.a.from: host-3}}\n",
    )
    with pytest.raises(ScenarioError, match=r"at network\.hosts 3, ends far"):
        run_study(loads(text))
    study = run_study(loads(text.replace("study:\n", "study:\n  impossible: list\n")), directory=tmp_path)
    assert study.complete
    assert len(study.impossible) == 10
    assert len(study.finalists) == 2
    first = [each for each in study.standings if each.round == 1]
    assert len(first) == 30
    again = Study.load(tmp_path)
    assert again.complete
    assert str(again.finalists) == str(study.finalists)


# --- both


@pytest.mark.parametrize("text", [HALVED, SHORT, CHOSEN])
def test_the_results_are_the_same_bytes_whoever_makes_them(tmp_path, text):
    found = []
    for name, on in (("here", None), ("two", "local:2"), ("three", "local:3")):
        study = run_study(loads(text), directory=tmp_path / name, threads=1, on=on)
        assert study.complete
        tables = tmp_path / name / "tables"
        found.append({path.name: path.read_bytes() for path in sorted(tables.iterdir())})
    assert set(found[0]) == {
        f"{name}.parquet" for name in ("points", "runs", "measures", "rounds", "verdict")
    }
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("text", [HALVED, CHOSEN])
def test_a_contest_that_was_killed_goes_on_to_the_same_results(tmp_path, text):
    file = tmp_path / "long.yaml"
    longer = (
        text.replace("1 ms", "6 ms")
        .replace("verdict: 20", "verdict: 400")
        .replace("generations: 5", "generations: 60")
    )
    file.write_text(longer)
    words = [sys.executable, "-m", "weirlab", "study", str(file), "--threads", "1", "--out"]
    runner = subprocess.Popen([*words, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    place, before, give_up = tmp_path / "killed" / "store", 0, time.monotonic() + 120
    while before <= 30 and time.monotonic() < give_up:
        time.sleep(0.02)
        with suppress(InputError):
            before = Store.open(place).rows().height
    runner.kill()
    runner.wait()
    before = Store.open(place).rows().height
    half_way = Study.load(tmp_path / "killed")
    went_on = run_study(file, directory=tmp_path / "killed")
    whole = run_study(file, directory=tmp_path / "whole")
    assert 30 < before < went_on.runs.height, "it was killed on its way"
    assert not half_way.finalists
    assert_frame_equal(went_on.measures, whole.measures)
    assert_frame_equal(went_on.points, whole.points)
    assert str(went_on.finalists) == str(whole.finalists)
    assert Store.open(place).rows().height == whole.runs.height, "nothing was made twice"


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (HALVED, {"study.halving.verdict": "40"}),
        (HALVED, {"study.halving.finalists": "4"}),
        (HALVED, {f"study.factors.{LOAD}": ["10 %", "20 %", "30 %", "40 %", "44 %", "48 %"]}),
        (CHOSEN, {"study.design.verdict": "40"}),
        (CHOSEN, {"study.design.generations": "8", "study.design.finalists": "3"}),
    ],
)
def test_a_finished_contest_is_extended_and_repeats_nothing(tmp_path, text, change):
    scenario = loads(text)
    if f"study.factors.{LOAD}" in change:
        study = scenario.study.model_dump(mode="json", by_alias=True)
        study["factors"][LOAD] = change.pop(f"study.factors.{LOAD}")
        more = scenario.assign({"study": study})
        study["factors"][LOAD] = study["factors"][LOAD][1:]
        scenario = scenario.assign({"study": study})
    else:
        more = loads(text, change)
    first = run_study(scenario, directory=tmp_path / "kept")
    second = run_study(more, directory=tmp_path / "kept")
    fresh = run_study(more)
    assert second.runs.height > first.runs.height
    assert_frame_equal(second.measures, fresh.measures)
    assert str(second.finalists) == str(fresh.finalists)
    rows = Store.open(tmp_path / "kept" / "store").rows(columns=["key", "seed", "started"])
    assert rows.unique(["key", "seed"]).height == rows.unique(["key", "seed", "started"]).height
    assert rows.height == first.runs.height + second.runs.height, "the store knows both"


@pytest.mark.parametrize("text", [HALVED, SHORT, CHOSEN])
def test_a_contest_is_read_and_reported_as_it_was_found(tmp_path, text):
    result = weirlab.study(loads(text), out=tmp_path / "kept")
    again = weirlab.read(tmp_path / "kept")
    study = Study.load(tmp_path / "kept")
    assert str(study.finalists) == str(result.study.finalists)
    assert str(study.standings) == str(result.study.standings)
    assert study.planned == result.study.planned
    assert again.verdict.equals(result.verdict)
    assert result.verdict["rank"].to_list()[:2] == [1, 2]
    text = str(result.summary())
    assert "Best" in text
    page = result.report().read_text(encoding="utf-8")
    assert "Verdict: queue over 20 new seeds" in page
    assert "queue by round" in page
    assert json.loads((tmp_path / "kept" / "result.json").read_text())["verdict"]


@pytest.mark.parametrize(
    ("text", "change", "told"),
    [
        (HALVED, {"study.halving.measure": "que"}, r"halving\.measure: there is no measure 'que'; did you"),
        (
            HALVED,
            {"study.halving.at_most": {"que": "1"}},
            r"at_most\.que: there is no measure 'que'; did you",
        ),
        (HALVED, {"study.halving.at_least": {"queue": "1 us"}}, r"at_least\.queue: .*write '1 kB' \(got"),
        (HALVED, {"study.halving.at_most": {"queue": "2"}}, r"at_most\.queue: .*write '1 kB' \(got '2'\)"),
        (
            HALVED,
            {"study.halving.at_most": {"queue": "1 kB"}, "study.halving.at_least": {"queue": "2000 B"}},
            r"at_least\.queue: is above 'at_most', which is '1 kB' \(got '2000 B'\)",
        ),
        (HALVED, {"study.halving.keep": "95 %"}, r"halving\.keep: a share from 1 % to 90 %"),
        (HALVED, {"study.halving.duration": "2 ms"}, r"halving\.duration: is shorter than 'run\.duration'"),
        (HALVED, {"study.halving.apart": ["bufer"]}, r"apart\.0: there is no factor 'bufer'; did you mean"),
        (HALVED, {"study.halving.verdict": "1"}, r"halving\.verdict: an interval needs 2"),
        (HALVED, {"study.compare": {"factor": "buffer"}}, r"study\.compare: cannot be combined"),
        (CHOSEN, {"study.halving": {"measure": "queue"}}, r"study\.halving: an optimisation chooses"),
        (CHOSEN, {"study.design.most": "1"}, r"design\.most: is 'replicates' or more"),
        (CHOSEN, {"study.design.generations": "1000"}, r"design\.generations: at most 999"),
        (CHOSEN, {"study.design.choices.kind": {"one": {}}}, r"choices\.kind: has one level"),
        (CHOSEN, {"study.design.population": "1"}, r"design\.population: 2 to 1000"),
        (CHOSEN, {"study.design.choices.kind.long": {"traffic.a.sorce": "1"}}, r"choices\.kind\.long: "),
        (CHOSEN, {"study.design.parameters.queues.out.limt": {"between": "1 kB .. 2 kB"}}, r"parameters"),
    ],
)
def test_what_is_wrong_with_a_contest_is_reported_at_its_place(text, change, told):
    with pytest.raises(ScenarioError, match=told):
        loads(text, change)


def test_a_run_too_short_for_a_measure_is_refused_at_the_duration():
    text = SHORT.replace(
        "queue: {kind: mean-queue, of: switch-0->host-2}",
        "queue: {kind: mean-queue, of: switch-0->host-2, window: 0.5 ms .. 1 ms}",
    )
    text = text.replace("measure:\n", "record: {q: {queue: switch-0->host-2, every: 100 us}}\nmeasure:\n")
    with pytest.raises(ScenarioError, match=r"study\.halving\.duration: "):
        loads(text)


def test_a_store_and_a_page_of_work_know_the_points_that_were_chosen(tmp_path):
    from weirlab.studies.stored import asked, store_at
    from weirlab.viewer.live_study import LiveStudy

    for name, text in (("halved", HALVED), ("chosen", CHOSEN)):
        study = run_study(loads(text), directory=tmp_path / name)
        store = store_at(str(tmp_path / name))
        levels = asked(store, "select point, factor, level from levels where factor != 'stage'")
        expected = study.points.drop("stage").unpivot(
            index="point", variable_name="factor", value_name="level"
        )
        assert sorted(levels.iter_rows()) == sorted(expected.iter_rows())
        [planned] = asked(store, "select planned from studies")["planned"]
        assert planned == study.runs.height if name == "halved" else planned > 0
        live = LiveStudy(tmp_path / name, tmp_path)
        live.look()
        assert live.done == live.total == study.runs.height
        assert live.table()[1]
        assert live.charts()


def test_the_check_says_how_many_points_may_be_chosen(tmp_path):
    (tmp_path / "chosen.yaml").write_text(CHOSEN)
    words = [sys.executable, "-m", "weirlab", "check", str(tmp_path / "chosen.yaml")]
    points = RunsPlan(loads(CHOSEN), 1, 2).order
    assert f"{len(points)} points" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
