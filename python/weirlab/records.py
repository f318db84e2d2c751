"""Records: the facts that a run wrote down, as named tables.

Tables and columns are those of the compiled core, which says what each means (docs/tables.md). Ids (`port`,
`flow`, `traffic`, `cause`, `kind`) are places in the dimension tables; `Records.named` puts the names beside
them. What is unknown is null, never 0.

Limits: a table is held in memory as a whole.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from weirlab import _core
from weirlab.errors import InputError
from weirlab.files import whole

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
        if table not in self._tables:
            if table not in self._made:
                raise KeyError(f"no table {table!r}; there are {', '.join(self)}")
            self._tables[table] = pl.DataFrame(self._made[table])
        return self._tables[table]

    def made_of(self, table: str) -> _core.Table:
        """The same table as the compiled core has it, which answers small questions in a hundredth of the
        time of a data frame. Raises KeyError with the tables that there are."""
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
            frames = [part[name] for part in parts]
            if "replicate" in frames[0].columns:
                shifted = [
                    frame.with_columns(pl.col("replicate") + pl.lit(first, frame.schema["replicate"]))
                    for frame, first in zip(frames, firsts, strict=False)
                ]
                tables[name] = pl.concat(shifted, rechunk=True)
            else:
                tables[name] = frames[0]
        return cls(tables)

    def size_bytes(self) -> int:
        """Memory of the tables, without those of names."""
        return sum(int(frame.estimated_size()) for frame in self.values() if "replicate" in frame.columns)

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
        of the file, under `weirlab`, and the names of all tables under `tables`."""
        for name, frame in self.items():
            metadata = {"tables": json.dumps(list(self)), "weirlab": json.dumps(_schemas().get(name))}
            save_table(frame, directory / f"{name}.parquet", metadata=metadata)

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
        tables = {}
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
                raise InputError(f"{file}: table '{file.stem}' lacks the columns {', '.join(lost)}")
            if not set(empty.columns) <= set(frame.columns):
                frame = pl.concat([empty, frame], how="diagonal_relaxed")
            tables[file.stem] = frame
        for name in sorted(together):
            if name not in tables:
                raise InputError(f"{directory / name}.parquet: this table is missing")
        if "runs" in tables:
            tables |= {name: empty_table(name) for name in columns_of() if name not in tables}
        return cls(tables)


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
            # It does not tell what the system said, as of a full disk: ask again, without it in between.
            content = BytesIO()
            frame.write_parquet(content, compression="zstd", metadata=written)
            unfinished.write_bytes(content.getbuffer())
