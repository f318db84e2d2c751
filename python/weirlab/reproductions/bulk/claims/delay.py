"""What is said of round-trip times under load, to IN2P3 and from Daresbury."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from weirlab import stats
from weirlab.reproductions.bulk.claims.common import FINDINGS, medians, of_body, of_summary
from weirlab.reproductions.bulk.work import Data
from weirlab.reproductions.verdicts import Claim

_EFFECTIVE = 1.3
"""Times the goodput without it."""
_LEAST_FIT = 0.6
"""R² of all counts under the exponential that makes them likeliest."""
_LEAST_DRAWN = 0.5
"""R² of a spreadsheet's trend line, of the logarithms of the counts that there are."""
_BIN_PERCENT = 2.0
"""Of the distribution of rate variability."""


def claims(data: Data) -> Iterator[Claim]:
    """Of both paths."""
    yield from _best(data.tables["in2p3"], data.tables["windows"])
    for site, table in (("To IN2P3", "in2p3"), ("From Daresbury", "daresbury")):
        yield from _rises(site, data.tables[table])
    yield from _variability(data.tables["in2p3"])


def _best(rows: pl.DataFrame, windows: pl.DataFrame) -> Iterator[Claim]:
    best = max(medians(rows, "streams", "goodput_bps").values()) / 1e6
    yield of_body(
        statement="To IN2P3, the best goodput is about 20 Mbit/s, with larger windows and more streams.",
        holds=16 <= best <= 24,
        evidence=f"{best:.1f} Mbit/s",
    )
    found = {
        key: value / 1e6
        for key, value in medians(windows, ["streams", "window_bytes"], "goodput_bps").items()
    }
    many, large = found[8, 64 << 10], found[8, 256 << 10]
    small = found[2, 64 << 10]
    yield of_body(
        statement="To IN2P3, both more streams and larger windows are effective.",
        holds=min(many, found[2, 256 << 10]) > _EFFECTIVE * small and abs(large / many - 1) < 0.2,
        evidence=f"2 x 64 KiB {small:.1f}, 2 x 256 KiB {found[2, 256 << 10]:.1f}, 8 x 64 KiB {many:.1f}, "
        f"8 x 256 KiB {large:.1f} Mbit/s",
    )


def _rises(site: str, rows: pl.DataFrame) -> Iterator[Claim]:
    """dRTT and rate variability against goodput, and against each other."""
    knee = FINDINGS["in2p3_rtt_knee_mbps"] * 1e6
    parts = [rows.filter(pl.col("goodput_bps") <= knee), rows.filter(pl.col("goodput_bps") > knee)]
    words, grows = [], True
    for column, unit, factor in (("rtt_difference_s", "ms", 1e3), ("variability", "%", 100)):
        low, high = (factor * float(part.get_column(column).drop_nulls().to_numpy().mean()) for part in parts)
        grows &= high > 2 * low
        words.append(
            f"{column.replace('_s', '').replace('_', ' ')} {low:.2f} {unit} up to it, {high:.2f} {unit} above"
        )
    yield of_body(
        statement=f"{site}, dRTT and rate variability increase steeply as goodput passes 13 Mbit/s.",
        holds=grows,
        evidence="; ".join(words),
    )
    kept = rows.drop_nulls(["rtt_difference_s", "variability"])
    drtt, variability = (kept.get_column(name).to_list() for name in ("rtt_difference_s", "variability"))
    line = stats.fit_line(drtt, [1 - value for value in variability])
    yield of_body(
        statement=f"{site}, dRTT and rate variability (and predictability, its complement) track one "
        "another: R² > 0.6.",
        holds=line.r_squared > FINDINGS["rp_vs_drtt_r2_above"],
        evidence=f"R² = {line.r_squared:.3f} (n = {line.count}, none left out)",
        published="R² > 0.6, two points left out",
    )
    ranks = {
        "dRTT": _ranked(rows, "rtt_difference_s"),
        "interquartile range of the RTT": _ranked(rows, "rtt_iqr_s"),
        "rate variability": _ranked(rows, "variability"),
    }
    yield of_summary(
        statement=f"{site}, the fluctuation of the RTT indicates the load.",
        holds=min(ranks.values()) > 0.5,
        evidence="rank correlation with goodput: "
        + ", ".join(f"{name} {rho:.2f}" for name, rho in ranks.items()),
    )


