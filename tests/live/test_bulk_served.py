"""A campaign to a server of iperf3 that its user runs, over an emulated path."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from weirlab.campaigns import run_campaign, summaries
from weirlab.campaigns.measurement import Transfer
from weirlab.cli.campaign_words import CampaignWords
from weirlab.errors import MissingCapability
from weirlab.scenario.network.path import Hop, Line, PathPlan
from weirlab.testbed.path import EmulatedPath
from weirlab.units import Rate, Size, Span

pytestmark = pytest.mark.live


@pytest.fixture(params=[False, True], ids=["IPv4", "IPv6"])
def address(request) -> Iterator[tuple[EmulatedPath, str]]:
    """A path of 20 Mbit/s up and 10 Mbit/s down with two servers at its far end, and where these are."""
    for program in ("iperf3", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    up, down = (
        Line(rate=Rate.parse(rate), delay=Span.from_s(0.005), buffer=Size(30_000))
        for rate in ("20 Mbit/s", "10 Mbit/s")
    )
    try:
        made = EmulatedPath(PathPlan({"hop": Hop(forward=up, backward=down)}, 1500), ipv6=request.param)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made:
        command = ["timeout", "60", "iperf3", "-s", "-p"]
        servers = made.far.inside(
            lambda: [
                subprocess.Popen([*command, port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for port in ("5201", "5202")
            ]
        )
        time.sleep(1.0)
        try:
            yield made, made.far_address6 if request.param else made.far_address
        finally:
            for server in servers:
                server.terminate()
                server.wait()


def test_transfers_go_both_ways_to_a_server_that_runs_already(address, tmp_path):
    bed, where = address
    words = CampaignWords(way="both", lasts="2 s", streams="2")
    scenario = words.to({"kind": "iperf3", "server": where}, {})
    campaign = bed.near.inside(lambda: run_campaign(scenario, tmp_path / "campaign"))
    assert [kept.failures for kept in campaign.kept] == [(), ()]
    (point,) = summaries(campaign)
    up, down = point.loads
    # More than half of what each way carries, and no more than that.
    assert 10e6 < up.goodput_bps < 20e6
    assert 5e6 < down.goodput_bps < 10e6
    assert point.unloaded_min_s >= 0.010
    measurement = campaign.kept[1].measurement
    backward: Transfer = measurement.beside["down"]
    for stream in backward.streams:  # counted here, where it was received
        assert sum(stream.received_bps) == pytest.approx(8 * stream.received_bytes, rel=0.2)
        assert stream.mean_rtt_s is None
