"""What a campaign found, point by point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weirlab import stats
from weirlab.campaigns.campaign import Campaign, Kept
from weirlab.campaigns.measurement import Measurement, Transfer
from weirlab.campaigns.plan import Datagrams, Load, Plan
from weirlab.campaigns.responsiveness import (
    Answered,
    answered,
    last_rtts,
    loaded_responsiveness,
    requests_lost,
)
from weirlab.results import usable_cpus


@dataclass(frozen=True)
class LoadSummary:
    """One of several loads of a point, over all cycles. NaN where nothing was measured."""

    name: str
    """Of its traffic."""
    direction: str
    """`forward` (from the near end) or `backward`."""
    transport: str
    """`tcp` or `udp`."""
    streams: int
    transfers: int
    """How many were measured."""
    goodput_bps: float
    """Median, while it ran."""
    goodput_iqr_bps: float
    """NaN of a single one."""
    offered_bps: float
    """Of UDP, what was asked for."""
    lost: float
    """Of UDP, the share of the datagrams that did not arrive."""
    jitter_s: float
    """Of UDP, the median over streams and cycles."""


@dataclass(frozen=True)
class DelaySummary:
    """One-way delays of a point in one direction, over all cycles; times in s."""

    direction: str
    """`forward` (from the near end) or `backward`."""
    loaded: bool
    """Whether during a transfer."""
    sent: int
    """Packets that left; of the way back the answers."""
    lost: float
    """Share of them that did not arrive."""
    least_s: float
    median_s: float
    p99_s: float
    jitter_s: float
    """Mean of the differences, without sign, of packets sent one after the other.
    Source: RFC 3393, section 4.5"""


DISTURBED = 0.1
"""Share of the CPUs that other programs may keep busy."""


@dataclass(frozen=True)
class PointSummary:
    """One point over all cycles. NaN where nothing was measured; times in s."""

    levels: Mapping[str, str]
    transfers: int
    """Measurements with a transfer."""
    failed: int
    """Measurements whose every attempt failed."""
    degraded: int
    """Measurements whose path is to be doubted; they are not left out."""
    disturbed: int
    """Measurements during which other programs kept a tenth of this host's CPUs busy, or more, or that say
    what took time from the emulator; they are not left out, either."""
    goodput_bps: float
    """Median."""
    goodput_iqr_bps: float
    """NaN of a single cycle."""
    loaded_min_s: float
    loaded_mean_s: float
    unloaded_min_s: float
    unloaded_mean_s: float
    rtt_difference_s: float
    """Median over the cycles of the mean loaded less the mean unloaded round-trip time."""
    loaded_p95_s: float
    """Of all pings during a transfer."""
    loaded_p99_s: float
    induced_s: float
    """Median of all loaded less median of all unloaded round-trip times."""
    loaded_per_minute: float
    """Round trips per minute of the pings during a transfer: 60 s over their trimmed mean. Of pings alone, so
    not the RPM of IPPM responsiveness."""
    unloaded_per_minute: float
    connections_per_minute: float
    """The same of the round-trip times that TCP itself saw in the connections that carried the load, in the
    last four intervals of each stream: the loaded half of RPM as IPPM responsiveness has it where such
    connections take no probes."""
    rpm: float
    """Responsiveness of IPPM, with TLS where requests have it: median over the cycles of half of what
    requests on new connections meet, and half of what the loaded connections do. NaN without requests during
    a transfer."""
    foreign_per_minute: float
    """Median of the first half: of the requests answered in the last four seconds of a transfer."""
    unloaded_foreign_per_minute: float
    """The same without a transfer, of all requests."""
    handshake_s: float
    """Median over the cycles of the trimmed mean of TCP handshakes, during the last four seconds of a
    transfer."""
    tls_s: float
    """The same of TLS handshakes; NaN without TLS."""
    answer_s: float
    """The same of requests on these connections."""
    unloaded_handshake_s: float
    unloaded_tls_s: float
    unloaded_answer_s: float
    requests_lost: float
    """Share of the requests during a transfer that were not answered in time."""
    loaded_variability: float
    """Median over the cycles of 1 - min / mean of the loaded round-trip times."""
    loaded_loss: float
    """Share of the pings during a transfer that were not answered."""
    unloaded_loss: float
    window_bytes: float
    """Median effective window of a stream: its rate times the mean round-trip time its TCP saw."""
    fairness: float
    """Median of Jain's index over the streams."""
    sender_cpu_percent: float
    """Median, in per cent of one CPU."""
    receiver_cpu_percent: float
    loads: tuple[LoadSummary, ...]
    """Each load, where a step has several at a time; the figures above are of the first transfer of TCP."""
    together_up_bps: float = math.nan
    """Where a step has several loads: the median over the cycles of what all from the near end delivered
    together, each while it ran."""
    together_down_bps: float = math.nan
    """The same of all to it."""
    delays: tuple[DelaySummary, ...] = ()
    """One-way delays of both directions, unloaded and loaded, where they were measured."""

    @property
    def together_bps(self) -> dict[str, float]:
        """What all loads delivered together, by the way that they go; empty where there are not several."""
        both = {"up": self.together_up_bps, "down": self.together_down_bps}
        return {way: rate for way, rate in both.items() if math.isfinite(rate)}


