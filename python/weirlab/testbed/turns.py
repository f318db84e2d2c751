"""Live measurements of one user on one machine take turns: two at once would measure each other."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from weirlab.errors import TestbedError

LOCK = "live.lock"
LONGEST_WAIT_S = 600.0
LOOK_EVERY_S = 0.02


def runtime_directory() -> Path:
    """Where this user's programs keep what lives as long as they do: `XDG_RUNTIME_DIR`, for root without one
    `/run`, else a directory of the user's own among temporary files.
    """
    found = os.environ.get("XDG_RUNTIME_DIR")
    if found and Path(found).is_dir() and Path(found).stat().st_uid == os.geteuid():
        return Path(found)
    if os.geteuid() == 0 and Path("/run").is_dir():
        return Path("/run")
    return Path(tempfile.gettempdir()) / f"weirlab-{os.geteuid()}"


@contextlib.contextmanager
def alone_on_this_machine(*, longest_wait_s: float = LONGEST_WAIT_S) -> Iterator[None]:
    """Hold this user's one turn; wait for it where another measurement has it.

    The turn is a lock on a file, which ends with the process that holds it. It lies where this user alone can
    write, so that nobody else can hold it, or have something else opened in its place. Measurements of
    different users, and in different containers, do not know of each other.

    Raises:
        TestbedError: another measurement went on for longer than ``longest_wait_s``, or the place of the lock
            is not this user's own.
    """
    import fcntl

    give_up = time.monotonic() + longest_wait_s
    with _opened_lock() as lock:
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


@contextlib.contextmanager
def _opened_lock() -> Iterator[int]:
    """The file of the lock, opened in a directory that is seen to be this user's own."""
    place = runtime_directory() / "weirlab"
    try:
        with contextlib.ExitStack() as stack:
            parent = _own_directory(place.parent, None, stack, private=False)
            directory = _own_directory(Path(place.name), parent, stack, private=True)
            lock = _opened(LOCK, os.O_RDWR | os.O_CREAT, directory, stack)
            yield lock
    except _NotOwnError as error:
        raise TestbedError(f"{place}: {error}; remove it, or set XDG_RUNTIME_DIR") from None


class _NotOwnError(Exception):
    """A directory is not what this user would have made."""


def _own_directory(path: Path, parent: int | None, stack: contextlib.ExitStack, *, private: bool) -> int:
    """A directory, made where it is missing, opened without following a link.

    Raises _NotOwnError for a link, for what belongs to somebody else, and for what others may write into.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=parent)
    descriptor = _opened(path, os.O_RDONLY | os.O_DIRECTORY, parent, stack)
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise _NotOwnError(f"belongs to another user ({found.st_uid})")
    if stat.S_IMODE(found.st_mode) & (0o077 if private else 0o022):
        raise _NotOwnError(f"others may use it (mode {stat.S_IMODE(found.st_mode):o})")
    return descriptor


def _opened(path: str | Path, flags: int, parent: int | None, stack: contextlib.ExitStack) -> int:
    """A descriptor of a file that is no link. Raises _NotOwnError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent)
    except OSError as error:
        raise _NotOwnError(f"the lock of live measurements cannot lie there: {error.strerror}") from error
    stack.callback(os.close, descriptor)
    return descriptor
