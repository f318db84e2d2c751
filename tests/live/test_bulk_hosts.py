"""Several hosts behind one bottleneck, each over a hop of its own."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from weirlab.campaigns import run_campaign, summaries
from weirlab.errors import MissingCapability
from weirlab.scenario import load
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.path import EmulatedPath

pytestmark = pytest.mark.live

SHORT = {
    "campaign.cycle": [{"name": "loaded", "run": ["backup", "laptop", "remote", "ping"], "for": "6 s"}],
    "study": None,
}


def ping_ms(end, address: str) -> float:
    told = end.inside(
        lambda: subprocess.run(
            ["ping", "-n", "-c", "3", "-i", "0.2", address], capture_output=True, text=True, timeout=20
        )
    )
    assert "min/avg/max" in told.stdout, told.stdout + told.stderr
    return float(told.stdout.rpartition("= ")[2].split("/")[0])


@pytest.mark.parametrize("ip", ["ipv4", "ipv6"])
def test_each_host_has_its_own_distance_and_reaches_the_others(ip):
    if shutil.which("ping") is None:
        pytest.skip("needs the program ping")
    try:
        made = EmulatedPath(path_plan(load("shared-uplink", {**SHORT, "testbed.ip": ip})))
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made as path:
        version = 2 if ip == "ipv6" else 1
        (backup, *at_backup), (remote, *_) = path.host("backup"), path.host("remote")
        far = path.far_address6 if ip == "ipv6" else path.far_address
        # There and back: the host's own hop and the uplink; between hosts both hops of theirs.
        assert ping_ms(backup, far) >= 2 * (1 + 10)
        assert ping_ms(remote, far) >= 2 * (20 + 10)
        assert ping_ms(remote, at_backup[version - 1]) >= 2 * (20 + 1)
    counted = {way.hop: way.counts["left"] for way in path.close().lines if way.direction == "forward"}
    assert counted["backup"] > 0
    assert counted["remote"] > 0


def test_eight_connections_take_more_of_a_bottleneck_than_one_of_another_host(tmp_path):
    for program in ("iperf3", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    try:
        campaign = run_campaign(load("shared-uplink", SHORT), tmp_path / "campaign")
    except MissingCapability as lack:
        pytest.skip(str(lack))
    assert [kept.failures for kept in campaign.kept] == [()]
    (point,) = summaries(campaign)
    goodputs = {each.name: each.goodput_bps for each in point.loads}
    assert set(goodputs) == {"backup", "laptop", "remote"}
    # Each counts its own six seconds, which need not be the same ones on a busy machine.
    assert sum(goodputs.values()) < 1.5 * 20e6
    assert goodputs["backup"] > 2 * goodputs["laptop"]
