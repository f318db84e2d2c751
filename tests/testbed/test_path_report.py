"""What a path says of how well it was emulated."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from weirlab.cli.emulate import _keep, _say
from weirlab.results import Provenance
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.account import CpuTime, MachineAccount
from weirlab.testbed.path import _is_fast, _places
from weirlab.testbed.path_report import LineReport, PathReport

WELL = dict.fromkeys(
    (
        *("arrived", "lost", "dropped", "dropped_early", "marked", "duplicated"),
        *("device_drops", "stack_drops", "unbuffered", "refused", "whole"),
    ),
    0,
)

ACCOUNT = MachineAccount(duration_s=1.0, cpus={0: CpuTime(idle_s=1.0)}).with_waits({"the emulator": 0.001})


def report(lateness_s: float = 1e-5, written: int = 100, **counts: int) -> PathReport:
    late = {"p50": lateness_s / 2, "p99": lateness_s, "max": lateness_s}
    way = LineReport("wan", "forward", "hop-0/forward", "{}", {**WELL, **counts}, (), late, (written,), {})
    return PathReport(True, 1.0, 0.1, ("tcp",), 1e-4, (way,), ACCOUNT)


def test_a_path_that_did_all_that_it_should_is_not_degraded():
    assert report(arrived=1000, lost=3, dropped=5).degraded == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lateness_s": 2e-4}, "more than 200 us late (limit 100 us)"),
        ({"device_drops": 2}, "2 packets came faster than the emulator took them"),
        ({"unbuffered": 2}, "2 packets found no buffer"),
        ({"refused": 2}, "2 packets were refused by the far device"),
        ({"stack_drops": 2}, "2 packets found the queue before the far stack full"),
        ({"whole": 2}, "2 joined packets could not be cut into segments"),
    ],
)
def test_a_degraded_path_says_where_and_why(wrong, words):
    (reason,) = report(**wrong).degraded
    assert reason.startswith("wan forward: ")
    assert words in reason


@pytest.mark.parametrize(("written", "told"), [(8, False), (99, False), (100, True)])
def test_a_late_packet_of_fewer_than_a_hundred_is_no_share_of_them(written, told, capfd):
    found = report(2e-4, written, arrived=written)
    assert bool(found.degraded) is told
    _say(found)
    said = capfd.readouterr().err
    assert ("200 us (p99)" in said) is told
    assert (f"200 us at most; too few for a p99 ({written})" in said) is not told


def test_a_path_says_what_took_time_from_its_emulator_in_words_and_figures():
    quiet = report()
    assert quiet.disturbance == ""
    account = MachineAccount(duration_s=1.0, cpus={0: CpuTime(stolen_s=0.12, idle_s=0.88)})
    disturbed = replace(quiet, account=account.with_waits({"the emulator": 0.02}))
    assert disturbed.disturbance == (
        "a hypervisor took 12.0% of the CPU time away, the emulator waited 2.0% of the time for a CPU"
    )
    told = disturbed.as_json()
    assert told["disturbance"] == disturbed.disturbance
    assert (told["account"]["stolen_s"], told["account"]["emulator_waited_s"]) == (0.12, 0.02)


@pytest.mark.parametrize(
    ("line", "fast"),
    [
        ("{rate: 500 Mbit/s}", False),
        ("{rate: 300 Mbit/s, lanes: 2}", True),
        ("{delay: 1 ms}", True),
        ("{steps: [{at: 0 s, rate: 1 Mbit/s}, {at: 1 s, rate: 1 Gbit/s}]}", True),
    ],
)
def test_only_on_fast_paths_the_stacks_leave_the_emulator_its_cpu(line, fast):
    hops = f"{{one: {{forward: {line}}}}}"
    plan = path_plan(loads(f"{{weirlab: 1, name: a, testbed: {{kind: netns, hops: {hops}}}}}"))
    assert plan is not None
    assert _is_fast(plan) is fast


@pytest.mark.parametrize(
    "hops",
    [
        "{one: {forward: {rate: 10 Mbit/s}}, two: {forward: {rate: 4 Gbit/s}}}",
        "{one: {forward: {rate: 10 Mbit/s}, backward: {delay: 1 ms}}}",
    ],
)
def test_a_slow_line_makes_the_whole_path_slow(hops):
    plan = path_plan(loads(f"{{weirlab: 1, name: a, testbed: {{kind: netns, hops: {hops}}}}}"))
    assert plan is not None
    assert not _is_fast(plan)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_the_stacks_work_where_the_emulator_does_not_if_there_is_a_choice(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5, 7})
    assert _places(5, real_time=False) == (5, (2, 7))
    assert _places(None, real_time=False) == (None, (2, 5, 7))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert _places(3, real_time=True) == (3, (3,))


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        (
            report(arrived=1000),
            "weir: the path was faithful: 99 % of the packets were at most 10 us late.",
        ),
        (report(2e-4), "weir: do not rely on results over this path"),
        (replace(report(), lines=()), "weir: too few packets to say how late they were."),
    ],
)
def test_a_path_ends_with_the_sentence_that_matters(reported, words, capfd):
    _say(reported)
    assert capfd.readouterr().err.splitlines()[-1].startswith(words)


def test_the_page_of_an_emulation_shows_its_path_what_was_lost_and_the_verdict(tmp_path):
    file = tmp_path / "report.html"
    scenario = loads(
        "{weirlab: 1, name: far, testbed: {kind: netns, hops: {wan: {forward: {delay: 30 ms}}}}}"
    )
    _keep(file, scenario, report(2e-4, arrived=1000, lost=3, dropped=5), 7, Provenance.now())
    page = file.read_text(encoding="utf-8")
    for words in (
        "Do not rely on results over this path, for the reasons below.",
        "Lost at wan forward: 8 of 1\u202f000 packets (0.8 %), 5 of them by its queue.",
        "1 % of the packets were more than 200 µs late",
        "The path that was emulated",
        "30 ms",
    ):
        assert words in page
