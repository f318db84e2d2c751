"""From the section `search` of a scenario to a search."""

from __future__ import annotations

import pytest

from weirlab.errors import InputError, ScenarioError, UnsupportedError
from weirlab.runs import save_scenario
from weirlab.scenario import load, loads
from weirlab.scenario.plan.presets import PRESETS
from weirlab.scenario.schema import json_schema
from weirlab.searches import build, run_search
from weirlab.testbed import devices, open_testbed
from weirlab.testbed.command import CommandTestbed
from weirlab.testbed.modelled import device_of

TEXT = """
weirlab: 1
name: device
testbed: {kind: sim, device: {kind: knee, capacity: 5 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 14 Mframe/s]
  goals: {NDR: {loss: 0 %}, PDR: {loss: 0.5 %, width: 1 %}}
  trial: {duration: 10 s}
"""


def settings(**changed: object) -> dict[str, object]:
    return dict(
        build(loads(TEXT, {name.replace("__", "."): value for name, value in changed.items()})).settings()
    )


def test_goals_loads_and_frames_are_those_of_the_file():
    built = settings(search__algorithm={"kind": "mdr"})
    assert [(g["name"], g["loss_ratio"], g["width"], g["duration_s"]) for g in built["goals"]] == [
        ("NDR", 0.0, 0.005, 10.0),
        ("PDR", 0.005, 0.01, 10.0),
    ]
    assert built["loads"] == {"min_fps": 1e4, "max_fps": 14e6}
    assert (built["frame_size_bytes"], built["directions"]) == (64, 1)
    assert (built["unsent"], built["warm_up_s"]) == ("excluded", 0.0)


def test_loads_in_bits_are_those_of_the_frames():
    assert settings(search__between=["5.12 Mbit/s", "51.2 Mbit/s"])["loads"] == {
        "min_fps": 1e4,
        "max_fps": 1e5,
    }


def test_the_plan_of_a_trial_reaches_the_search():
    built = settings(search__trial={"duration": "30 s", "warm_up": "5 s", "unsent": "lost"})
    assert (built["unsent"], built["warm_up_s"]) == ("lost", 5.0)
    assert {goal["duration_s"] for goal in built["goals"]} == {30.0}


def test_goals_are_named_by_their_presets():
    built = settings(
        search__goals={
            "NDR": {"preset": "csit-ndr"},
            "PDR": {"preset": "csit-pdr", "width": "1 %"},
            "verified": {"preset": "tst009"},
            "whole": {"preset": "rfc2544"},
        },
        search__trial=None,
    )
    terms = ("name", "loss_ratio", "width", "duration_s", "exceed_ratio", "duration_sum_s")
    assert [tuple(goal[term] for term in terms) for goal in built["goals"]] == [
        ("NDR", 0.0, 0.005, 1.0, 0.5, 21.0),
        ("PDR", 0.005, 0.01, 1.0, 0.5, 21.0),
        ("verified", 0.0, 0.005, 60.0, 0.5, 120.0),
        ("whole", 0.0, 0.005, 60.0, 0.0, None),
    ]


def test_a_preset_stands_beside_a_goal_with_the_trials_of_the_plan():
    built = settings(search__goals={"NDR": {"preset": "csit-ndr"}, "PDR": {"loss": "0.5 %"}})
    assert [(goal["name"], goal["duration_s"]) for goal in built["goals"]] == [("NDR", 1.0), ("PDR", 10.0)]


def test_a_scenario_with_presets_that_was_kept_is_read_again(tmp_path):
    scenario = loads(TEXT, {"search.goals": {"NDR": {"preset": "csit-ndr"}}, "search.trial": None})
    save_scenario(scenario, tmp_path)
    assert build(load(tmp_path / "scenario.yaml")).settings() == build(scenario).settings()


def test_the_schema_lists_every_preset():
    goal = json_schema()["$defs"]["Goal"]["properties"]
    assert goal["preset"]["enum"] == list(PRESETS)


def test_the_parameters_of_mdr_reach_it():
    algorithm = {"kind": "mdr", "intermediate_phases": 1, "phase_timeout": "100 s", "initial_duration": "2 s"}
    built = settings(search__algorithm=algorithm)
    assert built["algorithm"] == {"kind": "mdr", "intermediate_phases": 1, "phase_timeout_s": 100.0}
    assert {goal["initial_duration_s"] for goal in built["goals"]} == {2.0}


def test_binary_search_ends_at_a_threshold_or_at_the_widths():
    by_width = settings(search__algorithm={"kind": "binary"})
    assert by_width["algorithm"] == {"kind": "binary", "threshold_fps": None}
    assert [goal["width"] for goal in by_width["goals"]] == [0.005, 0.01]
    by_threshold = settings(
        search__algorithm={"kind": "binary", "threshold": "100 kframe/s"}, search__goals__PDR__width=None
    )
    assert by_threshold["algorithm"] == {"kind": "binary", "threshold_fps": 1e5}
    assert [goal["width"] for goal in by_threshold["goals"]] == [None, None]


