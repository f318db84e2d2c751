"""Latency under load as other tools report it: round trips per minute, and the summary of an RRUL test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weirlab.heavy import np
from weirlab.stats.arrays import Array, sample
from weirlab.stats.latency import probe_loss
from weirlab.stats.samples import median, quantile
from weirlab.stats.streams import jain_index


def trimmed_mean(values: Iterable[float], *, probability: float = 0.95) -> float:
    """Mean of the values that are not above their quantile of this probability (type 7).

    Source: IPPM responsiveness, section 4.3.
    """
    array = sample(values, "trimmed mean")
    return float(array[array <= quantile(array, probability)].mean())


def round_trips_per_minute(rtts_s: Iterable[float]) -> float:
    """60 over the trimmed mean of round-trip times [1/min]: how often one can wait for an answer in a
    minute.

    Of one kind of probe. What is called RPM weighs four kinds, see `responsiveness`; the two must not be
    compared.
    """
    mean = trimmed_mean(rtts_s)
    if not mean > 0:
        raise ValueError(
            f"round trips per minute: round-trip times must be positive (got a mean of {mean} s)"
        )
    return 60 / mean


@dataclass(frozen=True)
class Responsiveness:
    """Round trips per minute, RPM [1/min], under working conditions."""

    rpm: float
    """Mean of `foreign` and `loaded`."""
    foreign: float
    """Of probes on connections of their own."""
    loaded: float
    """Of probes within the connections that carry the load."""


def foreign_per_minute(
    *, tcp_s: Iterable[float], tls_s: Iterable[float] | None, http_s: Iterable[float]
) -> float:
    """Round trips per minute of probes on connections of their own [1/min]: 60 / ((TM(tcp) + TM(tls) +
    TM(http)) / 3), or with `tls_s` None, no TLS, 60 / ((TM(tcp) + TM(http)) / 2); TM is the trimmed mean at
    the 95th percentile.

    `tcp_s`, `tls_s`, `http_s`: TCP handshakes, TLS handshakes (per round trip), and requests [s]. Source:
    IPPM responsiveness, section 4.3 (of draft 04: "Aggregating the Measurements").
    """
    kinds = [times for times in (tcp_s, tls_s, http_s) if times is not None]
    return len(kinds) / sum(1 / round_trips_per_minute(times) for times in kinds)


def responsiveness(
    *,
    tcp_s: Iterable[float],
    tls_s: Iterable[float] | None,
    http_s: Iterable[float],
    loaded_http_s: Iterable[float],
) -> Responsiveness:
    """RPM = (foreign + loaded) / 2, with foreign as `foreign_per_minute` and loaded = 60 / TM(loaded http),
    TM the trimmed mean at the 95th percentile [s].

    `loaded_http_s`: requests on connections that carry the load, or, where these take none, the round-trip
    times that their TCP sees. Source: IPPM responsiveness, section 4.3 (of draft 04: "Aggregating the
    Measurements").
    """
    foreign = foreign_per_minute(tcp_s=tcp_s, tls_s=tls_s, http_s=http_s)
    loaded = round_trips_per_minute(loaded_http_s)
    return Responsiveness((foreign + loaded) / 2, foreign, loaded)


def is_stable(values: Sequence[float], *, distance: int = 4, tolerance: float = 0.05) -> bool:
    """Whether a series of intervals has settled: the standard deviation of the last `distance` moving
    averages is below `tolerance` times the last of them.

    A moving average is the mean of `distance` intervals in a row. False while fewer than 2 `distance` - 1
    intervals have passed. The deviation is that of a population (n). Source: IPPM responsiveness, section
    4.4 (MAD, SDT).
    """
    if distance < 1 or not tolerance > 0:
        raise ValueError(
            f"stability: a distance of 1 or more and a tolerance above 0 (got {distance}, {tolerance})"
        )
    if len(values) < 2 * distance - 1:
        return False
    last = sample(values[-(2 * distance - 1) :], "stability")
    averages: Array = np.convolve(last, np.full(distance, 1 / distance), mode="valid")
    return bool(averages.std() < tolerance * averages[-1])


@dataclass(frozen=True)
class UnderLoad:
    """What a test of the RRUL kind reports: rates in bit/s, times in s."""

    download_bps: float
    """Sum over the downloads; 0 without any."""
    upload_bps: float
    """Sum over the uploads; 0 without any."""
    fairness: float
    """Jain's index of all streams of one direction; the lower one of the two."""
    rtt_median: float
    """Under load."""
    rtt_p95: float
    rtt_p99: float
    induced: float
    """Median under load less median without load."""
    loss: float
    """Share of the probes under load that were not answered, in [0, 1]."""


def under_load(
    *,
    downloads_bps: Sequence[float] = (),
    uploads_bps: Sequence[float] = (),
    loaded_rtts_s: Sequence[float],
    unloaded_rtts_s: Sequence[float],
    probes_sent: int,
) -> UnderLoad:
    """Sums of the streams each way and the round-trip times under load against those without.

    `probes_sent`: under load, answered or not. Raises ValueError without any stream. Source: Flent 2017,
    section 2 (realtime response under load).
    """
    if not downloads_bps and not uploads_bps:
        raise ValueError("load: no stream carried it")
    indices = [jain_index(rates) for rates in (downloads_bps, uploads_bps) if rates]
    middle = median(loaded_rtts_s)
    return UnderLoad(
        download_bps=math.fsum(downloads_bps),
        upload_bps=math.fsum(uploads_bps),
        fairness=min(indices),
        rtt_median=middle,
        rtt_p95=quantile(loaded_rtts_s, 0.95),
        rtt_p99=quantile(loaded_rtts_s, 0.99),
        induced=middle - median(unloaded_rtts_s),
        loss=probe_loss(probes_sent, len(loaded_rtts_s)),
    )
