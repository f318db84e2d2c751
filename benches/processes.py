"""Runs a program to its end and reports its cost as the kernel counts it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TIMEOUT_S = 1200


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    exit_code: int
    """Negative: the signal that ended it."""
    printed: str
    """Its standard output."""
    complaints: str
    """Its standard error."""
    cpu_s: float
    """User and system time of the process and of its children that have ended."""
    wall_s: float
    peak_rss_bytes: int
    """Never below what this process occupied when it started the other."""


def run_to_end(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, given: str = ""
) -> Ended:
    """Run ``command`` in a process group of its own, with ``given`` as its input; it is killed after
    :data:`TIMEOUT_S`."""
    with contextlib.ExitStack() as files:
        printed, complaints, put_in = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        put_in.write(given)
        put_in.seek(0)
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdin=put_in, stdout=printed, stderr=complaints, process_group=0, env=environment
        )
        timer = threading.Timer(TIMEOUT_S, _kill, [process.pid])
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            _kill(process.pid)
            process.wait()
            raise
        finally:
            timer.cancel()
        wall_s = time.monotonic() - start
        printed.seek(0)
        complaints.seek(0)
        return Ended(
            exit_code=process.returncode,
            printed=printed.read(),
            complaints=complaints.read(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            wall_s=wall_s,
            peak_rss_bytes=usage.ru_maxrss * 1024,
        )


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
