"""Calls of a function as a plan: none that has ended is made again, whoever asks for it.

What a call finds has an address: its function, the sources of this package and the values of its arguments.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from pydantic import BaseModel

import weirlab
from weirlab.errors import RunFailed
from weirlab.execution.batches import Watch, digest
from weirlab.execution.executors import Executor
from weirlab.execution.runner import carry
from weirlab.store import Row, Store

Item = TypeVar("Item")
Result = TypeVar("Result")


def kept(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    store: str | Path,
    *,
    processes: int | None = None,
    on: str | Executor | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """`function` of each item, in their order, of which a store may have some; see `mapped`. The results are
    JSON values, tuples and data frames of these. Raises RunFailed with the first reason where calls failed;
    the others are in the store."""
    at = Store.open(store, create=True)
    carried = carry(CallsPlan(function, items), at, on, threads=processes, progress=on_progress)
    if carried.failed:
        raise RunFailed(carried.first_failure)
    rows = at.rows(plan=carried.plan, columns=["plan", "point", "replicate", "status", "document"])
    return [_decoded(json.loads(each)) for each in rows.sort("point").get_column("document")]


def plan_of(document: Mapping[str, object]) -> CallsPlan:
    """The plan that a document describes."""
    return CallsPlan(*pickle.loads(base64.b64decode(str(document["calls"]))))


class CallsPlan:
    """Each call is a point."""

    replicates = 1

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.function, self.items = function, list(items)
        self.order = np.arange(len(self.items))

    def document(self) -> dict[str, object]:
        """See `weirlab.execution.Plan`."""
        calls = base64.b64encode(pickle.dumps((self.function, self.items))).decode()
        return {"kind": "calls", "name": "calls", "calls": calls}

    def lists_impossible(self) -> bool:
        """See `weirlab.execution.Plan`."""
        return False

    def point(self, number: int) -> _Call:
        """See `weirlab.execution.Plan`."""
        return _Call(self, number)


class _Call:
    def __init__(self, plan: CallsPlan, number: int) -> None:
        self._plan, self._number = plan, number

    @functools.cached_property
    def _key(self) -> str:
        called = _plain([self._plan.function, self._plan.items[self._number]])
        return digest("call", _sources(), json.dumps(called, sort_keys=True))

    def key(self, replicate: int) -> tuple[str, int]:
        """See `weirlab.execution.Point`."""
        return self._key, replicate

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:  # noqa: ARG002 (the protocol's)
        """See `weirlab.execution.Point`."""
        found = self._plan.function(self._plan.items[self._number])
        document = json.dumps(_encoded(found))
        return [Row(point=self._number, replicate=0, seed=0, key=self._key, document=document)]


_SOURCES = frozenset({".py", ".yaml", ".toml", ".csv", ".json"})


@functools.cache
def _sources() -> str:
    """A digest of this package: a function may use any of it, also ready-made scenarios and tables."""
    root, found = Path(weirlab.__file__).parent, hashlib.sha256()
    for path in sorted(each for each in root.rglob("*") if each.suffix in _SOURCES):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes().replace(b"\r", b""))
    return found.hexdigest()


def _plain(value: Any) -> Any:
    """What decides a call, as JSON. Raises TypeError where that cannot be said."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return ["file", hashlib.sha256(value.read_bytes()).hexdigest()]
    if isinstance(value, Enum):
        return [_name(type(value)), value.name]
    if isinstance(value, Mapping):
        return ["map", [[_plain(name), _plain(each)] for name, each in value.items()]]
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    if isinstance(value, BaseModel):
        dump = getattr(value, "dump", None)
        return [_name(type(value)), dump() if dump is not None else value.model_dump(mode="json")]
    if isinstance(value, functools.partial):
        return ["partial", _plain(value.func), _plain(value.args), _plain(value.keywords)]
    if is_dataclass(value) and not isinstance(value, type):
        parts = [[each.name, _plain(getattr(value, each.name))] for each in fields(value)]
        return [_name(type(value)), parts]
    if callable(value):
        return _name(value)
    raise TypeError(f"{type(value).__name__} has no address")


def _name(of: Any) -> str:
    return f"{of.__module__}:{of.__qualname__}"


def _encoded(value: Any) -> Any:
    """A result as JSON."""
    if isinstance(value, pl.DataFrame):
        content = io.BytesIO()
        value.write_ipc(content, compression="zstd")
        return {"frame": base64.b64encode(content.getvalue()).decode()}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(each) for each in value]}
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if isinstance(value, dict):
        return {"map": [[name, _encoded(each)] for name, each in value.items()]}
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "frame":
        return pl.read_ipc(io.BytesIO(base64.b64decode(content)))
    return (
        tuple(map(_decoded, content)) if kind == "tuple" else {name: _decoded(each) for name, each in content}
    )
