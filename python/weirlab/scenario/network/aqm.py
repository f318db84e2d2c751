"""Active queue management: what drops or marks before a queue is full."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab import spec as core
from weirlab.fields import values
from weirlab.fields.base import BY_KIND, Model, PortSelector
from weirlab.spec import At, Where
from weirlab.units import Frames, Size, Span


class Codel(Model):
    """CoDel: once all frames of an interval have waited too long, frames are dropped at a growing rate
    (RFC 8289)."""

    kind: Literal["codel"]
    target: values.PositiveSpan = Span.from_s(0.005)
    """Acceptable standing wait."""
    interval: values.PositiveSpan = Span.from_s(0.1)
    """Time for which it may be exceeded; about the longest round-trip time."""
    ecn: values.Flag = False
    """Whether ECN-capable frames are marked instead of dropped."""


class FqCodel(Model):
    """FQ-CoDel: each flow has its own queue under CoDel, and the queues take turns (RFC 8290)."""

    kind: Literal["fq-codel"]
    target: values.PositiveSpan = Span.from_s(0.005)
    """Acceptable standing wait in a queue."""
    interval: values.PositiveSpan = Span.from_s(0.1)
    """Time for which it may be exceeded; about the longest round-trip time."""
    ecn: values.Flag = True
    """Whether ECN-capable frames are marked instead of dropped."""
    queues: values.Count = 1024
    """How many queues there are; a hash of the flow chooses one."""
    quantum: values.PositiveSize = Size(1514)
    """What a queue may send in its turn."""


class Pie(Model):
    """PIE: arriving frames are dropped with a probability that a controller derives from the waiting time
    (RFC 8033)."""

    kind: Literal["pie"]
    target: values.PositiveSpan = Span.from_s(0.015)
    """The wait that the controller aims at."""
    update: values.PositiveSpan = Span.from_s(0.015)
    """How often it sets the probability."""
    max_burst: Span = Span.from_s(0.15)
    """How long a burst may last before anything is dropped."""
    alpha: values.Number = 0.125
    """Weight of the distance from the target [1/s]."""
    beta: values.Number = 1.25
    """Weight of the change of the wait [1/s]."""
    ecn: values.Flag = False
    """Whether ECN-capable frames are marked instead of dropped, while the probability is at most 10 %."""


class Red(Model):
    """RED: arriving frames are dropped at random, with a probability that grows with the average queue (Floyd
    and Jacobson 1993); with `averaging: 1` with the current queue, like WRED in switches."""

    kind: Literal["red"]
    min: Size
    """Average below which nothing is dropped."""
    max: values.PositiveSize
    """Average from which on every frame is dropped."""
    p_max: values.PositiveFraction = 0.1
    """Probability just below `max`."""
    averaging: values.PositiveFraction = 0.002
    """Weight of the current queue in the average; 1: the current queue only."""
    idle: Span = Span(0)
    """Transmission time of a small frame. While the queue is empty, the average decays as if frames at this
    interval had found it empty. 0 s: no decay."""
    gentle: values.Flag = False
    """Whether the probability grows to 1 at twice `max`, instead of being 1 from `max` on."""
    ecn: values.Flag = False
    """Whether ECN-capable frames are marked instead of dropped."""


class Marking(Model):
    """Marks on ECN-capable frames that have to wait: none up to `k_min`, all above `k_max`, and between with
    a probability that grows from 0 to `p_max`."""

    k_min: Size
    """Lower threshold."""
    k_max: values.PositiveSize | None = None
    """Upper threshold. Absent: `k_min`; all frames above one length are marked."""
    p_max: values.PositiveFraction = 1.0
    """Probability just below the upper threshold."""
    when: Literal["arrival", "departure"] = "arrival"
    """`arrival`: by the queue that a frame joins, itself included; `departure`: by the queue that it leaves
    behind when its transmission starts, so the mark is not delayed by the queue."""


class Threshold(Marking):
    """Marks by the queue length, without drops: none up to `k_min`, all above `k_max` (RFC 8257)."""

    kind: Literal["threshold"]


class Wrr(Model):
    """Weighted round-robin: the low-latency queue first, except for a share of the link."""

    kind: Literal["wrr"]
    classic: values.PositiveFraction = 0.1
    """Share of the classic queue while both have something to send."""


class TimeShiftedFifo(Model):
    """First in, first out, as if frames of the classic queue had come later."""

    kind: Literal["time-shifted-fifo"]
    shift: Span = Span.from_s(0.05)
    """How much later."""


class DualPi2(Model):
    """DualPI2: L4S. Frames with ECT(1) or CE wait in a low-latency queue, all others in a classic one, and
    the marks of the first are coupled to the drops of the second (RFC 9332)."""

    kind: Literal["dual-pi2"]
    target: values.PositiveSpan = Span.from_s(0.015)
    """The wait in the classic queue that the controller aims at."""
    rtt_max: values.PositiveSpan = Span.from_s(0.1)
    """The longest round-trip time for which it is stable."""
    update: values.PositiveSpan | None = None
    """How often it sets the probability p'. Absent: the lesser of `target` and a third of `rtt_max`."""
    alpha: values.Number | None = None
    """Weight of the distance from the target [1/s]. Absent: 0.1 `update` / `rtt_max`^2."""
    beta: values.Number | None = None
    """Weight of the change of the wait [1/s]. Absent: 0.3 / `rtt_max`."""
    coupling: values.Number = 2.0
    """k: the low-latency queue is marked with k p' where the classic one drops, or marks, with p'^2."""
    ramp_start: Span = Span.from_s(0.0008)
    """The wait in the low-latency queue above which it marks by itself."""
    ramp_range: Span = Span.from_s(0.0004)
    """By how much more all are marked; 0 s: a step."""
    ramp_frames: values.Natural = 1
    """Frames that may be left in the low-latency queue before it marks by itself."""
    scheduler: Annotated[Wrr | TimeShiftedFifo, BY_KIND] = Wrr(kind="wrr")
    """Which queue sends next."""


