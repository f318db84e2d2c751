"""Who sends to whom at which gaps: traffic with its selectors and loads worked out.

Gaps. With `load`, the mean gap is the time that a frame occupies the sender's link (preamble and gap
included where the link has them, rounded up to 1 ps), divided by the load; with sizes drawn from a mix, the
mean of those times. With `rate` in frames/s it is its inverse; with `rate` in bit/s it is the bits of the
named size (frame, or UDP payload) over the rate. `on-off` sends in on periods, at gaps shorter by the share
of time that is on. A Bernoulli slot is the time that a frame occupies the link; a frame is in it with
probability slot / mean gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weirlab import spec as core
from weirlab.scenario.network.layout import Layout, NoMatchError, Port
from weirlab.scenario.network.selecting import EntryFault
from weirlab.scenario.traffic import (
    UDP_HEADERS_BYTES,
    Bernoulli,
    Bursts,
    Collective,
    Constant,
    Departing,
    FlowTable,
    Groups,
    Incast,
    Listed,
    Local,
    Matrix,
    OnOff,
    Pairs,
    Permutation,
    Poisson,
    Program,
    Trace,
    Traffic,
    Uniform,
)
from weirlab.spec import At, Runs
from weirlab.units import Rate

MIN_FRAME_BYTES = 64
"""Shortest Ethernet frame, with FCS.

