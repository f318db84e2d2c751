"""A campaign with real programs over an emulated path."""

from __future__ import annotations

import shutil

import pytest

from weirlab.campaigns import run_campaign, summaries
from weirlab.errors import MissingCapability
from weirlab.scenario import loads
from weirlab.testbed.namespaces import Namespace

pytestmark = pytest.mark.live

FILE = """
weirlab: 1
name: small
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 100 Mbit/s, delay: 5 ms}}
queues: {bottleneck: {at: a->b, kind: drop-tail, limit: 60 kB}}
traffic:
  bulk:
    from: a
    to: b
    streams: 2
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 16 KiB}
  ping: {from: a, to: b, source: {kind: ping, every: 200 ms}}
campaign:
  cycles: 1
  cycle: [{name: loaded, run: [bulk, ping], for: 2 s}, {name: unloaded, run: ping, for: 1 s}]
study: {factors: {traffic.bulk.streams: [1, 3]}}
"""


def test_more_streams_of_one_window_carry_more(tmp_path):
    for program in ("iperf3", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    try:
        Namespace().close()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    campaign = run_campaign(loads(FILE), tmp_path)
    assert [kept.failures for kept in campaign.kept] == [()] * 4
    one, three = summaries(campaign)
    # No stream exceeds its window, which systems round up by less than half, and no aggregate the link.
    assert 0 < one.goodput_bps < 1.5 * 8 * 16384 / 0.010
    assert 2 * one.goodput_bps < three.goodput_bps < 100e6
    for point in (one, three):
        assert point.transfers == 1
        assert point.loaded_min_s >= 0.010
        assert point.unloaded_min_s >= 0.010
        assert point.loaded_loss == point.unloaded_loss == 0
        assert 8_000 < point.window_bytes < 40_000
        assert point.fairness > 0.5
    transfer = campaign.kept[2].measurement.transfer
    assert len(transfer.streams) == 3
    assert len(transfer.intervals_bps) >= 2
    for stream in transfer.streams:  # what arrived in two seconds, but for what the last moments brought
        assert sum(stream.received_bps) == pytest.approx(8 * stream.received_bytes, rel=0.1)
    assert len(campaign.joined) == 1, "all paths moved packets alike"
