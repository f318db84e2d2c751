"""Work that goes on in the directory of a result: which process does it, how far it is, and how to stop it.

    work.json        the process, while it works
    progress.jsonl   how far work is that has no other log, such as a run: one line now and then

Both disappear when the work ends. What a process that was killed has left there belongs to nobody.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from weirlab.errors import InputError, WeirlabError
from weirlab.files import whole
from weirlab.interruptions import claiming

NOTE = "work.json"
PROGRESS = "progress.jsonl"

_LEAST_S, _MOST_S = 0.2, 0.8
"""Time between two lines of progress: short at first, and always below a second."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A process that works on a result."""

    kind: str
    """`run`, `search` ..."""
    name: str
    pid: int
    born: str
    """When the process was born, by the clock of its kernel: no later process of the same number has it."""
    started: str
    """When the work began: UTC, ISO 8601."""
    command: Sequence[str] = ()

    @property
    def goes_on(self) -> bool:
        """Whether that very process lives on this machine."""
        return self.born == _born(self.pid)


@claiming
def at_work(directory: Path, kind: str, name: str) -> Iterator[None]:
    """Note during the block that this process works in a directory."""
    path = directory / NOTE
    born = _born(os.getpid())
    if born is None:
        yield
        return
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    command = ["weir" if place == 0 else word for place, word in enumerate(sys.argv)]
    work = Work(kind=kind, name=name, pid=os.getpid(), born=born, started=started, command=command)
    with whole(path) as unfinished:
        unfinished.write_text(json.dumps(asdict(work)) + "\n", encoding="utf-8")
    try:
        yield
    finally:
        for each in (path, directory / PROGRESS):
            with suppress(OSError):
                each.unlink()


@claiming
def followed(
    directory: Path, kind: str, name: str, then: Callable[[int, int], None] | None = None
) -> Iterator[ProgressLog]:
    """The same for work that has no log of its own: something to call with how much is done."""
    with at_work(directory, kind, name):
        yield ProgressLog(directory, then)


def work_in(directory: Path) -> Work | None:
    """What the note in a directory says; None where there is none, or nothing that can be read."""
    try:
        content = json.loads((directory / NOTE).read_text(encoding="utf-8"))
        work = Work(**content)
        right = isinstance(work.pid, int) and work.pid > 0 and isinstance(work.born, str)
    except (OSError, ValueError, TypeError):
        return None
    return work if right else None


def left_over(path: Path) -> bool:
    """Whether a file is a note that may be written over: one of this process, or of one that has ended."""
    if path.name not in (NOTE, PROGRESS):
        return False
    work = work_in(path.parent)
    return work is None or work.pid == os.getpid() or not work.goes_on


def stop(directory: Path) -> Work:
    """Ask the process that works in a directory to end, as Ctrl-C does; it keeps what is finished.

    Raises InputError when none works there, or the process with its number is another one by now, and
    WeirlabError when it belongs to another user.
    """
    work = work_in(directory)
    if work is None:
        raise InputError(f"{directory}: nothing works there")
    gone = InputError(f"{directory}: process {work.pid}, which worked there, has ended")
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            # The handle stays that of this process, whoever gets its number meanwhile.
            handle = os.pidfd_open(work.pid)
            try:
                if not work.goes_on:
                    raise gone
                signal.pidfd_send_signal(handle, _signal_for(work.pid))
            finally:
                os.close(handle)
        else:
            if not work.goes_on:
                raise gone
            os.kill(work.pid, _signal_for(work.pid))
    except ProcessLookupError:
        raise gone from None
    except PermissionError as error:
        raise WeirlabError(
            f"{directory}: process {work.pid} belongs to another user; stop it there"
        ) from error
    return work


def _signal_for(pid: int) -> signal.Signals:
    """Ctrl-C; a shell without job control has programs in the background ignore it, but not SIGTERM."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        ignored = int(next(line for line in lines if line.startswith("SigIgn:")).split()[1], 16)
        if ignored >> (signal.SIGINT - 1) & 1:
            return signal.SIGTERM
    return signal.SIGINT


def _born(pid: int) -> str | None:
    """When a living process was born; None of none, and of one that has ended and only waits to be
    forgotten."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
        return None if fields[0] in ("Z", "X") else f"{boot}:{fields[19]}"
    except (OSError, IndexError):
        if sys.platform == "linux":
            return None
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None


class ProgressLog:
    """Writes how far work is into its directory, now and then, and passes it on."""

    def __init__(self, directory: Path, then: Callable[[int, int], None] | None) -> None:
        self._path = directory / PROGRESS
        self._then = then
        self._began = time.monotonic()
        self._next = 0.0
        self._news: list[tuple[int | str | float, ...]] = []
        self._told = 0

    def news(self, replicate: int, rows: Sequence[tuple[int, ...]]) -> None:
        """What a replicate has counted, as `_core.simulate` reports it."""
        self._news += [(replicate, *row) for row in rows]

    def measured(self, what: str, unit: str, series: str, value: float) -> None:
        """A value found just now, which is drawn over time."""
        self._news.append((what, unit, series, round(time.monotonic() - self._began, 3), value))

    def __call__(self, done: int, total: int) -> None:
        """How much is done, and of how much."""
        elapsed = time.monotonic() - self._began
        if total and (elapsed >= self._next or done >= total > self._told):
            self._next = elapsed + min(_MOST_S, max(_LEAST_S, elapsed / 500))
            entry = {"elapsed_s": round(elapsed, 3), "done": done, "total": total, "news": self._news}
            with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self._news, self._told = [], done
        if self._then is not None:
            self._then(done, total)
