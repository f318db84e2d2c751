"""Published numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weirlab.bulk import PointSummary
from weirlab.reproduce.bulk.work import CONFIGURATIONS, RANDOM, SITES, Data
from weirlab.reproduce.published import read
from weirlab.reproduce.verdicts import KnownMisfit, Row
from weirlab.stats import spread

__all__ = ["PUBLISHED", "rows"]

PUBLISHED = read("bulk-throughput")
MEDIAN_TOLERANCE = 0.20
RTT_TOLERANCE_MS = 5.0
IQR_TOLERANCE_QUICK = 0.6
"""Of ten cycles the interquartile range is that uncertain: for a normal sample its standard error is
1.17 / sqrt(n) of itself, 0.37, of which this is one and a half."""
_TABLE = "SLAC 2000, table of 'Caltech'"

_STEADY = (
    "The published spread is that of a couple of hundred cycles over days, in which load and losses of the "
    "path changed; ours draws each cycle from one distribution."
)
_KNOWN_IQR = {
    (RANDOM, 2): KnownMisfit(_STEADY, 0.3, 3.7),
    (RANDOM, 8): KnownMisfit(_STEADY, 0.1, 8.4),
    ("Caltech", 8): KnownMisfit(_STEADY, 0.0, 3.6),
}


_KNOWN_RTT = {
    (RANDOM, 8, "loaded"): KnownMisfit(
        "Random losses keep eight streams below the rate of the link: no queue stands. See the other path.",
        164.9,
        172.0,
    )
}
_RARE = (
    "In 2000 one or two of 300 unloaded measurements met a path that was out of order (440 ms for a while): "
    "they make its spread and its greatest value. Nothing of ours ever is."
)
_KNOWN_VARIABILITY = {
    ("unloaded", "stdev"): KnownMisfit(_RARE, 0.0, 1.0),
    ("unloaded", "max"): KnownMisfit(_RARE, 0.0, 10.0),
    ("loaded", "max"): KnownMisfit(
        "A full queue of ours adds 109 ms to 175, a variability of 38 % at most; see the unloaded ones.",
        15.0,
        38.0,
    ),
}


def rows(data: Data, *, quick: bool = False) -> list[Row]:
    """The table of windows against streams, from the simulator and from real stacks, and the variability."""
    found = []
    for how, sites in (("simulated", data.simulated), ("Linux", data.live)):
        for site in SITES:
            if site in sites:
                found += list(_site(site, how, sites[site], quick=quick))
    return [*found, *_variability(data)]


def _site(site: str, how: str, points: list[PointSummary], *, quick: bool) -> Iterator[Row]:
    for (streams, window), point in zip(CONFIGURATIONS, points, strict=True):
        printed = _printed(site, streams)
        name = f"{site}, {streams} x {window} KiB, {how}"
        yield Row(
            name=f"{name}: median goodput",
            published=printed["median_mbps"],
            ours=point.goodput_bps / 1e6,
            tolerance=MEDIAN_TOLERANCE * printed["median_mbps"],
            unit="Mbit/s",
            source=_TABLE,
        )
        if how == "simulated":  # of five live cycles it says nothing
            yield Row(
                name=f"{name}: interquartile range",
                published=printed["iqr_mbps"],
                ours=point.goodput_iqr_bps / 1e6,
                tolerance=(IQR_TOLERANCE_QUICK if quick else MEDIAN_TOLERANCE) * printed["iqr_mbps"],
                unit="Mbit/s",
                source=_TABLE,
                known=_KNOWN_IQR.get((site, streams)),
            )
        for when, ours in (("loaded", point.loaded_mean_s), ("unloaded", point.unloaded_mean_s)):
            yield Row(
                name=f"{name}: mean {when} RTT",
                published=printed[f"{when}_rtt_ms"]["avg"],
                ours=1e3 * ours,
                tolerance=RTT_TOLERANCE_MS,
                unit="ms",
                source=_TABLE,
                known=_KNOWN_RTT.get((site, streams, when)),
            )


def _printed(site: str, streams: int) -> dict[str, Any]:
    (entry,) = (
        entry
        for entry in PUBLISHED["windows_streams"]
        if (entry["site"], entry["streams"]) == (site.partition(",")[0], streams)
    )
    return dict(entry)


def _variability(data: Data) -> Iterator[Row]:
    """The table of rate variability."""
    table = data.tables["in2p3"]
    for when, column in (("loaded", "variability"), ("unloaded", "unloaded_variability")):
        printed = PUBLISHED["rate_variability_percent"][when]
        values = 100 * table.get_column(column).drop_nulls().to_numpy()
        found = spread(values)
        for what, ours, tolerance in (
            ("average", found.mean, 2.5),
            ("stdev", found.deviation, 2.5),
            ("median", found.median, 3.0),
            ("iqr", found.interquartile_range, 3.0),
            ("min", found.low, 1.0),
            ("max", found.high, 10.0),
        ):
            yield Row(
                name=f"IN2P3, 256 KiB, simulated: {_NAMES[what]} {when} rate variability",
                published=printed[what],
                ours=ours,
                tolerance=tolerance,
                unit="%",
                source="SLAC 2000, 'Effect of thruput on RTT'",
                known=_KNOWN_VARIABILITY.get((when, what)),
            )


_NAMES = {
    "average": "average",
    "stdev": "standard deviation of",
    "median": "median",
    "iqr": "interquartile range of",
    "min": "least",
    "max": "greatest",
}
