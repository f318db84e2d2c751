"""Studies that find what is best: by halving, and by an optimiser; and what new seeds say of it."""

import itertools
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
from scipy.special import fdtrc

import weirlab
from test_study_designs import BASE, LOAD
from weirlab.errors import InputError, ScenarioError
from weirlab.scenario import loads
from weirlab.scenario.plan.contest import Halving
from weirlab.stats import block_probability, mean_interval
from weirlab.store import Store
from weirlab.studies import RunsPlan, Study, run_study
from weirlab.studies.asking import asking_of
from weirlab.units import Span

FEW = BASE.replace("replicates: 10", "replicates: 2")
HALVED = FEW.replace("[20 %, 40 %, 48 %]", "[20 %, 30 %, 40 %, 44 %, 48 %]") + (
    "  halving: {measure: queue, finalists: 2, verdict: 20}\n"
)
SHORT = HALVED.replace("verdict: 20", "verdict: 20, duration: 0.3 ms, keep: 60 %, apart: [buffer]")
DESIGN = """  design:
    kind: optimise
    measure: queue
    best: highest
    parameters: {queues.out.limit: {between: 4 kB .. 100 kB}}
    choices:
      traffic.a.source.load: [10 %, 20 %, 30 %, 40 %, 45 %]
      kind: {short: {traffic.a.source.frame_size: 300 B}, long: {}}
    generations: 5
    most: 8
    finalists: 2
"""
CHOSEN = FEW.split("  factors:", maxsplit=1)[0] + DESIGN


def results(asking, plan, value, done):
    """Give a decider what it asks for, until nothing is left; the values by point and replicate."""
    while True:
        counts = asking.asked()
        rows = []
        for number, count in zip(map(int, plan.order), map(int, counts), strict=True):
            for replicate in range(count):
                if (number, replicate) not in done:
                    done[number, replicate] = value(number, replicate)
                    rows.append((number, replicate))
        if not rows:
            return done
        asking.read(
            pl.DataFrame(
                {
                    "point": [point for point, _ in rows],
                    "replicate": [replicate for _, replicate in rows],
                    "status": ["ok"] * len(rows),
                    "document": [None] * len(rows),
                    "measures": [
                        [{"measure": name, "value": each, "unit": "B"} for name, each in found.items()]
                        for found in (
                            value if isinstance(value, dict) else {"queue": value}
                            for value in (done[row] for row in rows)
                        )
                    ],
                },
                schema_overrides={"document": pl.String},
            )
        )


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


# --- optimisation


def space(parameters=(), choices=(), **fields):
    """A plan over parameters from 0 to 1, whose values are made."""
    names = "abcdefgh"
    base = loads(
        FEW.split("  factors:", maxsplit=1)[0].replace(
            "  replicates: 2\n", "  replicates: 2\n  factors: {run.seed: [1]}\n"
        )
    )
    design = {
        "kind": "optimise",
        "measure": "queue",
        "parameters": {f"run.{names[i]}": {"between": "0 .. 1"} for i in range(parameters)},
        "choices": {name: {level: {} for level in levels} for name, levels in choices},
        **fields,
    }
    section = base.study.model_copy(update={"design": None, "factors": type(base.study)().factors})
    design = type(loads(CHOSEN).study.design).model_validate(design)
    return base.model_copy(update={"study": section.model_copy(update={"design": design})})


def optimised(scenario, truth, noise, seed):
    """The finalists of an optimisation of a made function of the levels, best first, and the runs it took."""
    plan = RunsPlan(scenario, 1, scenario.study.replicates)
    asking = asking_of(plan)
    rng = np.random.default_rng(seed)
    value = lambda point, _: truth(asking.given[point]) + noise * float(rng.normal())  # noqa: E731
    done = results(asking, plan, value, {})
    return [asking.given[each.point] for each in asking.finalists], len(done)


def at_random(scenario, truth, noise, seed, runs):
    """What random search finds with as many runs: the best of points with two runs, by their mean."""
    design, rng = scenario.study.design, np.random.default_rng(seed)
    best = (math.inf, None)
    for _ in range(runs // 2):
        parts = rng.random(len(design.parameters))
        places = [int(rng.integers(len(levels))) for levels in design.choices.values()]
        levels = design.levels(parts, places)
        seen = truth(levels) + noise * float(rng.normal()) / math.sqrt(2)
        best = min(best, (seen, levels), key=lambda each: each[0])
    return best[1]


def sphere(levels):
    return sum((float(value) - 0.7) ** 2 for name, value in levels.items() if name.startswith("run."))


def rosenbrock(levels):
    x = [4 * float(value) - 2 for value in levels.values()]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x)) / 100


def mixed(levels):
    steps = abs(int(levels["steps"]) - 6) / 8
    return sphere(levels) + steps + {"x": 0.3, "y": 0.0, "z": 0.5}[levels["kind"]]


STEPS = [("steps", [str(i) for i in range(9)]), ("kind", "xyz")]


