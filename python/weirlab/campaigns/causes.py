"""What keeps a point of a campaign from carrying more: causes from what was measured, most certain first.

A link that is full explains all: what was lost there was lost because of that. Then a busy processor and
windows that are used up; what remains follows from what the path lost, and where.

One file: the causes are tried in this order, and each excludes those after it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from weirlab.campaigns.campaign import Campaign
from weirlab.campaigns.measurement import Measurement, Stream, Transfer
from weirlab.campaigns.plan import Load, Measured, Plan
from weirlab.campaigns.summary import goodput_bps
from weirlab.heavy import np
from weirlab.results import usable_cpus
from weirlab.scenario.network.path import Hop, Line, PathPlan
from weirlab.scenario.testbeds import Sim
from weirlab.stats import effective_window, mean_interval, median

FULL_LINK = 0.95
"""Share of what a path can carry from which on it is full."""
_FULL = 0.9
"""A window of which this share is under way, and a CPU that is busy for this share, limit a stream."""
_FULL_EMULATOR = 0.85
"""The same of the emulator, which rests for 8 % of the time that it works (`weir_live::host::Rest`), and is
there for a little longer than the transfer."""
_NEARLY_FULL = 0.8
"""A share that is reported where nothing else explains what is missing, such as a sender that keeps below."""
_NO_MORE = 1.05
"""Where it is not known what a path can carry: more streams or larger windows that bring less than this
factor find it full."""
_MUCH_MORE = 1.5
"""Streams times windows that count as more; and random losses that would leave this factor of the goodput do
not explain it."""
_WAITING = 1.1
"""A round trip is longer by packets that wait from this factor of the least one on."""
_START = 0.2
"""Share of a transfer in which it starts."""
_LEAST_INTERVALS = 4
_DRIFT = 0.05
"""A change from half to half that matters, as a share."""
_LONGER = 4.0
"""Times the duration that is tried where transfers have not settled."""
_LOSSES_TO_SETTLE = 10
"""Per stream, until a window that losses hold is near its mean."""
_TIMES_S = (5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)
_MOST_LANES = 8
"""Of more than these, what is carried is near to a whole number of lanes by chance."""
_PART = 0.2
"""Of the losses that overflows have to make up."""
_ASKED_BYTES = (8 << 10, 16 << 10, 55 << 10, 64 << 10)
_GRANTED = (1.05, 1.12, 1.13, 1.2)
"""What Linux 6.18 grants of such windows, measured as rate times round-trip time; of larger ones as of the
last. See the page on bulk transfers.
"""
_CUBIC_BETA, _CUBIC_C = 0.7, 0.4
_LEAST_TIMEOUT_S = 0.2


@dataclass(frozen=True)
class Limit:
    """Something that keeps the goodput from being greater."""

    what: str
    """`bottleneck`, `cpu`, `way back`, `window`, `start`, `loss` or `buffer`."""
    evidence: str


@dataclass(frozen=True)
class Drift:
    """Transfers that became slower or faster while they ran: a longer one carries another rate."""

    change: float
    """Mean rate of a stream in the second half less the first, as a share of the first; the start is left
    out, a fifth of the transfer."""
    low: float
    """The change lies from here to `high` with 95 % confidence."""
    high: float
    try_s: float
    """How long transfers should take [s]."""


def drift(campaign: Campaign, point: int) -> Drift | None:
    """Whether the streams of a point have not settled: each paired with itself, over streams and cycles, by
    Student's t. None where the interval holds zero, for less than 5 %, and for series of fewer than four
    intervals after the start."""
    case = _Case.of(campaign, point)
    if case is None:
        return None
    pairs = [pair for transfer in case.transfers for pair in _settled_halves_bps(transfer)]
    found = mean_interval([second - first for first, second in pairs])
    mean = math.fsum(first for first, _ in pairs)
    if found is None or found.count < 2 or not mean or found.low <= 0 <= found.high:
        return None
    first = mean / len(pairs)
    if abs(found.mean) < _DRIFT * first:
        return None
    try_s = _LONGER * case.load.seconds(case.loaded.duration_s)
    if case.path is not None and (bound := case.bound_bps) < math.inf:
        # Losses keep a window near its mean after some of them: so many packets apart, at that rate.
        bits_apart = 8 * _segment_bytes(case.path, case.load) / case.lost_share
        try_s = max(try_s, _LOSSES_TO_SETTLE * bits_apart * case.load.streams / bound)
    return Drift(found.mean / first, found.low / first, found.high / first, _round_s(try_s))


def limits(
    campaign: Campaign,
    point: int,
    carried_by_more_bps: float | None,
    carried_by_wider_bps: float | None = None,
) -> list[Limit]:
    """What keeps a point from carrying more, as far as the measurements show.

    Args:
        carried_by_more_bps: The greatest median goodput of points with more streams, of windows that are not
            smaller; None: there are none. Where it is not known what the path can carry, a link that is full
            is told from losses by these: of streams that lose at random more carry more.
        carried_by_wider_bps: The same of points with larger windows. Those carry no more where losses hold
            the streams back, either, so that they point to a full link only where packets wait, too.
    """
    case = _Case.of(campaign, point)
    if case is None:
        return []
    cpus = list(_cpus(case))
    full = _full(case, FULL_LINK)
    if full is not None:
        return [_not_for_long(full, case)]
    lanes = _full_lanes(case)
    if lanes is not None:
        return [lanes]
    window = _window(case)
    if case.ceiling_bps is None and not cpus:
        own, waits = case.own_bps, window is not None or _packets_wait(campaign, point, case)
        for what, carried_bps, tells in (
            ("more streams", carried_by_more_bps, True),
            ("larger windows", carried_by_wider_bps, waits),
        ):
            if carried_bps is not None and carried_bps < _NO_MORE * own and tells:
                text = f"{what} carry {carried_bps / 1e6:.2f} Mbit/s; this {own / 1e6:.2f}"
                return [Limit("bottleneck", text)]
    found = _way_back(case, _FULL) or window or _start(case)
    if found is not None:
        return [*cpus, found]
    losses = [*cpus, *_losses(case)]
    if losses:
        return losses
    nearly = _full(case, _NEARLY_FULL) or _way_back(case, _NEARLY_FULL)
    return list(_busy_host(case)) if nearly is None else [nearly]


@dataclass(frozen=True)
class _Case:
    """The load of a point that is judged, and what was measured of it."""

    plan: Plan
    path: PathPlan | None
    loaded: Measured
    """The first step with a load."""
    load: Load
    made: Sequence[tuple[Measured, Measurement]]
    """The measurements that have a transfer."""

    @classmethod
    def of(cls, campaign: Campaign, point: int) -> _Case | None:
        """None where nothing was measured of a load."""
        plan = campaign.plan
        made = [
            (plan.measured(kept.place), kept.measurement)
            for kept in campaign.kept
            if kept.place.point == point and kept.measurement is not None
            if kept.measurement.transfer is not None
        ]
        loaded = ((what, what.load) for what, _ in made if what.load is not None)
        found = next(loaded, None)
        return None if found is None else cls(plan, plan.paths[point], *found, made)

    @property
    def transfers(self) -> list[Transfer]:
        return [m.transfer for _, m in self.made if m.transfer is not None]

    @property
    def streams(self) -> list[Stream]:
        return [stream for transfer in self.transfers for stream in transfer.streams]

    @property
    def duration_s(self) -> float:
        return self.made[0][0].duration_s

    @cached_property
    def own_bps(self) -> float:
        """What the load carried, in the median."""
        return median([goodput_bps(transfer) for transfer in self.transfers])

    @cached_property
    def ceiling_bps(self) -> float | None:
        """What the path leaves to the load after the others that go its way; infinite without transmitters,
        None where that is not known."""
        if self.path is None:
            return None
        ceiling = ceiling_bps(self.path, self.load, self.duration_s)
        if ceiling is None or not math.isfinite(ceiling):
            return ceiling
        others = [
            math.fsum(
                goodput_bps(m.beside[name])
                * other.seconds(what.duration_s)
                / self.load.seconds(what.duration_s)
                for name, other in what.beside.items()
                if other.forward == self.load.forward and name in m.beside
            )
            for what, m in self.made
        ]
        return max(0.0, ceiling - median(others))

    @cached_property
    def lost_share(self) -> float:
        """Of the segments, what the path lost at random."""
        if self.path is None:
            return 0.0
        segments = sum(stream.received_bytes for stream in self.streams) / _segment_bytes(
            self.path, self.load
        )
        segments += sum(stream.retransmits or 0 for stream in self.streams)
        return self.counted("lost") / segments if segments else 0.0

    @cached_property
    def bound_bps(self) -> float:
        """What the losses at random that the path counted leave to the load; infinite where that is not
        known."""
        rtts = [stream.mean_rtt_s for stream in self.streams if stream.mean_rtt_s is not None]
        if self.path is None or not rtts:
            return math.inf
        return loss_bound_bps(self.load, self.lost_share, median(rtts), _segment_bytes(self.path, self.load))

    def counted(self, what: str) -> int:
        """What was `lost` or `dropped` in the direction of the load; of both, in logs that do not say."""
        found = 0
        for _, measured in self.made:
            total, forward = getattr(measured, what), getattr(measured, f"{what}_forward")
            found += int(total if forward is None else forward if self.load.forward else total - forward)
        return found


def _line_of(hop: Hop, load: Load) -> Line:
    """The direction of a hop that a load takes."""
    return hop.forward if load.forward else hop.backward or hop.forward


def ceiling_bps(path: PathPlan, load: Load, duration_s: float) -> float | None:
    """The most goodput [bit/s] that a path's transmitters leave to a load, headers deducted; infinite without
    any, None where that is not known: with traffic of others. Of several lanes there are as many as
    streams, at most.
    """
    lowest = math.inf
    payload = _segment_bytes(path, load)
    own = [] if load.host is None else [path.hosts[load.host]]
    for hop in (*own, *path.hops.values()):
        line = _line_of(hop, load)
        rate_bps = _mean_rate_bps(line, duration_s)
        if rate_bps is None:
            continue
        if line.cross:
            return None
        lanes = min(line.lanes, load.streams)
        lowest = min(lowest, lanes * rate_bps * payload / (path.mtu_bytes + line.framing.bytes))
    return lowest


def loss_bound_bps(load: Load, ratio: float, rtt_s: float, segment_bytes: int) -> float:
    """The goodput [bit/s] that losses at random, of this share of the packets, leave to all streams of a load
    where nothing else limits them; infinite for BBR, which they do not slow down below some per cent.

    CUBIC has what Reno would have where that is more.
    Source: PFTK 1998, the approximation with timeouts, each packet acknowledged; RFC 9438, section 5
    """
    if ratio <= 0 or load.congestion_control == "bbr":
        return math.inf
    timeout_s = max(_LEAST_TIMEOUT_S, 2 * rtt_s)
    waits = timeout_s * min(1.0, 3 * math.sqrt(3 * ratio / 8)) * ratio * (1 + 32 * ratio**2)
    packets_per_s = 1 / (rtt_s * math.sqrt(2 * ratio / 3) + waits)
    if load.congestion_control == "cubic":
        scale = (_CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA))) ** 0.25
        packets_per_s = max(packets_per_s, scale * (rtt_s / ratio) ** 0.75 / rtt_s)
    return 8 * segment_bytes * load.streams * packets_per_s


def most_segments(plan: Plan) -> float:
    """How many segments a simulated campaign carries at most, over all measurements: as many as transmitters,
    windows and random losses let through. What takes longest to simulate is a path without a rate.
    """
    return plan.cycles * math.fsum(
        _most_segments(plan, path, what)
        for path, steps in zip(plan.paths, plan.steps, strict=True)
        for what in steps
        if path is not None and what.load is not None
    )


def _most_segments(plan: Plan, path: PathPlan, what: Measured) -> float:
    load = what.load
    assert load is not None
    lines = [line for hop in path.hops.values() for line in (hop.forward, hop.backward or hop.forward)]
    rtt_s = math.fsum(line.least_delay.s for line in lines)
    ceiling, segment = ceiling_bps(path, load, what.duration_s), _segment_bytes(path, load)
    bounds = [math.inf if ceiling is None else ceiling]
    if rtt_s > 0:
        window = granted_bytes(plan, load.window_bytes or load.tcp.window.bytes)
        bounds.append(8 * window * load.streams / rtt_s)
        lost = 1 - math.prod(1 - _line_of(hop, load).loss for hop in path.hops.values())
        bounds.append(loss_bound_bps(load, lost, rtt_s, segment))
    return min(bounds) * load.seconds(what.duration_s) / 8 / segment


def granted_bytes(plan: Plan, asked_bytes: int) -> float:
    """The window that a connection gets when it asks for so much."""
    bed = plan.scenario.testbed
    factor = (
        bed.window_factor if isinstance(bed, Sim) else float(np.interp(asked_bytes, _ASKED_BYTES, _GRANTED))
    )
    return asked_bytes * factor


def _segment_bytes(path: PathPlan, load: Load) -> int:
    """Payload of a full segment."""
    headers = path.header_bytes + (12 if load.tcp.timestamps else 0)
    return min(load.tcp.segment.bytes, path.mtu_bytes - headers)


def _mean_rate_bps(line: Line, duration_s: float) -> float | None:
    """Of its transmitter over a measurement, for which the path was made; None without one."""
    if line.rate is not None:
        return float(line.rate.bps)
    if not line.steps:
        return None
    until_s = duration_s if line.repeat is None else line.repeat.s
    times = [min(step.at.s, until_s) for step in line.steps] + [until_s]
    bits = sum(
        step.rate.bps * (end - start)
        for step, start, end in zip(line.steps, times[:-1], times[1:], strict=True)
    )
    return bits / until_s


def _full(case: _Case, share: float) -> Limit | None:
    """The link, where a load takes this share of what it can."""
    own, ceiling = case.own_bps, case.ceiling_bps
    if ceiling is None or not math.isfinite(ceiling) or own < share * ceiling:
        return None
    word = "full" if own >= FULL_LINK * ceiling else "nearly full"
    text = f"the link is {word}: {own / 1e6:.2f} of the {ceiling / 1e6:.2f} Mbit/s of payload that fit"
    return Limit("bottleneck", text)


def _not_for_long(full: Limit, case: _Case) -> Limit:
    """A full link, with the notice that losses at random do not leave it so."""
    bound = case.bound_bps
    if case.own_bps <= _MUCH_MORE * bound:
        return full
    text = f"; the losses at random leave about {_mbit(bound)} Mbit/s in the long run, less than was measured"
    return Limit(full.what, full.evidence + text)


def _mbit(rate_bps: float) -> str:
    """In Mbit/s, to two digits."""
    return f"{float(f'{rate_bps / 1e6:.2g}'):.10g}"


def _full_lanes(case: _Case) -> Limit | None:
    """Lanes that are full though others are not: streams that share a lane leave another one empty."""
    if case.path is None or not case.counted("dropped"):
        return None
    own = case.own_bps
    for hop in case.path.hops.values():
        line = _line_of(hop, case.load)
        rate_bps = _mean_rate_bps(line, case.duration_s)
        if line.lanes < 2 or line.cross or rate_bps is None:
            continue
        segment_bytes = _segment_bytes(case.path, case.load)
        lane_bps = rate_bps * segment_bytes / (case.path.mtu_bytes + line.framing.bytes)
        full = math.ceil(own / lane_bps - 1e-9)
        if full < _MOST_LANES and FULL_LINK * full * lane_bps <= own:
            text = f"{full} of {line.lanes} lanes are full: {own / 1e6:.2f} of"
            text += f" {full * lane_bps / 1e6:.2f} Mbit/s"
            return Limit("bottleneck", f"{text}, and a stream stays with its lane")
    return None


def _packets_wait(campaign: Campaign, point: int, case: _Case) -> bool:
    """Whether round trips of the streams are longer than those of pings without a load."""
    alone = [
        kept.measurement.pings.min_s
        for kept in campaign.kept
        if kept.place.point == point and kept.measurement is not None and not kept.measurement.loaded
        if kept.measurement.pings is not None and kept.measurement.pings.min_s is not None
    ]
    rtts = [stream.mean_rtt_s for stream in case.streams if stream.mean_rtt_s is not None]
    return bool(alone and rtts) and median(rtts) >= _WAITING * min(alone)


def _way_back(case: _Case, share: float) -> Limit | None:
    """A way back of which acknowledgements take this share, or that is full of others' data before them."""
    path, load, own = case.path, case.load, case.own_bps
    if path is None:
        return None
    back = dataclasses.replace(load, forward=not load.forward)
    against = [
        goodput_bps(m.beside[name])
        for what, m in case.made
        for name, other in what.beside.items()
        if other.forward != load.forward and name in m.beside
    ]
    room = ceiling_bps(path, back, case.duration_s)
    if room is not None and against and median(against) >= _FULL * room:
        text = f"the way back is full of other transfers ({median(against) / 1e6:.2f} Mbit/s)"
        return Limit("way back", f"{text}, behind which acknowledgements wait")
    headers = path.header_bytes + (12 if load.tcp.timestamps else 0)
    bound = math.inf
    for hop in path.hops.values():
        line = _line_of(hop, back)
        rate_bps = _mean_rate_bps(line, case.duration_s)
        if rate_bps is not None:
            left_bps = max(0.0, rate_bps - _probes_bps(path, line, case.made[0][0]))
            acks_per_s = left_bps / 8 / (headers + line.framing.bytes)
            bound = min(bound, 8 * acks_per_s * load.tcp.delayed_ack * _segment_bytes(path, load))
    most = math.inf if case.ceiling_bps is None else case.ceiling_bps
    if bound >= most or not share * bound <= own <= bound / _FULL:
        return None
    text = f"the way back has room for acknowledgements of {bound / 1e6:.2f} Mbit/s; this carries"
    return Limit("way back", f"{text} {own / 1e6:.2f}")


