"""Messages of a scenario as the simulator takes them.

Gaps. `load` counts the data of messages alone: a sender with the line rate C has the mean gap mean size x 8 /
(load C), as in the studies that the published distributions come from. An event of `groups` carries senders x
receivers messages, and its load is one of all hosts in `from` together.

Source: HPCC 2019, 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from weirlab import spec as core
from weirlab.errors import InputError
from weirlab.fields.base import Selector
from weirlab.scenario.network.layout import Layout, NoMatchError
from weirlab.scenario.network.selecting import EntryFault
from weirlab.scenario.resolve.rdma import rdma_spec
from weirlab.scenario.resolve.transport import tcp_spec
from weirlab.scenario.traffic import Tcp, Traffic, messages as kinds
from weirlab.scenario.traffic.chains import (
    ALGORITHMS,
    Algorithm,
    Chain,
    ChainError,
    collective,
    is_cut,
)
from weirlab.scenario.traffic.chakra import chakra_in
from weirlab.scenario.traffic.flows import flows_of
from weirlab.scenario.traffic.goal import goal_in
from weirlab.scenario.traffic.tables import flows_in, matrix_in, mean_size, published_sizes, sizes_in
from weirlab.spec import At

T = TypeVar("T")


def messages(name: str, traffic: Traffic, layout: Layout, duration_ps: int, beside: Path) -> core.Messages:
    """The messages of an entry of traffic; files that it names are found from `beside` on.

    Raises EntryFault.
    """
    source, at = traffic.source, ("traffic", name, "source")
    assert isinstance(source, kinds.Carried)
    carrier = traffic.transport
    return core.Messages(
        config=tcp_spec(carrier, None, "traffic", name, "transport") if isinstance(carrier, Tcp) else None,
        rdma=rdma_spec(traffic, "traffic", name, "transport"),
        packets=core.Packets(
            payload_bytes=source.packet.payload.bytes,
            header_bytes=source.packet.headers.bytes,
            origin=At(*at, "packet", header_bytes="headers"),
        ),
        handshake=source.handshake,
        balancing=_balancing(source.balancing, *at, "balancing"),
        arrivals=_arrivals(name, traffic, layout, duration_ps, beside),
        rows=source.rows,
        origin=At("traffic", name, rows=("source", "rows")),
    )


def _balancing(balancing: kinds.AnyBalancing, *at: str) -> core.Balancing:
    origin = At(*at)
    match balancing:
        case kinds.PerFlow(weighted=weighted):
            return core.BalancingFlow(weighted=weighted, origin=origin)
        case kinds.PerFrame(weighted=weighted):
            return core.BalancingRandom(weighted=weighted, origin=origin)
        case kinds.RoundRobin():
            return core.BalancingRoundRobin(origin=origin)
        case kinds.LeastQueue():
            return core.BalancingLeastQueue(origin=origin)
        case kinds.Flowlets(gap=gap, weighted=weighted):
            return core.BalancingFlowlets(gap_ps=gap.ps, weighted=weighted, origin=origin)


def _arrivals(name: str, traffic: Traffic, layout: Layout, duration_ps: int, beside: Path) -> core.Arrivals:
    source = traffic.source
    origin = At("traffic", name, "source")
    if isinstance(source, kinds.FlowTable):
        shift = traffic.start.ps
        stop = _stop_ps(traffic, duration_ps)
        hosts = _hosts(layout)
        with_files = _reading("source", "file")
        listed = with_files(lambda: flows_in(beside / source.file, hosts))
        kept = [(start + shift, a, b, size) for start, a, b, size in listed if start + shift < stop]
        return core.ArrivalsListed(list=kept, origin=origin)
    if isinstance(source, kinds.Collective | kinds.Program | kinds.Trace):
        ranks = _senders(traffic, layout)
        chain = _chain(source, len(ranks), beside)
        tasks = chain.on(ranks)
        return core.ArrivalsChained(
            start_ps=traffic.start.ps, tasks=tasks, rounds=chain.rounds, origin=origin
        )
    assert isinstance(source, kinds.Messages)
    sizes, mean = _sizes(source, beside, *origin.path)
    lists = _Lists()
    sources = _sources(traffic, source, layout, lists, mean, beside, _stop_ps(traffic, duration_ps))
    return core.ArrivalsDrawn(hosts=lists.all, sources=sources, sizes=sizes, origin=origin)


def _chain(source: kinds.Collective | kinds.Program | kinds.Trace, ranks: int, beside: Path) -> Chain:
    """The tasks of a job. Raises EntryFault."""
    if isinstance(source, kinds.Program):
        return _reading("source", "file")(lambda: goal_in(beside / source.file, ranks))
    if isinstance(source, kinds.Trace):
        algorithms = source.algorithms
        if algorithms.pieces > 1 and not any(is_cut(each, algorithms.of(each)) for each in ALGORITHMS):
            message = "none of these algorithms sends pieces: leave this out, or write 'all-reduce: tree'"
            raise EntryFault(f"{message} (got {algorithms.pieces})", "source", "algorithms", "pieces")
        return _reading("source", "file")(lambda: chakra_in(beside / source.file, ranks, source.algorithms))
    default: Algorithm = next(iter(ALGORITHMS[source.operation]))
    try:
        return collective(
            source.operation,
            source.algorithm or default,
            ranks,
            source.size.bytes,
            iterations=source.iterations,
            compute_ps=source.compute.ps,
            pieces=source.pieces,
        )
    except ChainError as error:
        raise EntryFault(str(error), *error.place) from None


def _hosts(layout: Layout) -> dict[str, int]:
    """All hosts by name."""
    return {name: place for place, name in enumerate(layout.nodes) if name in layout.hosts}


def _stop_ps(traffic: Traffic, duration_ps: int) -> int:
    return max(traffic.start.ps, duration_ps) if traffic.stop is None else traffic.stop.ps


def _reading(*place: str) -> Callable[[Callable[[], T]], T]:
    """Calls what reads a file that the field at `place` names. Raises EntryFault there."""

    def read(reader: Callable[[], T]) -> T:
        try:
            return reader()
        except InputError as error:
            raise EntryFault(str(error), *place) from None

    return read


def _sizes(source: kinds.Messages, beside: Path, *at: str | int) -> tuple[core.MessageSizes, float]:
    """The distribution of sizes, and its mean [B]."""
    origin = At(*at, "sizes")
    match source.sizes:
        case kinds.FixedSizes(size=size):
            return core.MessageSizesFixed(fixed=size.bytes, origin=origin), float(size.bytes)
        case kinds.PublishedSizes(name=name):
            points = published_sizes(name)
        case table:
            points = _reading("source", "sizes", "file")(lambda: sizes_in(beside / table.file))
    return core.MessageSizesTable(table=list(points), origin=origin), mean_size(points)


class _Lists:
    """Lists of hosts, each kept once."""

    def __init__(self) -> None:
        self.all: list[Sequence[int]] = []
        self._known: dict[tuple[int, ...], int] = {}

    def place(self, hosts: Sequence[int]) -> int:
        """The place of a list."""
        key = tuple(hosts)
        if key not in self._known:
            self._known[key] = len(self.all)
            self.all.append(key)
        return self._known[key]


def _sources(
    traffic: Traffic,
    source: kinds.Messages,
    layout: Layout,
    lists: _Lists,
    mean: float,
    beside: Path,
    stop_ps: int,
) -> list[core.MessageSource]:
    at = At("traffic")

    def made(
        senders: Sequence[int],
        fan_in: int,
        to: Sequence[tuple[float, int]],
        receivers: int,
        share: float = 1.0,
    ) -> list[core.MessageSource]:
        gap = _mean_gap_ps(source, layout, senders, mean * fan_in * receivers)
        if gap is None or share == 0:
            return []
        one = core.MessageSource(
            from_=lists.place(senders),
            senders=fan_in,
            to=list(to),
            receivers=receivers,
            gaps=_gaps(source.gaps, gap / share),
            start_ps=traffic.start.ps,
            stop_ps=stop_ps,
            origin=at,
        )
        return [one]

    match traffic.pattern:
        case kinds.Groups(senders=fan_in, receivers=fan_out):
            senders, receivers = _ends(traffic, layout)
            _possible(senders, receivers, fan_in, fan_out)
            return made(senders, fan_in, [(1.0, lists.place(receivers))], fan_out)
        case kinds.Local(share=share):
            senders, receivers = _ends(traffic, layout)
            return [
                one
                for sender in senders
                for one in made([sender], 1, _local(layout, sender, receivers, share, lists), 1)
            ]
        case kinds.Matrix(file=file):
            hosts = _hosts(layout)
            weights: Mapping[int, list[tuple[float, int]]]
            weights = _reading("pattern", "file")(lambda: matrix_in(beside / file, hosts))
            most = max(sum(weight for weight, _ in row) for row in weights.values())
            found: list[core.MessageSource] = []
            for sender, row in weights.items():
                to = [(weight, lists.place([host])) for weight, host in row]
                found += made([sender], 1, to, 1, sum(weight for weight, _ in row) / most)
            return found
    listed: list[core.MessageSource] = []
    for flow in flows_of(traffic, layout):
        if flow.drawn:
            # The sender leaves itself out: all senders share a list.
            shared = tuple(_ends(traffic, layout)[1])
            listed += made([flow.source], 1, [(1.0, lists.place(shared))], 1)
        else:
            listed += made([flow.source], 1, [(1.0, lists.place(flow.targets))], 1)
    return listed


def _senders(traffic: Traffic, layout: Layout) -> list[int]:
    """The hosts in `from`. Raises EntryFault."""
    return _selected(traffic.from_, "from", layout)


def _selected(selector: Selector | None, side: str, layout: Layout) -> list[int]:
    if selector is None:
        raise EntryFault(f"'{side}' is missing: the hosts, such as '{side}: host-*'")
    try:
        return layout.host_ids(selector)
    except NoMatchError as error:
        raise EntryFault(str(error), side) from None


def _ends(traffic: Traffic, layout: Layout) -> tuple[list[int], list[int]]:
    """Senders and receivers. Raises EntryFault."""
    senders = _senders(traffic, layout)
    return senders, senders if traffic.to is None else _selected(traffic.to, "to", layout)


def _possible(senders: Sequence[int], receivers: Sequence[int], fan_in: int, fan_out: int) -> None:
    """Whether so many can send to so many. Raises EntryFault."""
    most = len(set(senders)) - bool(set(senders) & set(receivers))
    if fan_in > most:
        raise EntryFault(
            f"at most {most} of the hosts in 'from' can send to one of the receivers (got {fan_in})",
            "pattern",
            "senders",
        )
    if fan_out > len(receivers):
        raise EntryFault(
            f"at most {len(receivers)} hosts in 'to' can receive (got {fan_out})", "pattern", "receivers"
        )


def _local(
    layout: Layout, sender: int, receivers: Sequence[int], share: float, lists: _Lists
) -> list[tuple[float, int]]:
    """The receivers below the switch of a sender and the others, with their weights. Raises EntryFault."""
    name = layout.nodes[sender]
    switches = {port.target for port in layout.ports if port.source == name}
    below = {port.source for port in layout.ports if port.target in switches}
    near = [host for host in receivers if layout.nodes[host] in below and host != sender]
    far = [host for host in receivers if layout.nodes[host] not in below]
    if not near:
        raise EntryFault(f"no other receiver is at the switch of '{name}'; write 'uniform'", "pattern")
    if share == 1:
        return [(1.0, lists.place(near))]
    if not far:
        raise EntryFault(
            f"all receivers are at the switch of '{name}'; write 'share: 100 %'", "pattern", "share"
        )
    return [(share, lists.place(near)), (1 - share, lists.place(far))]


def _mean_gap_ps(
    source: kinds.Messages, layout: Layout, senders: Sequence[int], event_bytes: float
) -> float | None:
    """Mean time between two events; None without any. Raises EntryFault."""
    if source.every is not None:
        return float(source.every.ps)
    if source.load is None:
        raise EntryFault("how much? write 'load: 50 %' or 'every: 20 us'", "source")
    if source.load == 0:
        return None
    rate = 0
    for sender in senders:
        port = layout.host_port(sender)
        if port is None:
            message = f"needs the line rate of '{layout.nodes[sender]}', which has links of different rates"
            raise EntryFault(f"{message}; write 'every' instead", "source", "load")
        rate += port.rate_bps
    return event_bytes * 8e12 / (source.load * rate)


def _gaps(gaps: kinds.AnyGaps, mean_gap_ps: float) -> core.Gaps:
    match gaps:
        case kinds.PoissonGaps():
            return core.GapsPoisson(mean_gap_ps=mean_gap_ps)
        case kinds.EqualGaps():
            return core.GapsConstant(mean_gap_ps=mean_gap_ps)
        case kinds.LognormalGaps(sigma=sigma):
            return core.GapsLognormal(mean_gap_ps=mean_gap_ps, sigma=sigma)
        case kinds.BurstyGaps(variation=variation):
            return core.GapsHyperexponential(mean_gap_ps=mean_gap_ps, variation=variation)
