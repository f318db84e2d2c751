"""What a path says of how well it was emulated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weirlab.testbed.account import CpuTime, MachineAccount
from weirlab.testbed.path import PathReport, WayReport

WELL = dict.fromkeys(("arrived", "lost", "dropped", "device_drops", "unbuffered", "refused", "whole"), 0)

ACCOUNT = MachineAccount(duration_s=1.0, cpus={0: CpuTime(idle_s=1.0)}).with_waits({"the emulator": 0.001})


def report(lateness_s: float = 1e-5, **counts: int) -> PathReport:
    late = {"p50": lateness_s / 2, "p99": lateness_s}
    way = WayReport("wan", "forward", "hop-0/forward", "{}", {**WELL, **counts}, (), late, (), {})
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
        ({"whole": 2}, "2 joined packets could not be cut into segments"),
    ],
)
def test_a_degraded_path_says_where_and_why(wrong, words):
    (reason,) = report(**wrong).degraded
    assert reason.startswith("wan forward: ")
    assert words in reason


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
