"""The trial log of a search: JSON lines, only ever appended to.

The first line says which search it belongs to; then one line per trial, on disk before the next trial begins:

    {"weirlab_trials": 1, "weirlab": "0.1.0", "search": {...}, "about": {...}}
    {"trial": {"spec": {...}, "intended_frames": 10600000, ...}}
    {"failure": {"index": 1, "error": "..."}}

A line that a crash cut short at the end is dropped. A log of another search is refused, with the first
difference."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from weirlab._core import version
from weirlab.errors import InputError, WeirlabError
from weirlab.testbed.base import Trial, TrialSpec

try:
    import fcntl
except ImportError:  # Windows: two searches on one log are then not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["FORMAT", "TrialLog", "read_trials", "trial_from_json", "trial_to_json"]

FORMAT = 1
"""Version of the log. A reader refuses any other."""


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """A trial as JSON values. ``trial_from_json`` gives an equal one back: no figure is rounded."""
    return asdict(trial)


def trial_from_json(content: Mapping[str, Any]) -> Trial:
    """The trial that ``trial_to_json`` wrote. Raises TypeError, KeyError or WeirlabError when it is none."""
    spec = TrialSpec(**content["spec"])
    return Trial(spec=spec, **{name: value for name, value in content.items() if name != "spec"})


def read_trials(path: Path) -> list[Trial]:
    """All trials of a log, whatever search it belongs to. Raises InputError when it is no log."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    header, trials, _ = _parse(path, content)
    if header is None:
        raise InputError(f"{path}: empty, not a trial log")
    return trials


class TrialLog:
    """A trial log that is open for appending. Use it in a `with` statement."""

    def __init__(self, path: Path, search: Mapping[str, object], about: Mapping[str, object]) -> None:
        """Open the log of a search, or begin it. ``trials`` then holds what was measured before.

        ``search`` are the settings of the search, ``about`` what else must not change between two sittings,
        such as the resolved scenario; both JSON values. Raises InputError when the log belongs to another
        search, is damaged before its end, or is being written by another process."""
        self.path = path
        self.trials: Sequence[Trial] = []
        expected = json.loads(_line({"search": search, "about": about}))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise InputError(f"{path}: the trial log cannot be opened ({error.strerror})") from error
        try:
            self._lock()
            self._file.seek(0)
            header, self.trials, good_bytes = _parse(path, self._file.read())
            if header is None:
                self._file.truncate(0)
                self._append({"weirlab_trials": FORMAT, "weirlab": version(), **expected})
            else:
                _refuse_another(path, header, expected)
                self._file.truncate(good_bytes)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> TrialLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, trial: Trial) -> None:
        """Write a trial; it is on disk when this returns."""
        self._append({"trial": trial_to_json(trial)})

    def note_failure(self, spec: TrialSpec, error: Exception) -> None:
        """Write that a trial gave no result. A resumed search makes it again."""
        self._append({"failure": {"index": spec.index, "kind": type(error).__name__, "error": str(error)}})

    def _append(self, content: Mapping[str, object]) -> None:
        self._file.write(_line(content).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _lock(self) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(f"{self.path}: another search is writing this log") from error


def _line(content: Mapping[str, object]) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _parse(path: Path, content: bytes) -> tuple[dict[str, Any] | None, list[Trial], int]:
    """Header, trials, and the number of bytes up to the end of the last complete line. A last line without
    its line feed was cut short and does not count; any other line must be right."""
    header: dict[str, Any] | None = None
    trials: list[Trial] = []
    good_bytes = 0
    for number, line in enumerate(_complete_lines(content), start=1):
        good_bytes += len(line)
        if number == 1:
            header = _header(path, line)
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError("no JSON object")
            if "trial" in entry:
                trials.append(trial_from_json(entry["trial"]))
            elif "failure" not in entry:
                raise ValueError("neither a trial nor a failure")
        except (ValueError, TypeError, KeyError, WeirlabError) as error:
            raise InputError(f"{path}:{number}: damaged trial log ({error})") from error
    return header, trials, good_bytes


def _complete_lines(content: bytes) -> Iterator[bytes]:
    return (line for line in content.splitlines(keepends=True) if line.endswith(b"\n"))


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict) or "weirlab_trials" not in entry:
        raise InputError(f"{path}: not a trial log of weirlab")
    if entry["weirlab_trials"] != FORMAT:
        raise InputError(
            f"{path}: written in format {entry['weirlab_trials']} by weirlab {entry.get('weirlab', '?')}; "
            f"this weirlab reads format {FORMAT}"
        )
    return entry


def _refuse_another(path: Path, header: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    found = {name: header.get(name) for name in expected}
    if found != expected:
        where, then, now = _first_difference(found, expected)
        raise InputError(
            f"{path}: the log of another search: {where} was {then} there and is {now} here; resume with the "
            f"same settings, or choose another log"
        )


_ABSENT = object()


def _first_difference(found: Any, expected: Any, where: str = "") -> tuple[str, str, str]:
    """Dotted path of the first value that differs, and both values as text."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in [*expected, *(name for name in found if name not in expected)]:
            then, now = found.get(name, _ABSENT), expected.get(name, _ABSENT)
            if then != now:
                return _first_difference(then, now, f"{where}.{name}" if where else str(name))
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for place, (then, now) in enumerate(zip(found, expected, strict=True)):
            if then != now:
                return _first_difference(then, now, f"{where}[{place}]")
    return where, _short(found), _short(expected)


def _short(value: Any) -> str:
    text = "nothing" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
