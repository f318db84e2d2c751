"""What is said of the number of streams."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np
import polars as pl

from weirlab import stats
from weirlab.reproductions.bulk.claims.common import (
    FINDINGS,
    LARGE,
    SMALL,
    by_streams,
    deviation,
    mean_of,
    mean_where,
    of_body,
    of_summary,
)
from weirlab.reproductions.bulk.work import Data
from weirlab.reproductions.verdicts import Claim

_LONG_PING_S = 4.0
"""Round trips of more than this were seen, a few times."""
_MORE = 1.5
"""The ratio of two deviations that counts as an increase. With seven cycles three seeds had 0.8, 0.9 and 1.2
where 40 cycles give 1.06."""


def claims(data: Data) -> Iterator[Claim]:
    """On a path of our own, and where others fill most of it."""
    yield from _streams(data.tables["streams"])
    yield from _shared(data.tables["shared"], data.tables["streams"])


def _streams(rows: pl.DataFrame) -> Iterator[Claim]:
    """What is said of the number of streams."""
    medians = {window: by_streams(rows, window, "goodput_bps") for window in (*SMALL, LARGE)}
    lines = {
        window: stats.fit_line(*zip(*[(n, rate) for n, rate in found.items() if n <= 6], strict=True))
        for window, found in medians.items()
    }
    yield of_body(
        statement="For small windows, goodput grows roughly linearly with the number of "
        "streams: from 1 to 6.",
        holds=all(line.r_squared > 0.99 for line in lines.values()),
        evidence=", ".join(f"{window >> 10} KiB: R² {line.r_squared:.4f}" for window, line in lines.items()),
    )
    ranges = {
        window: stats.linear_range(medians[window].keys(), medians[window].values()) for window in SMALL
    }
    yield of_body(
        statement="With 8 and 16 KiB it does so until about 10 streams, at least.",
        holds=all(found.streams >= FINDINGS["linear_growth_until_streams"] for found in ranges.values()),
        evidence=", ".join(
            f"{window >> 10} KiB: until {found.streams:g}" for window, found in ranges.items()
        ),
    )
    below, above = (mean_where(rows, LARGE, "rtt_difference_s", part) for part in ("few", "many"))
    yield of_body(
        statement="Above 7 streams of 55 KiB the RTT begins to grow.",
        holds=above > 5 * below and above > 1e-3,
        evidence=f"mean dRTT {1e3 * below:.2f} ms up to 7 streams, {1e3 * above:.2f} ms above",
    )
    small = max(mean_where(rows, window, "rtt_difference_s", "many") for window in SMALL)
    yield of_body(
        statement="Above 7 streams of 8 and 16 KiB the RTT begins to grow, with nobody else on the path.",
        holds=small > 1e-3,
        evidence=f"mean dRTT at most {1e3 * small:.2f} ms",
        known="20 streams of 16 KiB ask for 16 Mbit/s at 165 ms: no path that carries the published 26.8 "
        "Mbit/s makes them wait. It takes others who fill it meanwhile; see there.",
    )
    differences = [
        (statistics.fmean(part), statistics.median(part))
        for _, group in rows.filter(window_bytes=LARGE).group_by("streams", maintain_order=True)
        if (part := group.get_column("rtt_difference_s")).len()
    ]
    apart = max(abs(mean - middle) for mean, middle in differences)
    yield of_body(
        statement="With 55 KiB a few pings of more than 4 s make the mean dRTT oscillate, not the median.",
        holds=apart > _LONG_PING_S / 100,
        evidence=f"mean and median are at most {1e3 * apart:.2f} ms apart",
        known="No queue of ours is that long: 100 kB at 26 Mbit/s are 31 ms. What held pings up for seconds "
        "in 2000, the text does not say.",
    )
    spread = [deviation(rows, LARGE, part) for part in ("few", "many")]
    yield of_body(
        statement="Beyond 7 streams the variability of the goodput increases.",
        holds=spread[1] > _MORE * spread[0],
        evidence=f"deviation within a number of streams {spread[0] / 1e6:.2f} Mbit/s up to 7, "
        f"{spread[1] / 1e6:.2f} above",
        known="With nobody else on the path hardly: 0.100 and 0.106 Mbit/s with 40 cycles. Where others "
        "leave little it does; see there.",
    )
    iqr = [mean_where(rows, LARGE, "rtt_iqr_s", part) for part in ("few", "many")]
    yield of_body(
        statement="The variability of the RTT increases as goodput saturates.",
        holds=iqr[1] > 2 * iqr[0],
        evidence=f"mean interquartile range of the RTT {1e3 * iqr[0]:.2f} ms up to 7 streams, "
        f"{1e3 * iqr[1]:.2f} above",
    )
    large = medians[LARGE]
    delays = {n: mean_of(rows, LARGE, n, "rtt_difference_s") for n in (8, 20)}
    resent = {n: mean_of(rows, LARGE, n, "retransmits") for n in (8, 20)}
    yield of_summary(
        statement="Too many streams do not improve performance, but increase the impact on others: dRTT and "
        "losses.",
        holds=large[20] < 1.15 * large[8] and delays[20] > 3 * delays[8] and resent[20] > 3 * resent[8],
        evidence=f"8 and 20 streams of 55 KiB: {large[8] / 1e6:.1f} and {large[20] / 1e6:.1f} Mbit/s, dRTT "
        f"{1e3 * delays[8]:.1f} and {1e3 * delays[20]:.1f} ms, {resent[8]:.0f} and {resent[20]:.0f} segments "
        "sent again",
    )
    yield _optimum(rows)
    free = rows.filter(pl.col("goodput_bps") < 17e6)
    product = free.select(pl.col("streams") * pl.col("window_bytes")).to_series().to_list()
    fit = stats.fit_proportion(product, free.get_column("goodput_bps").to_list())
    yield of_summary(
        statement="For some links it is the product of streams and windows that determines the goodput.",
        holds=fit.r_squared > 0.95,
        evidence=f"below saturation goodput is proportional to the product with R² = {fit.r_squared:.3f} "
        f"(n = {fit.count})",
    )
    x, y = (rows.get_column(name).to_list() for name in ("goodput_bps", "loaded_loss"))
    lost = 100 * float(np.mean(y))
    line = stats.fit_line(x, y) if len(set(y)) > 1 else None
    yield of_summary(
        statement="The loss measured by ping is not very sensitive to the goodput.",
        holds=line is None or line.r_squared < 0.3,
        evidence=f"{lost:.2f} % of the pings lost"
        + ("" if line is None else f", R² against goodput {line.r_squared:.3f}"),
    )


def _optimum(rows: pl.DataFrame) -> Claim:
    """Where the impact on others is least for the goodput."""
    sweep = _sweep(rows, LARGE)
    rng = np.random.default_rng(1)
    knees = {name: stats.knee_interval(sweep, of, rng, draws=200) for name, of in stats.DEFINITIONS.items()}
    best = stats.knee_interval(sweep, stats.least_delay_per_goodput, rng, draws=200)
    words = ", ".join(f"{name}: {knee.streams:.3g}" for name, knee in knees.items())
    return of_summary(
        statement="There is an optimal number of streams, which minimizes dRTT for the goodput.",
        holds=5 <= best.streams <= 12,
        evidence=f"{best.streams:g} streams of 55 KiB (95 %: {best.low:g} to {best.high:g}); by definition: "
        f"{words}",
        published="from 7 to 10, by the text's plots",
    )


def _shared(rows: pl.DataFrame, alone: pl.DataFrame) -> Iterator[Claim]:
    """Where others leave 4.2 Mbit/s to windows of 8 KiB, and 8.4 to those of 16 KiB."""
    ranges, words, rises, spreads = [], [], [], []
    for window in SMALL:
        found = by_streams(rows, window, "goodput_bps")
        linear = stats.linear_range(found.keys(), found.values())
        few, many = (1e3 * mean_where(rows, window, "rtt_difference_s", part) for part in ("few", "many"))
        ranges.append(linear.streams)
        rises.append(many > 5 * few and many > 1)
        spreads.append(deviation(rows, window, "many") > _MORE * deviation(rows, window, "few"))
        words.append(
            f"{window >> 10} KiB: linear until {linear.streams:g}, {max(found.values()) / 1e6:.1f} Mbit/s at "
            f"best, dRTT {few:.2f} ms up to 7, {many:.2f} above"
        )
    until = FINDINGS["linear_growth_until_streams"]
    yield of_body(
        statement="Where others leave little, goodput of 8 and 16 KiB grows linearly until about 10 streams, "
        "and saturates.",
        holds=all(until - 3 <= streams <= until + 2 for streams in ranges),
        evidence="; ".join(words),
    )
    yield of_body(
        statement="There, the RTT begins to grow above 7 streams.",
        holds=all(rises),
        evidence="; ".join(words),
    )
    yield of_body(
        statement="There, the variability of the goodput increases beyond 7 streams.",
        holds=all(spreads),
        evidence=", ".join(
            f"{window >> 10} KiB: {deviation(rows, window, 'few') / 1e6:.3f} Mbit/s up to 7, "
            f"{deviation(rows, window, 'many') / 1e6:.3f} above"
            for window in SMALL
        ),
    )
    knees = [stats.near_maximum(_sweep(table, SMALL[1])) for table in (alone, rows)]
    yield of_summary(
        statement="How many streams are enough changes with the bandwidth that is available.",
        holds=knees[1] < knees[0],
        evidence=f"95 % of the most with {knees[0]:g} streams of 16 KiB where nobody else is, with "
        f"{knees[1]:g} where others take 17.6 of 26 Mbit/s",
    )


def _sweep(rows: pl.DataFrame, window: int) -> stats.Sweep:
    part = rows.filter(window_bytes=window)
    return stats.Sweep.of(
        *(
            part.get_column(name).to_list()
            for name in ("cycle", "streams", "goodput_bps", "loaded_rtt_s", "rtt_difference_s")
        )
    )
