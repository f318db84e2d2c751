"""Records: the facts that a run wrote down, as named tables.

Tables and columns are those of the compiled core, which says what each means (docs/tables.md). Ids (`port`,
`flow`, `traffic`, `cause`, `kind`) are places in the dimension tables; `Records.named` puts the names next to
them. What is unknown is null, never 0.

A table is held in memory as a whole when it is asked for. Series of many rows have left the run in parts,
which lie in files: sums over them are taken file by file.

One file: tables in memory and in parts answer the same questions.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import polars as pl

from weirlab import _core
from weirlab.errors import InputError
from weirlab.files import Scratch, whole

_schemas = functools.cache(_core.table_schemas)


@functools.cache
def columns_of() -> Mapping[str, tuple[str, ...]]:
    """The columns of each table that a run has, in their order. A testbed may know more. Whole files are no
    part of saved tables."""
    return {
        name: tuple(column["name"] for column in table["columns"] if column["type"] != "binary")
        for name, table in _schemas().items()
    }


@functools.cache
def dimensions() -> Mapping[str, str]:
    """Id column to the table that gives its names, which is called after it: `port` to `port_names`."""
    return {name.removesuffix("_names"): name for name in columns_of() if name.endswith("_names")}


class Records(Mapping[str, pl.DataFrame]):
    """Named tables. Every table but the dimension tables has a column `replicate`.

    A table that was not asked for is present without rows, so that a question about it meets the same
    columns; a measure that needs its rows says so.
    """

    def __init__(self, tables: Mapping[str, pl.DataFrame]) -> None:
        self._tables = dict(tables)
        self._made: dict[str, _core.Table] = {}
        self._parts: dict[str, list[Path]] = {}
        self._whole: dict[str, pl.DataFrame] = {}
        self._kept: object = None
        self._known: dict[tuple[str, str], list[Any]] = {}
        self._names = list(tables)

    @classmethod
    def made(cls, tables: Mapping[str, _core.Table], **read: pl.DataFrame) -> Records:
        """What the compiled core made; some of it has been `read`. Any other table is read when it is first
        asked for: a point of a study needs few of them. Memory is not copied."""
        records = cls(read)
        records._made = {name: table for name, table in tables.items() if name not in read}
        records._names = list(tables)
        return records

    def __getitem__(self, table: str) -> pl.DataFrame:
        """Raises KeyError with the tables that there are."""
        if table not in self._parts:
            return self._own(table)
        if table not in self._whole:
            self._whole[table] = _ordered(
                table, self.collected(table, self.lazy(table), engine="in-memory"), self
            )
        return self._whole[table]

    def _own(self, table: str) -> pl.DataFrame:
        """The rows that have not left in parts."""
        if table not in self._tables:
            if table not in self._made:
                raise KeyError(f"no table {table!r}; there are {', '.join(self)}")
            self._tables[table] = pl.DataFrame(self._made[table])
        return self._tables[table]

    def lazy(self, table: str) -> pl.LazyFrame:
        """All rows, to be read when they are needed; those that left in parts come in the order of these."""
        frames = list(self.frames(table))
        return pl.concat(frames) if len(frames) > 1 else frames[0]

    def frames(self, table: str) -> Iterator[pl.LazyFrame]:
        """The parts of a table, in their order."""
        yield self._own(table).lazy()
        yield from map(pl.scan_parquet, self._parts.get(table, []))

    def collected(
        self, table: str, rows: pl.LazyFrame, *, engine: Literal["in-memory", "streaming"] = "streaming"
    ) -> pl.DataFrame:
        """What is asked of `lazy`. Raises InputError with the file where a part cannot be read."""
        try:
            return rows.collect(engine=engine)
        except (pl.exceptions.PolarsError, OSError):
            for part in self._parts[table]:
                try:
                    pl.read_parquet(part)
                except (pl.exceptions.PolarsError, OSError) as error:
                    raise InputError(f"{part}: not a table that can be read: {error}") from error
            raise

    def is_parted(self, table: str) -> bool:
        """Whether rows of a table lie in parts, as there are many."""
        return table in self._parts

    def made_of(self, table: str) -> _core.Table | PartedTable:
        """The same table as the compiled core has it, which answers small questions in a hundredth of the
        time of a data frame. Raises KeyError with the tables that there are."""
        if table in self._parts:
            return PartedTable(self, table)
        if table not in self._made:
            frame, types = self[table], empty_table(table).schema
            known = {name: types.get(name, kind) for name, kind in frame.schema.items()}
            plain = [name for name, kind in known.items() if kind in _TYPES.values()]
            if known != dict(frame.schema) or len(plain) < frame.width:
                frame = frame.select(pl.col(name).cast(known[name]) for name in plain)
            self._made[table] = _core.Table.of(frame.rechunk())
        return self._made[table]

    def column(self, table: str, column: str) -> list[Any]:
        """The values of a column of a small table, None for what is unknown."""
        key = (table, column)
        if key not in self._known:
            self._known[key] = self.made_of(table).values(column)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{len(self)} tables of records>"

    @classmethod
    def joined(cls, parts: Sequence[Records], replicates: Sequence[int]) -> Records:
        """The records of several batches of so many replicates of one scenario, as if they were one."""
        if len(parts) == 1:
            return parts[0]
        firsts = [0, *itertools.accumulate(replicates)]
        tables = {}
        for name in parts[0]:
            frames = [part._own(name) for part in parts]
            if "replicate" in frames[0].columns:
                shifted = [
                    frame.with_columns(pl.col("replicate") + pl.lit(first, frame.schema["replicate"]))
                    for frame, first in zip(frames, firsts, strict=False)
                ]
                tables[name] = pl.concat(shifted, rechunk=True)
            else:
                tables[name] = frames[0]
        records = cls(tables)
        records._kept = [part._kept for part in parts]
        for part in parts:
            for name, files in part._parts.items():
                records._parts.setdefault(name, []).extend(files)
        return records

    def with_parts(self, parts: Parts, replicates: Collection[int]) -> Records:
        """The same, with the rows of these replicates that have left."""
        self._parts, self._kept = parts.of(replicates), parts
        return self

    def size_bytes(self) -> int:
        """Memory of the tables, without those of names and rows that lie in parts."""
        frames = map(self._own, self)
        return sum(int(frame.estimated_size()) for frame in frames if "replicate" in frame.columns)

    def named(self, table: str) -> pl.DataFrame:
        """`table` with a column `port_name`, `flow_name`, ... for each id, and what else is known of it."""
        frame = self[table]
        for key, dimension in dimensions().items():
            if key not in frame.columns or dimension not in self or table == dimension:
                continue
            names = self[dimension].rename({"name": f"{key}_name"})
            clashes = [column for column in names.columns if column != key and column in frame.columns]
            frame = frame.join(names.drop(clashes), on=key, how="left", maintain_order="left")
        return frame

    def save(self, directory: Path) -> None:
        """Write each table as `directory/NAME.parquet`. What is known of its columns stands in the metadata
        of the file, under `weirlab`, the names of all tables under `tables`, and under `parts` those of the
        files in `directory/NAME/` that hold more rows of it."""
        for name in self:
            parts = self._parts.get(name, [])
            for part in parts:
                if part.parent != directory / name:
                    with whole(directory / name / part.name) as unfinished:
                        shutil.copyfile(part, unfinished)
            metadata = {"tables": json.dumps(list(self)), "weirlab": json.dumps(_schemas().get(name))}
            if parts:
                metadata["parts"] = json.dumps([part.name for part in parts])
            save_table(self._own(name), directory / f"{name}.parquet", metadata=metadata)

    @classmethod
    def load(cls, directory: Path, *, needed: Iterable[str] = ()) -> Records:
        """Read what `save` wrote. In results of older versions a table that these did not have has no rows,
        and a column only nulls.

        Raises InputError with the file when there is nothing or something else, or when one of the tables
        `needed`, or one that was saved with others, is missing.
        """
        files = sorted(directory.glob("*.parquet"))
        if not files:
            raise InputError(f"{directory}: no tables here")
        tables: dict[str, pl.DataFrame] = {}
        parts: dict[str, list[Path]] = {}
        together = set(needed)
        for file in files:
            try:
                frame = pl.read_parquet(file)
                written = pl.read_parquet_metadata(file)
            except (pl.exceptions.PolarsError, OSError) as error:
                raise InputError(f"{file}: not a table that can be read: {error}") from error
            together |= set(json.loads(written.get("tables", "[]")))
            empty = empty_table(file.stem)
            # A file names the columns that it was written with, where it is of a version that does.
            then = (json.loads(written.get("weirlab", "null")) or {"columns": []})["columns"]
            kept = [each["name"] for each in then if each["type"] in _TYPES]
            if lost := [column for column in kept if column not in frame.columns]:
                raise InputError(f"{file}: table '{file.stem}' has no columns {', '.join(lost)}")
            if not set(empty.columns) <= set(frame.columns):
                frame = pl.concat([empty, frame], how="diagonal_relaxed")
            tables[file.stem] = frame
            if names := json.loads(written.get("parts", "[]")):
                parts[file.stem] = [directory / file.stem / name for name in names]
                if lost := [part for part in parts[file.stem] if not part.is_file()]:
                    raise InputError(f"{lost[0]}: this part of table '{file.stem}' is missing")
        for name in sorted(together):
            if name not in tables:
                raise InputError(f"{directory / name}.parquet: this table is missing")
        if "runs" in tables:
            tables |= {name: empty_table(name) for name in columns_of() if name not in tables}
        records = cls(tables)
        records._parts = parts
        return records


class Parts:
    """Rows of series that have left runs while they went on, in files
    `directory/TABLE/REPLICATE-NUMBER.parquet`. A file appears whole or not at all. `docs/tables.md` says how
    they are ordered."""

    def __init__(self, directory: Path | None = None) -> None:
        """Default: a directory that is made for the first part, and removed with this object."""
        self._directory = directory
        self._files: dict[tuple[str, int], list[Path]] = {}

    def take(self, first: int, replicate: int, name: str, part: _core.Table) -> None:
        """Write a part of a table; `first` is the number of the first replicate of this batch. Raises
        WeirlabError when it cannot be written."""
        number = first + replicate
        files = self._files.setdefault((name, number), [])
        if self._directory is None:
            self._scratch = Scratch()
            self._directory = self._scratch.path
        path = self._directory / name / f"{number:06}-{len(files):06}.parquet"
        save_table(pl.DataFrame(part).with_columns(replicate=pl.lit(number, pl.UInt32)), path)
        files.append(path)

    def of(self, replicates: Collection[int]) -> dict[str, list[Path]]:
        """The files of these replicates, by table, in order."""
        found: dict[str, list[Path]] = {}
        for (name, replicate), files in sorted(self._files.items()):
            if replicate in replicates:
                found.setdefault(name, []).extend(files)
        return found

    def size_bytes(self) -> int:
        """Of all files."""
        return sum(path.stat().st_size for files in self._files.values() for path in files)


def _ordered(table: str, rows: pl.DataFrame, records: Records) -> pl.DataFrame:
    """The rows of a parted table in the order in which they are in a run that keeps them."""
    if table == "messages":
        strides = records["message_totals"].select("replicate", "traffic", "stride")
        rows = rows.join(strides, on=["replicate", "traffic"], maintain_order="left")
        rows = rows.filter(pl.col("message") % pl.col("stride") == 0).drop("stride")
        return rows.sort("replicate", "traffic", "message")
    key = rows.columns[1]
    if table != "intervals":
        kinds = ["kind"] if table == "control_intervals" else []
        return rows.sort("replicate", key, *kinds, maintain_order=True)
    # Ports are in the order of the spec, as in the last interval.
    last = rows.filter(pl.col("t_ps") == pl.col("t_ps").max().over("replicate")).select("replicate", key)
    rows = rows.join(last.with_row_index("place"), on=["replicate", key], how="left", maintain_order="left")
    return rows.sort("replicate", "place", "t_ps").drop("place")


def _distilled(values: list[float]) -> list[float]:
    """A few numbers whose exact sum is that of `values`: each is what those before it leave, rounded."""
    found: list[float] = []
    while (rest := math.fsum([*values, *(-each for each in found)])) and math.isfinite(rest):
        found.append(rest)
    return [*found, rest]


class PartedTable:
    """Answers as `_core.Table` does, of rows that are read part by part."""

    def __init__(self, records: Records, table: str) -> None:
        self._records, self._table = records, table

    def __len__(self) -> int:
        return int(self._ask(self._records.lazy(self._table).select(pl.len())).item())

    def values(self, column: str) -> list[Any]:
        return self._records[self._table].get_column(column).to_list()

    def adds_up(self, whole: str, parts: Sequence[str]) -> bool:
        return _core.Table.of(self._records[self._table].rechunk()).adds_up(whole, parts)

    def totals(
        self,
        column: str,
        key: str,
        ids: Sequence[int] | None,
        window: tuple[int, int] | None = None,
        *,
        greatest: bool = False,
    ) -> dict[int, Any]:
        value, inside = pl.col(column), pl.lit(True)
        if window is not None:
            inside = (pl.col("t_ps") > window[0]) & (pl.col("t_ps") <= window[1])
        rows = self._of(key, ids).filter(inside)
        is_whole, is_float = pl.lit(True), rows.collect_schema()[column] == pl.Float64
        if is_float:
            is_whole = (value.floor() == value).all() & (value.abs().max() < 2.0**96).fill_null(True)
        found = self._ask(
            rows.group_by("replicate")
            .agg(
                known=value.count(),
                most=value.max(),
                # Does not depend on the order of rows; wraps where it is not used.
                whole=value.cast(pl.Int128, strict=False).sum(),
                is_whole=is_whole,
            )
            .sort("replicate")
        )
        kind = float if is_float else int

        sums: dict[int, list[float]] = {}
        if is_float and not greatest and not found["is_whole"].all():
            for part in self._records.frames(self._table):
                mine = self._ask(
                    self._of(key, ids, part).filter(inside).select("replicate", value).drop_nulls()
                )
                for (number,), values in mine.group_by("replicate"):
                    replicate = int(number)
                    sums[replicate] = _distilled([*sums.get(replicate, ()), *values[column]])

        return {
            row["replicate"]: None
            if not row["known"]
            else row["most"]
            if greatest
            else kind(row["whole"])
            if row["is_whole"]
            else math.fsum(sums[row["replicate"]])
            for row in found.iter_rows(named=True)
        }

    def covers(self, key: str, ids: Sequence[int], window: tuple[int, int]) -> tuple[list[int], bool]:
        ends = (
            self._of(key, ids)
            .group_by("replicate", key)
            .agg(
                low=(pl.col("t_ps") == window[0]).any() | (window[0] == 0),
                high=(pl.col("t_ps") == window[1]).any(),
            )
        )
        found = self._ask(ends)
        known = set(found.get_column(key))
        return [each for each in ids if each not in known], found.select(
            (pl.col("low") & pl.col("high")).all()
        ).item()

    def _of(self, key: str, ids: Sequence[int] | None, rows: pl.LazyFrame | None = None) -> pl.LazyFrame:
        rows = self._records.lazy(self._table) if rows is None else rows
        return rows if ids is None else rows.filter(pl.col(key).is_in(list(ids)))

    def _ask(self, rows: pl.LazyFrame) -> pl.DataFrame:
        return self._records.collected(self._table, rows)


_TYPES = {"u32": pl.UInt32, "u64": pl.UInt64, "f64": pl.Float64, "text": pl.String}


@functools.cache
def empty_table(table: str) -> pl.DataFrame:
    """A known table without rows; of another, nothing."""
    columns = _schemas()[table]["columns"] if table in _schemas() else []
    return pl.DataFrame(
        schema={each["name"]: _TYPES[each["type"]] for each in columns if each["type"] in _TYPES}
    )


def save_tables(tables: Mapping[str, pl.DataFrame], directory: Path) -> None:
    """Write each table as `directory/NAME.parquet`. A file appears whole or not at all. Raises WeirlabError
    when one cannot be written."""
    for name, frame in tables.items():
        save_table(frame, directory / f"{name}.parquet")


def save_table(frame: pl.DataFrame, path: Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a table as a file that appears whole or not at all, with some `metadata`. Raises WeirlabError
    when it cannot be written."""
    written = dict(metadata or {})
    with whole(path) as unfinished:
        try:
            frame.write_parquet(unfinished, compression="zstd", metadata=written)
        except pl.exceptions.PolarsError:
            # It does not report what the system said, as of a full disk: ask again, without it in between.
            content = BytesIO()
            frame.write_parquet(content, compression="zstd", metadata=written)
            unfinished.write_bytes(content.getbuffer())
