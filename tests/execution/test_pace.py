"""What is told of the progress of a study."""

from __future__ import annotations

import datetime as dates
import itertools
import math
import random
import time

import polars as pl
import pytest

from execution_plans import MadePlan
from weirlab.execution import State, batches, carry, runner
from weirlab.execution.executors import Ended
from weirlab.execution.pace import Pace
from weirlab.stats import mean_interval
from weirlab.store import Store
from weirlab.studies.intervals import Intervals


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_rate_is_that_of_the_last_minute():
    clock = Clock()
    pace = Pace(clock)
    assert pace.rate_per_s(100) is None
    for second in range(1, 200):
        clock.now = float(second)
        rate = pace.rate_per_s(100 + (3 * second if second < 100 else 300 + 7 * (second - 100)))
    assert rate == pytest.approx(7, rel=0.02)


def test_what_was_before_a_jump_of_the_clock_does_not_count():
    clock = Clock()
    pace = Pace(clock)
    done = 0.0
    for second in range(30):
        clock.now, done = float(second), 5.0 * second
        pace.rate_per_s(done)
    for jump in (1e9, -1e9):
        clock.now += jump
        assert pace.rate_per_s(done) is None
        for _ in range(10):
            clock.now, done = clock.now + 1, done + 5
            rate = pace.rate_per_s(done)
        assert rate == pytest.approx(5)


class Late:
    """Two workers that need a hundred seconds until they begin, and one for a batch."""

    workers, per_worker, batch_s, dashboard = 2, 1, 10.0, ""

    def __init__(self, clock):
        self.clock, self.waiting, self.tokens = clock, [], itertools.count()

    busy = property(lambda self: bool(self.waiting))

    def submit(self, function, batch):
        self.waiting.append(Ended(next(self.tokens), value=function(batch, own_process=False)))
        return self.waiting[-1].token

    def ended(self, timeout_s):
        one = self.waiting.pop(0)
        self.clock.now += 50.0 if one.token < self.workers else 0.5
        return [one]


def test_the_time_until_workers_begin_is_no_part_of_the_rate(tmp_path, monkeypatch):
    clock, shown = Clock(), Shown()
    monkeypatch.setattr(runner, "Pace", lambda: Pace(clock))
    monkeypatch.setattr(runner, "_DETAIL_S", 0.0)
    monkeypatch.setattr(runner, "_LEAST_S", 0.0)
    carry(MadePlan(500), Store.open(tmp_path, create=True), Late(clock), progress=shown)
    rates = [state.rate_per_s for state in shown.states if state.rate_per_s is not None]
    assert len(rates) > 5
    assert min(rates) > 1, "as if a worker had needed a second for a run"


class Gone(Late):
    """Workers that are not there for some seconds."""

    workers = property(lambda self: 0 if self.clock.now < 3 else 2)


def test_work_without_workers_is_told_until_there_are_some(tmp_path, monkeypatch):
    clock, shown, told = Clock(), Shown(), []
    monkeypatch.setattr(runner, "_DETAIL_S", 0.0)
    monkeypatch.setattr(runner, "_ALONE_S", 1.0)
    monkeypatch.setattr(runner.time, "monotonic", lambda: clock.now)

    def sleep(seconds):
        clock.now += seconds

    monkeypatch.setattr(runner.time, "sleep", sleep)
    carried = carry(
        MadePlan(20), Store.open(tmp_path, create=True), Gone(clock), progress=shown, told=told.append
    )
    assert carried.done == 20
    alone = "no worker has been there for 1 s; the work waits for some"
    assert [told.count(alone), told.count("2 workers are there again")] == [1, 1]
    assert {state.done for state in shown.states if state.remark == "no workers"} == {0}
    assert shown.states[-1].remark == ""


def test_a_state_reads_as_a_sentence():
    state = State(done=1234, planned=20064, failed=3, rate_per_s=12.0, left_s=1569.0, remark="widest ±3 %")
    assert str(state) == "1 234 of 20 064 runs, 3 failed, 12 a second, 26 min left, widest ±3 %"
    slow = State(done=0, planned=2, failed=0, rate_per_s=0.5 / 60, left_s=3e5)
    assert str(slow) == "0 of 2 runs, 30 an hour, 3 days left"
    assert str(State(done=0, planned=2, failed=0, rate_per_s=None, left_s=None)) == "0 of 2 runs"


def test_the_widest_interval_is_that_of_the_means():
    rng = random.Random(3)
    values = {
        (point, measure): [level + rng.gauss(0, spread) for _ in range(8)]
        for point in range(3)
        for measure, level, spread in (("delay", 1e12, 1e6), ("loss", 0.02, 0.001))
    }
    intervals = Intervals()
    for replicate in range(8):
        rows = [
            {
                "point": point,
                "measures": [
                    {"measure": m, "value": v[replicate]} for (p, m), v in values.items() if p == point
                ],
            }
            for point in range(3)
        ]
        intervals.read(pl.DataFrame(rows))
    expected = {}
    for key, list_of in values.items():
        interval = mean_interval(list_of)
        expected[key] = (interval.high - interval.mean) / abs(interval.mean)
    (point, measure), half = max(expected.items(), key=lambda item: item[1])
    found = intervals.widest()
    assert found[1:] == (measure, point)
    assert math.isclose(found[0], half, rel_tol=1e-9)
    assert intervals.remark().startswith("widest interval ±")


def test_an_interval_wider_than_its_mean_is_written_without_an_exponent():
    intervals = Intervals()
    for value in (0.0, 0.0, 0.0, 3.0):
        intervals.read(pl.DataFrame([{"point": 0, "measures": [{"measure": "loss", "value": value}]}]))
    assert intervals.remark() == "widest interval ±318 % (loss, point 0)"


class Shown:
    """A progress bar that keeps what it is told."""

    def __init__(self):
        self.states = []

    def __call__(self, done, total):
        pass

    def detail(self, state):
        self.states.append(state)


def test_a_wall_clock_that_jumps_changes_no_result(tmp_path, monkeypatch):
    def found(name):
        store = Store.open(tmp_path / name, create=True)
        carried = carry(MadePlan(40, 3), store, threads=1)
        assert carried.done == 120
        return store.digest(carried.plan)

    steady = found("steady")
    rng = random.Random(5)

    class Jumping(dates.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(rng.uniform(1e8, 4e9), tz)

    monkeypatch.setattr(batches, "datetime", Jumping)
    monkeypatch.setattr("weirlab.execution.runner.datetime", Jumping)
    monkeypatch.setattr(time, "time", lambda: rng.uniform(0, 4e9))
    assert found("jumping") == steady
    # The same work again, by somebody whose clock is wrong: every result is there once.
    store = Store.open(tmp_path / "jumping")
    assert carry(MadePlan(40, 3), store, threads=1).kept == 120
