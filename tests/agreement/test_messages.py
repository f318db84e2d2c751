"""Messages at one link compared with queueing theory."""

from __future__ import annotations

import math
import statistics

import polars as pl
import pytest

import weirlab
from weirlab.measures import taken
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
    found = taken("slowdown", records, [0], at=None, window=(20 * 10**9, 180 * 10**9)).get_column("value")[0]
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


FRAMES = """\
weirlab: 1
name: frames
network: {kind: star, hosts: 9, link: {rate: 100 Gbit/s, delay: 1 us, framing: none}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: LIMIT}}
control:
  dcqcn:
    reaction_point: {at: host-*}
    marking: {at: "switch-0->*", k_min: 100 kB, k_max: 400 kB, p_max: 20 %}
traffic:
  incast:
    from: host-[0-7]
    to: host-8
    pattern: {kind: groups, senders: SENDERS}
    source: {kind: messages, sizes: {kind: fixed, size: SIZE}, every: 1 ms, gaps: {kind: constant}}
run: {duration: 5 ms, seed: 1}
"""


def frames(senders: int, size: str = "1 MB", limit: str = "40 MB") -> pl.DataFrame:
    """The messages of events at which so many hosts send as much each."""
    text = FRAMES.replace("SENDERS", str(senders)).replace("LIMIT", limit).replace("SIZE", size)
    return run(loads(text)).records["messages"]


def test_a_message_of_frames_alone_takes_the_time_of_an_empty_network() -> None:
    found = frames(1)
    taken = found.select(pl.col("delivered_ps") - pl.col("start_ps")).to_series().to_list()
    # 1000 frames of 1048 B over the first link, the last one over the second, and two delays.
    assert taken == found.get_column("ideal_ps").to_list() == [1001 * 1048 * 80 + 2 * 10**6] * 5


def test_an_incast_at_hosts_with_rate_limiters_lasts_at_least_as_long_as_its_bytes_take() -> None:
    found = frames(8, "200 kB").filter(pl.col("start_ps") < 4 * 10**9)
    ends = found.group_by("start_ps").agg(pl.col("delivered_ps").max()).sort("start_ps")
    # The queue of the first event lasts until all has come: its bytes, one more transmission, two delays.
    least = (8 * 200 + 1) * 1048 * 80 + 2 * 10**6
    taken = (ends.get_column("delivered_ps") - ends.get_column("start_ps")).to_list()
    assert taken[0] == least
    # Later ones find senders that are still slowed down.
    assert min(taken) >= least
    assert max(taken) > least


def test_a_message_of_frames_alone_that_loses_one_never_ends() -> None:
    found = frames(8, limit="200 kB")
    ended = found.get_column("delivered_ps").is_not_null()
    assert not ended.all()


def test_a_run_says_how_long_messages_took_by_their_length() -> None:
    text = FRAMES.replace("SENDERS", "1").replace("LIMIT", "40 MB").replace("SIZE", "1 MB")
    table = next(
        block for block in weirlab.run(loads(text)).blocks() if "Messages" in getattr(block, "caption", "")
    )
    assert table.rows == [["incast", "1 MB", "5", "0", "1", "–", "85.92 µs", "–"]]
