"""What is said of routers, firewalls, several paths, and others on them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.reproductions.bulk.claims.common import FINDINGS, medians, of_body, of_summary
from weirlab.reproductions.bulk.work import Data
from weirlab.reproductions.verdicts import Claim


def claims(data: Data) -> Iterator[Claim]:
    """Of all of them."""
    yield from _paths(data.tables["lanes"], data.tables["middlebox"])
    yield from _idle(data.tables["idle"])
    yield from _rivals(data.tables["rivals"])


def _paths(lanes: pl.DataFrame, middlebox: pl.DataFrame) -> Iterator[Claim]:
    """What is said of routers and firewalls."""
    rates = {key: value / 1e6 for key, value in medians(lanes, ["lanes", "streams"], "goodput_bps").items()}
    shares = medians(lanes, ["lanes", "streams"], "synchrony")
    gain, many = rates[1, 8] / rates[1, 1], rates[4, 8] / rates[4, 1]
    yield of_summary(
        statement="Where a small router is the bottleneck, the streams lose in synchrony.",
        holds=shares[1, 8] > 0.5,
        evidence=f"in a second with losses {100 * shares[1, 8]:.0f} % of eight streams have some",
    )
    yield of_summary(
        statement="There, many streams gain little over a single one.",
        holds=gain < 1.3,
        evidence=f"one stream {rates[1, 1]:.1f}, eight {rates[1, 8]:.1f} Mbit/s of 10",
    )
    yield of_summary(
        statement="With several paths, several streams work better than a large window.",
        holds=many > 2,
        evidence=f"over four paths: one stream {rates[4, 1]:.1f}, eight {rates[4, 8]:.1f} Mbit/s",
    )
    free, stripped = (middlebox.filter(strips=strips).item(0, "goodput_bps") for strips in (False, True))
    bound = 8 * 65_535 / 0.080
    yield of_summary(
        statement="A firewall that resets the window scale limits windows to 64 KiB.",
        holds=0.9 * bound < stripped <= bound < free,
        evidence=f"{free / 1e6:.1f} Mbit/s without it, {stripped / 1e6:.2f} with it; "
        f"64 KiB bind to {bound / 1e6:.2f}",
    )


def _idle(rows: pl.DataFrame) -> Iterator[Claim]:
    """What rate variability without a load of ours says of others."""
    most = FINDINGS["cross_traffic_below_for_rv_proportional_to_drtt"]
    found = {share: 100 * value for share, value in medians(rows, "share", "variability").items()}
    quiet = max(value for share, value in found.items() if share <= most)
    busy = min(value for share, value in found.items() if share > most)
    yield of_body(
        statement="Low unloaded rate variability indicates that others take little of the path (below 30 %).",
        holds=quiet < busy,
        evidence=f"at most {quiet:.2f} % while they take {100 * most:.0f} % or less, at least {busy:.2f} % "
        f"above, {found[max(found)]:.2f} % at {100 * max(found):.0f} %",
    )


def _rivals(rows: pl.DataFrame) -> Iterator[Claim]:
    shares = {
        streams: rate / (rate + rival)
        for streams, rate, rival in rows.select("streams", "rate_bps", "rival_bps").rows()
    }
    yield of_summary(
        statement="Several streams are aggressive towards those who have one.",
        holds=shares[8] < 0.5 * shares[1],
        evidence=f"one stream keeps {100 * shares[1]:.0f} % of the bottleneck with one of another sender, "
        f"{100 * shares[8]:.0f} % with eight (an equal share: 11 %)",
    )
