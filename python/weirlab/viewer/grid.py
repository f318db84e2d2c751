"""Tables of any length, a page of them at a time: words, facets with counts, conditions and an order, all of
which stand in the address.

One file: the address, the answer and the page of a grid name the same columns.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlencode

import polars as pl

from weirlab.errors import InputError
from weirlab.report.page import number
from weirlab.report.shared import display_unit, seconds_text
from weirlab.units import FrameRate, Rate, Size, Span

Kind = Literal["text", "number", "seconds"]

ROWS = 100
"""Of a page."""
_MOST_VALUES = 40
"""Of a facet that are offered."""
_MOST_FACET = 12
_CONDITION = re.compile(r"^\s*(?P<name>.+?)\s*(?P<sign><=|>=|!=|=|<|>)\s*(?P<amount>.+?)\s*$")
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_READERS: Mapping[str, Callable[[str], float]] = {
    "bit/s": lambda text: Rate.parse(text).bps,
    "ps": lambda text: Span.parse(text).ps,
    "s": lambda text: Span.parse(text).ps / 1e12,
    "B": lambda text: Size.parse(text).bytes,
    "frame/s": lambda text: FrameRate.parse(text).fps,
}


@dataclass(frozen=True)
class Column:
    """A column of a grid."""

    key: str
    title: str
    unit: str = ""
    kind: Kind = "text"
    facet: bool = False
    shown: bool = True
    """Whether it stands in the table; one that does not is for facets, conditions and files."""
    is_last: bool = False
    """Whether it comes after the values; on a page where it is empty it is left out."""


@dataclass(frozen=True)
class Grid:
    """A table and what is known of its columns."""

    frame: pl.DataFrame
    columns: Sequence[Column]
    text: str | None = None
    """The column in which words are looked for, in lower case. Default: all columns of text."""
    values: pl.DataFrame | None = None
    """Further columns as rows: `path name unit value`, of which a page shows some; `path` is in the frame."""
    order: tuple[str, bool] | None = None
    """Column and whether it falls, where nobody asks for another."""


@dataclass(frozen=True)
class Query:
    """What is asked for."""

    words: str = ""
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of each facet the values of which one must be there."""
    where: str = ""
    """Conditions, such as `loss > 1 %, seconds > 10`."""
    sort: str = ""
    """The key of a column, with `-` before it where it falls."""
    page: int = 1
    fixed: Sequence[tuple[str, str]] = ()
    """What else stands in the address and is kept, such as the name of the table."""

    def address(self, **changes: Any) -> str:
        """This, with other values, as the part of an address behind the `?`."""
        other = replace(self, **{"page": 1, **changes})
        pairs: list[tuple[str, str]] = [*other.fixed]
        pairs += [("q", other.words)] if other.words else []
        pairs += [(facet, value) for facet, values in other.chosen.items() for value in values]
        pairs += [("where", other.where)] if other.where else []
        pairs += [("sort", other.sort)] if other.sort else []
        pairs += [("page", str(other.page))] if other.page > 1 else []
        return urlencode(pairs)

    def toggled(self, facet: str, value: str) -> str:
        """The address with a value of a facet that is chosen now and was not, or the reverse."""
        before = list(self.chosen.get(facet, ()))
        after = [each for each in before if each != value] if value in before else [*before, value]
        chosen = {key: values for key, values in {**self.chosen, facet: after}.items() if values}
        return self.address(chosen=chosen)

    def sorted_by(self, key: str) -> str:
        """The address with this order; the reverse where it has it already."""
        return self.address(sort=f"-{key}" if self.sort == key else key)


@dataclass(frozen=True)
class Answer:
    """A page of a grid."""

    query: Query
    total: int
    matching: int
    rows: pl.DataFrame
    """Of this page."""
    matched: pl.DataFrame
    """All that match, in order."""
    columns: Sequence[Column]
    """Those of the grid, and those of the values that are shown."""
    facets: Mapping[str, Sequence[tuple[str, int, bool]]]
    """Value, how many there are with all else that was chosen, and whether it is chosen."""

    @property
    def pages(self) -> int:
        """How many there are."""
        return max(1, math.ceil(self.matching / ROWS))

    @property
    def first(self) -> int:
        """The number of the first row that is shown, from 1."""
        return min(self.matching, (self.query.page - 1) * ROWS + 1)

    @property
    def last(self) -> int:
        """That of the last."""
        return min(self.matching, self.query.page * ROWS)

    @property
    def shown(self) -> Sequence[Column]:
        """The columns of the table."""
        return [
            column
            for column in self.columns
            if column.shown
            and not (column.is_last and self.rows.get_column(column.key).is_in(["", None]).all())
        ]

    def cells(self) -> list[list[str]]:
        """The rows as texts, each column in one unit."""
        found = []
        for column in self.shown:
            series = self.rows.get_column(column.key)
            found.append([*map(_text_of(column, series), series.to_list())])
        return [list(row) for row in zip(*found, strict=True)]

    def heads(self) -> list[tuple[Column, str, str]]:
        """Each column with the unit that it is shown in, and how it is sorted, as ARIA says it."""
        key, falls = self.query.sort.removeprefix("-"), self.query.sort.startswith("-")
        return [
            (
                column,
                _shown_in(column, self.rows.get_column(column.key))[1],
                ("descending" if falls else "ascending") if column.key == key else "",
            )
            for column in self.shown
        ]

    def document(self) -> dict[str, object]:
        """The page as JSON values, in the units of the records."""
        keys = [column.key for column in self.columns]
        return {
            "total": self.total,
            "matching": self.matching,
            "page": self.query.page,
            "pages": self.pages,
            "columns": [{"key": each.key, "title": each.title, "unit": each.unit} for each in self.columns],
            "rows": self.rows.select(keys).to_dicts(),
            "facets": {
                key: [{"value": value, "rows": many, "chosen": chosen} for value, many, chosen in values]
                for key, values in self.facets.items()
            },
        }

    def csv(self) -> str:
        """All rows that match, as comma-separated values."""
        keys = [column.key for column in self.columns]
        return self.matched.select(keys).rename(lambda key: key.removeprefix("value:")).write_csv()


