"""Published numbers compared with ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from weirlab.reproductions.bulk.known import CPU, VARIABILITY, of_means, of_minima
from weirlab.reproductions.bulk.work import CONFIGURATIONS, RANDOM, SITES, Data
from weirlab.reproductions.judging import Printed, Sample, Words, mean_row, number_row, statistic_row
from weirlab.reproductions.published import Bulk, Cycles, read
from weirlab.reproductions.verdicts import Row
from weirlab.stats import fit_line, fit_proportion, interquartile_range, t_quantile

PUBLISHED = read("bulk-throughput", Bulk)
_CYCLES = 200
"""Published cycles of each site: "a couple of hundred"."""
_MEASUREMENTS = 300
"""Of the rate variability."""
_TABLE = "SLAC 2000, table of 'Caltech'"
_FITTED = "the path"
_OF_NORMAL = 1.349
"""Interquartile range of a normal distribution over its standard deviation."""
_MEDIAN_ERROR, _RANGE_ERROR = 1.2533, 1.573
"""Standard errors of the median and of the interquartile range of n normal values, times sqrt(n) over the
standard deviation. Source: Cramer 1946, section 28.5"""
_PING_MS = 0.5
"""Half of what the ping of that time reports: whole milliseconds."""
_CONFIDENCE = 0.99

FloatArray = npt.NDArray[np.float64]


def rows(data: Data) -> list[Row]:
    """The table of windows against streams, from the simulator and from real stacks; the variability; CPU."""
    found = []
    for how, table in (("simulated", "measurements"), ("Linux", "live")):
        if table not in data.tables:
            continue
        for site in SITES:
            part = data.tables[table].filter(pl.col("site") == site)
            if part.height:
                found += list(_site(site, how, part))
    found += list(_variability(data.tables["in2p3"]))
    if "cpu" in data.tables:
        found += list(_cpu(data.tables["cpu"]))
    return found


def _site(site: str, how: str, table: pl.DataFrame) -> Iterator[Row]:
    """Of each configuration all numbers of the table, and the difference of two of them, dRTT."""
    # One path of ours is the reproduction; a second path and real stacks judge the same numbers again.
    again = how == "Linux" or site == RANDOM
    for point, (streams, window) in enumerate(CONFIGURATIONS):
        part = table.filter(pl.col("point") == point)
        printed = _printed(site, streams)
        name = f"{site}, {streams} x {window} KiB, {how}"

        def words(
            group: str, unit: str, straws: Mapping[str, float] | None = None, fitted: str = _FITTED
        ) -> Words:
            reported: Words = {"group": f"{group}, {how}", "unit": unit, "source": _TABLE, "fitted": fitted}
            return reported | Words(about="again" if again else "published", straws=straws or {})

        rates = _column(part, "goodput_bps", 1e-6)
        iqr, published_iqr = interquartile_range(rates.tolist()), printed["iqr_mbps"]
        yield mean_row(
            f"{name}: median goodput",
            _robust(printed["median_mbps"], published_iqr, _MEDIAN_ERROR),
            Sample(float(np.median(rates)), _MEDIAN_ERROR * iqr / _OF_NORMAL, rates.size),
            known=of_means(site, how, streams, "median"),
            **words("median goodput", "Mbit/s"),
        )
        if how == "simulated":  # of five live cycles it says nothing
            yield mean_row(
                f"{name}: interquartile range of the goodput",
                _robust(published_iqr, published_iqr, _RANGE_ERROR),
                Sample(iqr, _RANGE_ERROR * iqr / _OF_NORMAL, rates.size),
                known=of_means(site, how, streams, "iqr"),
                **words("interquartile range", "Mbit/s", fitted="" if site == "Caltech" else _FITTED),
            )
        means = {when: _column(part, f"{when}_rtt_s", 1e3) for when in ("loaded", "unloaded")}
        idle = float(_column(part, "unloaded_min_s", 1e3).min())
        trips = {"loaded": printed["loaded_rtt_ms"], "unloaded": printed["unloaded_rtt_ms"]}
        for when, reported in trips.items():
            straws = {"an idle path": idle} if when == "loaded" else {}
            yield mean_row(
                f"{name}: mean {when} RTT",
                Printed(reported["avg"], _step(reported["avg"]), runs=_CYCLES),
                means[when],
                known=of_means(site, how, streams, f"mean {when}"),
                **words(f"mean {when} RTT", "ms", straws),
            )
            yield number_row(
                f"{name}: least {when} RTT",
                Printed(reported["min"], _step(reported["min"])),
                float(_column(part, f"{when}_min_s", 1e3).min()),
                allowance=_PING_MS,
                because="rounding of the print, and pings that reported whole ms",
                known=of_minima(site, streams, when),
                **words("least RTT", "ms", straws),
            )
        loaded, unloaded = (trip["avg"] for trip in trips.values())
        yield mean_row(
            f"{name}: dRTT, of the means",
            Printed(loaded - unloaded, _step(loaded) + _step(unloaded), runs=_CYCLES),
            means["loaded"] - means["unloaded"],
            known=of_means(site, how, streams, "dRTT"),
            **words("dRTT", "ms", {"an idle path": 0.0}),
        )


def _robust(value: float, interquartile: float, error: float) -> Printed:
    """A statistic of the published cycles, whose standard error follows from their interquartile range."""
    return Printed(value, _step(value), deviation=error * interquartile / _OF_NORMAL, runs=_CYCLES)


def _step(value: float) -> float:
    """A unit of the last digit of a number as it stands in the data."""
    decimals = len(str(value).partition(".")[2])
    return 1.0 if isinstance(value, int) else 10.0**-decimals


def _column(table: pl.DataFrame, name: str, factor: float) -> FloatArray:
    return factor * table.get_column(name).drop_nulls().to_numpy().astype(float)


def _printed(site: str, streams: int) -> Cycles:
    (entry,) = (
        entry
        for entry in PUBLISHED["windows_streams"]
        if (entry["site"], entry["streams"]) == (site.partition(",")[0], streams)
    )
    return entry


def _variability(table: pl.DataFrame) -> Iterator[Row]:
    """The table of rate variability. What was published as 0 counts as any other."""
    for when, column in (("loaded", "variability"), ("unloaded", "unloaded_variability")):
        printed = PUBLISHED["rate_variability_percent"][when]
        values = _column(table, column, 100)
        words: Words = {
            "group": f"{when} rate variability",
            "unit": "%",
            "source": "SLAC 2000, 'Effect of thruput on RTT'",
            "fitted": _FITTED,
            "straws": {"an idle path": 0.0},
        }
        for what, called in _NAMES.items():
            name = f"IN2P3, 256 KiB, simulated: {called} {when} rate variability"
            known = VARIABILITY.get((when, what))
            if what == "average":
                average = Printed(printed[what], 0.1, deviation=printed["stdev"], runs=_MEASUREMENTS)
                yield mean_row(name, average, values, known=known, **words)
            else:
                number = Printed(printed[what], 0.1, runs=_MEASUREMENTS)
                statistic = {"stdev": "std"}.get(what, what)
                yield statistic_row(name, number, values, statistic, known=known, low=0, **words)


_NAMES = {
    "average": "average",
    "stdev": "standard deviation of",
    "median": "median",
    "iqr": "interquartile range of",
    "min": "least",
    "max": "greatest",
}


def _cpu(table: pl.DataFrame) -> Iterator[Row]:
    """What a Mbit/s costs, and how well goodput predicts the cost."""
    rates = _column(table, "goodput_bps", 1e-6)
    parts = {name: _column(table, f"{name}_percent", 1.0) for name in ("user", "system")}
    total, durations = parts["user"] + parts["system"], table.get_column("duration_s").to_numpy()
    findings, source = PUBLISHED["findings"], "SLAC 2000, 'Effect on cpu utilization'"
    for duration_s, printed in zip(
        findings["cpu_durations_s"], findings["cpu_percent_per_mbps"], strict=True
    ):
        of = durations == duration_s
        factor = fit_proportion(rates[of].tolist(), total[of].tolist()).factor
        yield number_row(
            f"CPU per Mbit/s, user and kernel, {duration_s} s, Linux",
            Printed(printed, 0.01),
            factor,
            allowance=_slope_margin(rates[of], total[of], factor),
            because="99 % of the slope, and rounding of the print",
            known=CPU["slope"],
            group="CPU per Mbit/s",
            unit="% of a CPU",
            source=source,
        )
    for name, what, printed in (
        ("kernel", "system", findings["cpu_r2_kernel"]),
        ("user", "user", findings["cpu_r2_user"]),
    ):
        share = fit_line(rates.tolist(), parts[what].tolist()).r_squared
        # Source: Olkin & Finn 1995, the variance of a squared correlation, for large n.
        error = 2 * np.sqrt(max(share, 0.0)) * (1 - share) / np.sqrt(rates.size)
        yield number_row(
            f"R² of {name} CPU and goodput, Linux",
            Printed(printed, 0.01),
            share,
            allowance=float(t_quantile((1 + _CONFIDENCE) / 2, rates.size - 2) * error),
            because="99 % of ours, and rounding of the print",
            known=CPU[name],
            source=source,
        )


def _slope_margin(x: FloatArray, y: FloatArray, factor: float) -> float:
    """How far the true slope through the origin may lie from ours: t(n - 1) times its standard error.
    Source: Draper & Smith 1998, section 5.1."""
    variance = float(np.sum((y - factor * x) ** 2)) / (x.size - 1) / float(np.sum(x**2))
    return t_quantile((1 + _CONFIDENCE) / 2, x.size - 1) * math.sqrt(variance)
