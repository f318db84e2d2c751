"""The doctor says what there is, what is lacking, what that means and how to mend it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from weirlab.doctor import Check, clock, examine, kernel, privileges, system, tools
from weirlab.errors import MissingCapability
from weirlab.testbed.account import CpuTime, MachineAccount, Reading

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    return examine(measure_clock=False)


def named(checks: list[Check], name: str) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


def test_every_lack_says_what_it_means_and_how_to_mend_it(checks):
    for check in checks:
        assert check.found, check.name
        if check.status == "ok":
            assert not check.means, check.name
            assert not check.remedy, check.name
        else:
            assert check.means, check.name
            assert check.remedy, check.name


def test_every_check_has_a_name_of_its_own(checks):
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)


def test_the_compiled_core_is_a_release_build(checks):
    assert named(checks, "compiled core").status == "ok"


@on_linux
def test_sleeping_is_judged_only_where_it_is_measured():
    measured = {each.name for each in examine()} - {each.name for each in examine(measure_clock=False)}
    assert measured == {"taken by others", "clock", "sleep", "real-time sleep"}


def test_what_a_hypervisor_takes_is_a_lack_and_told_by_name():
    account = MachineAccount(duration_s=2.0, cpus={0: CpuTime(stolen_s=0.24, idle_s=1.76)})
    since_boot = Reading(at_s=9.0, cpus={0: CpuTime(stolen_s=1.0, idle_s=99.0)}, softirq={}, waiting_s=None)
    check = clock._taken(account, since_boot)
    assert check.status == "lack"
    assert "a hypervisor took 12.0% of the CPU time away" in check.found
    assert "1.00% stolen" in check.found
    assert (
        clock._taken(MachineAccount(duration_s=2.0, cpus={0: CpuTime(idle_s=2.0)}), since_boot).status == "ok"
    )


def test_elsewhere_than_on_linux_it_says_that_live_testbeds_need_linux(monkeypatch):
    monkeypatch.setattr(system.sys, "platform", "darwin")
    checks = examine()
    platform = named(checks, "platform")
    assert platform.status == "lack"
    assert "no live testbeds" in platform.means
    assert "Linux" in platform.remedy
    assert not [check for check in checks if check.section in ("kernel", "privileges")]


@on_linux
def test_one_cpu_is_a_lack_that_explains_why_nothing_is_ever_lost(monkeypatch):
    monkeypatch.setattr(system.os, "sched_getaffinity", lambda _: {3})
    check = named(examine(measure_clock=False), "CPUs")
    assert check.status == "lack"
    assert "no upper bound seen" in check.means


@on_linux
def test_what_could_not_be_tried_is_unknown_and_not_a_lack(monkeypatch):
    class Refused:
        def __init__(self) -> None:
            raise MissingCapability("network namespaces need root")

    monkeypatch.setattr(kernel, "Namespace", Refused)
    checks = examine(measure_clock=False)
    assert named(checks, "network namespaces").status == "lack"
    assert "need root" in named(checks, "network namespaces").found
    assert {named(checks, name).status for name in kernel.FEATURES} == {"unknown"}


@on_linux
@pytest.mark.parametrize(
    ("bits", "held"),
    [
        ("0000000000000000", set()),
        ("000001ffffffffff", {"CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN", "CAP_SYS_NICE"}),
        ("0000000000001000", {"CAP_NET_ADMIN"}),
        ("0000000000a00000", {"CAP_SYS_ADMIN", "CAP_SYS_NICE"}),
    ],
)
def test_capabilities_are_read_from_their_bits(monkeypatch, bits, held):
    status = f"CapPrm:\t0000000000000000\nCapEff:\t{bits}\nCapBnd:\t000001ffffffffff\n"
    monkeypatch.setattr(privileges, "read", lambda _: status)
    assert privileges.capabilities() == held


@on_linux
def test_a_user_without_capabilities_is_told_to_use_sudo(monkeypatch):
    monkeypatch.setattr(privileges, "capabilities", set)
    monkeypatch.setattr(privileges, "_real_time_limit", lambda: 0)
    checks = examine(measure_clock=False)
    for name in ("network administration", "real-time priority"):
        check = named(checks, name)
        assert check.status == "lack"
        assert "sudo" in check.remedy


def test_a_tool_that_hangs_does_not_hang_the_doctor(monkeypatch):
    def hang(*_args: object, timeout: float, **_options: object) -> None:
        raise subprocess.TimeoutExpired("tool", timeout)

    monkeypatch.setattr(tools.shutil, "which", lambda *_args, **_options: "/usr/bin/tool")
    monkeypatch.setattr(tools.subprocess, "run", hang)
    found = [check for check in examine(measure_clock=False) if check.section == "tools"]
    assert found
    assert {check.found for check in found} == {"of unknown version"}


def test_a_tool_that_is_not_there_comes_with_the_name_of_its_package(monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda *_args, **_options: None)
    ping = named(examine(measure_clock=False), "ping")
    assert ping.status == "lack"
    assert "iputils-ping" in ping.remedy


@on_linux
def test_each_program_that_a_command_runs_is_looked_for_with_what_is_missing_without_it():
    means = {name: tool.means for name, tool in tools.TOOLS.items()}
    for name, words in {
        "iperf3": "weir bulk",
        "ping": "weir bulk",
        "timeout": "campaigns",
        "ssh": "weir path --ssh",
        "openssl": "TLS",
        "tc": "--with netem",
        "dpdk-testpmd": "'testpmd'",
    }.items():
        assert words in means[name]


@on_linux
def test_a_ping_that_may_not_send_is_a_lack(monkeypatch, tmp_path):
    def told(script: str) -> Check:
        program = tmp_path / "ping"
        program.write_text(script)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return named(tools.checks(), "ping")

    refused = told(
        "#!/bin/sh\n[ $1 = -V ] && echo ping 3.1 && exit\necho 'socket: not permitted' >&2; exit 2\n"
    )
    assert refused.status == "lack"
    assert refused.found == "3.1, but socket: not permitted"
    assert "CAP_NET_RAW" in refused.remedy
    unfit = told("#!/nowhere/at/all\n")
    assert unfit.status == "lack"
    assert "cannot be run" in unfit.found
    assert told("#!/bin/sh\necho ping 3.1\n").status == "ok"
    assert told("#!/bin/sh\nprintf 'ping \\377 3.1'\n").found == "3.1"


def test_a_missing_report_package_is_a_lack_of_plots(monkeypatch):
    find = system.importlib.util.find_spec
    monkeypatch.setattr(
        system.importlib.util, "find_spec", lambda name: None if name == "altair" else find(name)
    )
    check = named(examine(measure_clock=False), "report packages")
    assert check.status == "lack"
    assert "no altair" in check.found
    assert ".[report]" in check.remedy


@pytest.mark.live
def test_what_the_doctor_calls_well_is_enough_for_a_real_router():
    from weirlab.testbed.netns import NetnsTestbed

    checks = examine(measure_clock=False)
    needed = ("network namespaces", "veth pairs", "receive steering")
    if any(named(checks, name).status != "ok" for name in needed):
        with pytest.raises(MissingCapability):
            NetnsTestbed().close()
        pytest.skip("this machine lacks what a router needs, and the testbed says so too")
    NetnsTestbed().close()


@on_linux
def test_nothing_is_left_behind():
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    examine(measure_clock=False)
    before = descriptors()
    examine(measure_clock=False)
    assert descriptors() == before


@pytest.mark.parametrize(
    ("mode", "uid", "status"), [(0o700, 0, "lack"), (0o755, 0, "ok"), (0o700, 1000, "ok")]
)
def test_an_installation_that_only_root_can_enter_is_a_lack(monkeypatch, mode, uid, status):
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        monkeypatch.setattr(system.sys, "prefix", str(home / "venv"))
        monkeypatch.setattr(system.sys, "executable", "/usr/bin/python3")
        monkeypatch.setattr(system, "__file__", "/usr/lib/weirlab/doctor/system.py")
        monkeypatch.setattr(system.os, "geteuid", lambda: uid)
        (home / "venv").mkdir()
        home.chmod(mode)
        check = system._place()
    assert check.status == status
    if status == "lack":
        assert f"{home} is closed to other users" in check.found
        assert "/opt/weirlab" in check.remedy
