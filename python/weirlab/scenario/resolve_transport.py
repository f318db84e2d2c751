"""TCP connections of a scenario as the simulator takes them."""

from __future__ import annotations

from typing import Any

from weirlab.scenario.flows import departures, flows_of, frame_sizes
from weirlab.scenario.layout import Layout
from weirlab.scenario.traffic import Bulk, Cubic, Departing, Reno, Tcp, Traffic

__all__ = ["connections", "tcp_spec"]

Where = tuple[str | int, ...]


def connections(
    name: str, traffic: Traffic, layout: Layout, duration_ps: int, index: int, origins: dict[str, Where]
) -> dict[str, Any]:
    """The connections of an entry of traffic that TCP carries: `streams` of each sender to its receiver."""
    assert isinstance(traffic.transport, Tcp)
    at = f"/traffic/{index}/tcp"
    origins[at] = ("traffic", name)
    origins[f"{at}/config"] = ("traffic", name, "transport")
    listed: list[dict[str, Any]] = []
    for flow in flows_of(traffic, layout):
        load = _load(traffic, layout, flow.source)
        if load is None:
            continue
        for _ in range(traffic.streams):
            origins[f"{at}/list/{len(listed)}/load"] = ("traffic", name, "source")
            listed.append(
                {
                    "from": flow.source,
                    "to": flow.targets[0],
                    "start_ps": traffic.start.ps,
                    "stop_ps": _stop_ps(traffic, duration_ps),
                    "load": load,
                }
            )
    return {"config": tcp_spec(traffic.transport), "list": listed}


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


def tcp_spec(tcp: Tcp) -> dict[str, Any]:
    """The settings of a connection as the compiled core takes them."""
    old = tcp.recovery == "rate-halving"
    match tcp.congestion_control:
        case Reno():
            control: dict[str, Any] = {"kind": "reno"}
        case Cubic(c=c, beta=beta, fast_convergence=fast):
            control = {"kind": "cubic", "c": c, "beta": beta, "fast_convergence": fast}
        case other:
            raise AssertionError(f"{other.kind} is refused before it is resolved")
    return {
        "congestion_control": control,
        "recovery": tcp.recovery,
        "loss_marking": tcp.loss_marking or ("fack" if old else "count"),
        "lost_retransmissions": tcp.lost_retransmissions or ("timeout" if old else "detect"),
        "segment_bytes": tcp.segment.bytes,
        "initial_window_segments": tcp.initial_window,
        "receive_buffer_bytes": tcp.window.bytes,
        "send_buffer_bytes": None if tcp.send_buffer is None else tcp.send_buffer.bytes,
        "window_scaling": tcp.window_scaling,
        "sack": tcp.sack,
        "timestamps": tcp.timestamps,
        "ecn": tcp.ecn,
        "delayed_ack_segments": tcp.delayed_ack,
        "delayed_ack_timeout_ps": tcp.delayed_ack_timeout.ps,
        "min_rto_ps": tcp.min_rto.ps,
    }
