"""Traffic classes: queues of their own at a port, and which of them sends next."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from weirlab.scenario.aqm import (
    AQM_PLACES,
    Codel,
    DualPi2,
    FqCodel,
    Marking,
    Pie,
    Threshold,
    aqm_spec,
    marking_spec,
)
from weirlab.scenario.base import BY_KIND, Model, Named, PortSelector
from weirlab.scenario.values import Limit, Natural, PositiveSize
from weirlab.units import Frames, Size

__all__ = [
    "AnyClassQueue",
    "ClassQueues",
    "CodelClass",
    "DropTailClass",
    "DualPi2Class",
    "FqCodelClass",
    "PieClass",
    "ThresholdClass",
    "class_origins",
    "classes_spec",
    "limit_spec",
]


class OfClass(Model):
    """The queue of a traffic class at a port."""

    class_: Natural = Field(alias="class", examples=[3])
    """The traffic class, 0 to 7, whose frames wait here."""
    weight: Natural | None = None
    """Share of what classes without a weight leave, by deficit weighted round-robin. Absent: strict priority,
    the highest class first."""


class DropTailClass(OfClass):
    """First in, first out; a frame that would exceed the limit is dropped on arrival."""

    kind: Literal["drop-tail"]
    limit: Limit = Field(examples=["150 kB", "300 frames", "unlimited"])
    """What may wait of the class, the frame in transmission excluded."""
    marking: Marking | None = None
    """ECN: marks on frames that wait. Absent: none."""


class ManagedClass(OfClass):
    """A queue of a class under active management."""

    limit: Limit = Frames(1000)
    """What may wait of the class, the frame in transmission excluded."""


class CodelClass(Codel, ManagedClass):
    """As `codel` of a port."""


class FqCodelClass(FqCodel, ManagedClass):
    """As `fq-codel` of a port."""

    limit: Limit = Frames(10240)
    """What may wait of the class in all its queues together."""


class PieClass(Pie, ManagedClass):
    """As `pie` of a port."""


class ThresholdClass(Threshold, ManagedClass):
    """As `threshold` of a port."""


class DualPi2Class(DualPi2, ManagedClass):
    """As `dual-pi2` of a port."""

    limit: Limit = Frames(10000)
    """What may wait of the class in both queues together."""


AnyClassQueue = Annotated[
    DropTailClass | CodelClass | FqCodelClass | PieClass | ThresholdClass | DualPi2Class, BY_KIND
]


class ClassQueues(Model):
    """A queue for each traffic class, and a scheduler that says which sends next (IEEE 802.1Q)."""

    kind: Literal["classes"]
    at: PortSelector
    """Ports of which these are the queues. A later rule replaces an earlier one."""
    classes: Named[AnyClassQueue] = Field(
        min_length=1, examples=[{"urgent": {"class": 7, "kind": "drop-tail", "limit": "100 kB"}}]
    )
    """The queues, by a name of your own: one for each class of `traffic`."""
    order: Literal["class", "arrival"] = "class"
    """`class`: by strict priority and weights; `arrival`: the frame that came first, whatever its class."""
    quantum: PositiveSize = Size(1518)
    """What a class of weight 1 may send in its turn."""


def limit_spec(limit: Size | Frames | str) -> Any:
    """A limit as the spec holds it."""
    match limit:
        case Size():
            return {"bytes": limit.bytes}
        case Frames():
            return {"frames": limit.count}
        case _:
            return "unlimited"


def classes_spec(queues: ClassQueues) -> dict[str, Any]:
    """The queues of a port, as the spec holds them."""
    order: dict[str, Any] = {"kind": "arrival"}
    if queues.order == "class":
        order = {"kind": "class", "quantum_bytes": queues.quantum.bytes}
    return {
        "kind": "classes",
        "order": order,
        "list": [_class_spec(queue) for queue in queues.classes.values()],
    }


def class_origins(
    at: str, queues: ClassQueues, where: tuple[str | int, ...]
) -> dict[str, tuple[str | int, ...]]:
    """The parts of the queues that stand at ``where`` by the pointers of what they become, below ``at``."""
    places: dict[str, tuple[str | int, ...]] = {
        f"{at}/order/quantum_bytes": (*where, "quantum"),
        f"{at}/list": (*where, "classes"),
    }
    for i, name in enumerate(queues.classes):
        of_class = (*where, "classes", name)
        places[f"{at}/list/{i}"] = places[f"{at}/list/{i}/discipline"] = of_class
        for field in ("class", "weight"):
            places[f"{at}/list/{i}/{field}"] = (*of_class, field)
        for field in ("k_min", "k_max", "p_max"):
            suffix = "" if field == "p_max" else "_bytes"
            places[f"{at}/list/{i}/discipline/marking/{field}{suffix}"] = (*of_class, "marking", field)
        for place, word in AQM_PLACES:
            places[f"{at}/list/{i}/discipline/aqm/{place}"] = (*of_class, *word.split("/"))
    return places


def _class_spec(queue: AnyClassQueue) -> dict[str, Any]:
    limit = limit_spec(queue.limit)
    discipline: dict[str, Any]
    if isinstance(queue, DropTailClass):
        marking = None if queue.marking is None else marking_spec(queue.marking)
        discipline = {"kind": "drop-tail", "limit": limit, "marking": marking, "overrun": None}
    else:
        discipline = {"kind": "managed", "limit": limit, "aqm": aqm_spec(queue)}
    return {"class": queue.class_, "weight": queue.weight, "discipline": discipline}
