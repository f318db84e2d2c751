"""Optima of designs: they are found, within limits, and where theory says."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import fdtrc

import weirlab
from made_contests import CHOSEN, FEW, HALVED, STEPS, results
from test_study_designs import LOAD
from weirlab.errors import InputError
from weirlab.scenario import loads
from weirlab.stats import block_probability
from weirlab.studies import RunsPlan, run_study
from weirlab.studies.asking import asking_of

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
