"""The published tables beside ours: minimum, mean, maximum and standard deviation over the runs.

Source: BCN Calibration 2006, "Fairness Result" and "CS Utilization"
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from weirlab.reproduce.bcn.cases import CASES, LITERAL_CASES, TABLES, Case
from weirlab.reproduce.frame import KnownMisfit, Row, Verdict
from weirlab.reproduce.published import read

__all__ = [
    "PUBLISHED_RUNS",
    "Spread",
    "our_spreads",
    "published_spreads",
    "spread",
    "table_rows",
    "verdict_of",
]

_PUBLISHED = read("bcn-calibration")
PUBLISHED_RUNS: int = _PUBLISHED["runs"]
ROUNDING = 0.01
"""Of all published numbers but standard deviations."""
TOLERANCE = {"fairness": 0.05, "utilisation": 0.03}
"""Greatest distance of means."""
SD_TOLERANCE = 0.02
"""Greatest distance of standard deviations of the fairness index."""
_PLACES = {"fairness": '"Fairness Result: 20ms - 80ms"', "utilisation": '"CS Utilization: 5ms - 20ms"'}
_KEYS = {"none": "bcn", "stop": "bcn00", "max": "bcnmax"}

Statistic = Literal["mean", "standard deviation"]
"""What is judged of a spread."""
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
            least, mean, greatest, sd = _PUBLISHED[table][drift][key]
            spreads[table, case] = Spread(least, mean, greatest, sd, PUBLISHED_RUNS, ROUNDING)
    return spreads


def our_spreads(runs: pl.DataFrame) -> dict[Key, Spread]:
    """Ours, of a row per run as `weirlab.reproduce.bcn.cases.of_case` gives them."""
    spreads: dict[Key, Spread] = {}
    for (scheme, pause, drift, literal), group in runs.group_by("scheme", "pause", "drift", "literal"):
        case = Case(str(scheme), bool(pause), bool(drift), bool(literal))
        for table in TABLES:
            spreads[table, case] = spread(group.get_column(table))
    return spreads


def spread(values: pl.Series) -> Spread:
    """Minimum, mean, maximum and standard deviation of the values, one per run."""
    numbers = [float(value) for value in values]
    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / max(1, len(numbers) - 1)
    return Spread(min(numbers), mean, max(numbers), math.sqrt(variance), len(numbers))


def table_rows(ours: Mapping[Key, Spread], *, quick: bool) -> Iterator[Row]:
    """Means of all rows and standard deviations of the fairness index, published and ours; of the restart
    rule to the letter too.

    A quick run adds what its few runs leave open: two and a half standard errors of a mean, or of a standard
    deviation; known misfits keep their tolerance."""
    for table in TABLES:
        for case in (*CASES, *LITERAL_CASES):
            published, here = published_spreads()[table, case], ours[table, case]
            open_mean = 2.5 * here.error if quick else 0.0
            known = KNOWN.get((table, case))
            yield Row(
                name=_name(table, case, "mean"),
                published=published.mean,
                ours=here.mean,
                tolerance=TOLERANCE[table] + (open_mean if known is None else 0.0),
                source=f"BCN Calibration 2006, {_PLACES[table]}",
                known=_widened(known, open_mean),
            )
            if table == "fairness":
                open_sd = 2.5 * here.sd / math.sqrt(2.0 * (here.runs - 1)) if quick else 0.0
                yield Row(
                    name=_name(table, case, "standard deviation"),
                    published=published.sd,
                    ours=here.sd,
                    tolerance=SD_TOLERANCE + open_sd,
                    source=f"BCN Calibration 2006, {_PLACES[table]}",
                    known=None if quick else KNOWN_SPREADS.get(case),
                )


def verdict_of(rows: Sequence[Row], table: str, case: Case, what: Statistic = "mean") -> Verdict | None:
    """The verdict on the mean or the standard deviation of one configuration; None where it is not judged."""
    verdicts = [row.verdict for row in rows if row.name == _name(table, case, what)]
    return verdicts[0] if verdicts else None


def _name(table: str, case: Case, what: Statistic) -> str:
    return f"{TABLES[table]}: {case.name}, {what}"


def _widened(known: KnownMisfit | None, by: float) -> KnownMisfit | None:
    return None if known is None else KnownMisfit(known.reason, known.low - by, known.high + by)


_TOO_QUICK = (
    "Senders that were cut far down or stopped under PAUSE leave the link idle for longer in the "
    "published runs. "
    "Which rule or parameter makes them is not known: see the page on this reproduction."
)
_LETTER = (
    "The rule to the letter of the text: with PAUSE it is less fair than published, and makes up "
    "for less than "
    "a third of the distance in utilisation."
)
KNOWN: Mapping[tuple[str, Case], KnownMisfit] = {
    ("utilisation", Case("stop", True, True)): KnownMisfit(_TOO_QUICK, 0.99, 1.0),
    ("utilisation", Case("stop", True, False)): KnownMisfit(_TOO_QUICK, 0.99, 1.0),
    ("utilisation", Case("max", True, True)): KnownMisfit(_TOO_QUICK, 0.955, 0.98),
    ("utilisation", Case("max", True, False)): KnownMisfit(_TOO_QUICK, 0.95, 0.975),
    ("fairness", Case("stop", True, True, True)): KnownMisfit(_LETTER, 0.18, 0.21),
    ("fairness", Case("stop", True, False, True)): KnownMisfit(_LETTER, 0.23, 0.27),
    ("utilisation", Case("stop", True, True, True)): KnownMisfit(_LETTER, 0.97, 0.995),
    ("utilisation", Case("stop", True, False, True)): KnownMisfit(_LETTER, 0.96, 0.99),
}
"""Means in which we differ, with the reason and the band of ours."""
KNOWN_SPREADS: Mapping[Case, KnownMisfit] = {
    Case("stop", True, True, literal=True): KnownMisfit(_LETTER, 0.07, 0.09),
    Case("stop", True, False, literal=True): KnownMisfit(_LETTER, 0.09, 0.12),
}
"""The same of standard deviations of the fairness index, of which thirty runs cannot tell."""
