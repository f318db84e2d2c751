"""The tests of the drafts on AI fabrics, and GPCNeT's canaries: what each reports, and how much runs vary.

The drafts have no acceptance limits and no numbers. So nothing is compared with published ones: what theory
says of a test is checked, everything else reported.
"""

from __future__ import annotations

import polars as pl

from weirlab.evaluation import measured
from weirlab.reproductions.ai_fabric.checks import Results, claims
from weirlab.reproductions.ai_fabric.tests import TRIALS, Trial
from weirlab.reproductions.frame import Effort, Findings
from weirlab.runs import replicate_seeds, simulate

__all__ = ["reproduce"]


def of_trial(trial: Trial, seed: int, seeds: int, threads: int | None) -> pl.DataFrame:
    """Values of the runs of a trial: columns `id condition measure unit replicate value`."""
    scenario = trial.scenario()
    found = measured(simulate(scenario, replicate_seeds(seed, seeds), threads=threads), scenario)
    return found.select(
        pl.lit(trial.id).alias("id"),
        pl.lit(trial.condition).alias("condition"),
        "measure",
        "unit",
        "replicate",
        "value",
    )


def reproduce(effort: Effort) -> Findings:
    """Run all tests."""
    threads = effort.threads if effort.here else 1
    chosen = [trial for trial in TRIALS if trial.quick or not effort.quick]
    made = effort.spread(
        of_trial,
        [
            (trial, effort.seed, min(trial.seeds, 2) if effort.quick else trial.seeds, threads)
            for trial in chosen
        ],
    )
    values = pl.concat(made)
    return Findings.of(
        "ai-fabric",
        effort,
        rows=[],
        claims=claims(Results(values)),
        remarks=_REMARKS,
        tables={"values": values, "tests": summary(values)},
    )


def summary(values: pl.DataFrame) -> pl.DataFrame:
    """By test, condition and measure: runs, mean, standard deviation (n - 1), coefficient of variation. The
    mean is null where a run gives no answer."""
    value = pl.col("value")
    return values.group_by("id", "condition", "measure", "unit", maintain_order=True).agg(
        runs=pl.len(),
        mean=pl.when(value.null_count() == 0).then(value.mean()),
        deviation=value.std(),
        cv=pl.when(value.mean() != 0).then(value.std() / value.mean()),
    )


_REMARKS = (
    "Tests by the ids of draft-calabria-bmwg-ai-fabric-training-bench (text of 1 October 2026), those that a "
    "simulator can run; smaller than the drafts ask for: 16 hosts on four leaves and four spines at 100 "
    "Gbit/s, 5 iterations, 1 to 64 MB. 9.4 is the table of 9.1 to 9.3.",
    "Messages go over TCP with DCTCP, an answer to marks above 300 kB, and RACK-TLP, which bears reordering.",
    "Not run: 6.1, 6.2, 6.7 (adapters), 10.2 (processors), 11.1, 12.1, 12.2 (switches), and 6.3 to 6.6, "
    "which compare transports of Ultra Ethernet.",
    "GPCNeT: canaries on a ring of three hosts that send at equal times, not when the message before has "
    "arrived; two congestors (all-to-all and incast) instead of four; no overhead of MPI.",
)
