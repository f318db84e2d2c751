"""Requests beside a real transfer over an emulated path."""

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
testbed:
  kind: netns
  hops:
    access:
      forward: {rate: 10 Mbit/s, delay: 5 ms, buffer: 250 kB}
      backward: {rate: 10 Mbit/s, delay: 5 ms}
traffic:
  bulk:
    from: sender
    to: receiver
    streams: 2
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: cubic}}
  requests: {from: sender, to: receiver, source: {kind: requests, every: 100 ms}}
campaign:
  cycles: 1
  cycle: [{name: loaded, run: [bulk, requests], for: 6 s}, {name: unloaded, run: requests, for: 1 s}]
study:
  factors:
    queue:
      drop-tail: {}
      fq-codel: {testbed.hops.access.forward.queue: {kind: fq-codel}}
"""


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    try:
        Namespace().close()
    except MissingCapability as lack:
        pytest.skip(str(lack))


def test_over_tls_each_part_takes_a_round_trip_and_none_waits_for_an_acknowledgement(tmp_path):
    needs("iperf3", "ping", "openssl")
    changes = {
        "traffic.requests.source.tls": "true",
        "campaign.cycle": [{"name": "unloaded", "run": "requests", "for": "1 s"}],
        "study": None,
    }
    campaign = run_campaign(loads(FILE, assign=changes), tmp_path)
    (kept,) = campaign.kept
    parts = [(each.handshake_s, each.tls_s, each.answer_s) for each in kept.measurement.requests]
    assert len(parts) == 10
    assert min(min(each) for each in parts) >= 0.010
    # An acknowledgement that is delayed comes 40 ms later.
    assert max(min(times) for times in zip(*parts, strict=True)) < 0.040


def test_a_full_buffer_costs_new_connections_what_flow_queueing_saves_them(tmp_path):
    needs("iperf3", "ping")
    campaign = run_campaign(loads(FILE), tmp_path)
    assert [kept.failures for kept in campaign.kept] == [()] * 4
    for kept in campaign.kept:
        requests = kept.measurement.requests
        assert len(requests) == round(10 * campaign.plan.measured(kept.place).duration_s)
        # No handshake and no answer is faster than the path.
        assert all(request.handshake_s >= 0.010 for request in requests if request.handshake_s is not None)
        assert all(request.answer_s >= 0.010 for request in requests if request.answer_s is not None)
    full, queued = summaries(campaign)
    # 250 kB at 10 Mbit/s are 200 ms, of which the last four seconds see at least a half in the mean.
    assert full.handshake_s > 0.1
    assert full.answer_s > 0.1
    assert full.foreign_per_minute < 600
    assert full.rpm < 600
    assert queued.requests_lost == 0
    assert queued.foreign_per_minute > 2 * full.foreign_per_minute
    assert queued.rpm > 2 * full.rpm
    assert full.unloaded_foreign_per_minute > 2 * full.foreign_per_minute