Source: IEEE 802.3, clause 3.2.8."""
MAX_PAIRS = 1 << 22
"""Most pairs of a sender and a receiver; as many as the simulator takes."""


@dataclass(frozen=True)
class Flow:
    """One sender and where its frames go."""

    source: int
    """Id of the sending host."""
    targets: Sequence[int]
    """One host, or all those of which each frame draws one."""
    drawn: bool = False
    """Whether each frame draws its receiver."""


def flows_of(traffic: Traffic, layout: Layout) -> list[Flow]:
    """The flows of an entry of traffic, but for those of files and collective operations: none. Raises
    EntryFault."""
    if isinstance(traffic.source, FlowTable | Collective | Program | Trace) or isinstance(
        traffic.pattern, Matrix
    ):
        return []
    if isinstance(traffic.pattern, Listed):
        return _listed_flows(traffic, layout)
    senders = _hosts(traffic, layout, "from")
    if traffic.to is None and isinstance(traffic.pattern, Permutation | Groups | Local):
        receivers = senders
    else:
        receivers = _hosts(traffic, layout, "to")
    match traffic.pattern:
        case Incast() | None:
            return _incast(traffic, senders, receivers, layout)
        case Pairs():
            return _pairs(senders, receivers, layout)
        case Permutation(shift=shift):
            return _permutation(senders, receivers, shift)
        case Uniform(own=own):
            return _uniform(senders, receivers, own=own, layout=layout)
        case Groups() if len(receivers) == 1:
            # The receiver may be among the senders: it is not drawn.
            return _incast(traffic, senders, receivers, layout)
        case Groups() | Local():
            return _uniform(senders, receivers, own=False, layout=layout)
    raise AssertionError("a matrix names its hosts itself")


def _hosts(traffic: Traffic, layout: Layout, side: str) -> list[int]:
    selector = traffic.from_ if side == "from" else traffic.to
    if selector is None:
        what = (
            "the senders, such as 'from: host-0'" if side == "from" else "the receivers, such as 'to: host-3'"
        )
        raise EntryFault(f"'{side}' is missing: {what}")
    try:
        return layout.host_ids(selector)
    except NoMatchError as error:
        raise EntryFault(str(error), side) from None


def _incast(traffic: Traffic, senders: list[int], receivers: list[int], layout: Layout) -> list[Flow]:
    if len(receivers) != 1:
        counts = f"{len(senders)} senders and {len(receivers)} receivers"
        if traffic.pattern is None:
            kinds = "pattern: {kind: pairs}, permutation or uniform"
            raise EntryFault(f"{counts}: say who sends to whom, with {kinds}", "to")
        raise EntryFault(f"incast has one receiver (got {counts})", "to")
    (receiver,) = receivers
    others = [sender for sender in senders if sender != receiver]
    if not others:
        raise EntryFault(f"'{layout.nodes[receiver]}' is the only sender and the receiver", "to")
    return [Flow(sender, (receiver,)) for sender in others]


def _pairs(senders: list[int], receivers: list[int], layout: Layout) -> list[Flow]:
    if len(senders) != len(receivers):
        counts = f"{len(senders)} senders and {len(receivers)} receivers"
        raise EntryFault(f"pairs need as many receivers as senders (got {counts})", "to")
    for sender, receiver in zip(senders, receivers, strict=True):
        if sender == receiver:
            raise EntryFault(f"'{layout.nodes[sender]}' would be paired with itself", "to")
    return [Flow(sender, (receiver,)) for sender, receiver in zip(senders, receivers, strict=True)]


def _permutation(senders: list[int], receivers: list[int], shift: int | None) -> list[Flow]:
    if set(senders) != set(receivers):
        raise EntryFault("in a permutation the receivers are the senders; leave 'to' out", "to")
    count = len(senders)
    step = count // 2 if shift is None else shift
    if step % count == 0:
        raise EntryFault(f"a shift of {step} among {count} hosts sends each to itself", "pattern")
    return [Flow(sender, (senders[(i + step) % count],)) for i, sender in enumerate(senders)]


def _uniform(senders: list[int], receivers: list[int], *, own: bool, layout: Layout) -> list[Flow]:
    if len(senders) * len(receivers) > MAX_PAIRS:
        pairs = f"{len(senders)} senders and {len(receivers)} receivers"
        raise EntryFault(f"{pairs} are more than {MAX_PAIRS} pairs; select fewer", "to")
    every = Runs(receivers)
    flows = [Flow(sender, every if own else every.without(sender), drawn=True) for sender in senders]
    for flow in flows:
        if not flow.targets:
            raise EntryFault(f"'{layout.nodes[flow.source]}' has no receiver but itself", "to")
    return flows


def _listed_flows(traffic: Traffic, layout: Layout) -> list[Flow]:
    assert isinstance(traffic.pattern, Listed)
    for side, given in (("from", traffic.from_), ("to", traffic.to)):
        if given is not None:
            raise EntryFault("the list of flows names senders and receivers; leave this out", side)
    flows: list[Flow] = []
    for i, ends in enumerate(traffic.pattern.flows):
        try:
            ids = [layout.host_ids([end]) for end in ends]
        except NoMatchError as error:
            raise EntryFault(str(error), "pattern", "flows", i) from None
        if any(len(found) != 1 for found in ids):
            raise EntryFault("name one sender and one receiver in each flow", "pattern", "flows", i)
        (sender,), (receiver,) = ids
        if sender == receiver:
            raise EntryFault(f"'{ends[0]}' would send to itself", "pattern", "flows", i)
        if any(flow.source == sender for flow in flows):
            message = f"'{ends[0]}' sends twice here; write its second flow as another entry of traffic"
            raise EntryFault(message, "pattern", "flows", i)
        flows.append(Flow(sender, (receiver,)))
    return flows


def frame_sizes(source: Departing) -> tuple[tuple[int, int], ...]:
    """Frame sizes in bytes with their weights."""
    if source.mix is not None:
        return source.mix
    if source.payload is not None:
        return ((max(MIN_FRAME_BYTES, source.payload.bytes + UDP_HEADERS_BYTES), 1),)
    assert source.frame_size is not None
    return ((source.frame_size.bytes, 1),)


def _mean(values: list[tuple[int, int]]) -> float:
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)


def mean_gap_ps(source: Departing, port: Port | None) -> float | None:
    """Mean time between two frames of one sender; None for a load or rate of zero. Raises EntryFault."""
    sizes = frame_sizes(source)
    if source.load is not None:
        if source.load == 0:
            return None
        wire = [(_port(port).wire_ps(size), weight) for size, weight in sizes]
        return _mean(wire) / source.load
    if source.rate is None:
        raise EntryFault("how much? write 'load: 50 %', 'rate: 300 Mbit/s' or 'rate: 10 kframe/s'", "source")
    if source.rate.stored == 0:
        return None
    if isinstance(source.rate, Rate):
        counted = _mean(list(sizes)) if source.payload is None else source.payload.bytes
        return counted * 8e12 / source.rate.bps
    return 1e12 / source.rate.fps


def _port(port: Port | None) -> Port:
    if port is None:
        message = (
            "needs the line rate of the sender, which has links of different rates; write 'rate' instead"
        )
        raise EntryFault(message, "source")
    return port


def sizes_spec(source: Departing, *at: str) -> core.FrameSize:
    """Frame sizes as the spec holds them; their source stands `at` that place in the scenario."""
    sizes = frame_sizes(source)
    if len(sizes) == 1:
        return core.FrameSizeFixed(fixed=sizes[0][0], origin=At(*at))
    return core.FrameSizeMix(mix=sizes, origin=At(*at))


def departures(source: Departing, port: Port | None, *at: str) -> core.Departures | None:
    """The departure process of one sender as the spec holds it; None when it sends nothing. The source stands
    `at` that place in the scenario."""
    gap = mean_gap_ps(source, port)
    if gap is None:
        return None
    origin = At(*at)
    match source:
        case Constant():
            return core.DeparturesConstant(gap_ps=gap, origin=origin)
        case Poisson():
            return core.DeparturesPoisson(mean_gap_ps=gap, origin=origin)
        case Bernoulli():
            slot = _slot_ps(source, port, gap)
            return core.DeparturesBernoulli(slot_ps=slot, probability=slot / gap, origin=origin)
        case Bursts(mean_burst=mean, starts=starts):
            slot = _slot_ps(source, port, gap)
            return core.DeparturesBursts(
                slot_ps=slot,
                load=slot / gap,
                mean_frames=mean,
                starts_by_chance=starts == "chance",
                origin=origin,
            )
        case OnOff(mean_on=on, mean_off=off, starts=starts):
            return core.DeparturesOnOff(
                gap_ps=gap * on.ps / (on.ps + off.ps),
                mean_on_ps=on.ps,
                mean_off_ps=off.ps,
                starts_by_chance=starts == "chance",
                origin=origin,
            )
    raise AssertionError(f"{type(source).__name__} is no departure process")


def _slot_ps(source: Departing, port: Port | None, gap: float) -> int:
    """The slot of one frame. Raises EntryFault where more than one would be needed in each."""
    ((size, _),) = frame_sizes(source)
    slot = _port(port).wire_ps(size)
    if slot > gap:
        raise EntryFault(f"more than a frame in each slot would be needed ({slot / gap:.4g})", "source")
    return slot
