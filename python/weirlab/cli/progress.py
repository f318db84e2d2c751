"""How far the work has come: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weirlab.cli.frame import stderr_console, tell

__all__ = ["progress_bar"]

_LINE_EVERY_S = 10.0


@contextmanager
def progress_bar(what: str, detail: str = "") -> Iterator[Callable[[int, int], None]]:
    """Something to call with how much is done, of how much."""
    console = stderr_console()
    if not console.is_terminal:
        yield _Lines(what)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None, detail=detail)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


class _Lines:
    """A line on stderr every ten seconds, if there is anything new to say."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + _LINE_EVERY_S
        self._told = ""

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next and total:
            self._next = now + _LINE_EVERY_S
            line = f"{self._what}: {100 * done / total:.0f} %"
            if line != self._told:
                self._told = line
                tell(line)
