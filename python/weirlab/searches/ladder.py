"""The loads that a search may ask for: a ladder whose rungs are the finest goal's width apart.

All goals share the rungs, so that a trial for one is a trial for all. The ends of the range are rungs too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weirlab.searches.base import LoadRange


class Ladder:
    """Rungs, numbered upwards; rung 0 is the anchor."""

    def __init__(self, loads: LoadRange, widths: Sequence[float], anchor_fps: float) -> None:
        self._loads = loads
        self._anchor_fps = anchor_fps
        # A hair less than the width, so that rounding never makes two neighbours wider than the goal.
        self.step = -math.log1p(-min(widths)) * (1.0 - 1e-10)
        """Distance of two rungs in the natural logarithm of the load."""
        self.bottom = math.floor(math.log(loads.min_fps / anchor_fps) / self.step + 1e-6)
        self.top = math.ceil(math.log(loads.max_fps / anchor_fps) / self.step - 1e-6)

    def load_fps(self, rung: int) -> float:
        """Load of a rung [frames/s]; the same float whenever it is asked for."""
        if rung >= self.top:
            return self._loads.max_fps
        if rung <= self.bottom:
            return self._loads.min_fps
        return self._loads.clip(self._anchor_fps * math.exp(rung * self.step))

    def rungs(self, width: float) -> int:
        """How many rungs a width spans, at least 1."""
        return max(1, math.floor(-math.log1p(-width) / self.step * (1.0 + 1e-9)))

    def rung_of(self, load_fps: float) -> int:
        """The rung nearest to a load."""
        if load_fps >= self._loads.max_fps:
            return self.top
        if load_fps <= self._loads.min_fps:
            return self.bottom
        rung = round(math.log(load_fps / self._anchor_fps) / self.step)
        return min(max(rung, self.bottom), self.top)
