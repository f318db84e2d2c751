"""The configurations of the published tables, and the runs behind ours.

Three schemes (BCN, BCN(0,0), BCN(MAX)) with and without PAUSE, with and without drift, each a ready-made
scenario. Beside them stand the schemes with BCN(0,0) once more with the published restart rule to the letter:
restart at Rmin, which is halved each time, while Tmax is doubled.

Source: BCN Calibration 2006, "Fairness Result" and "CS Utilization"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from weirlab.evaluation import measured
from weirlab.records import Records
from weirlab.runs import simulate
from weirlab.scenario import Scenario, load

SCHEMES = {"none": "BCN", "stop": "BCN(0,0)", "max": "BCN(MAX)"}
"""What is done under severe congestion, and the name of the scheme."""
TABLES = {"fairness": "RMS fairness index, 20-80 ms", "utilisation": "CS utilisation, 5-20 ms"}
"""The published tables, by the name of their measure."""
CORE_PORT = "cs->es-4"
"""The port that is asked for too much."""
SOURCE_PORTS = tuple(f"ep-{i}->es-{i}" for i in range(4))
"""Ports of the four senders."""
LITERAL_RULE = {
    "control.bcn.reaction_point.stop.restart": "r-min",
    "control.bcn.reaction_point.stop.r_min_factor": "0.5",
}
"""Assignments that make a scenario with BCN(0,0) follow the letter of the text."""


@dataclass(frozen=True)
class Case:
    """A configuration of the published tables."""

    scheme: str
    """`none`, `stop` or `max`."""
    pause: bool
    drift: bool
    literal: bool = False
    """Whether the restart after BCN(0,0) follows the letter of the text."""

    @property
    def name(self) -> str:
        """As the tables name it, with the drift."""
        rule = ", literal restart" if self.literal else ""
        return f"{self.title}, {'with' if self.drift else 'without'} drift{rule}"

    @property
    def title(self) -> str:
        """As the tables name it."""
        return f"{'Pause + ' if self.pause else ''}{SCHEMES[self.scheme]}"

    @property
    def scenario(self) -> str:
        """Name of the ready-made scenario."""
        parts = ["bcn", *([] if self.scheme == "none" else [self.scheme])]
        parts += ["pause"] if self.pause else []
        parts += [] if self.drift else ["no-drift"]
        return "-".join(parts)


CASES = tuple(
    Case(scheme, pause, drift) for drift in (True, False) for pause in (False, True) for scheme in SCHEMES
)
"""The twelve configurations, in the order of the published tables."""
LITERAL_CASES = tuple(Case("stop", pause, drift, True) for drift in (True, False) for pause in (False, True))
"""Those with BCN(0,0), with the restart rule to the letter."""


def scenario_of(case: Case) -> Scenario:
    """The ready-made scenario, with series only as fine as the published windows need."""
    return load(
        case.scenario,
        {
            "record": {
                "cs": {"queue": "cs->es-4", "every": "5 ms"},
                "arrivals": {"flow": "load", "by": "flow", "every": "20 ms"},
            },
            **(LITERAL_RULE if case.literal else {}),
        },
    )


def of_case(
    case: Case, seeds: Sequence[int], threads: int | None, progress: Callable[[int, int], None] | None = None
) -> pl.DataFrame:
    """One row per run: the configuration, the published measures, and how long frames were dropped and
    sources paused; see `_transient`."""
    scenario = scenario_of(case)
    records = simulate(scenario, seeds, threads=threads, progress=progress)
    measures = measured(records, scenario).pivot("measure", index="replicate", values="value")
    return (
        records["runs"]
        .select("replicate", "seed")
        .join(measures, on="replicate", maintain_order="left")
        .join(_transient(records), on="replicate", maintain_order="left")
        .with_columns(
            scheme=pl.lit(case.scheme),
            pause=pl.lit(case.pause),
            drift=pl.lit(case.drift),
            literal=pl.lit(case.literal),
        )
        .drop("replicate")
    )


def _transient(records: Records) -> pl.DataFrame:
    """By replicate: frames lost in all, when the core switch dropped the last one [ms], for how long each
    source was paused on average, and when the last pause ended [ms]. Null where there was none."""
    names = records["port_names"].select("port", "name", switch=pl.col("from_kind") == "switch")
    ports = records["ports"].join(names, on="port", maintain_order="left")
    core = ports.filter(pl.col("name") == CORE_PORT)
    sources = ports.filter(pl.col("name").is_in(SOURCE_PORTS))
    return (
        ports.filter(pl.col("switch"))
        .group_by("replicate", maintain_order=True)
        .agg(lost_frames=pl.col("drops").sum())
        .join(core.select("replicate", last_drop_ms=pl.col("last_drop_ps") * 1e-9), on="replicate")
        .join(
            sources.group_by("replicate").agg(
                paused_ms=pl.col("paused_ps").mean() * 1e-9,
                last_pause_ms=pl.col("paused_last_ps").max() * 1e-9,
            ),
            on="replicate",
        )
    )
