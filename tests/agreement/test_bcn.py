"""BCN compared with a second simulator, as naive as can be: without chance, it is the same run to the
frame."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from typing import Any

import numpy as np

from agreement.experiments import NO_CONTROL, NO_RECORD, NO_SWITCHING, star
from core_columns import columns
from weirlab import _core

FRAME_BYTES = 1500
FRAME_PS, NOTE_PS = 1_200_000, 51_200
DELAY_PS, RESPONSE_PS = 500_000, 1_000_000
Q_EQ, W, EVERY, GI, GD, LINE_BPS, LEAST_BPS = 8, 2.0, 10, 12.0, 0.01, 1e10, 1e6
"""Set point and distance between samples in frames; weight and gains; rates."""
GAPS_PS = (2_000_003, 1_700_021, 2_300_017)
STARTS_PS = (11, 700_001, 1_300_007)
END_PS = 4_000_000_000


class Naive:
    """Three hosts send to a fourth; every queue is a list, every event a tuple."""

    def __init__(self) -> None:
        self.agenda: list[tuple[int, int, str, int, float]] = []
        self.waiting, self.free_at, self.last = [0] * 3, [0] * 3, [0] * 3
        self.rates: list[float | None] = [None] * 3
        self.sent: Counter[int] = Counter()
        self.delivered: Counter[int] = Counter()
        self.notes: Counter[str] = Counter()
        self.queue: list[int] = []
        self.tags: list[list[bool]] = [[], [], []]
        self.busy, self.seen, self.before = False, 0, 0

    def enter(self, at: int, order: int, what: str, host: int, number: float = 0.0) -> None:
        heapq.heappush(self.agenda, (at, order, what, host, number))

    def due(self, host: int) -> int:
        rate = self.rates[host]
        gap = 0 if rate is None else int(8 * FRAME_BYTES * (1e12 / int(rate)))
        return max(self.free_at[host], self.last[host] + gap)

    def run(self) -> None:
        for host, start in enumerate(STARTS_PS):
            self.enter(start, 3, "made", host)
        while self.agenda[0][0] < END_PS:
            now, _, what, host, number = heapq.heappop(self.agenda)
            getattr(self, what)(now, host, number)

    def made(self, now: int, host: int, number: float) -> None:
        """A frame is generated; `number` counts them."""
        self.waiting[host] += 1
        self.enter(STARTS_PS[host] + int((number + 1) * GAPS_PS[host]), 3, "made", host, number + 1)
        self.enter(max(now, self.due(host)), 2, "leave", host)

    def leave(self, now: int, host: int, _: float) -> None:
        if not self.waiting[host] or self.due(host) > now:
            return
        self.waiting[host] -= 1
        self.sent[host] += 1
        self.last[host], self.free_at[host] = now, now + FRAME_PS
        self.tags[host].append(self.rates[host] is not None)
        self.enter(now + FRAME_PS + DELAY_PS, 1, "arrive", host)
        if self.waiting[host]:
            self.enter(self.due(host), 2, "leave", host)

    def arrive(self, now: int, host: int, _: float) -> None:
        self.queue.append(host)
        self.serve(now)
        tagged = self.tags[host].pop(0)
        self.seen += 1
        if self.seen % EVERY == 0:
            q = len(self.queue)
            offset = max(-Q_EQ, min(Q_EQ, Q_EQ - q))
            delta = max(-2 * Q_EQ, min(2 * Q_EQ, q - self.before))
            self.before = q
            fb = offset - W * delta
            if fb < 0 or (fb > 0 and tagged):
                self.notes["bcn+" if fb > 0 else "bcn-"] += 1
                self.enter(now + NOTE_PS + DELAY_PS + RESPONSE_PS, 2, "obey", host, fb)

    def serve(self, now: int) -> None:
        if self.queue and not self.busy:
            self.busy = True
            self.enter(now + FRAME_PS, 0, "served", 0)
            self.enter(now + FRAME_PS + DELAY_PS, 1, "deliver", self.queue.pop(0))

    def served(self, now: int, _: int, __: float) -> None:
        self.busy = False
        self.serve(now)

    def deliver(self, _: int, host: int, __: float) -> None:
        self.delivered[host] += 1

    def obey(self, now: int, host: int, fb: float) -> None:
        rate = self.rates[host]
        if fb < 0:
            self.rates[host] = max((LINE_BPS if rate is None else rate) * (1 - GD * -fb), LEAST_BPS)
        elif rate is not None:
            self.rates[host] = rate + GI * fb * 1e6
            if self.rates[host] >= LINE_BPS:
                self.rates[host] = None
        self.enter(max(now, self.due(host)), 2, "leave", host)


def simulated() -> dict[str, Any]:
    def source(host: int) -> dict[str, Any]:
        return {
            "from": host,
            "to": {"node": 3},
            "start_ps": STARTS_PS[host],
            "stop_ps": 1 << 62,
            "departures": {"kind": "constant", "gap_ps": float(GAPS_PS[host])},
            "frame_size": {"fixed": FRAME_BYTES},
            "stream": {"kind": "named"},
        }

    point = {
        "ports": [7],
        "q_eq_bytes": Q_EQ * FRAME_BYTES,
        "unit_bytes": FRAME_BYTES,
        "counting": "exact",
        "saturation": "set-point",
        "w": W,
        "sample_every_bytes": EVERY * FRAME_BYTES,
        "sampling": {"kind": "uniform", "jitter": 0.0},
        "counted": "received",
        "positive": "tagged",
        "negative": "always",
        "severe": None,
        "notification": {"frame_bytes": 64, "delay_ps": 0, "lane": "control"},
    }
    stop = {
        "t_max_ps": 10**8,
        "r_min_bps": 10**9,
        "t_max_factor": 2.0,
        "r_min_factor": 0.5,
        "back_off": "after",
        "restart": "r-min",
        "reset": "never",
        "meanwhile": "ignore",
    }
    reaction = {
        "hosts": [0, 1, 2],
        "gi": GI,
        "gd": GD,
        "ru_bps": 10**6,
        "min_rate_bps": int(LEAST_BPS),
        "initial_rate_bps": None,
        "removal_rate_bps": None,
        "drift": None,
        "stop": stop,
        "limiter": {"queue": "unlimited", "pacing_jitter": 0.0, "fifo_frames": 0},
    }
    spec = {
        "network": star(4),
        "queues": [],
        "traffic": [{"name": "load", "class": 0, "sources": [source(host) for host in range(3)]}],
        "control": NO_CONTROL
        | {
            "bcn": {"congestion_point": point, "reaction_point": reaction},
            "responses": [{"nodes": [0, 1, 2], "pause_ps": 0, "notification_ps": RESPONSE_PS}],
        },
        "switching": NO_SWITCHING,
        "run": {"duration_ps": END_PS, "engine": {"kind": "event"}},
        "record": NO_RECORD,
    }
    return columns(_core.simulate(json.dumps(spec), [0], 1, None))


def test_a_naive_simulator_sends_delivers_and_notifies_the_same() -> None:
    naive = Naive()
    naive.run()
    tables = simulated()
    hosts = np.array([0, 2, 4])
    assert [naive.sent[host] for host in range(3)] == tables["ports"]["frames"][hosts].tolist()
    assert [naive.delivered[host] for host in range(3)] == tables["flows"]["delivered_frames"].tolist()
    names, control = tables["kind_names"]["name"], tables["control_frames"]
    notes: Counter[str] = Counter()
    for kind, frames in zip(control["kind"], control["frames"], strict=True):
        notes[names[kind]] += int(frames)
    assert notes == naive.notes
    assert notes["bcn+"] > 50
    assert notes["bcn-"] > 50
