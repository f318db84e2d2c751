"""Designs of studies: where their points lie, and combinations that cannot be."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats.qmc import LatinHypercube

from weirlab.errors import ScenarioError
from weirlab.scenario import load, loads
from weirlab.scenario.plan.combinations import combinations, level_names, possible
from weirlab.scenario.plan.design import design_rows
from weirlab.store import Store
from weirlab.studies import Study, run_study

BASE = """
weirlab: 1
name: filled
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s}}
traffic:
  load: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 40 %, frame_size: 1000 B}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 50 kB}}
run: {duration: 1 ms}
measure: {loss: {kind: loss-ratio, of: load}}
"""
LIMIT, LOAD = "queues.out.limit", "traffic.load.source.load"
DESIGN = f"""
study:
  factors: {{{LOAD}: [40 %, 80 %]}}
  design:
    kind: latin-hypercube
    points: 8
    parameters:
      {LIMIT}: {{between: 2000 B .. 200000 B, scale: logarithmic}}
      traffic.load.start: {{between: 1 us .. 9 us}}
"""


def accept(scenario):
    return scenario


def test_each_combination_has_points_of_its_own_that_fill_the_ranges():
    scenario = loads(BASE + DESIGN)
    points = combinations(scenario, accept)
    assert [point.number for point in points] == list(range(16))
    assert [point.levels for point in points] == level_names(scenario)
    limits = [int(point.levels[LIMIT].removesuffix(" B")) for point in points[:8]]
    # One point in each eighth of the way from 2 kB to 200 kB, in equal ratios.
    eighths = sorted(int(np.log(limit / 2000) / np.log(100) * 8) for limit in limits)
    assert eighths == list(range(8))
    assert limits != [int(point.levels[LIMIT].removesuffix(" B")) for point in points[8:]]


def test_a_latin_hypercube_is_that_of_scipy():
    rows = design_rows(loads(BASE + DESIGN).study.design, 3)
    assert (rows == LatinHypercube(2, rng=np.random.default_rng([1, 3])).random(8)).all()


def test_a_point_is_the_scenario_with_its_values():
    point = combinations(loads(BASE + DESIGN), accept)[9]
    assert str(point.scenario.queues["out"].limit.bytes) == point.levels[LIMIT].removesuffix(" B")
    assert point.scenario.traffic["load"].source.load == 0.8


def test_the_design_depends_on_its_seed_and_on_nothing_else():
    one, again = loads(BASE + DESIGN), loads(BASE + DESIGN)
    other = loads(BASE + DESIGN.replace("points: 8", "points: 8\n    seed: 2"))
    assert level_names(one) == level_names(again) != level_names(other)


@pytest.mark.parametrize(
    ("kind", "points"), [("{kind: morris, trajectories: 4", 12), ("{kind: sobol, base: 8", 32)]
)
def test_designs_of_salib_have_their_number_of_points(kind, points):
    pytest.importorskip("SALib", reason="needs the extra 'sensitivity'")
    ranges = f"{{{LIMIT}: {{between: 2 kB .. 9 kB}}, {LOAD}: {{between: 0.1 .. 0.2}}}}"
    design = loads(f"{BASE}study:\n  design: {kind}, parameters: {ranges}}}").study.design
    rows = design_rows(design, 0)
    assert rows.shape == (points, 2)
    assert rows.min() >= 0
    assert rows.max() <= 1


def test_what_cannot_be_is_listed_with_the_reason_or_refused():
    def refuse_much(scenario):
        if scenario.traffic["load"].source.load > 0.5:
            raise ScenarioError([scenario.problem("traffic.load", "is too much")])

    listed = loads(BASE + DESIGN + "  impossible: list\n")
    points, impossible = possible(listed, refuse_much)
    assert [point.number for point in points] == list(range(8))
    assert [(each.levels, each.reason) for each in impossible] == [({LOAD: "80 %"}, "is too much")]
    with pytest.raises(ScenarioError, match=r"at traffic\.load\.source\.load 80 %: is too much"):
        possible(loads(BASE + DESIGN), refuse_much)


def test_a_study_with_a_design_is_run_kept_and_read_back(tmp_path):
    scenario = loads(BASE + DESIGN)
    made = run_study(scenario, directory=tmp_path / "kept", threads=1)
    assert made.complete
    assert made.points.columns == ["point", LOAD, LIMIT, "traffic.load.start"]
    assert made.points.height == made.measures.height == 16
    again = Study.load(tmp_path / "kept")
    assert again.complete
    assert again.points.equals(made.points)
    assert again.impossible == ()


def test_a_study_goes_through_all_combinations_before_the_next_point_of_any(tmp_path):
    """What an interrupted one leaves covers all of them."""
    points, pilot = 40, 13
    scenario = loads(BASE + DESIGN.replace("points: 8", f"points: {points}"))
    made = run_study(scenario, directory=tmp_path / "kept", threads=1)
    rows = Store.open(tmp_path / "kept" / "store").rows(columns=["point", "started"])
    run = rows.sort("started", maintain_order=True).get_column("point").to_list()
    assert sorted(run) == made.points.get_column("point").to_list() == list(range(2 * points))
    # The pilot's lie apart, in both combinations.
    first = sorted(run[:pilot])
    assert max(after - before for before, after in pairwise(first)) < points // 2
    # The clock that says when has milliseconds, in which several may begin.
    others = [number % points for number in run[pilot:]]
    assert all(abs(a - b) <= 4 for a, b in zip(others, sorted(others), strict=True))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("2000 B .. 200000 B", "2000 B", "write a range such as"),
        ("2000 B .. 200000 B", "9 B .. 2 B", "the first end of a range is less than the second"),
        ("2000 B .. 200000 B", "1 kB .. 2 B", "both ends have one unit"),
        ("2000 B .. 200000 B", "0 B .. 200 B", "a logarithmic range starts above 0"),
        ("1 us .. 9 us", "1 us .. 9 parsec", "both ends have one unit"),
        ("1 us .. 9 us", "1 .. 9 parsec", "'parsec' is not a unit"),
        ("traffic.load.start:", "traffic.load.begin:", "unknown field"),
    ],
)
def test_a_spoilt_design_is_told_with_its_place(before, after, told):
    with pytest.raises(ScenarioError) as caught:
        loads(BASE + DESIGN.replace(before, after))
    assert told in str(caught.value)
    assert "study.design.parameters" in str(caught.value)


EXCLUDED = f"""
study:
  factors:
    {LOAD}: [40 %, 80 %]
    start: {{early: {{}}, late: {{traffic.load.start: 5 us}}, later: {{traffic.load.start: 9 us}}}}
  exclude:
    - {{{LOAD}: 80 %, start: [late, later]}}
