"""What this machine can do for Weirlab, and what each lack means.

Nothing is changed: what must be tried is tried in a network namespace that is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from weirlab.doctor import clock, kernel, privileges, system, tools
from weirlab.doctor.checks import Check as Check


def examine(*, measure_clock: bool = True) -> list[Check]:
    """Look at everything; takes about two seconds, less without ``measure_clock``."""
    sections: Mapping[str, Callable[[], Iterable[Check]]] = {
        "system": system.checks,
        "privileges": privileges.checks,
        "kernel": kernel.checks,
        "time": partial(clock.checks, measure=measure_clock),
        "tools": tools.checks,
    }
    return [replace(check, section=name) for name, checks in sections.items() for check in checks()]
