"""A page: headings, numbers, tables and plots, written as one HTML file that needs nothing else.

The file holds its style, its drawings and the scripts that let them answer the pointer; it asks no server for
anything, and shows the same without scripts. Text and
drawings follow the reader's light or dark setting, and print in light.
"""

from __future__ import annotations

import functools
import html
import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypedDict

from typing_extensions import Unpack

from weirlab.foreign import optional
from weirlab.plots.style import DARK, LIGHT, Answering, Plot
from weirlab.results import write_text

_SCRIPTS = ("vega.js", "page.js", "network.js", "sequence.js")

Tone = Literal["", "good", "middling", "bad"]
_TONE_WORDS: Mapping[str, str] = {"good": "good", "middling": "caution", "bad": "problem"}


@dataclass(frozen=True)
class Card:
    """A number that answers a question."""

    label: str
    value: str
    detail: str = ""
    tone: Tone = ""
    badge: str = ""
    """A word about the number, such as `irregular`; its colour is the tone."""


@dataclass(frozen=True)
class Numbers:
    """Cards next to each other."""

    cards: Sequence[Card]
    kind: str = "numbers"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Callout:
    """Something that the reader must not miss."""

    title: str
    text: str
    tone: Tone = "middling"
    kind: str = "callout"

    @property
    def word(self) -> str:
        """The tone in a word, for those who do not see its colour."""
        return _TONE_WORDS.get(self.tone, "note")


@dataclass(frozen=True)
class Column:
    """A column of a table: numbers stand to the right."""

    name: str
    unit: str = ""
    numeric: bool = True


def heads(names: str) -> list[Column]:
    """Columns as their heads read, those of texts with a colon: `port: | frames | mean delay [ms]`."""
    parts = (name.partition(" [") for name in names.split(" | "))
    return [
        Column(name.removesuffix(":"), unit.removesuffix("]"), numeric=not name.endswith(":"))
        for name, _, unit in parts
    ]


Head = str | Column
"""A column as its head reads, see `heads`; a `Column` where a name is not ours, and may read as anything."""
Cell = str | tuple[str, Callable[[Any], str]] | Callable[[Any], str]
"""What gives the cell of a row: the name of its value, which is a number unless the head of the column ends
in a colon; a name and how its value is written; or a function of the row."""


def _columns(names: Iterable[Head]) -> list[Column]:
    return [column for name in names for column in ([name] if isinstance(name, Column) else heads(name))]


def _cell(row: Any, column: Column, cell: Cell) -> str:
    if callable(cell):
        return cell(row)
    name, text = cell if isinstance(cell, tuple) else (cell, number if column.numeric else str)
    return text(row[name] if isinstance(row, Mapping) else getattr(row, name))


class Shown(TypedDict, total=False):
    """What a table has besides its columns and rows."""

    tones: Sequence[Tone]
    note: str
    most: int
    where: str
    total: int


@dataclass(frozen=True)
class Table:
    """A table of texts. Of long ones the first `most` rows are shown, and the caption says so."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    tones: Sequence[Tone] = ()
    """One per row, or none."""
    note: str = ""
    most: int = 200
    where: str = ""
    """Where the whole table is, if some rows are left out."""
    total: int = 0
    """How many rows the whole table has, where `rows` are only the first of them."""
    kind: str = "table"

    @classmethod
    def of(cls, caption: str, rows: Any, *cells: Mapping[str, Cell], **shown: Unpack[Shown]) -> Table:
        """A table of `rows`, which are a data frame, mappings or objects, with the cells of each by the heads
        of their columns."""
        columns = _columns(head for part in cells for head in part)
        makers = [maker for part in cells for maker in part.values()]
        rows = rows.iter_rows(named=True) if hasattr(rows, "iter_rows") else rows
        texts = [[_cell(row, *each) for each in zip(columns, makers, strict=True)] for row in rows]
        return cls(caption, columns, texts, **shown)

    @classmethod
    def by_head(cls, caption: str, rows: Sequence[Mapping[Head, str]], **shown: Unpack[Shown]) -> Table:
        """A table of one row or more: the texts of its cells by the heads of their columns, which are the
        same in all rows."""
        return cls(caption, _columns(rows[0]), [list(row.values()) for row in rows], **shown)

    @property
    def shown(self) -> Sequence[tuple[Tone, Sequence[str]]]:
        """The rows to print, with their tones."""
        tones: Sequence[Tone] = self.tones or [""] * len(self.rows)
        return list(zip(tones, self.rows, strict=True))[: self.most]

    @property
    def left_out(self) -> str:
        """What is not shown, as a sentence; empty when all is."""
        total = max(len(self.rows), self.total)
        shown = min(len(self.rows), self.most)
        if total <= shown:
            return ""
        where = f" All are in {self.where}." if self.where else ""
        return f"The first {shown:,} of {total:,} rows.{where}"


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption. It is drawn when the page is written."""

    plot: Plot
    kind: str = "figure"

    @property
    def title(self) -> str:
        """What the drawing is called."""
        return self.plot.title

    @property
    def note(self) -> str:
        """What was left out or summarised."""
        return self.plot.note

    @property
    def svg(self) -> str:
        """The drawing."""
        return self.plot.inline_svg()

    @cached_property
    def answering(self) -> Answering:
        """The same for a screen."""
        return self.plot.answering()

    @property
    def data(self) -> str:
        """The specification as JSON that may stand in a script element."""
        content = {"vega": self.answering.vega, "closer": self.plot.closer}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return text.replace("</", "<\\/").replace("<!--", "<\\!--")


