"""TCP connections and estimators of a scenario as the simulator takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weirlab.scenario.base import Model
from weirlab.scenario.flows import departures, flows_of, frame_sizes
from weirlab.scenario.layout import Layout, Port
from weirlab.scenario.probing import Pathload, PbProbe, Probing
from weirlab.scenario.rapid import Rapid
from weirlab.scenario.traffic import (
    UDP_HEADERS_BYTES,
    Bbr,
    Bulk,
    Cubic,
    Dctcp,
    Departing,
    Prague,
    Reno,
    Tcp,
    Traffic,
)
from weirlab.units import Rate, Span

__all__ = ["connections", "ecn_of", "probers", "tcp_spec"]

Where = tuple[str | int, ...]


def connections(
    name: str, traffic: Traffic, layout: Layout, duration_ps: int, index: int, origins: dict[str, Where]
) -> dict[str, Any]:
    """The connections of an entry of traffic that TCP carries: `streams` of each sender to its receiver."""
    assert isinstance(traffic.transport, Tcp)
    at = f"/traffic/{index}/tcp"
    _note_origins(origins, at, ("traffic", name, "transport"), name, _OF_TCP)
    links: list[Port] = []
    listed: list[dict[str, Any]] = []
    for flow in flows_of(traffic, layout):
        port = layout.host_port(flow.source)
        links += [] if port is None else [port]
        load = _load(traffic, layout, flow.source)
        if load is None:
            continue
        for _ in range(traffic.streams):
            _note_ends(origins, f"{at}/list/{len(listed)}", traffic, name)
            listed.append(
                {
                    "from": flow.source,
                    "to": flow.targets[0],
                    "start_ps": traffic.start.ps,
                    "stop_ps": _stop_ps(traffic, duration_ps),
                    "load": load,
                }
            )
    slowest = min(links, key=lambda link: link.rate_bps, default=None)
    return {"config": tcp_spec(traffic.transport, slowest), "hosts": _hosts(traffic), "list": listed}


_OF_TCP = {
    "segment_bytes": "segment",
    "initial_window_segments": "initial_window",
    "receive_buffer_bytes": "window",
    "send_buffer_bytes": "send_buffer",
    "delayed_ack_segments": "delayed_ack",
    "delayed_ack_timeout_ps": "delayed_ack_timeout",
    "min_rto_ps": "min_rto",
    "arrival_stamps_ps": "congestion_control/stamps",
    "congestion_control": "congestion_control",
    "congestion_control/c": "congestion_control/c",
    "congestion_control/beta": "congestion_control/beta",
    "congestion_control/ramp/packets": "congestion_control/n",
    "congestion_control/ramp/rho": "congestion_control/rho",
    "congestion_control/ramp/rates": "congestion_control/rates",
    "congestion_control/denoising": "congestion_control/denoising",
    "congestion_control/denoising/within_ps": "congestion_control/denoising/within",
    "congestion_control/estimator": "congestion_control/estimator",
    **{
        f"congestion_control/estimator/{field}": f"congestion_control/estimator/{field}"
        for field in ("excursion", "sum", "weight", "factor", "tolerance_gaps")
    },
    "congestion_control/estimator/bottleneck_bps": "congestion_control/estimator/bottleneck",
    "congestion_control/rate/tau_ps": "congestion_control/tau",
    "congestion_control/rate/eta": "congestion_control/eta",
    "congestion_control/rate/beta": "congestion_control/beta",
    "congestion_control/rate/initial_bps": "congestion_control/initial_rate",
    "congestion_control/rate/least_bps": "congestion_control/least_rate",
    "congestion_control/rate/most_bps": "congestion_control/most_rate",
    "congestion_control/rate/start_packets": "congestion_control/start",
    "congestion_control/rate/backlog": "congestion_control/backlog",
    "congestion_control/rate/backlog/elasticity": "congestion_control/backlog/elasticity",
    "congestion_control/repair_bps": "congestion_control/repair_rate",
}
"""Fields of a transport by the parts of the settings of a connection that they become."""
_OF_PROBERS = {
    "frame_bytes": "payload",
    "measurements": "measurements",
    "method/packets": "packets",
    "method/streams": "streams",
    "method/gap_ps": "gap",
    "method/share": "share",
    "method/resolution_bps": "resolution",
    "method/most_bps": "most_rate",
    "method/bulks": "bulks",
    "method/stable": "stable",
    "method/dispersion_ps": "dispersion",
}
"""Fields of an estimator by the parts of its settings that they become."""
_OF_HOSTS = {
    "adapter_frames": ("adapter", "queue"),
    "coalescing_ps": ("adapter", "coalescing"),
    "timers": ("timing",),
    "timers/late": ("timing", "late"),
}


def _note_origins(
    origins: dict[str, Where], at: str, config: Where, name: str, fields: Mapping[str, str]
) -> None:
    """Where the settings `at` come from: from `config`, and its `fields`."""
    origins[at] = ("traffic", name)
    origins[f"{at}/config"] = config
    for part, field in fields.items():
        origins[f"{at}/config/{part}"] = (*config, *field.split("/"))
    for part, path in _OF_HOSTS.items():
        origins[f"{at}/hosts/{part}"] = ("traffic", name, *path)


def _note_ends(origins: dict[str, Where], at: str, traffic: Traffic, name: str) -> None:
    """Where the ends, the times and the load of a connection or an estimator come from."""
    of_bulk = isinstance(traffic.source, Bulk) and traffic.source.stop is not None and traffic.stop is None
    parts: dict[str, Where] = {
        "from": ("from",),
        "to": ("to",),
        "start_ps": ("start",),
        "stop_ps": ("source", "stop") if of_bulk else ("stop",),
        "load": ("source",),
        "load/bytes": ("source", "size"),
        "load/write_size/fixed": ("source", "payload"),
    }
    for part, path in parts.items():
        origins[f"{at}/{part}"] = ("traffic", name, *path)


def probers(
    name: str, traffic: Traffic, layout: Layout, duration_ps: int, index: int, origins: dict[str, Where]
) -> dict[str, Any]:
    """The estimators of an entry of traffic: one for each sender and its receiver."""
    source = traffic.source
    assert isinstance(source, Probing)
    at = f"/traffic/{index}/probers"
    _note_origins(origins, at, ("traffic", name, "source"), name, _OF_PROBERS)
    flows = flows_of(traffic, layout)
    for place in range(len(flows)):
        _note_ends(origins, f"{at}/list/{place}", traffic, name)
    ports = [port for flow in flows if (port := layout.host_port(flow.source)) is not None]
    slowest = min(ports, key=lambda port: port.rate_bps, default=None)
    link_bps = 10**9 if slowest is None else slowest.rate_bps
    ends = {"start_ps": traffic.start.ps, "stop_ps": _stop_ps(traffic, duration_ps)}
    return {
        "config": {
            "method": _method(source, link_bps),
            "frame_bytes": max(64, source.payload.bytes + UDP_HEADERS_BYTES),
            "framing_bytes": 20 if slowest is None else slowest.framing_bytes,
            "link_bps": link_bps,
            "measurements": source.measurements,
        },
        "hosts": _hosts(traffic),
        "list": [{"from": flow.source, "to": flow.targets[0], **ends} for flow in flows],
    }


def _method(source: Probing, link_bps: int) -> dict[str, Any]:
    match source:
        case Pathload():
            return {
                "kind": "pathload",
                "packets": source.packets,
                "streams": source.streams,
                "gap_ps": source.gap.ps,
                "share": source.share,
                "resolution_bps": None if source.resolution is None else source.resolution.bps,
                "most_bps": link_bps if source.most_rate is None else source.most_rate.bps,
                "batch_ps": source.batch.ps,
                "stamps_ps": source.stamps.ps,
            }
        case PbProbe():
            return {
                "kind": "pb-probe",
                "bulks": source.bulks,
                "stable": source.stable,
                "dispersion_ps": source.dispersion.ps,
                "share": source.share,
            }
    raise AssertionError(f"no estimator: {source}")


def _hosts(traffic: Traffic) -> dict[str, Any]:
    """How the hosts are imperfect."""
    timing, adapter = traffic.timing, traffic.adapter
    return {
        "timers": None
        if timing is None
        else {"tick_ps": timing.tick.ps, "late": timing.late, "by_ps": timing.by.ps},
        "adapter_frames": None if adapter is None or adapter.queue is None else adapter.queue.count,
        "coalescing_ps": None if adapter is None or adapter.coalescing is None else adapter.coalescing.ps,
    }


def _stop_ps(traffic: Traffic, duration_ps: int) -> int:
    stops = [max(traffic.start.ps, duration_ps)]
    if traffic.stop is not None:
        stops.append(traffic.stop.ps)
    if isinstance(traffic.source, Bulk) and traffic.source.stop is not None:
        stops.append(max(traffic.start.ps, traffic.source.stop.ps))
    return min(stops)


def _load(traffic: Traffic, layout: Layout, sender: int) -> dict[str, Any] | None:
    """What the application of a connection writes; None if that is nothing."""
    source = traffic.source
    if isinstance(source, Bulk):
        if source.size is None:
            return {"kind": "endless"}
        return {"kind": "transfer", "bytes": source.size.bytes}
    assert isinstance(source, Departing)
    process = departures(source, layout.host_port(sender))
    if process is None:
        return None
    sizes = frame_sizes(source)
    size: dict[str, Any] = (
        {"fixed": sizes[0][0]} if len(sizes) == 1 else {"mix": [list(part) for part in sizes]}
    )
    if source.payload is not None:
        size = {"fixed": source.payload.bytes}
    return {"kind": "writes", "departures": process, "write_size": size, "stream": {"kind": "named"}}


def _fields(part: Model) -> dict[str, Any]:
    """The fields of a part that are given: times in ps, rates in bit/s."""
    fields: dict[str, Any] = {}
    for name in type(part).model_fields:
        match getattr(part, name):
            case None:
                pass
            case Span(ps=ps):
                fields[f"{name}_ps"] = ps
            case Rate(bps=bps):
                fields[f"{name}_bps"] = bps
            case value:
                fields[name] = value
    return fields


def _rapid(rapid: Rapid, link: Port | None) -> dict[str, Any]:
    """Settings of a probing sender at `link`."""
    link_bps = 10**9 if link is None else link.rate_bps
    return {
        "kind": "rapid",
        "ramp": {"packets": rapid.n, "rho": rapid.rho, "rates": rapid.rates, "clip": rapid.clip},
        "schedule": rapid.schedule,
        "denoising": _fields(rapid.denoising),
        "estimator": _fields(rapid.estimator),
        "rate": {
            "tau_ps": rapid.tau.ps,
            "eta": rapid.eta,
            "initial_bps": rapid.initial_rate.bps,
            "least_bps": rapid.least_rate.bps,
            "most_bps": link_bps if rapid.most_rate is None else rapid.most_rate.bps,
            "beta": rapid.beta,
            "start_packets": rapid.start,
            "backlog": None
            if rapid.backlog is None
            else {
                "target_ps": rapid.backlog.target.ps,
                "within_ps": rapid.backlog.within.ps,
                "elasticity": rapid.backlog.elasticity,
            },
        },
        "link_bps": link_bps,
        "framing_bytes": 20 if link is None else link.framing_bytes,
        "repair_bps": None if rapid.repair_rate is None else rapid.repair_rate.bps,
    }


def ecn_of(tcp: Tcp) -> str:
    """How the receiver tells of marks, as far as the sender is concerned."""
    match tcp.congestion_control:
        case Dctcp():
            default = "dctcp"
        case Prague():
            default = "accurate"
        case _:
            default = "none"
    return tcp.ecn or default


def tcp_spec(tcp: Tcp, link: Port | None = None) -> dict[str, Any]:
    """The settings of a connection as the compiled core takes them; `link` is that of its sender."""
    old = tcp.recovery == "rate-halving"
    stamps: int | None = None
    match tcp.congestion_control:
        case Reno() as reno:
            control: dict[str, Any] = {"kind": "reno", "slow_start": reno.slow_start or "standard"}
        case Cubic() as cubic:
            control = {
                "kind": "cubic",
                "c": cubic.c,
                "beta": cubic.beta,
                "fast_convergence": cubic.fast_convergence,
                "slow_start": cubic.slow_start or "hystart++",
            }
        case Rapid() as rapid:
            control = _rapid(rapid, link)
            stamps = rapid.stamps.ps
        case Bbr():
            control = {"kind": "bbr"}
        case Dctcp() as dctcp:
            control = {"kind": "dctcp", "gain": dctcp.gain, "slow_start": dctcp.slow_start}
        case Prague() as prague:
            control = {
                "kind": "prague",
                "gain": prague.gain,
                "virtual_rtt_ps": prague.virtual_rtt.ps,
                "transition_rounds": prague.transition,
                "slow_start": prague.slow_start,
            }
    return {
        "congestion_control": control,
        "recovery": tcp.recovery or ("prr-9937" if tcp.loss_marking == "rack-tlp" else "prr"),
        "loss_marking": tcp.loss_marking or ("fack" if old else "count"),
        "lost_retransmissions": tcp.lost_retransmissions or ("timeout" if old else "detect"),
        "segment_bytes": tcp.segment.bytes,
        "initial_window_segments": tcp.initial_window,
        "receive_buffer_bytes": tcp.window.bytes,
        "send_buffer_bytes": None if tcp.send_buffer is None else tcp.send_buffer.bytes,
        "window_scaling": tcp.window_scaling,
        "sack": tcp.sack,
        "timestamps": tcp.timestamps,
        "ecn": {
            "sender": ecn_of(tcp),
            "receiver": tcp.receiver_ecn or ecn_of(tcp),
            "options": tcp.accecn_option,
        },
        "delayed_ack_segments": tcp.delayed_ack,
        "delayed_ack_timeout_ps": tcp.delayed_ack_timeout.ps,
        "min_rto_ps": tcp.min_rto.ps,
        "slow_start_after_idle": tcp.slow_start_after_idle,
        "pacing": tcp.pacing,
        "reading": None
        if tcp.reading is None
        else {
            "rate_bps": tcp.reading.rate.bps,
            "pauses_ps": [[pause.start.ps, pause.stop.ps] for pause in tcp.reading.pauses],
        },
        "arrival_stamps_ps": stamps,
    }