def _probes_bps(path: PathPlan, line: Line, what: Measured) -> float:
    """What pings and test packets during a load, or their answers, take of a line. Headers of UDP and of echo
    requests have 8 B."""
    headers = path.header_bytes - 20 + 8 + line.framing.bytes
    series = [each for each in (what.probe, what.stamps) if each is not None]
    return math.fsum(8 * (each.payload_bytes + headers) / each.every_s for each in series)


def _cpus(case: _Case) -> Iterable[Limit]:
    """Programs of the measurement that keep a CPU busy, of which each has one thread."""
    for end, least, shares in (
        ("sender", _FULL, [transfer.sender_cpu_percent.get("total", 0.0) for transfer in case.transfers]),
        ("receiver", _FULL, [transfer.receiver_cpu_percent.get("total", 0.0) for transfer in case.transfers]),
        ("emulator of the path", _FULL_EMULATOR, [100 * _emulator_cpus(m) for _, m in case.made]),
    ):
        if shares and median(shares) >= 100 * least:
            yield Limit("cpu", f"the {end} keeps a CPU busy for {median(shares):.0f} % of the time")


def _emulator_cpus(measured: Measurement) -> float:
    """What is left of the busy CPUs without others and the ends."""
    if measured.busy_cpus is None or measured.foreign_cpus is None or measured.joined is None:
        return 0.0
    transfers = [measured.transfer, *measured.beside.values()]
    ends = sum(
        share["total"]
        for transfer in transfers
        if transfer is not None
        for share in (transfer.sender_cpu_percent, transfer.receiver_cpu_percent)
        if "total" in share
    )
    return max(0.0, measured.busy_cpus - measured.foreign_cpus - ends / 100)


