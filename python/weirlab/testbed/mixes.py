"""Frames of several sizes in one load, for senders that send them in a fixed order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirlab.errors import InputError

if TYPE_CHECKING:
    from weirlab.scenario import Scenario


Mix = Sequence[tuple[int, int]]
"""L2 sizes with FCS [bytes], and their weights."""

MOST_ROUNDS = 1000
"""Weights without a common factor are at least this fine already when the least of them is as large."""


def settle_s_of(scenario: Scenario) -> float:
    """How long the search of ``scenario`` waits after the last frame; 0 without a search."""
    return 0.0 if scenario.search is None else scenario.search.trial.settle.s


def mix_of(scenario: Scenario) -> Mix | None:
    """The mix of the traffic that the search of ``scenario`` varies; None where its frames are of one
    size."""
    from weirlab.scenario.traffic import Departing

    if scenario.search is None:
        return None
    source = scenario.traffic[scenario.search.vary.split(".")[1]].source
    return source.mix if isinstance(source, Departing) else None


def mix_text(mix: Mix) -> str:
    """The sizes with their weights, such as ``64:7,570:4,1518:1``."""
    return ",".join(f"{size}:{weight}" for size, weight in mix)


def runs(mix: Mix) -> list[tuple[int, int]]:
    """The order in which the frames leave, over and over again: sizes, and how many frames in a row have
    each. All weights are met exactly in one cycle. The cycle has as many rounds as the least weight, and each
    round has its part of every size to one frame, so that the sizes are as evenly spread as runs of whole
    frames allow: 28 : 16 : 4 is one round of 7, 4 and 1, and 3 : 2 are two rounds, of 1 and 1 and of 2 and 1.

    Raises InputError for weights that need too many rounds.
    """
    factor = math.gcd(*(weight for _, weight in mix))
    weights = [(size, weight // factor) for size, weight in mix]
    rounds = min(weight for _, weight in weights)
    if rounds > MOST_ROUNDS:
        raise InputError(
            f"frame sizes {mix_text(mix)}: the least weight must be {MOST_ROUNDS} at most, common factors "
            f"left out (got {rounds})"
        )
    made = [
        (size, (turn + 1) * weight // rounds - turn * weight // rounds)
        for turn in range(rounds)
        for size, weight in weights
    ]
    return [run for run in made if run[1]]