AnyAqm = Annotated[Codel | FqCodel | Pie | Red | Threshold | DualPi2, BY_KIND]


class Managed(Model):
    """A queue under active management."""

    at: PortSelector
    """Ports that have this queue. A later rule replaces an earlier one."""
    limit: values.Limit = Frames(1000)
    """What may wait, the frame in transmission excluded."""


class CodelQueue(Codel, Managed):
    """First in, first out under CoDel: once all frames of an interval have waited too long, frames are
    dropped at a growing rate (RFC 8289)."""


class FqCodelQueue(FqCodel, Managed):
    """FQ-CoDel: each flow has its own queue under CoDel, and the queues take turns (RFC 8290)."""

    limit: values.Limit = Frames(10240)
    """Limit of all queues together; beyond it the longest one loses frames."""


class PieQueue(Pie, Managed):
    """First in, first out under PIE: arriving frames are dropped with a probability that a controller derives
    from the waiting time (RFC 8033)."""


class RedQueue(Red, Managed):
    """First in, first out under RED: arriving frames are dropped at random, with a probability that grows
    with the average queue (Floyd and Jacobson 1993)."""


class ThresholdQueue(Threshold, Managed):
    """First in, first out; ECN-capable frames are marked by the queue length (RFC 8257)."""


class DualPi2Queue(DualPi2, Managed):
    """DualPI2: L4S. Frames with ECT(1) or CE wait in a low-latency queue, all others in a classic one, and
    the marks of the first are coupled to the drops of the second (RFC 9332)."""

    limit: values.Limit = Frames(10000)
    """What may wait in both queues together."""


AnyManaged = CodelQueue | FqCodelQueue | PieQueue | RedQueue | ThresholdQueue | DualPi2Queue


class OfClass(Model):
    """The queue of a traffic class at a port."""

    class_: values.Natural = Field(alias="class", examples=[3])
    """The traffic class, 0 to 7, whose frames wait here."""
    weight: values.Count | None = None
    """Share of the capacity that classes without a weight leave, by deficit weighted round-robin. Absent:
    strict priority, the highest class first."""


class ManagedClass(OfClass):
    """A queue of a class under active management."""

    limit: values.Limit = Frames(1000)
    """Limit of the queue of the class, without the frame in transmission."""


class CodelClass(Codel, ManagedClass):
    """As `codel` of a port."""


class FqCodelClass(FqCodel, ManagedClass):
    """As `fq-codel` of a port."""

    limit: values.Limit = Frames(10240)
    """What may wait of the class in all its queues together."""


