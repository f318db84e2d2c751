"""What every result has: sentences, tables, charts, a report, and a face in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from weirlab.errors import InputError
from weirlab.report.page import Block, Table, Text
from weirlab.results import Manifest, claimed_directory

if TYPE_CHECKING:
    import polars as pl

    from weirlab.files import Scratch
    from weirlab.plots.style import Plot
    from weirlab.report.page import Page


T = TypeVar("T")

_ROWS = 12
"""Rows of a table in a notebook; a report has them all."""

MEMBERS = ".summary() .tables .plot() .report()"
"""What to ask a result for, where it is displayed."""


class Sentences(tuple[str, ...]):
    """Sentences, the one that matters first. Printed and shown one per line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first, *others = (html.escape(sentence) for sentence in self or ("",))
        return "<br>".join([f"<b>{first}</b>", *others])


class Shelf(Mapping[str, T], Generic[T]):
    """Things by name, each made when it is first asked for. Names complete on Tab, as keys and as attributes;
    `-` in a name is `_` in an attribute."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """Raises KeyError with the names that there are."""
        if name not in self._makers:
            from weirlab.scenario.file.problems import unknown

            raise KeyError(unknown(name, self._makers))
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __getattr__(self, name: str) -> T:
        if name.startswith("_"):
            raise AttributeError(name)
        found = next((each for each in self._makers if each.replace("-", "_") == name), name)
        try:
            return self[found]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __dir__(self) -> list[str]:
        return sorted(each.replace("-", "_") for each in self._makers)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._makers)

    def __repr__(self) -> str:
        return f"<{', '.join(self._makers) or 'none'}>"


class Result(ABC):
    """What a command found. Shown in a notebook it has its sentences and tables."""

    kind: ClassVar[str]
    """What it is about, in a word."""

    def __init__(
        self, manifest: Manifest, directory: str | Path | None, *, kept: Scratch | None = None
    ) -> None:
        self._manifest = manifest
        self._kept = kept  # removed with this object
        self.directory = None if directory is None else Path(directory)
        """Where it is kept; None while it is in memory alone."""

    @property
    def name(self) -> str:
        """Of the scenario, the capture, the host or the study."""
        return self._manifest.name

    @abstractmethod
    def _sentences(self) -> Sequence[str]:
        """The one that matters first."""

    @abstractmethod
    def blocks(self) -> list[Block]:
        """The tables and texts that the command prints, too."""

    @abstractmethod
    def _page(self) -> tuple[Page, list[Plot]]:
        """The report, with pictures not drawn yet."""

    @property
    @abstractmethod
    def tables(self) -> Shelf[pl.DataFrame]:
        """Everything that was recorded, as Polars frames; columns end in their units and hold exact integers
        where they count (`weirlab.seconds` and `weirlab.bit_rates` convert them)."""

    def summary(self) -> Sentences:
        """What was found, in sentences; the one that matters is the first."""
        return Sentences(self._sentences())

    @cached_property
    def whole_page(self) -> tuple[Page, list[Plot]]:
        """The page that `report` writes, and its plots, which are not drawn yet."""
        return self._page()

    @cached_property
    def plots(self) -> Shelf[object]:
        """The charts of the report by name, as Altair charts that can be changed. Needs `weirlab[report]`."""
        return Shelf({each.name: partial(_chart, each) for each in self.whole_page[1]})

    def plot(self, name: str | None = None) -> object:
        """One of the `plots`; the first without a name. Raises InputError where there is none."""
        if not self.plots:
            raise InputError(f"{self.name}: there is nothing to draw; {self._undrawn()}")
        chosen = next(iter(self.plots)) if name is None else name
        if chosen not in self.plots:
            raise InputError(f"{self.name}: no plot is called '{chosen}'; there are {', '.join(self.plots)}")
        return self.plots[chosen]

    def _undrawn(self) -> str:
        """What to do to get plots."""
        return "nothing was measured"

    def report(self, file: str | Path | None = None) -> Path:
        """Write the report as one HTML page that needs nothing else, and return its place: `file`, or
        `report.html` in the directory of the result, or `NAME.html` here. Needs `weirlab[report]`."""
        if file is None:
            place = None if self._kept is not None else self.directory
            file = f"{self.name}.html" if place is None else place / "report.html"
        return self.whole_page[0].write(Path(file))

    def save(self, directory: str | Path) -> Path:
        """Keep everything in a new or an empty directory, which `weirlab.read` reads and `weir report`
        reports."""
        with claimed_directory(self.name, Path(directory)) as place:
            return self._keep(place)

    def _keep(self, place: Path) -> Path:
        """The same, in a directory that is there and claimed."""
        self._save(place)
        if self._kept is not None:
            self._kept.close()
        self.directory, self._kept = place, None
        return place

    def copy_to(self, directory: str | Path) -> Path:
        """The same, but it stays where it is."""
        with claimed_directory(self.name, Path(directory)) as place:
            self._save(place)
        return place

    @property
    def is_kept(self) -> bool:
        """Whether it is on disk after this object is gone."""
        return self.directory is not None and self._kept is None

    def _save(self, place: Path) -> None:
        assert self.directory is not None
        copytree(self.directory, place, dirs_exist_ok=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}; {MEMBERS}>"

    def _repr_html_(self) -> str:
        first, *others = [*self._sentences(), ""]
        head = f"<b>{html.escape(self.name)}: {html.escape(first)}</b>"
        foot = f"<small>{MEMBERS}</small>"
        body = "".join(f"<div>{html.escape(sentence)}</div>" for sentence in others if sentence)
        return f"<div>{head}{body}{as_html(self.blocks())}{foot}</div>"


def _chart(plot: Plot) -> object:
    return plot.chart


def as_html(blocks: Sequence[Block]) -> str:
    """Tables and texts as HTML that follows the style of a notebook; other blocks are left to reports."""
    parts = []
    for block in blocks:
        if isinstance(block, Text):
            tag = "pre" if "\n" in block.text else "p"
            parts.append(f"<{tag}>{html.escape(block.text)}</{tag}>")
        elif isinstance(block, Table) and block.rows:
            parts.append(_table(block))
    return "".join(parts)


def _table(table: Table) -> str:
    def cell(tag: str, text: str, *, numeric: bool) -> str:
        shown = html.escape(text).replace("\n", "<br>")
        side = "right" if numeric else "left"
        return f'<{tag} style="text-align:{side};padding:0 .6em">{shown}</{tag}>'

    head = "".join(
        cell("th", f"{each.name}\n[{each.unit}]" if each.unit else each.name, numeric=each.numeric)
        for each in table.columns
    )
    rows = [
        "".join(cell("td", text, numeric=each.numeric) for each, text in zip(table.columns, row, strict=True))
        for _, row in table.shown[:_ROWS]
    ]
    total = max(len(table.rows), table.total)
    more = f"<small>The first {len(rows)} of {total:,} rows.</small>" if total > len(rows) else ""
    caption = f'<caption style="text-align:left;font-weight:600">{html.escape(table.caption)}</caption>'
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def stored_tables(directory: Path) -> dict[str, Callable[[], pl.DataFrame]]:
    """What reads each table of a result on disk."""
    import polars as pl

    files = sorted((directory / "tables").glob("*.parquet"))
    return {file.stem: partial(pl.read_parquet, file) for file in files}
