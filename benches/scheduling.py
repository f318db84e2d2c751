"""How many workers the runner keeps busy: the runner itself, with simulated workers, scheduler and store.

    python benches/scheduling.py [--runs 1e6] [--seconds 1] [--workers 100,1000,10000]

Time is virtual: what the runner computes counts with its CPU time here, what Dask's client, scheduler and the
store take with the costs that `benches/studies.py` measures, and workers work as long as their runs take.
Each simulation is compared with the model of `docs/scaling.md`.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from studies import predicted

from weirlab.execution import Batch, Receipt, pace, runner
from weirlab.execution.executors import Ended

CLIENT_MS, SCHEDULER_MS, READ_MS, LIST_MS = 1.9, 3.0, 0.46, 0.01
"""Of a batch in Dask's client and scheduler, and of an object of the store."""
OBJECT_S = 5.0


class Clock:
    """Virtual time: CPU time of this process, and what it waits or is charged."""

    def __init__(self) -> None:
        self._beyond = 0.0
        self._busy = time.process_time()

    def monotonic(self) -> float:
        """Now [s]."""
        return time.process_time() - self._busy + self._beyond

    def sleep(self, seconds: float) -> None:
        """Wait, or be charged for what is not done here."""
        self._beyond += seconds


class Workers:
    """An executor whose workers and scheduler take virtual time."""

    per_worker, batch_s, dashboard, busy = 3, 20.0, "", True

    def __init__(self, clock: Clock, store: Objects, workers: int, run_s: float, spread: float) -> None:
        self.workers = workers
        self._clock, self._store, self._run_s = clock, store, run_s
        self._chance, self._spread = np.random.default_rng(1), spread
        self._free = [0.0] * workers
        self._scheduler_free = 0.0
        self._ends: list[tuple[float, int, Receipt, Batch]] = []
        self._tokens = 0
        self.worked_s = 0.0
        self.scheduler_s = 0.0

    def _scheduled(self, at: float) -> float:
        """When the scheduler, which does one thing after the other, has done its half for a batch."""
        half = SCHEDULER_MS / 2000
        self._scheduler_free = max(at, self._scheduler_free) + half
        self.scheduler_s += half
        return self._scheduler_free

    def submit(self, _: object, batch: Batch) -> int:
        self._clock.sleep(CLIENT_MS / 2000)
        begin = max(self._scheduled(self._clock.monotonic()), heapq.heappop(self._free))
        wanted = sum(stop - first for first, stop in batch.places)
        costs = self._run_s * self._chance.lognormal(-(self._spread**2) / 2, self._spread, wanted)
        ends = costs.cumsum()
        made = min(wanted, int(np.searchsorted(ends, batch.most_s)) + 1)
        took = float(ends[made - 1])
        heapq.heappush(self._free, begin + took)
        self.worked_s += took
        done, left = [], []
        for first, stop in batch.places:
            cut = min(stop, first + made)
            made -= cut - first
            done += [(first, cut)] if cut > first else []
            left += [(cut, stop)] if cut < stop else []
        count = sum(stop - first for first, stop in done)
        receipt = Receipt(done=count, left=tuple(left), seconds=took, bytes=200 * count, objects=1)
        self._tokens += 1
        heapq.heappush(self._ends, (begin + took, self._tokens, receipt, batch))
        self._store.add(begin + took, done, max(1, round(min(took / OBJECT_S, count))), batch.sitting)
        return self._tokens

    def ended(self, timeout_s: float) -> list[Ended]:
        now = self._clock.monotonic()
        if self._ends and self._ends[0][0] > now:
            self._clock.sleep(min(timeout_s, self._ends[0][0] - now))
            now = self._clock.monotonic()
        found = []
        while self._ends and self._ends[0][0] <= now:
            at, token, receipt, _ = heapq.heappop(self._ends)
            self._clock.sleep(CLIENT_MS / 2000)
            if (late := self._scheduled(at) - self._clock.monotonic()) > 0:
                self._clock.sleep(late)
            found.append(Ended(token, value=receipt))
        return found

    def exclude(self, worker: str) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


class Objects:
    """What of a store the runner uses; reading and listing take virtual time."""

    url = "memory"

    def __init__(self, clock: Clock, replicates: int) -> None:
        self._clock, self._replicates = clock, replicates
        self._written: list[tuple[float, Sequence[tuple[int, int]], int]] = []
        self.objects = 0
        self._sitting = ""

    def add(self, at: float, places: Sequence[tuple[int, int]], objects: int, sitting: str) -> None:
        """Results that are there from a time on."""
        self._sitting = sitting
        heapq.heappush(self._written, (at, places, objects))

    def documents(self, _: str) -> list[str]:
        return []

    def keep(self, _: str, __: Mapping[str, Any]) -> str:
        return "plan"

    def fresh(self, _: set[str], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        now, new, ranges = self._clock.monotonic(), 0, []
        while self._written and self._written[0][0] <= now:
            _, places, objects = heapq.heappop(self._written)
            new += objects
            ranges += [np.arange(*each) for each in places]
        self.objects += new
        self._clock.sleep((new * READ_MS + self.objects * LIST_MS) / 1000)
        if ranges:
            places = np.concatenate(ranges)
            values = {
                "plan": ["plan"] * len(places),
                "point": places // self._replicates,
                "replicate": places % self._replicates,
                "status": ["ok"] * len(places),
                "sitting": [self._sitting] * len(places),
            }
            yield pl.DataFrame({name: values[name] for name in columns})


def simulated(runs: int, run_s: float, workers: int, spread: float = 0.5) -> dict[str, float]:
    """Efficiency, hours, and how busy scheduler and runner were."""
    clock = Clock()
    store = Objects(clock, 10)
    plan = SimpleNamespace(order=np.arange(runs // 10), replicates=10, document=dict)
    pool = Workers(clock, store, workers, run_s, spread)
    real = runner.time, pace.time
    runner.time = pace.time = clock  # type: ignore[attr-defined, assignment]
    try:
        began, cpu = clock.monotonic(), time.process_time()
        carried = runner.carry(plan, store, pool)  # type: ignore[arg-type]
        took, own = clock.monotonic() - began, time.process_time() - cpu
    finally:
        runner.time, pace.time = real  # type: ignore[attr-defined]
    assert carried.done == runs, f"{carried.done} of {runs}"
    batches = pool._tokens
    charged = (batches * CLIENT_MS + store.objects * READ_MS) / 1000
    return {
        "hours": took / 3600,
        "efficiency": pool.worked_s / workers / took,
        "scheduler": pool.scheduler_s / took,
        "runner": (own + charged) / took,
        "batches": batches,
        "own_ms": 1000 * own / batches,
    }


def main() -> int:
    """Simulate, and print compared with the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=float, default=1e6)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--workers", default="100,1000,10000")
    given = parser.parse_args()
    batch = {"scheduler": SCHEDULER_MS, "runner": CLIENT_MS}
    store = {"read": READ_MS, "list": LIST_MS, "bytes of an object": 7600, "bytes of a row": 14}
    print(" workers    hours  effic.   model  sched.  runner  batches own [ms]")
    for workers in map(int, given.workers.split(",")):
        found = simulated(int(given.runs), given.seconds, workers)
        model = predicted(given.runs, given.seconds, workers, batch, store)
        shares = (found["efficiency"], model["efficiency"], found["scheduler"], found["runner"])
        texts = " ".join(f"{share:7.2f}" for share in shares)
        print(
            f"{workers:8} {found['hours']:8.3g} {texts} {found['batches']:8.0f} {found['own_ms']:8.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
