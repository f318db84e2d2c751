"""The statements of the text, each checked on what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from weirlab.bulk import PointSummary
from weirlab.reproduce.bulk.rows import PUBLISHED
from weirlab.reproduce.bulk.work import RANDOM, Data
from weirlab.reproduce.frame import Claim
from weirlab.stats import duration_trend, ecdf, fit_line, fit_proportion, fit_queueing, linear_range

__all__ = ["claims"]

FINDINGS = PUBLISHED["findings"]
RATIOS = {"CERN": (2.0, 3.2), "Caltech": (1.2, 1.5)}
"""How much more eight small windows carry than two large ones."""
SMALL = (8 << 10, 16 << 10)
LARGE = 55 << 10
_BODY, _SUMMARY = "SLAC 2000, body", "SLAC 2000, 'Summary'"


def claims(data: Data) -> list[Claim]:
    """All of them."""
    return [
        *(claim for how, sites in _told(data) for claim in _sites(how, sites)),
        *_streams(data.tables["streams"]),
        *_rtt(data.tables["in2p3"]),
        *_agreement(data),
        *_durations(data.tables["durations"]),
        *_paths(data.tables["lanes"], data.tables["middlebox"]),
        *_since_2000(data),
    ]


def _told(data: Data) -> Iterator[tuple[str, Mapping[str, list[PointSummary]]]]:
    yield "simulated", data.simulated
    if data.live:
        yield "Linux", data.live


def _sites(how: str, sites: Mapping[str, list[PointSummary]]) -> Iterator[Claim]:
    """What is said of CERN and Caltech."""
    for site, (few, many) in sites.items():
        low, high = RATIOS[site.partition(",")[0]]
        ratio = many.goodput_bps / few.goodput_bps
        yield Claim(
            statement=f"{site}: eight streams of 64 KiB carry more than two of 256 KiB ({how}).",
            holds=low <= ratio <= high,
            evidence=f"{ratio:.2f} times as much",
            published="1.37 times" if site == "Caltech" else "roughly 3 times (2.84)",
            source=_BODY,
        )
        yield Claim(
            statement=f"{site}: more streams result in a greater change of the RTT ({how}).",
            holds=many.rtt_difference_s > few.rtt_difference_s,
            evidence=f"dRTT {1e3 * few.rtt_difference_s:.2f} ms with two, "
            f"{1e3 * many.rtt_difference_s:.2f} ms with eight",
            source=_BODY,
        )
    few, many = sites["CERN"] if "CERN" in sites else sites[RANDOM]
    yield Claim(
        statement=f"The streams of a measurement contribute about equally ({how}).",
        holds=min(few.fairness, many.fairness) >= 0.9,
        evidence=f"Jain's index {few.fairness:.3f} of two streams, {many.fairness:.3f} of eight (medians)",
        source=_SUMMARY,
    )
    each = (few.goodput_bps / 2e6, many.goodput_bps / 8e6)
    yield Claim(
        statement=f"A stream with the larger window carries more than one of many with the smaller ({how}).",
        holds=1.1 <= each[0] / each[1] <= 2.0,
        evidence=f"{each[0]:.2f} against {each[1]:.2f} Mbit/s",
        published="about 4.7 : 3",
        source=_BODY,
    )
    best = sites["Caltech"][1].goodput_bps / many.goodput_bps
    yield Claim(
        statement=f"The best performance to Caltech is about twice that to CERN ({how}).",
        holds=1.6 <= best <= 3.2,
        evidence=f"{best:.2f} times",
        published="2.37 times",
        source=_BODY,
    )


def _streams(rows: pl.DataFrame) -> Iterator[Claim]:
    """What is said of the number of streams."""
    medians = {window: _by_streams(rows, window, "goodput_bps") for window in (*SMALL, LARGE)}
    lines = {
        window: fit_line(*zip(*[(n, rate) for n, rate in found.items() if n <= 6], strict=True))
        for window, found in medians.items()
    }
    yield Claim(
        statement="For small windows, goodput grows roughly linearly with the number of "
        "streams: from 1 to 6.",
        holds=all(line.r_squared > 0.99 for line in lines.values()),
        evidence=", ".join(f"{window >> 10} KiB: R² {line.r_squared:.4f}" for window, line in lines.items()),
        source=_BODY,
    )
    ranges = {window: linear_range(medians[window].keys(), medians[window].values()) for window in SMALL}
    yield Claim(
        statement="With 8 and 16 KiB it does so until about 10 streams.",
        holds=all(found.streams >= FINDINGS["linear_growth_until_streams"] for found in ranges.values()),
        evidence=", ".join(
            f"{window >> 10} KiB: until {found.streams:g}" for window, found in ranges.items()
        ),
        source=_BODY,
    )
    below, above = (_mean_where(rows, LARGE, "rtt_difference_s", part) for part in ("few", "many"))
    yield Claim(
        statement="Above 7 streams of 55 KiB the RTT begins to grow.",
        holds=above > 5 * below and above > 1e-3,
        evidence=f"mean dRTT {1e3 * below:.2f} ms up to 7 streams, {1e3 * above:.2f} ms above",
        source=_BODY,
    )
    small = max(_mean_where(rows, window, "rtt_difference_s", "many") for window in SMALL)
    yield Claim(
        statement="Above 7 streams of 8 and 16 KiB the RTT begins to grow.",
        holds=small > 1e-3,
        evidence=f"mean dRTT at most {1e3 * small:.2f} ms",
        source=_BODY,
        known="20 streams of 16 KiB ask for 16 Mbit/s at 165 ms: no path that carries the published 26.8 "
        "Mbit/s makes them wait. It takes others who fill that path meanwhile, and no number tells how many.",
    )
    spread = [_deviation(rows, LARGE, part) for part in ("few", "many")]
    yield Claim(
        statement="Beyond 7 streams the variability of the goodput increases.",
        holds=spread[1] > spread[0],
        evidence=f"deviation within a number of streams {spread[0] / 1e6:.2f} Mbit/s up to 7, "
        f"{spread[1] / 1e6:.2f} above",
        source=_BODY,
    )
    iqr = [_mean_where(rows, LARGE, "rtt_iqr_s", part) for part in ("few", "many")]
    yield Claim(
        statement="The variability of the RTT increases as goodput saturates.",
        holds=iqr[1] > 2 * iqr[0],
        evidence=f"mean interquartile range of the RTT {1e3 * iqr[0]:.2f} ms up to 7 streams, "
        f"{1e3 * iqr[1]:.2f} above",
        source=_BODY,
    )
    large = medians[LARGE]
    delays = {n: _mean_of(rows, LARGE, n, "rtt_difference_s") for n in (8, 20)}
    yield Claim(
        statement="Too many streams do not improve performance, but increase the impact on others.",
        holds=large[20] < 1.15 * large[8] and delays[20] > 3 * delays[8],
        evidence=f"8 and 20 streams of 55 KiB: {large[8] / 1e6:.1f} and {large[20] / 1e6:.1f} Mbit/s, dRTT "
        f"{1e3 * delays[8]:.1f} and {1e3 * delays[20]:.1f} ms",
        source=_SUMMARY,
    )
    free = rows.filter(pl.col("goodput_bps") < 17e6)
    product = free.select(pl.col("streams") * pl.col("window_bytes")).to_series().to_list()
    fit = fit_proportion(product, free.get_column("goodput_bps").to_list())
    yield Claim(
        statement="For some links it is the product of streams and windows that determines the goodput.",
        holds=fit.r_squared > 0.95,
        evidence=f"below saturation goodput is proportional to the product with R² = {fit.r_squared:.3f} "
        f"(n = {fit.count})",
        source=_SUMMARY,
    )
    x, y = (rows.get_column(name).to_list() for name in ("goodput_bps", "loaded_loss"))
    lost = 100 * float(np.mean(y))
    line = fit_line(x, y) if len(set(y)) > 1 else None
    yield Claim(
        statement="The loss measured by ping is not very sensitive to the goodput.",
        holds=line is None or line.r_squared < 0.3,
        evidence=f"{lost:.2f} % of the pings lost"
        + ("" if line is None else f", R² against goodput {line.r_squared:.3f}"),
        source=_SUMMARY,
    )


def _rtt(rows: pl.DataFrame) -> Iterator[Claim]:
    """What is said of IN2P3."""
    best = max(_medians(rows, "streams", "goodput_bps").values()) / 1e6
    yield Claim(
        statement="To IN2P3, the best goodput is about 20 Mbit/s, with larger windows and more streams.",
        holds=16 <= best <= 24,
        evidence=f"{best:.1f} Mbit/s",
        source=_BODY,
    )
    knee = FINDINGS["in2p3_rtt_knee_mbps"] * 1e6
    parts = [rows.filter(pl.col("goodput_bps") <= knee), rows.filter(pl.col("goodput_bps") > knee)]
    words = []
    grows = True
    for column, unit, factor in (("rtt_difference_s", "ms", 1e3), ("variability", "%", 100)):
        low, high = (factor * float(part.get_column(column).drop_nulls().to_numpy().mean()) for part in parts)
        grows &= high > 2 * low
        words.append(
            f"{column.replace('_s', '').replace('_', ' ')} {low:.2f} {unit} up to it, {high:.2f} {unit} above"
        )
    yield Claim(
        statement="dRTT and rate variability increase steeply as goodput passes 13 Mbit/s.",
        holds=grows,
        evidence="; ".join(words),
        source=_BODY,
    )
    share = ecdf(rows.get_column("variability").drop_nulls().to_list(), 0.10)
    yield Claim(
        statement="The load makes a rate variability of 10 % or less for about 73 % of the time.",
        holds=abs(share - FINDINGS["rv_at_most_10_percent_of_time"]) <= 0.10,
        evidence=f"{100 * share:.0f} %",
        published="73 %",
        source=_BODY,
    )
    capacity = 1.02 * float(rows.get_column("goodput_bps").to_numpy().max())
    fit, _ = fit_queueing(
        rows.get_column("goodput_bps").to_list(), rows.get_column("rtt_iqr_s").to_list(), capacity
    )
    yield Claim(
        statement="The variation of the RTT grows with the load as queueing theory suggests: 1 / (1 - L).",
        holds=fit.factor > 0 and fit.r_squared_origin > 0.8,
        evidence=f"interquartile range against L / (1 - L): R² about the origin {fit.r_squared_origin:.2f}",
        source=_SUMMARY,
        known="It grows, but TCP is no Poisson source: it fills a finite queue and backs off, so its "
        "variation is bounded by the buffer where that of theory knows no bound.",
    )


def _agreement(data: Data) -> Iterator[Claim]:
    """dRTT against rate variability, and against predictability."""
    rows = data.tables["in2p3"].drop_nulls(["rtt_difference_s", "variability"])
    drtt = rows.get_column("rtt_difference_s").to_list()
    variability = rows.get_column("variability").to_list()
    line = fit_line(drtt, [1 - value for value in variability])
    yield Claim(
        statement="dRTT and rate variability (and rate predictability, its complement) agree well: R² > 0.6.",
        holds=line.r_squared > FINDINGS["rp_vs_drtt_r2_above"],
        evidence=f"R² = {line.r_squared:.3f} (n = {line.count}, none left out)",
        published="R² > 0.6, two points left out",
        source=_BODY,
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
        yield Claim(
            statement=f"Goodput has no strong correlation with the duration of the measurement ({words}).",
            holds=low <= 0 <= high or trend.line.r_squared < 0.25,
            evidence=f"slope {low:.2f} to {high:.2f} Mbit/s per e-fold of the duration (95 %), "
            f"R² {trend.line.r_squared:.2f}, {100 * change:+.0f} % from 10 to 320 s",
            source=_BODY,
            known=known,
        )


def _paths(lanes: pl.DataFrame, middlebox: pl.DataFrame) -> Iterator[Claim]:
    """What is said of routers and firewalls."""
    rates = {key: value / 1e6 for key, value in _medians(lanes, ["lanes", "streams"], "goodput_bps").items()}
    shares = _medians(lanes, ["lanes", "streams"], "synchrony")
    gain, many = rates[1, 8] / rates[1, 1], rates[4, 8] / rates[4, 1]
    yield Claim(
        statement="Where a small router is the bottleneck, the streams lose in synchrony.",
        holds=shares[1, 8] > 0.5,
        evidence=f"in a second with losses {100 * shares[1, 8]:.0f} % of eight streams have some",
        source=_SUMMARY,
    )
    yield Claim(
        statement="There, many streams gain little over a single one.",
        holds=gain < 1.3,
        evidence=f"one stream {rates[1, 1]:.1f}, eight {rates[1, 8]:.1f} Mbit/s of 10",
        source=_SUMMARY,
    )
    yield Claim(
        statement="With several paths, several streams work better than a large window.",
        holds=many > 2,
        evidence=f"over four paths: one stream {rates[4, 1]:.1f}, eight {rates[4, 8]:.1f} Mbit/s",
        source=_SUMMARY,
    )
    free, stripped = (middlebox.filter(strips=strips).item(0, "goodput_bps") for strips in (False, True))
    bound = 8 * 65_535 / 0.080
    yield Claim(
        statement="A firewall that resets the window scale limits windows to 64 KiB.",
        holds=0.9 * bound < stripped <= bound < free,
        evidence=f"{free / 1e6:.1f} Mbit/s without it, {stripped / 1e6:.2f} with it; "
        f"64 KiB bind to {bound / 1e6:.2f}",
        source=_SUMMARY,
    )


def _since_2000(data: Data) -> Iterator[Claim]:
    """Not in the text: the same with the congestion control of today."""
    reno, cubic = (sites["CERN"] for sites in (data.simulated, data.cubic))
    ratios = [many.goodput_bps / few.goodput_bps for few, many in (reno, cubic)]
    yield Claim(
        statement="Since 2000: with CUBIC, two large windows fall less behind there (not in the text).",
        holds=ratios[1] < ratios[0],
        evidence=f"eight small over two large: {ratios[0]:.2f} with Reno, {ratios[1]:.2f} with CUBIC "
        f"({cubic[0].goodput_bps / 1e6:.1f} and {cubic[1].goodput_bps / 1e6:.1f} Mbit/s)",
    )


def _medians(rows: pl.DataFrame, by: str | list[str], column: str) -> dict[Any, float]:
    grouped = rows.group_by(by).agg(pl.col(column).median()).sort(by)
    keys = grouped.select(by).rows()
    names = [key[0] if len(key) == 1 else key for key in keys]
    return dict(zip(names, grouped.get_column(column).to_list(), strict=True))


def _by_streams(rows: pl.DataFrame, window: int, column: str) -> dict[int, float]:
    return _medians(rows.filter(window_bytes=window), "streams", column)


def _part(rows: pl.DataFrame, window: int, part: str) -> pl.DataFrame:
    """The measurements of a window with at most seven streams, or with more."""
    few = pl.col("streams") <= FINDINGS["rtt_rises_above_streams"]
    return rows.filter(pl.col("window_bytes") == window).filter(few if part == "few" else ~few)


def _mean_where(rows: pl.DataFrame, window: int, column: str, part: str) -> float:
    return float(_part(rows, window, part).get_column(column).drop_nulls().to_numpy().mean())


def _mean_of(rows: pl.DataFrame, window: int, streams: int, column: str) -> float:
    values = rows.filter(window_bytes=window, streams=streams).get_column(column)
    return float(values.drop_nulls().to_numpy().mean())


def _deviation(rows: pl.DataFrame, window: int, part: str) -> float:
    """Mean over the numbers of streams of the standard deviation of the goodput."""
    each = _part(rows, window, part).group_by("streams").agg(pl.col("goodput_bps").std())
    return float(each.get_column("goodput_bps").to_numpy().mean())