def _busy_host(case: _Case) -> Iterable[Limit]:
    """A host without a CPU to spare, where nothing else explains what was carried."""
    busy = [m.busy_cpus for _, m in case.made if m.busy_cpus is not None]
    if busy and median(busy) >= _FULL * usable_cpus():
        foreign = median([m.foreign_cpus or 0.0 for _, m in case.made])
        text = f"{median(busy):.1f} of {usable_cpus()} CPUs of the host are busy"
        yield Limit("cpu", f"{text}, {foreign:.1f} with others' work")


def _window(case: _Case) -> Limit | None:
    load = case.load
    flights = [
        effective_window(8 * stream.received_bytes / stream.seconds, stream.mean_rtt_s)
        for stream in case.streams
        if stream.mean_rtt_s is not None
    ]
    if load.window_bytes is None or not flights:
        return None
    granted = granted_bytes(case.plan, load.window_bytes)
    if median(flights) < _FULL * granted:
        return None
    text = f"a stream has {median(flights) / 1e3:.1f} kB under way, of {granted / 1e3:.1f} kB granted"
    return Limit("window", f"{text} ({load.window_bytes / 1e3:.1f} kB requested)")


def _start(case: _Case) -> Limit | None:
    """Transfers that fill the link as soon as they have got going, and are short compared with that. Not
    where losses leave less in the long run: longer ones carry less then."""
    ceiling = case.ceiling_bps
    if ceiling is None or not math.isfinite(ceiling):
        return None
    halves = [half for transfer in case.transfers for half in _halves_bps(transfer)]
    if not halves:
        return None
    first, second = (median([pair[side] for pair in halves]) for side in (0, 1))
    if second < FULL_LINK * ceiling or first >= FULL_LINK * second or case.bound_bps < second:
        return None
    text = f"the link is full in the second half of a transfer ({second / 1e6:.2f} Mbit/s)"
    return Limit("start", f"{text}, and not in the first ({first / 1e6:.2f}): longer transfers carry more")