def goodput_bps(transfer: Transfer) -> float:
    """What all streams delivered together: sum of 8 bytes / seconds, as their receivers counted."""
    return math.fsum(8 * stream.received_bytes / stream.seconds for stream in transfer.streams)


def summaries(campaign: Campaign) -> list[PointSummary]:
    """Each point of the study, over the cycles measured so far."""
    plan = campaign.plan
    return [
        _summary(plan, levels, [kept for kept in campaign.kept if kept.place.point == point])
        for point, levels in enumerate(plan.levels)
    ]


def _summary(plan: Plan, levels: Mapping[str, str], kept: Sequence[Kept]) -> PointSummary:
    made = [(each.place.cycle, each.measurement) for each in kept if each.measurement is not None]
    transfers = [measured.transfer for _, measured in made if measured.transfer is not None]
    loaded = [(cycle, m.pings) for cycle, m in made if m.loaded and m.pings is not None]
    unloaded = [(cycle, m.pings) for cycle, m in made if not m.loaded and m.pings is not None]
    goodputs = [goodput_bps(transfer) for transfer in transfers]
    means = [
        {cycle: pings.mean_s for cycle, pings in part if pings.mean_s is not None}
        for part in (loaded, unloaded)
    ]
    differences = [means[0][cycle] - means[1][cycle] for cycle in means[0] if cycle in means[1]]
    windows = [
        stats.effective_window(8 * stream.received_bytes / stream.seconds, stream.mean_rtt_s)
        for transfer in transfers
        for stream in transfer.streams
        if stream.mean_rtt_s is not None
    ]
    rates = [
        [stream.received_bytes / stream.seconds for stream in transfer.streams] for transfer in transfers
    ]
    timed = [
        (each.measurement, plan.measured(each.place).duration_s)
        for each in kept
        if each.measurement is not None
    ]
    beside, alone = (
        [found for m, s in timed if m.loaded is loaded and (found := answered(m, s)) is not None]
        for loaded in (True, False)
    )
    loaded_requests = [request for m, _ in timed if m.loaded and m.requests for request in m.requests]
    responsive = [loaded_responsiveness(m, duration_s) for m, duration_s in timed]
    rtts = [[rtt for _, pings in part for rtt in pings.rtts_s] for part in (loaded, unloaded)]
    together = _together(plan, kept)
    return PointSummary(
        levels=levels,
        transfers=len(transfers),
        failed=sum(each.measurement is None for each in kept),
        degraded=sum(bool(measured.degraded) for _, measured in made),
        disturbed=sum(
            bool(measured.disturbance) or (measured.foreign_cpus or 0.0) >= DISTURBED * usable_cpus()
            for _, measured in made
        ),
        goodput_bps=_median(goodputs),
        goodput_iqr_bps=stats.interquartile_range(goodputs) if len(goodputs) > 1 else math.nan,
        loaded_min_s=min((p.min_s for _, p in loaded if p.min_s is not None), default=math.nan),
        loaded_mean_s=_mean(list(means[0].values())),
        unloaded_min_s=min((p.min_s for _, p in unloaded if p.min_s is not None), default=math.nan),
        unloaded_mean_s=_mean(list(means[1].values())),
        rtt_difference_s=_median(differences),
        loaded_p95_s=stats.quantile(rtts[0], 0.95) if rtts[0] else math.nan,
        loaded_p99_s=stats.quantile(rtts[0], 0.99) if rtts[0] else math.nan,
        induced_s=_median(rtts[0]) - _median(rtts[1]),
        loaded_per_minute=stats.round_trips_per_minute(rtts[0]) if rtts[0] else math.nan,
        unloaded_per_minute=stats.round_trips_per_minute(rtts[1]) if rtts[1] else math.nan,
        connections_per_minute=_connections_per_minute(transfers),
        rpm=_median([each.rpm for each in responsive if each is not None]),
        foreign_per_minute=_median([each.per_minute for each in beside]),
        unloaded_foreign_per_minute=_median([each.per_minute for each in alone]),
        handshake_s=_median([each.handshake_s for each in beside]),
        tls_s=_tls_s(beside),
        answer_s=_median([each.answer_s for each in beside]),
        unloaded_tls_s=_tls_s(alone),
        unloaded_handshake_s=_median([each.handshake_s for each in alone]),
        unloaded_answer_s=_median([each.answer_s for each in alone]),
        requests_lost=requests_lost(loaded_requests) if loaded_requests else math.nan,
        loaded_variability=_median([stats.min_max_variability(p.rtts_s) for _, p in loaded if p.rtts_s]),
        loaded_loss=_loss([(p.sent, len(p.rtts_s)) for _, p in loaded]),
        unloaded_loss=_loss([(p.sent, len(p.rtts_s)) for _, p in unloaded]),
        window_bytes=_median(windows),
        fairness=_median([stats.jain_index(each) for each in rates]),
        sender_cpu_percent=_median(_totals(transfer.sender_cpu_percent for transfer in transfers)),
        receiver_cpu_percent=_median(_totals(transfer.receiver_cpu_percent for transfer in transfers)),
        loads=_loads(plan, kept),
        together_up_bps=together.get("up", math.nan),
        together_down_bps=together.get("down", math.nan),
        delays=tuple(_delays([m for _, m in made])),
    )


