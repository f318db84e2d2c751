"""What is simulated: scenarios after the publications, each with the measures of its numbers."""

from __future__ import annotations

import polars as pl

from weirlab.reproductions.fabric import hpcc, roce, uet
from weirlab.reproductions.fabric.case import Case, of_case
from weirlab.reproductions.frame import Effort

CASES = (*uet.cases(), *hpcc.cases(), *roce.cases())


def simulated(effort: Effort) -> pl.DataFrame:
    """The measures of all cases."""
    chosen = [case for case in CASES if case.quick or not effort.quick]
    threads = effort.threads if effort.here else 1
    return pl.concat(
        effort.spread(of_case, [(case, effort.seed, _seeds(case, effort.quick), threads) for case in chosen])
    )


def _seeds(case: Case, quick: bool) -> int:
    return min(case.seeds, case.quick_seeds) if quick else case.seeds
