"""Emulated paths, used by real programs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from weirlab import _core
from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.namespaces import set_sysctl
from weirlab.testbed.path import EmulatedPath

pytestmark = pytest.mark.live

WAN = """
weirlab: 1
name: wan
testbed:
  kind: netns
  hops:
    wan:
      forward: {rate: 20 Mbit/s, delay: 10 ms, buffer: 20 kB, loss: 1 %, duplicate: 1 %}
      backward: {rate: 20 Mbit/s, delay: 10 ms, jitter: {size: 2 ms}}
"""
CHAIN = """
weirlab: 1
name: chain
testbed:
  kind: netns
  hops:
    first: {forward: {rate: 10 Mbit/s, delay: 2 ms}}
    second: {forward: {rate: 50 Mbit/s, delay: 3 ms}}
    third: {forward: {rate: 20 Mbit/s, delay: 4 ms}}
"""


def path_of(text, **options):
    try:
        return EmulatedPath(path_plan(loads(text)), **options)
    except MissingCapability as lack:
        pytest.skip(str(lack))


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"needs the program {program}")


def said(namespace, *command, timeout=30.0):
    """What a command in a namespace prints; it must end well."""

    def run():
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, start_new_session=True, check=True
        )

    return namespace.inside(run).stdout


class Served:
    """iperf3 serves one test at the far end."""

    def __init__(self, namespace):
        command = ["iperf3", "-s", "-1", "--forceflush"]
        self._process = namespace.inside(
            lambda: subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        )

    def __enter__(self):
        for line in self._process.stdout:
            if line.startswith("Server listening"):
                return self
        raise AssertionError("iperf3 does not listen")

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()


MANAGED = """
weirlab: 1
name: managed
testbed:
  kind: netns
  hops:
    wan:
      forward: {rate: 20 Mbit/s, delay: 10 ms, buffer: 2 MB, queue: QUEUE}
      backward: {rate: 20 Mbit/s, delay: 10 ms}
