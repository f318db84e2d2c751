"""What has been found so far, for those who decide by it how to go on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from weirlab.scenario.plan.contest import Halving

if TYPE_CHECKING:
    from weirlab.studies.contests import Contested
    from weirlab.studies.plan import RunsPlan
    from weirlab.studies.sequential import Sequential


def asking_of(plan: RunsPlan) -> Sequential | Contested | None:
    """What decides how the runs of a plan go on; None where all are wanted from the beginning."""
    from weirlab.studies.halving import Halved
    from weirlab.studies.optimising import Optimised
    from weirlab.studies.sequential import Sequential

    study = plan.section
    if study.contest is not None:
        contest = study.contest
        return Halved(plan, contest) if isinstance(contest, Halving) else Optimised(plan, contest)
    return None if study.until is None else Sequential(plan)


def runs_in(plan: RunsPlan) -> int:
    """How many runs a plan has, at least."""
    asking = asking_of(plan)
    return len(plan.order) * plan.replicates if asking is None else asking.expected()[0][0]


class Found:
    """The values of some measures, by point and replicate; see `weirlab.execution.Asking`."""

    columns: Sequence[str] = ("status", "measures", "document")

    def __init__(self, plan: RunsPlan, measures: Collection[str]) -> None:
        self._plan = plan
        self._measures = set(measures)
        self._ended: dict[int, set[int]] = {}
        """Replicates that are there, by point."""
        self.impossible: set[int] = set()
        """Points that cannot be."""
        self._values: dict[tuple[int, str], dict[int, float]] = {}

    @property
    def given(self) -> Mapping[int, Mapping[str, str]]:
        """See `weirlab.execution.Asking`."""
        return self._plan.given

    def read(self, rows: pl.DataFrame) -> None:
        """Rows of results, each once."""
        self._plan.learn(rows)
        for point, replicate, status in rows.select("point", "replicate", "status").iter_rows():
            self._ended.setdefault(point, set()).add(replicate)
            if status == "impossible":
                self.impossible.add(point)
        values = (
            rows.select("point", "replicate", "measures")
            .explode("measures")
            .drop_nulls("measures")
            .unnest("measures")
            .filter(pl.col("measure").is_in(sorted(self._measures)))
        )
        for point, replicate, measure, value in values.select(
            "point", "replicate", "measure", "value"
        ).iter_rows():
            if value is not None and math.isfinite(value):
                self._values.setdefault((point, measure), {})[replicate] = value

    def has(self, point: int, count: int) -> bool:
        """Whether the first so many replicates of a point are there, or it cannot be."""
        ended = self._ended.get(point, set())
        return point in self.impossible or all(replicate in ended for replicate in range(count))

    def by_replicate(self, point: int, measure: str) -> Mapping[int, float]:
        """The values of a measure at a point, by replicate."""
        return self._values.get((point, measure), {})

    def first(self, point: int, measure: str, count: int) -> list[float]:
        """The values among the first so many replicates."""
        values = self.by_replicate(point, measure)
        return [values[i] for i in range(count) if i in values]

    def mean(self, point: int, measure: str, count: int) -> float:
        """The mean of the first so many replicates; NaN where one has no value."""
        values = self.first(point, measure, count)
        return math.fsum(values) / count if len(values) == count and count else math.nan
