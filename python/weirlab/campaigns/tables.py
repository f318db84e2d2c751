"""A campaign as tables: a row for each loaded measurement, and one for each second of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from weirlab.campaigns.campaign import Campaign
from weirlab.campaigns.measurement import Measurement, Pings, Transfer
from weirlab.campaigns.plan import Load, Measured
from weirlab.campaigns.responsiveness import answered, loaded_responsiveness, requests_lost
from weirlab.campaigns.summary import goodput_bps
from weirlab.scenario.testbeds import Sim
from weirlab.stats import interquartile_range, jain_index, min_max_variability, probe_loss

MEASUREMENTS = {
    "cycle": pl.Int64,
    "point": pl.Int64,
    "traffic": pl.String,
    "streams": pl.Int64,
    "window_bytes": pl.Int64,
    "congestion_control": pl.String,
    "duration_s": pl.Float64,
    "goodput_bps": pl.Float64,
    "loaded_rtt_s": pl.Float64,
    "loaded_min_s": pl.Float64,
    "rtt_iqr_s": pl.Float64,
    "unloaded_rtt_s": pl.Float64,
    "unloaded_min_s": pl.Float64,
    "rtt_difference_s": pl.Float64,
    "loaded_loss": pl.Float64,
    "unloaded_loss": pl.Float64,
    "variability": pl.Float64,
    "unloaded_variability": pl.Float64,
    "retransmits": pl.Int64,
    "fairness": pl.Float64,
    "user_percent": pl.Float64,
    "system_percent": pl.Float64,
    "receiver_percent": pl.Float64,
    "joined": pl.String,
    "foreign_cpus": pl.Float64,
    "degraded": pl.Boolean,
    "disturbed": pl.Boolean,
    "stolen_s": pl.Float64,
    "softirq_wait_s": pl.Float64,
    "emulator_waited_s": pl.Float64,
    "handshake_s": pl.Float64,
    "tls_s": pl.Float64,
    "answer_s": pl.Float64,
    "unloaded_handshake_s": pl.Float64,
    "unloaded_tls_s": pl.Float64,
    "unloaded_answer_s": pl.Float64,
    "requests_lost": pl.Float64,
    "foreign_per_minute": pl.Float64,
    "rpm": pl.Float64,
}
"""Columns of `measurement_table`; what was not measured is null. `window_bytes` is what was asked for,
`joined` the transports whose packets the path moved joined, with blanks between, and `variability` is
1 - min / mean of the round-trip times during a transfer. Times of requests are trimmed means, beside a
transfer those of its last four seconds. `stolen_s` and `softirq_wait_s` are over all CPUs,
`emulator_waited_s` is the run delay of the emulator."""
INTERVALS = {
    "cycle": pl.Int64,
    "point": pl.Int64,
    "traffic": pl.String,
    "goes": pl.String,
    "stream": pl.Int64,
    "second": pl.Int64,
    "rate_bps": pl.Float64,
    "counted_by": pl.String,
}
"""Columns of `interval_table`. `goes`: `up`, from the near end, or `down`; `stream`: from 1, of its
traffic. `counted_by` is `receiver` where `rate_bps` is goodput, and `sender` where it
is what the sender wrote into its buffer, because the receiver did not report it."""


def measurement_table(campaign: Campaign) -> pl.DataFrame:
    """Each transfer of TCP of a loaded measurement, next to the unloaded one of its cycle and point: the
    columns `MEASUREMENTS`. What pings and requests met is the same for all transfers of a measurement."""
    unloaded = {
        (kept.place.cycle, kept.place.point): (
            kept.measurement,
            answered(kept.measurement, campaign.plan.measured(kept.place).duration_s),
        )
        for kept in campaign.kept
        if kept.measurement is not None and not kept.measurement.loaded
    }
    rows = []
    for kept in campaign.kept:
        found, what = kept.measurement, campaign.plan.measured(kept.place)
        if found is None or found.transfer is None or what.load is None:
            continue
        cycle, point = kept.place.cycle, kept.place.point
        idle, alone = unloaded.get((cycle, point), (None, None))
        beside = answered(found, what.duration_s)
        responsive = loaded_responsiveness(found, what.duration_s)
        means = (_mean(found), _mean(idle))
        rows += [
            {
                "cycle": cycle,
                "point": point,
                "traffic": name,
                "streams": load.streams,
                "window_bytes": load.window_bytes,
                "congestion_control": load.congestion_control,
                "duration_s": what.duration_s,
                "goodput_bps": goodput_bps(transfer),
                "loaded_rtt_s": means[0],
                "loaded_min_s": None if found.pings is None else found.pings.min_s,
                "rtt_iqr_s": _of_rtts(found.pings, interquartile_range),
                "unloaded_rtt_s": means[1],
                "unloaded_min_s": None if idle is None or idle.pings is None else idle.pings.min_s,
                "rtt_difference_s": _difference(*means),
                "loaded_loss": _loss(found.pings),
                "unloaded_loss": None if idle is None else _loss(idle.pings),
                "variability": _of_rtts(found.pings, min_max_variability),
                "unloaded_variability": None if idle is None else _of_rtts(idle.pings, min_max_variability),
                "retransmits": sum(stream.retransmits or 0 for stream in transfer.streams),
                "fairness": jain_index(
                    [stream.received_bytes / stream.seconds for stream in transfer.streams]
                ),
                "user_percent": transfer.sender_cpu_percent.get("user"),
                "system_percent": transfer.sender_cpu_percent.get("system"),
                "receiver_percent": transfer.receiver_cpu_percent.get("total"),
                "joined": None if found.joined is None else " ".join(found.joined),
                "foreign_cpus": found.foreign_cpus,
                "degraded": bool(found.degraded),
                "disturbed": bool(found.disturbance),
                **{
                    name: found.account.get(name)
                    for name in ("stolen_s", "softirq_wait_s", "emulator_waited_s")
                },
                "handshake_s": None if beside is None else beside.handshake_s,
                "tls_s": None if beside is None else beside.tls_handshake_s,
                "answer_s": None if beside is None else beside.answer_s,
                "unloaded_handshake_s": None if alone is None else alone.handshake_s,
                "unloaded_tls_s": None if alone is None else alone.tls_handshake_s,
                "unloaded_answer_s": None if alone is None else alone.answer_s,
                "requests_lost": requests_lost(found.requests) if found.requests else None,
                "foreign_per_minute": None if beside is None else beside.per_minute,
                "rpm": None if responsive is None else responsive.rpm,
            }
            for name, load, transfer in _transfers(what, found)
        ]
    return pl.DataFrame(rows, schema=MEASUREMENTS)


def interval_table(campaign: Campaign) -> pl.DataFrame:
    """The rate of each stream second by second: the columns `INTERVALS`; seconds from 1."""
    simulated = isinstance(campaign.plan.scenario.testbed, Sim)
    rows = [
        (
            kept.place.cycle,
            kept.place.point,
            name,
            "up" if load.forward else "down",
            number,
            second,
            rate,
            counted_by,
        )
        for kept in campaign.kept
        if kept.measurement is not None
        for name, load, transfer in _transfers(campaign.plan.measured(kept.place), kept.measurement)
        for number, stream in enumerate(transfer.streams, 1)
        for counted_by in ("receiver" if simulated or stream.received_bps else "sender",)
        for second, rate in enumerate(stream.received_bps or stream.rates_bps, 1)
    ]
    return pl.DataFrame(rows, schema=INTERVALS, orient="row")


def _transfers(what: Measured, found: Measurement) -> Iterator[tuple[str, Load, Transfer]]:
    """The transfers of TCP of a measurement, by the name of their traffic, the first one first."""
    if what.load is not None and found.transfer is not None:
        yield what.load_name, what.load, found.transfer
    for name, load in what.beside.items():
        if isinstance(load, Load) and name in found.beside:
            yield name, load, found.beside[name]


def _mean(found: Measurement | None) -> float | None:
    return None if found is None or found.pings is None else found.pings.mean_s


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _of_rtts(pings: Pings | None, statistic: Callable[[Sequence[float]], float]) -> float | None:
    return statistic(pings.rtts_s) if pings is not None and pings.rtts_s else None


def _loss(pings: Pings | None) -> float | None:
    return None if pings is None else probe_loss(pings.sent, len(pings.rtts_s))
