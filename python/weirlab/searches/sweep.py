"""What a sweep below the bounds has looked at, read from the trials: it sees no band of losses that lies
between two of its loads."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from weirlab.searches.base import FoundRates


class Swept(NamedTuple):
    """The loads below the lowest lower bound, or below the highest load of the sweep where there is none."""

    trials: int
    """Of the sweep, those above the bound that stands among them."""
    duration_s: float
    """Of each."""
    low_fps: float
    high_fps: float
    apart: float
    """The largest distance of two neighboring loads that were measured there in any trial, as a share of the
    upper one, in [0, 1). A band of loads that is wider has at least one of them in it."""


def swept(result: FoundRates) -> Swept | None:
    """What was swept; None where nothing was."""
    sweep = [trial.spec for trial in result.trials if trial.spec.purpose == "sweep"]
    if not sweep:
        return None
    low_fps = min(spec.intended_load_fps for spec in sweep)
    lowers_fps = [goal.lower.load_fps for goal in result.goals if goal.lower is not None]
    high_fps = min(lowers_fps, default=max(spec.intended_load_fps for spec in sweep))
    low_fps = min(low_fps, high_fps)
    loads_fps = sorted(
        {
            trial.spec.intended_load_fps
            for trial in result.trials
            if low_fps <= trial.spec.intended_load_fps <= high_fps
        }
    )
    apart = max((1.0 - below / above for below, above in pairwise(loads_fps)), default=0.0)
    return Swept(len(sweep), sweep[0].duration_s, low_fps, high_fps, apart)