@pytest.mark.parametrize(
    ("name", "scenario", "truth", "noise", "close"),
    [
        ("sphere", {"parameters": 4, "generations": 40}, sphere, 0.0, 1e-4),
        ("noisy sphere", {"parameters": 4, "generations": 40, "most": 16}, sphere, 0.05, 0.01),
        ("rosenbrock", {"parameters": 2, "generations": 60}, rosenbrock, 0.0, 1e-3),
        ("mixed", {"parameters": 2, "choices": STEPS, "generations": 50}, mixed, 0.0, 0.02),
        (
            "noisy mixed",
            {"parameters": 2, "choices": STEPS, "generations": 50, "most": 16},
            mixed,
            0.05,
            0.05,
        ),
    ],
)
def test_the_optimum_of_a_function_is_found_and_random_search_does_not_find_it(
    name, scenario, truth, noise, close
):
    scenario = space(**scenario)
    gaps, random_gaps = [], []
    for seed in range(8):
        design = scenario.study.design.model_copy(update={"seed": seed})
        study = scenario.study.model_copy(update={"design": design})
        here = scenario.model_copy(update={"study": study})
        found, runs = optimised(here, truth, noise, seed)
        gaps.append(truth(found[0]))
        random_gaps.append(truth(at_random(here, truth, noise, seed, runs)))
    assert np.median(gaps) < close, (name, gaps)
    assert np.median(gaps) < np.median(random_gaps) / 2, (name, gaps, random_gaps)


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(
    ("limit", "sum_of"), [({"at_least": {"sum": 1.6}}, 1.6), ({"at_most": {"sum": 1}}, 1.0), ({}, 1.4)]
)
def test_the_optimum_within_a_limit_on_what_is_measured_is_found(limit, sum_of, noise):
    found = []
    for seed in range(5):
        here = space(parameters=2, generations=50, most=16, seed=seed, **limit)
        plan = RunsPlan(here, 1, 2)
        asking = asking_of(plan)
        rng = np.random.default_rng(seed)

        def value(point, _, asking=asking, rng=rng):
            a, b = (float(each) for each in asking.given[point].values())
            return {
                "queue": (a - 0.7) ** 2 + (b - 0.7) ** 2 + noise * float(rng.normal()),
                "sum": a + b + noise * float(rng.normal()),
            }

        results(asking, plan, value, {})
        best = asking.finalists[0]
        found.append([float(each) for each in asking.given[best.point].values()])
        assert best.excess == 0
        kept = {each.point: each for each in asking.limits}
        assert len(kept) == (len(asking.finalists) if limit else 0)
        if limit:
            assert kept[best.point].kept in ("yes", "open")
            assert kept[best.point].mean == pytest.approx(sum(found[-1]), abs=0.03)
    # The nearest point to (.7, .7) on the line is that with equal parts.
    close = 0.01 if noise == 0 else 0.1
    assert np.median(found, axis=0) == pytest.approx([sum_of / 2] * 2, abs=close)


def test_halving_puts_points_that_break_a_limit_behind_all_that_keep_it():
    plan = RunsPlan(loads(HALVED, {"study.halving.at_most.loss": "0.1 %"}), 1, 2)
    asking = asking_of(plan)
    points = len(plan.order) // len(plan.stages)

    def value(point: int, _: int) -> dict[str, float]:
        return {"queue": float(point % points), "loss": 0.01 * max(0, 5 - point % points)}

    results(asking, plan, value, {})
    # Points 5 to 9 keep it, and of these the first has the shortest queue.
    assert [each.point % points for each in asking.finalists] == [5, 6]
    assert [(each.limit, each.kept) for each in asking.limits] == [("loss ≤ 0.1 %", "yes")] * 2
    first = {each.point % points: each for each in asking.standings if each.round == 1}
    assert first[0].excess == pytest.approx((0.05 - 0.001) / 0.001)
    assert [place for place, each in first.items() if each.kept] == [5, 6, 7, 8, 9]


def test_finalists_that_are_better_but_break_limits_further_are_not_called_worse():
    result = weirlab.study(loads(HALVED, {"study.halving.at_least": {"loss": "50 %"}}))
    text = str(result.summary())
    assert "1 of 1 other finalists with a better queue ranks after it by the limits." in text
    assert "worse" not in text


def test_more_replicates_are_taken_only_where_a_generation_cannot_be_ranked():
    scenario = space(parameters=3, generations=30, most=32)
    _, plain = optimised(scenario, sphere, 0.0, 1)
    _, noisy = optimised(scenario, sphere, 0.2, 1)
    design = scenario.study.design
    least = design.generations * design.size * 2 + design.finalists * design.verdict
    assert plain == least
    assert noisy > 3 * least


