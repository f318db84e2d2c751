"""TCP connections and estimators of a scenario as the simulator takes them."""

from __future__ import annotations

from weirlab import spec as core
from weirlab.scenario.network.layout import Layout, Port
from weirlab.scenario.traffic import (
    UDP_HEADERS_BYTES,
    Bulk,
    Departing,
    Tcp,
    Traffic,
)
from weirlab.scenario.traffic.controllers import ECN
from weirlab.scenario.traffic.flows import departures, flows_of, sizes_spec
from weirlab.scenario.traffic.probing import Pathload, PbProbe, Probing
from weirlab.scenario.traffic.rapid import (
    Batches,
    ChirpEstimator,
    FluidEstimator,
    GapEstimator,
    NoDenoising,
    Rapid,
    SmoothEstimator,
    Spikes,
    TrendEstimator,
)
from weirlab.spec import At, Where


def connections(name: str, traffic: Traffic, layout: Layout, duration_ps: int) -> core.Connections:
    """The connections of an entry of traffic that TCP carries: `streams` of each sender to its receiver."""
    assert isinstance(traffic.transport, Tcp)
    links: list[Port] = []
    listed: list[core.Connection] = []
    origin = _ends(name, traffic)
    for flow in flows_of(traffic, layout):
        port = layout.host_port(flow.source)
        links += [] if port is None else [port]
        load = _load(name, traffic, layout, flow.source)
        if load is None:
            continue
        connection = core.Connection(
            from_=flow.source,
            to=flow.targets[0],
            start_ps=traffic.start.ps,
            stop_ps=_stop_ps(traffic, duration_ps),
            load=load,
            origin=origin,
        )
        listed += [connection] * traffic.streams
    slowest = min(links, key=lambda link: link.rate_bps, default=None)
    return core.Connections(
        config=tcp_spec(traffic.transport, slowest, "traffic", name, "transport"),
        hosts=_hosts(name, traffic),
        list=listed,
        origin=At("traffic", name),
    )


def _ends(name: str, traffic: Traffic) -> At:
    """Where the ends, the times and the load of a connection or an estimator come from."""
    of_bulk = isinstance(traffic.source, Bulk) and traffic.source.stop is not None and traffic.stop is None
    stop: Where = ("source", "stop") if of_bulk else ("stop",)
    return At("traffic", name, stop_ps=stop)


def probers(name: str, traffic: Traffic, layout: Layout, duration_ps: int) -> core.Probers:
    """The estimators of an entry of traffic: one for each sender and its receiver."""
    source = traffic.source
    assert isinstance(source, Probing)
    flows = flows_of(traffic, layout)
    ports = [port for flow in flows if (port := layout.host_port(flow.source)) is not None]
    slowest = min(ports, key=lambda port: port.rate_bps, default=None)
    link_bps = 10**9 if slowest is None else slowest.rate_bps
    start_ps, stop_ps, origin = traffic.start.ps, _stop_ps(traffic, duration_ps), _ends(name, traffic)
    at = ("traffic", name, "source")
    return core.Probers(
        config=core.ProberConfig(
            method=_method(source, link_bps, at),
            frame_bytes=max(64, source.payload.bytes + UDP_HEADERS_BYTES),
            framing_bytes=20 if slowest is None else slowest.framing_bytes,
            link_bps=link_bps,
            measurements=source.measurements,
            origin=At(*at, frame_bytes="payload"),
        ),
        hosts=_hosts(name, traffic),
        list=[
            core.Prober(
                from_=flow.source, to=flow.targets[0], start_ps=start_ps, stop_ps=stop_ps, origin=origin
            )
            for flow in flows
        ],
        origin=At("traffic", name),
    )


