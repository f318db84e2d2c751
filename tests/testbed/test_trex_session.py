"""Ports of a TRex server after a crash, addresses that nobody resolved, and what a server does not tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weirlab.errors import InputError, TestbedError
from weirlab.testbed.trex import TrexSettings, TrexTestbed
from weirlab.testbed.trex.session import is_dead, session_name

from .fake_trex import FakeTrex
from .fake_trex_model import FakeClock, Faults
from .test_trex import bed, spec

ON_LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are known by /proc")


def of_a_dead_process() -> str:
    """The name of a session whose process has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = session_name(process.pid)
        process.communicate()
    return name


def elsewhere(name: str) -> str:
    """The same session on another host."""
    user, _, process = name.partition("@")
    return f"{user}@{'0' * 10}:{process.partition(':')[2]}"


@ON_LINUX
def test_a_session_is_dead_only_where_its_process_is_known_to_be_gone() -> None:
    dead = of_a_dead_process()
    assert is_dead(dead)
    assert not is_dead(session_name())
    assert not is_dead(session_name(os.getppid()))
    assert not is_dead(elsewhere(dead))
    for other in ("", "alice", "weirlab-alice", "weirlab-alice@zz:1.2"):
        assert not is_dead(other)


@ON_LINUX
def test_a_number_that_another_process_has_now_does_not_bring_a_session_to_life() -> None:
    began = session_name().rpartition(".")[2]
    assert is_dead(session_name().removesuffix(began) + str(int(began) + 1))


@ON_LINUX
def test_ports_of_a_session_that_crashed_are_taken_back_without_force() -> None:
    with bed(faults=Faults(owner=of_a_dead_process())) as (testbed, server):
        assert testbed.trial(spec()).loss_ratio == 0.0
        assert [params["force"] for method, params in server.calls if method == "acquire"] == [True, True]


@pytest.mark.parametrize("who", ["alice", "live", "elsewhere"])
def test_ports_of_a_session_that_may_live_are_left_alone(who: str) -> None:
    owners = {"alice": "alice", "live": session_name(os.getppid()), "elsewhere": elsewhere(session_name())}
    with (
        pytest.raises(TestbedError, match=r"already taken by .*'force: true' before"),
        bed(faults=Faults(owner=owners[who])),
    ):
        pass


@ON_LINUX
def test_a_search_goes_on_after_its_process_was_killed_with_the_ports_in_its_hands() -> None:
    script = """
import os, sys
from weirlab.testbed.trex import TrexSettings, TrexTestbed
TrexTestbed(TrexSettings(server="127.0.0.1", rpc_port=int(sys.argv[1])))
os.kill(os.getpid(), 9)
"""
    with FakeTrex(clock=FakeClock()) as server:
        died = subprocess.run([sys.executable, "-c", script, str(server.rpc_port)], timeout=120, check=False)
        assert died.returncode == -9
        assert all(port.owner for port in server.ports)
        testbed = TrexTestbed(TrexSettings(server="127.0.0.1", rpc_port=server.rpc_port))
        testbed.close()
        assert not any(port.owner for port in server.ports)


def test_an_address_that_nobody_resolved_is_told_before_any_traffic_is_started() -> None:
    with bed(faults=Faults(resolved=False)) as (testbed, server):
        with pytest.raises(InputError, match="does not know the MAC address that its frames go to: give"):
            testbed.trial(spec())
        assert not any(method == "start_traffic" for method, _ in server.calls)


def test_frames_of_others_are_said_to_hide_losses_where_ports_are_counted() -> None:
    with bed(faults=Faults(extra_frames=3)) as (testbed, server):
        assert testbed.trial(spec()).facts["strays_can_hide"] == 6
        server.faults.extra_frames = 0
        assert testbed.trial(spec()).facts["strays_can_hide"] == 6, "they were there before"
    with bed(count="groups") as (testbed, _):
        assert "strays_can_hide" not in testbed.trial(spec()).facts


def test_delays_that_were_asked_for_and_are_not_there_are_accounted_for() -> None:
    with bed(latency_fps=1000.0) as (testbed, server):
        assert "latency" not in testbed.trial(spec()).facts
        assert "less than twice" in str(testbed.trial(spec(1500.0)).facts["latency"])
        server.hdrh = ""
        trial = testbed.trial(spec())
        assert trial.latency_s == {}
        assert trial.facts["latency"] == "none: TRex sent no histogram of delays (field hdrh)"