def _delays(made: Sequence[Measurement]) -> Iterator[DelaySummary]:
    """Of both directions, without and with a load, as far as there are any."""
    for loaded in (False, True):
        stamps = [m.stamps for m in made if m.stamps is not None and m.loaded == loaded]
        if not stamps:
            continue
        answered = sum(delay is not None for each in stamps for delay in each.there_s)
        ways = (
            ("forward", [each.there_s for each in stamps], sum(len(each.there_s) for each in stamps)),
            ("backward", [each.back_s for each in stamps], answered),
        )
        for direction, series, sent in ways:
            delays = [delay for each in series for delay in each if delay is not None]
            changes = [
                abs(after - before)
                for each in series
                for before, after in itertools.pairwise(each)
                if before is not None and after is not None
            ]
            yield DelaySummary(
                direction=direction,
                loaded=loaded,
                sent=sent,
                lost=1 - len(delays) / sent if sent else math.nan,
                least_s=min(delays, default=math.nan),
                median_s=_median(delays),
                p99_s=stats.quantile(delays, 0.99) if delays else math.nan,
                jitter_s=_mean(changes),
            )


def _loads(plan: Plan, kept: Sequence[Kept]) -> tuple[LoadSummary, ...]:
    """Each load of a point whose steps have more than a transfer of TCP; none where none has."""
    found: dict[str, tuple[Load | Datagrams, list[Transfer]]] = {}
    several = False
    for each in kept:
        what, made = plan.measured(each.place), each.measurement
        several |= bool(what.beside)
        named = dict(what.beside) if what.load is None else {what.load_name: what.load, **what.beside}
        for name, load in named.items():
            transfers = found.setdefault(name, (load, []))[1]
            transfer = (
                None if made is None else made.beside.get(name) if name in what.beside else made.transfer
            )
            transfers += [] if transfer is None else [transfer]
    if not several:
        return ()
    return tuple(_load_summary(name, load, transfers) for name, (load, transfers) in found.items())


def _together(plan: Plan, kept: Sequence[Kept]) -> dict[str, float]:
    """By way, what all loads delivered together, where a step has several."""
    sums: dict[str, list[float]] = {}
    for each in kept:
        what, made = plan.measured(each.place), each.measurement
        if made is None or not what.beside:
            continue
        for way, forward in (("up", True), ("down", False)):
            rates = [
                goodput_bps(made.beside[name])
                for name, load in what.beside.items()
                if load.forward == forward and name in made.beside
            ]
            if what.load is not None and what.load.forward == forward and made.transfer is not None:
                rates.append(goodput_bps(made.transfer))
            if rates:
                sums.setdefault(way, []).append(math.fsum(rates))
    return {way: _median(rates) for way, rates in sums.items()}


def _load_summary(name: str, load: Load | Datagrams, transfers: Sequence[Transfer]) -> LoadSummary:
    goodputs = [goodput_bps(transfer) for transfer in transfers]
    streams = [stream for transfer in transfers for stream in transfer.streams]
    sent = sum(stream.datagrams or 0 for stream in streams)
    missed = sum(stream.lost_datagrams or 0 for stream in streams)
    return LoadSummary(
        name=name,
        direction="forward" if load.forward else "backward",
        transport="tcp" if isinstance(load, Load) else "udp",
        streams=load.streams,
        transfers=len(transfers),
        goodput_bps=_median(goodputs),
        goodput_iqr_bps=stats.interquartile_range(goodputs) if len(goodputs) > 1 else math.nan,
        offered_bps=load.rate_bps if isinstance(load, Datagrams) else math.nan,
        lost=missed / sent if sent else math.nan,
        jitter_s=_median([stream.jitter_s for stream in streams if stream.jitter_s is not None]),
    )


def _tls_s(found: Iterable[Answered]) -> float:
    return _median([each.tls_handshake_s for each in found if each.tls_handshake_s is not None])


def _connections_per_minute(transfers: Sequence[Transfer]) -> float:
    """Round trips per minute in the loaded connections, over all streams alike."""
    last = [rtt for transfer in transfers for rtt in last_rtts(transfer)]
    return stats.round_trips_per_minute(last) if last else math.nan


def _totals(shares: Iterable[Mapping[str, float]]) -> list[float]:
    return [share["total"] for share in shares if "total" in share]


def _median(values: Sequence[float]) -> float:
    return stats.median(values) if values else math.nan


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _loss(counts: Sequence[tuple[int, int]]) -> float:
    sent = sum(count for count, _ in counts)
    return stats.probe_loss(sent, sum(answered for _, answered in counts)) if sent else math.nan
