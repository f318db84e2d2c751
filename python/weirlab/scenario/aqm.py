"""Active queue management: what drops or marks before a queue is full."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from weirlab.scenario.base import BY_KIND, Model, PortSelector
from weirlab.scenario.values import Count, Flag, Limit, Number, PositiveSize, PositiveSpan
from weirlab.units import Frames, Size, Span

__all__ = [
    "AQM_PLACES",
    "AnyAqm",
    "Codel",
    "CodelQueue",
    "FqCodel",
    "FqCodelQueue",
    "Managed",
    "Pie",
    "PieQueue",
    "aqm_spec",
]


class Codel(Model):
    """CoDel: while frames have waited too long all through an interval, one after the other is dropped, ever
    faster (RFC 8289)."""

    kind: Literal["codel"]
    target: PositiveSpan = Span.from_s(0.005)
    """The wait that may stand."""
    interval: PositiveSpan = Span.from_s(0.1)
    """For how long it may be exceeded; about the greatest round-trip time."""
    ecn: Flag = False
    """Whether ECN-capable frames are marked instead of dropped."""


class FqCodel(Model):
    """FQ-CoDel: flows wait in queues of their own, which take turns, each under CoDel (RFC 8290)."""

    kind: Literal["fq-codel"]
    target: PositiveSpan = Span.from_s(0.005)
    """The wait that may stand in a queue."""
    interval: PositiveSpan = Span.from_s(0.1)
    """For how long it may be exceeded; about the greatest round-trip time."""
    ecn: Flag = True
    """Whether ECN-capable frames are marked instead of dropped."""
    queues: Count = 1024
    """How many queues there are; a hash of the flow chooses one."""
    quantum: PositiveSize = Size(1514)
    """What a queue may send in its turn."""


class Pie(Model):
    """PIE: what arrives is dropped with a probability that a controller sets by how long frames wait
    (RFC 8033)."""

    kind: Literal["pie"]
    target: PositiveSpan = Span.from_s(0.015)
    """The wait that the controller aims at."""
    update: PositiveSpan = Span.from_s(0.015)
    """How often it sets the probability."""
    max_burst: Span = Span.from_s(0.15)
    """How long a burst may last before anything is dropped."""
    alpha: Number = 0.125
    """Weight of the distance from the target [1/s]."""
    beta: Number = 1.25
    """Weight of the change of the wait [1/s]."""
    ecn: Flag = False
    """Whether ECN-capable frames are marked instead of dropped, while the probability is at most 10 %."""


AQM_PLACES = (
    ("target_ps", "target"),
    ("interval_ps", "interval"),
    ("queues", "queues"),
    ("quantum_bytes", "quantum"),
    ("update_ps", "update"),
    ("alpha", "alpha"),
    ("beta", "beta"),
)
"""Names of fields in the spec, and in a file."""

AnyAqm = Annotated[Codel | FqCodel | Pie, BY_KIND]


class Managed(Model):
    """A queue under active management."""

    at: PortSelector
    """Ports of which this is the queue. A later rule replaces an earlier one."""
    limit: Limit = Frames(1000)
    """What may wait, the frame in transmission excluded."""


class CodelQueue(Codel, Managed):
    """First in, first out under CoDel: while frames have waited too long all through an interval, one after
    the other is dropped, ever faster (RFC 8289)."""


class FqCodelQueue(FqCodel, Managed):
    """FQ-CoDel: flows wait in queues of their own, which take turns, each under CoDel (RFC 8290)."""

    limit: Limit = Frames(10240)
    """What may wait in all queues together; then the longest one loses frames."""


class PieQueue(Pie, Managed):
    """First in, first out under PIE: what arrives is dropped with a probability that a controller sets by how
    long frames wait (RFC 8033)."""


def aqm_spec(aqm: Codel | FqCodel | Pie) -> dict[str, Any]:
    """A management as the spec holds it."""
    common = {"target_ps": aqm.target.ps, "ecn": aqm.ecn}
    match aqm:
        case Codel():
            return {"kind": "codel", "interval_ps": aqm.interval.ps, **common}
        case FqCodel():
            turns = {"queues": aqm.queues, "quantum_bytes": aqm.quantum.bytes}
            return {"kind": "fq-codel", "interval_ps": aqm.interval.ps, **turns, **common}
        case Pie():
            times = {"update_ps": aqm.update.ps, "max_burst_ps": aqm.max_burst.ps}
            return {"kind": "pie", **times, "alpha": aqm.alpha, "beta": aqm.beta, **common}
