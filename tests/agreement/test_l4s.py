"""Congestion control by marks: DCTCP against the model of its authors, Prague with classic TCP."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from weirlab.runs import simulate
from weirlab.scenario import loads

DCTCP = """\
weirlab: 1
name: sawtooth
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 100 us, framing: none}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 5 MB, marking: {k_min: 60720 B}}}
traffic:
  load: {from: "host-[0-1]", to: host-2, source: {kind: bulk}, transport: {kind: tcp, delayed_ack: 1,
    congestion_control: {kind: dctcp}, min_rto: 10 ms}}
run: {duration: 2 s}
record: {queue: {queue: switch-0->host-2, every: 100 us}, window: {tcp: load, every: 1 ms}}
"""
FRAME = 1518
K, CAPACITY_BPS, RTT_S = 40, 1e9, 400e-6


def test_dctcp_keeps_the_queue_at_its_threshold_and_the_link_busy() -> None:
    # Alizadeh et al., DCTCP, SIGCOMM 2010, section 3.3: W* = (C RTT + K) / N, alpha = sqrt(2 / W*), and a
    # queue of at most K + N packets that swings by sqrt(2 N (C RTT + K)) / 2. The model has flows in step and
    # round trips without transmission times; flows out of step swing less together.
    records = simulate(loads(DCTCP), [1])
    flows = 2
    held = CAPACITY_BPS * RTT_S / 8 / FRAME + K
    rows = records["intervals"].filter(pl.col("t_ps") > 10**12)
    most = float(rows["queue_max_bytes"].to_numpy().max()) / FRAME
    # A frame more: each window may have a part of one beyond a round trip's growth.
    assert K < most <= K + 2 * flows + 1
    assert int(rows["drops"].sum()) == 0
    sent = float(rows["bytes"].sum()) * 8 / (CAPACITY_BPS * 1.0)
    assert sent > 0.999
    swing = math.sqrt(2 * flows * held) / 2
    lows = rows["queue_bytes"].to_numpy() / FRAME
    assert K + flows - lows.min() < 2 * swing
    assert float(lows.mean()) > K - swing
    alpha = records["tcp"].filter(pl.col("t_ps") > 10**12)["alpha"].to_numpy().mean()
    assert alpha == pytest.approx(math.sqrt(2 / (held / flows)), rel=0.35)


L4S = """\
weirlab: 1
name: shares
network: {kind: dumbbell, pairs: 2, access: {rate: 1 Gbit/s, delay: 1 ms},
  bottleneck: {rate: 40 Mbit/s, delay: DELAY}}
queues: {bottleneck: {at: left->right, kind: dual-pi2}}
traffic:
  l4s: {from: left-0, to: right-0, source: {kind: bulk}, transport: {kind: tcp,
    congestion_control: {kind: prague}}}
  classic: {from: left-1, to: right-1, source: {kind: bulk}, transport: {kind: tcp,
    congestion_control: {kind: CLASSIC}}}
run: {duration: 40 s}
record: {l4s: {flow: l4s, every: 1 s}, classic: {flow: classic, every: 1 s}}
"""


def shares(classic: str, delay: str) -> dict[str, Any]:
    """Rates from 10 s on [Mbit/s], and mean delays beyond the way itself [ms], by traffic."""
    records = simulate(loads(L4S.replace("CLASSIC", classic).replace("DELAY", delay)), [1])
    late = records.named("deliveries").filter(pl.col("t_ps") > 10 * 10**12)
    rates = dict(late.group_by("traffic_name").agg(pl.col("bytes").sum() * 8 / 30 / 1e6).iter_rows())
    flows = records.named("flows").filter(pl.col("carries") == "data")
    way_ms = 2.0 + float(delay.split()[0])
    waits = {
        row["traffic_name"]: row["delay_sum_ps"] / row["delivered_frames"] / 1e9 - way_ms
        for row in flows.iter_rows(named=True)
    }
    return {"rates": rates, "waits": waits}


@pytest.mark.parametrize("classic", ["reno", "cubic"])
def test_prague_and_a_classic_flow_share_a_link_by_the_law_of_coupling(classic: str) -> None:
    # RFC 9332, section 2.1: with k = 2 a flow of either kind gets about the same rate at equal round trips.
    # The classic one has 15 ms more of them, which the base round trip of 42 ms makes a third of its rate.
    found = shares(classic, "19 ms")
    ratio = found["rates"]["l4s"] / found["rates"]["classic"]
    assert 0.5 < ratio < 2.5, found
    assert sum(found["rates"].values()) > 0.9 * 40
    # 0.3 ms are the frame's own transmission; the ramp of the low-latency queue begins at 0.8 ms.
    assert found["waits"]["l4s"] < 1.3, found
    assert 5 < found["waits"]["classic"] < 25, found
