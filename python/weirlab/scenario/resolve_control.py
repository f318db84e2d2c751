"""Congestion control as the spec holds it: ids instead of selectors, bytes instead of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirlab.scenario.bcn import Bcn, BcnCongestionPoint, BcnReactionPoint
from weirlab.scenario.control import Control, Response
from weirlab.scenario.dcqcn import Dcqcn
from weirlab.scenario.layout import Layout
from weirlab.scenario.limiter import LimiterQueue, Notification
from weirlab.scenario.network import Graph, limit_spec
from weirlab.scenario.qcn import Qcn, QcnCongestionPoint, Recovery
from weirlab.units import Frames, Rate, Size, Span

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

__all__ = ["in_bytes", "resolve_control", "unit_of"]

Origins = dict[str, tuple[str | int, ...]]


def resolve_control(scenario: Scenario, layout: Layout, origins: Origins) -> dict[str, Any]:
    """The section `control` of the spec; `origins` is told where its parts come from."""
    control = scenario.control or Control()
    origins["/control"] = ("control",)
    for scheme in ("bcn", "qcn", "dcqcn"):
        _origins_of(scheme, origins)
    return {
        "bcn": None if control.bcn is None else _bcn(control.bcn, layout),
        "qcn": None if control.qcn is None else _qcn(control.qcn, layout),
        "dcqcn": None if control.dcqcn is None else _dcqcn(control.dcqcn, layout),
        "pause": _pause(control, layout, origins),
        "responses": _responses(scenario, layout, origins),
    }


_FIELDS = {
    "ports": "at",
    "hosts": "at",
    "q_eq_bytes": "q_eq",
    "unit_bytes": "unit",
    "sample_every_bytes": "sample_every",
    "ru_bps": "ru",
    "min_rate_bps": "min_rate",
    "initial_rate_bps": "initial_rate",
    "removal_rate_bps": "removal_rate",
    "alpha_timer_ps": "alpha_timer",
}
"""Fields of the spec that have another name in a scenario."""


def _origins_of(scheme: str, origins: Origins) -> None:
    at = f"/control/{scheme}"
    origins[at] = ("control", scheme)
    for part in ("congestion_point", "reaction_point", "notification"):
        origins[f"{at}/{part}"] = ("control", scheme, part)
        for field in ("w", "gi", "gd", "g", "sampling", "drift", "stop", "recovery", "notification"):
            origins[f"{at}/{part}/{field}"] = ("control", scheme, part, field)
        for field, name in _FIELDS.items():
            origins[f"{at}/{part}/{field}"] = ("control", scheme, part, name)
        for field, name in (("queue", "queue"), ("pacing_jitter", "pacing_jitter"), ("fifo_frames", "fifo")):
            origins[f"{at}/{part}/limiter/{field}"] = ("control", scheme, part, name)
        for field, name in (("initial_credit", "initial"), ("most_credit", "cap")):
            origins[f"{at}/{part}/limiter/{field}"] = ("control", scheme, part, "credit", name)
        for field in ("t_max", "r_min"):
            for suffix in ("_ps", "_bps", "_factor"):
                name = field + suffix if suffix == "_factor" else field
                origins[f"{at}/{part}/stop/{field}{suffix}"] = ("control", scheme, part, "stop", name)
    origins[f"{at}/congestion_point/severe"] = ("control", scheme, "severe")
    origins[f"{at}/notify_every_ps"] = ("control", scheme, "notify_every")


def unit_of(point: BcnCongestionPoint) -> Size | None:
    """What Fb counts; None where it is not said."""
    return point.unit or point.frame_size


def in_bytes(amount: Size | Frames, frame_size: Size | None) -> int:
    """An amount in bytes; one in frames needs their size."""
    if isinstance(amount, Size):
        return amount.bytes
    assert frame_size is not None, "checked: an amount in frames has their size beside it"
    return amount.count * frame_size.bytes


def _bcn(bcn: Bcn, layout: Layout) -> dict[str, Any]:
    point = bcn.congestion_point
    unit = unit_of(point)
    assert unit is not None, "checked: Fb has a unit"
    severe = bcn.severe
    return {
        "congestion_point": {
            **_measuring(point, layout),
            "unit_bytes": unit.bytes,
            "counting": point.counting,
            "saturation": point.saturation,
            "positive": point.positive,
            "negative": point.negative,
            "severe": None
            if severe is None
            else {"above_bytes": in_bytes(severe.above, point.frame_size), "action": severe.action},
        },
        "reaction_point": _bcn_reaction_point(bcn.reaction_point, layout),
    }


def _bcn_reaction_point(point: BcnReactionPoint, layout: Layout) -> dict[str, Any]:
    stop, drift = point.stop, point.drift
    return {
        "hosts": layout.host_ids(point.at),
        "gi": point.gi,
        "gd": point.gd,
        "ru_bps": point.ru.bps,
        "min_rate_bps": point.min_rate.bps,
        "initial_rate_bps": _rate(point.initial_rate),
        "removal_rate_bps": _rate(point.removal_rate),
        "drift": None if drift is None else {"step_bps": drift.step.bps, "every_ps": drift.every.ps},
        "stop": {
            "t_max_ps": stop.t_max.ps,
            "r_min_bps": stop.r_min.bps,
            "t_max_factor": stop.t_max_factor,
            "r_min_factor": stop.r_min_factor,
            "back_off": stop.back_off,
            "restart": stop.restart,
            "reset": stop.reset,
            "meanwhile": stop.meanwhile,
        },
        "limiter": _limiter(point),
    }


def _measuring(point: BcnCongestionPoint | QcnCongestionPoint, layout: Layout) -> dict[str, Any]:
    """What the congestion points of BCN and QCN have in common."""
    return {
        "ports": layout.port_ids(point.at),
        "q_eq_bytes": in_bytes(point.q_eq, point.frame_size),
        "w": point.w,
        "sample_every_bytes": point.sample_every.bytes,
        "sampling": point.sampling.model_dump(),
        "counted": point.counted,
        "notification": _notification(point.notification),
    }


def _notification(notification: Notification) -> dict[str, Any]:
    return {
        "frame_bytes": notification.frame_size.bytes,
        "delay_ps": notification.delay.ps,
        "lane": notification.lane,
    }


def _limiter(point: LimiterQueue) -> dict[str, Any]:
    return {
        "queue": limit_spec(point.queue),
        "pacing_jitter": point.pacing_jitter,
        "fifo_frames": point.fifo,
        "initial_credit": point.credit.initial,
        "most_credit": point.credit.cap,
    }


def _rate(rate: Rate | None) -> int | None:
    return None if rate is None else rate.bps


def _qcn(qcn: Qcn, layout: Layout) -> dict[str, Any]:
    point = qcn.reaction_point
    return {
        "congestion_point": _measuring(qcn.congestion_point, layout),
        "reaction_point": {
            "hosts": layout.host_ids(point.at),
            "gd": point.gd,
            "min_decrease_factor": point.min_decrease_factor,
            "recovery": _recovery(point.recovery),
            "min_rate_bps": point.min_rate.bps,
            "new_limiter": point.new_limiter,
            "limiter": _limiter(point),
        },
    }


def _recovery(recovery: Recovery) -> dict[str, Any]:
    return {
        "byte_counter_bytes": recovery.byte_counter.bytes,
        "timer_ps": recovery.timer.ps,
        "jitter": recovery.jitter,
        "halve_stages": recovery.halve_stages,
        "fast_recovery_stages": recovery.fast_recovery,
        "r_ai_bps": recovery.r_ai.bps,
        "r_hai_bps": recovery.r_hai.bps,
        "target_cut_above": recovery.target_cut_above,
        "target_cut": recovery.target_cut,
    }


def _dcqcn(dcqcn: Dcqcn, layout: Layout) -> dict[str, Any]:
    point = dcqcn.reaction_point
    return {
        "notify_every_ps": dcqcn.notify_every.ps,
        "notification": _notification(dcqcn.notification),
        "reaction_point": {
            "hosts": layout.host_ids(point.at),
            "g": point.g,
            "alpha_timer_ps": point.alpha_timer.ps,
            "recovery": _recovery(point.recovery),
            "min_rate_bps": point.min_rate.bps,
            "limiter": _limiter(point),
        },
    }


def _pause(control: Control, layout: Layout, origins: Origins) -> list[dict[str, Any]]:
    """Rules of PAUSE; a switch obeys the last one that names it."""
    last = {node: name for name, rule in control.pause.items() for node in layout.node_ids(rule.at)}
    rules: list[dict[str, Any]] = []
    for name, rule in control.pause.items():
        nodes = [node for node in layout.node_ids(rule.at) if last[node] == name]
        if not nodes:
            continue
        at = f"/control/pause/{len(rules)}"
        origins[at] = ("control", "pause", name)
        for field in ("xoff_bytes", "xon_bytes", "quanta", "refresh_ps", "frame_bytes", "delay_ps"):
            field_name = {"frame_bytes": "frame_size"}.get(field, field.partition("_")[0])
            origins[f"{at}/{field}"] = ("control", "pause", name, field_name)
        rules.append(
            {
                "nodes": nodes,
                "xoff_bytes": rule.xoff.bytes,
                "xon_bytes": rule.xon.bytes,
                "frame_bytes": rule.frame_size.bytes,
                "delay_ps": rule.delay.ps,
                "quanta": rule.quanta,
                "refresh_ps": None if rule.refresh is None else rule.refresh.ps,
            }
        )
    return rules


def _responses(scenario: Scenario, layout: Layout, origins: Origins) -> list[dict[str, Any]]:
    """How fast nodes act: what the nodes of a graph say of themselves, then the entries of `control`."""
    times: dict[int, tuple[Span, Span, tuple[str | int, ...]]] = {}
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
    groups: dict[tuple[Span, Span, tuple[str | int, ...]], list[int]] = {}
    for node, key in times.items():
        groups.setdefault(key, []).append(node)
    responses: list[dict[str, Any]] = []
    for (pause, notification, origin), nodes in groups.items():
        origins[f"/control/responses/{len(responses)}"] = origin
        responses.append({"nodes": nodes, "pause_ps": pause.ps, "notification_ps": notification.ps})
    return responses
