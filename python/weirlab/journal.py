"""Journals: files of JSON lines that are only ever appended to, by one process at a time.

The first line says what the file holds and to which work it belongs; each further line is one entry, on disk
before `append` returns:

    {"weirlab_trials": 1, "weirlab": "0.1.0", "search": {...}}
    {"trial": {...}}

A last line without its line feed was cut short by a crash and does not count. Every other line must be right:
what is damaged, belongs to other work or is no journal at all is refused, and stays as it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from weirlab._core import version
from weirlab.errors import InputError, WeirlabError
from weirlab.files import Closing, hold, let_go, locked, writing

Entry = TypeVar("Entry")
Parse = Callable[[Mapping[str, object]], Entry]
"""Makes an entry of its JSON object. May raise what `_FAULTS` holds when it is none."""

_FAULTS = (ValueError, TypeError, KeyError, AttributeError, RecursionError, WeirlabError)


@dataclass(frozen=True)
class JournalKind:
    """What a journal holds."""

    key: str
    """Of the first line; its value is the version."""
    version: int
    """A reader refuses any other."""
    noun: str
    """What the file is, in words: "trial log"."""
    work: str
    """What it is written by: "search"."""
    filled: Callable[[Mapping[str, object]], Mapping[str, object]] = lambda about: about
    """What a first line says, which an earlier version may have written, with the defaults of what is new
    since. May raise what `_FAULTS` holds."""


def read_journal(
    path: Path, kind: JournalKind, parse: Parse[Entry], about: Mapping[str, object] | None = None
) -> list[Entry]:
    """The entries of a journal that may still be growing. Raises InputError when it is none, is damaged, or
    does not have what `about` says in its first line."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    header, lines, _ = _lines(path, kind, content)
    if header is None:
        fault = f"not a {kind.noun} of weirlab" if content else f"empty, not a {kind.noun}"
        raise InputError(f"{path}: {fault}")
    if about is not None and (other := _other_value(kind, header, about)):
        where, then, now = other
        raise InputError(
            f"{path}: does not match manifest.json and scenario.yaml next to it: {where} was {then} at "
            f"its start, and is {now} there"
        )
    return _entries(path, kind, parse, lines)


class Journal(Closing, Generic[Entry]):
    """A journal that is open for appending. Use it in a `with` statement."""

    def __init__(
        self,
        path: Path,
        kind: JournalKind,
        about: Mapping[str, object],
        parse: Parse[Entry],
        *,
        reuse_empty: bool = False,
    ) -> None:
        """Open the journal of a work, or begin it. `entries` then holds what was written before.

        With `reuse_empty` a journal of another work that has no entry yet is begun anew for this one.

        `about` is what must not change between two sittings, as JSON values. Raises InputError when the file
        is not a journal of this work, is damaged before its end, is being written by another process, or has
        lost its first line although a manifest beside it says that the work was started. It is not changed
        then.
        """
        self.path = path
        self.kind = kind
        self.entries: Sequence[Entry] = []
        begin = _line({kind.key: kind.version, "weirlab": version(), **about})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what could not be written is not tried again when the file is closed.
            self._file = io.FileIO(path, "a+")
        except OSError as error:
            raise InputError(f"{path}: the {kind.noun} cannot be opened ({error.strerror})") from error
        try:
            locked(self._file.fileno(), f"{path}: another {kind.work} is writing this log")
            hold(self._file.fileno())
            self._file.seek(0)
            content = self._file.readall()
            header, lines, self._bytes = _lines(path, kind, content)
            if header is not None:
                other = _other_value(kind, header, about)
                if other and reuse_empty and not lines:
                    header, self._bytes = None, 0
                elif other:
                    where, then, now = other
                    raise InputError(
                        f"{path}: the log of another {kind.work}: {where} was {then} there and is {now} "
                        f"here; continue with the same settings, or name another place"
                    )
                self.entries = _entries(path, kind, parse, lines)
            elif not begin.startswith(content):
                raise InputError(f"{path}: not a {kind.noun} of weirlab; it is left as it is")
            elif (path.parent / "manifest.json").exists():  # written after the first line of the journal
                raise InputError(
                    f"{path}: {'cut short' if content else 'empty'}, but manifest.json says that this "
                    f"{kind.work} was started; put the log back, or start again in another directory"
                )
            self._file.truncate(self._bytes)
            if header is None:
                self._write(begin)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file, and of its lock."""
        if not self._file.closed:
            let_go(self._file.fileno())
        self._file.close()

    def append(self, content: Mapping[str, object]) -> None:
        """Write an entry; it is on disk when this returns. Raises WeirlabError when it cannot be written; the
        journal is then as it was."""
        self._write(_line(content))

    def _write(self, line: bytes) -> None:
        with writing(self.path):
            try:
                left = memoryview(line)
                while left:
                    left = left[self._file.write(left) or 0 :]
                os.fsync(self._file.fileno())
            except OSError:
                with contextlib.suppress(OSError):  # then the half line is a last one that was cut short
                    self._file.truncate(self._bytes)
                raise
        self._bytes += len(line)


def _other_value(
    kind: JournalKind, header: Mapping[str, object], about: Mapping[str, object]
) -> tuple[str, str, str] | None:
    """The dotted path of the first value of `about` that is another one in the header, and both values."""
    expected = json.loads(_line(about))  # tuples are lists then, as in the file
    found = {name: header.get(name) for name in expected}
    if found == expected:
        return None
    with contextlib.suppress(*_FAULTS):
        found = json.loads(_line(kind.filled(found)))
    return None if found == expected else first_difference(found, expected)


def _line(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _lines(
    path: Path, kind: JournalKind, content: bytes
) -> tuple[dict[str, object] | None, list[bytes], int]:
    """The first line, the whole lines after it, and the number of bytes of all these."""
    *lines, cut = content.split(b"\n")
    if not lines:
        return None, [], 0
    return _header(path, kind, lines[0]), lines[1:], len(content) - len(cut)


def _entries(path: Path, kind: JournalKind, parse: Parse[Entry], lines: Sequence[bytes]) -> list[Entry]:
    entries = []
    for number, line in enumerate(lines, start=2):
        try:
            entries.append(parse(_object(line)))
        except _FAULTS as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}:{number}: damaged {kind.noun} ({what})") from error
    return entries


def _header(path: Path, kind: JournalKind, line: bytes) -> dict[str, object]:
    try:
        header = _object(line)
    except _FAULTS:
        header = {}
    if kind.key not in header:
        raise InputError(f"{path}: not a {kind.noun} of weirlab")
    if header[kind.key] != kind.version:
        raise InputError(
            f"{path}: written in format {header[kind.key]} by weirlab {header.get('weirlab', '?')}; "
            f"this weirlab reads format {kind.version}"
        )
    return header


def _object(line: bytes) -> dict[str, object]:
    entry = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(entry, dict):
        raise ValueError("no JSON object")
    return entry


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_ABSENT = object()


def first_difference(found: object, expected: object, where: str = "") -> tuple[str, str, str]:
    """Dotted path of the first value that differs, and both values as text."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in [*expected, *(name for name in found if name not in expected)]:
            then, now = found.get(name, _ABSENT), expected.get(name, _ABSENT)
            if then != now:
                return first_difference(then, now, f"{where}.{name}" if where else str(name))
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for place, (then, now) in enumerate(zip(found, expected, strict=True)):
            if then != now:
                return first_difference(then, now, f"{where}[{place}]")
    return where, _short(found), _short(expected)


def _short(value: object) -> str:
    text = "nothing" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