"""


def repeats(way, seed):
    """Whether the pure model does the same with the arrivals that were recorded."""
    record = way.record
    assert len(record["t_ps"]) == way.counts["arrived"] > 100
    again = _core.replay_line(
        way.line,
        seed=seed,
        name=way.name,
        **{column: record[column] for column in ("t_ps", "size_bytes", "flow", "ecn")},
        until_ps=record["until_ps"],
    )
    return all(
        np.array_equal(record[what], again[what]) for what in ("departed", "departed_ps", "dropped", "lost")
    )


@pytest.mark.parametrize("kind", ["codel", "pie", "fq-codel"])
@pytest.mark.parametrize("ecn", [0, 1])
def test_a_managed_queue_keeps_the_wait_of_real_connections_near_its_target(kind, ecn):
    needs("iperf3")
    needs("ping")
    text = MANAGED.replace("QUEUE", f"{{kind: {kind}, ecn: true}}")
    with path_of(text, seed=3, record=100_000) as path, Served(path.far):
        for end in (path.near, path.far):
            end.inside(lambda: set_sysctl("ipv4.tcp_ecn", ecn))
        flow = ("iperf3", "-c", path.far_address, "-t", "6", "-C", "cubic")
        with ThreadPoolExecutor(1) as pool:
            load = pool.submit(said, path.near, *flow)
            time.sleep(2.5)
            pings = said(path.near, "ping", "-c", "25", "-i", "0.1", path.far_address)
            load.result()
        report = path.close()
    times_ms = [float(each) for each in re.findall(r"time=([\d.]+) ms", pings)]
    # 20 ms there and back, and the target of 5 or 15 ms; a buffer of 2 MB holds 800 ms. The median, because a
    # machine that stalls once holds several packets up.
    assert len(times_ms) > 12
    assert 20 <= median(times_ms) < 60
    forward = report.lines[0]
    assert (forward.counts["marked"] > 0) == bool(ecn)
    assert forward.counts["dropped"] == 0
    assert forward.counts["dropped_early"] + forward.counts["marked"] > 0
    assert all(repeats(way, 3) for way in report.lines)


def test_the_pure_model_repeats_what_the_emulator_did_to_real_traffic():
    needs("iperf3")
    with path_of(WAN, seed=3, record=100_000) as path, Served(path.far):
        said(path.near, "iperf3", "-c", path.far_address, "-t", "2", "-P", "3", "-J")
        report = path.close()
    for way in report.lines:
        assert repeats(way, 3)
        assert way.counts["refused"] == way.counts["unbuffered"] == way.counts["device_drops"] == 0
        assert way.counts["whole"] == 0
    assert report.lines[0].counts["lost"] > 0
    assert report.lines[0].counts["dropped"] > 0


def test_ping_takes_the_delays_of_all_hops_and_traceroute_sees_each():
    needs("ping")
    needs("traceroute")
    with path_of(CHAIN) as path:
        times = re.findall(
            r"time=([\d.]+) ms", said(path.near, "ping", "-c", "5", "-i", "0.2", path.far_address)
        )
        route = said(path.near, "traceroute", "-n", "-q", "1", "-N", "1", path.far_address)
    assert len(times) == 5
    # 18 ms of propagation and 0.3 ms of transmission: no answer is earlier.
    assert min(map(float, times)) >= 18.0
    assert re.findall(r"198\.18\.\d\.\d", route.partition("\n")[2]) == [
        "198.18.0.2",
        "198.18.1.2",
        "198.18.2.2",
    ]


def test_a_middlebox_takes_the_window_scale_away():
    needs("iperf3")
    text = CHAIN.replace("first: {", "first: {strips_window_scale: true, ")
    with path_of(text) as path, Served(path.far):
        told = json.loads(said(path.near, "iperf3", "-c", path.far_address, "-t", "1", "-J"))
        report = path.close()
    # First packets of two connections, control and data; who was offered no scale answers with none.
    assert [way.counts["stripped"] for way in report.lines[:2]] == [2, 0]
    assert told["end"]["sum_received"]["bytes"] > 0


def test_the_counts_of_a_hop_add_up():
    needs("ping")
    with path_of(WAN.replace("loss: 1 %", "loss: 50 %")) as path:
        command = ["ping", "-c", "40", "-i", "0.01", "-W", "1", path.far_address]
        path.near.inside(lambda: subprocess.run(command, capture_output=True, timeout=30, check=False))
        report = path.close()
    forward, backward = (way.counts for way in report.lines)
    assert forward["arrived"] == 40
    assert (
        forward["arrived"] + forward["duplicated"] == forward["lost"] + forward["dropped"] + forward["left"]
    )
    assert backward["arrived"] == forward["left"]
    assert sum(report.lines[0].lateness_counts) == forward["left"]


def test_the_command_line_runs_a_command_at_the_near_end_and_gives_its_exit_code(tmp_path):
    needs("ping")
    with path_of(WAN):
        pass
    file = tmp_path / "wan.yaml"
    file.write_text(WAN)
    weir = [sys.executable, "-m", "weirlab", "emulate", str(file), "--report", str(tmp_path / "report.json")]
    command = ["--", "sh", "-c", "ip -o link; echo $WEIR_FAR; exit 7"]
    done = subprocess.run(
        [*weir, "--far", "sleep 60", *command],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ},
    )
    assert done.returncode == 7, done.stderr
    assert "198.18.0.2" in done.stdout
    assert "far" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert [way["direction"] for way in report["ways"]] == ["forward", "backward"]
    assert "wan forward" in done.stderr


def test_iperf3_runs_unchanged_inside_the_command(tmp_path):
    needs("iperf3")
    with path_of(CHAIN):
        pass  # skips where none can be made
    file = tmp_path / "chain.yaml"
    file.write_text(CHAIN)
    weir = [
        sys.executable,
        "-m",
        "weirlab",
        "emulate",
        str(file),
        "--far",
        "iperf3 -s -1",
        "--timeout",
        "40 s",
    ]
    script = "for i in $(seq 50); do iperf3 -c $WEIR_FAR -t 3 -P 2 -J && exit 0; sleep 0.1; done; exit 1"
    ran = subprocess.run(
        [*weir, "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    # The server prints, too, and attempts before it listened have printed a document with an error each.
    told, _ = json.JSONDecoder().raw_decode(ran.stdout, ran.stdout.rindex('{\n\t"start"'))
    rate = told["end"]["sum_received"]["bits_per_second"]
    assert 5e6 < rate < 10e6  # of 10 Mbit/s in the narrowest hop, less the headers
    assert len(told["end"]["streams"]) == 2


def test_a_command_that_takes_too_long_is_ended(tmp_path):
    with path_of(WAN):
        pass
    file = tmp_path / "wan.yaml"
    file.write_text(WAN)
    weir = [sys.executable, "-m", "weirlab", "emulate", str(file), "--timeout", "500 ms", "--", "sleep", "60"]
    done = subprocess.run(
        weir, capture_output=True, text=True, timeout=40, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 124
    assert "ended the command after 0.5 s" in done.stderr


@pytest.mark.parametrize("ends", ["near", "far"])
def test_nothing_goes_on_when_the_command_is_killed(tmp_path, ends):
    with path_of(WAN):
        pass
    file = tmp_path / "wan.yaml"
    file.write_text(WAN)
    kept = tmp_path / "pids"
    # The shell and what it started in its turn.
    long = f"sh -c 'sleep 300 & echo $$ $! > {kept}.new; mv {kept}.new {kept}; wait'"
    near, far = (shlex.split(long), "sleep 1") if ends == "near" else (["sleep", "300"], long)
    weir = [sys.executable, "-m", "weirlab", "emulate", str(file), "--far", far, "--", *near]
    victim = subprocess.Popen(weir, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        soon = time.monotonic() + 30
        while not kept.exists() and time.monotonic() < soon:
            time.sleep(0.05)
        pids = [int(pid) for pid in kept.read_text().split()]
        assert all(lives(pid) for pid in pids)
    finally:
        victim.kill()
        victim.wait(20)
    soon = time.monotonic() + 20
    while any(lives(pid) for pid in pids) and time.monotonic() < soon:
        time.sleep(0.05)
    left = [pid for pid in pids if lives(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_an_emulator_that_failed_says_why_however_often_it_is_closed():
    path = path_of(WAN, seed=-1)
    for _ in range(2):
        with pytest.raises(TestbedError, match="the path emulator failed"):
            path.close()
