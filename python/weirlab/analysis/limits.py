"""Parameters of congestion control that are legal, with an effect that one may not expect: gains that ask for
more than a rate has, samples closer than frames, rates that never grow, control frames that are too short."""

from __future__ import annotations

from collections.abc import Iterator

from weirlab.analysis.headroom import longest_frame
from weirlab.scenario import Scenario
from weirlab.scenario.control import Control
from weirlab.scenario.control.bcn import Bcn
from weirlab.scenario.control.qcn import Qcn
from weirlab.scenario.network import ClassQueues, DropTail, marking_of
from weirlab.scenario.network.aqm import Managed, Threshold, marks
from weirlab.scenario.resolve.control import in_bytes, unit_of
from weirlab.scenario.resolve.transport import ecn_of
from weirlab.scenario.traffic import Rdma, Tcp
from weirlab.scenario.traffic.controllers import ECN
from weirlab.units import Size

_QCN_LEVELS = 63
"""Largest feedback of QCN, which has 6 bits."""
_LEAST_FRAME_BYTES = 64
"""Source: IEEE 802.3, the shortest frame"""


def cut_off_gains(scenario: Scenario) -> list[str]:
    """A sentence for each gain with which the largest feedback takes more than a decrease may."""
    control = scenario.control
    if control is None:
        return []
    found = [*_of_bcn(control.bcn)] if control.bcn is not None else []
    return found + ([*_of_qcn(control.qcn)] if control.qcn is not None else [])


def _of_bcn(bcn: Bcn) -> Iterator[str]:
    point, sender = bcn.congestion_point, bcn.reaction_point
    unit = unit_of(point)
    assert unit is not None, "checked: Fb has a unit"
    most = (1 + 2 * point.w) * in_bytes(point.q_eq, point.frame_size) / unit.bytes
    if sender.gd * most >= 1:
        yield (
            f"control.bcn.reaction_point.gd: Fb of {1 / sender.gd:.3g} and more ({most:.3g} are possible) "
            f"takes all of a rate: it falls to 'min_rate' ({sender.min_rate}) at once"
        )


def _of_qcn(qcn: Qcn) -> Iterator[str]:
    sender = qcn.reaction_point
    if sender.gd * _QCN_LEVELS > 1 - sender.min_decrease_factor:
        level = (1 - sender.min_decrease_factor) / sender.gd
        yield (
            f"control.qcn.reaction_point.gd: feedback of {level:.3g} and more ({_QCN_LEVELS} are possible) "
            f"counts alike: 'min_decrease_factor' leaves {sender.min_decrease_factor:g} of a rate"
        )


def odd_parameters(scenario: Scenario) -> list[str]:
    """A sentence for each parameter of congestion control that is legal and unusual."""
    control = scenario.control
    if control is None:
        return []
    found = [*_samples_too_close(scenario, control), *_short_frames(control)]
    bcn = control.bcn
    if bcn is not None and bcn.reaction_point.gi == 0:
        drifts = bcn.reaction_point.drift is not None
        how = "by drift alone" if drifts else "never, and stay limited for good"
        found.append(f"control.bcn.reaction_point.gi: is 0: rates grow {how}")
    return found


def unheard_marks(scenario: Scenario) -> list[str]:
    """A sentence for each entry that marks frames where no traffic is ECN-capable: it has no effect."""
    control = scenario.control
    dcqcn = None if control is None else control.dcqcn
    streams = [entry for entry in scenario.traffic.values() if isinstance(entry.transport, Tcp)]
    if any(isinstance(entry.transport, Rdma) for entry in scenario.traffic.values()):
        return []
    others = len(scenario.traffic) > len(streams) or bool(scenario.hotspots)
    if (dcqcn is not None and others) or any(
        ecn_of(entry.transport) != "none" for entry in streams if isinstance(entry.transport, Tcp)
    ):
        return []
    queues = scenario.queues.items()
    marking = [f"queues.{name}.marking" for name, queue in queues if marking_of(queue) is not None]
    marking += [f"queues.{name}" for name, queue in queues if isinstance(queue, Threshold)]
    marking += [f"queues.{name}.ecn" for name, queue in queues if _asks_for_marks(queue)]
    if dcqcn is not None:
        marking.append("control.dcqcn")
    hint = (
        "write 'ecn: true' in the transport of tcp"
        if streams
        else "add 'control.dcqcn', or traffic of tcp with 'ecn: true'"
    )
    return [f"{path}: no traffic is ECN-capable, so that no frame is marked; {hint}" for path in marking]


def missing_marks(scenario: Scenario) -> list[str]:
    """A sentence for each entry whose congestion control lives on marks where no queue marks: it would answer
    losses alone."""
    control = scenario.control
    if control is not None and control.dcqcn is not None and control.dcqcn.marking is not None:
        return []
    if any(_can_mark(queue) for queue in scenario.queues.values()) or getattr(scenario.testbed, "hops", None):
        return []
    found = []
    for name, entry in scenario.traffic.items():
        if isinstance(entry.transport, Tcp) and (kind := entry.transport.congestion_control.kind) in ECN:
            wanted = "kind: dual-pi2" if ECN[kind] == "accurate" else "kind: threshold"
            found.append(
                f"traffic.{name}.transport: no queue marks, so that {kind} answers losses alone; "
                f"add to 'queues' one of '{wanted}'"
            )
    return found


def _can_mark(queue: DropTail | Managed | ClassQueues) -> bool:
    return any(map(marks, queue.classes.values() if isinstance(queue, ClassQueues) else [queue]))


def _asks_for_marks(queue: DropTail | Managed | ClassQueues) -> bool:
    """Whether a management is told to mark; one that does so unasked needs nobody who listens."""
    return isinstance(queue, Managed) and "ecn" in queue.model_fields_set and getattr(queue, "ecn", False)


def _samples_too_close(scenario: Scenario, control: Control) -> Iterator[str]:
    for name, scheme in (("bcn", control.bcn), ("qcn", control.qcn)):
        every = None if scheme is None else scheme.congestion_point.sample_every
        longest = longest_frame(scenario)
        if every is not None and longest is not None and every.bytes < longest:
            yield (
                f"control.{name}.congestion_point.sample_every: {every} is less than a frame has "
                f"({Size(longest)}): such a frame is sampled each time, whatever its size"
            )


def _short_frames(control: Control) -> Iterator[str]:
    frames = {f"pause.{name}": rule.frame_size for name, rule in control.pause.items()}
    for name, scheme in (("bcn", control.bcn), ("qcn", control.qcn)):
        if scheme is not None:
            frames[f"{name}.congestion_point.notification"] = scheme.congestion_point.notification.frame_size
    if control.dcqcn is not None:
        frames["dcqcn.notification"] = control.dcqcn.notification.frame_size
    for path, size in frames.items():
        if size.bytes < _LEAST_FRAME_BYTES:
            yield f"control.{path}.frame_size: {size} is less than the shortest frame of Ethernet, 64 B"
