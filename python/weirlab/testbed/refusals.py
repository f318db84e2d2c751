"""What a testbed that knows only loads must refuse of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirlab.errors import Problem

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.scenario.traffic import Departing, Traffic


COMMAND, DEVICE = "a command", "a simulated device"
"""What messages call these testbeds."""

LEAST_FRAME_BYTES, MOST_FRAME_BYTES = 64, 16_384
"""Ethernet frames with FCS: the least that IEEE 802.3 allows, and the longest jumbo frames that devices and
testers take (from memory: the standard itself ends at 2000 B)."""

Refusal = tuple[tuple[str, ...], str]


def only_the_load(scenario: Scenario, what: str) -> list[Problem]:
    """Every part of ``scenario`` that a testbed cannot honour which receives loads, durations and frame sizes
    and nothing else. ``what`` is its name in the messages."""
    return [scenario.problem_at(path, message) for path, message in _refusals(scenario, what)]


def _refusals(scenario: Scenario, what: str) -> Iterator[Refusal]:
    for section, why in (("control", "has no congestion points"), ("campaign", "is measured by a search")):
        if getattr(scenario, section) is not None:
            yield (section,), f"{what} {why}; leave this out"
    if scenario.search is None:
        yield ("testbed",), f"{what} is measured by a search; write 'search', or a network to simulate"
        return
    measured = scenario.search.vary.split(".")[1]
    for name, traffic in scenario.traffic.items():
        if name == measured:
            for path, message in _of_load(traffic, what):
                yield ("traffic", name, *path), message
        else:
            yield (
                ("traffic", name),
                f"{what} carries no other traffic than that of the search; leave this out",
            )


def _of_load(traffic: Traffic, what: str) -> Iterator[Refusal]:
    from weirlab.scenario.traffic import Constant, Departing, Tcp

    if isinstance(traffic.source, Departing):
        yield from _of_size(traffic.source)
    if not isinstance(traffic.source, Constant):
        yield ("source", "kind"), f"{what} is offered a constant load; write 'kind: constant'"
    if isinstance(traffic.transport, Tcp):
        yield (
            ("transport",),
            f"{what} is offered a load that does not react to loss; write 'kind: raw' or 'udp'",
        )
    if traffic.start.ps:
        yield ("start",), "each trial sends for its whole duration; leave this out"
    if traffic.stop is not None:
        yield ("stop",), "each trial sends for its whole duration; leave this out"
    if traffic.timing is not None:
        yield ("timing",), f"{what} does not use a sender's timers; leave this out"


def _of_size(source: Departing) -> Iterator[Refusal]:
    """Frames that no Ethernet device forwards."""
    from weirlab.scenario.traffic.flows import frame_sizes

    for size, _ in frame_sizes(source):
        if not LEAST_FRAME_BYTES <= size <= MOST_FRAME_BYTES:
            field = next(
                name for name in ("payload", "mix", "frame_size") if getattr(source, name) is not None
            )
            yield (
                ("source", field),
                f"Ethernet frames have {LEAST_FRAME_BYTES} to {MOST_FRAME_BYTES} B with FCS (got {size} B)",
            )
            return
