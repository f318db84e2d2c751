"""A flow that does not use the congested port, but shares links that PAUSE stops.

Source: BCN Calibration 2006, second slide "Observation"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from weirlab.evaluation import measured
from weirlab.runs import simulate
from weirlab.scenario import load

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "BCN": {"control.pause": None},
    "Pause + BCN": {},
    "Pause + BCN(0,0)": {"control.bcn.severe.action": "stop"},
    "Pause + BCN(MAX)": {"control.bcn.severe.action": "max"},
}
"""Changes of the ready-made scenario `pause-victim`."""
OFFERED_BPS = 3e9
"""What the victim offers."""


def of_variant(
    name: str, seeds: Sequence[int], threads: int | None, progress: Callable[[int, int], None] | None = None
) -> pl.DataFrame:
    """One row per run: `variant`, `seed`, share of what the victim offers in the first 5 ms that arrives
    then, its mean and longest delay in the whole run [us], and for how long its own link was paused [ms]."""
    scenario = load("pause-victim", VARIANTS[name])
    records = simulate(scenario, seeds, threads=threads, progress=progress)
    measures = measured(records, scenario).pivot("measure", index="replicate", values="value")
    return (
        records["runs"]
        .select("replicate", "seed")
        .join(measures, on="replicate", maintain_order="left")
        .select(
            "seed",
            variant=pl.lit(name),
            delivered_share=pl.col("victim") / OFFERED_BPS,
            mean_delay_us=pl.col("victim-delay") * 1e-6,
            max_delay_us=pl.col("victim-worst") * 1e-6,
            paused_ms=pl.col("victim-paused") * 1e-9,
        )
    )
