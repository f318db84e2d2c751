"""Paths that answer probes as told, in no time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from weirlab.campaigns.path import Answers, Batch
from weirlab.campaigns.path.probing import PROBES


@dataclass
class MadeHop:
    """A link, and the router or host behind it."""

    rate_bps: float = 10e6
    added_s: float = 4e-3
    loss: float = 0.0
    address: str | None = None
    """None: silent."""
    quoted_bytes: int = 520
    mtu_bytes: int = 9000
    tells_mtu: bool = True
    answers_per_s: float = np.inf
    refuses: int | None = None
    """Code with which it says that nobody comes further."""


@dataclass
class MadePath:
    """Is asked like `LiveProber`."""

    hops: list[MadeHop]
    noise_s: float = 5e-6
    is_host: bool = True
    """Whether the last hop is the destination."""
    listens: bool = False
    steps_s: list[float] = field(default_factory=list)
    """Of the clock, batch by batch."""
    interrupt_after: int | None = None
    stamps: bool = True
    """Whether the kernel tells when probes left."""
    now_s: float = 0.0
    batches: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng(1)
        self._last_answer = [-np.inf] * len(self.hops)

    def clock(self) -> float:
        """Seconds of the path's own time."""
        return self.now_s

    def __call__(self, batch: Batch) -> Answers:
        self.batches.append(batch)
        if self.interrupt_after is not None and len(self.batches) > self.interrupt_after:
            raise KeyboardInterrupt
        rows, strangers, replies = [], 0, 0
        for hops, size, at_s in zip(batch.hops, batch.sizes_bytes, batch.at_s, strict=True):
            row, told = self._answer(hops, size, at_s)
            if row["word"] is not None and row["quoted_bytes"] < 8 and not batch.rotating:
                strangers += 1
                row = {**row, "word": None, "rtt_s": None, "router": None}
            replies += told
            rows.append({"hops": hops, "size_bytes": size, "t_s": at_s, **row})
        self.now_s += max(batch.at_s, default=0.0) + batch.timeout_s
        step_s = self.steps_s.pop(0) if self.steps_s else 0.0
        stamped = len(rows) if self.stamps else 0
        return Answers(pl.DataFrame(rows, schema=PROBES), "192.0.2.1", strangers, replies, step_s, stamped)

    def _answer(self, hops: int, size: int, at_s: float) -> tuple[dict[str, object], int]:
        nothing = {"rtt_s": None, "word": None, "code": 0, "mtu_bytes": 0, "quoted_bytes": 0, "router": None}
        rtt_s = 0.0
        for place, hop in enumerate(self.hops):
            if size > hop.mtu_bytes:
                before = self.hops[place - 1].address if place else None
                if not hop.tells_mtu:
                    return nothing, 0
                told = {"word": "too-big", "mtu_bytes": hop.mtu_bytes, "quoted_bytes": 520, "router": before}
                return {**nothing, **told, "rtt_s": rtt_s}, 0
            if self._chance.random() < hop.loss:
                return nothing, 0
            rtt_s += hop.added_s + 8 * size / hop.rate_bps + self._chance.exponential(self.noise_s)
            last = place == len(self.hops) - 1
            if place + 1 < hops and not last and hop.refuses is None:
                continue
            if last and self.is_host and self.listens:
                return nothing, 1
            if hop.address is None or (last and not self.is_host and place + 1 < hops):
                return nothing, 0
            now_s = self.now_s + at_s
            if now_s - self._last_answer[place] < 1 / hop.answers_per_s:
                return nothing, 0
            self._last_answer[place] = now_s
            word, code = "time-exceeded", 0
            if hop.refuses is not None and place + 1 < hops:
                word, code = "unreachable", hop.refuses
            elif last and self.is_host:
                word = "port-unreachable"
            quoted = min(hop.quoted_bytes, size - 28)
            told = {"word": word, "code": code, "quoted_bytes": quoted, "router": hop.address, "rtt_s": rtt_s}
            return {**nothing, **told}, 0
        raise AssertionError("the last hop ends every probe")
