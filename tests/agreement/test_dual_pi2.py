"""Coupled queues, against the pseudo-code of RFC 9332 in a readable form, frame by frame."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from weirlab import _core
from weirlab.scenario import loads
from weirlab.scenario.network.aqm import DualPi2, aqm_spec

RATE = 10_000_000
MS = 10**9
NOT_ECT, ECT_1, ECT_0, CE = range(4)


@dataclass
class Packet:
    number: int
    size: int
    came: int
    ecn: int
    marked: bool = False


@dataclass
class Queue:
    packets: deque[Packet] = field(default_factory=deque)
    count: float = 0.0

    def time(self, now: int) -> int:
        """How long the first packet has waited."""
        return now - self.packets[0].came if self.packets else 0

    def recur(self, likelihood: float) -> bool:
        self.count += likelihood
        if self.count > 1:
            self.count -= 1
            return True
        return False


@dataclass
class Reference:
    """DualPI2 after the pseudo-code of RFC 9332, appendix A.2, at a transmitter of 10 Mbit/s; times in ps.

    `shift` makes the scheduler a time-shifted FIFO; without it, the low-latency queue goes first but for the
    share `classic`, by credit, as in Linux.
    """

    alpha: float
    beta: float
    k: float
    shift: int | None
    classic: float
    target: int = 15 * MS
    update: int = 15 * MS
    min_th: int = 800 * 10**6
    max_th: int = 1200 * 10**6

    def __post_init__(self) -> None:
        self.lq, self.cq = Queue(), Queue()
        self.base = 0.0
        self.prevq = 0
        self.updates = 0
        self.credit = 0.0
        self.dropped: list[int] = []
        self.marked: list[int] = []

    def dualpi2_update(self, now: int) -> None:
        while (self.updates + 1) * self.update <= now:
            self.updates += 1
            at = self.updates * self.update
            curq = max(self.cq.time(at), self.lq.time(at))
            step = self.alpha * (curq / 1e12 - self.target / 1e12) + self.beta * (
                curq / 1e12 - self.prevq / 1e12
            )
            self.base = min(max(self.base + step, 0.0), 1.0)
            self.prevq = curq

    def enqueue(self, packet: Packet) -> None:
        (self.lq if packet.ecn % 2 == 1 else self.cq).packets.append(packet)

    def scheduler(self, now: int) -> Queue:
        if not (self.lq.packets and self.cq.packets):
            return self.lq if self.lq.packets else self.cq
        if self.shift is None:
            return self.lq if self.credit <= 0 else self.cq
        return self.lq if self.lq.time(now) + self.shift >= self.cq.time(now) else self.cq

    def laqm(self, qdelay: int) -> float:
        if qdelay >= self.max_th:
            return 1.0
        if qdelay > self.min_th:
            return (qdelay - self.min_th) / 1e12 / ((self.max_th - self.min_th) / 1e12)
        return 0.0

    def dequeue(self, now: int) -> Packet | None:
        p_cl, p_c = min(self.k * self.base, 1.0), self.base**2
        while self.lq.packets or self.cq.packets:
            queue = self.scheduler(now)
            packet = queue.packets.popleft()
            if queue is self.lq:
                if p_cl < 1:
                    native = self.laqm(now - packet.came) if len(queue.packets) > 1 else 0.0
                    packet.marked = queue.recur(max(native, p_cl))
                else:
                    if queue.recur(p_c):
                        self.dropped.append(packet.number)
                        continue
                    packet.marked = queue.recur(p_cl)
            elif queue.recur(p_c):
                if packet.ecn == NOT_ECT or p_c >= min(1 / self.k**2, 1):
                    self.dropped.append(packet.number)
                    continue
                packet.marked = True
            self.charge(queue, packet.size)
            if packet.marked:
                self.marked.append(packet.number)
            return packet
        return None

    def charge(self, queue: Queue, size: int) -> None:
        if not (self.lq.packets or self.cq.packets):
            self.credit = 0.0
        elif queue is self.lq and self.cq.packets:
            self.credit += self.classic * size
        elif queue is self.cq and self.lq.packets:
            self.credit -= (1 - self.classic) * size

    def run(self, packets: list[Packet]) -> list[tuple[int, int]]:
        """Which packet has left when, in order."""
        left: list[tuple[int, int]] = []
        free = 0
        waiting = deque(packets)

        def serve(now: int) -> int:
            self.dualpi2_update(now)
            begun = self.dequeue(now)
            if begun is None:
                return free
            end = now + begun.size * 8 * 10**12 // RATE
            left.append((begun.number, end))
            return end

        while waiting or self.lq.packets or self.cq.packets:
            is_busy = bool(self.lq.packets or self.cq.packets)
            if is_busy and (not waiting or free <= waiting[0].came):
                free = serve(free)
                continue
            came = waiting.popleft()
            self.dualpi2_update(came.came)
            self.enqueue(came)
            if not is_busy and free <= came.came:
                free = serve(came.came)
        return left


def told(aqm: dict[str, Any], packets: list[Packet]) -> dict[str, Any]:
    """What a line of 10 Mbit/s does with the packets."""
    line = {
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

    def column(values: list[int]) -> Any:
        return np.array(values, dtype=np.uint64)

    return dict(
        _core.replay_line(
            json.dumps(line),
            seed=1,
            name="any",
            t_ps=column([packet.came for packet in packets]),
            size_bytes=column([packet.size for packet in packets]),
            flow=column([0] * len(packets)),
            ecn=column([packet.ecn for packet in packets]),
            until_ps=10**15,
        )
    )


def made(phases: list[tuple[int, int, int]], seed: int) -> list[Packet]:
    chance = np.random.default_rng(seed)
    packets: list[Packet] = []
    now = 0
    for count, gap, size in phases:
        for _ in range(count):
            now += int(chance.exponential(gap)) * 10**6
            packets.append(Packet(len(packets), size, now, int(chance.integers(4))))
    return packets


phases = st.lists(
    st.tuples(st.integers(1, 400), st.integers(100, 2500), st.integers(60, 1500)), min_size=1, max_size=6
)
"""Bursts and lulls: packets, mean gap in us, size in bytes."""


@settings(deadline=None)
@given(
    phases=phases,
    seed=st.integers(0, 2**16),
    impatience=st.floats(1, 50),
    coupling=st.sampled_from([1.0, 1.19, 2.0, 4.0]),
    shift=st.none() | st.integers(0, 100 * MS),
    classic=st.floats(0.01, 0.99),
)
def test_dual_pi2_does_what_the_pseudo_code_says(
    phases: Any, seed: int, impatience: float, coupling: float, shift: int | None, classic: float
) -> None:
    packets = made(phases, seed)
    reference = Reference(0.15 * impatience, 3 * impatience, coupling, shift, classic)
    left = reference.run(packets)
    scheduler = (
        {"kind": "wrr", "classic": classic}
        if shift is None
        else {"kind": "time-shifted-fifo", "shift_ps": shift}
    )
    aqm = {**RFC, "alpha": reference.alpha, "beta": reference.beta, "coupling": coupling}
    done = told({**aqm, "scheduler": scheduler}, packets)
    assert done["dropped"].tolist() == reference.dropped
    assert list(zip(done["departed"].tolist(), done["departed_ps"].tolist(), strict=True)) == left
    assert done["marked"].tolist() == reference.marked


RFC = json.loads(aqm_spec(DualPi2(kind="dual-pi2")).json())


def test_the_defaults_are_those_of_the_rfc() -> None:
    assert RFC == {
        "kind": "dual-pi2",
        "target_ps": 15 * MS,
        "update_ps": 15 * MS,
        "alpha": 0.1 * 0.015 / 0.1**2,
        "beta": 0.3 / 0.1,
        "coupling": 2.0,
        "ramp_start_ps": 800 * 10**6,
        "ramp_range_ps": 400 * 10**6,
        "ramp_frames": 1,
        "scheduler": {"kind": "wrr", "classic": 0.1},
    }
    short = "weirlab: 1\nname: short\nnetwork: {kind: path, ends: [a, b], link: {rate: 1 Gbit/s}}\n"
    text = f"{short}queues: {{out: {{at: a->b, kind: dual-pi2, rtt_max: 30 ms}}}}\n"
    text += "traffic: {t: {from: a, to: b, source: {kind: bulk}, transport: {kind: tcp,\n"
    text += "  congestion_control: {kind: reno}}}}\nrun: {duration: 1 ms}\n"
    (rule,) = json.loads(loads(text).resolve().spec_json)["queues"]
    assert rule["discipline"]["limit"] == {"frames": 10000}
    assert rule["discipline"]["aqm"]["update_ps"] == 10 * MS


def test_the_reference_drops_and_marks_so_that_the_comparison_says_something() -> None:
    packets = [Packet(i, 1250, i * 800 * 10**6, i % 4) for i in range(4000)]
    reference = Reference(0.15, 3, 2, None, 0.1)
    reference.run(packets)
    kinds = {packets[number].ecn for number in reference.dropped}
    assert len(reference.dropped) > 50
    assert NOT_ECT in kinds
    assert {packets[number].ecn for number in reference.marked} == {ECT_1, ECT_0, CE}
