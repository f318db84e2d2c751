"""What is wrong with buffers of switches beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirlab.scenario.network.layout import Layout
from weirlab.scenario.network.selecting import Fault, nodes_amiss
from weirlab.spec import Where

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario


def check_buffers(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `buffers`."""
    for name, buffer in scenario.buffers.items():
        at: Where = ("buffers", name)
        yield from nodes_amiss(layout, buffer.at, (*at, "at"), hosts=False)
        for side in ("ingress", "egress"):
            for pool_name, pool in getattr(buffer, side).items():
                place = (*at, side, pool_name)
                if pool.alpha is not None and pool.limit is not None:
                    yield (*place, "limit"), "cannot be combined with 'alpha': leave one out ('alpha: null')"
                for i, number in enumerate(pool.classes):
                    if number > 7:
                        yield (
                            (*place, "classes", i),
                            f"a traffic class is a number from 0 to 7 (got {number})",
                        )
        lossless = any(pool.lossless is not None for pool in buffer.ingress.values())
        if not lossless and not buffer.has_default("flow_control"):
            yield (*at, "flow_control"), "asks nobody to stop: write 'lossless: {}' in a pool of 'ingress'"
        if not 0 < buffer.flow_control.quanta < 2**16:
            quanta = buffer.flow_control.quanta
            yield (*at, "flow_control", "quanta"), f"a stop is 1 to 65535 quanta long (got {quanta})"
