"""The published tables compared with ours: minimum, mean, maximum and standard deviation over the runs, 96
numbers.

Source: BCN Calibration 2006, "Fairness Result" and "CS Utilization"
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from weirlab.reproductions.bcn.cases import CASES, LITERAL_CASES, TABLES, Case
from weirlab.reproductions.bcn.known import DRIFT, known_misfit
from weirlab.reproductions.judging import Printed, Words, mean_row, statistic_row
from weirlab.reproductions.published import Bcn, read
from weirlab.reproductions.verdicts import Row, Verdict

FloatArray = npt.NDArray[np.float64]
_PUBLISHED = read("bcn-calibration", Bcn)
PUBLISHED_RUNS = _PUBLISHED["runs"]
ROUNDING = 0.01
"""Of all published numbers but standard deviations."""
SD_ROUNDING = 0.001
_FITTED = "jitter of sampling and of pacing, and the restart rule"
STATISTICS = ("min", "mean", "max", "std")
"""In the order of the print."""
_PLACES = {"fairness": '"Fairness Result: 20ms - 80ms"', "utilisation": '"CS Utilization: 5ms - 20ms"'}
_KEYS = {"none": "bcn", "stop": "bcn00", "max": "bcnmax"}

Key = tuple[str, Case]
"""Name of the table, and the configuration."""


@dataclass(frozen=True)
class Spread:
    """A measure over many runs."""

    least: float
    mean: float
    greatest: float
    sd: float
    runs: int
    rounding: float = 0.0
    """Step to which the numbers are rounded."""

    def of(self, statistic: str) -> float:
        """One of `STATISTICS`."""
        return dict(zip(STATISTICS, (self.least, self.mean, self.greatest, self.sd), strict=True))[statistic]

    @property
    def error(self) -> float:
        """Standard error of the mean, with that of its rounding (uniform within a step)."""
        return math.hypot(self.sd / math.sqrt(self.runs), self.rounding / math.sqrt(12.0))


def published_spreads() -> dict[Key, Spread]:
    """The four published tables. Rows that follow the letter of the text have the same published numbers."""
    spreads: dict[Key, Spread] = {}
    for table in TABLES:
        for case in (*CASES, *LITERAL_CASES):
            drift = "drift" if case.drift else "no_drift"
            key = f"{'pause+' if case.pause else ''}{_KEYS[case.scheme]}"
            least, mean, greatest, sd = _PUBLISHED["tables"][table][drift][key]
            spreads[table, case] = Spread(least, mean, greatest, sd, PUBLISHED_RUNS, ROUNDING)
    return spreads


def our_values(runs: pl.DataFrame) -> dict[Key, FloatArray]:
    """Ours, of a row per run as `weirlab.reproductions.bcn.cases.of_case` gives them."""
    values: dict[Key, FloatArray] = {}
    for (scheme, pause, drift, literal), group in runs.group_by("scheme", "pause", "drift", "literal"):
        case = Case(str(scheme), bool(pause), bool(drift), bool(literal))
        for table in TABLES:
            values[table, case] = group.get_column(table).to_numpy()
    return values


def our_spreads(runs: pl.DataFrame) -> dict[Key, Spread]:
    """The same in short."""
    return {key: spread(pl.Series(values)) for key, values in our_values(runs).items()}


def spread(values: pl.Series) -> Spread:
    """Minimum, mean, maximum and standard deviation of the values, one per run."""
    numbers = [float(value) for value in values]
    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / max(1, len(numbers) - 1)
    return Spread(min(numbers), mean, max(numbers), math.sqrt(variance), len(numbers))


def table_rows(ours: Mapping[Key, FloatArray]) -> Iterator[Row]:
    """All published numbers compared with ours; those of BCN(0,0) once more with the restart rule to the
    letter."""
    for table in TABLES:
        for case in (*CASES, *LITERAL_CASES):
            for statistic in STATISTICS:
                yield _row(table, case, statistic, ours[table, case])


def drift_row(ours: Mapping[Key, FloatArray]) -> Row:
    """What drift takes off the fairness index: the mean of the six schemes, each without less with it."""
    published = published_spreads()
    pairs = [(case, Case(case.scheme, case.pause, False)) for case in CASES if case.drift]
    reported = sum(published["fairness", off].mean - published["fairness", on].mean for on, off in pairs)
    differences = sum((ours["fairness", off] - ours["fairness", on] for on, off in pairs), np.zeros(1)) / len(
        pairs
    )
    deviations = [published["fairness", case].sd for pair in pairs for case in pair]
    printed = Printed(
        reported / len(pairs),
        # Twelve roundings, each of a sixth of its own.
        step=ROUNDING * math.sqrt(2 * len(pairs)) / len(pairs),
        deviation=math.hypot(*deviations) / len(pairs),
        runs=PUBLISHED_RUNS,
    )
    return mean_row(
        "What drift takes off the fairness index, mean of six schemes",
        printed,
        differences,
        known=DRIFT,
        about="again",
        straws={"drift that does nothing": 0.0},
        source=f"BCN Calibration 2006, {_PLACES['fairness']}",
    )


def _row(table: str, case: Case, statistic: str, values: FloatArray) -> Row:
    published = published_spreads()[table, case]
    straws = {}
    if table == "utilisation":
        straws = {"a link that is never idle": 0.0 if statistic == "std" else 1.0}
    name = _name(table, case, statistic)
    printed = Printed(
        published.of(statistic),
        step=SD_ROUNDING if statistic == "std" else ROUNDING,
        deviation=published.sd,
        runs=PUBLISHED_RUNS,
    )
    words: Words = {
        "group": f"{TABLES[table]}: {statistic}",
        "about": "again" if case.literal else "published",
        "straws": straws,
        "fitted": _FITTED if table == "fairness" and statistic in ("mean", "std") else "",
        "source": f"BCN Calibration 2006, {_PLACES[table]}",
    }
    known = known_misfit(table, case, statistic)
    if statistic == "mean":
        return mean_row(name, printed, values, known=known, **words)
    return statistic_row(name, printed, values, statistic, known=known, low=0.0, **words)


def verdict_of(rows: Sequence[Row], table: str, case: Case, statistic: str = "mean") -> Verdict:
    """The verdict on a number of one configuration."""
    (verdict,) = (row.verdict for row in rows if row.name == _name(table, case, statistic))
    return verdict


def _name(table: str, case: Case, statistic: str) -> str:
    return f"{TABLES[table]}: {case.name}, {statistic}"
