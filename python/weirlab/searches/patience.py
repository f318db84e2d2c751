"""How long a search may take where nobody says how long: a device that loses ever more, say, has no rate that
could be found, and no rule of an algorithm ends the search for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.goals import DEFAULT_WIDTH

PATIENCE = 2.0
"""How many times as long as binary searches for each of its goals."""


def patience_s(goals: Sequence[SearchGoal], loads: LoadRange, wait_s: float) -> float:
    """`PATIENCE` times the time of a binary search for each goal, which halves the whole range until its
    lowest part is as narrow as the goal's width, and decides each load by trials of the duration sum [s].

    Args:
        wait_s: What a trial takes beyond its duration.
    """
    binary_s = 0.0
    for goal in goals:
        widths = (loads.max_fps / loads.min_fps - 1.0) / (goal.width or DEFAULT_WIDTH)
        loads_tried = 1 + math.ceil(math.log2(max(1.0, widths)))
        sum_s = max(goal.duration_s, goal.duration_sum_s or 0.0)
        trials = math.ceil(sum_s / goal.duration_s)
        binary_s += loads_tried * trials * (goal.duration_s + wait_s)
    return PATIENCE * binary_s