def _method(source: Probing, link_bps: int, at: Where) -> core.Method:
    match source:
        case Pathload():
            return core.MethodPathload(
                packets=source.packets,
                streams=source.streams,
                gap_ps=source.gap.ps,
                share=source.share,
                resolution_bps=None if source.resolution is None else source.resolution.bps,
                most_bps=link_bps if source.most_rate is None else source.most_rate.bps,
                batch_ps=source.batch.ps,
                stamps_ps=source.stamps.ps,
                origin=At(*at, most_bps="most_rate"),
            )
        case PbProbe():
            return core.MethodPbProbe(
                bulks=source.bulks,
                stable=source.stable,
                dispersion_ps=source.dispersion.ps,
                share=source.share,
                origin=At(*at),
            )
    raise AssertionError(f"no estimator: {source}")


def _hosts(name: str, traffic: Traffic) -> core.Hosts:
    """How the hosts are imperfect."""
    timing, adapter = traffic.timing, traffic.adapter
    at = ("traffic", name)
    return core.Hosts(
        timers=None
        if timing is None
        else core.Timing(
            tick_ps=timing.tick.ps,
            late=timing.late,
            by_ps=timing.by.ps,
            origin=At(*at, "timing"),
        ),
        adapter_frames=None if adapter is None or adapter.queue is None else adapter.queue.count,
        coalescing_ps=None if adapter is None or adapter.coalescing is None else adapter.coalescing.ps,
        origin=At(
            *at, adapter_frames=("adapter", "queue"), coalescing_ps=("adapter", "coalescing"), timers="timing"
        ),
    )


def _stop_ps(traffic: Traffic, duration_ps: int) -> int:
    stops = [max(traffic.start.ps, duration_ps)]
    if traffic.stop is not None:
        stops.append(traffic.stop.ps)
    if isinstance(traffic.source, Bulk) and traffic.source.stop is not None:
        stops.append(max(traffic.start.ps, traffic.source.stop.ps))
    return min(stops)


def _load(name: str, traffic: Traffic, layout: Layout, sender: int) -> core.Load | None:
    """What the application of a connection writes; None if that is nothing."""
    source, at = traffic.source, ("traffic", name, "source")
    if isinstance(source, Bulk):
        if source.size is None:
            return core.LoadEndless(origin=At(*at))
        return core.LoadTransfer(bytes=source.size.bytes, origin=At(*at, bytes="size"))
    assert isinstance(source, Departing)
    process = departures(source, layout.host_port(sender))
    if process is None:
        return None
    size = sizes_spec(source)
    if source.payload is not None:
        size = core.FrameSizeFixed(fixed=source.payload.bytes, origin=At(*at, fixed="payload"))
    return core.LoadWrites(departures=process, write_size=size, stream=core.StreamNamed(), origin=At(*at))


def _denoising(rapid: Rapid, at: Where) -> core.Denoising:
    match rapid.denoising:
        case NoDenoising():
            return core.DenoisingNone(origin=At(*at))
        case Spikes(rise=rise, fall=fall):
            return core.DenoisingSpikes(rise_ps=rise.ps, fall_ps=fall.ps, origin=At(*at))
        case Batches(within=within):
            return core.DenoisingBatches(within_ps=within.ps, origin=At(*at))


def _estimator(rapid: Rapid, at: Where) -> core.Estimator:
    match rapid.estimator:
        case GapEstimator() as gap:
            return core.EstimatorGap(
                epsilon_ps=gap.epsilon.ps,
                excursion=gap.excursion,
                sum=gap.sum,
                scheduled=gap.scheduled,
                origin=At(*at),
            )
        case SmoothEstimator() as smooth:
            return core.EstimatorSmooth(
                weight=smooth.weight,
                epsilon_ps=smooth.epsilon.ps,
                excursion=smooth.excursion,
                origin=At(*at),
            )
        case ChirpEstimator() as chirp:
            return core.EstimatorChirp(
                factor=chirp.factor,
                excursion=chirp.excursion,
                origin=At(*at),
            )
        case TrendEstimator() as trend:
            return core.EstimatorTrend(
                tolerance_ps=trend.tolerance.ps,
                tolerance_gaps=trend.tolerance_gaps,
                origin=At(*at),
            )
        case FluidEstimator() as fluid:
            return core.EstimatorFluid(
                bottleneck_bps=None if fluid.bottleneck is None else fluid.bottleneck.bps,
                origin=At(*at),
            )


