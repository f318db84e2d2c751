"""Goals of a search that were hardly meant so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirlab.scenario import Scenario

_LENIENT = 0.1
"""Share of lost frames from which a percent sign may be missing."""


def lenient_goals(scenario: Scenario) -> list[str]:
    """Goals that allow much loss, with how much that is."""
    goals = {} if scenario.search is None else scenario.search.goals
    return [
        f"search.goals.{name}.loss: allows {loss:g} % of the frames to be lost; a number without a sign is a "
        f"share of 1: write '{loss / 100:g} %' if that is meant"
        for name, goal in goals.items()
        if (loss := 100.0 * float(goal.loss or 0.0)) >= 100.0 * _LENIENT
    ]