def _halves_bps(transfer: Transfer) -> list[tuple[float, float]]:
    """Goodput in both halves of a transfer, as its receiver counted."""
    received = [stream.received_bps or stream.rates_bps for stream in transfer.streams]
    length = min(map(len, received), default=0)
    if length < 2:
        return []
    rates = np.sum([each[:length] for each in received], axis=0)
    return [(float(np.mean(rates[: length // 2])), float(np.mean(rates[(length + 1) // 2 :])))]


def _settled_halves_bps(transfer: Transfer) -> list[tuple[float, float]]:
    """Goodput of each stream in both halves of a transfer without its start."""
    halves = []
    for stream in transfer.streams:
        rates = stream.received_bps or stream.rates_bps
        rest = rates[max(1, math.ceil(_START * len(rates))) :]
        if len(rest) >= _LEAST_INTERVALS:
            half = len(rest) // 2
            halves.append((math.fsum(rest[:half]) / half, math.fsum(rest[-half:]) / half))
    return halves


def _round_s(seconds: float) -> float:
    """The next time that people write."""
    return next((each for each in _TIMES_S if each >= seconds), _TIMES_S[-1])


def _losses(case: _Case) -> Iterable[Limit]:
    """Whether losses at random, overflows, or both hold the streams back."""
    resent = sum(stream.retransmits or 0 for stream in case.streams)
    segment = 1448 if case.path is None else _segment_bytes(case.path, case.load)
    segments = sum(stream.received_bytes for stream in case.streams) / segment
    if not resent or not segments:
        return
    reported = f"{100 * resent / segments:.2g} % of the segments were sent again"
    if case.path is None:
        yield Limit("loss", f"{reported}; where they were lost is not known")
        return
    lost, dropped = case.counted("lost"), case.counted("dropped")
    if not lost + dropped:
        return
    reported += f"; the path lost {lost} packets at random and {dropped} in queues"
    own, bound, ceiling = case.own_bps, case.bound_bps, case.ceiling_bps
    by_loss = lost > 0 and (not dropped or bound < (math.inf if ceiling is None else ceiling))
    if by_loss:
        leaves = ""
        if math.isfinite(bound):
            leaves = f", which leave about {_mbit(bound)} Mbit/s in the long run"
            if own > _MUCH_MORE * bound:
                leaves += f"; the {own / 1e6:.2f} Mbit/s measured are above that and not expected to last"
        yield Limit("loss", reported + leaves)
    if dropped > _PART * (dropped + lost) and (not by_loss or bound > _MUCH_MORE * own):
        yield Limit("buffer", reported)
