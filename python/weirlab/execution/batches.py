"""A batch: part of a plan that one process works off, whose rows it writes into the store itself.

A batch names places of a plan and no more; the plan lies in the store. Its receipt says what became of the
places and is as short. So a scheduler carries some hundred bytes each way, whatever a batch finds.

One file: a batch, its receipt and the worker that makes one of the other.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
import polars as pl
import psutil

from weirlab.errors import InputError, Interrupted, ScenarioError, UnsupportedError, WeirlabError
from weirlab.execution.guard import Guard, LimitReached
from weirlab.results import Provenance
from weirlab.store import Row, Store, engine, frame_of

Watch = Callable[[int, int], None]
"""Called now and then with how much of a piece of work is done, and of how much; may raise to end it."""
Ranges = tuple[tuple[int, int], ...]
"""Places `first <= place < stop`."""

FLUSH_S = 5.0
"""How often a batch writes what it has: what a worker that dies loses at most, but for one run."""
_CHUNK_S = 0.5
"""Replicates that are simulated at once take about this long, so that an interruption waits no longer."""
_CHUNK = 4096
_PLANS = {
    "runs": "weirlab.studies.plan",
    "searches": "weirlab.searches.planned",
    "campaign": "weirlab.campaigns.planned",
    "calls": "weirlab.execution.calls",
}
"""Modules with the function `plan_of(document)`, by the kind of a plan. The kind `module:NAME` is
a module of another package."""


class Point(Protocol):
    """A point of a plan that is about to be executed."""

    def key(self, replicate: int) -> tuple[str, int]:
        """The address of a result, and its seed. It holds all that decides the result but the engine."""
        ...

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:
        """The rows of some replicates, in their order; depends on nothing else."""
        ...


class Plan(Protocol):
    """What is to be executed: so many replicates of each of some points. Everything follows from its
    document, in any process."""

    replicates: int
    order: np.ndarray
    """The number of the point at each place, shape (points,): what is wanted first comes first."""

    def document(self) -> Mapping[str, object]:
        """JSON values, with the `kind` of the plan."""
        ...

    def point(self, number: int) -> Point:
        """A point. Raises ScenarioError where it cannot be."""
        ...

    def lists_impossible(self) -> bool:
        """Whether points that cannot be are listed; otherwise they fail."""
        ...


class Growing(Plan, Protocol):
    """A plan that has points which its document does not know: they are chosen by results."""

    def given_point(self, number: int, given: Mapping[str, str]) -> Point:
        """A point, by what was given of it. Raises ScenarioError where it cannot be."""
        ...


@dataclass(frozen=True)
class Limits:
    """What one run may need; None: anything."""

    seconds: float | None = None
    """Wall-clock time."""
    memory_bytes: int | None = None
    """Of the process that executes it."""


NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Places of a plan, in turn: place `p` is replicate `p % replicates` of the point at
    `p // replicates` in the order of the plan."""

    store: str
    plan: str
    engine: str
    """Another one refuses the batch."""
    sitting: str
    places: Ranges
    given: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """What the plan does not know of points, by number; it stands in the `document` of their rows."""
    limits: Limits = NO_LIMITS
    most_s: float = 30.0
    """When this time is over, the rest is handed back."""
    shares: bool = True
    """Whether other plans may have made some of the results already."""
    guess_s: float | None = None
    """Predicted cost of a run."""
    give_up_s: float | None = None
    """Of a pilot: how long to wait for its first run."""


@dataclass(kw_only=True)
class Receipt:
    """What became of a batch; its worker fills it in."""

    done: int = 0
    shared: int = 0
    """How many of these had been made for another plan."""
    failed: int = 0
    first_failure: str = ""
    left: Ranges = ()
    """Places that were not tried."""
    seconds: float = 0.0
    """Wall-clock time of all."""
    bytes: int = 0
    """Of the rows in memory."""
    disk_bytes: int = 0
    """Of the objects written."""
    objects: int = 0
    memory_bytes: int = 0
    """By which it made its process grow at most; 0 where a greater batch came before, or nobody knows."""
    predicted_s: float | None = None
    """Cost of a run that was given up."""
    stopped: bool = False
    """Whether an interruption ended it."""
    is_first: bool = False
    """Whether it was the first batch of its plan in its process, which also loads what it needs."""


