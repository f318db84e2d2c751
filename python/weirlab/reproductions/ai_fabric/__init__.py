"""The tests of the drafts on AI fabrics, and GPCNeT's canaries: what each reports, and how much runs vary.

The drafts have no acceptance limits and no numbers. So nothing is compared with published ones: what theory
says of a test is checked, everything else reported.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from weirlab.evaluation import measured
from weirlab.reproductions.ai_fabric.checks import Results, claims
from weirlab.reproductions.ai_fabric.inference import TRIALS as OF_INFERENCE
from weirlab.reproductions.ai_fabric.tests import TRIALS as OLDER, Trial
from weirlab.reproductions.ai_fabric.transports import TRIALS as NEWER
from weirlab.reproductions.frame import Effort, Findings
from weirlab.runs import replicate_seeds, simulate

TRIALS = (*OLDER, *NEWER, *OF_INFERENCE)
SEEDS = 5
"""Of each, to see how much it varies; two of a quick run."""
DRAFTS = pl.read_csv(
    Path(__file__).parents[1] / "published" / "ai-fabric-tests.csv",
    comment_prefix="#",
    schema=dict.fromkeys(("id", "test", "runs", "needs"), pl.String),
)
"""All tests of the drafts: columns `id test runs needs`. A network alone can run those with `runs` `yes`."""


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
        [(trial, effort.seed, 2 if effort.quick else SEEDS, threads) for trial in chosen],
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
    mean is null where a run gives no answer. 8.4 and 9.4 are from 8.1 to 8.3 and from 9.1 to 9.3."""
    value, of = pl.col("value"), pl.col("id")
    links = values.filter(of.is_in(["8.1", "8.2", "8.3"]), pl.col("measure") == "jfi")
    jobs = values.filter(of.is_in(list(_OPERATIONS)), pl.col("measure") == "bandwidth")
    every = pl.concat(
        [
            values,
            links.with_columns(id=pl.lit("8.4")),
            jobs.with_columns(id=pl.lit("9.4"), measure=of.replace_strict(_OPERATIONS, default=None)),
        ]
    )
    return every.group_by("id", "condition", "measure", "unit", maintain_order=True).agg(
        runs=pl.len(),
        mean=pl.when(value.null_count() == 0).then(value.mean()),
        deviation=value.std(),
        cv=pl.when(value.mean() != 0).then(value.std() / value.mean()),
    )


_OPERATIONS = {"9.1": "all-reduce", "9.2": "all-to-all", "9.3": "all-gather"}


def _needs(runs: str) -> str:
    """Tests that are not run, by what they need."""
    missing = DRAFTS.filter(pl.col("runs") == runs, ~pl.col("id").is_in([trial.id for trial in TRIALS]))
    rows = missing.group_by("needs", maintain_order=True).agg(pl.col("id").str.join(", "))
    return "; ".join(f"{ids} ({needs})" for needs, ids in rows.iter_rows())


_REMARKS = (
    "Tests by the ids of draft-calabria-bmwg-ai-fabric-training-bench (text of 1 October 2026), those that a "
    "network alone can run; smaller than the drafts ask for: 16 hosts (11.1: up to 256) on four leaves and "
    "four spines at 100 Gbit/s, 5 iterations, 1 to 64 MB.",
    "Messages go over TCP with DCTCP, an answer to marks above 300 kB, and RACK-TLP, which bears reordering; "
    "those of 6.3 to 6.6 in numbered packets, with NSCC, RCCC and DCQCN after simulators.",
    f"Not run, as a network alone does not show it: {_needs('no')}; or not whole: {_needs('part')}. Of 6.5 "
    "link-level retries and credit of links.",
    "Of the draft on inference (I): by credit over 64 paths (5.2, 9.3: NSCC; 8.1: DCQCN; 8.2, 8.4: neither). "
    "Experts and KV caches are messages.",
    "GPCNeT: 3 hosts have canaries, 13 the four congestors, in closed loops; incasts and the broadcast are "
    "streams without an end; no overhead of MPI.",
)
