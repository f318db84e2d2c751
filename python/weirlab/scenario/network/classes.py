"""Traffic classes: queues of their own at a port, and which of them sends next."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab import spec as core
from weirlab.fields.base import BY_KIND, Model, Named, PortSelector
from weirlab.fields.values import Limit, Natural, PositiveSize
from weirlab.scenario.network.aqm import (
    AnyManagedClass,
    Marking,
    OfClass,
    aqm_spec,
    marking_spec,
)
from weirlab.spec import At
from weirlab.units import Frames, Size


class Trim(Model):
    """Cuts the payload of packets of `rdma` that find no room, instead of dropping them."""

    to: Natural
    """Traffic class of the remaining headers; its queue should be served first."""
    size: PositiveSize = Size(64)
    """What is left, with FCS, without preamble and gap."""


class DropTailClass(OfClass):
    """First in, first out; a frame that would exceed the limit is dropped on arrival."""

    kind: Literal["drop-tail"]
    limit: Limit = Field(examples=["150 kB", "300 frames", "unlimited"])
    """Limit of the queue of the class, without the frame in transmission."""
    marking: Marking | None = None
    """ECN: marks on frames that wait. Absent: none."""
    trim: Trim | None = None
    """Absent: what finds no room is dropped."""


AnyClassQueue = Annotated[DropTailClass | AnyManagedClass, BY_KIND]


class ClassQueues(Model):
    """A queue for each traffic class, and a scheduler that chooses which sends next (IEEE 802.1Q)."""

    kind: Literal["classes"]
    at: PortSelector
    """Ports that have these queues. A later rule replaces an earlier one."""
    classes: Named[AnyClassQueue] = Field(
        min_length=1, examples=[{"urgent": {"class": 7, "kind": "drop-tail", "limit": "100 kB"}}]
    )
    """The queues, by a name of your own: one for each class of `traffic`."""
    order: Literal["class", "arrival"] = "class"
    """`class`: by strict priority and weights; `arrival`: in order of arrival, whatever the class."""
    quantum: PositiveSize = Size(1518)
    """What a class of weight 1 may send in its turn."""


def limit_spec(limit: Size | Frames | str) -> core.Limit:
    """A limit as the spec holds it."""
    match limit:
        case Size():
            return core.LimitBytes(bytes=limit.bytes)
        case Frames():
            return core.LimitFrames(frames=limit.count)
        case _:
            return "unlimited"


def classes_spec(queues: ClassQueues, *at: str) -> core.DisciplineClasses:
    """The queues of a port, as the spec holds them; they stand `at` that place in the scenario."""
    order: core.Order = core.OrderArrival()
    if queues.order == "class":
        order = core.OrderClass(quantum_bytes=queues.quantum.bytes, origin=At(*at))
    found = [_class_spec(queue, *at, "classes", name) for name, queue in queues.classes.items()]
    return core.DisciplineClasses(order=order, list=found, origin=At(*at, list="classes"))


def _class_spec(queue: AnyClassQueue, *at: str) -> core.Class:
    limit = limit_spec(queue.limit)
    discipline: core.Discipline
    if isinstance(queue, DropTailClass):
        marking = None if queue.marking is None else marking_spec(queue.marking, *at, "marking")
        discipline = core.DisciplineDropTail(limit=limit, marking=marking, overrun=None)
    else:
        discipline = core.DisciplineManaged(limit=limit, aqm=aqm_spec(queue, *at))
    trim = queue.trim if isinstance(queue, DropTailClass) else None
    return core.Class(
        class_=queue.class_,
        weight=queue.weight,
        discipline=discipline,
        trim=None
        if trim is None
        else core.Trim(size_bytes=trim.size.bytes, class_=trim.to, origin=At(*at, "trim", class_="to")),
        origin=At(*at),
    )
