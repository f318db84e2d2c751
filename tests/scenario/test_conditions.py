"""Conditions between the factors of a study: what they mean, and what is said of wrong ones."""

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from weirlab.errors import ScenarioError, UnitError
from weirlab.scenario import loads
from weirlab.scenario.plan.combinations import level_names
from weirlab.scenario.plan.conditions import as_condition
from weirlab.studies import RunsPlan, points_of

KNOWN = {
    "traffic.a.source.load": "45 %",
    "queues.out.limit": "15 kB",
    "network.link.rate": "1 Gbit/s",
    "delay": "1 ms",
    "video-delay": "2 us",
    "controller": "drop-tail",
    "size": "12",
    "cap": "unlimited",
}


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("load < 50 %", True),
        ("load <= 0.45", True),
        ("load < 45 %", False),
        ("traffic.a.source.load > 0.4", True),
        ("limit = 15000 B", True),
        ("limit = 14.6484375 KiB", True),
        ("limit >= rate * delay", False),
        ("rate * delay = 125 kB", True),
        ("rate * 2 * delay - limit > 200 kB and controller = drop-tail", True),
        ("limit / rate < 121 us", True),
        ("controller != codel", True),
        ("controller in (codel, drop-tail)", True),
        ("controller not in (codel, drop-tail)", False),
        ("not (load > 40 % or size = 12)", False),
        ("(size + 3) * 2 = 30", True),
        ("-size < -11 and size - 13 < 0", True),
        ("`video-delay` = 2 us", True),
        ("video-delay < 1 ms or size > 20", True),
        ("load > 50 % or size = 12 and limit = 15 kB", True),
        ("'15 kB' = limit", True),
        ("cap = unlimited or cap > 1 MB", True),
        ("size in (11, 12)", True),
    ],
)
def test_a_condition_means_what_it_says(text, truth):
    assert as_condition(text).holds(KNOWN) is truth


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("load <", r"a value is missing.*at character 7"),
        ("load ! 3", r"cannot be read, at character 6"),
        ("load", r"'=', '!='.*is expected, at character 5, the end"),
        ("load < 50 % limit > 3", r"'and', 'or' or the end is expected, at character 13"),
        ("(load < 50 %", r"'\)' is missing|is missing"),
        ("load < 5 parsec", r"at character 10"),
        ("controller > 3", r"'drop-tail' is not a number; compare it by '='"),
        ("limit > 3", r"'15 kB' and 3 cannot be compared: they have different units"),
        ("limit = 15", r"different units"),
        ("limit + delay > 3", r"different units"),
        ("size / (size - 12) > 1", r"divided by zero"),
        ("__import__('os').system('true') = 0", r"at character"),
        ("load.__class__ = 3 if True else 4", r"at character"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(text, told):
    with pytest.raises(UnitError, match=told):
        as_condition(text).holds(KNOWN)


def test_a_last_part_that_two_names_share_is_refused():
    with pytest.raises(UnitError, match=r"can be a\.rate or b\.rate; write the whole name"):
        as_condition("rate > 1").holds({"a.rate": "1", "b.rate": "2"})
    assert as_condition("b.rate > 1").holds({"a.rate": "1", "b.rate": "2"})


@given(st.text(alphabet="ab.<>=()'`\"+-*/% 0123456789ekBsor and not in", max_size=40))
def test_any_text_is_read_or_refused(text):
    with suppress(UnitError):
        assert as_condition(text).holds({"a": "3", "b": "x"}) in (True, False)


BASE = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 30 %, frame_size: 1000 B}}
run: {duration: 1 ms, seed: 7}
measure: {loss: {kind: loss-ratio, of: a}}
study:
  factors:
    traffic.a.source.load: [20 %, 45 %, 60 %]
    buffer: {small: {queues.out.limit: 3 kB}, large: {queues.out.limit: 100 kB}}
"""


def test_points_that_fulfil_all_conditions_are_the_study():
    scenario = loads(
        f"{BASE}  where: [load < 50 % or buffer = large, queues.out.limit > 3 kB or load > 20 %]\n"
    )
    points = points_of(scenario)
    assert [tuple(point.levels.values()) for point in points] == [
        ("20 %", "large"),
        ("45 %", "small"),
        ("45 %", "large"),
        ("60 %", "large"),
    ]
    assert [point.number for point in points] == list(RunsPlan(scenario, 7, 1).order) == [0, 1, 2, 3]
    assert loads(scenario.to_yaml()) == scenario


def test_a_condition_leaves_points_out_of_a_latin_hypercube_and_not_out_of_other_designs():
    design = """
  where: start < 5 us or load = 20 %
  design:
    kind: latin-hypercube
    points: 8
    parameters: {traffic.a.start: {between: 1 us .. 9 us}}
"""
    scenario = loads(BASE + design)
    plan = RunsPlan(scenario, 7, 1)
    assert 16 < len(plan.order) < 48
    assert [plan.levels(int(each)) for each in sorted(plan.order)] == level_names(scenario)
    assert len(points_of(scenario)) == len(plan.order)
    for number in plan.order:
        levels = plan.levels(int(number))
        early = float(levels["traffic.a.start"].removesuffix(" us")) < 5
        assert early or levels["traffic.a.source.load"] == "20 %"
    with pytest.raises(ScenarioError, match=r"speaks of 'traffic\.a\.start', a parameter of the design"):
        loads((BASE + design).replace("latin-hypercube", "morris").replace("points", "trajectories"))


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("lod < 50 %", r"14:3: study\.where.*there is no factor or level 'lod'; did you mean 'load'\?"),
        ("[load < 50 %, load <]", r"study\.where.*a value is missing"),
        ("load < 50 kB", r"at traffic\.a\.source\.load 20 %, buffer small: .* different units"),
        ("load > 90 %", "leaves no combination of levels"),
    ],
)
def test_a_wrong_condition_is_reported_at_its_place(where, told):
    with pytest.raises(ScenarioError, match=told) as caught:
        loads(f"{BASE}  where: {where}\n")
    assert caught.value.problems[0].line == 14
