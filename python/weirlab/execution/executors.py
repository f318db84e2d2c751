"""Who works: this process, processes of this machine, or the workers of a Dask scheduler.

An executor is given functions with their argument, of which several may be under way, and says of each how it
ended: with a value, with an error of its own, or lost with its worker. What to do then is not its business.

One file: what holds for one executor holds for all of them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, Protocol, runtime_checkable

from weirlab.errors import InputError, Interrupted
from weirlab.execution.batches import OtherEngine, run_batch
from weirlab.foreign import optional
from weirlab.results import usable_cpus

Work = Callable[[Any], Any]
Tell = Callable[[str], object]


@dataclass(frozen=True)
class Ended:
    """How a piece of work ended."""

    token: int
    value: Any = None
    error: BaseException | None = None
    lost: str = ""
    """Why nobody knows what became of it; empty where it is known."""
    blamed: bool = False
    """Whether it may be the reason itself."""


@runtime_checkable
class Executor(Protocol):
    """Carries work. Closed by whoever opened it."""

    @property
    def workers(self) -> int:
        """How many pieces run at once, as far as is known now."""
        ...

    per_worker: int
    """How many pieces of work it is worth giving each, so that none waits."""
    batch_s: float
    """How long a piece of work should take at most."""

    @property
    def busy(self) -> bool:
        """Whether anything is under way whose end will be reported."""
        ...

    @property
    def dashboard(self) -> str:
        """A page on what it does, or nothing."""
        ...

    def submit(self, function: Work, argument: Any) -> int:
        """Begin some work; its token."""
        ...

    def ended(self, timeout_s: float) -> list[Ended]:
        """What has ended since the last call, or within this time."""
        ...

    def exclude(self, worker: str) -> None:
        """Give a worker nothing any more. Raises InputError when there is no other."""
        ...

    def stop(self) -> None:
        """Have all that runs handed back soon; what has not begun is forgotten."""
        ...

    def close(self) -> None:
        """Let go of all."""
        ...


def opened(on: str | None, *, told: Tell | None = None) -> Executor:
    """The executor that a text names.

        local, local:4              processes of this machine, as many as CPUs, or so many
        tcp://HOST:8786             the workers of a Dask scheduler (also tls://, ws://)
        ssh:HOST,HOST*8             a Dask cluster on these machines, with one process on each or as many as
                                    it says, which is started, and ended at the end

    Raises InputError for any other text, and MissingCapability without Dask.
    """
    check_on(on)
    kind, _, rest = (on or "local").partition(":")
    if kind == "local":
        return Local(int(rest) if rest else usable_cpus())
    if kind == "ssh":
        hosts = [host for host in rest.split(",") if host]
        return OnDask(functools.partial(_ssh_cluster, hosts), told=told)
    return OnDask(str(on), told=told)


def check_on(on: str | None) -> None:
    """Raise InputError for a text that `opened` does not take, without opening anything."""
    kind, colon, rest = (on or "local").partition(":")
    if kind == "local":
        if colon and not (rest.isdecimal() and int(rest)):
            raise InputError(f"--on {on}: write the number of processes, such as local:4")
    elif kind in ("tcp", "tls", "ws", "wss") and rest.startswith("//"):
        host, _, port = rest.removeprefix("//").rpartition(":")
        number = port.rstrip("/")
        if not (host and number.isdecimal() and 0 < int(number) < 2**16):
            raise InputError(f"--on {on}: write the host and the port, such as {kind}://HOST:8786")
    elif kind != "ssh" or not rest.strip(","):
        raise InputError(
            f"--on {on}: write local, local:N, tcp://HOST:8786 (a Dask scheduler) or ssh:HOST,HOST; slurm:N "
            "and kubernetes:N write files that start a study there"
        )


class Local:
    """Processes of this machine. Each is a pool of its own, so that one that dies takes no other with it."""

    per_worker = 2
    batch_s = 10.0
    dashboard = ""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._tokens = itertools.count()
        self._context = multiprocessing.get_context("spawn")
        self._stopping = self._context.Event()
        self._slots: list[_Slot] = []

    @property
    def busy(self) -> bool:
        return any(slot.work for slot in self._slots)

    def submit(self, function: Work, argument: Any) -> int:
        token = next(self._tokens)
        if len(self._slots) < self.workers and all(slot.work for slot in self._slots):
            self._slots.append(_Slot(self._new_pool()))
        slot = min(self._slots, key=lambda slot: len(slot.work))
        slot.work[slot.pool.submit(_carried_out, function, argument)] = token
        return token

    def _new_pool(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_begin, initargs=(self._stopping, os.getpid())
        )
        # A process is started by what is submitted first.
        with _interrupts_held_back(), _one_thread_each(), _without_script():
            pool.submit(int)
        return pool

    def ended(self, timeout_s: float) -> list[Ended]:
        everything = [future for slot in self._slots for future in slot.work]
        if not everything:
            return []
        wait(everything, timeout=timeout_s, return_when=FIRST_COMPLETED)
        found: list[Ended] = []
        for slot in self._slots:
            broken = False
            for future in [future for future in slot.work if future.done()]:
                token = slot.work.pop(future)
                if future.cancelled():
                    continue
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    found.append(Ended(token, lost="its process ended", blamed=not broken))
                    broken = True
                elif error is not None:
                    found.append(Ended(token, error=error))
                else:
                    found.append(Ended(token, value=future.result()))
            if broken:
                found += [Ended(token, lost="its process ended") for token in slot.work.values()]
                slot.work.clear()
                slot.pool.shutdown(wait=False)
                if not self._stopping.is_set():
                    slot.pool = self._new_pool()
        return found

    def exclude(self, worker: str) -> None:
        raise InputError(f"{worker}: has other sources than this process: the package changed meanwhile")

    def stop(self) -> None:
        # No future is cancelled here: a pool whose process ends then fails with a traceback.
        self._stopping.set()

    def close(self) -> None:
        self._stopping.set()
        for slot in self._slots:
            slot.pool.shutdown(cancel_futures=True)
        self._slots = []


@dataclass
class _Slot:
    """One process, and what it was given, in turn."""

    pool: ProcessPoolExecutor
    work: dict[Future[Any], int]

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.pool, self.work = pool, {}


_stopping: Any = None
"""In a process of `Local`: set when all work is to be handed back."""


def _begin(stopping: Any, parent: int) -> None:
    """What a process of `Local` does first. It ends with the one that started it."""
    global _stopping
    _stopping = stopping
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if hasattr(os, "getppid") and os.name == "posix":
        threading.Thread(target=look, daemon=True).start()


def _carried_out(function: Work, argument: Any) -> Any:
    """In a process of `Local`."""
    _beat(0.0)
    if function is run_batch:
        return run_batch(argument, beat=_beat)
    return function(argument)


def _beat(_: float) -> None:
    if _stopping is not None and _stopping.is_set():
        raise Interrupted("stopped")


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that begin in the block have one thread of Polars: on small tables more of them only get in
    each other's way."""
    before = os.environ.get("POLARS_MAX_THREADS")
    os.environ["POLARS_MAX_THREADS"] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["POLARS_MAX_THREADS"]


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Processes that begin in the block do not run the script of this one again, as they else do before all
    other: a script whose calls are not below `if __name__ == "__main__"` would start its study in each."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C in the block comes after it. Processes that begin in the block never see it: they inherit the
    mask, also while they still import what they need, before they can ignore it by themselves."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it lets signals through when it has begun
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def dask(module: str) -> Any:
    """A module of Dask. Raises MissingCapability, which says how to get it."""
    return optional(module, who="this needs", package=f"Dask ({module})", extra="cluster")


