"""Tables on stdout: as wide as the terminal, or as CSV, JSON or Markdown.

A table that is too wide for the terminal is never cut. Columns of text are broken at words first. Where that
is not enough, a short table on a narrow terminal becomes a block of lines per row; any other one is printed
in several parts, each of which starts with the columns that name the row, or where a part is too wide in
blocks, too.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TextIO

import typer

from weirlab.cli.columns import number_columns, plain

if TYPE_CHECKING:
    from weirlab.report.page import Column, Table


Format = Literal["table", "csv", "json", "md"]

PIPE_WIDTH = 200
"""Columns where nobody says how many there are: stdout is no terminal and COLUMNS is not set."""
_NARROW = 100
"""Columns below which a short table becomes blocks of lines."""
_SHORT = 3
"""Most rows of a short table."""
_LEAST_TEXT = 20
"""Columns to which a column of text may be broken."""
_GAP = 2

_SPELLED = str.maketrans(
    {
        "\N{THIN SPACE}": " ",
        "\N{NARROW NO-BREAK SPACE}": " ",
        "\N{NO-BREAK SPACE}": " ",
        "\N{LESS-THAN OR EQUAL TO}": "<=",
        "\N{GREATER-THAN OR EQUAL TO}": ">=",
        "\N{MICRO SIGN}": "u",
        "\N{GREEK SMALL LETTER MU}": "u",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MINUS SIGN}": "-",
        "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
        "\N{DAGGER}": "+",
        "\N{DEGREE SIGN}": "deg",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{PLUS-MINUS SIGN}": "+-",
        "\N{SUPERSCRIPT TWO}": "^2",
        "\N{HORIZONTAL ELLIPSIS}": "...",
        "\N{RIGHTWARDS ARROW}": "->",
        **dict(zip("▁▂▃▄▅▆▇█", "_.,:-=+#", strict=True)),
    }
)
"""How terminals show characters that they do not have."""


class _Output:
    """How this command prints tables."""

    format: Format = "table"
    stream: TextIO | None = None
    """Where tables go where the rest of stdout goes elsewhere."""
    tables: ClassVar[list[Table]] = []


@contextmanager
def formatted(chosen: Format) -> Iterator[None]:
    """Print tables in a format while this lasts. What else the command prints on stdout goes to stderr, so
    that a program reads tables alone; as tables there is no difference."""
    if chosen == "table":
        yield
        return
    stream = sys.stdout
    _Output.format, _Output.stream, _Output.tables = chosen, stream, []
    try:
        with redirect_stdout(sys.stderr):
            yield
    except typer.Exit:
        _finish(stream)
        raise
    else:
        _finish(stream)
    finally:
        _Output.format, _Output.stream = "table", None


def show_records(caption: str, records: Sequence[Mapping[str, str]]) -> bool:
    """Print what is said in sentences elsewhere as a table of texts, where programs read tables; whether that
    is so."""
    if _Output.format == "table":
        return False
    from weirlab.report.page import Column, Table

    names = list(records[0]) if records else []
    columns = [Column(name, numeric=False) for name in names]
    show(Table(caption, columns, [[record[name] for name in names] for record in records]))
    return True


def _finish(stream: TextIO) -> None:
    if _Output.format == "json":
        document = [_document(table) for table in _Output.tables]
        stream.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def show(table: Table) -> None:
    """Print the table of a report on stdout."""
    stream = _Output.stream or sys.stdout
    match _Output.format:
        case "table":
            _print(table)
        case "csv":
            if _Output.tables:
                stream.write("\n")
            writer = csv.writer(stream, lineterminator="\n")
            columns = number_columns(table)
            writer.writerow([column.headed for column in columns])
            writer.writerows(zip(*(column.cells for column in columns), strict=True))
        case "md":
            stream.write(_markdown(table))
    _Output.tables.append(table)


def say(text: str, style: str = "", *, lead: str = "", lead_style: str = "") -> None:
    """Print a sentence after a lead, broken at words; its other lines begin where the first does."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    columns, first = width(), _as_shown(lead)
    console = Console(highlight=False, width=columns)
    indent = min(cell_len(first), columns // 2)
    lines = Text(_as_shown(text), style=style).wrap(console, columns - indent)
    for place, line in enumerate(lines):
        line.rstrip()
        console.print(Text.assemble((" " * indent if place else first, lead_style), line))


def width() -> int:
    """Columns that a line may have."""
    return columns_of(sys.stdout) or PIPE_WIDTH


def columns_of(stream: TextIO) -> int | None:
    """Columns of a stream; None where nobody says."""
    reported = os.environ.get("COLUMNS", "")
    if reported.isdecimal() and int(reported) > 0:
        return int(reported)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def _as_shown(text: str) -> str:
    """Text as stdout writes it: spelled out before lines are broken, as that may be longer."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "weirlab-spell-out").decode(encoding)


def _all_as_shown(table: Table) -> Table:
    return replace(
        table,
        caption=_as_shown(table.caption),
        columns=[
            replace(column, name=_as_shown(column.name), unit=_as_shown(column.unit))
            for column in table.columns
        ],
        rows=[list(map(_as_shown, row)) for row in table.rows],
    )


def _print(table: Table) -> None:
    from rich import box
    from rich.console import Console, RenderableType
    from rich.table import Table as Grid
    from rich.text import Text

    table = _all_as_shown(table)
    columns = width()
    console = Console(highlight=False, width=columns)
    rows = [row for _, row in table.shown]

    def grid(places: Sequence[int], widths: Sequence[int]) -> RenderableType:
        drawn = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), show_edge=False)
        for place, wide in zip(places, widths, strict=True):
            column = table.columns[place]
            justify: Literal["left", "right"] = "right" if column.numeric else "left"
            drawn.add_column(
                Text(_header(column)), justify=justify, width=wide, no_wrap=column.numeric, overflow="fold"
            )
        for row in rows:
            drawn.add_row(*(Text(row[place]) for place in places))
        return drawn

    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style, overflow="fold"))

    line("")
    if table.caption:
        line(table.caption, "bold")
    natural = [_natural(column, [row[place] for row in rows]) for place, column in enumerate(table.columns)]
    everything = range(len(natural))
    naming = _naming(rows)
    parts = list(_parts(table.columns, natural, columns, naming))
    in_parts = [_narrowed(table.columns, natural, part, columns) for part in parts]
    if (widths := _narrowed(table.columns, natural, everything, columns)) is not None:
        console.print(grid(everything, widths))
    elif None in in_parts or (columns < _NARROW and len(rows) <= _SHORT):
        for row in rows:
            _print_block(console, table.columns, row, naming)
    else:
        for count, (part, widths) in enumerate(zip(parts, in_parts, strict=True)):
            if count > 0:
                line("")
            console.print(grid(part, widths or []))
    if table.left_out:
        line(table.left_out)


def _naming(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first columns it takes to distinguish the rows; 1 where all of them do not."""
    columns = len(rows[0]) if rows else 1
    return next(
        (count for count in range(1, columns) if len({tuple(r[:count]) for r in rows}) == len(rows)), 1
    )


def _print_block(console: Any, columns: Sequence[Column], row: Sequence[str], naming: int) -> None:
    """A row as a block of lines, below its name; cells with nothing in them are left out."""
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    names = (
        f"{column.name} {_with_unit(column, cell)}"
        for column, cell in zip(columns, row[:naming], strict=False)
    )
    console.print(Text(", ".join(names), style="bold", overflow="fold"))
    lines = Grid.grid(padding=(0, _GAP, 0, 0))
    lines.add_column(overflow="fold")
    lines.add_column(overflow="fold")
    for column, cell in zip(columns[naming:], row[naming:], strict=True):
        if not cell:
            continue
        lines.add_row(Text(column.name.replace("\n", " ")), Text(_with_unit(column, cell)))
    console.print(Padding(lines, (0, 0, 0, 2), expand=False))


def _with_unit(column: Column, cell: str) -> str:
    has_number = any(character.isdigit() for character in cell)
    return f"{cell} {column.unit}" if column.unit and has_number else cell


def _natural(column: Column, cells: Sequence[str]) -> int:
    """Width of a column whose cells are not broken."""
    from rich.cells import cell_len

    lines = [*_header(column).split("\n"), *(part for cell in cells for part in cell.split("\n"))]
    return max(map(cell_len, lines), default=0)


def _narrowed(
    columns: Sequence[Column], natural: Sequence[int], places: Sequence[int], width: int
) -> list[int] | None:
    """Widths of these columns that fit, with texts broken at words; None where that is not enough."""
    widths = [natural[place] for place in places]
    left = width - sum(widths) - _GAP * len(widths)
    while left < 0:
        texts = [
            index
            for index, place in enumerate(places)
            if not columns[place].numeric and widths[index] > _LEAST_TEXT
        ]
        if not texts:
            return None
        widest = max(texts, key=lambda index: widths[index])
        widths[widest] -= 1
        left += 1
    return widths


def _parts(columns: Sequence[Column], natural: Sequence[int], width: int, naming: int) -> Iterator[list[int]]:
    """Columns that stand side by side, those that name a row among them each time."""
    names = list(range(naming))
    part = list(names)
    for place in range(naming, len(columns)):
        least = [
            wide if columns[column].numeric else min(wide, _LEAST_TEXT)
            for column, wide in ((column, natural[column]) for column in (*part, place))
        ]
        if len(part) > naming and sum(least) + _GAP * len(least) > width:
            yield part
            part = list(names)
        part.append(place)
    yield part


def _header(column: Column) -> str:
    return f"{column.name}\n[{column.unit}]" if column.unit else column.name


def _headed(column: Column) -> str:
    return plain(f"{column.name} [{column.unit}]" if column.unit else column.name)


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    head = line([_headed(column) for column in table.columns])
    rule = line(["---:" if column.numeric else "---" for column in table.columns])
    body = "".join(line([" ".join(cell.split()) for cell in row]) for row in table.rows)
    return f"\n**{table.caption}**\n\n{head}{rule}{body}"


def _document(table: Table) -> dict[str, object]:
    columns = number_columns(table)
    return {
        "caption": table.caption,
        "columns": [{"name": column.name, "unit": column.unit} for column in columns],
        "rows": [list(row) for row in zip(*(column.cells for column in columns), strict=True)],
    }


def spell_out(error: UnicodeError) -> tuple[str, int]:
    """Error handler of streams that lack a character: it is spelled out, or else is a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    spelled = missing.translate(_SPELLED)
    return "".join(letter if letter.isascii() else "?" for letter in spelled), error.end


codecs.register_error("weirlab-spell-out", spell_out)
