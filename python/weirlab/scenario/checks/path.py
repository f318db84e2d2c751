"""What is wrong with an emulated path beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from weirlab import _core
from weirlab.scenario.file.problems import fields_at
from weirlab.scenario.network import Path
from weirlab.scenario.network.path import Hop, Line, line_spec
from weirlab.scenario.network.selecting import EntryFault, Fault
from weirlab.scenario.testbeds import Netns, Sim
from weirlab.spec import Where, origin_of
from weirlab.units import Rate

if TYPE_CHECKING:
    from weirlab.scenario import Scenario


MAX_HOPS = 100
"""Each hop costs two devices and a namespace."""


def check_emulated(scenario: Scenario, bed: Netns | Sim) -> Iterator[Fault]:
    """Faults of a scenario whose path is emulated, or simulated for a campaign."""
    at: Where = ("testbed",)
    if isinstance(bed, Sim):
        yield from _simulated(scenario, bed, at)
    if not 68 <= bed.mtu.bytes <= 65535:
        yield (*at, "mtu"), f"packets of 68 B to 65535 B (got {bed.mtu})"
    if len(bed.hops) > MAX_HOPS:
        yield (*at, "hops"), f"at most {MAX_HOPS} hops (got {len(bed.hops)})"
    yield from _lines(bed.hops, (*at, "hops"))
    if isinstance(bed, Netns):
        yield from _lines(bed.hosts, (*at, "hosts"))
        yield from _hosts(bed, at)
    if scenario.search is not None:
        yield ("search",), "an emulated path is for real programs, and not searched; leave this out"
    if bed.hops:
        sections = ("network", "queues", "control", "record", "measure")
        given = [section for section in sections if getattr(scenario, section)]
        yield from (((section,), "a path of 'hops' has none; leave this out") for section in given)
    elif not isinstance(scenario.network, Path):
        yield (
            (*at, "path"),
            "what is emulated is two hosts and a link: write 'network: {kind: path, ...}', or 'hops'",
        )


def _lines(hops: Mapping[str, Hop], at: Where) -> Iterator[Fault]:
    for name, hop in hops.items():
        for direction, line in (("forward", hop.forward), ("backward", hop.backward)):
            if line is not None:
                yield from _line(line, (*at, name, direction))


def _simulated(scenario: Scenario, bed: Sim, at: Where) -> Iterator[Fault]:
    if scenario.campaign is None:
        yield ("campaign",), "is missing: what loads the path, and for how long ('weir bulk')"
    if bed.path is not None and bed.hops:
        yield (*at, "path"), "cannot be combined with 'hops'; write one of them"
    if not 0.1 <= bed.window_factor <= 10:
        yield (*at, "window_factor"), f"a factor from 0.1 to 10 (got {bed.window_factor:g})"


def _hosts(bed: Netns, at: Where) -> Iterator[Fault]:
    if bed.hosts and not bed.hops:
        yield (*at, "hosts"), "are behind the near end of 'hops'; write these"
    if len(bed.hosts) > MAX_HOPS:
        yield (*at, "hosts"), f"at most {MAX_HOPS} hosts (got {len(bed.hosts)})"
    for name in {"sender", "receiver", *bed.hops} & set(bed.hosts):
        yield (*at, "hosts", name), "is the name of an end or of a hop already; take another one"


def _line(line: Line, at: Where) -> Iterator[Fault]:
    if line.trace is not None and (line.steps or line.rate is not None):
        yield (*at, "trace"), "cannot be combined with 'rate' or 'steps'; a transmitter has one of them"
    if line.steps and line.rate is not None:
        yield (*at, "steps"), "cannot be combined with 'rate'; a transmitter has one of them"
    if line.repeat is not None and not line.steps:
        yield (*at, "repeat"), "of what? write 'steps'"
    yield from _delays(line, at)
    if line.bursts is not None and line.loss:
        yield (*at, "bursts"), "cannot be combined with 'loss'; a line has one of them"
    fast = line.rate is None and not line.steps and line.trace is None
    for word in ("lanes", "buffer", "queue", "cross", "framing"):
        if fast and not line.has_default(word):
            yield (*at, word), "needs a transmitter: write 'rate'"
    if line.delays is not None and line.delays.trace is not None:
        line = line.model_copy(update={"delays": None})  # what it holds is judged when it is read
    if line.trace is not None:  # as well
        line = line.model_copy(update={"rate": Rate(1)})
    try:
        spec = line_spec(line)
    except EntryFault as fault:
        yield (*at, "cross"), str(fault)
        return
    try:
        _core.check_line(spec.json())
    except _core.SpecError as error:
        message, pointer = error.args
        if not (fast and pointer.startswith(("/cross", "/aqm"))):
            yield (*at, *origin_of(spec, pointer, lambda path: fields_at(Line, path))), message


def _delays(line: Line, at: Where) -> Iterator[Fault]:
    delays = line.delays
    if delays is None:
        return
    if line.delay.ps:
        yield (*at, "delays"), "cannot be combined with 'delay'; a line has one of them"
    if delays.trace is not None and delays.steps:
        yield (*at, "delays", "trace"), "cannot be combined with 'steps'; write one of them"
    if delays.trace is None and not delays.steps:
        yield (*at, "delays"), "has neither 'steps' nor 'trace'; write 'delay' for one that stays"
    if delays.steps and delays.steps[0].at.ps:
        message = f"the first delay holds from 0 s on (got {delays.steps[0].at})"
        yield (*at, "delays", "steps", 0, "at"), message
