"""The runner: cuts a plan into batches, keeps an executor busy, and knows what became of every place.

Nothing here decides a result. Batches are cut by what runs have cost so far, the first ones by a pilot. A
worker may die at any moment: what it had written counts, the rest of its batch is cut in half, so that a run
that kills its worker is soon alone, and is given up after `DEATHS` of them.

One file: one object, whose methods share what became of every place.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
import polars as pl

from weirlab.errors import Interrupted, WeirlabError
from weirlab.execution.batches import (
    NO_LIMITS,
    Batch,
    Limits,
    OtherEngine,
    Plan,
    Ranges,
    Receipt,
    known_here,
    run_batch,
)
from weirlab.execution.costs import START_S, Costs, Need
from weirlab.execution.executors import Ended, Executor, Local, check_on, opened
from weirlab.execution.pace import Pace, State
from weirlab.results import usable_cpus
from weirlab.store import Row, Store, engine, frame_of

DEATHS = 3
"""Workers that a run may take with it before it is given up."""
_PILOT_S = 0.5
_PILOT_PATIENCE_S = 3.0
"""How long the first run may take until its cost is predicted from how far it came."""
_PILOT_RUNS = 4
_PILOT_MORE = 252
_PILOT_POINTS = 12
"""So many runs of so many points say what others need; a first run, which loads what it needs, does not. If
time is left, more of each follow: few short runs of a point take little longer than the point itself."""
_CREW = 64
"""Workers that do so at most."""
_LEAST_S = 0.25
_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, lie apart from each other, however many there are."""
_SHARES = 4
"""Batches that each worker has at least, so that all end at about the same time. No batch takes longer than
such a part of the time that has passed, so that what is known of costs, and of others, is not old."""
_LOOK_S = 1.0
"""How often the store is asked what other runners have finished."""
_LOOK_SHARE = 20.0
"""How much longer it is left alone than that took: a list of 10^5 objects takes a second."""
_DETAIL_S = 1.0
_JOURNAL_S = 600.0
_STOP_S = 5.0
_ALONE_S = 10.0
"""How long there may be no workers until that is said: they need some seconds to start."""
_STEPS = 1000

_OPEN, _TAKEN, _DONE, _FAILED, _UNASKED = range(5)


@dataclass
class Carried:
    """How it went."""

    plan: str
    """Id of the plan in the store."""
    sitting: str
    """Id of this work: rows that others made have another one."""
    planned: int
    """Places."""
    kept: int = 0
    """Places that were there before."""
    done: int = 0
    shared: int = 0
    """How many of these other plans had made."""
    failed: int = 0
    first_failure: str = ""
    lost: int = 0
    """Batches whose worker was lost."""
    notes: list[str] = field(default_factory=list)
    """What went wrong on the way, for a person."""


class Reader(Protocol):
    """Reads rows as they come, and says something about them."""

    columns: Sequence[str]
    """The columns of the store that it needs."""

    def read(self, rows: pl.DataFrame) -> None:
        """Rows of results, each once."""

    def remark(self) -> str:
        """What they say so far; nothing where there is nothing to say."""
        ...