class OnDask:
    """The workers of a Dask scheduler, which may go away and come back."""

    per_worker = 3
    batch_s = 20.0
    patience_s = 600.0
    """How long a scheduler that is lost is waited for."""

    def __init__(self, where: str | Callable[[], Any], *, told: Tell | None = None) -> None:
        """Connect. `where` is the address of a scheduler, or starts a cluster.

        Raises InputError when nothing answers there within half a minute.
        """
        self._distributed = dask("distributed")
        # What happens to a scheduler is said in sentences, not in its tracebacks.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._cluster: Any = None if isinstance(where, str) else where()
        self._address = str(where if self._cluster is None else self._cluster.scheduler_address)
        self._told = told or str
        self._tokens = itertools.count()
        self._excluded: set[str] = set()
        self._futures: dict[int, Any] = {}
        self._news: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._gone: queue.SimpleQueue[str] = queue.SimpleQueue()
        """What is to be told of workers that are gone."""
        self._name = f"weirlab-{os.getpid()}-{id(self)}"
        try:
            self._client = self._connected(30.0)
        except OSError as error:
            raise InputError(f"--on {self._address}: no Dask scheduler answers there ({error})") from error

    def _connected(self, timeout_s: float) -> Any:
        client = self._distributed.Client(self._address, timeout=timeout_s, set_as_default=False)
        client.subscribe_topic("all", self._hear)
        return client

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """In the thread of the client, of whatever the scheduler does. It gives what a worker that is gone
        had to others, and says so here alone."""
        what = event[1]
        if what.get("action") == "remove-worker":
            had = [*what.get("processing-tasks", ()), *what.get("lost-computed-tasks", ())]
            many = sum(str(key).startswith(f"{self._name}-") for key in had)
            again = f"; {many} of its batches start again" if many else ""
            if many or not what.get("expected", False):
                self._gone.put(f"worker {what.get('worker')} is gone{again}")

    @property
    def busy(self) -> bool:
        """Whether anything is under way whose end will be reported."""
        return bool(self._futures)

    @property
    def dashboard(self) -> str:
        """Dask's page on its workers. It is there without Bokeh, too, which the page `/status` needs."""
        with contextlib.suppress(OSError, KeyError, ValueError):
            if "dashboard" in self._client.scheduler_info(n_workers=0)["services"]:
                status = str(self._client.dashboard_link or "")
                return status and f"{status.removesuffix('/status')}/info/main/workers.html"
        return ""

    @property
    def workers(self) -> int:
        """Threads of all workers that may work."""
        return sum(self._threads().values())

    def _threads(self) -> dict[str, int]:
        with contextlib.suppress(OSError, KeyError, ValueError):
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            return {name: int(one["nthreads"]) for name, one in found.items() if name not in self._excluded}
        return {}

    def submit(self, function: Work, argument: Any) -> int:
        token = next(self._tokens)
        chosen = sorted(self._threads()) if self._excluded else None
        future = self._client.submit(
            _on_worker,
            function,
            argument,
            key=f"{self._name}-{token}",
            pure=False,
            workers=chosen,
            allow_other_workers=False,
        )
        self._futures[token] = future
        future.add_done_callback(lambda _, token=token: self._news.put(token))
        return token

    def ended(self, timeout_s: float) -> list[Ended]:
        tokens: list[int] = []
        with contextlib.suppress(queue.Empty):
            tokens.append(self._news.get(timeout=timeout_s))
            while True:
                tokens.append(self._news.get_nowait())
        while not self._gone.empty():
            self._told(self._gone.get())
        if self._client.status not in ("running",):
            return self._again()
        found = []
        for token in tokens:
            future = self._futures.pop(token, None)
            if future is None:
                continue
            if future.status in ("cancelled", "lost", "pending"):
                self._futures[token] = future
                return self._again()
            found.append(self._how(token, future))
        return found

    def _how(self, token: int, future: Any) -> Ended:
        if future.status == "finished":
            try:
                return Ended(token, value=future.result(timeout=60))
            except Exception as error:
                return Ended(token, lost=f"its answer was lost ({type(error).__name__})")
        fault = future.exception(timeout=60)
        if type(fault).__name__ == "KilledWorker":
            return Ended(token, lost="its workers ended", blamed=True)
        return Ended(token, error=fault)

    def _again(self) -> list[Ended]:
        """Connect to a scheduler that has come back; nothing is known of what it was given before."""
        lost = [Ended(token, lost="the scheduler was lost") for token in self._futures]
        self._told(f"the scheduler at {self._address} is lost; waiting for it")
        futures, self._futures = self._futures, {}
        with contextlib.suppress(Exception):
            self._client.close(timeout=1)
        del futures
        self._news = queue.SimpleQueue()
        give_up = time.monotonic() + self.patience_s
        while True:
            try:
                self._client = self._connected(10.0)
                break
            except OSError as error:
                if time.monotonic() > give_up:
                    raise InputError(
                        f"--on {self._address}: the scheduler did not come back within "
                        f"{self.patience_s / 60:.0f} min; start it, and run the same command again"
                    ) from error
                time.sleep(0.5)
        self._told(f"connected to {self._address} again")
        return lost

    def exclude(self, worker: str) -> None:
        self._excluded.add(worker)
        if not self._threads():
            raise InputError(
                f"--on {self._address}: no worker has the sources of this process; install the same weirlab "
                f"on all machines ({worker} has another one)"
            )

    def stop(self) -> None:
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._futures.values()), force=False)
        self._futures = {}

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close()


