"""Congestion control as the spec holds it: ids instead of selectors, bytes instead of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab import spec as core
from weirlab.scenario.control import Control, Response
from weirlab.scenario.control.bcn import (
    Bcn,
    BcnCongestionPoint,
    BcnReactionPoint,
    ExponentialSampling,
    PerFrameSampling,
    UniformSampling,
)
from weirlab.scenario.control.dcqcn import Dcqcn
from weirlab.scenario.control.limiter import LimiterQueue, Notification
from weirlab.scenario.control.qcn import Qcn, QcnCongestionPoint, QcnReactionPoint, Recovery
from weirlab.scenario.network import Graph, limit_spec
from weirlab.scenario.network.layout import Layout
from weirlab.spec import At, Where
from weirlab.units import Frames, Rate, Size, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def resolve_control(scenario: Scenario, layout: Layout) -> core.Control:
    """The section `control` of the spec."""
    control = scenario.control or Control()
    return core.Control(
        bcn=None if control.bcn is None else _bcn(control.bcn, layout),
        qcn=None if control.qcn is None else _qcn(control.qcn, layout),
        dcqcn=None if control.dcqcn is None else _dcqcn(control.dcqcn, layout),
        pause=_pause(control, layout),
        responses=_responses(scenario, layout),
        origin=At("control"),
    )


def unit_of(point: BcnCongestionPoint) -> Size | None:
    """What Fb counts; None where it is not said."""
    return point.unit or point.frame_size


def in_bytes(amount: Size | Frames, frame_size: Size | None) -> int:
    """An amount in bytes; one in frames needs their size."""
    if isinstance(amount, Size):
        return amount.bytes
    assert frame_size is not None, "checked: an amount in frames has their size beside it"
    return amount.count * frame_size.bytes


def _bcn(bcn: Bcn, layout: Layout) -> core.Bcn:
    return core.Bcn(
        congestion_point=_bcn_congestion_point(bcn, layout),
        reaction_point=_bcn_reaction_point(bcn.reaction_point, layout),
        origin=At("control", "bcn"),
    )


def _bcn_congestion_point(bcn: Bcn, layout: Layout) -> core.BcnCongestionPoint:
    point, severe = bcn.congestion_point, bcn.severe
    unit = unit_of(point)
    assert unit is not None, "checked: Fb has a unit"
    at = ("control", "bcn", "congestion_point")
    return core.BcnCongestionPoint(
        ports=layout.port_ids(point.at),
        q_eq_bytes=in_bytes(point.q_eq, point.frame_size),
        unit_bytes=unit.bytes,
        counting=point.counting,
        saturation=point.saturation,
        w=point.w,
        sample_every_bytes=point.sample_every.bytes,
        sampling=_sampling(point),
        counted=point.counted,
        positive=point.positive,
        negative=point.negative,
        severe=None
        if severe is None
        else core.Severe(
            above_bytes=in_bytes(severe.above, point.frame_size),
            action=severe.action,
            origin=At("control", "bcn", "severe"),
        ),
        notification=_notification(point.notification, *at, "notification"),
        origin=At(*at, ports="at"),
    )


def _bcn_reaction_point(point: BcnReactionPoint, layout: Layout) -> core.BcnReactionPoint:
    stop, drift = point.stop, point.drift
    at = ("control", "bcn", "reaction_point")
    return core.BcnReactionPoint(
        hosts=layout.host_ids(point.at),
        gi=point.gi,
        gd=point.gd,
        ru_bps=point.ru.bps,
        min_rate_bps=point.min_rate.bps,
        initial_rate_bps=_rate(point.initial_rate),
        removal_rate_bps=_rate(point.removal_rate),
        drift=None
        if drift is None
        else core.Drift(step_bps=drift.step.bps, every_ps=drift.every.ps, origin=At(*at, "drift")),
        stop=core.Stop(
            t_max_ps=stop.t_max.ps,
            r_min_bps=stop.r_min.bps,
            t_max_factor=stop.t_max_factor,
            r_min_factor=stop.r_min_factor,
            back_off=stop.back_off,
            restart=stop.restart,
            reset=stop.reset,
            meanwhile=stop.meanwhile,
            origin=At(*at, "stop"),
        ),
        limiter=_limiter(point, at),
        origin=At(*at, hosts="at"),
    )


def _sampling(point: BcnCongestionPoint | QcnCongestionPoint) -> core.Sampling:
    match point.sampling:
        case UniformSampling(jitter=jitter):
            return core.SamplingUniform(jitter=jitter)
        case ExponentialSampling():
            return core.SamplingExponential()
        case PerFrameSampling():
            return core.SamplingPerFrame()


def _notification(notification: Notification, *at: str) -> core.Notification:
    return core.Notification(
        frame_bytes=notification.frame_size.bytes,
        delay_ps=notification.delay.ps,
        lane=notification.lane,
        origin=At(*at),
    )


def _limiter(point: LimiterQueue, at: Where) -> core.Limiter:
    """The queue of a limiter, whose fields stand `at` a reaction point."""
    return core.Limiter(
        queue=limit_spec(point.queue),
        pacing_jitter=point.pacing_jitter,
        fifo_frames=point.fifo,
        initial_credit=point.credit.initial,
        most_credit=point.credit.cap,
        origin=At(*at, initial_credit=("credit", "initial"), most_credit=("credit", "cap")),
    )


def _rate(rate: Rate | None) -> int | None:
    return None if rate is None else rate.bps


def _qcn(qcn: Qcn, layout: Layout) -> core.Qcn:
    measuring, reacting = qcn.congestion_point, qcn.reaction_point
    at = ("control", "qcn", "congestion_point")
    return core.Qcn(
        congestion_point=core.QcnCongestionPoint(
            ports=layout.port_ids(measuring.at),
            q_eq_bytes=in_bytes(measuring.q_eq, measuring.frame_size),
            w=measuring.w,
            sample_every_bytes=measuring.sample_every.bytes,
            sampling=_sampling(measuring),
            counted=measuring.counted,
            notification=_notification(measuring.notification, *at, "notification"),
            origin=At(*at, ports="at"),
        ),
        reaction_point=_qcn_reaction_point(reacting, layout),
        origin=At("control", "qcn"),
    )


def _qcn_reaction_point(point: QcnReactionPoint, layout: Layout) -> core.QcnReactionPoint:
    at = ("control", "qcn", "reaction_point")
    return core.QcnReactionPoint(
        hosts=layout.host_ids(point.at),
        gd=point.gd,
        min_decrease_factor=point.min_decrease_factor,
        recovery=_recovery(point.recovery, at),
        min_rate_bps=point.min_rate.bps,
        new_limiter=point.new_limiter,
        limiter=_limiter(point, at),
        origin=At(*at, hosts="at"),
    )


def _recovery(recovery: Recovery, at: Where) -> core.RateRecovery:
    return core.RateRecovery(
        byte_counter_bytes=recovery.byte_counter.bytes if isinstance(recovery.byte_counter, Size) else None,
        timer_ps=recovery.timer.ps,
        jitter=recovery.jitter,
        halve_stages=recovery.halve_stages,
        fast_recovery_stages=recovery.fast_recovery,
        hyper_after_stages=recovery.hyper_after,
        r_ai_bps=recovery.r_ai.bps,
        r_hai_bps=recovery.r_hai.bps,
        hyper_grows=recovery.hyper_grows,
        target_cut_above=recovery.target_cut_above,
        target_cut=recovery.target_cut,
        origin=At(*at, "recovery"),
    )


def _dcqcn(dcqcn: Dcqcn, layout: Layout) -> core.Dcqcn:
    point = dcqcn.reaction_point
    at = ("control", "dcqcn", "reaction_point")
    return core.Dcqcn(
        notify_every_ps=dcqcn.notify_every.ps,
        notification=_notification(dcqcn.notification, "control", "dcqcn", "notification"),
        reaction_point=core.DcqcnReactionPoint(
            hosts=layout.host_ids(point.at),
            g=point.g,
            alpha_timer_ps=point.alpha_timer.ps,
            cut_timer_ps=None if point.cut_timer is None else point.cut_timer.ps,
            recovery=_recovery(point.recovery, at),
            min_rate_bps=point.min_rate.bps,
            limiter=_limiter(point, at),
            origin=At(*at, hosts="at"),
        ),
        origin=At("control", "dcqcn"),
    )


def _pause(control: Control, layout: Layout) -> list[core.Pause]:
    """Rules of PAUSE; a switch obeys the last one that names it."""
    last = {node: name for name, rule in control.pause.items() for node in layout.node_ids(rule.at)}
    rules: list[core.Pause] = []
    for name, rule in control.pause.items():
        nodes = [node for node in layout.node_ids(rule.at) if last[node] == name]
        if not nodes:
            continue
        rules.append(
            core.Pause(
                nodes=nodes,
                xoff_bytes=rule.xoff.bytes,
                xon_bytes=rule.xon.bytes,
                frame_bytes=rule.frame_size.bytes,
                delay_ps=rule.delay.ps,
                quanta=rule.quanta,
                refresh_ps=None if rule.refresh is None else rule.refresh.ps,
                origin=At("control", "pause", name, frame_bytes="frame_size"),
            )
        )
    return rules


def _responses(scenario: Scenario, layout: Layout) -> list[core.Response]:
    """How fast nodes act: what the nodes of a graph say of themselves, then the entries of `control`."""
    times: dict[int, tuple[Span, Span, Where]] = {}
    if isinstance(scenario.network, Graph):
        for name, group in scenario.network.nodes.items():
            if group.response is not None:
                members = [name] if group.count is None else [f"{name}-{i}" for i in range(group.count)]
                for node in layout.node_ids(members):
                    times[node] = (group.response, group.response, ("network", "nodes", name, "response"))
    entries: dict[str, Response] = dict(scenario.control.responses) if scenario.control else {}
    for name, entry in entries.items():
        for node in layout.node_ids(entry.at):
            times[node] = (entry.pause, entry.notification, ("control", "responses", name))
    groups: dict[tuple[Span, Span, Where], list[int]] = {}
    for node, key in times.items():
        groups.setdefault(key, []).append(node)
    return [
        core.Response(nodes=nodes, pause_ps=pause.ps, notification_ps=notification.ps, origin=At(*at))
        for (pause, notification, at), nodes in groups.items()
    ]