class PieClass(Pie, ManagedClass):
    """As `pie` of a port."""


class RedClass(Red, ManagedClass):
    """As `red` of a port; with one for each class, weighted RED."""


class ThresholdClass(Threshold, ManagedClass):
    """As `threshold` of a port."""


class DualPi2Class(DualPi2, ManagedClass):
    """As `dual-pi2` of a port."""

    limit: values.Limit = Frames(10000)
    """What may wait of the class in both queues together."""


def marks(queue: Model) -> bool:
    """Whether a queue of a port or of a class marks ECN-capable frames."""
    asked = getattr(queue, "marking", None) is not None or getattr(queue, "ecn", False)
    return asked or isinstance(queue, Threshold | DualPi2)


AnyManagedClass = CodelClass | FqCodelClass | PieClass | RedClass | ThresholdClass | DualPi2Class


def aqm_spec(aqm: AnyAqm, *at: str) -> core.Aqm:
    """A management as the spec holds it; it stands `at` that place in the scenario."""
    match aqm:
        case Codel():
            return core.AqmCodel(
                target_ps=aqm.target.ps,
                interval_ps=aqm.interval.ps,
                ecn=aqm.ecn,
                origin=At(*at),
            )
        case FqCodel():
            return core.AqmFqCodel(
                target_ps=aqm.target.ps,
                interval_ps=aqm.interval.ps,
                ecn=aqm.ecn,
                queues=aqm.queues,
                quantum_bytes=aqm.quantum.bytes,
                origin=At(*at),
            )
        case Pie():
            return core.AqmPie(
                target_ps=aqm.target.ps,
                update_ps=aqm.update.ps,
                max_burst_ps=aqm.max_burst.ps,
                alpha=aqm.alpha,
                beta=aqm.beta,
                ecn=aqm.ecn,
                origin=At(*at),
            )
        case Red():
            return core.AqmRed(
                min_bytes=aqm.min.bytes,
                max_bytes=aqm.max.bytes,
                p_max=aqm.p_max,
                weight=aqm.averaging,
                idle_ps=aqm.idle.ps,
                gentle=aqm.gentle,
                ecn=aqm.ecn,
                origin=At(*at, weight="averaging"),
            )
        case Threshold():
            return core.AqmThreshold(
                k_min_bytes=aqm.k_min.bytes,
                k_max_bytes=_k_max_bytes(aqm),
                p_max=aqm.p_max,
                when=aqm.when,
                origin=_of_marks(at),
            )
        case DualPi2():
            return _dual_spec(aqm, at)


def _dual_spec(dual: DualPi2, at: Where) -> core.AqmDualPi2:
    """Source: RFC 9332, appendix A.1 (the constants that follow from others)."""
    update = min(dual.target.ps, dual.rtt_max.ps // 3) if dual.update is None else dual.update.ps
    rtt_max_s = dual.rtt_max.ps / 1e12
    scheduler = dual.scheduler
    return core.AqmDualPi2(
        target_ps=dual.target.ps,
        update_ps=update,
        alpha=0.1 * update / 1e12 / rtt_max_s**2 if dual.alpha is None else dual.alpha,
        beta=0.3 / rtt_max_s if dual.beta is None else dual.beta,
        coupling=dual.coupling,
        ramp_start_ps=dual.ramp_start.ps,
        ramp_range_ps=dual.ramp_range.ps,
        ramp_frames=dual.ramp_frames,
        scheduler=core.DualSchedulerWrr(
            classic=scheduler.classic, origin=At(*at, classic=("scheduler", "classic"))
        )
        if isinstance(scheduler, Wrr)
        else core.DualSchedulerTimeShiftedFifo(shift_ps=scheduler.shift.ps),
        origin=At(*at),
    )


def marking_spec(marking: Marking, *at: str) -> core.Marking:
    """Marks as the spec holds them; they stand `at` that place in the scenario."""
    return core.Marking(
        k_min_bytes=marking.k_min.bytes,
        k_max_bytes=_k_max_bytes(marking),
        p_max=marking.p_max,
        when=marking.when,
        origin=_of_marks(at),
    )


def _k_max_bytes(marking: Marking) -> int:
    return (marking.k_min if marking.k_max is None else marking.k_max).bytes


def _of_marks(at: Where) -> At:
    return At(*at)