def _on_worker(function: Work, argument: Any) -> Any:
    """In a worker of Dask."""
    try:
        return function(argument)
    except OtherEngine as error:
        raise OtherEngine(error.asked, error.found, dask("distributed").get_worker().address) from None


_IDLE_S = 300.0
"""A cluster over SSH that has had nothing to do for so long has lost its runner, and ends by itself."""


def _ssh_cluster(hosts: list[str]) -> Any:
    """A scheduler on the first host, and worker processes on every one."""
    dask("asyncssh")
    logging.getLogger("distributed.deploy.ssh").setLevel(logging.WARNING)
    names: list[str] = []
    for host in hosts:
        name, star, many = host.partition("*")
        if star and not (many.isdecimal() and int(many)):
            raise InputError(f"--on ssh:{host}: write the number of processes, such as {name}*8")
        names += [name] * (int(many) if star else 1)
    try:
        return dask("distributed").SSHCluster(
            [names[0], *names],
            scheduler_options={"idle_timeout": f"{_IDLE_S:g} s"},
            worker_options={"nthreads": 1},
        )
    except (OSError, RuntimeError) as error:
        asked = ",".join(hosts)
        raise InputError(
            f"--on ssh:{asked}: {error}; 'ssh HOST' must work without a question, and have the same Python"
        ) from error