def _variability(rows: pl.DataFrame) -> Iterator[Claim]:
    """Its distribution to IN2P3, and what it is told by."""
    values = rows.get_column("variability").drop_nulls().to_list()
    share = stats.ecdf(values, 0.10)
    yield of_body(
        statement="The load makes a rate variability of 10 % or less for about 73 % of the time.",
        holds=abs(share - FINDINGS["rv_at_most_10_percent_of_time"]) <= 0.10,
        evidence=f"{100 * share:.0f} %",
        published="73 %",
    )
    percents = [100 * value for value in values]
    found = stats.frequencies(percents, _BIN_PERCENT)
    centres, counts = found.centres.tolist(), found.counts.tolist()
    exponential, drawn = stats.fit_exponential_counts(centres, counts), stats.fit_exponential(centres, counts)
    line = stats.fit_line(centres, counts)
    logarithm = stats.fit_logarithm(found.edges[1:].tolist(), found.cumulative.tolist())
    yield of_body(
        statement="An exponential fits the frequencies of the rate variability, and a logarithm their sum.",
        holds=exponential.rate < 0
        and exponential.r_squared > max(_LEAST_FIT, line.r_squared)
        and drawn.r_squared > _LEAST_DRAWN
        and logarithm.r_squared > 0.8,
        evidence=f"of x in %: {exponential.scale:.1f} exp({exponential.rate:.3f} x), R² of all counts "
        f"{exponential.r_squared:.2f} (a straight line: {line.r_squared:.2f}), of their logarithms "
        f"{drawn.r_squared:.2f}; {logarithm.factor:.3f} ln x {logarithm.offset:+.2f}, R² "
        f"{logarithm.r_squared:.2f}",
    )
    kept = rows.drop_nulls(["rtt_difference_s", "variability", "exact_variability"])
    drtt, reported, exact = (
        kept.get_column(name).to_list() for name in ("rtt_difference_s", "variability", "exact_variability")
    )
    fit = stats.fit_proportion(drtt, reported)
    yield of_body(
        statement="While others take little, rate variability is roughly proportional to dRTT.",
        holds=fit.r_squared_origin > 0.9,
        evidence=f"{100 * fit.factor / 1e3:.2f} % per ms, R² about the origin {fit.r_squared_origin:.3f}",
    )
    apart = max(abs(a - b) for a, b in zip(reported, exact, strict=True))
    yield of_summary(
        statement="1 - min / mean of the RTT approximates the rate variability 1 - mean / greatest "
        "data rate.",
        holds=apart < 0.05,
        evidence=f"at most {100 * apart:.1f} % apart (n = {len(reported)})",
    )
    capacity = 1.02 * float(rows.get_column("goodput_bps").to_numpy().max())
    queueing, _ = stats.fit_queueing(
        rows.get_column("goodput_bps").to_list(), rows.get_column("rtt_iqr_s").to_list(), capacity
    )
    yield of_summary(
        statement="The variation of the RTT grows with the load as queueing theory suggests: 1 / (1 - L).",
        holds=queueing.factor > 0 and queueing.r_squared_origin > 0.8,
        evidence="interquartile range against L / (1 - L): R² about the origin "
        f"{queueing.r_squared_origin:.2f}",
        known="It grows, but TCP is no Poisson source: it fills a finite queue and backs off, so its "
        "variation is bounded by the buffer where that of theory knows no bound.",
    )


def _ranked(rows: pl.DataFrame, column: str) -> float:
    """Spearman's rho of a column and goodput."""
    kept = rows.drop_nulls(column)
    ranks = kept.select(pl.col("goodput_bps").rank(), pl.col(column).rank())
    return float(np.corrcoef(ranks.to_numpy().T)[0, 1])
