"""Files that appear whole or not at all, whose faults name them, and that one process at a time writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weirlab.errors import InputError, WeirlabError

try:
    import fcntl
except ImportError:  # Windows: two processes in one result are then not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked", "locked_directory", "whole", "writing"]


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
    """Keep other processes from an open file, given by its descriptor, until it is closed. Raises InputError
    with `message` when another one holds it."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(message) from error


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
