"""A function of many items on all CPUs, in processes, with results that do not depend on their number."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import TypeVar

from weirlab.errors import RunFailed
from weirlab.results import usable_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")


def mapped(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    processes: int | None = None,
    at_once: int = 20,
    on_progress: Callable[[int, int], None] | None = None,
    on_results: Callable[[Sequence[Result]], None] | None = None,
) -> list[Result]:
    """``function`` of each item, in their order.

    Args:
        function: Can be pickled: a function of a module, or a `functools.partial` of one. It must not depend
            on what it was called with before.
        processes: None: one per CPU that this process may use.
        at_once: Items that a worker takes at once: few enough that an interruption waits for a moment only.
        on_progress: Called with the items done and all of them.
        on_results: Called in this process with what a worker has done, as it comes.

    Raises RunFailed when a worker dies. An interruption is passed on when the workers have ended.
    """
    processes = processes or usable_cpus()
    chunks = [items[begin : begin + at_once] for begin in range(0, len(items), at_once)]
    results: list[list[Result]] = [[] for _ in chunks]
    done = 0
    for place, chunk_results in _worked(function, chunks, min(processes, len(chunks))):
        results[place] = chunk_results
        done += len(chunk_results)
        if on_results is not None:
            on_results(chunk_results)
        if on_progress is not None:
            on_progress(done, len(items))
    return [result for chunk in results for result in chunk]


def _worked(
    function: Callable[[Item], Result], chunks: Sequence[Sequence[Item]], processes: int
) -> Iterator[tuple[int, list[Result]]]:
    """Places of chunks with their results, as they come."""
    if processes <= 1:
        for place, chunk in enumerate(chunks):
            yield place, _chunk(function, chunk)
        return
    # Spawned workers hold nothing of this process: no threads of the simulator, no locks of a display.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_ignore_interrupts)
    try:
        with _interrupts_held_back():
            places: dict[Future[list[Result]], int] = {
                pool.submit(_chunk, function, chunk): place for place, chunk in enumerate(chunks)
            }
        for future in as_completed(places):
            yield places[future], future.result()
    except BrokenProcessPool as error:
        raise RunFailed("a worker process ended without an answer: is there memory enough?") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _chunk(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C in the block comes after it. Processes that begin in the block never see it: they inherit the
    mask, also while they still import what they need, before they can ignore it by themselves."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # It begins with the first process, and lets signals through when it has begun.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; the one that started the workers ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
