"""What is said of CERN and Caltech: windows against streams, and how long to measure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from weirlab.campaigns import PointSummary
from weirlab.reproductions.bulk.claims.common import FINDINGS, of_body, of_summary
from weirlab.reproductions.bulk.work import RANDOM, Data
from weirlab.reproductions.verdicts import Claim
from weirlab.stats import duration_trend

RATIOS = {"CERN": (2.0, 3.2), "Caltech": (1.2, 1.5)}
"""How much more eight small windows carry than two large ones."""
_EDGES = (0.05, 0.95)
"""Between which quantiles goodput is said to vary."""


def claims(data: Data) -> Iterator[Claim]:
    """Of both sites, and of the durations."""
    for how, sites in _told(data):
        yield from _sites(how, sites)
    yield from _range(data.tables["by_second"])
    yield from _losses(data.tables["measurements"])
    yield from _packets()
    yield from _durations(data.tables["durations"])


def _told(data: Data) -> Iterator[tuple[str, Mapping[str, list[PointSummary]]]]:
    yield "simulated", data.simulated
    if data.live:
        yield "Linux", data.live


def _sites(how: str, sites: Mapping[str, list[PointSummary]]) -> Iterator[Claim]:
    """What is said of CERN and Caltech."""
    for site, (few, many) in sites.items():
        low, high = RATIOS[site.partition(",")[0]]
        ratio = many.goodput_bps / few.goodput_bps
        yield of_body(
            statement=f"{site}: eight streams of 64 KiB carry more than two of 256 KiB ({how}).",
            holds=low <= ratio <= high,
            evidence=f"{ratio:.2f} times as much",
            published="1.37 times" if site == "Caltech" else "roughly 3 times (2.84)",
        )
        yield of_body(
            statement=f"{site}: more streams result in a greater change of the RTT ({how}).",
            holds=_added_s(many) > _added_s(few),
            evidence=f"mean dRTT {1e3 * _added_s(few):.2f} ms with two, "
            f"{1e3 * _added_s(many):.2f} ms with eight",
        )
    few, many = sites["CERN"] if "CERN" in sites else sites[RANDOM]
    yield of_summary(
        statement=f"The streams of a measurement contribute about equally ({how}).",
        holds=min(few.fairness, many.fairness) >= 0.9,
        evidence=f"Jain's index {few.fairness:.3f} of two streams, {many.fairness:.3f} of eight (medians)",
    )
    each = (few.goodput_bps / 2e6, many.goodput_bps / 8e6)
    yield of_body(
        statement=f"A stream with the larger window carries more than one of many with the smaller ({how}).",
        holds=1.1 <= each[0] / each[1] <= 2.0,
        evidence=f"{each[0]:.2f} against {each[1]:.2f} Mbit/s",
        published="about 4.7 : 3",
    )
    best = sites["Caltech"][1].goodput_bps / many.goodput_bps
    yield of_body(
        statement=f"The best performance to Caltech is about twice that to CERN ({how}).",
        holds=1.6 <= best <= 3.2,
        evidence=f"{best:.2f} times",
        published="2.37 times",
    )


def _added_s(point: PointSummary) -> float:
    """Mean loaded less mean unloaded round-trip time, as the text's table has them."""
    return point.loaded_mean_s - point.unloaded_mean_s


def _range(intervals: pl.DataFrame) -> Iterator[Claim]:
    """Of the plot of eight streams."""
    eight = intervals.filter(pl.col("site") == "CERN", pl.col("point") == 1)
    seconds = eight.group_by("cycle", "second").agg(pl.col("rate_bps").sum()).get_column("rate_bps")
    low, high = (float(value) / 1e6 for value in np.quantile(seconds.to_numpy(), _EDGES))
    least, most = FINDINGS["cern_aggregate_range_mbps"]
    yield of_body(
        statement="To CERN, the aggregate of eight streams varies from 10 to 30 Mbit/s from second to "
        "second.",
        holds=0.5 * least <= low <= 1.5 * least and 0.8 * most <= high <= 1.2 * most,
        evidence=f"90 % of the seconds between {low:.1f} and {high:.1f} Mbit/s (n = {seconds.len()})",
        published=f"{least} to {most} Mbit/s",
    )


def _losses(measurements: pl.DataFrame) -> Iterator[Claim]:
    """What a loss costs: on the path where chance alone makes them."""
    rows = measurements.filter(pl.col("site") == RANDOM)
    most = float(rows.get_column("goodput_bps").to_numpy().max())
    missed = {
        streams: float(
            ((most - part.get_column("goodput_bps")) * part.get_column("duration_s")).to_numpy().sum()
            / 8e6
            / max(1, part.get_column("retransmits").to_numpy().sum())
        )
        for (streams,), part in rows.group_by("streams", maintain_order=True)
    }
    yield of_summary(
        statement="Of many streams, a loss affects one alone, and its goodput is regained faster.",
        holds=missed[2] > 2 * missed[8],
        evidence=f"for each packet sent again, two streams miss {missed[2]:.2f} MB of the best measurement, "
        f"eight {missed[8]:.2f} MB",
    )


def _packets() -> Iterator[Claim]:
    """Why 40 s are enough, in the text's arithmetic."""
    window, rate = (256 << 10) / 1500, 4.5e6 / 8 / 1500
    yield of_body(
        statement="A window of 256 kB is roughly 170 packets, and 4.5 Mbit/s about 340 packets per second.",
        holds=abs(window / 170 - 1) < 0.1 and abs(rate / 340 - 1) < 0.15,
        evidence=f"of 1500 B: {window:.0f} packets, and {rate:.0f} per second",
        published="170 and 340",
    )


def _durations(rows: pl.DataFrame) -> Iterator[Claim]:
    opening = (
        "Until their windows are open, a second or two at 165 ms, eight streams carry less: a tenth of what "
        "a measurement of 10 s carries. The published spread, 10.6 Mbit/s, hides that."
    )
    for streams, words, known in ((2, "2 x 256 KiB", ""), (8, "8 x 64 KiB", opening)):
        of = rows.filter(streams=streams)
        trend = duration_trend(of.get_column("duration_s").to_list(), of.get_column("goodput_bps").to_list())
        low, high = (value / 1e6 for value in trend.slope_interval)
        change = trend.line.slope * math.log(32) / float(of.get_column("goodput_bps").to_numpy().mean())
        yield of_body(
            statement=f"Goodput has no strong correlation with the duration of the measurement ({words}).",
            holds=low <= 0 <= high or trend.line.r_squared < 0.25,
            evidence=f"slope {low:.2f} to {high:.2f} Mbit/s per e-fold of the duration (95 %), "
            f"R² {trend.line.r_squared:.2f}, {100 * change:+.0f} % from 10 to 320 s",
            known=known,
        )
