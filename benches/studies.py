"""What a study costs besides its simulations, and what that means for a million and for a billion runs.

    python benches/studies.py [--quick]

CPU times are those of all processes that take part, starts included. Efficiency is that of runs that wait for
100 ms, by the time that they waited: other load delays only who hands out work. Exit code: 0, or 1 when a
goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from weirlab.execution import Executor, Watch, carry, opened
from weirlab.execution.batches import digest
from weirlab.store import Row, Store, frame_of

GOALS_MS = {"in this process": 0.3, "local:2": 0.3, "Dask": 2.0}
"""Most CPU time of a tiny run besides its simulation."""
EFFICIENCY = 0.9
"""Of runs of 100 ms on two workers."""


class Plan:
    """Runs that wait, and find one number."""

    def __init__(self, points: int, replicates: int, seconds: float) -> None:
        self.points, self.replicates, self.seconds = points, replicates, seconds
        self.order = np.arange(points)

    def document(self) -> dict[str, Any]:
        return {"kind": "module:studies", **vars(self), "order": None}

    def lists_impossible(self) -> bool:
        return False

    def point(self, number: int) -> Point:
        return Point(number, self.seconds)


class Point:
    def __init__(self, number: int, seconds: float) -> None:
        self._number, self._seconds = number, seconds

    def key(self, replicate: int) -> tuple[str, int]:
        return digest("waits", str(self._number)), replicate

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:
        time.sleep(self._seconds * len(replicates))
        watch(1, 1)
        return [self._row(replicate) for replicate in replicates]

    def _row(self, replicate: int) -> Row:
        value = {"measure": "value", "value": self._number + replicate / 1000, "unit": "1"}
        return Row(point=self._number, replicate=replicate, seed=replicate, measures=[value])


def plan_of(document: dict[str, Any]) -> Plan:
    return Plan(document["points"], document["replicates"], document["seconds"])


def cpu_s(*others: psutil.Process) -> float:
    """CPU time of this process, of children that have ended, and of others."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system + sum(map(_one, others))


def _one(process: psutil.Process) -> float:
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        times = each.cpu_times()
        total += times.user + times.system
    return total


