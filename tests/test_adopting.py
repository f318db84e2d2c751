"""What a store has of a study that extends another one is known before anything is run."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from weirlab.scenario import loads
from weirlab.store import Store
from weirlab.studies import RunsPlan, run_study, running
from weirlab.studies.adopting import adopt

SCENARIO = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 30 %, frame_size: 1000 B}}
run: {duration: 1 ms, seed: 7}
measure: {loss: {kind: loss-ratio, of: a}}
study:
  replicates: 3
  factors:
    traffic.a.source.load: [20 %, 45 %]
    buffer: {small: {queues.out.limit: 3 kB}, large: {queues.out.limit: 20 kB}}
"""
LOADS = 'study.factors."traffic.a.source.load"'


@pytest.fixture(scope="module")
def scenario():
    return loads(SCENARIO)


@pytest.fixture
def store(scenario, tmp_path):
    run_study(scenario, store=tmp_path / "store")
    return Store.open(tmp_path / "store")


def there_are(scenario, store, replicates=None, seed=None):
    """How many runs of a study a store has from others."""
    return adopt(plan_of(scenario, replicates, seed), store)


def plan_of(scenario, replicates=None, seed=None):
    return RunsPlan(
        scenario,
        scenario.run.seed if seed is None else seed,
        scenario.study.replicates if replicates is None else replicates,
    )


@pytest.mark.parametrize(
    ("change", "replicates", "seed", "known"),
    [
        pytest.param({}, 5, None, 4 * 3, id="more replicates"),
        pytest.param({}, 2, None, 4 * 2, id="fewer"),
        pytest.param({}, 4, 8, 4 * 2, id="two seeds in common"),
        pytest.param({LOADS: ["10 %", "45 %", "20 %"]}, None, None, 4 * 3, id="another level"),
        pytest.param({"study.factors.buffer": None}, None, None, 2 * 3, id="without a factor"),
        pytest.param(
            {"study.factors.buffer": None, "queues.out.limit": "3 kB"}, None, None, 0, id="another scenario"
        ),
        pytest.param({"study.factors": {}}, None, None, 0, id="the point itself, which was no level"),
        pytest.param({'study.factors."run.duration"': ["1 ms", "2 ms"]}, None, None, 12, id="another factor"),
        pytest.param(
            {'study.factors."run.duration"': ["2 ms", "3 ms"]}, None, None, 0, id="only other levels"
        ),
        pytest.param({"study.where": ["load < 40 %"]}, None, None, 2 * 3, id="a condition"),
        pytest.param(
            {"study.until": {"half_widths": {"loss": "1 %"}, "most": 20}, "study.replicates": 10},
            10,
            None,
            12,
            id="until",
        ),
        pytest.param(
            {"measure.loss": None, "measure.lost": {"kind": "loss-ratio", "of": "a"}},
            3,
            None,
            0,
            id="measures",
        ),
    ],
)
def test_what_a_store_has_of_another_study_is_counted(scenario, store, change, replicates, seed, known):
    assert there_are(scenario.assign(change), store, replicates, seed) == known
    assert there_are(scenario.assign(change), store, replicates, seed) == 0  # a second time it is there


def test_what_was_taken_over_is_what_would_have_been_found(scenario, store, tmp_path):
    more = {LOADS: ["45 %", "10 %", "20 %"], 'study.factors."run.duration"': ["2 ms", "1 ms"]}
    wider = scenario.assign(more)
    assert there_are(wider, store, 4) == 12
    plan = plan_of(wider, 4)
    name = store.keep("plans", plan.document())
    taken = store.rows(plan=name)
    run_study(wider, store=tmp_path / "anew", replicates=4)
    anew = Store.open(tmp_path / "anew").rows(plan=name)
    apart = ["origin", "started", "seconds", "sitting"]
    same = taken.join(anew.select("point", "replicate"), on=["point", "replicate"]).drop(apart)
    assert_frame_equal(same, anew.join(taken, on=["point", "replicate"], how="semi").drop(apart))
    for row in taken.iter_rows(named=True):
        assert plan.point(row["point"]).key(row["replicate"]) == (row["key"], row["seed"])


def test_a_study_takes_over_the_runs_of_a_contest_but_a_contest_none_before_it_asks(scenario, tmp_path):
    halving = {"measure": "loss", "best": "lowest", "verdict": 4}
    contest = scenario.assign({"study.halving": halving})
    run_study(contest, store=tmp_path / "store", replicates=3)
    store = Store.open(tmp_path / "store")
    plan = plan_of(scenario, 4)
    assert adopt(plan, store) > 0
    for row in store.rows(plan=store.keep("plans", plan.document())).iter_rows(named=True):
        assert plan.point(row["point"]).key(row["replicate"]) == (row["key"], row["seed"])
    assert adopt(plan_of(contest, 2), store) == 0


def test_a_field_that_goes_with_its_kind_is_no_reason_to_take_points_for_the_same(store, scenario):
    kinds = {"study.factors.kind": {"drop": {}, "codel": {"queues.out.kind": "codel"}}}
    limits = {'study.factors."traffic.a.source.frame_size"': ["1000 B"]}
    run_study(scenario.assign(kinds), store=store.url)
    assert there_are(scenario.assign(kinds | limits), store) == 0
    assert there_are(scenario.assign(limits), store) == 4 * 3


def test_results_of_a_file_that_has_changed_are_not_taken_over(scenario, store):
    rows = store.rows()
    store.prune(plans=rows["plan"].unique())
    store.keep("plans", plan_of(scenario).document())
    store.write(rows.with_columns(key=pl.lit("0" * 32)))
    assert there_are(scenario, store, 4) == 0


def test_an_estimate_is_of_what_is_new(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_MANY", 1)
    monkeypatch.setattr("weirlab.execution.runner._PILOT_S", 0.01)
    told = []
    run_study(scenario, store=tmp_path / "store", replicates=60)
    wider = scenario.assign({LOADS: ["20 %", "45 %", "60 %"]})
    run_study(wider, store=tmp_path / "store", replicates=60, judge=told.append, threads=1)
    (estimate,) = told
    assert 60 <= estimate.runs <= 2 * 60
