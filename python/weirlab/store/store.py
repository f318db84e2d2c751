"""The store of results: what was computed once is not computed again.

    weirlab-store.json                  that this is a store, and of which format
    plans/ID.json                       what was asked for: a study, complete
    origins/ID.json                     a machine and the programs on it
    results/ENGINE/DIGEST.parquet       rows, called after the digest of the file
    ends/SITTING/PLACE.json             what ended the process that executed it

An object appears whole, never changes and is called after its content: any number of writers are in nobody's
way, and a file that is damaged is known by its name. Rows are found by what they are the result of: their
`key` is the digest of the resolved scenario, and with the seed and the engine it decides every number.
Results of another engine lie in another folder and are never looked at, unless somebody asks for them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import polars as pl

import weirlab
from weirlab import _core
from weirlab.errors import InputError
from weirlab.store.places import Place, place_of
from weirlab.store.rows import ENDED, PROVENANCE, SCHEMA

FORMAT = 1
"""Version of the layout. A reader refuses any other."""
_MARK = "weirlab-store.json"
_FOLDERS = ("plans", "origins")
_FETCHES = 16
"""Objects that are read at once."""
_FILE_ROWS = 1_000_000
_GROUP_ROWS = 100_000
_CODE = (
    *("campaigns", "evaluation.py", "fields", "measures", "records.py", "runs.py", "scenario", "searches"),
    *("spec", "stats", "testbed", "theory", "units.py"),
)
"""The part of the package that decides results."""


@functools.cache
def engine() -> str:
    """What computes results here: the version, and a digest of the sources of the compiled core and of the
    packages that translate scenarios and evaluate records. The same on every platform."""
    digest = hashlib.sha256(_core.engine().encode())
    root = Path(weirlab.__file__).parent
    for name in _CODE:
        part = root / name
        for path in sorted(part.rglob("*.py")) if part.is_dir() else [part]:
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes().replace(b"\r", b""))
    return f"{_core.version()}-{digest.hexdigest()[:12]}"


class Store:
    """Results in a directory or in object storage. See the module for its layout."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.damaged: dict[str, str] = {}
        """Objects and documents that were met and cannot be read, with what follows."""
        self.written_bytes = 0
        """Of all objects with rows that this one wrote."""

    @classmethod
    def open(cls, url: str | Path, *, create: bool = False) -> Store:
        """The store at a path or a URL. Raises InputError where there is none, or one of another format.

        Args:
            create: Make one where there is nothing.
        """
        place = place_of(url)
        try:
            content = place.get(_MARK)
        except FileNotFoundError:
            if not create:
                raise InputError(f"{url}: no store of results (it has no {_MARK})") from None
            made = json.dumps({"weirlab_store": FORMAT, "weirlab": _core.version()}).encode() + b"\n"
            if place.put_new(_MARK, made):
                return cls(place)
            content = place.get(_MARK)
        except OSError as error:
            raise InputError(f"{url}: {error.strerror}") from error
        try:
            found = json.loads(content)["weirlab_store"]
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{url}/{_MARK}: not that of a store of results; if it was damaged, remove this file: the "
                "next study with this store writes it again"
            ) from None
        if found != FORMAT:
            raise InputError(f"{url}: a store of format {found}; this weirlab reads format {FORMAT}")
        return cls(place)

    @property
    def url(self) -> str:
        """Where it is."""
        return self._place.url

    def free_bytes(self) -> int | None:
        """What the disk of a directory still holds; None for object storage."""
        return None if "://" in self.url else shutil.disk_usage(self.url).free

    # --- documents

    def keep(self, folder: str, document: Mapping[str, object]) -> str:
        """Write a document into `plans` or `origins`, unless it is there undamaged; its id."""
        content = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
        name = hashlib.sha256(content).hexdigest()[:16]
        path = f"{folder}/{name}.json"
        if not self._place.put_new(path, content) and self._whole(path) is None:
            self._place.delete(path)
            self._place.put_new(path, content)
            self.damaged.pop(path, None)
        return name

    def document(self, folder: str, name: str) -> dict[str, object]:
        """A document by its id. Raises InputError where it is missing or damaged."""
        path = f"{folder}/{name}.json"
        content = self._whole(path)
        if content is None:
            raise InputError(f"{self.url}/{path}: {self.damaged.get(path, 'there is no such document')}")
        found: dict[str, object] = json.loads(content)
        return found

    def plans(self) -> dict[str, dict[str, object]]:
        """What was asked for, by id. What is damaged is left out, and noted in `damaged`."""
        found = {}
        for name in self.documents("plans"):
            with suppress(InputError):
                found[name] = self.document("plans", name)
        return found

    def _whole(self, path: str) -> bytes | None:
        """The content of a document; None where it is missing, or damaged, which is noted."""
        try:
            content = self._place.get(path)
        except FileNotFoundError:
            return None
        if hashlib.sha256(content).hexdigest()[:16] == Path(path).stem:
            return content
        self.damaged[path] = (
            "damaged: its content does not fit its name; the next start of that study writes it again, and "
            "--prune damaged removes it"
        )
        return None

    def documents(self, folder: str) -> list[str]:
        """The ids of all documents of a folder."""
        return [Path(name).stem for name in self._place.sizes(f"{folder}/") if name.endswith(".json")]

    # --- results

    def engines(self) -> dict[str, list[str]]:
        """The objects with rows, by the engine that made them."""
        found: dict[str, list[str]] = {}
        for name in self._place.sizes("results/"):
            parts = name.split("/")
            if len(parts) == 3 and parts[2].endswith(".parquet"):
                found.setdefault(parts[1], []).append(name)
        return found

    def objects(self, made_by: str | None = None) -> list[str]:
        """The names of all objects with rows of one engine. Default: that of this process."""
        folder = f"results/{made_by or engine()}/"
        return [name for name in self._place.sizes(folder) if name.endswith(".parquet")]

    def write(self, rows: pl.DataFrame, made_by: str | None = None) -> str:
        """Write rows as one object; its name. Raises WeirlabError when that cannot be done, and nothing is
        changed then."""
        buffer = BytesIO()
        rows.select(list(SCHEMA)).write_parquet(buffer, compression="zstd", row_group_size=_GROUP_ROWS)
        content = buffer.getvalue()
        name = f"results/{made_by or engine()}/{hashlib.sha256(content).hexdigest()[:32]}.parquet"
        self._place.put_new(name, content)
        self.written_bytes += len(content)
        return name

    def read(self, names: Sequence[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The rows of some objects, as they lie there. What is damaged is left out, and noted in `damaged`;
        what was compacted or pruned meanwhile is left out."""

        def fetched(name: str) -> pl.DataFrame | None:
            try:
                content = self._place.get(name)
            except FileNotFoundError:
                return None
            if hashlib.sha256(content).hexdigest()[:32] != Path(name).stem:
                self.damaged[name] = "its content does not fit its name; its rows do not count"
                return None
            try:
                return pl.read_parquet(BytesIO(content), columns=list(columns) if columns else None)
            except (pl.exceptions.PolarsError, OSError) as error:
                self.damaged[name] = f"{error}; its rows do not count"
                return None

        if len(names) == 1:
            frames = [fetched(names[0])]
        else:
            with ThreadPoolExecutor(_FETCHES) as pool:
                frames = list(pool.map(fetched, names))
        schema = {name: SCHEMA[name] for name in columns or SCHEMA}
        return pl.concat([pl.DataFrame(schema=schema), *(each for each in frames if each is not None)])

    def rows(
        self, *, plan: str | None = None, made_by: str | None = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """All rows of one engine, each result once, sorted by plan, point and replicate. A failure counts
        only where nobody succeeded."""
        needed = None if columns is None else list(dict.fromkeys([*_ORDER, "status", "started", *columns]))
        for _ in range(3):
            names = self.objects(made_by)
            found = self.read(names, needed)
            if set(names) <= {*self.objects(made_by), *self.damaged}:  # nobody compacted meanwhile
                break
        if plan is not None:
            found = found.filter(pl.col("plan") == plan)
        found = _once(found)
        return found if columns is None else found.select(list(columns))

    def digest(self, plan: str) -> str:
        """Of all that was found for a plan, without provenance: the same however it was computed."""
        found = self.rows(plan=plan, columns=[name for name in SCHEMA if name not in PROVENANCE])
        return hashlib.sha256(found.write_json().encode()).hexdigest()

    def note_end(self, sitting: str, place: int, status: str, reason: str) -> None:
        """Note that a place of a plan ends the process that executes it, for whoever executes it next."""
        content = json.dumps({"status": status, "reason": reason}).encode()
        self._place.put_new(f"ends/{sitting}/{place}.json", content)

    def ends(self, sitting: str) -> dict[int, dict[str, str]]:
        """What was noted: `status` and `reason` by place."""
        names = self._place.sizes(f"ends/{sitting}/")
        return {int(Path(name).stem): json.loads(self._place.get(name)) for name in names}

    # --- upkeep

    def compact(self) -> tuple[int, int]:
        """Put the rows of many objects into few large ones; how many objects there were, and are."""
        before = after = 0
        for made_by, names in self.engines().items():
            before += len(names)
            if len(names) <= 1:
                after += len(names)
                continue
            rows = _once(self.read(names))
            kept = (
                {self.write(part, made_by) for part in rows.iter_slices(_FILE_ROWS)} if rows.height else set()
            )
            after += len(kept)
            for name in names:
                if name not in kept and name not in self.damaged:
                    self._place.delete(name)
        return before, after

    def prune(
        self,
        *,
        stale: bool = False,
        damaged: bool = False,
        failed: bool = False,
        plans: Iterable[str] = (),
    ) -> dict[str, int]:
        """Remove what is not wanted any more; how many objects, rows and files of each kind.

        Args:
            stale: Results of other engines.
            damaged: Objects and documents that cannot be read, and files that were never finished.
            failed: Rows that hold no result.
            plans: All that was found for these, and what was asked for.
        """
        removed = {"stale": 0, "damaged": 0, "failed": 0, "plans": 0}
        plans = set(plans)
        for made_by, names in self.engines().items():
            if stale and made_by != engine():
                for name in names:
                    self._place.delete(name)
                removed["stale"] += len(names)
                continue
            for name in names:
                rows = self.read([name])
                if name in self.damaged:
                    if damaged:
                        self._place.delete(name)
                        del self.damaged[name]
                        removed["damaged"] += 1
                    continue
                unwanted = pl.col("plan").is_in(sorted(plans)) | (
                    pl.lit(failed) & ~pl.col("status").is_in(ENDED)
                )
                kept = rows.filter(~unwanted)
                if kept.height < rows.height:
                    removed["failed"] += (
                        rows.filter(~pl.col("plan").is_in(sorted(plans))).height - kept.height
                    )
                    if kept.height:
                        self.write(kept, made_by)
                    self._place.delete(name)
        if damaged:
            removed["damaged"] += self._prune_documents() + self._place.sweep()
        for plan in plans:
            self._place.delete(f"plans/{plan}.json")
            removed["plans"] += 1
        return removed

    def _prune_documents(self) -> int:
        """Remove documents that are damaged; how many."""
        paths = [f"{folder}/{name}.json" for folder in _FOLDERS for name in self.documents(folder)]
        damaged = [path for path in paths if self._whole(path) is None and self.damaged.pop(path, False)]
        for path in damaged:
            self._place.delete(path)
        return len(damaged)

    def fresh(
        self, seen: set[str], columns: Sequence[str], made_by: str | None = None
    ) -> Iterator[pl.DataFrame]:
        """The rows of objects that are not in `seen`, to which they are added once nothing has failed with
        them."""
        names = [name for name in self.objects(made_by) if name not in seen]
        if names:
            yield self.read(names, columns)
            seen |= set(names)


_ORDER = ("plan", "point", "replicate")


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    """Each result once, in order; a success before a failure, and else the earliest."""
    if _is_in_order(rows):
        return rows
    return (
        rows.with_columns(_lost=~pl.col("status").is_in(ENDED))
        .sort([*_ORDER, "_lost", "started"], nulls_last=True, maintain_order=True)
        .unique(subset=_ORDER, keep="first", maintain_order=True)
        .drop("_lost")
    )


def _is_in_order(rows: pl.DataFrame) -> bool:
    """Whether rows are sorted already, each once, as compaction leaves them."""
    later, same = pl.lit(False), pl.lit(True)
    for name in _ORDER:
        before = pl.col(name).shift(1)
        later = later | (same & (pl.col(name) > before))
        same = same & (pl.col(name) == before)
    return bool(rows.select(later.slice(1).all()).item())