def _rapid(rapid: Rapid, link: Port | None, at: Where) -> core.CongestionControlRapid:
    """Settings of a probing sender at `link`."""
    link_bps = 10**9 if link is None else link.rate_bps
    return core.CongestionControlRapid(
        ramp=core.Ramp(
            packets=rapid.n,
            rho=rapid.rho,
            rates=rapid.rates,
            clip=rapid.clip,
            origin=At(*at, packets="n"),
        ),
        schedule=rapid.schedule,
        denoising=_denoising(rapid, (*at, "denoising")),
        estimator=_estimator(rapid, (*at, "estimator")),
        rate=core.Adaptation(
            tau_ps=rapid.tau.ps,
            eta=rapid.eta,
            initial_bps=rapid.initial_rate.bps,
            least_bps=rapid.least_rate.bps,
            most_bps=link_bps if rapid.most_rate is None else rapid.most_rate.bps,
            beta=rapid.beta,
            start_packets=rapid.start,
            backlog=None
            if rapid.backlog is None
            else core.Backlog(
                target_ps=rapid.backlog.target.ps,
                within_ps=rapid.backlog.within.ps,
                elasticity=rapid.backlog.elasticity,
                origin=At(*at, "backlog"),
            ),
            origin=At(*at, initial_bps="initial_rate", least_bps="least_rate", most_bps="most_rate"),
        ),
        link_bps=link_bps,
        framing_bytes=20 if link is None else link.framing_bytes,
        repair_bps=None if rapid.repair_rate is None else rapid.repair_rate.bps,
        origin=At(*at, repair_bps="repair_rate"),
    )


def ecn_of(tcp: Tcp) -> core.EcnSupport:
    """How the receiver reports marks, as far as the sender is concerned."""
    return tcp.ecn or ECN.get(tcp.congestion_control.kind, "none")


def tcp_spec(tcp: Tcp, link: Port | None = None, *at: str) -> core.TcpConfig:
    """The settings of a connection as the compiled core takes them; `link` is that of its sender, and the
    transport stands `at` that place in the scenario."""
    old = tcp.recovery == "rate-halving"
    control, control_at = tcp.congestion_control, (*at, "congestion_control")
    return core.TcpConfig(
        congestion_control=_rapid(control, link, control_at)
        if isinstance(control, Rapid)
        else control.resolved(control_at),
        recovery=tcp.recovery or ("prr-9937" if tcp.loss_marking == "rack-tlp" else "prr"),
        loss_marking=tcp.loss_marking or ("fack" if old else "count"),
        lost_retransmissions=tcp.lost_retransmissions or ("timeout" if old else "detect"),
        segment_bytes=tcp.segment.bytes,
        initial_window_segments=tcp.initial_window,
        receive_buffer_bytes=tcp.window.bytes,
        send_buffer_bytes=None if tcp.send_buffer is None else tcp.send_buffer.bytes,
        window_scaling=tcp.window_scaling,
        sack=tcp.sack,
        timestamps=tcp.timestamps,
        ecn=core.EcnConfig(
            sender=ecn_of(tcp), receiver=tcp.receiver_ecn or ecn_of(tcp), options=tcp.accecn_option
        ),
        delayed_ack_segments=tcp.delayed_ack,
        delayed_ack_timeout_ps=tcp.delayed_ack_timeout.ps,
        min_rto_ps=tcp.min_rto.ps,
        slow_start_after_idle=tcp.slow_start_after_idle,
        pacing=tcp.pacing,
        reading=None
        if tcp.reading is None
        else core.Reading(
            rate_bps=tcp.reading.rate.bps,
            pauses_ps=[(pause.start.ps, pause.stop.ps) for pause in tcp.reading.pauses],
        ),
        arrival_stamps_ps=control.stamps.ps if isinstance(control, Rapid) else None,
        origin=At(*at, receive_buffer_bytes="window", arrival_stamps_ps=("congestion_control", "stamps")),
    )