@dataclass(frozen=True)
class Details:
    """Blocks that the reader may unfold; they are unfolded in print."""

    summary: str
    blocks: Sequence[Block]
    kind: str = "details"


@dataclass(frozen=True)
class Code:
    """Text that keeps its lines."""

    text: str
    kind: str = "code"


@dataclass(frozen=True)
class Network:
    """A picture of a network, or another of its own kind, with the numbers that let a screen answer."""

    title: str
    note: str
    svg: str
    data: str
    """JSON that may stand in a script element."""
    kind: str = "network"
    """Which script draws it: `network`, `sequence` of time-sequence graphs, or `still`: none."""


Block = Numbers | Text | Callout | Table | Figure | Network | Details | Code


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """The name of the section in links."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    kind: str
    """What it is about: `Search`, `Run` ..."""
    subtitle: str
    lead: Sequence[Block]
    """The answer, before everything else."""
    sections: Sequence[Section]
    footer: str = ""
    story: Sequence[str] = ()
    """What was found, in a few sentences with their numbers; the one that matters is the first."""

    def html(self, *, bar: str = "", style: str = "") -> str:
        """The page as one HTML document.

        Args:
            bar: HTML before everything else, of a server that shows the page.
            style: CSS for that.
        """
        templates = jinja2()
        here = resources.files("weirlab.report")
        environment = templates.Environment(
            autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=templates.StrictUndefined
        )
        environment.filters["typeset"] = typeset
        environment.filters["unbroken"] = unbroken
        template = environment.from_string((here / "page.html.j2").read_text(encoding="utf-8"))
        return str(
            template.render(
                page=self,
                style=style_sheet() + style,
                light=LIGHT,
                dark=DARK,
                scripts=_scripts(),
                policy=content_policy(),
                bar=bar,
            )
        )

    def write(self, path: Path) -> Path:
        """Write the page; the file appears whole or not at all."""
        write_text(path, self.html())
        return path


@functools.cache
def _scripts() -> tuple[str, ...]:
    here = resources.files("weirlab.report") / "static"
    return tuple((here / name).read_text(encoding="utf-8") for name in _SCRIPTS)


@functools.cache
def content_policy() -> str:
    """What a browser may do for a page: run its own scripts, known by their digests, and load nothing."""
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in _scripts())
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:"


@functools.cache
def style_sheet() -> str:
    """The style of pages, without the colours that depend on the theme."""
    return (resources.files("weirlab.report") / "style.css").read_text(encoding="utf-8")


def figure(plot: Plot) -> Figure:
    """A plot for a page."""
    return Figure(plot)


def typeset(text: str) -> str:
    """A sentence as pages write numbers: thin spaces between thousands, a space before %, µs for us."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\u202f", text)
    return re.sub(r"(?<=\d) us\b", " µs", re.sub(r"(?<=\d)%(?!\w)", " %", text))


def unbroken(text: str) -> str:
    """A text as HTML in which no line ends within an arrow, or before a mark."""
    kept = text.replace(" → ", "\u00a0→ ").replace(" †", "\u00a0†")
    return html.escape(kept).replace("-&gt;", '<span class="arrow">-&gt;</span><wbr>')


def number(value: float | None, digits: int = 4) -> str:
    """A number to `digits` significant digits, with thin spaces between thousands; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\u202f")
    rounded = float(f"{value:.{digits - 1}e}")  # 9.9999 has the magnitude of 10.00
    magnitude = math.floor(math.log10(abs(rounded)))
    if -4 <= magnitude < 15:
        return f"{value:,.{max(0, digits - 1 - magnitude)}f}".replace(",", "\u202f")
    return f"{value:.{digits - 1}e}"


def mean_text(mean: float, half_width: float) -> str:
    """A mean to the place of the second digit of its interval's half width, as in 94.9 ± 1.2."""
    if not math.isfinite(half_width) or half_width <= _ROUNDING * abs(mean) or mean == 0:
        return number(mean)
    rounded = float(f"{half_width:.1e}")  # 0.0999 has the magnitude of 0.10
    places = 1 - math.floor(math.log10(rounded))
    if places > 8:
        return number(mean)
    return f"{round(mean, places):,.{max(0, places)}f}".replace(",", "\u202f")


def interval_text(mean: float, half_width: float) -> str:
    """A mean and its interval, as in 94.9 ± 1.2."""
    return f"{mean_text(mean, half_width)} {half_width_text(mean, half_width)}"


def half_width_text(mean: float, half_width: float) -> str:
    """The half width of an interval to two digits, as in ± 1.2. What replicates differ by in their last
    binary digits alone is no spread."""
    return f"± {number(0.0 if half_width <= _ROUNDING * abs(mean) else half_width, 2)}"


_ROUNDING = 1e-12
"""A sum of thousands of numbers is rounded by less of itself."""


def percent(ratio: float | None) -> str:
    """A ratio in per cent, to three significant digits; what is not 0 never reads 0."""
    if ratio is None or not math.isfinite(ratio):
        return "–"
    return f"{ratio * 100:.3g} %"


def fixed(value: float, digits: int) -> str:
    """A number with so many digits after the point, and no sign where these are all 0; empty for none."""
    return "" if math.isnan(value) else f"{value:z.{digits}f}"


def jinja2() -> Any:
    """The module jinja2. Raises MissingCapability when the extra `report` is not installed."""
    return optional("jinja2", who="reports need", package="Jinja2", extra="report")
