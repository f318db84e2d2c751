"""Queues that drop early, against the pseudo-code of RFC 8289 in a readable form, and against theory."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from weirlab import _core
from weirlab.runs import simulate
from weirlab.scenario import loads

RATE = 10_000_000
MS = 10**9
TARGET, INTERVAL = 5 * MS, 100 * MS


@dataclass
class Packet:
    number: int
    size: int
    came: int
    capable: bool


class Reference:
    """CoDel after the pseudo-code of RFC 8289, section 5, before a transmitter of 10 Mbit/s, in ps."""

    def __init__(self, ecn: bool):
        self.queue: deque[Packet] = deque()
        self.largest = 0
        self.first_above = 0
        self.drop_next = 0
        self.count = self.last_count = 0
        self.dropping = False
        self.ecn = ecn
        self.dropped: list[int] = []

    def look(self, now: int) -> tuple[Packet, bool]:
        packet = self.queue.popleft()
        left = sum(packet.size for packet in self.queue)
        if now - packet.came < TARGET or left <= self.largest:
            self.first_above = 0
            return packet, False
        if self.first_above == 0:
            self.first_above = now + INTERVAL
        return packet, now >= self.first_above

    def law(self, at: int) -> int:
        return at + int(INTERVAL / math.sqrt(self.count))

    def dequeue(self, now: int) -> Packet:
        packet, late = self.look(now)
        if self.dropping:
            if not late:
                self.dropping = False
            while self.dropping and now >= self.drop_next:
                self.count += 1
                if self.ecn and packet.capable:
                    self.drop_next = self.law(self.drop_next)
                    return packet
                self.dropped.append(packet.number)
                packet, late = self.look(now)
                if late:
                    self.drop_next = self.law(self.drop_next)
                else:
                    self.dropping = False
        elif late:
            if not (self.ecn and packet.capable):
                self.dropped.append(packet.number)
                packet, _ = self.look(now)
            self.dropping = True
            delta = self.count - self.last_count
            soon = now - self.drop_next < 16 * INTERVAL
            self.count = delta if delta > 1 and soon else 1
            self.drop_next = self.law(now)
            self.last_count = self.count
        return packet

    def run(self, packets: list[Packet]) -> list[tuple[int, int]]:
        """Which packet has left when, in order."""
        left: list[tuple[int, int]] = []
        free = 0
        waiting = deque(packets)
        while waiting or self.queue:
            if self.queue and (not waiting or free <= waiting[0].came):
                begun = self.dequeue(free)
                free += begun.size * 8 * 10**12 // RATE
                left.append((begun.number, free))
                continue
            came = waiting.popleft()
            self.largest = max(self.largest, came.size)
            if not self.queue and free <= came.came:
                # It is served at once: as one that has waited for nothing.
                self.queue.append(came)
                free = came.came
                begun = self.dequeue(free)
                free += begun.size * 8 * 10**12 // RATE
                left.append((begun.number, free))
            else:
                self.queue.append(came)
        return left


def line(aqm: dict[str, Any]) -> str:
    return json.dumps(
        {
            "loss": {"kind": "none"},
            "duplicate": 0.0,
            "rate": {"kind": "constant", "rate_bps": RATE},
            "lanes": 1,
            "framing_bytes": 0,
            "limit": "unlimited",
            "aqm": aqm,
            "cross": [],
            "delay_ps": 0,
            "delays": {"steps": [], "period_ps": None},
            "jitter": {"kind": "none"},
            "reorder": None,
        }
    )


def as_array(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


phases = st.lists(
    st.tuples(st.integers(1, 400), st.integers(100, 2500), st.integers(60, 1500)), min_size=1, max_size=6
)
"""Bursts and lulls: packets, mean gap in us, size in bytes."""


@settings(deadline=None)
@given(phases=phases, ecn=st.booleans(), seed=st.integers(0, 2**16))
def test_codel_does_what_the_pseudo_code_says(phases: Any, ecn: bool, seed: int) -> None:
    chance = np.random.default_rng(seed)
    packets: list[Packet] = []
    now = 0
    for count, gap, size in phases:
        for _ in range(count):
            now += int(chance.exponential(gap)) * 10**6
            packets.append(Packet(len(packets), size, now, bool(chance.integers(2))))
    reference = Reference(ecn)
    left = reference.run(packets)
    aqm = {"kind": "codel", "target_ps": TARGET, "interval_ps": INTERVAL, "ecn": ecn}
    told = _core.replay_line(
        line(aqm),
        seed=1,
        name="any",
        t_ps=as_array([packet.came for packet in packets]),
        size_bytes=as_array([packet.size for packet in packets]),
        flow=as_array([0] * len(packets)),
        ecn=as_array([int(packet.capable) for packet in packets]),
        until_ps=10**15,
    )
    assert told["dropped"].tolist() == reference.dropped
    assert list(zip(told["departed"].tolist(), told["departed_ps"].tolist(), strict=True)) == left


def test_the_reference_drops_so_that_the_comparison_says_something() -> None:
    packets = [Packet(i, 1250, i * 800 * 10**6, False) for i in range(2000)]
    reference = Reference(ecn=False)
    reference.run(packets)
    assert len(reference.dropped) > 50


TEXT = """\
weirlab: 1
name: standing
network: {kind: dumbbell, pairs: 1, access: {rate: 1 Gbit/s, delay: 1 ms},
  bottleneck: {rate: 50 Mbit/s, delay: 24 ms}}
