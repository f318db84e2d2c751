"""The one thread that looks for changes: of the list, and of results that somebody watches."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weirlab.viewer.index import Index

EVERY_S = 0.2
_JOURNALS = (
    *("manifest.json", "work.json", "progress.jsonl", "trials.jsonl", "measurements.jsonl", "study.json"),
    *("result.json", "store/results"),
)


class Watcher(threading.Thread):
    """Announces to those who listen that the list, or a result, has changed."""

    def __init__(self, index: Index) -> None:
        super().__init__(name="weir view: watcher", daemon=True)
        self._index = index
        self._lock = threading.Lock()
        self._ears: list[tuple[str | None, asyncio.AbstractEventLoop, asyncio.Queue[tuple[str, str]]]] = []
        self._seen: dict[str, tuple[object, ...]] = {}
        self._ended = threading.Event()
        self.fault = ""
        """Why it stopped looking, which is a bug; empty while it looks."""
        self.left_at = time.monotonic()
        """When somebody listened last."""

    @property
    def ears(self) -> int:
        """How many listen."""
        return len(self._ears)

    @contextmanager
    def listening(self, path: str | None) -> Iterator[asyncio.Queue[tuple[str, str]]]:
        """A queue of news, as name and text: of a result, or of the list."""
        ear = (path, asyncio.get_running_loop(), asyncio.Queue[tuple[str, str]](100))
        with self._lock:
            self._ears.append(ear)
        try:
            yield ear[2]
        finally:
            with self._lock:
                self._ears.remove(ear)
            self.left_at = time.monotonic()

    def run(self) -> None:
        """Look until `end` is called."""
        announced_s = 0.0
        is_news = False
        while not self._ended.is_set():
            try:
                is_news |= self._index.look()
                if is_news and (self._index.is_complete or time.monotonic() - announced_s > 1.0):
                    self._tell(None, "index", str(self._index.generation))
                    announced_s, is_news = time.monotonic(), False
                with self._lock:
                    watched = {path for path, _, _ in self._ears if path is not None}
                for path in watched:
                    self._look_at(path)
                self._seen = {path: seen for path, seen in self._seen.items() if path in watched}
            except Exception as error:
                self.fault = f"{type(error).__name__}: {error}"
                raise
            self._ended.wait(EVERY_S if self._index.is_complete else 0.01)
        self._index.save()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look_at(self, path: str) -> None:
        seen = marks_of(self._index.root / path)
        # Seen for the first time, it may have changed since the page was made.
        if seen != self._seen.get(path):
            self._seen[path] = seen
            self._tell(path, "result", path)

    def _tell(self, path: str | None, name: str, text: str) -> None:
        with self._lock:
            ears = [ear for ear in self._ears if ear[0] == path]
        for _, loop, queue in ears:

            def put(queue: asyncio.Queue[tuple[str, str]] = queue) -> None:
                with suppress(asyncio.QueueFull):  # who does not read has news waiting anyway
                    queue.put_nowait((name, text))

            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(put)


def marks_of(directory: Path) -> tuple[object, ...]:
    """What changes when work in a directory has got further."""
    found: list[object] = []
    for name in _JOURNALS:
        with suppress(OSError):
            about = (directory / name).stat()
            found.append((name, about.st_mtime_ns, about.st_size))
    with suppress(OSError), os.scandir(directory / "store" / "results") as engines:
        found += sorted((each.name, each.stat().st_mtime_ns) for each in engines)
    if (directory / "study.json").exists() or not (directory / "scenario.yaml").exists():
        return tuple(found)
    with suppress(OSError), os.scandir(directory) as entries:  # searches of a study
        for each in entries:
            if each.is_dir(follow_symlinks=False) and each.name not in ("tables", "plots", "store"):
                with suppress(OSError):
                    about = Path(each.path, "trials.jsonl").stat()
                    found.append((each.name, about.st_mtime_ns, about.st_size))
    return tuple(found)
