"""Search goals from what a scenario or a preset asks of a load."""

from __future__ import annotations

from weirlab.errors import InputError
from weirlab.scenario.plan.presets import PRESETS, Terms
from weirlab.searches.base import SearchGoal

DEFAULT_WIDTH = 0.005
"""Final relative width where a goal names none. Source: CSIT MDR, section 2.8.2.1."""


def goal_of(
    terms: Terms, *, name: str, width: float | None, initial_duration_s: float | None = None
) -> SearchGoal:
    """The goal that asks for these terms."""
    return SearchGoal(
        name=name,
        loss_ratio=terms.loss,
        width=width,
        duration_s=terms.duration.s,
        exceed_ratio=terms.exceed,
        duration_sum_s=None if terms.duration_sum is None else terms.duration_sum.s,
        initial_duration_s=initial_duration_s,
    )


def preset(name: str, *, width: float = DEFAULT_WIDTH, label: str | None = None) -> SearchGoal:
    """The goal of that name: ``rfc2544``, ``tst009``, ``csit-ndr`` or ``csit-pdr``.

    Args:
        label: What results call it; None: the same name.
    """
    if name not in PRESETS:
        raise InputError(f"no goal is called {name!r}; there are {', '.join(PRESETS)}")
    return goal_of(PRESETS[name], name=label or name, width=width)
