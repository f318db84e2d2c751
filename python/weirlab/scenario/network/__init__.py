"""Networks and queues of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from weirlab import spec as core
from weirlab.fields.base import BY_KIND, Model, Name, Named, PortSelector, Selector
from weirlab.fields.values import Count, Fraction, Limit, Number, PositiveFraction, PositiveRate
from weirlab.scenario.network.aqm import AnyManaged, Managed, Marking, aqm_spec, marking_spec
from weirlab.scenario.network.classes import (
    ClassQueues as ClassQueues,
    classes_spec,
    limit_spec as limit_spec,
)
from weirlab.scenario.network.switching import AnyMemory, SharedMemory
from weirlab.spec import At
from weirlab.units import Span

FRAMING_BYTES = {"ethernet": 20, "none": 0}
"""What a frame occupies on a link beyond its size [B]: preamble (7), start delimiter (1) and gap (12), or 0.

Source: IEEE 802.3, clauses 3.1.1 and 4.4.2."""

Framing = Literal["ethernet", "none"]
Levels = Annotated[tuple[Count, ...], Field(min_length=1)]


class RandomLoss(Model):
    """Independent loss of each frame."""

    kind: Literal["random"]
    ratio: Fraction
    """Share of the frames that is lost."""


class LossBursts(Model):
    """The Gilbert-Elliott channel: a good and a bad state, between which it may change at each frame."""

    to_bad: Fraction
    """Probability of the change from good to bad."""
    to_good: Fraction
    """Probability of the change back; bad times last 1 / `to_good` frames on average."""
    loss_good: Fraction = 0.0
    """Share of the frames that are lost in the good state."""
    loss_bad: Fraction = 1.0
    """Share of the frames that are lost in the bad state."""


class GilbertElliottLoss(LossBursts):
    """Loss in bursts, as of the Gilbert-Elliott channel."""

    kind: Literal["gilbert-elliott"]


AnyLoss = Annotated[RandomLoss | GilbertElliottLoss, BY_KIND]


def loss_spec(loss: RandomLoss | LossBursts | None) -> core.LossModel:
    """Losses as the spec holds them."""
    match loss:
        case None:
            return core.LossModelNone()
        case RandomLoss():
            return core.LossModelRandom(probability=loss.ratio)
        case LossBursts():
            return core.LossModelGilbertElliott(
                to_bad=loss.to_bad, to_good=loss.to_good, loss_good=loss.loss_good, loss_bad=loss.loss_bad
            )


class Link(Model):
    """Both directions of a link."""

    rate: PositiveRate
    """Line rate."""
    delay: Span = Span(0)
    """Propagation delay."""
    framing: Framing = "ethernet"
    """What a frame occupies beyond its size: `ethernet` 20 B (preamble and gap), `none` nothing."""
    loss: AnyLoss | None = None
    """Frames lost on the way, independently in each direction. Absent: none."""


class Switch(Model):
    """What all switches have in common."""

    latency: Span = Span(0)
    """Time between the end of reception and the earliest start of transmission."""
    memory: AnyMemory | None = None
    """Memory that the ports share. Absent: each port has its own."""


class NodeGroup(Model):
    """One node, or `count` nodes named `NAME-0`, `NAME-1`, ..."""

    kind: Literal["host", "switch"]
    """`host`: sends and receives; `switch`: forwards."""
    count: Count | None = None
    """Number of nodes. Absent: one node with the name of the group."""
    latency: Span | None = None
    """Of a switch. Absent: `network.switch.latency`."""
    response: Span | None = None
    """Of a host: time until it acts on a control frame, be it PAUSE or a notification."""


class LinkGroup(Model):
    """Links between two sets of nodes."""

    join: tuple[Selector, Selector]
    """The nodes on both sides."""
    pair: Literal["all", "by-index"] = "all"
    """`all`: each of one side with each of the other; `by-index`: the first with the first, and so on."""
    rate: PositiveRate | None = None
    """Absent: `network.link.rate`."""
    delay: Span | None = None
    """Absent: `network.link.delay`."""
    framing: Framing | None = None
    """Absent: `network.link.framing`."""
    loss: AnyLoss | None = None
    """Absent: `network.link.loss`."""


class Graph(Model):
    """Nodes and links, one by one or in groups."""

    kind: Literal["graph"]
    link: Link | None = None
    """Default properties of links; a group can override them."""
    switch: Switch = Switch()
    """Default properties of switches; a group can override them."""
    nodes: Named[NodeGroup]
    """Groups of nodes by name."""
    links: Named[LinkGroup]
    """Groups of links by name."""


class Star(Model):
    """`hosts` hosts `host-0`, `host-1`, ... around `switch-0`."""

    kind: Literal["star"]
    hosts: Count
    """Number of hosts."""
    link: Link
    """Every link."""
    switch: Switch = Switch()
    """The switch."""


class Dumbbell(Model):
    """Hosts `left-0`, ... behind the switch `left`, hosts `right-0`, ... behind the switch `right`."""

    kind: Literal["dumbbell"]
    pairs: Count
    """Hosts on each side."""
    access: Link
    """Links between hosts and switches."""
    bottleneck: Link
    """The link between the two switches."""
    switch: Switch = Switch()
    """Both switches."""


class FatTree(Model):
    """The k-ary fat tree of three levels: k^3/4 hosts `host-*`, switches `edge-*`, `agg-*`, `core-*`.

    Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008.
    """

    kind: Literal["fat-tree"]
    k: Count
    """Ports of each switch; even."""
    link: Link
    """Every link."""
    switch: Switch = Switch()
    """Every switch."""


class Xgft(Model):
    """The extended generalised fat tree: hosts `host-*`, switches `level1-*`, `level2-*`, ... above them.

    With one level and one parent it is a star; with `children: [k/2, k/2, k]` and `parents: [1, k/2, k/2]`
    the k-ary fat tree.

    Öhring, Ibel, Das, Kumar, "On generalized fat trees", IPPS 1995: XGFT(h; m_1 ... m_h; w_1 ... w_h).
    """

    kind: Literal["xgft"]
    children: Levels = Field(examples=[[4, 8]])
    """m: nodes below each switch, from the lowest level of switches up. Their product: all hosts."""
    parents: Levels = Field(examples=[[1, 4]])
    """w: nodes above each node, from the hosts up; as many numbers as `children`."""
    routing: Literal["destination-hash", "flow-hash", "d-mod-k"] = "d-mod-k"
    """Which of several shortest paths a flow takes: by a hash of its destination, by a hash of sender and
    destination (per-flow ECMP), or by the digits of the destination's number, so that neighbouring
    destinations take different paths (Zahavi et al. 2010)."""
    link: Link
    """Every link."""
    switch: Switch = Switch()
    """Every switch."""


class Path(Model):
    """Two hosts and a link between them."""

    kind: Literal["path"]
    ends: tuple[Name, Name]
    """Names of the two hosts."""
    link: Link
    """The link between them."""


AnyNetwork = Annotated[Graph | Star | Dumbbell | FatTree | Xgft | Path, BY_KIND]


def shared_memory(network: AnyNetwork | None) -> SharedMemory | None:
    """What the ports of a switch share; None where each has a queue of its own."""
    return None if network is None or isinstance(network, Path) else network.switch.memory


class InputOverrun(Model):
    """Frames lost before a queue after it was full, as when the receive ring of a switch input overruns: an
    overflow starts a run of losses that the counters of the port do not see."""

    inputs: PortSelector = Field(examples=["left-0->left"])
    """The ports that lead to the inputs that lose frames; all together."""
    frames: Number = Field(examples=[360])
    """Mean length of a run in frames, at least 1; geometric."""
    chance: PositiveFraction = 1.0
    """Probability that a frame that the queue has no room for starts a run."""


class DropTail(Model):
    """First in, first out; a frame that would exceed the limit is dropped on arrival."""

    kind: Literal["drop-tail"]
    at: PortSelector
    """Ports that have this queue. A later rule replaces an earlier one."""
    limit: Limit = Field(examples=["150 kB", "300 frames", "unlimited"])
    """What may wait, the frame in transmission excluded."""
    marking: Marking | None = None
    """ECN marks on waiting frames, at ports of switches. Absent: none."""
    overrun: InputOverrun | None = None
    """Frames lost before the queue after it was full, at ports of switches. Absent: none."""


AnyQueue = Annotated[DropTail | AnyManaged | ClassQueues, BY_KIND]


def marking_of(queue: DropTail | Managed | ClassQueues) -> Marking | None:
    """The marks of a queue by its length."""
    return queue.marking if isinstance(queue, DropTail) else None


def discipline_spec(
    queue: DropTail | AnyManaged | ClassQueues, port_ids: Callable[[Sequence[str]], list[int]], *at: str
) -> core.Discipline:
    """What a queue does, as the spec holds it; it stands `at` that place in the scenario. `port_ids` finds
    ports by their names."""
    if isinstance(queue, ClassQueues):
        return classes_spec(queue, *at)
    limit = limit_spec(queue.limit)
    if not isinstance(queue, DropTail):
        return core.DisciplineManaged(limit=limit, aqm=aqm_spec(queue, *at))
    marking, overrun = queue.marking, queue.overrun
    return core.DisciplineDropTail(
        limit=limit,
        marking=None if marking is None else marking_spec(marking, *at, "marking"),
        overrun=None
        if overrun is None
        else core.Overrun(
            inputs=port_ids(overrun.inputs),
            probability=overrun.chance,
            mean_frames=overrun.frames,
            origin=At(*at, "overrun", probability="chance", mean_frames="frames"),
        ),
    )
