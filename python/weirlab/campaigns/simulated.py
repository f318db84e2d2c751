"""A measurement in simulated time: TCP and path models of the compiled core in the place of real stacks."""

from __future__ import annotations

import itertools

from weirlab import _core, spec as core
from weirlab.campaigns.measurement import Measurement, Pings, Stream, Transfer
from weirlab.campaigns.plan import Load, Measured, Probe
from weirlab.heavy import np
from weirlab.scenario.network.path import Line, PathPlan, line_spec
from weirlab.scenario.resolve.transport import tcp_spec
from weirlab.units import Size

INTERVAL_S = 1.0
"""How often the state of the connections is written down."""
_IPV6_MORE_BYTES = 20
"""Than the headers of IPv4. Source: RFC 8200, section 3; RFC 791, section 3.1"""
_OPTIONS_BYTES = 12
"""Time stamps in every segment. Source: RFC 7323, section 3.2."""


def measure_simulated(
    what: Measured, path: PathPlan | None, seed: int, *, window_factor: float = 1.0
) -> Measurement:
    """Make one measurement; the same one for the same seed.

    Args:
        window_factor: What connections get of the window that they ask for.
    """
    assert path is not None, "only real hosts have none"
    spec = spec_of(what, path, window_factor)
    outcome = _core.simulate_path(spec.json(), seed)
    lines = outcome["lines"]
    return Measurement(
        transfer=None if what.load is None else _told_transfer(outcome, what.duration_s),
        pings=None if spec.probe is None else _told_pings(outcome, spec.probe.count),
        began=0.0,
        seconds=what.duration_s,
        busy_cpus=0.0,
        foreign_cpus=0.0,
        degraded=(),
        lateness_p99_s=None,
        lost=sum(line["lost"] for line in lines),
        dropped=sum(line["dropped"] for line in lines),
        lost_forward=sum(line["lost"] for line in lines[::2]),
        dropped_forward=sum(line["dropped"] for line in lines[::2]),
    )


def spec_of(what: Measured, path: PathPlan, window_factor: float) -> core.LoadedPath:
    """What the core simulates; with a seed it decides the measurement."""
    probe = None if what.probe is None else _probe(what.probe, what.duration_s)
    return core.LoadedPath(
        hops=[
            core.HopSpec(
                forward=_line(hop.forward, path),
                backward=_line(hop.backward or hop.forward, path),
                strips_window_scale=hop.strips_window_scale,
            )
            for hop in path.hops.values()
        ],
        transfer=None if what.load is None else _transfer(what.load, path, window_factor),
        probe=probe,
        duration_ps=round(what.duration_s * 1e12),
    )


def _line(line: Line, path: PathPlan) -> core.LineSpec:
    """A direction. The longer headers of IPv6 take their time at the transmitter; a buffer in bytes does not
    see them."""
    if path.ipv6:
        line = line.model_copy(update={"framing": Size(line.framing.bytes + _IPV6_MORE_BYTES)})
    return line_spec(line)


def _transfer(load: Load, path: PathPlan, window_factor: float) -> core.TransferSpec:
    headers = path.header_bytes + (_OPTIONS_BYTES if load.tcp.timestamps else 0)
    fitting = {
        "segment": Size(min(load.tcp.segment.bytes, path.mtu_bytes - headers)),
        "window": Size(round(load.tcp.window.bytes * window_factor)),
    }
    return core.TransferSpec(
        forward=load.forward,
        streams=load.streams,
        config=tcp_spec(load.tcp.model_copy(update=fitting)),
        every_ps=round(INTERVAL_S * 1e12),
    )


def _probe(probe: Probe, duration_s: float) -> core.ProbeSpec:
    return core.ProbeSpec(
        forward=probe.forward,
        count=probe.count(duration_s),
        every_ps=round(probe.every_s * 1e12),
        payload_bytes=probe.payload_bytes,
        timeout_ps=round(probe.timeout_s * 1e12),
    )


def _told_transfer(outcome: _core.LoadedPath, duration_s: float) -> Transfer:
    streams = tuple(_stream(each, duration_s) for each in outcome["streams"])
    together = zip(*(stream.rates_bps for stream in streams), strict=True)
    return Transfer(
        streams=streams,
        intervals_bps=tuple(float(sum(rates)) for rates in together),
        sender_cpu_percent={},
        receiver_cpu_percent={},
    )


def _stream(each: _core.PathStream, duration_s: float) -> Stream:
    delivered = each["interval_delivered_bytes"].tolist()
    resent = each["interval_retransmits"].tolist()
    srtts = (each["interval_srtt_ps"] / 1e12).tolist()
    windows = each["interval_window_bytes"].tolist()
    return Stream(
        received_bytes=each["delivered_bytes"],
        seconds=duration_s,
        retransmits=each["retransmits"],
        mean_rtt_s=float(np.mean(srtts)) if srtts else None,
        max_cwnd_bytes=max(windows, default=None),
        rates_bps=tuple(8 * (b - a) / INTERVAL_S for a, b in itertools.pairwise([0, *delivered])),
        rtts_s=tuple(srtts),
        cwnds_bytes=tuple(windows),
        interval_retransmits=tuple(b - a for a, b in itertools.pairwise([0, *resent])),
    )


def _told_pings(outcome: _core.LoadedPath, sent: int) -> Pings:
    rtts = (outcome["rtt_ps"] / 1e12).tolist()
    return Pings(
        sent=sent,
        rtts_s=tuple(rtts),
        mean_s=float(np.mean(rtts)) if rtts else None,
        min_s=min(rtts, default=None),
    )
