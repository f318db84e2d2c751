"""A campaign as tables: a row for each loaded measurement, and one for each second of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from weirlab.campaigns.campaign import Campaign
from weirlab.campaigns.measurement import Measurement, Transfer
from weirlab.campaigns.plan import Load, Measured
from weirlab.campaigns.responsiveness import Answered, answered, loaded_responsiveness, requests_lost
from weirlab.campaigns.summary import goodput_bps
from weirlab.columns import Columns, schema_of, table_of
from weirlab.scenario.testbeds import Sim
from weirlab.stats import Responsiveness, interquartile_range, jain_index, min_max_variability, probe_loss


class _Loaded(NamedTuple):
    """A transfer of a loaded measurement."""

    cycle: int
    point: int
    traffic: str
    load: Load
    transfer: Transfer
    duration_s: float
    found: Measurement
    idle: Measurement | None
    """The unloaded measurement of the same cycle and point."""
    beside: Answered | None
    """How requests were answered, and without the load."""
    alone: Answered | None
    responsive: Responsiveness | None


_MEASUREMENTS: Columns[_Loaded] = {
    "cycle": (pl.Int64, lambda row: row.cycle),
    "point": (pl.Int64, lambda row: row.point),
    "traffic": (pl.String, lambda row: row.traffic),
    "streams": (pl.Int64, lambda row: row.load.streams),
    "window_bytes": (pl.Int64, lambda row: row.load.window_bytes),
    "congestion_control": (pl.String, lambda row: row.load.congestion_control),
    "duration_s": (pl.Float64, lambda row: row.duration_s),
    "goodput_bps": (pl.Float64, lambda row: goodput_bps(row.transfer)),
    "loaded_rtt_s": (pl.Float64, lambda row: _mean(row.found)),
    "loaded_min_s": (pl.Float64, lambda row: row.found.pings and row.found.pings.min_s),
    "rtt_iqr_s": (pl.Float64, lambda row: _of_rtts(row.found, interquartile_range)),
    "unloaded_rtt_s": (pl.Float64, lambda row: _mean(row.idle)),
    "unloaded_min_s": (pl.Float64, lambda row: row.idle and row.idle.pings and row.idle.pings.min_s),
    "rtt_difference_s": (pl.Float64, lambda row: _difference(_mean(row.found), _mean(row.idle))),
    "loaded_loss": (pl.Float64, lambda row: _loss(row.found)),
    "unloaded_loss": (pl.Float64, lambda row: _loss(row.idle)),
    "variability": (pl.Float64, lambda row: _of_rtts(row.found, min_max_variability)),
    "unloaded_variability": (pl.Float64, lambda row: _of_rtts(row.idle, min_max_variability)),
    "retransmits": (pl.Int64, lambda row: sum(stream.retransmits or 0 for stream in row.transfer.streams)),
    "fairness": (pl.Float64, lambda row: jain_index(_rates(row.transfer))),
    "user_percent": (pl.Float64, lambda row: row.transfer.sender_cpu_percent.get("user")),
    "system_percent": (pl.Float64, lambda row: row.transfer.sender_cpu_percent.get("system")),
    "receiver_percent": (pl.Float64, lambda row: row.transfer.receiver_cpu_percent.get("total")),
    "joined": (pl.String, lambda row: None if row.found.joined is None else " ".join(row.found.joined)),
    "foreign_cpus": (pl.Float64, lambda row: row.found.foreign_cpus),
    "degraded": (pl.Boolean, lambda row: bool(row.found.degraded)),
    "disturbed": (pl.Boolean, lambda row: bool(row.found.disturbance)),
    "stolen_s": (pl.Float64, lambda row: row.found.account.get("stolen_s")),
    "softirq_wait_s": (pl.Float64, lambda row: row.found.account.get("softirq_wait_s")),
    "emulator_waited_s": (pl.Float64, lambda row: row.found.account.get("emulator_waited_s")),
    "handshake_s": (pl.Float64, lambda row: row.beside and row.beside.handshake_s),
    "tls_s": (pl.Float64, lambda row: row.beside and row.beside.tls_handshake_s),
    "answer_s": (pl.Float64, lambda row: row.beside and row.beside.answer_s),
    "unloaded_handshake_s": (pl.Float64, lambda row: row.alone and row.alone.handshake_s),
    "unloaded_tls_s": (pl.Float64, lambda row: row.alone and row.alone.tls_handshake_s),
    "unloaded_answer_s": (pl.Float64, lambda row: row.alone and row.alone.answer_s),
    "requests_lost": (pl.Float64, lambda row: _requests_lost(row.found)),
    "foreign_per_minute": (pl.Float64, lambda row: row.beside and row.beside.per_minute),
    "rpm": (pl.Float64, lambda row: row.responsive and row.responsive.rpm),
}
MEASUREMENTS = schema_of(_MEASUREMENTS)
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
        rows += [
            _Loaded(cycle, point, *transferred, what.duration_s, found, idle, beside, alone, responsive)
            for transferred in _transfers(what, found)
        ]
    return table_of(_MEASUREMENTS, rows)


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


def _rates(transfer: Transfer) -> list[float]:
    return [stream.received_bytes / stream.seconds for stream in transfer.streams]


def _mean(found: Measurement | None) -> float | None:
    return None if found is None or found.pings is None else found.pings.mean_s


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _of_rtts(found: Measurement | None, statistic: Callable[[Sequence[float]], float]) -> float | None:
    return statistic(found.pings.rtts_s) if found and found.pings and found.pings.rtts_s else None


def _requests_lost(found: Measurement) -> float | None:
    return requests_lost(found.requests) if found.requests else None


def _loss(found: Measurement | None) -> float | None:
    return probe_loss(found.pings.sent, len(found.pings.rtts_s)) if found and found.pings else None
