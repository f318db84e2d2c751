"""One-way delays over an emulated path whose delays are known, and campaigns over IPv6."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest

from weirlab import _core
from weirlab.campaigns import run_campaign, summaries
from weirlab.cli.campaign_words import CampaignWords
from weirlab.cli.link import Link
from weirlab.errors import MissingCapability
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.path import EmulatedPath

pytestmark = pytest.mark.live


def stamped(link: Link, *, ipv6: bool = False, count: int = 50) -> dict[str, np.ndarray]:
    try:
        made = EmulatedPath(path_plan(link.scenario({})), ipv6=ipv6)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made as path:
        return _core.one_way_delays(
            near=path.near.path,
            far=path.far.path,
            to=path.far_address6 if ipv6 else path.far_address,
            port=862,
            count=count,
            every_ps=10**10,
            payload_bytes=172,
            timeout_ps=5 * 10**11,
        )


@pytest.mark.parametrize("ipv6", [False, True], ids=["IPv4", "IPv6"])
def test_each_direction_has_the_delay_that_it_was_given(ipv6):
    found = stamped(Link(up=["delay=5ms"], down=["delay=25ms"]), ipv6=ipv6)
    there, back = found["forward_s"], found["backward_s"]
    # Nothing is faster than the path; on a busy machine the fastest of fifty packets tells its delay.
    assert there.min() >= 0.005
    assert back.min() >= 0.025
    assert there.min() < 0.015
    assert back.min() < 0.035
    assert found["round_trip_s"] == pytest.approx(there + back)


def test_what_is_lost_on_the_way_back_has_been_seen_at_the_far_end():
    found = stamped(Link(down=["loss=100%"], delay="1ms"))
    assert np.isfinite(found["forward_s"]).all()
    assert np.isnan(found["backward_s"]).all()


@pytest.mark.parametrize("ip", ["ipv4", "ipv6"])
def test_a_full_queue_delays_one_direction_and_not_the_other(ip, tmp_path):
    for program in ("iperf3", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    link = Link(up=["buffer=500kB"], rate="20mbit", delay="5ms")
    scenario = CampaignWords(lasts="3 s", streams="4").over(link, {"testbed.ip": ip})
    try:
        campaign = run_campaign(scenario, tmp_path / "campaign")
    except MissingCapability as lack:
        pytest.skip(str(lack))
    assert [kept.failures for kept in campaign.kept] == [(), ()]
    (point,) = summaries(campaign)
    quiet_up, quiet_down, up, down = point.delays
    assert min(each.least_s for each in point.delays) >= 0.005
    # 500 kB at 20 Mbit/s are 200 ms, of which slow start fills a half at least.
    assert up.median_s > quiet_up.median_s + 0.05
    assert up.median_s > down.median_s + 0.05
    assert quiet_down.lost == quiet_up.lost == 0
    # A ping meets what the test packets meet.
    assert point.loaded_mean_s > quiet_up.least_s + quiet_down.least_s
    assert not math.isnan(up.jitter_s)
