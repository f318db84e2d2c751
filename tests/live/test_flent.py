"""flent, another project's tester, runs unchanged between the ends of an emulated path."""

from __future__ import annotations

import gzip
import json
import shutil
import statistics
import subprocess
import sys

import pytest

from weirlab.errors import MissingCapability
from weirlab.scenario import loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.path import EmulatedPath

pytestmark = pytest.mark.live

WAN = """
weirlab: 1
name: wan
testbed:
  kind: netns
  hops:
    wan: {forward: {rate: 20 Mbit/s, delay: 20 ms, buffer: 200 kB}}
"""
SECONDS = 5
IDLE_S = 5
"""flent pings that long before and after the load."""


@pytest.fixture
def wan(tmp_path):
    """A file with a path, where all that the test needs is there."""
    for program, lack in (
        ("flent", "needs flent: apt-get install flent"),
        ("netperf", "needs netperf, which Debian has in non-free only: apt-get install netperf"),
        ("netserver", "needs netserver, which comes with netperf"),
        ("ping", "needs ping"),
    ):
        if shutil.which(program) is None:
            pytest.skip(lack)
    try:
        EmulatedPath(path_plan(loads(WAN))).close()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    file = tmp_path / "wan.yaml"
    file.write_text(WAN)
    return file


def test_flent_runs_unchanged_inside_the_command_and_sees_the_path(wan, tmp_path):
    script = f"sleep 1; exec flent rrul -l {SECONDS} -H $WEIR_FAR -D {tmp_path} --log-file {tmp_path}/log"
    weir = [sys.executable, "-m", "weirlab", "emulate", str(wan), "--report", str(tmp_path / "report.json")]
    ran = subprocess.run(
        [*weir, "--far", "netserver -D -4", "--timeout", "60 s", "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=90,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (file,) = tmp_path.glob("rrul-*.flent.gz")
    with gzip.open(file) as data:
        told = json.load(data)
    assert told["metadata"]["FAILED_RUNNERS"] == 0
    # netperf's own totals at the end, Mbit/s; those of the intervals are interpolated by flent.
    totals = {name: each.get("MEAN_VALUE") for name, each in told["metadata"]["SERIES_META"].items()}
    report = json.loads((tmp_path / "report.json").read_text())
    for word, way in zip(("upload", "download"), report["ways"], strict=True):
        streams = [totals[f"TCP {word} {kind}"] for kind in ("BE", "BK", "CS5", "EF")]
        assert min(streams) > 0
        carried_mbit = 8e-6 * sum(each["bytes"] for each in way["transmitters"])
        # Everything that arrived went through the line, and the line was busy while there was load.
        assert sum(streams) * SECONDS <= carried_mbit
        assert sum(streams) > 0.5 * 20
        assert way["counts"]["refused"] == way["counts"]["unbuffered"] == way["counts"]["device_drops"] == 0
    pings = told["raw_values"]["Ping (ms) ICMP"]
    begin = pings[0]["t"]
    idle = [each["val"] for each in pings if each["t"] - begin < IDLE_S - 1]
    loaded = [each["val"] for each in pings if IDLE_S + 1 < each["t"] - begin < IDLE_S + SECONDS]
    # No ping is faster than the path; under load it waits in buffers that hold 80 ms each.
    assert min(idle) >= 40.0
    assert statistics.median(loaded) > statistics.median(idle) + 10.0