queues: {bottleneck: {at: left->right, kind: drop-tail, limit: 5 MB}}
traffic:
  bulk: {from: left-0, to: right-0, source: {kind: bulk},
    transport: {kind: tcp, congestion_control: {kind: cubic}}}
run: {duration: 60 s}
record: {queue: {queue: left->right, every: 10 ms}, bulk: {flow: bulk, every: 1 s}}
measure: {rate: {kind: delivered-rate, of: bulk, window: 20 s .. 60 s}}
"""


def standing(assignments: dict[str, Any]) -> tuple[float, float, int]:
    """Mean wait of what stands in the queue [ms], rate [Mbit/s] and marks, after 20 s."""
    records = simulate(loads(TEXT, assign=assignments), [1])
    rows = records["intervals"].filter(pl.col("t_ps") > 20 * 10**12)
    wait = float(rows["queue_byte_ps"].sum()) / (40 * 1e12) * 8 / 50e6 * 1e3
    late = records["deliveries"].filter(pl.col("t_ps") > 20 * 10**12)
    return wait, float(late["bytes"].sum()) * 8 / 40 / 1e6, int(records["marks"]["frames"].sum())


@pytest.mark.parametrize(
    ("kind", "most_ms"),
    # CoDel looks at the least wait of an interval, so that the mean exceeds its target of 5 ms; PIE holds the
    # mean.
    [("codel", 12.0), ("fq-codel", 12.0), ("pie", 20.0)],
)
@pytest.mark.parametrize("ecn", [False, True])
def test_a_transfer_leaves_a_queue_near_the_target_and_keeps_its_rate(
    kind: str, most_ms: float, ecn: bool
) -> None:
    chosen = {"queues.bottleneck.kind": kind, "queues.bottleneck.ecn": ecn}
    wait, rate, marks = standing({**chosen, "traffic.bulk.transport.ecn": ecn})
    assert wait < most_ms
    # 1448 of 1538 B on the wire are data; the frames counted here are of 1518 B.
    assert rate > 0.85 * 50 * 1518 / 1538
    assert (marks > 0) == ecn


def test_drop_tail_fills_the_same_buffer() -> None:
    wait, rate, _ = standing({})
    assert wait > 100
    assert rate > 0.95 * 50 * 1518 / 1538


def test_red_settles_at_the_average_whose_drops_an_overload_needs() -> None:
    text = """weirlab: 1
name: red
network: {kind: dumbbell, pairs: 1, access: {rate: 1 Gbit/s}, bottleneck: {rate: 10 Mbit/s, framing: none}}
queues: {out: {at: left->right, kind: red, min: 20 kB, max: 60 kB, p_max: 20 %, limit: 1 MB}}
traffic: {load: {from: left-0, to: right-0, source: {kind: constant, rate: 12.5 Mbit/s, frame_size: 1250 B}}}
run: {duration: 200 s}
record: {queue: {queue: left->right, every: 1 s}}
"""
    records = simulate(loads(text), [1, 2], threads=1)
    ports = dict(records["port_names"].select("name", "port").iter_rows())
    rows = records["intervals"].filter(pl.col("port") == ports["left->right"], pl.col("t_ps") > 20e12)
    dropped, sent = rows.get_column("drops").sum(), rows.get_column("frames").sum()
    assert dropped / (dropped + sent) == pytest.approx(0.2, rel=0.005)
    # The distances are uniform in 1 .. 1/p, so that 2 p / (1 + p) of the frames are dropped: p = 1/9.
    average = 20_000 + 40_000 * (1 / 9) / 0.2
    assert rows.get_column("queue_byte_ps").sum() / (rows.height * 1e12) == pytest.approx(average, rel=0.03)
