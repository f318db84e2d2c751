"""Where PAUSE can stop a network for good: ports that wait for each other in a cycle.

A port a->b is held by PAUSE as long as too much waits in b. It waits there for the ports of b that lead on:

- PAUSE by queues (`control.pause`), or by a shared memory as a whole: for any port of b that traffic passes,
  as the switch holds all its neighbours;
- PAUSE by what came over each input (`scope: input`), and flow control by a buffer (`buffers`): for the
  ports of b that frames pass which came over a->b. With PFC only ways of one class count together.

Ports of switches that wait for each other in a cycle can all be held, and then none of them drains. That is a
necessary condition: how likely it is depends on the load. Pauses that end by themselves end it, too.

Source: IEEE 802.3, annex 31B (PAUSE)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from weirlab import spec as core
from weirlab.analysis.headroom import PortsInUse, data_sent
from weirlab.scenario import Scenario
from weirlab.scenario.file.problems import listed
from weirlab.scenario.network import shared_memory
from weirlab.scenario.network.layout import Layout, layout_of
from weirlab.scenario.resolve import translated

_ANY, _SAME_WAY = "any", "same-way"


def pause_cycles(scenario: Scenario) -> list[str]:
    """A sentence on a shortest cycle of ports that can wait for each other; none where there is no cycle, no
    PAUSE or no time to run. Raises ScenarioError where the scenario is no network."""
    if scenario.network is None or scenario.run.duration is None:
        return []
    memory = shared_memory(scenario.network)
    if scenario.buffers:
        return list(_by_class(scenario))
    if not (scenario.control is not None and scenario.control.pause) and memory is None:
        return []
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    rules = _rules(spec, layout)
    cycle = _shortest(_waits(spec, layout, rules))
    if not cycle:
        return []
    names = [layout.ports[port].name for port in cycle]
    by_queue = bool(spec.control.pause)
    is_any = any(rules[layout.ports[port].target] == _ANY for port in cycle)
    path = "control.pause" if by_queue else "network.switch.memory.pause"
    why = (
        "each leads to a switch that holds all its neighbours while a port of its own is held"
        if is_any
        else "frames that came over one wait for the next"
    )
    remedy = (
        "write 'quanta' without 'refresh', so that pauses end by themselves"
        if by_queue
        else "write 'scope: input'"
        if is_any
        else "lay links so that no ways form a ring"
    )
    return [
        f"{path}: {listed(names, 6)} can wait for each other in a cycle ({why}): once all of them are held "
        f"none is released, and the network stands still; {remedy}"
    ]


def _by_class(scenario: Scenario) -> Iterator[str]:
    """The sentences for classes that buffers keep from being lost."""
    spec = translated(scenario).spec
    layout = layout_of(spec.network)
    switches: dict[int, dict[str, str]] = {}
    for buffer in spec.buffers:
        names = {layout.nodes[node]: _SAME_WAY for node in buffer.nodes}
        for pool in buffer.ingress:
            for number in pool.classes if pool.lossless is not None else ():
                switches.setdefault(number, {}).update(names)
    for number, rules in sorted(switches.items()):
        cycle = _shortest(_waits(spec, layout, rules, number))
        if cycle:
            ports = [layout.ports[port].name for port in cycle]
            yield (
                f"buffers: {listed(ports, 6)} can wait for each other in a cycle (frames of class {number} "
                "that came over one wait for the next): once all of them are held none is released, and "
                "the class stands still; lay links so that no ways form a ring, or give the class no "
                "'lossless' pool"
            )


def _rules(spec: core.Spec, layout: Layout) -> dict[str, str]:
    """How each switch that sends PAUSE holds its neighbours, where pauses do not end by themselves."""
    rules = {
        layout.nodes[node]: _ANY
        for rule in spec.control.pause
        if rule.quanta is None or rule.refresh_ps is not None
        for node in rule.nodes
    }
    for memory in spec.switching.memories:
        pause = memory.pause
        if pause is not None and (pause.quanta is None or pause.refresh_ps is not None):
            how = _ANY if pause.scope == "switch" else _SAME_WAY
            rules |= {layout.nodes[node]: how for node in memory.nodes}
    return rules


def _waits(
    spec: core.Spec, layout: Layout, rules: Mapping[str, str], number: int | None = None
) -> dict[int, set[int]]:
    """For each port between switches that send PAUSE the ports that it can wait for; of frames of the class
    `number`, if it is given."""
    between = [p for p, port in enumerate(layout.ports) if {port.source, port.target} <= rules.keys()]
    # In generated networks shortest paths go up and then down: frames cannot wait for each other in a cycle.
    by_way = _SAME_WAY in rules.values() and isinstance(spec.network, core.NetworkGraph)
    if not between or not (by_way or _ANY in rules.values()):
        return {}
    used = PortsInUse(spec, layout, data_sent(spec, number))
    passed = [p for p in between if p in used]
    leaving: dict[str, list[int]] = {}
    for p in passed:
        leaving.setdefault(layout.ports[p].source, []).append(p)
    waits = {p: set[int]() for p in passed}
    for p in passed:
        target = layout.ports[p].target
        if rules[target] == _ANY:
            waits[p].update(leaving.get(target, ()))
    if by_way:
        for before, after in _consecutive(passed, leaving, used, layout):
            if rules[layout.ports[before].target] == _SAME_WAY:
                waits[before].add(after)
    return waits


def _consecutive(
    passed: Iterable[int], leaving: Mapping[str, list[int]], used: PortsInUse, layout: Layout
) -> Iterator[tuple[int, int]]:
    """Ports that frames to one receiver pass one after the other."""
    of_port = {p: used.receivers(p) for p in passed}
    for before, receivers in of_port.items():
        source = layout.ports[before].source
        for after in leaving.get(layout.ports[before].target, ()):
            if layout.ports[after].target != source and receivers & of_port[after]:
                yield before, after


def _shortest(waits: Mapping[int, set[int]]) -> list[int]:
    """A shortest cycle, if there is one."""
    best: list[int] = []
    for start in _in_cycles(waits):
        came: dict[int, int] = {}
        queue = deque([start])
        while queue and start not in came:
            here = queue.popleft()
            for after in waits.get(here, ()):
                if after not in came:
                    came[after] = here
                    queue.append(after)
        if start in came:
            cycle = [came[start]]
            while cycle[-1] != start:
                cycle.append(came[cycle[-1]])
            if not best or len(cycle) < len(best):
                best = cycle[::-1]
        if len(best) == 2:
            break
    return best


def _in_cycles(waits: Mapping[int, set[int]]) -> list[int]:
    """The ports that wait for others and that others wait for, again and again."""
    kept = set(waits)
    while True:
        awaited = {after for before in kept for after in waits[before] if after in kept}
        less = {port for port in kept & awaited if waits[port] & kept}
        if less == kept:
            return sorted(kept)
        kept = less
