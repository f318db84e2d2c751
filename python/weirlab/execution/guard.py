"""What keeps a run from taking more time or memory than it may.

A simulation is asked about every 50 ms, and ended like any other failure. What does not answer (a loop in
Python, a program that waits) ends with its process, after a note on why was left where the next one finds it.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

ENDED_ITSELF = 75
"""Exit code of a process that a run would not leave alone."""
_GRACE_S = 2.0
"""How long after its time a run may take until its process ends; and again as long until it ends without a
note, as when nothing in Python goes on."""
_LOOK_S = 0.05


class LimitReached(Exception):
    """A run needed more than it may; `status` is that of its row."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard:
    """Watches the runs of a batch."""

    def __init__(self, seconds: float | None, memory_bytes: int | None, *, own_process: bool) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._own_process = own_process
        self._process = psutil.Process()

    @contextmanager
    def around(
        self, watch: Callable[[int, int], None], ending: Callable[[str, str], None]
    ) -> Iterator[Callable[[int, int], None]]:
        """Watch the block; gives what the work in it is to call now and then."""
        began = time.monotonic()

        def asked(done: int, total: int) -> None:
            watch(done, total)
            if fault := self._fault(began):
                raise LimitReached(*fault)

        if not self._own_process or (self._seconds is None and self._memory_bytes is None):
            yield asked
            return
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(began, over, ending), daemon=True)
        watcher.start()
        if self._seconds is not None:
            faulthandler.dump_traceback_later(self._seconds + 2 * _GRACE_S, exit=True, file=2)
        try:
            yield asked
        finally:
            over.set()
            if self._seconds is not None:
                faulthandler.cancel_dump_traceback_later()
            watcher.join()

    def _fault(self, began: float, grace: float = 0.0) -> tuple[str, str] | None:
        if self._seconds is not None and time.monotonic() - began > self._seconds + grace:
            return "timed-out", f"took longer than {self._seconds:g} s"
        if self._memory_bytes is not None:
            used = self._process.memory_info().rss
            if used > self._memory_bytes * (1.0 + grace / 20):
                return (
                    "memory",
                    f"needed {used / 1e6:.0f} MB of memory, and {self._memory_bytes / 1e6:.0f} MB is allowed",
                )
        return None

    def _watch(self, began: float, over: threading.Event, ending: Callable[[str, str], None]) -> None:
        while not over.wait(_LOOK_S):
            fault = self._fault(began, _GRACE_S)
            if fault is None:
                continue
            try:
                ending(*fault)
            finally:
                os._exit(ENDED_ITSELF)
