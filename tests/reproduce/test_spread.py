"""The simulations of a reproduction are the same wherever they are made."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

from weirlab.reproductions.frame import Effort
from weirlab.reproductions.zrl.planes import SINGLE, Work
from weirlab.scenario import load


def times(left, right):
    return left * right


def test_calls_are_given_out_and_come_back_in_order():
    arguments = [(number, 3) for number in range(7)]
    told = []
    elsewhere = Effort(on="local:2", progress=lambda *how_far: told.append(how_far))
    assert (
        elsewhere.spread(times, arguments) == Effort().spread(times, arguments) == [3 * n for n in range(7)]
    )
    assert told[-1] == (7, 7)


def test_rows_of_runs_are_the_same_elsewhere():
    name, changes = SINGLE["og-32-none"]
    cases = [(load(name).assign({**changes, "run.seed": seed}), {"case": seed}) for seed in (1, 2)]
    here, there = (Work(Effort(on=on), seeds=2).run(cases) for on in (None, "local:2"))
    assert len(here) == 4
    assert_frame_equal(pl.DataFrame(here), pl.DataFrame(there), check_exact=True)
