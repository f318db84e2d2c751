"""What the machine did meanwhile, read from the kernel's accounts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from weirlab.testbed.account import CpuTime, MachineAccount, Reading, busy_now, frequencies, thread_waits

STAT = """\
cpu  300 20 80 1000 40 3 17 60 0 0
cpu0 100 20 30 500 20 3 7 50 0 0
cpu1 200 0 50 500 20 0 10 10 0 0
intr 376103 0 0
ctxt 100
"""
LATER = """\
cpu  340 20 90 1100 40 3 37 85 0 0
cpu0 130 20 40 540 20 3 22 75 0 0
cpu1 210 0 50 560 20 0 15 10 0 0
"""
CPUINFO = "processor\t: 0\ncpu MHz\t\t: 2445.424\n\nprocessor\t: 1\ncpu MHz\t\t: 1200.000\n"


def machine(place: Path, stat: str, *, waited_ns: int, pressure_us: int | None) -> Path:
    """A directory like /proc, of a machine with two CPUs."""
    (place / "14").mkdir(parents=True, exist_ok=True)
    (place / "14" / "comm").write_text("ksoftirqd/0\n")
    (place / "14" / "schedstat").write_text(f"5000000 {waited_ns} 17\n")
    (place / "15").mkdir(exist_ok=True)
    (place / "15" / "comm").write_text("ksoftirqd-like\n")
    (place / "stat").write_text(stat)
    (place / "cpuinfo").write_text(CPUINFO)
    if pressure_us is not None:
        (place / "pressure").mkdir(exist_ok=True)
        line = f"avg10=8.66 avg60=8.28 avg300=3.97 total={pressure_us}\n"
        (place / "pressure" / "cpu").write_text(
            f"some {line}full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        )
    return place


def between(tmp_path: Path, *, pressure: bool = True) -> MachineAccount:
    before = Reading.now(
        machine(tmp_path, STAT, waited_ns=10**9, pressure_us=1_000_000 if pressure else None)
    )
    after = Reading.now(
        machine(tmp_path, LATER, waited_ns=10**9 + 30_000_000, pressure_us=1_250_000 if pressure else None)
    )
    return after - before


@pytest.mark.skipif(sys.platform != "linux", reason="ticks as on Linux")
def test_an_account_is_the_difference_of_two_readings_in_seconds_by_cpu(tmp_path: Path) -> None:
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    account = between(tmp_path)
    assert account.cpus[0].programs_s == pytest.approx(40 * tick_s)
    assert account.cpus[0].interrupts_s == pytest.approx(15 * tick_s)
    assert account.cpus[0].stolen_s == pytest.approx(25 * tick_s)
    assert account.cpus[1].idle_s == pytest.approx(60 * tick_s)
    assert account.cpus[1].stolen_s == 0.0
    assert account.total.stolen_s == pytest.approx(25 * tick_s)
    assert account.softirq_wait_s == {0: pytest.approx(0.03)}
    assert account.waiting_s == pytest.approx(0.25)
    assert account.softirq_ran_s == {0: 0.0}
    assert frequencies(tmp_path) == {0: pytest.approx(2445.424e6), 1: pytest.approx(1200e6)}


def test_what_the_kernel_does_not_tell_is_unknown_and_not_zero(tmp_path: Path) -> None:
    account = between(tmp_path, pressure=False)
    assert account.waiting_s is None
    nothing = Reading.now(tmp_path / "none") - Reading.now(tmp_path / "none")
    assert nothing.cpus == {}
    assert nothing.facts()["stolen_s"] is None
    assert nothing.facts()["softirq_wait_s"] is None
    assert nothing.words() == ""
    assert frequencies(tmp_path / "none") == {}


def test_the_words_name_steal_run_delay_work_that_waited_and_other_programs() -> None:
    cpus = {0: CpuTime(programs_s=1.0, stolen_s=0.24), 1: CpuTime(programs_s=0.9)}
    account = MachineAccount(duration_s=1.0, cpus=cpus, softirq_wait_s={0: 0.03, 1: 0.0}, own_s=0.9)
    account = account.with_waits({"the emulator": 0.02, "the reader": 0.001, "the writer": None})
    disturbance = (
        "a hypervisor took 12.0% of the CPU time away, the emulator waited 2.0% of the time for a CPU, "
        "the kernel's network work waited 3.0% of the time for a CPU"
    )
    assert account.disturbance == disturbance
    assert account.words() == disturbance + ", other programs used 1 of 2 CPUs"


def test_a_machine_that_did_nothing_else_is_not_talked_about() -> None:
    cpus = {0: CpuTime(programs_s=0.9, idle_s=0.1), 1: CpuTime(idle_s=1.0)}
    assert MachineAccount(duration_s=1.0, cpus=cpus, softirq_wait_s={0: 0.0}, own_s=0.9).words() == ""


def test_programs_that_nobody_waits_for_disturb_nobody() -> None:
    account = MachineAccount(duration_s=1.0, cpus={0: CpuTime(programs_s=1.0), 1: CpuTime(idle_s=1.0)})
    assert account.with_waits({"the emulator": 0.004}).disturbance == ""
    assert account.words() == "other programs used 1 of 2 CPUs"


def test_a_kernel_that_counts_back_gives_no_negative_time() -> None:
    """Linux has let iowait and steal go back."""
    assert CpuTime(stolen_s=1.0) - CpuTime(stolen_s=1.01) == CpuTime()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_this_machine_has_an_account_of_its_cpus_and_of_our_threads() -> None:
    before = Reading.now()
    sum(range(200_000))
    account = Reading.now() - before
    assert account.own_s >= 0.0
    assert set(account.cpus) == set(before.cpus)
    assert account.duration_s > 0.0
    assert all(waited_s >= 0.0 for waited_s in thread_waits().values())
    assert isinstance(busy_now(sample_s=0.01), str)
