"""Published numbers compared with ours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from weirlab.reproductions.judging import Printed, mean_row, number_row
from weirlab.reproductions.published import Zrl, read
from weirlab.reproductions.verdicts import Row
from weirlab.reproductions.zrl.planes import PLANES, Plane
from weirlab.theory.hotspot import input_generated

FloatArray = npt.NDArray[np.float64]
PUBLISHED = read("zrl-congestion-benchmark", Zrl)
TOLERANCE = 0.01
"""Of aggregate throughput, as a share of capacity: what counts as reaching the maximum in claims."""
STEP = 0.01
"""To which throughput is printed."""
WITHOUT_CONTROL = {"og": 0.2, "ig": 1 / (8 * 31 / 32 + 1)}
"""What the switch carries then, by the type of the hotspot."""
NO_HOTSPOT = 0.85


def rows(cells: pl.DataFrame, single: pl.DataFrame) -> list[Row]:
    """Throughput without control, severity, and the maximum inside the claimed range of every plane."""
    without = PUBLISHED["throughput_without_control"]
    hot, ports = int(without["ig_hot_sources"]), int(without["ig_ports"])
    place = "ZRL benchmark, 'Traffic Scenarios'"
    return [
        *(
            mean_row(
                f"OG, N = {ports_}, without control",
                Printed(without["og"], STEP),
                _values(single, f"og-{ports_}-none"),
                group="throughput without control",
                straws={"no hotspot": NO_HOTSPOT, "maximum": PUBLISHED["throughput_max"][f"og_n{ports_}"]},
                unit="of capacity",
                source=place,
            )
            for ports_ in (8, 32)
        ),
        mean_row(
            "IG, N = 32, without control, own port counted",
            # 'About': of a formula with two digits.
            Printed(1 / (hot * (ports - 1) / ports + 1), STEP),
            _values(single, "ig-32-none-own"),
            group="throughput without control",
            straws={"no hotspot": NO_HOTSPOT, "maximum": PUBLISHED["throughput_max"]["ig_n32"]},
            unit="of capacity",
            source="ZRL benchmark, 'IG results'",
        ),
        number_row(
            "severity of the input-generated hotspot, own port counted (arithmetic)",
            Printed(PUBLISHED["hotspot"]["ig_severity"], 0.01),
            input_generated(ports, load=0.85, hot_sources=hot, own_port=True).severity,
            about="identity",
            source="ZRL benchmark, 'IG results'",
        ),
        *(row for plane in PLANES for row in _plane_rows(plane, cells)),
    ]


def _plane_rows(plane: Plane, cells: pl.DataFrame) -> list[Row]:
    """The least and the greatest throughput inside the claimed range."""
    inside = in_box(cells.filter(pl.col("plane") == plane.name))
    if inside.is_empty() or plane.name not in CLAIMED:
        return []
    served = 1.0 if plane.name.startswith("ig") else 0.2
    means = inside.group_by("gd", "ps").agg(pl.col("throughput").mean()).sort("throughput")
    maximum = PUBLISHED["throughput_max"][plane.maximum]
    straws = {
        "no control": WITHOUT_CONTROL[plane.name[:2]],
        "a starved hot port": maximum - served / plane.ports,
        "no hotspot": NO_HOTSPOT,
    }
    made = []
    for word, place in (("least", 0), ("greatest", -1)):
        gd, ps = means.item(place, "gd"), means.item(place, "ps")
        values = inside.filter(pl.col("gd") == gd, pl.col("ps") == ps).get_column("throughput").to_numpy()
        made.append(
            mean_row(
                f"{plane.title}: {word} in the claimed range",
                Printed(maximum, STEP),
                values,
                group="maximum throughput",
                straws=straws,
                unit="of capacity",
                source="ZRL benchmark, 'Results'",
            )
        )
    return made


CLAIMED = ("og-8", "og-32", "ig-32", "ig-32-half")
"""Planes for whose claimed range the maximum is asked; the others are claims with a proviso."""


def in_box(cells: pl.DataFrame) -> pl.DataFrame:
    """The cells inside the range that the text calls optimal."""
    box = PUBLISHED["optimal_range"]
    (low_p, high_p), (low_g, high_g) = box["sampling_probability"], box["decrease_gain"]
    return cells.filter(pl.col("ps").is_between(low_p, high_p) & pl.col("gd").is_between(low_g, high_g))


def _values(single: pl.DataFrame, case: str) -> FloatArray:
    return single.filter(pl.col("case") == case).get_column("throughput").to_numpy()
