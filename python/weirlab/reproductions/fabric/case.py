"""A scenario after a publication, and its measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl

from weirlab.evaluation import measured
from weirlab.runs import replicate_seeds, simulate
from weirlab.scenario import Scenario, loads

Tree = Mapping[str, object]
_SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Case:
    """A scenario and how often it runs."""

    name: str
    file: str
    """Of `scenarios` beside this, without its ending; what it lacks is in `changes`."""
    changes: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 5
    permuted: int = 0
    """How many hosts send to each other in an order that each seed draws."""
    quick: bool = True
    """Whether a quick run makes it."""
    quick_seeds: int = 5
    """How often at most a quick run makes it."""

    def scenario(self, seed: int) -> Scenario:
        """Raises ScenarioError for what the simulator does not have."""
        drawn = {"traffic.all.pattern": _drawn(self.permuted, seed)} if self.permuted else {}
        text = (_SCENARIOS / f"{self.file}.yaml").read_text(encoding="utf-8")
        return loads(text, {**self.changes, **drawn}, file=f"<{self.name}>")


def of_case(case: Case, seed: int, seeds: int, threads: int | None) -> pl.DataFrame:
    """Measures of the runs of a case: columns `case measure replicate value`."""
    every = replicate_seeds(seed, seeds)
    runs = [[one] for one in every] if case.permuted else [every]
    with ThreadPoolExecutor(threads if case.permuted else 1) as pool:
        return pl.concat(pool.map(partial(_of_runs, case, threads=threads), count(), runs))


def _of_runs(case: Case, first: int, seeds: list[int], threads: int | None) -> pl.DataFrame:
    scenario = case.scenario(seeds[0])
    found = measured(simulate(scenario, seeds, threads=threads), scenario)
    number = pl.col("replicate") + first
    return found.select(pl.lit(case.name).alias("case"), "measure", number, "value")


def _drawn(hosts: int, seed: int) -> Tree:
    """Who sends to whom where nobody sends to itself."""
    chance = np.random.default_rng(seed)
    to = chance.permutation(hosts)
    while (to == np.arange(hosts)).any():
        to = chance.permutation(hosts)
    return listed(to)


def listed(to: Iterable[int]) -> Tree:
    """A pattern in which each host sends to the one that stands in its place."""
    return {"kind": "list", "flows": [f"host-{i}->host-{j}" for i, j in enumerate(to)]}


def messages(size: str, every: str = "1 s") -> dict[str, object]:
    """A source of messages of one size, at even times."""
    sizes = {"kind": "fixed", "size": size}
    return {"kind": "messages", "sizes": sizes, "every": every, "gaps": {"kind": "constant"}}
