"""A function of many items, by any executor, with results that do not depend on who worked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from weirlab.errors import RunFailed
from weirlab.execution.calls import kept
from weirlab.execution.executors import Executor, Local, opened
from weirlab.execution.runner import DEATHS
from weirlab.results import usable_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")


def mapped(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    processes: int | None = None,
    on: str | Executor | None = None,
    store: str | Path | None = None,
    at_once: int = 20,
    on_progress: Callable[[int, int], None] | None = None,
    on_results: Callable[[Sequence[Result]], None] | None = None,
) -> list[Result]:
    """``function`` of each item, in their order.

    Args:
        function: Can be pickled: a function of a module, or a `functools.partial` of one. It must not depend
            on what it was called with before.
        processes: None: one per CPU that this process may use.
        on: Who works, as in `weirlab.execution.opened`. Default: processes of this machine.
        store: A path or URL of results that are shared: what it has is not made again, and what is made is
            kept there. Default: none.
        at_once: Items that a worker takes at once: few enough that an interruption waits for a moment only.
        on_progress: Called with the items done and all of them.
        on_results: Called in this process with what a worker has done, as it comes.

    A worker that dies is replaced, and its items are given to another one. Raises RunFailed when they end
    three workers. An interruption is passed on when the workers have ended.
    """
    if store is not None:
        found = kept(function, items, store, processes=processes, on=on, on_progress=on_progress)
        if on_results is not None:
            on_results(found)
        return found
    chunks = [items[begin : begin + at_once] for begin in range(0, len(items), at_once)]
    results: list[list[Result]] = [[] for _ in chunks]
    done = 0
    for place, chunk_results in _worked(function, chunks, processes or usable_cpus(), on):
        results[place] = chunk_results
        done += len(chunk_results)
        if on_results is not None:
            on_results(chunk_results)
        if on_progress is not None:
            on_progress(done, len(items))
    return [result for chunk in results for result in chunk]


def _worked(
    function: Callable[[Item], Result],
    chunks: Sequence[Sequence[Item]],
    processes: int,
    on: str | Executor | None,
) -> Iterator[tuple[int, list[Result]]]:
    """Places of chunks with their results, as they come."""
    if on is None and min(processes, len(chunks)) <= 1:
        for place, chunk in enumerate(chunks):
            yield place, _chunk(function, chunk)
        return
    executor: Executor = Local(min(processes, len(chunks))) if on is None else _opened(on)
    try:
        yield from _carried(executor, partial(_chunk, function), chunks)
    except BaseException:
        executor.stop()
        raise
    finally:
        if not isinstance(on, Executor):
            executor.close()


def _opened(on: str | Executor) -> Executor:
    return opened(on) if isinstance(on, str) else on


def _carried(
    executor: Executor, function: Callable[[Sequence[Item]], list[Result]], chunks: Sequence[Sequence[Item]]
) -> Iterator[tuple[int, list[Result]]]:
    """Keep the executor busy with the chunks."""
    waiting = list(range(len(chunks)))[::-1]
    deaths = [0] * len(chunks)
    under_way: dict[int, int] = {}
    while waiting or under_way:
        while waiting and len(under_way) < max(1, executor.workers) * executor.per_worker:
            place = waiting.pop()
            under_way[executor.submit(function, chunks[place])] = place
        for ended in executor.ended(0.2):
            place = under_way.pop(ended.token)
            if ended.error is not None:
                raise ended.error
            if not ended.lost:
                yield place, ended.value
                continue
            deaths[place] += ended.blamed
            if deaths[place] >= DEATHS:
                raise RunFailed(
                    f"a worker process ended without an answer, {DEATHS} times: is there memory enough?"
                )
            waiting.append(place)


def _chunk(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]
