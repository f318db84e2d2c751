"""`search.strict`: what a search is without a deviation from RFC 9971, and, where a goal is `rfc2544`, with
the waits of RFC 2544."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from weirlab.scenario.network.selecting import Fault
from weirlab.units import Span

if TYPE_CHECKING:
    from weirlab.scenario.plan import Search


_PLAIN = {"early_stop": False, "guard": False, "checks": 0}
"""The algorithm `weir` without what deviates. `mlr` has nothing of it."""
_WAIT = Span.from_s(7)
"""2 s for late frames and 5 s for the device to come to rest. Source: RFC 2544, section 23."""


def strictly(given: object) -> object:
    """The section `search` as it is written, with what `strict` stands for where nothing else is."""
    if not isinstance(given, Mapping) or given.get("strict") not in (True, "true"):
        return given
    trial, algorithm = given.get("trial", {}), given.get("algorithm", {"kind": "weir"})
    filled = dict(given)
    if isinstance(trial, Mapping):
        waits = {"settle": _WAIT} if _has_rfc2544(given.get("goals")) else {}
        filled["trial"] = {"unsent": "lost", **waits, **trial}
    if isinstance(algorithm, Mapping) and algorithm.get("kind") == "weir":
        filled["algorithm"] = {**_PLAIN, **algorithm}
    return filled


def lenient(search: Search) -> Iterator[Fault]:
    """What is written in a strict search that deviates."""
    from weirlab.scenario.plan import Mlr, Weir

    if not search.strict:
        return
    other = "is another one in a search with 'strict: true'; leave it out"
    algorithm = search.algorithm
    if search.trial.unsent != "lost":
        yield ("search", "trial", "unsent"), other
    if _has_rfc2544(search.goals) and search.trial.settle < _WAIT:
        message = f"is shorter than the waits of RFC 2544 ({_WAIT}), which 'strict: true' keeps; leave it out"
        yield ("search", "trial", "settle"), message
    if isinstance(algorithm, Weir):
        settings = {**_PLAIN, "sweep": 0, "steady": Span(0)}
        for name, value in settings.items():
            if getattr(algorithm, name) != value:
                yield ("search", "algorithm", name), other
    elif not isinstance(algorithm, Mlr):
        message = f"'{algorithm.kind}' is not the search of RFC 9971; with 'strict: true' take weir or mlr"
        yield ("search", "algorithm", "kind"), message


def _has_rfc2544(goals: object) -> bool:
    if not isinstance(goals, Mapping):
        return False
    presets = [
        goal.get("preset") if isinstance(goal, Mapping) else getattr(goal, "preset", None)
        for goal in goals.values()
    ]
    return "rfc2544" in presets
