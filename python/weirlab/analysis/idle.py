"""Congestion control that is legal and does not act: senders that send nothing, queues that no traffic comes
to, rates that have no room to fall, limiters that go at once, pauses that end before they are repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weirlab import spec as core
from weirlab.analysis.headroom import PortsInUse, everything_sent, longest_data
from weirlab.scenario import Scenario
from weirlab.scenario.control import Control
from weirlab.scenario.control.bcn import Bcn
from weirlab.scenario.control.dcqcn import Dcqcn
from weirlab.scenario.control.qcn import Qcn
from weirlab.scenario.network.layout import Layout, layout_of
from weirlab.scenario.resolve import translated
from weirlab.units import Rate, Span

_QUANTUM_BYTES = 64
"""Source: IEEE 802.3, annex 31B: 512 bit times"""


@dataclass(frozen=True)
class _Resolved:
    """A scenario as the engines get it."""

    control: Control
    spec: core.Spec
    layout: Layout


def idle_control(scenario: Scenario) -> list[str]:
    """A sentence for each part of congestion control that never acts, or not for as long as it is asked to.

    Nothing without a network or a time to run. Raises ScenarioError where the scenario is no network."""
    control = scenario.control
    if control is None or scenario.network is None or scenario.run.duration is None:
        return []
    spec = translated(scenario).spec
    run = _Resolved(control, spec, layout_of(spec.network))
    found = [*_short_pauses(run)]
    for name, scheme in (("bcn", control.bcn), ("qcn", control.qcn), ("dcqcn", control.dcqcn)):
        if scheme is not None:
            found += [f"control.{name}.{fault}" for fault in _of_scheme(scheme, run)]
    return found


def _of_scheme(scheme: Bcn | Qcn | Dcqcn, run: _Resolved) -> Iterator[str]:
    sender, layout = scheme.reaction_point, run.layout
    hosts = set(layout.host_ids(sender.at))
    if not hosts & {source for source, _ in everything_sent(run.spec)}:
        yield "reaction_point.at: none of these hosts sends anything: no rate is ever limited"
    part = "marking" if isinstance(scheme, Dcqcn) else "congestion_point"
    at: Sequence[str] | None = getattr(getattr(scheme, part), "at", None)
    if at is not None:
        used = PortsInUse(run.spec, layout)
        if not any(port in used for port in layout.port_ids(at)):
            yield f"{part}.at: no traffic comes to the queue of any of these ports: nobody is ever notified"
    names = {layout.nodes[host] for host in hosts}
    lines = [port.rate_bps for port in layout.ports if port.source in names]
    if lines and sender.min_rate.bps >= max(lines):
        yield f"reaction_point.min_rate: is the line rate ({Rate(max(lines))}): no rate is ever less"
    if isinstance(scheme, Bcn) and scheme.reaction_point.removal_rate is not None and lines:
        first, last = scheme.reaction_point.initial_rate, scheme.reaction_point.removal_rate
        begins = Rate(min(lines)) if first is None else first
        if last.bps < begins.bps:
            yield (
                f"reaction_point.removal_rate: is below the rate of a new limiter ({begins}): one that its "
                "first decrease leaves above goes with the next increase"
            )


def _short_pauses(run: _Resolved) -> Iterator[str]:
    """Rules of PAUSE whose pauses end before they are repeated, so that neighbours send in between."""
    longest = longest_data(run.spec)
    for name, rule in run.control.pause.items():
        if rule.quanta is None:
            continue
        switches = {run.layout.nodes[node] for node in run.layout.node_ids(rule.at)}
        ports = [port for port in run.layout.ports if port.source in switches]
        if not ports:
            continue
        fastest = max(ports, key=lambda port: port.rate_bps)
        hold = Span(rule.quanta * _QUANTUM_BYTES * 8 * 10**12 // fastest.rate_bps)
        wait = Span(fastest.wire_ps(longest))
        ends = f"control.pause.{name}.quanta: {rule.quanta} quanta end after {hold} on {fastest.name}, "
        if rule.refresh is None:
            yield (
                ends
                + "and are not repeated: neighbours send again while a queue is too long; write 'refresh'"
            )
        elif rule.refresh.ps + wait.ps > hold.ps:
            yield ends + (
                f"and are repeated after 'refresh' ({rule.refresh}) and what is left of a frame in "
                f"transmission (up to {wait}): neighbours send in between"
            )
