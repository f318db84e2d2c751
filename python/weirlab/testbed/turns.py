"""Live measurements on one machine take turns: two at once would measure each other."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from weirlab.errors import TestbedError

__all__ = ["alone_on_this_machine"]

LOCK = "weirlab-live.lock"
LOCK_DIRECTORY = Path("/run/lock")
LONGEST_WAIT_S = 600.0
LOOK_EVERY_S = 0.02


@contextlib.contextmanager
def alone_on_this_machine(*, longest_wait_s: float = LONGEST_WAIT_S) -> Iterator[None]:
    """Hold the machine's one turn; wait for it where another measurement has it.

    The turn is a lock on a file, which ends with the process that holds it. Processes that do not see the
    same ``/run/lock``, as in different containers, do not know of each other.

    Raises:
        TestbedError: another measurement went on for longer than ``longest_wait_s``.
    """
    import fcntl

    directory = LOCK_DIRECTORY if LOCK_DIRECTORY.is_dir() else Path(tempfile.gettempdir())
    give_up = time.monotonic() + longest_wait_s
    with (directory / LOCK).open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise TestbedError(
                        f"another live measurement on this machine did not end within {longest_wait_s:g} s"
                    ) from None
                time.sleep(LOOK_EVERY_S)
        yield