def query_of(pairs: Sequence[tuple[str, str]], grid: Grid, fixed: Sequence[str] = ()) -> Query:
    """What an address asks for; what is not known is left out. Raises InputError for a page that is none."""
    known = {column.key for column in grid.columns if column.facet}
    chosen: dict[str, list[str]] = {}
    one: dict[str, str] = {}
    for key, value in pairs:
        if key in known:
            chosen.setdefault(key, []).append(value)
        elif value:
            one[key] = value
    page = one.get("page", "1")
    if not (page.isdecimal() and page.isascii() and 0 < int(page[:9]) < 10**8):
        raise InputError(f"page {page}: a number from 1 is wanted")
    return Query(
        words=one.get("q", ""),
        chosen=chosen,
        where=one.get("where", ""),
        sort=one.get("sort", ""),
        page=int(page),
        fixed=[(key, one[key]) for key in fixed if key in one],
    )


def answered(grid: Grid, query: Query) -> Answer:
    """A page of a grid. Raises InputError where a condition or an order cannot be understood."""
    frame = grid.frame
    everything = (
        pl.Series([True]).new_from_index(0, frame.height) if frame.height else pl.Series([], dtype=pl.Boolean)
    )
    masks = [_with_words(grid, query.words), *(_where(grid, part) for part in _parts(query.where))]
    rest = everything
    for mask in masks:
        rest = rest if mask is None else rest & mask
    by_facet = {
        facet: frame.get_column(facet).cast(pl.String).fill_null("").is_in(pl.Series(list(values)).implode())
        for facet, values in query.chosen.items()
    }
    matches = rest
    for mask in by_facet.values():
        matches = matches & mask
    facets = {}
    for column in grid.columns:
        if not column.facet:
            continue
        others = rest
        for facet, mask in by_facet.items():
            others = others if facet == column.key else others & mask
        facets[column.key] = _counted(frame, column.key, others, query.chosen.get(column.key, ()))
    matched = frame.filter(matches)
    columns = list(grid.columns)
    if grid.values is not None:
        shown = _shown_values(grid, matched, query)
        for column in shown:
            matched = matched.join(_value(grid, column), on="path", how="left", maintain_order="left")
        columns = sorted([*columns, *shown], key=lambda column: column.is_last)
    matched = _ordered(matched, columns, query.sort, grid.order)
    return Answer(
        query=query,
        total=frame.height,
        matching=matched.height,
        rows=matched.slice((query.page - 1) * ROWS, ROWS),
        matched=matched,
        columns=columns,
        facets={key: values for key, values in facets.items() if len(values) > 1 or query.chosen.get(key)},
    )


def _with_words(grid: Grid, words: str) -> pl.Series | None:
    if not words.strip():
        return None
    if grid.text is not None:
        text = pl.col(grid.text)
    else:
        texts = [name for name, kind in grid.frame.schema.items() if kind == pl.String]
        if not texts:
            raise InputError("this table has no texts in which words could be found")
        text = pl.concat_str([pl.col(name).fill_null("") for name in texts], separator=" ").str.to_lowercase()
    every = pl.lit(True)
    for word in words.lower().split():
        every = every & text.str.contains(word, literal=True)
    return grid.frame.select(every.alias("found")).get_column("found")


def _parts(where: str) -> list[str]:
    return [part for part in re.split(r",|\band\b", where) if part.strip()]