"""


def test_what_a_study_excludes_is_no_point_of_it(tmp_path):
    scenario = loads(BASE + EXCLUDED)
    made = run_study(scenario, directory=tmp_path / "kept", threads=1)
    assert made.complete
    assert list(made.points.rows()) == [
        (0, "40 %", "early"),
        (1, "40 %", "late"),
        (2, "40 %", "later"),
        (3, "80 %", "early"),
    ]
    again = Study.load(tmp_path / "kept")
    assert again.complete
    assert again.points.equals(made.points)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "80 %, start",
            "80 %, stat",
            r"study\.exclude\.0\.stat: there is no factor 'stat'; did you mean 'start'",
        ),
        (
            "[late, later]",
            "[lat]",
            r"study\.exclude\.0\.start: 'start' has no level 'lat'; did you mean 'late'",
        ),
        ("[late, later]", "[]", r"study\.exclude\.0\.start: write the name of a level, or a list of names"),
        (
            f"{{{LOAD}: 80 %, start: [late, later]}}",
            "{start: [early, late, later]}",
            r"study\.exclude: leaves no combination of levels",
        ),
    ],
)
def test_an_exclusion_of_what_is_not_there_is_told(old, new, said):
    assert old in EXCLUDED
    with pytest.raises(ScenarioError, match=said):
        loads(BASE + EXCLUDED.replace(old, new))


def test_a_parameter_of_a_design_is_no_factor_too():
    with pytest.raises(ScenarioError, match=rf"parameters.*sets '{LIMIT}', as does factor 'size'"):
        loads(BASE + DESIGN.replace("factors: {", f"factors: {{size: {{small: {{{LIMIT}: 9 kB}}}}, "))


def test_levels_that_set_the_same_are_legal_where_they_never_meet():
    study = f"""
study:
  factors: {{a: {{x: {{{LIMIT}: 9 kB}}, y: {{}}}}, b: {{u: {{{LIMIT}: 5 kB}}, v: {{}}}}}}
  exclude: [{{a: x, b: u}}]
"""
    limits = {
        tuple(point.levels.values()): point.scenario.queues["out"].limit.bytes
        for point in combinations(loads(BASE + study), accept)
    }
    assert limits == {("x", "v"): 9000, ("y", "u"): 5000, ("y", "v"): 50000}
    with pytest.raises(ScenarioError, match=r"study\.factors\.b: sets"):
        loads(BASE + study.replace("b: u}", "b: v}"))


def test_the_study_of_estimators_asks_pathload_once_about_gathered_packets():
    names = level_names(load("estimators"))
    of_pathload = [each["hosts"] for each in names if each["estimator"] == "pathload"]
    assert len(of_pathload) == 3 * 2 * 3
    assert set(of_pathload) == {"ideal", "late", "gathered"}
    assert len(names) == 6 * 3 * 2 * 5 - 12
