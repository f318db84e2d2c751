"""What is wrong with traffic beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weirlab import spec as core
from weirlab.scenario import traffic as kinds
from weirlab.scenario.network.layout import Layout
from weirlab.scenario.network.selecting import EntryFault, Fault
from weirlab.scenario.resolve.messages import messages
from weirlab.scenario.traffic.controllers import PACKETS
from weirlab.scenario.traffic.flows import Flow, departures, flows_of, frame_sizes
from weirlab.scenario.traffic.probing import Probing
from weirlab.scenario.traffic.rapid import Batches, Rapid
from weirlab.spec import Where
from weirlab.units import Rate, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


class _Assumed(NamedTuple):
    """A field of a transport that not every congestion control reads."""

    by: frozenset[str]
    """The kinds that read it."""
    instead: str
    """What the others do, and what to write."""


_STARTS = frozenset({"nscc", "dctcp", "swift", "reno", "cubic", "bbr", "prague"})
"""Those that start with a window."""
_ASSUMED: Mapping[str, _Assumed] = {
    "initial_window": _Assumed(_STARTS, "starts at its rate or with its greatest window"),
    "round_trip": _Assumed(_STARTS | {"hpcc"}, "assumes none"),
    "telemetry": _Assumed(frozenset({"hpcc"}), "reads none"),
}


def _assumed(transport: object) -> Iterator[Fault]:
    """Fields of a transport that its congestion control does not read: they would be ignored."""
    if not isinstance(transport, kinds.Tcp | kinds.Rdma):
        return
    kind, fields = transport.congestion_control.kind, type(transport).model_fields
    for name, (by, instead) in _ASSUMED.items():
        if name not in fields or kind in by or (value := getattr(transport, name)) == fields[name].default:
            continue
        # Credit and probes are reckoned with the round trip, too.
        if name == "round_trip" and isinstance(transport, kinds.Rdma) and _reckons(transport):
            continue
        yield ("transport", name), f"'{kind}' {instead}; leave this out (got '{value}')"


def _reckons(rdma: kinds.Rdma) -> bool:
    """Whether anything but the congestion control assumes a round-trip time."""
    recovery = rdma.recovery
    return rdma.credit is not None or (recovery.kind == "selective" and recovery.detection.kind == "sleek")


def check_traffic(scenario: Scenario, layout: Layout, *, searched: bool) -> Iterator[Fault]:
    """Faults of all traffic. `searched` is false where a search was left out that may set a rate."""
    for name, traffic in scenario.traffic.items():
        path: Where = ("traffic", name)
        varied = not searched or (
            scenario.search is not None and scenario.search.vary == f"traffic.{name}.source.rate"
        )
        amiss = [*_source(traffic, varied=varied), *_transport(traffic), *_messages(traffic)]
        amiss += _assumed(traffic.transport)
        if traffic.stop is not None and traffic.stop <= traffic.start:
            amiss.append((("stop",), f"is not after 'start' ({traffic.start})"))
        yield from ((path + place, message) for place, message in amiss)
        try:
            flows = flows_of(traffic, layout)
            if isinstance(traffic.source, kinds.Carried) and not amiss and layout.ports:
                messages(name, traffic, layout, 0, Path(scenario.file).parent if scenario.file else Path())
            if not amiss and not varied:
                _gaps(traffic, flows, layout)
            yield from ((path + place, message) for place, message in _batches(traffic, flows, layout))
        except EntryFault as fault:
            yield path + fault.path, str(fault)


def _gaps(traffic: kinds.Traffic, flows: list[Flow], layout: Layout) -> None:
    """Work out the departures of each flow, so that what is wrong with them is known."""
    source = traffic.source
    if not isinstance(source, kinds.Departing) or not layout.ports:
        return
    for flow in flows:
        port = layout.host_port(flow.source)
        process = departures(source, port)
        if isinstance(process, core.DeparturesOnOff) and port is not None:
            wire = sum(port.wire_ps(size) * weight for size, weight in frame_sizes(source))
            share = wire / sum(weight for _, weight in frame_sizes(source)) / process.gap_ps
            if share > 1 + 1e-9:
                message = f"while on, it would send at {share:.4g} times the line rate; lengthen 'mean_on'"
                raise EntryFault(message, "source")


def _batches(traffic: kinds.Traffic, flows: list[Flow], layout: Layout) -> Iterator[Fault]:
    """Packets that no adapter gathered arrive at least the time of one apart, on the narrowest link of their
    way: a time that is as long takes whole streams for one batch, and nothing is left to estimate from."""
    match traffic.transport:
        case kinds.Tcp(congestion_control=Rapid(denoising=Batches(within=within)), segment=segment):
            size = segment.bytes + kinds.TCP_HEADERS_BYTES
        case _:
            return
    ways = (layout.narrowest(flow.source, target) for flow in flows for target in flow.targets)
    links = [link for link in ways if link is not None]
    if not links:
        return
    link = min(links, key=lambda each: each.wire_ps(size))
    packet = Span(link.wire_ps(size))
    if within >= packet:
        yield (
            ("transport", "congestion_control", "denoising", "within"),
            f"a packet takes {packet} on {link.name} ({Rate(link.rate_bps)}), the narrowest link of its way: "
            f"packets that nobody gathered would be taken for a batch; write less, such as "
            f"{Span(packet.ps // 2)} (got {within})",
        )


def _source(traffic: kinds.Traffic, *, varied: bool) -> Iterator[Fault]:
    source = traffic.source
    if not isinstance(source, kinds.Departing):
        return
    if source.load is not None and source.rate is not None:
        yield ("source", "rate"), "cannot be combined with 'load'; write one of them"
    if source.load is None and source.rate is None and not varied:
        yield ("source",), "how much? write 'load: 50 %', 'rate: 300 Mbit/s' or 'rate: 10 kframe/s'"
    sizes = [name for name in ("frame_size", "mix", "payload") if getattr(source, name) is not None]
    if not sizes:
        yield (
            ("source",),
            "how long are the frames? write 'frame_size: 1500 B', 'mix: imix' or 'payload: 1470 B'",
        )
    for extra in sizes[1:]:
        yield ("source", extra), f"cannot be combined with '{sizes[0]}'; write one of them"
    if source.payload is not None and isinstance(traffic.transport, kinds.Raw):
        yield (
            ("source", "payload"),
            "only 'transport: {kind: udp}' has a payload; write 'frame_size' for raw frames",
        )
    if isinstance(source, kinds.Bursts) and source.mean_burst < 1:
        yield ("source", "mean_burst"), f"a burst has at least one frame (got {source.mean_burst:g})"
    if isinstance(source, kinds.Bernoulli | kinds.Bursts) and source.mix is not None:
        yield ("source", "mix"), "slots need frames of one size; write 'frame_size'"


def _transport(traffic: kinds.Traffic) -> Iterator[Fault]:
    match traffic.source, traffic.transport:
        case kinds.Bulk(), kinds.Raw() | kinds.Udp() | kinds.Rdma():
            yield (
                ("transport",),
                "bulk data needs a transport: {kind: tcp, congestion_control: {kind: reno}}",
            )
        case kinds.Departing() as source, kinds.Tcp():
            if source.payload is None:
                yield ("source",), "an application writes to tcp: say how much at a time, 'payload: 1448 B'"
            if source.stream is not None:
                yield ("source", "stream"), "is for frames as they are, not for what tcp carries"
        case kinds.Ping(), kinds.Tcp() | kinds.Udp() | kinds.Rdma():
            yield ("transport",), "echo requests have no transport; leave this out"
        case kinds.Stamp(), kinds.Tcp() | kinds.Udp() | kinds.Rdma():
            yield ("transport",), "test packets have a transport of their own; leave this out"
        case kinds.Requests(), kinds.Tcp() | kinds.Udp() | kinds.Rdma():
            yield ("transport",), "requests open connections of the system's TCP; leave this out"
    yield from _single_receiver(traffic)
    if isinstance(traffic.transport, kinds.Rdma) and not isinstance(traffic.source, kinds.Carried):
        yield ("transport",), "numbered packets carry messages: 'source: {kind: messages, ...}'"
    if isinstance(traffic.transport, kinds.Tcp):
        if traffic.transport.congestion_control.kind in PACKETS:
            yield (
                ("transport", "congestion_control"),
                "needs a report of each packet, which tcp does not send: 'transport: {kind: rdma, ...}'",
            )
        yield from (((("transport", *at)), message) for at, message in _recovery(traffic.transport))
    if traffic.streams > 1 and not isinstance(traffic.transport, kinds.Tcp):
        yield ("streams",), "only tcp has several connections; write more entries of traffic"


def _single_receiver(traffic: kinds.Traffic) -> Iterator[Fault]:
    """Faults of connections and estimators, which have one far end."""
    if isinstance(traffic.source, Probing):
        if not isinstance(traffic.transport, kinds.Udp):
            yield ("transport",), "an estimator sends datagrams: {kind: udp}"
        if isinstance(traffic.pattern, kinds.Uniform):
            yield ("pattern",), "an estimator has one receiver; write 'pairs', 'permutation' or a list"
    carried = isinstance(traffic.source, kinds.Carried)
    if (
        isinstance(traffic.transport, kinds.Tcp)
        and isinstance(traffic.pattern, kinds.Uniform)
        and not carried
    ):
        yield ("pattern",), "a tcp connection has one receiver; write 'pairs', 'permutation' or a list"


def _messages(traffic: kinds.Traffic) -> Iterator[Fault]:
    """Faults of messages, and of what only they have."""
    source, pattern = traffic.source, traffic.pattern
    if not isinstance(source, kinds.Carried):
        if isinstance(pattern, kinds.Groups | kinds.Local | kinds.Matrix):
            yield ("pattern",), "is for messages: 'source: {kind: messages, ...}'"
        return
    if isinstance(traffic.transport, kinds.Udp):
        yield ("transport",), "messages go over tcp, over rdma, or as frames: {kind: raw}"
    elif isinstance(traffic.transport, kinds.Raw):
        if source.handshake:
            yield ("source", "handshake"), "only tcp has one; leave this out"
        if source.balancing.kind != "flow" or source.balancing.weighted:
            yield ("source", "balancing"), "raw frames take the way of their pair; leave this out"
    elif isinstance(traffic.transport, kinds.Rdma):
        yield from _rdma(traffic.transport, handshake=source.handshake)
    elif isinstance(traffic.transport.congestion_control, Rapid):
        yield ("transport", "congestion_control"), "'rapid' probes for longer than a message lasts"
    yield from _beside_messages(traffic)
    if isinstance(source, kinds.Messages):
        if source.load is not None and source.every is not None:
            yield ("source", "every"), "cannot be combined with 'load'; write one of them"
        if source.load is None and source.every is None:
            yield ("source",), "how much? write 'load: 50 %' or 'every: 20 us'"


def _rdma(rdma: kinds.Rdma, *, handshake: bool) -> Iterator[Fault]:
    """Faults of numbered packets."""
    if handshake:
        yield ("source", "handshake"), "only tcp has one; leave this out"
    if rdma.congestion_control.kind in {"bbr", "prague", "rapid"}:
        yield (
            ("transport", "congestion_control"),
            "does not know numbered packets; write dcqcn-sender, hpcc, nscc, line-rate, dctcp, swift, "
            "timely, reno or cubic",
        )
    for part in ("paths", "credit"):
        if getattr(rdma, part) is not None and rdma.recovery.kind != "selective":
            yield (
                ("transport", part),
                "packets come out of order then: write 'recovery: selective'",
            )


def _beside_messages(traffic: kinds.Traffic) -> Iterator[Fault]:
    """Fields that messages do not have."""
    for part in ("timing", "adapter"):
        if getattr(traffic, part) is not None:
            yield (part,), "is for connections that last; leave this out"
    if traffic.streams > 1:
        yield ("streams",), "each message has its own connection; leave this out"
    listed = isinstance(traffic.source, kinds.FlowTable)
    for side, given in (("from", traffic.from_), ("to", traffic.to)):
        if given is not None and (listed or isinstance(traffic.pattern, kinds.Matrix)):
            yield (side,), "the file names senders and receivers; leave this out"
    if listed and traffic.pattern is not None:
        yield ("pattern",), "the file says who sends to whom; leave this out"
    if isinstance(traffic.source, kinds.Collective | kinds.Program | kinds.Trace):
        for part in ("to", "pattern", "stop"):
            if getattr(traffic, part) is not None:
                yield (part,), "ranks are the hosts in 'from', and send until they are done; leave this out"


def _recovery(tcp: kinds.Tcp) -> Iterator[Fault]:
    if tcp.loss_marking != "rack-tlp":
        return
    if not tcp.sack:
        yield (
            ("sack",),
            "rack-tlp finds losses by what arrived out of order, which selective acknowledgements show (RFC "
            "8985, section 4): leave this out, or write 'loss_marking: count' (got false)",
        )
    if tcp.lost_retransmissions == "timeout":
        yield (
            ("lost_retransmissions",),
            "rack-tlp finds lost retransmissions, too; write 'detect', or leave this out (got 'timeout')",
        )
    elif tcp.lost_retransmissions is None and tcp.recovery == "rate-halving":
        yield (
            ("recovery",),
            "'rate-halving' implies 'lost_retransmissions: timeout', and rack-tlp finds these by time; "
            "write 'lost_retransmissions: detect', too",
        )
