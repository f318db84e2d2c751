"""What is wrong with congestion control beyond single fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirlab.scenario.bcn import Bcn
from weirlab.scenario.layout import Layout
from weirlab.scenario.qcn import Dcqcn, Qcn
from weirlab.scenario.resolve_control import unit_of
from weirlab.scenario.selecting import Fault, Where, nodes_amiss, ports_amiss
from weirlab.units import Frames, Size

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

__all__ = ["check_control"]

_SCHEMES = ("bcn", "qcn", "dcqcn")


def check_control(scenario: Scenario, layout: Layout) -> Iterator[Fault]:
    """Faults of `control`."""
    control = scenario.control
    if control is None:
        return
    present = [scheme for scheme in _SCHEMES if getattr(control, scheme) is not None]
    for scheme in present[1:]:
        yield ("control", scheme), f"stands beside '{present[0]}'; senders obey one scheme"
    for scheme in present:
        yield from _scheme(getattr(control, scheme), layout, ("control", scheme))
    for name, rule in control.pause.items():
        path: Where = ("control", "pause", name)
        yield from nodes_amiss(layout, rule.at, (*path, "at"), hosts=False)
        if rule.xon > rule.xoff:
            yield (*path, "xon"), f"is above 'xoff' ({rule.xoff})"
        if rule.quanta is not None and not 0 < rule.quanta < 2**16:
            yield (*path, "quanta"), f"lie between 1 and 65535 (got {rule.quanta})"
    for name, entry in control.responses.items():
        yield from nodes_amiss(layout, entry.at, ("control", "responses", name, "at"))


def _scheme(scheme: Bcn | Qcn | Dcqcn, layout: Layout, path: Where) -> Iterator[Fault]:
    yield from nodes_amiss(layout, scheme.reaction_point.at, (*path, "reaction_point", "at"), hosts=True)
    if isinstance(scheme, Dcqcn):
        yield from ports_amiss(layout, scheme.marking.at, (*path, "marking", "at"))
        if scheme.marking.k_min > scheme.marking.k_max:
            yield (*path, "marking", "k_min"), f"is above 'k_max' ({scheme.marking.k_max})"
        return
    at: Where = (*path, "congestion_point")
    sampled = scheme.congestion_point
    yield from ports_amiss(layout, sampled.at, (*at, "at"))
    yield from _in_frames(sampled.q_eq, sampled.frame_size, (*at, "q_eq"))
    if isinstance(scheme, Qcn):
        return
    point = scheme.congestion_point
    if scheme.severe is not None:
        yield from _in_frames(scheme.severe.above, point.frame_size, (*path, "severe", "above"))
    if unit_of(point) is None:
        yield at, "Fb in which unit? write 'frame_size: 1500 B', or a 'unit' such as 64 B"


def _in_frames(amount: Size | Frames, frame_size: Size | None, path: Where) -> Iterator[Fault]:
    if isinstance(amount, Frames) and frame_size is None:
        yield path, "frames of which size? write 'frame_size' beside it"
