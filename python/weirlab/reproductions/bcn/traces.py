"""Queue of the core switch and rates of the limiters over time, of single runs: the pictures of the slides.

The text of the slides names the pictures; what they show is not part of it.

Source: BCN Calibration 2006, slides "CS Queue" and "RLQ Rate"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from weirlab.reproductions.bcn.cases import SCHEMES, Case
from weirlab.runs import simulate
from weirlab.scenario import load

WORST = Case("max", True, False)
"""The configuration that the slides call the worst case."""


@dataclass(frozen=True)
class Picture:
    """A run to draw."""

    name: str
    """File name: lower case, digits and hyphens."""
    title: str
    case: Case


PICTURES = tuple(
    Picture(
        f"{'pause-' if pause else ''}bcn{'' if scheme == 'none' else f'-{scheme}'}",
        f"{'Pause and BCN' if pause else 'Only BCN'}"
        + ("" if scheme == "none" else f" with {SCHEMES[scheme]}"),
        Case(scheme, pause, True),
    )
    for pause in (False, True)
    for scheme in SCHEMES
)
"""The pictures of the six schemes, with drift."""
WORST_PICTURE = Picture("worst-case", "Pause and BCN(MAX), worst case", WORST)


def worst_run(runs: pl.DataFrame) -> int:
    """The seed of the least fair run of the worst configuration; `runs` as `cases.of_case` gives them."""
    chosen = runs.filter(
        pl.col("scheme") == WORST.scheme, pl.col("pause"), ~pl.col("drift"), ~pl.col("literal")
    )
    return int(chosen.sort("fairness", descending=True).item(0, "seed"))


def series_of(
    picture: Picture, seed: int, progress: Callable[[int, int], None] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Queue (`picture seed t_ms mean_kb max_kb`) and rates (`picture seed flow t_ms rate_gbps`, null without
    a limiter) in intervals of 100 us."""
    scenario = load(picture.case.scenario)
    records = simulate(scenario, [seed], threads=1, progress=progress)
    labels = {"picture": pl.lit(picture.name), "seed": pl.lit(seed, pl.UInt64)}
    t_ms = pl.col("t_ps") * 1e-9
    length_ps = (pl.col("t_ps") - pl.col("t_ps").shift(1).fill_null(0)).cast(pl.Float64)
    queue = records["intervals"].select(
        **labels,
        t_ms=t_ms,
        mean_kb=pl.col("queue_byte_ps") / length_ps * 1e-3,
        max_kb=pl.col("queue_max_bytes") * 1e-3,
    )
    rates = records.named("limiters").select(
        **labels, flow=pl.col("from"), t_ms=t_ms, rate_gbps=pl.col("rate_bps") * 1e-9
    )
    return queue, rates