class Asking(Protocol):
    """Reads rows as they come, and decides by them which replicates are wanted."""

    columns: Sequence[str]
    """The columns of the store that it needs."""

    def read(self, rows: pl.DataFrame) -> None:
        """Rows of results, each once."""

    def asked(self) -> np.ndarray:
        """How many replicates of each point are wanted, from the first, in the order of the plan: never fewer
        than before, and the same for the same results."""
        ...

    @property
    def given(self) -> Mapping[int, Mapping[str, str]]:
        """What the plan does not know of points that are wanted, by number; see `Growing`."""
        ...

    rounds: int
    """How often it is asked, about."""

    def expected(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """At least and at most: how many runs this will be in all, and how many like the first ones take as
        long."""
        ...


Tell = Callable[[str], object]
Judge = Callable[[Need, Need], None]
"""Given what is needed for what is left, at least and at most; may raise to stop."""


def carry(
    plan: Plan,
    store: Store,
    on: str | Executor | None = None,
    *,
    threads: int | None = None,
    limits: Limits = NO_LIMITS,
    progress: Callable[[int, int], None] | None = None,
    judge: Judge | None = None,
    told: Tell | None = None,
    reader: Reader | None = None,
    asking: Asking | None = None,
) -> Carried:
    """Execute what a store lacks of a plan.

    Args:
        on: An executor, or what `weirlab.execution.opened` takes. Default: this process where the work is
            small, and else processes of this machine.
        threads: How many processes these are. Default: one per CPU that this process may use.
        limits: Of each run. What exceeds them fails, and the rest goes on.
        progress: Told how much of how much is done; where it has an attribute `detail`, that is told the
            `State` once a second.
        judge: Told after a pilot what all will need, at least and at most; may raise to stop.
        told: Given a line on whatever happens, and how far it is every ten minutes.
        reader: Given the results as they come.
        asking: Decides by the results which replicates are wanted. Default: all of the plan.

    Raises:
        InputError: There is no such executor, or nobody can work.
        Interrupted: Ctrl-C. What has ended is in the store.
        WeirlabError: The store cannot be written.
    """
    if isinstance(on, str):
        check_on(on)  # also where the store has all, and nothing would be opened
    return _Runner(plan, store, limits, progress, told or str, reader, asking).run(on, threads, judge)


class _Runner:
    def __init__(
        self,
        plan: Plan,
        store: Store,
        limits: Limits,
        progress: Callable[[int, int], None] | None,
        told: Tell,
        reader: Reader | None,
        asking: Asking | None,
    ) -> None:
        self._plan = plan
        self._reader = reader
        self._asking = asking
        self._readers = [each for each in (asking, reader) if each is not None]
        self._pace = Pace()
        self._detailed = self._journalled = time.monotonic()
        self._store = store
        self._limits = limits
        self._progress = progress
        self._tell = told
        before = set(store.documents("plans"))
        self._id = store.keep("plans", plan.document())
        self._shares = bool(before - {self._id})
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        self._sitting = f"{socket.gethostname()}-{os.getpid()}-{moment}-{os.urandom(2).hex()}"
        count = len(plan.order) * plan.replicates
        self._state = np.zeros(count, dtype=np.uint8)
        if asking is not None:
            self._state[:] = _UNASKED
        self._read = np.zeros(count if self._readers else 0, dtype=bool)
        self._place_of = np.full(int(plan.order.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._place_of[plan.order] = np.arange(len(plan.order))
        self._seen: set[str] = set()
        self._looked = self._look_took_s = 0.0
        self._began = time.monotonic()
        self._worked = self._began
        """When there were workers last."""
        self._alone = False
        self._deaths: dict[int, int] = {}
        self._judge: Judge | None = None
        self._queue: list[Ranges] = []
        """Batches that are cut already: what is left of lost ones."""
        self._next = 0
        self._under_way: dict[int, Ranges] = {}
        self._costs = Costs()
        self._each_s: float | None = None
        self._pilots, self._spread = 0, 0.0
        self._result = Carried(self._id, self._sitting, count)
        self._met_another: bool | None = None
        self._look()
        self._met_another = False
        self._ask()
        self._result.kept = int((self._state == _DONE).sum())

    # --- what is known

    def _look(self) -> None:
        """Mark what is in the store, whoever put it there."""
        began = time.monotonic()
        columns = ["plan", "point", "replicate", "status", "sitting"]
        for each in self._readers:
            columns += [name for name in each.columns if name not in columns]
        for rows in self._store.fresh(self._seen, columns):
            rows = rows.filter(rows["plan"] == self._id)
            ended = rows["status"].is_in(["ok", "impossible"]).to_numpy()
            mine = (rows["sitting"] == self._sitting).to_numpy()
            numbers = rows["point"].to_numpy().astype(np.int64)
            replicates = rows["replicate"].to_numpy().astype(np.int64)
            fits = (numbers < len(self._place_of)) & (replicates < self._plan.replicates)
            places = self._place_of[numbers[fits]] * self._plan.replicates + replicates[fits]
            ended, mine = ended[fits], mine[fits]
            if self._met_another is False and not mine.all():
                # Another runner is at it: go on elsewhere.
                self._met_another = True
                self._next = random.SystemRandom().randrange(len(self._state))
            if self._readers:
                new = fits.copy()
                new[fits] = ended & ~self._read[places]
                self._read[places[ended]] = True
                for each in self._readers:
                    each.read(rows.filter(pl.Series(new)))
            failures = places[~ended & mine]
            self._state[failures] = _FAILED
            self._state[places[ended]] = _DONE
        self._looked = time.monotonic()
        self._look_took_s = self._looked - began

    def _by_point(self) -> np.ndarray:
        """The states of the places, shape (points, replicates)."""
        return self._state.reshape(len(self._plan.order), self._plan.replicates)

    def _ask(self) -> None:
        """Open what is wanted now."""
        if self._asking is None:
            return
        asked = np.arange(self._plan.replicates) < self._asking.asked()[:, np.newaxis]
        states = self._by_point()
        states[asked & (states == _UNASKED)] = _OPEN
        self._result.planned = int(asked.sum())

    def _left(self) -> int:
        """Places that have not ended. When there are none, more may be wanted."""
        left = int((self._state < _DONE).sum())
        if left or self._asking is None:
            return left
        self._look()
        self._ask()
        return int((self._state < _DONE).sum())

    def _note(self, text: str) -> None:
        if text not in self._result.notes:
            self._result.notes.append(text)
        self._tell(text)

    # --- work

    def run(self, on: str | Executor | None, threads: int | None, judge: Judge | None) -> Carried:
        """All of it."""
        self._judge = judge
        try:
            if on is None:
                on = self._begin(usable_cpus() if threads is None else threads)
            if self._left():
                executor = opened(on, told=self._note) if isinstance(on, str) else on
                if executor.dashboard:
                    self._tell(f"what the workers do: {executor.dashboard}")
                try:
                    self._work(executor)
                except KeyboardInterrupt:
                    self._stop(executor)
                    raise
                finally:
                    if isinstance(on, str):
                        executor.close()
        except (KeyboardInterrupt, Interrupted) as error:
            if isinstance(error, Interrupted) and str(error) != "stopped":
                raise
            self._look()
            raise Interrupted("interrupted") from None
        self._look()
        self._result.done = max(0, int((self._state == _DONE).sum()) - self._result.kept)
        self._result.failed = int((self._state == _FAILED).sum())
        return self._result

    def _begin(self, workers: int) -> str:
        """Work in this process as long as processes are not worth their start; what they are called."""
        limited = self._limits.seconds is not None or self._limits.memory_bytes is not None
        if not limited:  # a run that does not end would end this process
            known_here(self._store.url, self._id, self._plan)
            try:
                self._here(_PILOT_S, give_up_s=_PILOT_PATIENCE_S)
                self._ask_judge(workers, own=True, last=True)
                if workers == 1 or (self._each_s or 0.0) * self._left() < START_S:
                    self._here(float("inf"))
            finally:
                known_here(self._store.url, self._id, None)
        return f"local:{workers}"

    def _ask_judge(self, workers: int, *, own: bool, last: bool = False) -> None:
        """Say what is needed, as soon as enough is known of it, or nothing more will be for now (`last`)."""
        if self._judge is None or not workers or not self._left():
            return
        early = time.monotonic() - self._costs.first_at < _PILOT_PATIENCE_S
        if not self._costs.known and early and not last:
            return
        left, rounds = self._left(), 1
        expected: Sequence[tuple[int, float]] = [(left, left)] * 2
        if self._asking is not None:
            ended, rounds = int((self._state == _DONE).sum()), self._asking.rounds
            expected = [
                (max(left, runs - ended), max(left, cost - ended)) for runs, cost in self._asking.expected()
            ]
        needs = [self._costs.need(runs, cost, workers, own=own, rounds=rounds) for runs, cost in expected]
        if needs[0] is not None and needs[1] is not None:
            judge, self._judge = self._judge, None
            judge(needs[0], needs[1])

    def _here(self, most_s: float, give_up_s: float | None = None) -> None:
        """Work in this process."""
        began = time.monotonic()
        while self._left() and time.monotonic() - began < most_s:
            places = self._cut(min(most_s, 2.0))
            if not places:
                return
            batch = self._batch(places, min(most_s, 2.0), give_up_s)

            def beat(done: float) -> None:
                self._report(done)

            receipt = run_batch(batch, beat=beat, own_process=False)
            self._settle(places, receipt)
            if receipt.stopped:
                raise Interrupted("stopped")
            if receipt.predicted_s is not None:
                self._each_s = receipt.predicted_s
                return

    def _work(self, executor: Executor) -> None:
        """Keep the executor busy until nothing is left."""
        starting = min(max(1, executor.workers), _CREW)
        if self._each_s is None:
            self._costs.crew = starting
        self._pace.forget()
        self._worked = time.monotonic()
        while self._left():
            self._feed(executor)
            self._mind(executor)
            if not self._under_way:
                if self._left():
                    time.sleep(0.2)  # no workers yet
                self._look()
                self._report()
                continue
            for ended in executor.ended(0.2):
                if starting > 0:  # the rate is that of workers that have begun
                    self._pace.forget()
                    starting -= 1
                self._take(executor, ended)
            if time.monotonic() - self._looked > max(_LOOK_S, _LOOK_SHARE * self._look_took_s):
                self._look()
            self._ask_judge(executor.workers, own=isinstance(executor, Local))
            self._report()

    def _mind(self, executor: Executor) -> None:
        """Say when nobody works, and that somebody does again."""
        if executor.workers:
            self._worked = time.monotonic()
        alone = time.monotonic() - self._worked > _ALONE_S
        if alone and not self._alone:
            self._note(f"no worker has been there for {_ALONE_S:.0f} s; the work waits for some")
        elif self._alone and not alone:
            self._tell(f"{executor.workers} workers are there again")
        self._alone = alone

    def _feed(self, executor: Executor) -> None:
        workers = executor.workers
        while len(self._under_way) < workers * executor.per_worker:
            if self._each_s is None:
                most_s = _LEAST_S
            else:
                share = self._each_s * self._left() / max(1, workers * _SHARES)
                so_far = (time.monotonic() - self._began) / _SHARES
                most_s = min(max(min(share, so_far), _LEAST_S), executor.batch_s)
            places = self._queue.pop() if self._queue else self._cut(most_s)
            places = self._still_open(places)
            if not places:
                if not self._queue and not (self._state == _OPEN).any():
                    return
                continue
            for first, stop in places:
                self._state[first:stop] = _TAKEN
            batch = self._batch(places, 1.5 * most_s)
            self._under_way[executor.submit(run_batch, batch)] = places

    def _batch(self, places: Ranges, most_s: float, give_up_s: float | None = None) -> Batch:
        return Batch(
            store=self._store.url,
            plan=self._id,
            engine=engine(),
            sitting=self._sitting,
            places=places,
            given=self._given(places),
            limits=self._limits,
            most_s=most_s,
            shares=self._shares,
            guess_s=self._each_s,
            give_up_s=give_up_s,
        )

    def _given(self, places: Ranges) -> dict[int, Mapping[str, str]]:
        """What the plan does not know of the points of some places."""
        if self._asking is None or not self._asking.given:
            return {}
        each = self._plan.replicates
        numbers = {
            int(self._plan.order[i])
            for first, stop in places
            for i in range(first // each, (stop - 1) // each + 1)
        }
        return {number: self._asking.given[number] for number in sorted(numbers & set(self._asking.given))}

    def _cut(self, most_s: float) -> Ranges:
        """The next places that nobody has, as many as take this long."""
        if self._pilots < 2 * self._costs.crew and most_s != float("inf"):
            self._pilots += 1
            return self._apart(1 if self._pilots <= self._costs.crew else _PILOT_POINTS)
        many = 1 if self._each_s is None else int(np.clip(most_s / max(self._each_s, 1e-7), 1, 1_000_000))
        if self._each_s is None and most_s == float("inf"):
            many = 1_000_000
        count = len(self._state)
        if self._next >= count:
            self._next = 0
        ahead = self._state[self._next :] == _OPEN
        if not ahead.any():
            self._next = 0
            ahead = self._state == _OPEN
            if not ahead.any():
                return ()
        first = self._next + int(ahead.argmax())
        if self._asking is not None:
            return self._gathered(first, many)
        window = self._state[first : first + many] == _OPEN
        length = len(window) if window.all() else int((~window).argmax())
        self._next = first + length
        return ((first, first + length),)

    def _apart(self, many: int) -> Ranges:
        """Open places that lie apart, as their costs may: a few replicates of some points."""
        places = np.flatnonzero(self._state == _OPEN)
        chosen: dict[int, tuple[int, int]] = {}
        for _ in range(min(many, len(places))):
            self._spread = (self._spread + _GOLDEN) % 1.0
            number = int(places[int(len(places) * self._spread)]) // self._plan.replicates
            is_open = self._by_point()[number] == _OPEN
            first = int(is_open.argmax())
            run = is_open[first : first + _PILOT_RUNS + _PILOT_MORE]
            first += number * self._plan.replicates
            chosen[number] = (first, first + (len(run) if run.all() else int(run.argmin())))
        runs = [(first, min(stop, first + _PILOT_RUNS)) for first, stop in chosen.values()]
        if many > 1:
            rest = ((first + _PILOT_RUNS, stop) for first, stop in chosen.values())
            runs += [each for each in rest if each[0] < each[1]]
        return tuple(runs)

    def _gathered(self, first: int, many: int) -> Ranges:
        """So many open places from `first`, where points have other places between them."""
        stop = min(len(self._state), first + many * self._plan.replicates)
        places = np.flatnonzero(self._state[first:stop] == _OPEN)[:many] + first
        self._next = int(places[-1]) + 1
        return tuple((int(run[0]), int(run[-1]) + 1) for run in _runs(places))

    def _still_open(self, places: Ranges) -> Ranges:
        """The places without those that somebody else has finished meanwhile."""
        found: list[tuple[int, int]] = []
        for first, stop in places:
            wanted = np.flatnonzero(self._state[first:stop] < _DONE) + first
            if len(wanted):
                found += [(int(run[0]), int(run[-1]) + 1) for run in _runs(wanted)]
        return tuple(found)

    # --- what comes back

    def _take(self, executor: Executor, ended: Ended) -> None:
        places = self._under_way.pop(ended.token, None)
        if places is None:
            return
        if ended.value is not None:
            self._settle(places, ended.value)
            return
        if isinstance(ended.error, OtherEngine):
            self._note(f"{ended.error}: it is given nothing any more")
            executor.exclude(ended.error.where)
            self._reopen(places)
            return
        if ended.error is not None:
            self._look()
            if isinstance(ended.error, WeirlabError):
                raise ended.error
            raise WeirlabError(
                f"a batch could not be executed: {type(ended.error).__name__}: {ended.error}"
            ) from ended.error
        self._result.lost += 1
        self._look()
        rest = self._still_open(places)
        if not rest:
            return
        self._note(f"a batch was lost: {ended.lost}; {_count(rest)} of its {_count(places)} runs start again")
        if not ended.blamed:
            self._reopen(rest)
            return
        halves = _halved(rest)
        if len(halves) == 1:
            place = halves[0][0][0]
            self._deaths[place] = self._deaths.get(place, 0) + 1
            if self._deaths[place] >= DEATHS:
                self._give_up(place)
                return
        self._queue += halves

    def _reopen(self, places: Ranges) -> None:
        for first, stop in self._still_open(places):
            self._state[first:stop] = _OPEN

    def _settle(self, places: Ranges, receipt: Receipt) -> None:
        for first, stop in places:
            self._state[first:stop] = np.where(self._state[first:stop] == _FAILED, _FAILED, _DONE)
        for first, stop in receipt.left:
            self._state[first:stop] = _OPEN
        if receipt.failed:
            if not self._result.first_failure:
                self._result.first_failure = receipt.first_failure
                self._note(f"failed: {receipt.first_failure}")
            self._look()  # which of them
        self._result.shared += receipt.shared
        made = receipt.done + receipt.failed - receipt.shared
        if made:
            self._costs.add(receipt)
            latest = receipt.seconds / made
            self._each_s = latest if self._each_s is None else 0.7 * self._each_s + 0.3 * latest
        self._report()

    def _give_up(self, place: int) -> None:
        number, replicate = divmod(place, self._plan.replicates)
        point = int(self._plan.order[number])
        reason = f"its worker ended without a word, {DEATHS} times"
        row = Row(
            point=point, replicate=replicate, seed=0, status="died", reason=reason, started=datetime.now(UTC)
        )
        self._store.write(frame_of([row], self._id, "", self._sitting))
        self._state[place] = _FAILED
        self._result.first_failure = (
            self._result.first_failure or f"point {point}, replicate {replicate}: {reason}"
        )
        self._note(f"failed: point {point}, replicate {replicate}: {reason}")

    def _stop(self, executor: Executor) -> None:
        """Have what runs handed back, and wait a moment for it."""
        executor.stop()
        give_up = time.monotonic() + _STOP_S
        while self._under_way and time.monotonic() < give_up and executor.busy:
            for ended in executor.ended(0.2):
                self._under_way.pop(ended.token, None)

    def _report(self, more: float = 0.0) -> None:
        if self._progress is not None:
            ended = int(((self._state == _DONE) | (self._state == _FAILED)).sum())
            total = int((self._state != _UNASKED).sum()) * _STEPS
            self._progress(min(total, round((ended + more) * _STEPS)), total)
        now = time.monotonic()
        if now - self._detailed >= _DETAIL_S:
            self._detailed = now
            state = self.state(more)
            if (detail := getattr(self._progress, "detail", None)) is not None:
                detail(state)
            if now - self._journalled >= _JOURNAL_S:
                self._journalled = now
                self._tell(str(state))

    def state(self, more: float = 0.0) -> State:
        """How far it is; `more` runs are done that nobody has told of yet."""
        ended = int(((self._state == _DONE) | (self._state == _FAILED)).sum())
        planned = int((self._state != _UNASKED).sum())
        rate = self._pace.rate_per_s(ended + more)
        return State(
            done=ended,
            planned=planned,
            failed=int((self._state == _FAILED).sum()),
            rate_per_s=rate,
            left_s=None if rate is None else (planned - ended) / rate,
            remark="no workers" if self._alone else self._reader.remark() if self._reader else "",
        )


def _runs(places: np.ndarray) -> list[np.ndarray]:
    """Sorted numbers, cut where one is missing."""
    return np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)


def _count(places: Ranges) -> int:
    return sum(stop - first for first, stop in places)


def _halved(places: Ranges) -> list[Ranges]:
    """The same places as two batches; one place alone stays one."""
    total = _count(places)
    if total == 1:
        return [places]
    front: list[tuple[int, int]] = []
    back: list[tuple[int, int]] = []
    room = total // 2
    for first, stop in places:
        cut = min(stop, first + room)
        if cut > first:
            front.append((first, cut))
        if cut < stop:
            back.append((cut, stop))
        room -= cut - first
    return [tuple(front), tuple(back)]