def test_a_scenario_without_a_search_is_refused():
    run = """
        weirlab: 1
        name: plain
        network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}
        traffic: {load: {from: host-0, to: host-1, source: {kind: constant, load: 1 %, frame_size: 64 B}}}
        run: {duration: 1 ms}
    """
    with pytest.raises(InputError, match="search: is missing"):
        build(loads(run))


KINDS = {
    "knee": devices.Knee(capacity_fps=5e6),
    "ip4-published": devices.Ip4Published(),
    "vhost-published": devices.VhostPublished(),
    "random-drops": devices.RandomDrops(),
    "gradual": devices.Gradual(),
    "deep-buffer": devices.DeepBuffer(),
    "warm-up": devices.WarmUp(),
    "inversion": devices.Inversion(),
    "regime-switch": devices.RegimeSwitch(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_of_a_file_has_the_defaults_of_the_model(kind):
    model = {"kind": kind} | ({"capacity": "5 Mframe/s"} if kind == "knee" else {})
    device = device_of(loads(TEXT, {"testbed.device": model}).testbed.device)
    assert type(device) is type(KINDS[kind])
    assert vars(device) == pytest.approx(vars(KINDS[kind]), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["mdr", "binary"])
def test_every_device_of_a_file_can_be_searched(kind, algorithm):
    model = {"kind": kind} | ({"capacity": "5 Mframe/s"} if kind == "knee" else {})
    plan = loads(TEXT, {"testbed.device": model, "search.algorithm": {"kind": algorithm}})
    result = run_search(build(plan), open_testbed(plan))
    assert result.regular
    assert 1e6 < result.goals[0].lower.load_fps <= result.goals[1].lower.load_fps * 1.02


def test_overhead_and_the_testers_limit_of_a_device_are_honoured():
    model = {"kind": "knee", "capacity": "5 Mframe/s", "overhead": "0.5 s", "tester_limit": "3 Mframe/s"}
    plan = loads(TEXT, {"testbed.device": model})
    result = run_search(build(plan), open_testbed(plan))
    assert all(trial.effective_duration_s == trial.spec.duration_s + 0.5 for trial in result.trials)
    assert all(goal.remark.startswith("tester-limited") for goal in result.goals)


def test_a_program_is_looked_for_beside_the_scenario_file(tmp_path):
    tester = tmp_path / "bed" / "tester"
    tester.parent.mkdir()
    tester.write_text('#!/bin/sh\necho \'{"sent_frames": 10, "received_frames": 10}\'\n')
    tester.chmod(0o755)
    bed = {"testbed": {"kind": "command", "run": ["./tester"], "directory": "bed"}}
    assert isinstance(open_testbed(loads(TEXT, bed, file=str(tmp_path / "file.yaml"))), CommandTestbed)
    with pytest.raises(UnsupportedError, match=r"testbed\.run\.0: .*tester: no such program"):
        open_testbed(
            loads(TEXT, {"testbed": {"kind": "command", "run": ["./tester"]}}, file=str(tmp_path / "f"))
        )


def test_a_hint_says_where_to_begin_and_the_highest_load_is_not_tried_first():
    hints = {"search__goals__NDR__hint": "4.9 Mframe/s", "search__goals__PDR__hint": "5 Mframe/s"}
    warm = build(loads(TEXT, {name.replace("__", "."): value for name, value in hints.items()}))
    assert warm.settings()["algorithm"]["hints_fps"] == {"NDR": 4.9e6, "PDR": 5e6}
    assert warm.ask().intended_load_fps == pytest.approx(4.9e6, rel=0.01)
    testbed = open_testbed(loads(TEXT))
    found = run_search(warm, testbed)
    cold = run_search(build(loads(TEXT)), testbed)
    assert found.regular
    assert abs(found.goals[0].lower.load_fps / cold.goals[0].lower.load_fps - 1.0) < 0.005, "measured anew"
    assert {trial.spec.index for trial in found.trials} == set(range(len(found.trials))), "all its own"


@pytest.mark.parametrize("kind", ["binary", "mdr"])
def test_a_hint_that_the_algorithm_would_not_take_is_refused_with_its_place(kind):
    changed = {"search.goals.NDR.hint": "4 Mframe/s", "search.algorithm": {"kind": kind}}
    with pytest.raises(ScenarioError, match=rf"search.goals.NDR.hint: {kind} starts at the highest load"):
        build(loads(TEXT, changed))
