"""How many intermediate phases are good: the experiment that the published text asks for.

"Value chosen based on limited experimentation to date. More experimentation needed to arrive to clearer
guidelines." Searches without a timeout, on devices from well to badly behaved.

Source: CSIT MDR, section 2.8.2.1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from weirlab.reproductions.mdr.searches import DEVICES, DURATIONS_S, Case
from weirlab.searches.mdr import INTERMEDIATE_PHASES

PHASES = range(5)
WELL_BEHAVED = ("knee", "ip4")
NO_TIMEOUT_S = 1e9
_ALIKE = 0.02
"""Times that differ by less count as equal: the smaller number of phases is then the better one."""


def cases(searches: int) -> list[Case]:
    """The searches to make."""
    return [
        Case(device, "mdr", duration_s, index, phases, phase_timeout_s=NO_TIMEOUT_S)
        for device in DEVICES
        for duration_s in DURATIONS_S
        for phases in PHASES
        for index in range(searches)
    ]


def compared(cells: pl.DataFrame) -> pl.DataFrame:
    """Cells with ``relative``, the mean time as a multiple of that with two phases, and its standard error
    ``relative_error``."""
    cell = ["device", "duration_s"]
    two = cells.filter(pl.col("phases") == INTERMEDIATE_PHASES).select(*cell, two_s=pl.col("mean_s"))
    return (
        cells.join(two, on=cell, how="left", maintain_order="left")
        .with_columns(
            relative=pl.col("mean_s") / pl.col("two_s"), relative_error=pl.col("error_s") / pl.col("two_s")
        )
        .drop("two_s")
    )


def fastest(table: pl.DataFrame, device: str) -> list[int]:
    """The least number of phases that is as fast as any, by final trial duration; ``table`` as `compared`
    gives it."""
    best = []
    for duration_s in DURATIONS_S:
        times = table.filter(pl.col("device") == device, pl.col("duration_s") == duration_s)
        limit_s = float(times.select(pl.col("mean_s").min()).item()) * (1.0 + _ALIKE)
        best.append(int(times.filter(pl.col("mean_s") <= limit_s).select(pl.col("phases").min()).item()))
    return best


def says(table: pl.DataFrame) -> str:
    """What the experiment shows, in words."""
    best = "; ".join(f"{device} {_listed(fastest(table, device))}" for device in DEVICES)
    means = {phases: _relative(table, phases, pl.col("relative").log().mean().exp()) for phases in PHASES}
    worst = [_relative(table, phases, pl.col("relative").max()) for phases in PHASES]
    well = table.filter(pl.col("device").is_in(WELL_BEHAVED))
    means_well = {phases: _relative(well, phases, pl.col("relative").log().mean().exp()) for phases in PHASES}
    return (
        f"{_WORDS[_least(means_well)]} is the best number on the well behaved devices "
        f"({' and '.join(WELL_BEHAVED)}), {_WORDS[_least(means)].lower()} over all: 0 to 4 phases take "
        f"{_decimals(means.values())} times as long as two (geometric mean over devices and durations), at "
        f"worst {_decimals(worst)} times. Fastest by device (trials of {_listed(DURATIONS_S)} s; the fewest "
        f"within {100.0 * _ALIKE:g} % of the fastest): {best}."
    )


_WORDS = ("None", "One", "Two", "Three", "Four")


def _relative(table: pl.DataFrame, phases: int, figure: pl.Expr) -> float:
    return float(table.filter(pl.col("phases") == phases).select(figure).item())


def _least(figures: Mapping[int, float]) -> int:
    return min(figures, key=lambda phases: figures[phases])


def _decimals(figures: Iterable[float]) -> str:
    return ", ".join(f"{figure:.2f}" for figure in figures)


def _listed(values: Sequence[int]) -> str:
    return "/".join(str(value) for value in values)
