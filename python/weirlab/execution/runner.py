"""The runner: cuts a plan into batches, keeps an executor busy, and knows what became of every place.

Nothing here decides a result. Batches are cut by what runs have cost so far, the first ones by a pilot. A
worker may die at any moment: what it had written counts, the rest of its batch is cut in half, so that a run
that kills its worker is soon alone, and is given up after `DEATHS` of them.

One file: one loop, from a look at the store to the batches that come back.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import polars as pl

from weirlab.errors import Interrupted, WeirlabError
from weirlab.execution import batches
from weirlab.execution.asking import Asking, Carried, Reader
from weirlab.execution.costs import START_S, Costs, Need
from weirlab.execution.executors import Ended, Executor, Local, check_on, opened
from weirlab.execution.pace import Pace, State
from weirlab.execution.places import Places, count, halved
from weirlab.results import usable_cpus
from weirlab.store import Row, Store, engine, frame_of

DEATHS = 3
"""Workers that a run may take with it before it is given up."""
_PILOT_S = 0.5
_PILOT_PATIENCE_S = 3.0
"""How long the first run may take until its cost is predicted from how far it came."""
_PILOT_POINTS = 12
"""Runs of so many points say what others need; a first run, which loads what it needs, does not."""
_CREW = 64
"""Workers that do so at most."""
_LEAST_S = 0.25
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


Tell = Callable[[str], object]
Judge = Callable[[Need, Need], None]
"""Given what is needed for what is left, at least and at most; may raise to stop."""


def carry(
    plan: batches.Plan,
    store: Store,
    on: str | Executor | None = None,
    *,
    threads: int | None = None,
    limits: batches.Limits = batches.NO_LIMITS,
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
        plan: batches.Plan,
        store: Store,
        limits: batches.Limits,
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
        self._places = Places(plan.order, plan.replicates, asked=asking is not None)
        self._read = np.zeros(len(self._places) if self._readers else 0, dtype=bool)
        self._seen: set[str] = set()
        self._looked = self._look_took_s = 0.0
        self._began = time.monotonic()
        self._worked = self._began
        """When there were workers last."""
        self._alone = False
        self._deaths: dict[int, int] = {}
        self._judge: Judge | None = None
        self._queue: list[batches.Ranges] = []
        """Batches that are cut already: what is left of lost ones."""
        self._under_way: dict[int, batches.Ranges] = {}
        self._costs = Costs()
        self._each_s: float | None = None
        self._pilots = 0
        self._result = Carried(self._id, self._sitting, len(self._places))
        self._met_another: bool | None = None
        self._look()
        self._met_another = False
        self._ask()
        self._result.kept = self._places.done

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
            fits, places = self._places.located(numbers, replicates)
            ended, mine = ended[fits], mine[fits]
            if self._met_another is False and not mine.all():
                self._met_another = True
                self._places.go_elsewhere()
            if self._readers:
                new = fits.copy()
                new[fits] = ended & ~self._read[places]
                self._read[places[ended]] = True
                for each in self._readers:
                    each.read(rows.filter(pl.Series(new)))
            self._places.end(done=places[ended], failed=places[~ended & mine])
        self._looked = time.monotonic()
        self._look_took_s = self._looked - began

    def _ask(self) -> None:
        """Open what is wanted now."""
        if self._asking is not None:
            self._result.planned = self._places.ask(self._asking.asked())

    def _left(self) -> int:
        """Places that have not ended. When there are none, more may be wanted."""
        if not self._places.left and self._asking is not None:
            self._look()
            self._ask()
        return self._places.left

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
        self._result.done = max(0, self._places.done - self._result.kept)
        self._result.failed = self._places.failed
        return self._result

    def _begin(self, workers: int) -> str:
        """Work in this process as long as processes are not worth their start; what they are called."""
        limited = self._limits.seconds is not None or self._limits.memory_bytes is not None
        if not limited:  # a run that does not end would end this process
            batches.known_here(self._store.url, self._id, self._plan)
            try:
                self._here(_PILOT_S, give_up_s=_PILOT_PATIENCE_S)
                self._ask_judge(workers, own=True, last=True)
                if workers == 1 or (self._each_s or 0.0) * self._left() < START_S:
                    self._here(float("inf"))
            finally:
                batches.known_here(self._store.url, self._id, None)
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
            ended, rounds = self._places.done, self._asking.rounds
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

            receipt = batches.run_batch(batch, beat=beat, own_process=False)
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
            places = self._places.still_open(places)
            if not places:
                if not self._queue and not self._places.open:
                    return
                continue
            self._places.take(places)
            batch = self._batch(places, 1.5 * most_s)
            self._under_way[executor.submit(batches.run_batch, batch)] = places

    def _batch(self, places: batches.Ranges, most_s: float, give_up_s: float | None = None) -> batches.Batch:
        return batches.Batch(
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

    def _given(self, places: batches.Ranges) -> dict[int, Mapping[str, str]]:
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

    def _cut(self, most_s: float) -> batches.Ranges:
        """The next places that nobody has, as many as take this long."""
        if self._pilots < 2 * self._costs.crew and most_s != float("inf"):
            self._pilots += 1
            return self._places.apart(1 if self._pilots <= self._costs.crew else _PILOT_POINTS)
        if self._each_s is not None:
            return self._places.cut(int(np.clip(most_s / max(self._each_s, 1e-7), 1, 1_000_000)))
        return self._places.cut(1_000_000 if most_s == float("inf") else 1)

    # --- what comes back

    def _take(self, executor: Executor, ended: Ended) -> None:
        places = self._under_way.pop(ended.token, None)
        if places is None:
            return
        if ended.value is not None:
            self._settle(places, ended.value)
            return
        if isinstance(ended.error, batches.OtherEngine):
            self._note(f"{ended.error}: it is given nothing any more")
            executor.exclude(ended.error.where)
            self._places.reopen(places)
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
        rest = self._places.still_open(places)
        if not rest:
            return
        self._note(f"a batch was lost: {ended.lost}; {count(rest)} of its {count(places)} runs start again")
        if not ended.blamed:
            self._places.reopen(rest)
            return
        halves = halved(rest)
        if len(halves) == 1:
            place = halves[0][0][0]
            self._deaths[place] = self._deaths.get(place, 0) + 1
            if self._deaths[place] >= DEATHS:
                self._give_up(place)
                return
        self._queue += halves

    def _settle(self, places: batches.Ranges, receipt: batches.Receipt) -> None:
        self._places.settle(places, receipt.left)
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
        self._places.end(done=np.array([], dtype=np.int64), failed=np.array([place]))
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
            total = self._places.wanted * _STEPS
            self._progress(min(total, round((self._places.ended + more) * _STEPS)), total)
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
        ended, planned = self._places.ended, self._places.wanted
        rate = self._pace.rate_per_s(ended + more)
        return State(
            done=ended,
            planned=planned,
            failed=self._places.failed,
            rate_per_s=rate,
            left_s=None if rate is None else (planned - ended) / rate,
            remark="no workers" if self._alone else self._reader.remark() if self._reader else "",
        )
