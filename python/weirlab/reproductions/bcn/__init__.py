"""The calibration of BCN with PAUSE and drift of October 2006: its tables, its observations, and the pictures
that its text names.

Every number is that of runs of the ready-made scenarios, with the seeds 1, 2, ... The tables give minimum,
mean, maximum and standard deviation over 300 runs."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from weirlab.reproductions.bcn.cases import CASES, LITERAL_CASES, of_case
from weirlab.reproductions.bcn.claims import claims_of, our_view
from weirlab.reproductions.bcn.tables import PUBLISHED_RUNS, drift_row, our_values, table_rows
from weirlab.reproductions.bcn.traces import PICTURES, WORST_PICTURE, series_of, worst_run
from weirlab.reproductions.bcn.victims import VARIANTS, of_variant
from weirlab.reproductions.frame import Effort, Findings
from weirlab.runs import replicate_seeds

VICTIM_RUNS = 30
"""Of each variant with a victim flow."""


def reproduce(effort: Effort) -> Findings:
    """Make all runs, and compare."""
    runs = PUBLISHED_RUNS // 10 if effort.quick else PUBLISHED_RUNS
    seeds = replicate_seeds(effort.seed, runs)
    cases = [*CASES, *LITERAL_CASES]
    progress = _Progress(effort, len(cases) * runs + len(VARIANTS) * VICTIM_RUNS)
    if effort.here:
        of_cases = [of_case(case, seeds, effort.threads, progress.part(runs)) for case in cases]
        of_victims = [
            of_variant(name, seeds[:VICTIM_RUNS], effort.threads, progress.part(VICTIM_RUNS))
            for name in VARIANTS
        ]
    else:
        parts = [seeds[first : first + _AT_ONCE] for first in range(0, runs, _AT_ONCE)]
        of_cases = effort.spread(of_case, [(case, part, 1) for case in cases for part in parts])
        of_victims = effort.spread(of_variant, [(name, seeds[:VICTIM_RUNS], 1) for name in VARIANTS])
    made, victims = pl.concat(of_cases), pl.concat(of_victims)
    drawn = effort.spread(series_of, [(picture, effort.seed) for picture in PICTURES])
    drawn.append(series_of(WORST_PICTURE, worst_run(made)))
    values = our_values(made)
    return Findings.of(
        "bcn",
        effort,
        rows=[*table_rows(values), drift_row(values)],
        claims=claims_of(our_view(made, victims), quick=effort.quick),
        remarks=_REMARKS,
        tables={
            "configurations": made,
            "victims": victims,
            "queues": pl.concat([queue for queue, _ in drawn]),
            "rates": pl.concat([rates for _, rates in drawn]),
        },
    )


_AT_ONCE = 5
"""Runs that one worker makes in turn."""


class _Progress:
    """Runs done of all runs, reported in parts one after the other."""

    def __init__(self, effort: Effort, total: int) -> None:
        self._tell = effort.progress
        self._total = total
        self._begun = 0

    def part(self, runs: int) -> Callable[[int, int], None]:
        """The progress of the next `runs` runs."""
        before = self._begun
        self._begun += runs

        def watch(done: int, total: int) -> None:
            if self._tell is not None:
                self._tell(before + done * runs // max(1, total), self._total)

        return watch


_REMARKS = (
    "Jitter of sampling (uniform from 0 to twice the mean) and of pacing (15 %) were chosen to fit the "
    "published fairness: for these two the table is no validation.",
    "The restart rule after BCN(0,0) deviates from the text: the lesser of 1 Gbit/s and the rate before the "
    "stop; Tmax is doubled each time, Rmin is not halved. The rule to the letter has separate rows.",
    "Tolerances are 99 % intervals of the difference of two sets of runs, by the spread of both, and half a "
    "printed unit: of a hundred numbers that agree one is a misfit by chance.",
    "Comparisons in observations are decided when means lie more than two standard errors apart; published "
    "means have the error of their rounding, too.",
    "The headroom above the PAUSE threshold, 10 kB, is less than what four neighbours still send: in a few "
    "of 300 runs one or two frames are lost with PAUSE.",
)
