"""Studies that go on until they are precise enough, and that compare levels seed by seed."""

import math
import subprocess
import sys
import time
from contextlib import suppress

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import ttest_1samp

import weirlab
from weirlab.errors import InputError, RunFailed, ScenarioError
from weirlab.scenario import loads
from weirlab.stats import mean_interval
from weirlab.store import Store
from weirlab.studies import Study, run_study

BASE = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 30 %, frame_size: 1000 B}}
run: {duration: 1 ms, seed: 7}
measure:
  loss: {kind: loss-ratio, of: a}
  queue: {kind: mean-queue, of: switch-0->host-2}
study:
  replicates: 10
  factors:
    traffic.a.source.load: [20 %, 40 %, 48 %]
    buffer: {small: {queues.out.limit: 4 kB}, large: {queues.out.limit: 100 kB}}
"""
UNTIL = BASE + "  until: {half_widths: {queue: 15 %}, most: 300}\n"
PAIRED = BASE + "  until: {differences: {loss: 0.004}, most: 60}\n  compare: {factor: buffer}\n"
LOAD = "traffic.a.source.load"


def means(study, measure):
    rows = study.measures.filter(measure=measure).sort("point", "replicate")
    return {
        point: mean_interval(group["value"].to_list())
        for (point,), group in rows.group_by("point", maintain_order=True)
    }


def test_replicates_go_on_until_each_interval_is_as_narrow_as_asked():
    study = run_study(loads(UNTIL))
    counts = study.replicates_of
    assert study.complete
    assert min(counts.values()) >= 10
    assert max(counts.values()) > 3 * min(counts.values()), "points that scatter more have more replicates"
    for interval in means(study, "queue").values():
        assert interval.half_width <= 0.15 * interval.mean
    assert all(each.reached for each in study.reached)
    plain = run_study(loads(BASE, {"study.replicates": str(max(counts.values()))}))
    kept = plain.measures.filter(
        pl.col("replicate") < pl.col("point").replace_strict(counts, return_dtype=pl.Int64)
    )
    assert_frame_equal(study.measures, kept)


def test_a_point_that_does_not_become_precise_ends_at_most_and_is_reported(tmp_path):
    result = weirlab.study(loads(UNTIL, {"study.until.most": "20"}), out=tmp_path / "kept")
    short = [each for each in result.study.reached if not each.reached]
    assert short
    assert {result.study.replicates_of[each.point] for each in short} == {20}
    assert result.study.complete
    text = " ".join(str(result.summary()).split())
    assert f"Not as precise as asked at {len(short)} of 6 points, which ended at 20 replicates" in text
    assert "(asked: 15 %)" in text
    precise = {each["point"]: each for each in result.document["precision"]}
    assert [precise[each.point]["reached"] for each in short] == [False] * len(short)
    again = Study.load(tmp_path / "kept")
    assert again.reached == result.study.reached
    assert_frame_equal(again.measures, result.study.measures)


@pytest.mark.parametrize("text", [UNTIL, PAIRED])
def test_the_results_are_the_same_bytes_whoever_makes_them(tmp_path, text):
    digests = []
    for name, on in (("here", None), ("two", "local:2"), ("three", "local:3")):
        study = run_study(loads(text), directory=tmp_path / name, threads=1, on=on)
        assert study.complete
        tables = tmp_path / name / "tables"
        digests.append([(tables / f"{each}.parquet").read_bytes() for each in ("runs", "measures")])
    assert digests[0] == digests[1] == digests[2]


def test_a_study_that_was_killed_goes_on_to_the_same_results(tmp_path):
    file = tmp_path / "long.yaml"
    file.write_text(UNTIL.replace("1 ms", "4 ms").replace("15 %}, most: 300", "2 %}, most: 3000"))
    words = [sys.executable, "-m", "weirlab", "study", str(file), "--threads", "1", "--out"]
    runner = subprocess.Popen([*words, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    place, give_up = tmp_path / "killed" / "store", time.monotonic() + 120
    before = 0
    while before <= 60 and time.monotonic() < give_up:
        time.sleep(0.02)
        with suppress(InputError):
            before = Store.open(place).rows().height
    runner.kill()
    runner.wait()
    before = Store.open(place).rows().height
    went_on = run_study(file, directory=tmp_path / "killed")
    whole = run_study(file, directory=tmp_path / "whole")
    assert 60 < before < went_on.runs.height, "it was killed on its way"
    assert_frame_equal(went_on.measures, whole.measures)
    assert_frame_equal(went_on.runs, whole.runs)
    assert Store.open(place).rows().height == whole.runs.height, "nothing was made twice"


def test_a_finished_study_is_extended_to_narrower_intervals_and_repeats_nothing(tmp_path):
    first = run_study(loads(UNTIL), directory=tmp_path / "kept")
    narrower = loads(UNTIL, {"study.until.half_widths.queue": "10 %"})
    second = run_study(narrower, directory=tmp_path / "kept")
    assert second.runs.height > first.runs.height
    rows = Store.open(tmp_path / "kept" / "store").rows(columns=["key", "seed", "started"])
    assert rows.unique(["key", "seed", "started"]).height == second.runs.height, "each was simulated once"
    assert_frame_equal(second.measures, run_study(narrower).measures)


def test_replicates_beyond_those_asked_for_are_not_reported(tmp_path):
    run_study(loads(BASE, {"study.replicates": "60"}), store=tmp_path / "shared")
    study = run_study(loads(UNTIL), store=tmp_path / "shared")
    assert_frame_equal(study.measures, run_study(loads(UNTIL)).measures)


def test_a_run_that_fails_ends_its_point_and_no_other(tmp_path, monkeypatch):
    from weirlab.studies import plan

    real = plan.simulate

    def failing(scenario, seeds, **options):
        if 12 + 7 in seeds and str(scenario.traffic["a"].source.load) == "0.48":
            raise RunFailed("made to fail")
        return real(scenario, seeds, **options)

    with monkeypatch.context() as patched:
        patched.setattr(plan, "simulate", failing)
        study = run_study(loads(UNTIL), directory=tmp_path / "kept", threads=1)
        assert set(study.failures["reason"]) == {"made to fail"}
        assert not study.complete
    whole = run_study(loads(UNTIL), directory=tmp_path / "kept", threads=1)
    assert whole.complete
    assert_frame_equal(whole.measures, run_study(loads(UNTIL)).measures)


def test_differences_are_those_of_the_same_seeds_with_student_s_interval():
    result = weirlab.study(loads(PAIRED))
    study = result.study
    values = {
        (point, replicate): value
        for point, measure, replicate, value, _ in study.measures.iter_rows()
        if measure == "queue"
    }
    rows = result.differences.filter(measure="queue").to_dicts()
    assert [(row["baseline"], row["point"]) for row in rows] == [(0, 1), (2, 3), (4, 5)]
    for row in rows:
        pairs = range(row["pairs"])
        apart = [values[row["point"], i] - values[row["baseline"], i] for i in pairs]
        expected = mean_interval(apart)
        assert row["difference"] == pytest.approx(expected.mean)
        assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
        assert row["difference"] == pytest.approx(row["mean"] - row["baseline_mean"])
        logs = [math.log(values[row["point"], i] / values[row["baseline"], i]) for i in pairs]
        low, high = ttest_1samp(logs, 0).confidence_interval(0.95)
        found = [math.log(row[name]) for name in ("ratio", "ratio_low", "ratio_high")]
        assert found == pytest.approx([math.fsum(logs) / len(logs), low, high])


def test_points_that_are_compared_go_on_together_until_the_difference_is_known():
    study = run_study(loads(PAIRED))
    counts = study.replicates_of
    assert all(counts[small] == counts[small + 1] for small in (0, 2, 4))
    assert len(set(counts.values())) > 1
    result = weirlab.study(loads(PAIRED))
    for row in result.differences.filter(measure="loss").to_dicts():
        assert (row["high"] - row["low"]) / 2 <= 0.004 or row["pairs"] == 60


def test_seeds_in_common_save_runs_where_levels_do_the_same_to_both(tmp_path):
    same = loads(PAIRED.replace("small: {queues.out.limit: 4 kB}", "small: {queues.out.limit: 60 kB}"))
    result = weirlab.study(same, out=tmp_path / "kept")
    rows = result.differences.filter(measure="queue").to_dicts()
    for row in rows:
        exact = row["low"] == row["high"] == 0
        assert exact or row["saved"] > 5
    page = result.report().read_text(encoding="utf-8")
    assert "Difference from small (buffer)" in page
    assert (tmp_path / "kept" / "tables" / "differences.parquet").exists()


def test_a_baseline_can_be_any_level():
    result = weirlab.study(loads(PAIRED, {"study.compare.baseline": "large"}))
    assert result.differences["baseline"].unique().sort().to_list() == [1, 3, 5]
    turned = weirlab.study(loads(PAIRED)).differences
    assert result.differences["difference"].to_list() == pytest.approx(
        [-value for value in turned["difference"].to_list()]
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"study.replicates": "5"}, r"study\.replicates: with 'until', at least 10"),
        ({"study.until.most": "10"}, r"study\.until\.most: is more than 'replicates', which is 10"),
        ({"study.until.most": "2_000_000"}, r"study\.until\.most: at most 1 000 000"),
        (
            {"study.until.half_widths": {"que": "5 %"}},
            r"half_widths\.que: there is no measure 'que'; did you",
        ),
        (
            {"study.until.half_widths.queue": "5 us"},
            r"half_widths\.queue: does not fit 'queue'; write '1 kB'",
        ),
        (
            {"study.until.half_widths.queue": "5"},
            r"half_widths\.queue: does not fit 'queue'; write '1 kB' .*\(got '5'\)",
        ),
        ({"study.until.half_widths.queue": "0 %"}, r"half_widths\.queue: more than zero"),
        ({"study.until.half_widths.queue": "wide"}, r"half_widths\.queue: write half of an interval's width"),
        ({"study.until.half_widths": None}, r"study\.until: asks for nothing"),
        ({"study.until.differences": {"queue": "5 %"}}, r"study\.until\.differences: of what\?"),
        (
            {"study.compare": {"factor": "bufer"}},
            r"compare\.factor: there is no factor 'bufer'; did you mean",
        ),
        (
            {"study.compare": {"factor": "buffer", "baseline": "smal"}},
            r"compare\.baseline: 'buffer' has no level 'smal'; did you mean 'small'",
        ),
    ],
)
def test_what_is_wrong_with_a_design_is_reported_at_its_place(change, told):
    with pytest.raises(ScenarioError, match=told):
        loads(UNTIL, change)


def test_fewer_replicates_by_option_are_refused_where_intervals_decide():
    with pytest.raises(InputError, match=r"at least 10 replicates with 'study\.until'"):
        run_study(loads(UNTIL), replicates=3)


def test_absolute_widths_have_the_unit_of_their_measure():
    study = run_study(loads(UNTIL, {"study.until.half_widths": {"queue": "0.5 kB", "loss": "0.01"}}))
    assert all(each.half_width <= 500 for each in means(study, "queue").values())
    assert all(each.half_width <= 0.01 for each in means(study, "loss").values())
    assert not any(math.isnan(each.half_width) for each in study.reached)
