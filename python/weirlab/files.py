"""Files that appear whole or not at all, whose faults name them, and that one process at a time writes."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Self
from weakref import finalize

from weirlab.errors import InputError, WeirlabError

try:
    import fcntl
except ImportError:  # Windows: two processes in one result are then not kept apart
    fcntl = None  # type: ignore[assignment]


LOCK_PATIENCE_S = 1.0
"""How long a lock is waited for: processes that are being ended let go of theirs a little later."""


def ordinary(path: Path, most_bytes: int) -> os.stat_result:
    """What the system knows of a file that a scenario names.

    Raises InputError when there is none, it cannot be read, holds more than `most_bytes`, or is a device, a
    pipe or a directory, which might never end.
    """
    try:
        if not path.is_file():
            raise InputError(
                f"{path}: {'not an ordinary file' if path.exists() else 'there is no such file'}"
            )
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if status.st_size > most_bytes:
        raise InputError(f"{path}: holds more than {most_bytes} bytes")
    return status


def named_text(path: Path, most_bytes: int) -> str:
    """The ASCII text of a file that a scenario names; other characters become `?` signs of their own.

    Raises InputError as `ordinary`.
    """
    ordinary(path, most_bytes)
    try:
        with path.open("rb") as file:
            return file.read(most_bytes).decode("ascii", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


class Closing(ABC):
    """What a `with` block closes at its end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of what it holds."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises WeirlabError with the name of the file when the block cannot write it, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise WeirlabError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to, which becomes `path` at the end of the block, and disappears when
    the block fails. Raises WeirlabError when it cannot be written."""
    unfinished = path.with_name(path.name + ".part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield unfinished
            unfinished.replace(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise


def locked(file: int, message: str) -> None:
    """Keep other processes from an open file, given by its descriptor, until it is closed here and in every
    process that has inherited it. Raises InputError with `message`, and who holds it where that can be seen,
    when another process does not let go of it within a second."""
    if fcntl is None:
        return
    give_up = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > give_up:
                raise InputError(message + _held_by(file)) from error
            time.sleep(LOCK_PATIENCE_S / 20)


_held: set[int] = set()


def hold(file: int) -> None:
    """Let programs that are started for the work of a locked file hold its lock as well: see `held_locks`."""
    if fcntl is not None:
        _held.add(file)


def let_go(file: int) -> None:
    """The file is about to be closed."""
    _held.discard(file)


def held_locks() -> tuple[int, ...]:
    """Descriptors to hand on to a program that must not run together with a second one for the same work,
    also when this process is gone: while it lives, nobody else gets these locks."""
    return tuple(sorted(_held))


def _held_by(file: int) -> str:
    """Which other processes have the file open, and how to end them; empty where that cannot be seen."""
    wanted = os.fstat(file)
    found = {}
    for process in Path("/proc").glob("[1-9]*"):
        with suppress(OSError):
            for link in (process / "fd").iterdir():
                with suppress(OSError):
                    other = link.stat()
                    if (other.st_dev, other.st_ino) == (wanted.st_dev, wanted.st_ino):
                        name = (process / "comm").read_text(errors="replace").strip()
                        found[int(process.name)] = "".join(c if c.isprintable() else "?" for c in name)
    found.pop(os.getpid(), None)
    if not found:
        return ""
    who = ", ".join(f"{name} (process {number})" for number, name in sorted(found.items()))
    return (
        f": {who}; wait until it ends, or end it:  kill {' '.join(str(number) for number in sorted(found))}"
    )


@contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    """Keep other processes from going on with the same result during the block."""
    if fcntl is None:
        yield
        return
    file = os.open(directory, os.O_RDONLY)
    try:
        locked(file, f"{directory}: another process is working in this directory")
        yield
    finally:
        os.close(file)


_SCRATCH = "weirlab-scratch-"


class Scratch:
    """A directory that is removed with this object, or when Python ends. What processes that were killed have
    left is removed by the next that makes one: nobody holds the lock of it any longer."""

    def __init__(self) -> None:
        for left in Path(gettempdir()).glob(f"{_SCRATCH}*") if fcntl is not None else ():
            with suppress(OSError):
                file = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    if os.fstat(file).st_uid == os.getuid():
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        rmtree(left, ignore_errors=True)
                finally:
                    os.close(file)
        made = Path(mkdtemp(prefix="weirlab-"))
        lock = None
        if fcntl is not None:
            lock = os.open(made, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks: then it keeps its name
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Only now others may look whether it is locked.
                made = made.rename(made.with_name(made.name.replace("weirlab-", _SCRATCH, 1)))
        self.path = made
        self.close = finalize(self, _remove, made, lock, os.getpid())
        """Remove it now."""


def _remove(path: Path, lock: int | None, owner: int) -> None:
    if os.getpid() == owner:  # and not a process that was forked from it
        rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)