class OtherEngine(WeirlabError):
    """A worker would compute other results."""

    def __init__(self, asked: str, found: str, where: str = "") -> None:
        super().__init__(asked, found, where)
        self.where = where or f"{socket.gethostname()}"
        self.asked, self.found = asked, found

    def __str__(self) -> str:
        return f"worker {self.where} has the engine {self.found}, and the results are of {self.asked}"


class GivenUp(Exception):
    """A pilot took too long; `seconds` are predicted for the run."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def run_batch(
    batch: Batch, *, beat: Callable[[float], None] | None = None, own_process: bool = True
) -> Receipt:
    """Execute a batch, and write its rows into the store.

    Args:
        beat: Called about every 50 ms with how many places are done; may raise Interrupted or
            KeyboardInterrupt, upon which the rest is handed back.
        own_process: Whether a run that does not end, or needs too much memory, may end the process.

    Raises:
        OtherEngine: It would give other results here.
        WeirlabError: The store cannot be written.
    """
    if batch.engine != engine():
        raise OtherEngine(batch.engine, engine())
    return _Worker(batch, beat, own_process).work()


class _Worker:
    """Works off one batch."""

    def __init__(self, batch: Batch, beat: Callable[[float], None] | None, own_process: bool) -> None:
        self._batch = batch
        self._beat = beat
        self._store = _opened(batch.store)
        self._plan = _plan(batch.store, batch.plan)
        self._guard = Guard(batch.limits.seconds, batch.limits.memory_bytes, own_process=own_process)
        self._rows: list[Row] = []
        self._copied: list[pl.DataFrame] = []
        self._began = self._flushed = time.monotonic()
        self._receipt = Receipt(is_first=batch.plan not in _begun)
        self._each_s = batch.guess_s
        _begun.add(batch.plan)
        self._memory_before = max(_peak_bytes(), psutil.Process().memory_info().rss)

    def work(self) -> Receipt:
        """All of it, or as much as time allows."""
        left = list(self._batch.places)
        ended = self._store.ends(self._batch.sitting)
        origin = _origin(self._batch.store)
        try:
            while left and (self._dealt_with == 0 or self._elapsed() < self._batch.most_s):
                first, stop = left[0]
                number, replicate = divmod(first, self._plan.replicates)
                last = min(stop, (number + 1) * self._plan.replicates)
                taken = self._of_point(int(self._plan.order[number]), replicate, last - first, first, ended)
                left[0] = (first + taken, stop)
                if first + taken == stop:
                    left.pop(0)
                if time.monotonic() - self._flushed > FLUSH_S:
                    self._flush(origin)
        except (Interrupted, KeyboardInterrupt):
            self._receipt.stopped = True
        except GivenUp as given_up:
            self._receipt.predicted_s = given_up.seconds
        self._flush(origin)
        self._receipt.left = tuple(left)
        self._receipt.seconds = self._elapsed()
        self._receipt.memory_bytes = max(0, _peak_bytes() - self._memory_before)
        return self._receipt

    @property
    def _dealt_with(self) -> int:
        return self._receipt.done + self._receipt.failed

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _of_point(
        self, number: int, first: int, many: int, place: int, ended: Mapping[int, Mapping[str, str]]
    ) -> int:
        """Execute some replicates of a point, from the `first` of `many`; how many were dealt with."""
        started, began = datetime.now(UTC), time.monotonic()
        row = Row(point=number, replicate=first, seed=0, status="failed", started=started)
        if place in ended:
            self._fail(replace(row, status=ended[place]["status"], reason=ended[place]["reason"]))
            return 1
        try:
            with self._guarded(place):
                point = self._point(number)
                addresses = [point.key(replicate) for replicate in range(first, first + many)]
        except (ScenarioError, UnsupportedError) as error:
            lists = self._plan.lists_impossible() and isinstance(error, ScenarioError)
            reason = "; ".join(each.message for each in error.problems)
            rows = [replace(row, replicate=replicate) for replicate in range(first, first + many)]
            for each in rows:
                if lists:
                    document = self._document(number, None)
                    self._rows.append(replace(each, status="impossible", reason=reason, document=document))
                    self._receipt.done += 1
                else:
                    self._fail(replace(each, reason=f"not legal: {reason}"))
            return many
        except LimitReached as error:
            self._fail(replace(row, status=error.status, reason=str(error)))
            return 1
        taken = 0
        while taken < many:
            at = place + taken
            if taken and (at in ended or self._elapsed() > self._batch.most_s):
                break
            if self._take_shared(number, first + taken, addresses[taken]):
                taken += 1
                continue
            chunk = self._chunk(many - taken)
            chunk = next(
                (i for i in range(1, chunk) if at + i in ended or self._is_known(addresses[taken + i])), chunk
            )
            some = addresses[taken : taken + chunk]
            taken += self._execute(point, number, first + taken, some, at)
            self._each_s = (time.monotonic() - began) / taken
        return taken

    def _point(self, number: int) -> Point:
        given = self._batch.given.get(number)
        return (
            self._plan.point(number)
            if given is None
            else cast(Growing, self._plan).given_point(number, given)
        )

    def _document(self, number: int, found: str | None) -> str | None:
        given = self._batch.given.get(number)
        return found if given is None else json.dumps(given, sort_keys=True)

    def _chunk(self, most: int) -> int:
        if self._each_s is None or self._batch.limits.seconds is not None:
            return 1
        time_s = min(_CHUNK_S, self._batch.most_s - self._elapsed())
        return max(1, min(most, _CHUNK, int(time_s / max(self._each_s, 1e-6))))

    def _execute(
        self, point: Point, number: int, first: int, addresses: Sequence[tuple[str, int]], place: int
    ) -> int:
        """Run replicates at once; one by one where one of them fails."""
        started, began = datetime.now(UTC), time.monotonic()
        replicates = range(first, first + len(addresses))
        try:
            with self._guarded(place) as watch:
                rows = point.run(replicates, watch)
        except (Interrupted, KeyboardInterrupt, GivenUp):
            raise
        except Exception as error:
            if len(addresses) > 1:
                return self._execute(point, number, first, addresses[:1], place)
            key, seed = addresses[0]
            status = error.status if isinstance(error, LimitReached) else "failed"
            what = (
                str(error)
                if isinstance(error, WeirlabError | LimitReached)
                else f"{type(error).__name__}: {error}"
            )
            self._fail(
                Row(
                    point=number,
                    replicate=first,
                    seed=seed,
                    key=key,
                    status=status,
                    reason=what or type(error).__name__,
                    started=started,
                    seconds=time.monotonic() - began,
                )
            )
            return 1
        each_s = (time.monotonic() - began) / len(rows)
        self._rows += [
            replace(
                row,
                key=key,
                seed=seed,
                started=started,
                seconds=each_s,
                document=self._document(number, row.document),
            )
            for row, (key, seed) in zip(rows, addresses, strict=True)
        ]
        self._receipt.done += len(rows)
        return len(rows)

    def _fail(self, row: Row) -> None:
        self._rows.append(row)
        self._receipt.failed += 1
        self._receipt.first_failure = (
            self._receipt.first_failure or f"point {row.point}, replicate {row.replicate}: {row.reason}"
        )

    def _guarded(self, place: int) -> Any:
        def ending(status: str, reason: str) -> None:
            """Say why, before the process ends."""
            self._store.note_end(self._batch.sitting, place, status, reason)

        def watch(part: int, whole: int) -> None:
            share = part / max(1, whole)
            waited = self._elapsed()
            if (
                self._batch.give_up_s is not None
                and not self._rows
                and waited > self._batch.give_up_s
                and share < 1
            ):
                raise GivenUp(waited / max(share, 1e-3))
            if self._beat is not None:
                self._beat(self._dealt_with + min(share, 1.0))

        return self._guard.around(watch, ending)

    def _is_known(self, address: tuple[str, int]) -> bool:
        return self._batch.shares and address in _known(self._batch.store)

    def _take_shared(self, number: int, replicate: int, address: tuple[str, int]) -> bool:
        """Whether the result is there already, made for another plan; it is then written for this
        one, too."""
        if not self._batch.shares:
            return False
        found = _known(self._batch.store).get(*address)
        if found is None:
            return False
        self._copied.append(
            found.with_columns(
                plan=pl.lit(self._batch.plan),
                point=pl.lit(number, pl.UInt32),
                replicate=pl.lit(replicate, pl.UInt32),
                document=pl.lit(self._document(number, found.item(0, "document")), pl.String),
            )
        )
        self._receipt.done += 1
        self._receipt.shared += 1
        return True

    def _flush(self, origin: str) -> None:
        self._flushed = time.monotonic()
        if not self._rows and not self._copied:
            return
        made = frame_of(self._rows, self._batch.plan, origin, self._batch.sitting)
        rows = pl.concat([made, *self._copied])
        before = self._store.written_bytes
        self._store.write(rows)
        self._receipt.disk_bytes += self._store.written_bytes - before
        self._receipt.objects += 1
        self._receipt.bytes += int(rows.estimated_size())
        self._rows, self._copied = [], []


def _peak_bytes() -> int:
    """The most memory that this process has had; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


