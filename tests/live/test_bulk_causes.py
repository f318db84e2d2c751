"""What limits a real transfer over paths whose limit is known because they were made so."""

from __future__ import annotations

import shutil

import pytest

from weirlab.campaigns import run_campaign
from weirlab.campaigns.causes import limits
from weirlab.errors import MissingCapability
from weirlab.scenario import loads
from weirlab.testbed.namespaces import Namespace

pytestmark = pytest.mark.live

FILE = """
weirlab: 1
name: path
testbed:
  kind: netns
  hops:
    wan:
      forward: {rate: 20 Mbit/s, delay: 25 ms, buffer: 125 kB}
      backward: {rate: 20 Mbit/s, delay: 25 ms}
traffic:
  bulk:
    from: sender
    to: receiver
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}}
campaign: {cycles: 1, cycle: [{name: loaded, run: bulk, for: 8 s}]}
"""
LINE = "testbed.hops.wan.forward"
TCP = "traffic.bulk.transport"
WITHOUT_RATE = {f"{LINE}.rate": None, f"{LINE}.buffer": None}
PATHS = {
    "a path as it should be": ({}, {"bottleneck"}),
    "losses that many streams do not mind": (
        {f"{LINE}.loss": "0.1 %", "traffic.bulk.streams": "16"},
        {"bottleneck"},
    ),
    "a queue that drops early, for many": (
        {f"{LINE}.queue": "codel", "traffic.bulk.streams": "8"},
        {"bottleneck"},
    ),
    "Reno and losses": ({f"{LINE}.loss": "1 %"}, {"loss"}),
    "CUBIC and losses": ({f"{LINE}.loss": "1 %", f"{TCP}.congestion_control.kind": "cubic"}, {"loss"}),
    "losses on a path without a rate": ({**WITHOUT_RATE, f"{LINE}.loss": "1 %"}, {"loss"}),
    "a way back with no room for more acknowledgements": (
        {
            f"{LINE}.rate": "100 Mbit/s",
            "testbed.hops.wan.backward.rate": "150 kbit/s",
            "testbed.joined": False,
        },
        {"way back"},
    ),
    "a small buffer": ({f"{LINE}.buffer": "8 kB"}, {"buffer"}),
    "a small window": ({f"{TCP}.window": "32 KiB"}, {"window"}),
    "a small window and no rate": ({**WITHOUT_RATE, f"{TCP}.window": "64 KiB"}, {"window"}),
}


@pytest.mark.parametrize("name", PATHS)
def test_the_limit_that_a_path_was_made_with_is_found(name, tmp_path):
    for program in ("iperf3", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    try:
        Namespace().close()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    changes, expected = PATHS[name]
    campaign = run_campaign(loads(FILE, changes), tmp_path / "campaign")
    (kept,) = campaign.kept
    assert kept.failures == ()
    found = limits(campaign, 0, None)
    assert {limit.what for limit in found} == expected, (found, kept.measurement.degraded)
