"""Published numbers beside ours."""

from __future__ import annotations

import polars as pl

from weirlab.reproduce.frame import Row
from weirlab.reproduce.published import read
from weirlab.reproduce.zrl.planes import PLANES, Plane
from weirlab.theory.hotspot import input_generated

__all__ = ["PUBLISHED", "TOLERANCE", "in_box", "rows"]

PUBLISHED = read("zrl-congestion-benchmark")
TOLERANCE = 0.01
"""Of aggregate throughput, as a share of capacity."""


def rows(cells: pl.DataFrame, single: pl.DataFrame) -> list[Row]:
    """Throughput without control, severity, and the maximum inside the claimed range of every plane."""
    without = PUBLISHED["throughput_without_control"]
    hot, ports = without["ig_hot_sources"], without["ig_ports"]
    return [
        _row("OG, N = 8, without control", without["og"], _mean(single, "og-8-none"), "Traffic Scenarios"),
        _row("OG, N = 32, without control", without["og"], _mean(single, "og-32-none"), "Traffic Scenarios"),
        _row(
            "IG, N = 32, without control, own port counted",
            1 / (hot * (ports - 1) / ports + 1),
            _mean(single, "ig-32-none-own"),
            "IG results",
        ),
        Row(
            name="severity of the input-generated hotspot, own port counted",
            published=PUBLISHED["hotspot"]["ig_severity"],
            ours=input_generated(ports, load=0.85, hot_sources=hot, own_port=True).severity,
            tolerance=1e-6,
            source="ZRL benchmark, 'IG results'",
        ),
        *(row for plane in PLANES for row in _plane_rows(plane, cells)),
    ]


def _plane_rows(plane: Plane, cells: pl.DataFrame) -> list[Row]:
    """The least and the greatest throughput inside the claimed range."""
    inside = in_box(cells.filter(pl.col("plane") == plane.name))
    if inside.is_empty() or plane.name not in CLAIMED:
        return []
    means = inside.group_by("gd", "ps").agg(pl.col("throughput").mean()).get_column("throughput")
    published = PUBLISHED["throughput_max"][plane.maximum]
    return [
        _row(f"{plane.title}: {word} in the claimed range", published, float(value), "Results")
        for word, value in (("least", means.min()), ("greatest", means.max()))
        if isinstance(value, float)
    ]


CLAIMED = ("og-8", "og-32", "ig-32", "ig-32-half")
"""Planes for whose claimed range the maximum is asked; the others are claims with a proviso."""


def in_box(cells: pl.DataFrame) -> pl.DataFrame:
    """The cells inside the range that the text calls optimal."""
    box = PUBLISHED["optimal_range"]
    (low_p, high_p), (low_g, high_g) = box["sampling_probability"], box["decrease_gain"]
    return cells.filter(pl.col("ps").is_between(low_p, high_p) & pl.col("gd").is_between(low_g, high_g))


def _mean(single: pl.DataFrame, case: str) -> float | None:
    values = single.filter(pl.col("case") == case).get_column("throughput")
    return None if values.is_empty() else float(values.to_numpy().mean())


def _row(name: str, published: float, ours: float | None, place: str) -> Row:
    return Row(
        name=name,
        published=published,
        ours=ours,
        tolerance=TOLERANCE,
        unit="of capacity",
        source=f"ZRL benchmark, '{place}'",
    )
