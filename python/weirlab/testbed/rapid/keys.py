"""The secret that both ends of a session hold, in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from weirlab.errors import InputError

LEAST_BYTES, MOST_BYTES = 16, 1024
"""Length of a secret."""
_RANDOM_BYTES = 32


def make_key(path: Path) -> None:
    """Write a new secret of 256 random bits, as 64 hexadecimal digits, to a new file.

    Raises InputError when the file exists or cannot be written.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{path}: exists already; name a new file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(_RANDOM_BYTES) + "\n")


def read_key(path: Path) -> bytes:
    """The secret of a file, without white space around it. Raises InputError when it is none, or others can
    read it.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(MOST_BYTES + 2)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}: 'weir rapid key {path}' makes a key") from error
    if mode & 0o077:
        raise InputError(f"{path}: others can read this key: run 'chmod 600 {path}'")
    secret = text.strip()
    if not LEAST_BYTES <= len(secret) <= MOST_BYTES:
        raise InputError(
            f"{path}: a key has {LEAST_BYTES} to {MOST_BYTES} bytes (got {len(secret)}): "
            "'weir rapid key FILE' makes one"
        )
    return secret
