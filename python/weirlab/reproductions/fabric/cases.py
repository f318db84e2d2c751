"""What is simulated: scenarios after the publications, each with the measures of its numbers."""

from __future__ import annotations

import polars as pl

from weirlab.reproductions.fabric import hpcc, roce, uet
from weirlab.reproductions.fabric.case import of_case
from weirlab.reproductions.frame import Effort

CASES = (*uet.cases(), *hpcc.cases(), *roce.cases())


def simulated(effort: Effort) -> pl.DataFrame:
    """The measures of all cases."""
    chosen = [case for case in CASES if case.quick or not effort.quick]
    threads = effort.threads if effort.here else 1
    most = 5 if effort.quick else 1000
    made = effort.spread(of_case, [(case, effort.seed, min(case.seeds, most), threads) for case in chosen])
    return pl.concat(made)
