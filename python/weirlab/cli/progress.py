"""How far the work has come: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weirlab.cli.shared import stderr_console, tell

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from weirlab.runs import Estimate


_LINE_EVERY_S = 10.0
_LONG_S = 10.0
"""What takes longer is said before."""
_VERY_LONG_S = 3600.0
"""What takes longer is asked for at a terminal."""


def judge_in(directory: Path, progress: Meter) -> Callable[[Estimate], None]:
    """What says how long work will take, refuses what the disk cannot hold, and asks before hours of it."""

    def judge(estimate: Estimate) -> None:
        from weirlab.errors import InputError, Interrupted
        from weirlab.runs import size_text

        free = shutil.disk_usage(directory).free
        if estimate.disk_bytes > free:
            raise InputError(
                f"{estimate}, but {size_text(free)} are free in {directory}; run fewer replicates, record "
                "less, or name another place with --out"
            )
        most = estimate.most or estimate
        if most.seconds <= _LONG_S:
            return
        progress.pause()
        tell(f"weir: {estimate}; Ctrl-C keeps what has ended")
        asks = most.seconds > _VERY_LONG_S and sys.stdin.isatty() and sys.stderr.isatty()
        if asks and not typer.confirm("Go on?", err=True):
            raise Interrupted("not started")
        progress.go_on()

    return judge


@contextmanager
def progress_bar(what: str, detail: str = "") -> Iterator[Meter]:
    """Something to call with how much is done, of how much."""
    console = stderr_console()
    if not console.is_terminal:
        yield Meter(what)
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
        yield _Bar(bar, bar.add_task(what, total=None, detail=detail))


class Meter:
    """A line on stderr every ten seconds, if there is anything new to say."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + _LINE_EVERY_S
        self._told = ""
        self._detail = ""

    def detail(self, state: object) -> None:
        """How far it is, in words."""
        self._detail = f", {state}"

    def __call__(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        now = time.monotonic()
        if now >= self._next and total:
            self._next = now + _LINE_EVERY_S
            line = f"{self._what}: {100 * done / total:.0f} %{self._detail}"
            if line != self._told:
                self._told = line
                tell(line)

    def pause(self) -> None:
        """Leave the terminal to a question."""

    def go_on(self) -> None:
        """It was answered."""


class _Bar(Meter):
    """A bar at the foot of a terminal."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def pause(self) -> None:
        self._bar.stop()

    def go_on(self) -> None:
        self._bar.start()

    def detail(self, state: object) -> None:
        self._bar.update(self._task, detail=str(state))

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)
