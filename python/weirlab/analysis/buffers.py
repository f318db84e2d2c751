"""What inputs of a buffer need so that lossless classes lose nothing, next to the headroom given.

The formula is that of `weir_core::ethernet::headroom`: two longest frames, the frame that asks to stop, the
cable both ways and the response of the sender (IEEE 802.1Qbb), and one longest frame, as frames count when
they are whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from weirlab import _core
from weirlab.scenario import Scenario
from weirlab.scenario.resolve import translated
from weirlab.scenario.resolve.buffers import longest_frame_of
from weirlab.spec import origin_of
from weirlab.units import Size


def short_buffers(scenario: Scenario) -> Iterator[str]:
    """A sentence for each lossless pool whose headroom is too small, and for each longest frame that is
    exceeded."""
    if not scenario.buffers or scenario.network is None or scenario.run.duration is None:
        return
    resolved = translated(scenario)
    spec, needs = resolved.spec, dict(_core.headroom(resolved.spec_json))
    longest = longest_frame_of(spec.traffic) or 0
    ports = {name: i for i, name in enumerate(resolved.ports)}
    for buffer in spec.buffers:
        how = buffer.flow_control
        if how is None:
            continue
        name = str(origin_of(buffer, "")[-1])
        nodes = {resolved.nodes[node] for node in buffer.nodes}
        inputs = [(needs[ports[port]], port) for port in resolved.ports if _target(port) in nodes]
        if not inputs:
            continue
        need, port = max(inputs)
        for pool in buffer.ingress:
            given = None if pool.lossless is None else pool.lossless.headroom_bytes
            if given is not None and given < need:
                lacking = sum(needed > given for needed, _ in inputs)
                others = "" if lacking == 1 else f" (and {lacking - 1} more)"
                yield (
                    f"buffers.{name}.ingress.{origin_of(pool, '')[-1]}: {port}{others} may need "
                    f"{Size(need)} of headroom for each class and has {Size(given)}: "
                    f"{Size(need - given)} are missing, and frames may be lost"
                )
        if how.longest_bytes < longest:
            yield (
                f"buffers.{name}.flow_control: headroom is for frames of up to {Size(how.longest_bytes)}, "
                f"and the traffic has frames of {Size(longest)}: frames may be lost"
            )


def _target(port: str) -> str:
    """The node that a port leads to; links that join the same nodes are numbered."""
    return port.split("->")[1].split("#")[0]