def test_a_generation_is_ranked_by_what_seeds_do_to_all_of_its_points_alike():
    rng = np.random.default_rng(1)
    seeds = rng.normal(size=20)
    same = [block_probability(10 * seeds + rng.normal(size=(6, 20))) for _ in range(500)]
    assert np.mean([each < 0.05 for each in same]) == pytest.approx(
        0.05, abs=3 * math.sqrt(0.05 * 0.95 / 500)
    )
    apart = np.arange(6)[:, np.newaxis] + 10 * seeds + rng.normal(size=(6, 20))
    assert block_probability(apart) < 1e-6
    assert block_probability([[1, 2], [1, 2]]) == 1
    assert block_probability([[1, 2], [2, 3]]) == 0
    values = rng.normal(size=(5, 4))
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    ratio = 4 * values.mean(1).var(ddof=1) / ((rest**2).sum() / 12)
    assert block_probability(values) == pytest.approx(float(fdtrc(4, 12, ratio)), rel=1e-9)
    with pytest.raises(ValueError, match="two rows"):
        block_probability([[1, 2]])


def test_an_option_may_ask_for_more_replicates_than_most():
    study = run_study(loads(CHOSEN), replicates=12)
    assert study.complete
    assert set(study.replicates_of.values()) == {12, 20}


def test_all_points_fulfil_the_conditions():
    scenario = loads(CHOSEN, {"study.where": "limit >= 60 kB or load <= 20 %"})
    study = run_study(scenario)
    assert study.complete
    for row in study.points.iter_rows(named=True):
        limit = float(row["queues.out.limit"].removesuffix(" kB"))
        assert limit >= 60 or row[LOAD] in ("10 %", "20 %")
    nothing = loads(CHOSEN, {"study.where": "limit > 200 kB"})
    with pytest.raises(InputError, match=r"study\.where: none of 10,000 points"):
        run_study(nothing)


def test_each_combination_of_factors_has_an_optimum_of_its_own():
    text = CHOSEN.replace("  design:", "  factors: {run.duration: [0.5 ms, 1 ms]}\n  design:")
    study = run_study(loads(text))
    assert [each.levels for each in study.finalists] == [{"run.duration": "0.5 ms"}] * 2 + [
        {"run.duration": "1 ms"}
    ] * 2
    durations = dict(study.points.select("point", "run.duration").iter_rows())
    assert all(durations[each.point] == each.levels["run.duration"] for each in study.finalists)


def mean_wait(rate, capacity):
    """Mean time of frames of 1000 B in an M/D/1 queue [us]."""
    service = 8000 / capacity
    load = rate / capacity
    return service * (1 + load / (2 * (1 - load))) * 1e6


def split_cost(fast, slow):
    return (fast * mean_wait(fast, 1e9) + slow * mean_wait(slow, 0.5e9)) / (fast + slow)


def test_the_split_of_a_load_is_that_of_queueing_theory():
    result = weirlab.study("load-split")
    best = result.verdict.row(0, named=True)
    fast, slow = (
        float(best[f"traffic.{name}.source.rate"].removesuffix(" Mbit/s")) * 1e6 for name in ("fast", "slow")
    )
    rates = np.linspace(410e6, 890e6, 4801)
    costs = [split_cost(rate, 900e6 - rate) for rate in rates]
    least, at = min(costs), rates[int(np.argmin(costs))]
    assert fast + slow >= 900e6
    gap = split_cost(fast, slow) - least
    assert gap < 0.02 * least
    assert fast == pytest.approx(at, rel=0.03)
    rng, count = np.random.default_rng(1), result.points.height
    at_random = [
        split_cost(*pair) - least
        for pair in rng.uniform((300e6, 50e6), (980e6, 490e6), size=(count, 2))
        if sum(pair) >= 900e6
    ]
    middle = split_cost(640e6, 270e6) - least
    assert gap < middle
    assert gap < min(at_random)
    # What the simulator adds is the first link and both propagation delays.
    beyond = 8000 / 10e9 * 1e6 + 0.2
    assert best["low"] <= (split_cost(fast, slow) + beyond) * 1e6 <= best["high"]


def test_the_split_within_a_limit_of_delay_is_that_of_queueing_theory(tmp_path):
    measure = {"kind": "mean-delay", "of": "slow"}
    changes = {"measure.slow": measure, "study.design.at_most": {"slow": "22 us"}}
    result = weirlab.study("load-split", assign=changes, out=tmp_path / "out")
    best = result.verdict.row(0, named=True)
    slow = float(best["traffic.slow.source.rate"].removesuffix(" Mbit/s")) * 1e6
    # Without the first link and both propagation delays 21 us are left.
    limit = max(rate for rate in np.linspace(100e6, 300e6, 20001) if mean_wait(rate, 0.5e9) <= 21)
    assert limit == pytest.approx(192.3e6, rel=1e-3), "without the limit it is 242 Mbit/s"
    assert slow == pytest.approx(limit, rel=0.03)
    kept = result.tables["limits"].filter(point=best["point"]).row(0, named=True)
    assert kept["mean"] <= 22e6
    assert kept["kept"] in ("yes", "open")
    assert weirlab.read(tmp_path / "out").tables["limits"].equals(result.tables["limits"])
    text = str(result.report(tmp_path / "page").read_text())
    assert "slow ≤ 22 us" in text


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
