"""Programs that end with the process that started them, however that ends.

A process that is killed cannot end what it has started. A small shell beside it can: it waits until the pipe
between the two is closed, which the kernel does for the dead, and then kills the process group that it was
told of last. Unlike a signal at the death of a parent (Linux, PR_SET_PDEATHSIG), which reaches one child and
is bound to the thread that made it, that ends the whole group, on every POSIX system.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import weakref
from collections.abc import Callable, Iterator

_SCRIPT = """
group=
while IFS= read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group"
"""


class Watchdog:
    """Kills a process group when this process is gone. Costs a shell, which is started when it is needed
    first. For one group at a time."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None

    @contextlib.contextmanager
    def watching(self, group: int) -> Iterator[None]:
        """During the block the process group ends with this process."""
        self._tell(group)
        try:
            yield
        finally:
            self._tell(None)

    def start(self) -> None:
        """Start the shell now, so that a group can be told of without delay."""
        if not hasattr(os, "killpg") or (self._shell is not None and self._shell.poll() is None):
            return
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # What ends the group of this process, Ctrl-C or a terminal that is closed, must not end it.
            start_new_session=True,
        )
        self._end = weakref.finalize(self, _end, self._shell)

    def close(self) -> None:
        """End the shell. May be called twice."""
        self._end()
        self._shell = None

    def _tell(self, group: int | None) -> None:
        self.start()
        if self._shell is None:
            return
        assert self._shell.stdin is not None
        with contextlib.suppress(OSError):
            self._shell.stdin.write(b"\n" if group is None else b"%d\n" % group)
            self._shell.stdin.flush()


def _end(shell: subprocess.Popen[bytes]) -> None:
    assert shell.stdin is not None
    with contextlib.suppress(OSError):
        shell.stdin.close()
    shell.wait()