class _Known:
    """Results that other plans have made, as they were when this process first asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._objects = store.objects()
        self._places: dict[tuple[str, int], tuple[str, int]] = {}
        """The object of each result, and its row there."""
        for name in self._objects:
            rows = store.read([name], ["key", "seed", "status"]).with_row_index().filter(status="ok")
            self._places.update(
                ((key, seed), (name, row)) for row, key, seed in rows.drop("status").iter_rows()
            )
        self._last: tuple[str, pl.DataFrame] | None = None

    def __contains__(self, address: tuple[str, int]) -> bool:
        return address in self._places

    def get(self, key: str, seed: int) -> pl.DataFrame | None:
        """The row of a result, if there is one."""
        if (key, seed) not in self._places:
            return None
        name, row = self._places[key, seed]
        if self._last is None or self._last[0] != name:
            self._last = (name, self._store.read([name]))
        found = self._last[1].slice(row, 1)
        return found if found.height else None


@functools.cache
def _opened(url: str) -> Store:
    return Store.open(url)


@functools.cache
def _known(url: str) -> _Known:
    return _Known(_opened(url))


_here: dict[tuple[str, str], Plan] = {}


_begun: set[str] = set()
"""Plans of which this process has begun a batch."""


def known_here(url: str, name: str, plan: Plan | None) -> None:
    """A plan that batches of this process need not read from the store; None: not any more."""
    if plan is None:
        _here.pop((url, name), None)
    else:
        _here[url, name] = plan


def _plan(url: str, name: str) -> Plan:
    return _here.get((url, name)) or _plan_in(url, name)


@functools.lru_cache(4)
def _plan_in(url: str, name: str) -> Plan:
    document = _opened(url).document("plans", name)
    kind = str(document.get("kind"))
    home = kind.removeprefix("module:") if kind.startswith("module:") else _PLANS.get(kind)
    if home is None:
        raise InputError(f"{url}/plans/{name}.json: a plan of the kind {kind!r}, unknown here")
    plan: Plan = import_module(home).plan_of(document)
    return plan


@functools.cache
def _origin(url: str) -> str:
    """The id of what is known of this machine and its programs, in the store."""
    facts = asdict(Provenance.now())
    for moment in ("started", "finished", "command", "load_average"):
        facts.pop(moment)
    return _opened(url).keep("origins", {**facts, "engine": engine(), "machine": platform.machine()})


def digest(*parts: str) -> str:
    """The address of a result that these texts decide."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part.encode())
    return found.hexdigest()[:32]