@contextmanager
def cluster(workers: int, *, together: bool = False) -> Iterator[tuple[str, list[psutil.Process]]]:
    """A Dask scheduler and workers, each in a process of its own or all workers `together` in one."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONPATH": _path()}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "scheduler.json"
        started = [_started(["scheduler", str(file)], environment)]
        while not file.exists():
            time.sleep(0.1)
        count = 1 if together else workers
        started += [
            _started(["workers", str(file), str(workers // count)], environment) for _ in range(count)
        ]
        address = file.read_text()
        try:
            executor = opened(address)
            while executor.workers < workers:
                time.sleep(0.1)
            executor.close()
            yield address, [psutil.Process(each.pid) for each in started]
        finally:
            for each in started:
                each.terminate()
            for each in started:
                each.wait()


def _started(words: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, *words]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])


async def _serve(words: Sequence[str]) -> None:
    """What the processes of a cluster do."""
    from distributed import Scheduler, Worker

    if words[0] == "scheduler":
        scheduler = await Scheduler(host="127.0.0.1", port=0, dashboard=False)
        unfinished = Path(words[1]).with_suffix(".part")
        unfinished.write_text(scheduler.address)
        unfinished.rename(words[1])
        await scheduler.finished()
    address = Path(words[1]).read_text()
    workers = [await Worker(address, nthreads=1, dashboard=False) for _ in range(int(words[2]))]
    await asyncio.gather(*(worker.finished() for worker in workers))


def tiny(many: int) -> dict[str, float]:
    """CPU time in ms of a run that takes no time, starts of processes included."""
    found = {}
    for name, on in (("in this process", None), ("local:2", "local:2")):
        began = cpu_s()
        with tempfile.TemporaryDirectory() as place:
            carry(Plan(2, many, 0.0), Store.open(place, create=True), on, threads=1)
        found[name] = 1000 * (cpu_s() - began) / (2 * many)
    with cluster(2) as (address, others), tempfile.TemporaryDirectory() as place:
        began = cpu_s(*others)
        carry(Plan(2, many, 0.0), Store.open(place, create=True), address)
        found["Dask"] = 1000 * (cpu_s(*others) - began) / (2 * many)
    return found


def efficiency(many: int) -> dict[str, float]:
    """Time that runs of 100 ms took on two workers, as a share of the time of both, starts included."""
    found = {}
    for name in ("local:2", "Dask"):
        with tempfile.TemporaryDirectory() as place:
            store = Store.open(place, create=True)
            if name == "Dask":
                with cluster(2) as (address, _):
                    began = time.monotonic()
                    carry(Plan(many, 1, 0.1), store, address)
            else:
                began = time.monotonic()
                carry(Plan(many, 1, 0.1), store, name)
            waited = store.rows(columns=["seconds"])["seconds"].sum()
            found[name] = waited / (2 * (time.monotonic() - began))
    return found


def _nothing(_: object) -> tuple[int, ...]:
    return tuple(range(20))  # as long as a receipt


def scheduling(workers: int, batches: int) -> dict[str, float]:
    """CPU time in ms that a batch costs the runner and the scheduler, among so many workers."""
    with cluster(workers, together=True) as (address, others):
        executor: Executor = opened(address)
        scheduler = others[0]
        own, theirs = cpu_s(), _one(scheduler)
        given = ended = 0
        while ended < batches:
            while given < batches and given - ended < workers * executor.per_worker:
                executor.submit(_nothing, None)
                given += 1
            ended += len(executor.ended(0.2))
        found = {"runner": cpu_s() - own, "scheduler": _one(scheduler) - theirs}
        executor.close()
    return {name: 1000 * value / batches for name, value in found.items()}


def storing(objects: int, rows: int) -> dict[str, float]:
    """What objects of so many rows cost: ms a piece to write, to list and to read, bytes a row, and ms a row
    of compaction."""
    with tempfile.TemporaryDirectory() as place:
        store = Store.open(place, create=True)
        plan = Plan(objects, rows, 0.0)
        frames = []
        for number in range(objects):
            point = plan.point(number)
            made = [point._row(replicate) for replicate in range(rows)]
            started = datetime.now(UTC)
            made = [Row(**{**vars(row), "key": f"{number:032x}", "started": started}) for row in made]
            frames.append(frame_of(made, "p" * 16, "o" * 16, "sitting"))
        times = {}
        began = time.process_time()
        for frame in frames:
            store.write(frame)
        times["write"] = (time.process_time() - began) / objects
        began = time.process_time()
        names = store.objects()
        times["list"] = (time.process_time() - began) / objects
        began = time.process_time()
        store.read(names, ["plan", "point", "replicate", "status", "sitting"])
        times["read"] = (time.process_time() - began) / objects
        size = sum(path.stat().st_size for path in Path(place).rglob("*.parquet"))
        began = time.process_time()
        store.compact()
        compaction = (time.process_time() - began) / (objects * rows)
        small = sum(path.stat().st_size for path in Path(place).rglob("*.parquet"))
    each = {name: 1000 * value for name, value in times.items()}
    return {
        **each,
        "bytes": size / (objects * rows),
        "compaction": 1000 * compaction,
        "compact bytes": small / (objects * rows),
    }


def predicted(
    runs: float, run_s: float, workers: int, batch: dict[str, float], store: dict[str, float]
) -> dict[str, float]:
    """Hours, busy share of the scheduler and of the runner, objects and disk of a study.

    Batches take 20 s, or a quarter of what each worker has to do; a worker writes an object every 5 s. The
    runner reads each object once, and lists the store once a second, or in a twentieth of its time."""
    ideal_s = runs * run_s / workers
    batch_s = max(run_s, min(20.0, max(0.25, ideal_s / 4)))
    batches = max(workers, runs * run_s / batch_s)
    objects = batches * max(1.0, batch_s / 5.0) if run_s < 5.0 else runs
    scheduler_s = batches * batch["scheduler"] / 1000
    runner_s = (batches * batch["runner"] + objects * store["read"]) / 1000
    listing_s = objects / 2 * store["list"] / 1000
    listing = listing_s / (listing_s + max(1.0, 20 * listing_s))
    seconds = max(ideal_s, scheduler_s, runner_s / (1 - listing))
    return {
        "hours": seconds / 3600,
        "efficiency": ideal_s / seconds,
        "scheduler": scheduler_s / seconds,
        "runner": runner_s / seconds,
        "listing_s": 2 * listing_s,
        "objects": objects,
        "GB": (objects * store["bytes of an object"] + runs * store["bytes of a row"]) / 1e9,
    }


def main() -> int:
    """Measure, print, compare with the goals."""
    if len(sys.argv) > 1 and sys.argv[1] in ("scheduler", "workers"):
        asyncio.run(_serve(sys.argv[1:]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    quick = parser.parse_args().quick
    sys.modules["studies"] = sys.modules["__main__"]
    os.environ["PYTHONPATH"] = _path()
    missed = []
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for name, cost in tiny(1000 if quick else 10_000).items():
        print(f"a tiny run {name:<16} {cost:8.3f} ms of CPU, goal {GOALS_MS[name]}")
        missed += [name] if cost > GOALS_MS[name] else []
    for name, share in efficiency(60 if quick else 600).items():
        print(f"runs of 100 ms on {name:<9} {share:8.3f}, goal {EFFICIENCY}")
        missed += [name] if share < EFFICIENCY else []
    of_batches = {}
    for workers in (2, 16, 64):
        of_batches[workers] = scheduling(workers, 300 if quick else 3000)
        costs = ", ".join(f"{who} {cost:.2f}" for who, cost in of_batches[workers].items())
        print(f"a batch among {workers:4} workers: {costs} ms of CPU")
    stored = {}
    for rows in (1, 100, 1000):
        stored[rows] = storing(100 if quick else 1000, rows)
        print(f"objects of {rows:4} rows: " + ", ".join(f"{n} {v:.3g}" for n, v in stored[rows].items()))
    batch, store = of_batches[64], dict(stored[100])
    store["bytes of an object"], store["bytes of a row"] = stored[1]["bytes"], stored[1000]["bytes"]
    print(
        f"{'runs':>6} {'of':>7} {'workers':>8} {'hours':>9} {'effic.':>7} {'sched.':>7} {'runner':>7}"
        f" {'list [s]':>9} {'objects':>9} {'GB':>7}"
    )
    for runs in (1e6, 1e9):
        for run_s in (0.01, 1.0, 100.0):
            for workers in (100, 1000, 10_000):
                found = predicted(runs, run_s, workers, batch, store)
                print(
                    f"{runs:6.0e} {run_s:5g} s {workers:8} {found['hours']:9.3g} {found['efficiency']:7.2f} "
                    f"{found['scheduler']:7.2f} {found['runner']:7.2f} {found['listing_s']:9.2g} "
                    f"{found['objects']:9.1e} {found['GB']:7.3g}"
                )
    if missed:
        print(f"bench: above the goal: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
