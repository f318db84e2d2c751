"""Results that are shown: found below the directory of the viewer and nowhere else, drawn when they are asked
for, and kept until they change."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError as NotYet
from pathlib import Path

from weirlab.errors import InputError
from weirlab.viewer.following import Live
from weirlab.viewer.index import Index
from weirlab.viewer.live import live_of

Mark = tuple[object, ...]

_MOST_BYTES = 200_000_000
"""Of pages that are kept."""
_PATIENCE_S = 2.0
"""After which a page that is not drawn yet is announced."""
_LIVES = 16
"""Results whose growth is followed at once."""
_UNREAD = frozenset({"plots", "report.html", "comparison.html", "work.json", "progress.jsonl"})
"""What no report is made of."""


class UnknownError(InputError):
    """There is no result by that name."""


class Opened:
    """Results below one directory."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.root = index.root
        self._pages: OrderedDict[tuple[str, ...], tuple[Mark, str]] = OrderedDict()
        self._drawing: dict[tuple[str, ...], tuple[Mark, Future[str]]] = {}
        self._lives: OrderedDict[str, tuple[threading.Lock, Live]] = OrderedDict()
        self._lock = threading.Lock()
        # One at a time: the libraries that draw share state.
        self._artist = ThreadPoolExecutor(1, thread_name_prefix="weir view: drawing")

    def directory(self, path: str) -> Path:
        """The directory of a result. Raises UnknownError for any other, and InputError for
        one that holds a link to somewhere else."""
        if not self.index.finds(path):
            raise UnknownError(f"{path or '.'}: there is no such result")
        self.mark(path)
        return self.root / path

    def mark(self, path: str) -> Mark:
        """What changes with a result. Raises InputError where a link in it leaves the directory of the
        viewer."""
        found: list[object] = []
        for place, folders, files in os.walk(self.root / path):
            for name in (*folders, *files):
                each = Path(place, name)
                if each.is_symlink() and not each.resolve().is_relative_to(self.root):
                    raise InputError(
                        f"{each.relative_to(self.root)}: a link to somewhere outside of the directory that "
                        "is shown, which is not followed"
                    )
            folders[:] = sorted(each for each in folders if each not in _UNREAD)
            for name in sorted(files):
                if name not in _UNREAD and not name.endswith(".part"):
                    try:
                        about = Path(place, name).stat()
                    except OSError:
                        continue
                    found.append((place, name, about.st_mtime_ns, about.st_size))
        return tuple(found)

    def page(self, path: str, bar: str, style: str) -> str | None:
        """The report of a result as HTML, with a bar above it; None while it is being drawn. Raises what
        drawing it raises."""

        def draw() -> str:
            from weirlab.report import page_of
            from weirlab.results import Manifest

            directory = self.root / path
            return page_of(directory, Manifest.read(directory))[0].html(bar=bar, style=style)

        self.directory(path)
        return self._drawn(("report", path), self.mark(path), draw)

    def comparison(self, paths: Sequence[str], bar: str, style: str) -> str | None:
        """The page of several results; None while it is being drawn."""
        from weirlab.comparisons import compared
        from weirlab.report.compare import comparison_page

        places = [self.directory(path) for path in paths]
        mark = tuple(self.mark(path) for path in paths)

        def draw() -> str:
            return comparison_page(compared(places))[0].html(bar=bar, style=style)

        return self._drawn(("compare", *paths), mark, draw)

    def live(self, path: str) -> tuple[threading.Lock, Live]:
        """What follows a result while it grows, and the lock under which it is asked; it says so, too, when
        the work ended and nothing is kept."""
        try:
            directory = self.directory(path)
        except UnknownError:
            with self._lock:
                if path in self._lives:  # nothing is left there to be read
                    return self._lives[path]
            raise
        with self._lock:
            if path in self._lives:
                self._lives.move_to_end(path)
                return self._lives[path]
            live = live_of(directory, self.index.kind_of(path), self.root)
            self._lives[path] = (threading.Lock(), live)
            while len(self._lives) > _LIVES:
                self._lives.popitem(last=False)
            return self._lives[path]

    def forget_live(self, path: str) -> None:
        """It has ended: whoever asks again reads from the beginning."""
        with self._lock:
            self._lives.pop(path, None)

    def close(self) -> None:
        """Draw no more."""
        self._artist.shutdown(wait=False, cancel_futures=True)

    def _drawn(self, key: tuple[str, ...], mark: Mark, draw: Callable[[], str]) -> str | None:
        with self._lock:
            if key in self._pages and self._pages[key][0] == mark:
                self._pages.move_to_end(key)
                return self._pages[key][1]
            if key not in self._drawing or self._drawing[key][0] != mark:
                self._drawing[key] = (mark, self._artist.submit(draw))
            work = self._drawing[key][1]
        try:
            page = work.result(_PATIENCE_S)
        except NotYet:
            if not work.done():
                return None
            raise
        except BaseException:
            self._drop(key, work)
            raise
        self._drop(key, work)
        with self._lock:
            self._pages[key] = (mark, page)
            while len(self._pages) > 1 and sum(len(each[1]) for each in self._pages.values()) > _MOST_BYTES:
                self._pages.popitem(last=False)
        return page

    def _drop(self, key: tuple[str, ...], work: Future[str]) -> None:
        with self._lock:
            if key in self._drawing and self._drawing[key][1] is work:
                del self._drawing[key]
