"""The RDMA transport of a scenario as the simulator takes it."""

from __future__ import annotations

from weirlab import spec as core
from weirlab.scenario.traffic import Traffic
from weirlab.scenario.traffic.rapid import Rapid
from weirlab.scenario.traffic.rdma import AnyRecovery, ByTimeout, Overtaken, Rdma, Selective, Sleek
from weirlab.spec import At


def rdma_spec(traffic: Traffic, *at: str) -> core.RdmaConfig | None:
    """The RDMA transport of an entry of traffic at `at`; None for another transport."""
    rdma = traffic.transport
    if not isinstance(rdma, Rdma):
        return None
    control = rdma.congestion_control
    # Rapid's class makes its own settings, and does not go with numbered packets: the checks have refused it.
    assert not isinstance(control, Rapid)
    paths, credit, recovery, answers = rdma.paths, rdma.credit, rdma.recovery, rdma.answers
    return core.RdmaConfig(
        congestion_control=control.resolved((*at, "congestion_control")),
        recovery=recovery.kind,
        detection=_detection(recovery, *at),
        answer_bytes=answers.size.bytes,
        answer_every_bytes=answers.every.bytes,
        control_class=traffic.class_ if answers.class_ is None else answers.class_,
        telemetry_bytes=rdma.telemetry.bytes,
        window_bytes=None if rdma.window is None else rdma.window.bytes,
        initial_window_bytes=None if rdma.initial_window is None else rdma.initial_window.bytes,
        round_trip_ps=None if rdma.round_trip is None else rdma.round_trip.ps,
        timeout_ps=rdma.timeout.ps,
        paths=None
        if paths is None
        else core.PathChoice(rule=paths.rule, values=paths.values, origin=At(*at, "paths")),
        credit=None
        if credit is None
        else core.Credit(
            initial=credit.initial,
            revokes=credit.revokes,
            most=credit.most,
            packets=credit.packets,
            share=credit.share,
            oversubscription=credit.oversubscription,
            origin=At(*at, "credit"),
        ),
        origin=At(
            *at,
            answer_bytes=("answers", "size"),
            answer_every_bytes=("answers", "every"),
            control_class=("answers", "class"),
            detection=("recovery", "detection"),
        ),
    )


def _detection(recovery: AnyRecovery, *at: str) -> core.LossDetection:
    origin = At(*at, "recovery", "detection")
    if not isinstance(recovery, Selective):
        return core.LossDetectionTimeout(origin=origin)
    match recovery.detection:
        case ByTimeout():
            return core.LossDetectionTimeout(origin=origin)
        case Overtaken(packets=packets):
            return core.LossDetectionOvertaken(packets=packets, origin=origin)
        case Sleek() as sleek:
            return core.LossDetectionSleek(
                factor=sleek.factor,
                least_packets=sleek.least,
                most=sleek.most,
                target=sleek.target,
                probe_after=sleek.probe_after,
                probe_again=sleek.probe_again,
                origin=At(*at, "recovery", "detection", least_packets="least"),
            )
