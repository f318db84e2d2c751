"""What results lie below a directory: a table that notices what is new, changed or gone.

A result is written by renaming files, which changes the time of its directory. So one question to the system
shows for each directory whether it has to be read again. Links are never followed.

One file: what is known of a directory is read, kept and shown by one table.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NotRequired

import polars as pl
from typing_extensions import TypedDict

from weirlab.documents import typed
from weirlab.files import whole
from weirlab.working import NOTE, work_in

SCHEMA = pl.Schema(
    {
        "path": pl.String,
        "name": pl.String,
        "kind": pl.String,
        "status": pl.String,
        "started": pl.String,
        "seconds": pl.Float64,
        "replicates": pl.Int64,
        "host": pl.String,
        "version": pl.String,
        "changes": pl.String,
        "remark": pl.String,
        "changed_ns": pl.Int64,
        "text": pl.String,
    }
)
"""`started` is UTC; `text` is what words are looked for in; `changed_ns` the time of the directory."""
VALUES = pl.Schema({"path": pl.String, "name": pl.String, "unit": pl.String, "value": pl.Float64})
"""What was found, a row for each measure of a run and goal of a search."""

_AT_ONCE = 2000
"""Results of which it is asked in one turn whether they have changed."""
_SETTLED_NS = 2_000_000_000
"""A change that follows another one sooner may leave the time of a directory as it was."""
_MOST_BYTES = 400_000
"""Of a `result.json` that is read for the list."""
_PARTS = frozenset({"tables", "plots", "store"})
"""Directories of a result that hold no further result."""
_READERS, _OF_READER = 4, 32
"""Threads that read directories, since much of the first look is waiting for the disk; and how many each
reads before it asks for more."""
_READ_AT_ONCE = 8 * _OF_READER
"""Directories between two looks at the clock."""
_CACHED = 500
"""Results from which the index is kept for the next start."""


@dataclass
class Folder:
    """A directory that was read."""

    changed_ns: int
    """-1 where it has to be read again."""
    below: set[str] = field(default_factory=set)
    row: dict[str, object] | None = None
    """Of a result."""


class Index:
    """The results below a directory. One thread calls `look`; any may ask."""

    def __init__(self, root: Path, *, cache: Path | None = None) -> None:
        self.root = root
        self.frame = pl.DataFrame(schema=SCHEMA)
        """One row per result."""
        self.values = pl.DataFrame(schema=VALUES)
        self.generation = 0
        """Counts the changes of `frame`."""
        self.is_complete = False
        """Whether everything has been read once."""
        self._folders: dict[str, Folder] = {}
        self._todo: deque[str] = deque([""])
        self._round: deque[str] = deque()
        self._rows: dict[str, dict[str, object] | None] = {}
        """Changes that are not in `frame` yet."""
        self._found: dict[str, list[tuple[str, str, float]]] = {}
        self._known: dict[str, int] = {}
        """Results of an earlier start, by path: when their directories changed."""
        self._running: set[str] = set()
        self._containers: set[str] = set()
        """Directories that are no results."""
        self._lock = threading.Lock()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="weir view: reader")
        self._cache = cache
        self._saved = -1
        self._published = 0.0
        if cache is not None:
            self._load(cache)

    def __contains__(self, path: str) -> bool:
        folder = self._folders.get(path)
        return folder is not None and (folder.row is not None or path in self._known)

    def finds(self, path: str) -> bool:
        """Whether a result has that path, also one that the list does not have yet."""
        if path not in self or path in self._rows:
            self.look_at(path)
        return path in self

    def kind_of(self, path: str) -> str:
        """`run`, `search` ..., `store` or `page`; empty where no result is known by that path."""
        found = self.frame.filter(path=path).get_column("kind")
        return str(found[0]) if found.len() else ""

    def status_of(self, path: str) -> str:
        """As in the frame; empty where no result is known by that path."""
        found = self.frame.filter(path=path).get_column("status")
        return str(found[0]) if found.len() else ""

    @property
    def running(self) -> frozenset[str]:
        """Results that a process works on."""
        return frozenset(self._running)

    def look(self, patience_s: float = 0.15) -> bool:
        """Look for changes for about so long; whether `frame` is another one now."""
        with self._lock:
            return self._look(patience_s)

    def _look(self, patience_s: float) -> bool:
        give_up = time.monotonic() + patience_s
        for path in [*self._running]:
            self._ask(path)
        if not self._todo:
            self._ask_round(give_up)
        while self._todo and time.monotonic() < give_up:
            self._read([self._todo.popleft() for _ in range(min(len(self._todo), _READ_AT_ONCE))])
        is_done = not self._todo
        is_due = is_done or time.monotonic() - self._published > 1.0
        news = bool(self._rows) and is_due
        if news:
            self._publish()
        if is_done and not self.is_complete:
            self.is_complete, news = True, True
            self._forget_unknown()
            self.save()
        return news

    def look_at(self, path: str) -> None:
        """Read a result again if it has changed, or for the first time where it is not in the list."""
        with self._lock:
            parts = path.split("/") if path else []
            above = [] if path in self._folders else ["/".join(parts[:depth]) for depth in range(len(parts))]
            for each in (*above, path):
                self._ask(each)
                while each in self._todo:
                    self._todo.remove(each)
                    self._read([each])
            if path in self._rows:
                self._publish()

    def save(self) -> None:
        """Keep what is known for the next start, where it is much."""
        if self._cache is None or self.frame.height < _CACHED or self._saved == self.generation:
            return
        self._saved = self.generation
        with suppress(OSError, pl.exceptions.PolarsError):
            for kind, frame in (("frame", self.frame), ("values", self.values)):
                with whole(self._cache.with_suffix(f".{kind}")) as unfinished:
                    frame.write_parquet(unfinished, compression="zstd")

    def _load(self, cache: Path) -> None:
        try:
            frame, values = (pl.read_parquet(cache.with_suffix(f".{kind}")) for kind in ("frame", "values"))
        except (OSError, pl.exceptions.PolarsError):
            return
        if frame.schema != SCHEMA or values.schema != VALUES:
            return
        settled = frame.filter(
            pl.col("status").is_in(["complete", "interrupted", "failed"])
            & ~pl.col("kind").is_in(["search-study", "reproduce"])  # which hold further results
        )
        self.frame, self.values, self.generation = frame, values, 1
        self._known = dict(settled.select("path", "changed_ns").iter_rows())

    def _forget_unknown(self) -> None:
        """Results of an earlier start that are gone."""
        gone = [path for path in self.frame.get_column("path") if path not in self._folders]
        self._rows.update(dict.fromkeys(gone))
        if gone:
            self._publish()

    def _ask_round(self, give_up: float) -> None:
        """Whether directories that may get further results have changed, and some of the results."""
        for path in [*self._containers]:
            self._ask(path)
        if not self._round:
            self._round.extend(path for path in self._folders if path not in self._containers)
        for asked in range(len(self._round)):
            if asked >= _AT_ONCE and time.monotonic() > give_up:
                return
            self._ask(self._round.popleft())

    def _ask(self, path: str) -> None:
        folder = self._folders.get(path)
        if folder is None:
            return
        try:
            changed_ns = (self.root / path).lstat().st_mtime_ns
        except OSError:
            self._drop(path)
            return
        if changed_ns != folder.changed_ns or path in self._running:
            self._todo.append(path)

    def _drop(self, path: str) -> None:
        folder = self._folders.pop(path, None)
        if folder is None:
            return
        self._running.discard(path)
        self._containers.discard(path)
        if folder.row is not None or path in self._known:
            self._rows[path] = None
        for name in folder.below:
            self._drop(_join(path, name))

    def _read(self, paths: Sequence[str]) -> None:
        """Read directories, and put those below them that are new on the list."""
        known = [(path, None if path in self._folders else self._known.get(path)) for path in paths]
        parts = [known[first : first + _OF_READER] for first in range(0, len(known), _OF_READER)]
        read = partial(_contents, self.root)
        contents = map(read, parts) if len(parts) == 1 else self._readers.map(read, parts)
        for path, content in zip(paths, chain.from_iterable(contents), strict=True):
            self._take(path, content)

    def _take(self, path: str, content: Content | None) -> None:
        """Enter what a directory holds; None: it cannot be read."""
        if content is None:
            if path:
                self._drop(path)
            return
        changed_ns, below, row, values = content
        if self._known.pop(path, None) == changed_ns and path not in self._folders:
            self._folders[path] = Folder(changed_ns)  # as it was at the last start
            return
        before = self._folders.get(path)
        self._folders[path] = Folder(changed_ns, below, row)
        for name in sorted(below - (before.below if before else set())):
            self._todo.append(_join(path, name))
        for name in (before.below if before else set()) - below:
            self._drop(_join(path, name))
        (self._running.add if row and row["status"] == "running" else self._running.discard)(path)
        if row is None:
            self._containers.add(path)
        else:
            self._containers.discard(path)
            row["changed_ns"] = changed_ns
        before_row = before.row if before else None
        if _without_time(row) != _without_time(before_row):
            self._rows[path] = row
            self._found[path] = values

    def _publish(self) -> None:
        rows, found = self._rows, self._found
        self._rows, self._found = {}, {}
        fresh = pl.DataFrame([row for row in rows.values() if row is not None], schema=SCHEMA)
        values = pl.DataFrame(
            [(path, *one) for path, many in found.items() for one in many if rows.get(path) is not None],
            schema=VALUES,
            orient="row",
        )
        changed = pl.Series(list(rows), dtype=pl.String).implode()
        self.values = pl.concat([self.values.filter(~pl.col("path").is_in(changed)), values])
        self.frame = pl.concat([self.frame.filter(~pl.col("path").is_in(changed)), fresh])
        self.generation += 1
        self._published = time.monotonic()


def cache_for(root: Path) -> Path | None:
    """Where the index of a directory is kept between starts; None where there is no such place."""
    base = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.environ.get("HOME") else None)
    if base is None:
        return None
    digest = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return Path(base) / "weirlab" / "viewer" / digest


Content = tuple[int, set[str], dict[str, object] | None, list[tuple[str, str, float]]]
"""When a directory changed, -1 where it may again; those below it, what result it is, and what was found."""


def _contents(root: Path, known: Sequence[tuple[str, int | None]]) -> list[Content | None]:
    return [_content(root, path, known_ns) for path, known_ns in known]


def _content(root: Path, path: str, known_ns: int | None) -> Content | None:
    """What a directory holds, nothing of one that has not changed; None: it cannot be read."""
    place = root / path
    try:
        changed_ns = place.lstat().st_mtime_ns
        if changed_ns == known_ns:
            return changed_ns, set(), None, []
        with os.scandir(place) as entries:
            # Others are links, which are not followed, and pipes and devices, which would be waited for.
            files, folders = set(), set()
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    folders.add(each.name)
                elif each.is_file(follow_symlinks=False):
                    files.add(each.name)
    except OSError:
        return None
    row, values = _row(place, path, files)
    if time.time_ns() - changed_ns < _SETTLED_NS:
        changed_ns = -1
    below = {
        name
        for name in folders
        if not name.startswith(".") and not (row and name in _PARTS) and name == _shown(name)
    }
    if row is not None and row["kind"] in ("store", "run"):
        below = set()
    return changed_ns, below, row, values


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _without_time(row: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if row is None else {key: value for key, value in row.items() if key != "changed_ns"}


def _row(
    place: Path, path: str, files: Iterable[str]
) -> tuple[dict[str, object] | None, list[tuple[str, str, float]]]:
    """What a directory is, if it is a result, and what was found."""
    shown = path or "."
    if "manifest.json" in files:
        content = _json(place / "manifest.json")
        if content is None:
            return _made(shown, path, kind="damaged", remark="manifest.json cannot be read"), []
        values, doubts = _found(place, content) if "result.json" in files else ([], "")
        return _of_manifest(place, path, shown, content, doubts, noted=NOTE in files), values
    if NOTE in files:
        work = work_in(place)
        if work is None:
            return None, []
        status = "running" if work.goes_on else "unfinished"
        started = work.started[:19].replace("T", " ")
        return _made(shown, path, name=work.name, kind=work.kind, status=status, started=started), []
    if "weirlab-store.json" in files:
        return _made(shown, path, kind="store"), []
    if "result.json" in files and "report.html" in files:
        kind = (_json(place / "result.json") or {}).get("kind")
        if kind in ("stability", "rank"):
            return _made(shown, path, kind=kind, status="complete"), []
    return None, []


def _shown(text: str) -> str:
    """The text without what is no character: half of a surrogate pair, which no table holds and no address
    names."""
    return text.encode("utf-8", "replace").decode()


def _made(shown: str, path: str, **known: object) -> dict[str, object]:
    row: dict[str, object] = {
        **dict.fromkeys(SCHEMA),
        "path": path,
        "name": shown.rpartition("/")[2],
        "status": "",
    }
    row |= {key: _shown(value) if isinstance(value, str) else value for key, value in known.items()}
    words = (path, row["name"], row["kind"], row["changes"], row["remark"])
    row["text"] = " ".join(str(word) for word in words if word).lower()
    return row


def _of_manifest(
    place: Path, path: str, shown: str, content: Mapping[str, object], doubts: str, *, noted: bool
) -> dict[str, object]:
    def text(value: object) -> str | None:
        return value if isinstance(value, str) else None

    provenance = content.get("provenance")
    provenance = provenance if isinstance(provenance, dict) else {}
    started = text(provenance.get("started"))
    status = text(content.get("status")) or ""
    work = work_in(place) if noted else None
    if work is not None and work.goes_on:  # a manifest of before says otherwise until it is written
        status = "running"
    elif status == "running":
        status = "unfinished"
    changes = content.get("overrides")
    replicates = content.get("replicates")
    return _made(
        shown,
        path,
        name=text(content.get("name")) or shown,
        kind=text(content.get("kind")) or "",
        status=status,
        started=started[:19].replace("T", " ") if started else None,
        seconds=_seconds(started, text(provenance.get("finished"))),
        replicates=replicates if isinstance(replicates, int) else None,
        host=text(provenance.get("host")),
        version=text(provenance.get("weirlab")),
        changes=", ".join(f"{key}={value}" for key, value in changes.items())
        if isinstance(changes, dict)
        else "",
        remark=text(content.get("remark")) or doubts,
    )


def _seconds(started: str | None, finished: str | None) -> float | None:
    from datetime import datetime

    if started is None or finished is None:
        return None
    with suppress(ValueError):
        return (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    return None


class _Mean(TypedDict):
    measure: str
    unit: str
    mean: float | None


class _Run(TypedDict):
    measures: list[_Mean]


class _Lower(TypedDict):
    load_fps: float


class _Goal(TypedDict):
    name: str
    lower: _Lower | None
    irregularities: NotRequired[list[str]]


class _Search(TypedDict):
    goals: list[_Goal]


def _found(place: Path, manifest: Mapping[str, object]) -> tuple[list[tuple[str, str, float]], str]:
    """The measures of a run, or the rates of a search and which of them are irregular."""
    kind = manifest.get("kind")
    if kind not in ("run", "search"):
        return [], ""
    content = _json(place / "result.json") or {}
    doubts = ""
    try:
        if kind == "run":
            rows = [
                (each["measure"], each["unit"], each["mean"]) for each in typed(_Run, content)["measures"]
            ]
        else:
            goals = typed(_Search, content)["goals"]
            rows = [(each["name"], "frame/s", each["lower"]["load_fps"]) for each in goals if each["lower"]]
            doubtful: dict[str, list[str]] = {}
            for each in goals:
                if reasons := each.get("irregularities"):
                    doubtful.setdefault(", ".join(reasons), []).append(each["name"])
            doubts = "; ".join(f"{', '.join(names)} irregular: {why}" for why, names in doubtful.items())
    except ValueError:
        return [], ""
    return [(name, unit, value) for name, unit, value in rows if value is not None], doubts


def _json(path: Path) -> dict[str, object] | None:
    try:
        with path.open("rb", buffering=0) as file:  # room is made for as much as there is
            most = min(os.fstat(file.fileno()).st_size, _MOST_BYTES)
            content = json.loads(file.read(most + 1))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
