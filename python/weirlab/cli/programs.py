"""Programs at the ends of an emulated path: started as who called, and ended with all that they started."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.cli.shared import tell
from weirlab.errors import InputError

if TYPE_CHECKING:
    from weirlab.testbed.namespaces import Namespace
    from weirlab.testbed.path import EmulatedPath


_GRACE_S = 5.0
"""How long a command may take to end after it was asked to."""


def default_shell() -> list[str]:
    """The shell of who called."""
    from weirlab.privileges import invoking_user

    user = invoking_user()
    return [os.environ.get("SHELL", "/bin/sh") if user is None else user.shell]


def words_of(far: str) -> list[str]:
    """The command of --far."""
    try:
        words = shlex.split(far)
    except ValueError as error:
        raise InputError(f"--far: {str(error)[0].lower()}{str(error)[1:]} (got {far!r})") from error
    if not words:
        raise InputError("--far: write a command, such as 'iperf3 -s' (got nothing)")
    return words


@dataclass(frozen=True)
class Ends:
    """What runs at both ends of a path."""

    near: Sequence[str]
    """Decides about the exit code."""
    far: Sequence[str]
    """Ends with it; empty: nothing."""
    longest_s: float | None
    """After which time it is ended; None: never."""
    ipv6: bool
    """Whether the ends have addresses of IPv6, too."""
    resolver: str | None = None
    """Address of the one that both find at /etc/resolv.conf; None: what this machine has."""


def run_at_ends(path: EmulatedPath, ends: Ends) -> int:
    """The exit code of the command at the near end; 124 where it took too long."""
    from weirlab.privileges import invoking_user

    user = invoking_user()
    environment = dict(os.environ) if user is None else user.environment(os.environ)
    environment |= {"WEIR_NEAR": path.near_address, "WEIR_FAR": path.far_address}
    if ends.ipv6:
        environment |= {"WEIR_NEAR6": path.near_address6, "WEIR_FAR6": path.far_address6}
    with contextlib.ExitStack() as stack:
        if ends.far:
            started = _started(path.far, ends.far, environment, session=True, resolver=ends.resolver)
            far = stack.enter_context(started)
            stack.callback(lambda: _tell_of_end(ends.far, far.poll()))  # before it is ended
        # A shell keeps the terminal, whose Ctrl-C is for what runs in it.
        terminal = sys.stdin.isatty()
        if terminal:
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            stack.callback(signal.signal, signal.SIGINT, before)
        near = _started(path.near, ends.near, environment, session=not terminal, resolver=ends.resolver)
        child = stack.enter_context(near)
        try:
            code = child.wait(ends.longest_s)
        except subprocess.TimeoutExpired:
            tell(f"weir: ended the command after {ends.longest_s:g} s")
            return 124
        return code if code >= 0 else 128 - code


def _tell_of_end(command: Sequence[str], code: int | None) -> None:
    """Say that the far end failed by itself, where it did."""
    if not code:
        return
    how = f"ended with exit code {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"
    tell(f"weir: --far: '{shlex.join(command)}' {how} before the command at the near end did")


@contextlib.contextmanager
def _started(
    namespace: Namespace,
    command: Sequence[str],
    environment: dict[str, str],
    *,
    session: bool,
    resolver: str | None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a namespace, as whoever called this one, ended with everything that it started in its
    session.
    """
    from weirlab.privileges import invoking_user
    from weirlab.testbed.way_out import show_resolver

    user = invoking_user()

    def start() -> subprocess.Popen[bytes]:
        if resolver is not None:
            show_resolver(resolver)
        as_user = {} if user is None else user.popen
        return subprocess.Popen(command, env=environment, start_new_session=session, **as_user)

    try:
        child = namespace.inside(start)
    except OSError as error:
        raise InputError(f"cannot run '{command[0]}': {error.strerror}") from error
    with _ended_without_us(-child.pid if session else child.pid):
        try:
            yield child
        finally:
            for end in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    if session:
                        os.killpg(child.pid, end)
                    elif child.poll() is None:
                        child.send_signal(end)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_GRACE_S)
                    break


@contextlib.contextmanager
def _ended_without_us(target: int) -> Iterator[None]:
    """Sees to it that a process, or the group of a negative number, ends when this process is killed.

    The kernel can tell a child of its parent's death, but means the thread that started it, which is gone by
    then, and does not tell the child's children. So a shell waits at a pipe that only we hold open.
    """
    words = f"cat; kill -s TERM -- {target}; sleep {_GRACE_S:g}; kill -s KILL -- {target}"
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        ["/bin/sh", "-c", words],
        stdin=subprocess.PIPE,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
    ) as watcher:
        try:
            yield
        finally:
            watcher.kill()
