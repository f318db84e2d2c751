"""A path between two ends, which real programs use: hops with a transmitter, a delay and losses each way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from weirlab import spec as core
from weirlab.errors import InputError, Problem, ScenarioError
from weirlab.fields.base import BY_KIND, File, Model, Named
from weirlab.fields.values import Count, Flag, Fraction, Limit, Natural, PositiveRate, PositiveSpan
from weirlab.scenario.network import ClassQueues, LossBursts, RandomLoss, limit_spec, loss_spec
from weirlab.scenario.network.aqm import AnyAqm, Managed, aqm_spec
from weirlab.scenario.network.delays import Delays, DelayStep, read_delay_trace
from weirlab.scenario.network.rate_trace import read_rate_trace
from weirlab.scenario.traffic import Constant, OnOff, Poisson
from weirlab.spec import At
from weirlab.units import Rate, Size, Span

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.spec import Where


class Jitter(Model):
    """Random delay beyond the propagation delay."""

    distribution: Literal["uniform", "exponential"] = "uniform"
    """Between nothing and `size`, or exponential with the mean `size`."""
    size: PositiveSpan
    """The most, or the mean."""
    keeps_order: Flag = True
    """Whether a frame waits for those before it. Otherwise it may overtake them."""


class Reorder(Model):
    """Frames that others overtake."""

    share: Fraction
    """Of the frames, at random."""
    later: PositiveSpan
    """By how much such a frame comes later than its turn."""


class CrossTraffic(Model):
    """Other frames that pass the same transmitter and then leave the path."""

    source: Annotated[Constant | Poisson | OnOff, BY_KIND]
    """When they come and how long they are; `rate`, not `load`."""
    lane: Natural = 0
    """Which of several transmitters they pass, counted from 0."""


class RateStep(Model):
    """A rate from some time on."""

    at: Span
    """Since the start, or since the last repetition."""
    rate: Rate
    """From then on. 0 holds up what waits."""


class Line(Model):
    """One direction of a hop. Frames meet loss, duplication, the transmitter with its queue, delay, jitter
    and reordering, in this order.
    """

    rate: PositiveRate | None = None
    """Rate of the transmitter. Absent, and without `steps` and `trace`: transmission takes no time, and
    nothing waits."""
    steps: tuple[RateStep, ...] = ()
    """A rate that changes; the first step is at 0 s. Instead of `rate`."""
    repeat: PositiveSpan | None = None
    """Time after which the steps start again. Absent: the last rate stays."""
    trace: File | None = None
    """A file of times in ms at which 1504 B can leave (Mahimahi's format), repeated forever; relative to the
    scenario file. Instead of `rate`.
    """
    trace_bin: PositiveSpan = Span.from_s(0.02)
    """Time over which the rate of a trace is computed."""
    lanes: Count = 1
    """Transmitters of this rate side by side, each with its queue; a flow stays with one."""
    buffer: Limit = Field(default="unlimited", examples=["60 kB", "100 frames", "unlimited"])
    """Limit of the queue of a transmitter, without the frame in transmission."""
    queue: AnyAqm | None = None
    """Management that drops or marks before the buffer is full. Absent: none (drop-tail)."""
    framing: Size = Size(0)
    """What a packet occupies beyond its IP length; 38 B for Ethernet with preamble and gap."""
    delay: Span = Span(0)
    """Propagation delay."""
    delays: Delays | None = None
    """A propagation delay that changes, instead of `delay`."""
    jitter: Jitter | None = None
    """Random addition to the delay."""
    loss: Fraction = 0.0
    """Share of the frames that are lost independently, before the queue."""
    bursts: LossBursts | None = None
    """Losses in bursts. Instead of `loss`."""
    duplicate: Fraction = 0.0
    """Share of the frames that come twice."""
    reorder: Reorder | None = None
    """Frames that come later than their turn."""
    cross: Named[CrossTraffic] = Named()
    """Traffic of others, by name."""

    def delay_steps(self) -> tuple[DelayStep, ...]:
        """The propagation delay from the start on, and its changes; a trace must have been read."""
        steps = () if self.delays is None else self.delays.steps
        return steps or (DelayStep(at=Span(0), delay=self.delay),)

    @property
    def least_delay(self) -> Span:
        """The propagation delay, or the least that it becomes."""
        return min(step.delay for step in self.delay_steps())


class Hop(Model):
    """A part of a path, with a router at each inner end."""

    forward: Line
    """From `near` to `far`."""
    backward: Line | None = None
    """From `far` to `near`. Absent: as forward."""
    strips_window_scale: Flag = False
    """Whether it takes the window scale out of TCP connections, as some firewalls do: no window then exceeds
    64 KiB."""


ETHERNET_BYTES = 18
"""Header and FCS of an Ethernet frame. Source: IEEE 802.3, clause 3.1.1."""


@dataclass(frozen=True)
class PathPlan:
    """A path between two ends."""

    hops: Mapping[str, Hop]
    """By name, from the near end to the far one."""
    mtu_bytes: int
    """Longest IP packet."""
    joined: bool = True
    """Whether packets of a connection may be moved joined, several at once."""
    hosts: Mapping[str, Hop] = field(default_factory=dict)
    """Hosts behind the near end, by name, each over a hop from it to the near end."""
    ipv6: bool = False
    """Whether its ends have addresses of IPv6, too, and campaigns send this."""

    @property
    def header_bytes(self) -> int:
        """Of IP and TCP without options.

        Source: RFC 9293, section 3.1; RFC 791, section 3.1; RFC 8200, section 3
        """
        return 60 if self.ipv6 else 40


def path_plan(scenario: Scenario) -> PathPlan | None:
    """The path that a scenario has emulated or simulated: its `hops`, or with `path: emulator` its network of
    two hosts. Traces are read.

    A link's frames are Ethernet frames, and a path's are IP packets: with `framing: ethernet` a packet
    occupies what its frame would; the buffer counts the packets' bytes. None when it has none emulated.
    Raises ScenarioError for traces that cannot be read.
    """
    from weirlab.scenario.network import FRAMING_BYTES, Path
    from weirlab.scenario.testbeds import Netns, Sim

    bed = scenario.testbed
    if not isinstance(bed, Netns | Sim) or not bed.on_path:
        return None
    joined, ipv6 = not isinstance(bed, Netns) or bed.joined, bed.ip == "ipv6"
    if bed.hops:
        beside = FilePath(scenario.file).parent if scenario.file else FilePath()
        problems: list[Problem] = []

        def reported(section: str, hops: Mapping[str, Hop]) -> dict[str, Hop]:
            return {
                name: _with_traces(hop, beside, partial(_refused, scenario, problems, section, name))
                for name, hop in hops.items()
            }

        hops = reported("hops", bed.hops)
        behind = reported("hosts", bed.hosts if isinstance(bed, Netns) else {})
        if problems:
            raise ScenarioError(problems)
        return PathPlan(hops, bed.mtu.bytes, joined, behind, ipv6)
    if not isinstance(scenario.network, Path):
        return None
    link = scenario.network.link
    near, far = scenario.network.ends
    there, back = (
        Line(
            rate=link.rate,
            delay=link.delay,
            framing=Size(FRAMING_BYTES[link.framing] + ETHERNET_BYTES if link.framing == "ethernet" else 0),
            loss=link.loss.ratio if isinstance(link.loss, RandomLoss) else 0.0,
            bursts=link.loss if isinstance(link.loss, LossBursts) else None,
            **_queue(scenario, port),
        )
        for port in (f"{near}->{far}", f"{far}->{near}")
    )
    return PathPlan({"link": Hop(forward=there, backward=back)}, bed.mtu.bytes, joined, ipv6=ipv6)


def _refused(
    scenario: Scenario, problems: list[Problem], section: str, hop: str, where: Where, fault: InputError
) -> None:
    """Keeps what is wrong with a trace, with the place that names it."""
    problems.append(scenario.problem_at(("testbed", section, hop, *where), str(fault)))


def _with_traces(hop: Hop, beside: FilePath, refused: Callable[[Where, InputError], None]) -> Hop:
    """The hop with steps in the place of traces; those that cannot be read are refused and stay."""

    def read(direction: str, line: Line) -> Line:
        if line.delays is not None and line.delays.trace is not None:
            try:
                found = read_delay_trace(beside / line.delays.trace)
            except InputError as error:
                refused((direction, "delays", "trace"), error)
                return line
            delays = line.delays.model_copy(update={"trace": None, "steps": found})
            line = line.model_copy(update={"delays": delays})
        if line.trace is None:
            return line
        try:
            steps, period = read_rate_trace(beside / line.trace, line.trace_bin.ps)
        except InputError as error:
            refused((direction, "trace"), error)
            return line
        taken = tuple(RateStep(at=Span(at), rate=Rate(rate)) for at, rate in steps)
        return line.model_copy(update={"trace": None, "steps": taken, "repeat": Span(period)})

    backward = None if hop.backward is None else read("backward", hop.backward)
    return hop.model_copy(update={"forward": read("forward", hop.forward), "backward": backward})


def _queue(scenario: Scenario, port: str) -> dict[str, object]:
    """What waits at a port of a network of two hosts, as fields of a line; the last rule that names it
    decides."""
    from weirlab.scenario.network.layout import layout_of, plan_network

    assert scenario.network is not None
    layout = layout_of(plan_network(scenario.network).spec)
    names = [known.name for known in layout.ports]
    fields: dict[str, object] = {"buffer": "unlimited"}
    for queue in scenario.queues.values():
        if names.index(port) in layout.port_ids(queue.at):
            if isinstance(queue, ClassQueues):
                continue
            aqm = queue.model_dump(exclude={"at", "limit"}) if isinstance(queue, Managed) else None
            fields = {"buffer": queue.limit, "queue": aqm}
    return fields


def line_spec(line: Line) -> core.LineSpec:
    """A direction as the compiled core takes it. Its parts come from places below the line.

    Raises EntryFault for cross traffic without a rate of its own.
    """
    start, *changes = line.delay_steps()
    repeat = None if line.delays is None else line.delays.repeat
    reorder = line.reorder
    return core.LineSpec(
        loss=loss_spec(line.bursts or (RandomLoss(kind="random", ratio=line.loss) if line.loss else None)),
        duplicate=line.duplicate,
        rate=_rate(line),
        lanes=line.lanes,
        framing_bytes=line.framing.bytes,
        limit=limit_spec(line.buffer),
        aqm=None if line.queue is None else aqm_spec(line.queue, "queue"),
        cross=[spec for name, cross in line.cross.items() for spec in _cross(name, cross)],
        delay_ps=start.delay.ps,
        delays=core.DelaySteps(
            steps=[(step.at.ps, step.delay.ps) for step in changes],
            period_ps=repeat.ps if repeat is not None and changes else None,
            origin=At(steps=("delays", "steps"), period_ps=("delays", "repeat")),
        ),
        jitter=_jitter(line.jitter),
        reorder=None
        if reorder is None
        else core.ReorderSpec(probability=reorder.share, later_ps=reorder.later.ps),
        origin=At(loss="bursts"),
    )


def _rate(line: Line) -> core.RateSpec:
    if line.steps:
        return core.RateSpecSteps(
            steps=[(step.at.ps, step.rate.bps) for step in line.steps],
            period_ps=None if line.repeat is None else line.repeat.ps,
            origin=At(period_ps="repeat"),
        )
    return core.RateSpecUnlimited() if line.rate is None else core.RateSpecConstant(rate_bps=line.rate.bps)


def _jitter(jitter: Jitter | None) -> core.JitterSpec:
    if jitter is None:
        return core.JitterSpecNone()
    if jitter.distribution == "uniform":
        return core.JitterSpecUniform(most_ps=jitter.size.ps, keeps_order=jitter.keeps_order)
    return core.JitterSpecExponential(mean_ps=jitter.size.ps, keeps_order=jitter.keeps_order)


def _cross(name: str, cross: CrossTraffic) -> list[core.CrossSpec]:
    """One source, or none where the rate is 0."""
    from weirlab.scenario.traffic.flows import departures, sizes_spec

    when = departures(cross.source, None)
    if when is None:
        return []
    size, at = sizes_spec(cross.source), At("cross", name)
    return [core.CrossSpec(departures=when, frame_size=size, lane=cross.lane, origin=at)]
