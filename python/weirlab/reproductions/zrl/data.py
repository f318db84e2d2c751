"""What claims are judged on."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from weirlab.reproductions.zrl.planes import PLANES
from weirlab.reproductions.zrl.rows import TOLERANCE
from weirlab.theory.hotspot import input_generated, output_generated

STARVED = 0.9
"""A hot port below this part of what it serves is starved."""
_MAXIMA = {plane.name: plane for plane in PLANES}


@dataclass(frozen=True)
class Data:
    """What was simulated."""

    cells: pl.DataFrame
    """Means over seeds: `plane gd ps` and measures."""
    single: pl.DataFrame
    raw: pl.DataFrame
    """The cells, seed by seed."""

    def plane(self, name: str) -> pl.DataFrame:
        """Cells of a plane."""
        return self.cells.filter(pl.col("plane") == name)

    def has(self, *names: str) -> bool:
        """Whether these planes were simulated."""
        return set(names) <= set(self.cells.get_column("plane"))

    def one(self, case: str, measure: str) -> float:
        """Mean of a measure of a single case."""
        return float(self.single.filter(pl.col("case") == case).get_column(measure).to_numpy().mean())


def exact_maximum(plane: str) -> float:
    """The theoretical maximum of what is simulated."""
    ports = _MAXIMA[plane].ports
    if plane.startswith("ig"):
        return input_generated(ports, load=0.85, hot_sources=8).throughput_max
    return output_generated(ports, load=0.85, service=0.2).throughput_max


def served(plane: str) -> float:
    """What the hot port serves, as a share of the line rate."""
    return 1.0 if plane.startswith("ig") else 0.2


def plateau_share(cells: pl.DataFrame, plane: str) -> float:
    """The part of a plane in which the throughput is within the tolerance of its maximum, or above, and the
    hot port is not starved."""
    rows = cells.filter(pl.col("plane") == plane)
    reached = pl.col("throughput") >= exact_maximum(plane) - TOLERANCE
    fed = pl.col("hot-port") >= STARVED * served(plane)
    return float(rows.select((reached & fed).mean()).item())