def _where(grid: Grid, text: str) -> pl.Series:
    """Which rows meet a condition."""
    found = _CONDITION.match(text)
    if found is None:
        raise InputError(
            f"'{text.strip()}': write a column, one of < > <= >= = !=, and a value, such as 'loss > 1 %'"
        )
    name, amount, frame = found["name"], found["amount"], grid.frame
    column = next(
        (each for each in grid.columns if name.lower() in (each.key.lower(), each.title.lower())), None
    )
    compare = _SIGNS[found["sign"]]
    if column is not None and column.kind != "text":
        limit = _limit(text, amount, "s" if column.kind == "seconds" else column.unit)
        return frame.select(compare(pl.col(column.key), limit).fill_null(False).alias("is")).get_column("is")
    if column is not None:
        value = pl.col(column.key).cast(pl.String).fill_null("")
        return frame.select(compare(value, amount.strip("'\"")).alias("is")).get_column("is")
    known = grid.values.filter(pl.col("name") == name) if grid.values is not None else None
    if known is None or known.is_empty():
        keys = [each.key for each in grid.columns]
        keys += [] if grid.values is None else grid.values.get_column("name").unique().sort().to_list()[:20]
        raise InputError(f"'{text.strip()}': there is no '{name}' here; there are {', '.join(keys)}")
    assert grid.values is not None
    unit = str(known.get_column("unit")[0])
    limit = _limit(text, amount, unit)
    paths = known.filter(compare(pl.col("value"), limit)).get_column("path")
    return frame.select(pl.col("path").is_in(paths.implode()).alias("is")).get_column("is")


def _limit(text: str, amount: str, unit: str) -> float:
    try:
        if amount.endswith("%"):
            return float(amount.removesuffix("%")) / 100
        try:
            return float(amount)
        except ValueError:
            if unit in _READERS:
                return _READERS[unit](amount)
            raise
    except ValueError as error:
        raise InputError(f"'{text.strip()}': {amount} is no number{f' in {unit}' if unit else ''}") from error


def _counted(
    frame: pl.DataFrame, key: str, mask: pl.Series, chosen: Sequence[str]
) -> list[tuple[str, int, bool]]:
    many = (
        frame.get_column(key)
        .cast(pl.String)
        .fill_null("")
        .filter(mask)
        .value_counts(name="rows")
        .sort(["rows", key], descending=[True, False])
    )
    rows = [(str(value), int(count)) for value, count in many.head(_MOST_VALUES).iter_rows()]
    if many.height > _MOST_VALUES:
        rows = rows[:_MOST_FACET]
    missing = [value for value in chosen if value not in [each for each, _ in rows]]
    return [
        *((value, count, value in chosen) for value, count in rows),
        *((value, 0, True) for value in missing),
    ]


_VALUES_SHOWN = 3


def _shown_values(grid: Grid, matched: pl.DataFrame, query: Query) -> list[Column]:
    """Columns of those values that most of the rows have, and of what they are sorted by."""
    assert grid.values is not None
    known = grid.values
    if matched.height < grid.frame.height:
        known = known.filter(pl.col("path").is_in(matched.get_column("path").implode()))
    many = known.group_by("name", "unit").len().sort(["len", "name"], descending=[True, False])
    wanted = [query.sort.removeprefix("-").removeprefix("value:")] if "value:" in query.sort else []
    wanted += [found["name"] for part in _parts(query.where) if (found := _CONDITION.match(part))]
    rows = [(str(name), str(unit)) for name, unit, _ in many.iter_rows()]
    first = [row for name in wanted for row in rows if row[0] == name]
    chosen = list(dict.fromkeys([*first, *rows]))[: max(_VALUES_SHOWN, len(first))]
    return [Column(f"value:{name}", name, unit, "number") for name, unit in chosen]


def _value(grid: Grid, column: Column) -> pl.DataFrame:
    assert grid.values is not None
    return (
        grid.values.filter((pl.col("name") == column.title) & (pl.col("unit") == column.unit))
        .unique("path", keep="last")
        .select("path", pl.col("value").alias(column.key))
    )


def _ordered(
    frame: pl.DataFrame, columns: Sequence[Column], sort: str, order: tuple[str, bool] | None
) -> pl.DataFrame:
    if not sort:
        return (
            frame
            if order is None
            else frame.sort(order[0], descending=order[1], nulls_last=True, maintain_order=True)
        )
    key, falls = sort.removeprefix("-"), sort.startswith("-")
    if key not in {column.key for column in columns}:
        raise InputError(f"sort={sort}: there is no such column")
    return frame.sort(key, descending=falls, nulls_last=True, maintain_order=True)


def _shown_in(column: Column, series: pl.Series) -> tuple[float, str]:
    if column.kind != "number" or not column.unit:
        return 1.0, ""
    largest = series.cast(pl.Float64).abs().max()
    return display_unit(column.unit, float(largest) if isinstance(largest, int | float) else 0.0)


def _text_of(column: Column, series: pl.Series) -> Callable[[Any], str]:
    if column.kind == "seconds":
        return lambda value: "" if value is None else seconds_text(value)
    if column.kind == "number":
        factor, _ = _shown_in(column, series)
        return lambda value: "" if value is None else number(value * factor if factor != 1.0 else value)
    return lambda value: "" if value is None else str(value)


def grid_of(frame: pl.DataFrame) -> Grid:
    """A grid of any table: texts of few different values are facets, lists are left out."""
    columns = []
    kept = [name for name, kind in frame.schema.items() if not kind.is_nested() and kind != pl.Binary]
    for name in kept:
        kind = frame.schema[name]
        few = kind in (pl.String, pl.Boolean) and 1 < frame.get_column(name).n_unique() <= _MOST_VALUES
        columns.append(Column(name, name, kind="number" if kind.is_numeric() else "text", facet=few))
    return Grid(frame.select(kept), columns)
