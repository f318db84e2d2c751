"""Messages at one link beside queueing theory."""

from __future__ import annotations

import math
import statistics

import pytest

from weirlab.measures.messages import slowdown
from weirlab.runs import run
from weirlab.scenario import loads

TEXT = """\
weirlab: 1
name: sharing
network:
  kind: graph
  nodes: {s: {kind: host, count: 8}, r: {kind: host}, switch: {kind: switch}}
  links:
    in: {join: [s-*, switch], rate: 200 Gbit/s, delay: 100 ns}
    out: {join: [switch, r], rate: 10 Gbit/s, delay: 100 ns}
queues:
  out: {at: switch->r, kind: fq-codel, limit: 200 MB, target: 10 s, interval: 100 s, quantum: 1518 B}
traffic:
  m:
    from: s-*
    to: r
    pattern: {kind: incast}
    source:
      kind: messages
      sizes: {kind: SIZES}
      every: EVERY us
      balancing: {kind: flow}
    transport:
      kind: tcp
      congestion_control: {kind: reno}
      initial_window: 100000
      window: 500 MB
      min_rto: 60 s
    stop: 180 ms
run: {duration: 250 ms, seed: SEED}
"""
FRAME, SEGMENT = 1538, 1448
"""A full segment on the wire, and its data."""


def mean_slowdown(sizes: str, mean_bytes: float, rho: float, seed: int) -> float:
    """Of the messages that come after the first 20 ms."""
    every_us = 8 * mean_bytes * FRAME / SEGMENT * 8 / (rho * 10e9) * 1e6
    text = TEXT.replace("SIZES", sizes).replace("EVERY", f"{every_us:.6f}").replace("SEED", str(seed))
    records = run(loads(text)).records
    found = slowdown(records, [0], None, (20 * 10**9, 180 * 10**9)).get_column("value")[0]
    assert found is not None, "all messages end"
    return float(found)


@pytest.mark.parametrize(
    ("sizes", "mean_bytes"),
    [("fixed, size: 289600 B", 289_600), ("fixed, size: 144800 B", 144_800)],
)
@pytest.mark.parametrize("rho", [0.3, 0.6])
def test_messages_that_share_a_link_frame_by_frame_slow_down_as_processor_sharing_says(
    sizes: str, mean_bytes: float, rho: float
) -> None:
    # M/G/1 processor sharing: E[T(x)] = x / (C (1 - rho)), whatever the distribution.
    found = [mean_slowdown(sizes, mean_bytes, rho, seed) for seed in range(1, 9)]
    error = statistics.stdev(found) / math.sqrt(len(found))
    # Turns are of one frame, and a new message begins with one of its own.
    least = 2 * FRAME / mean_bytes
    assert abs(statistics.mean(found) - 1 / (1 - rho)) < 4 * error + 2 * least, (found, error)
