"""Results compared: quantities, their differences with intervals, and what else is not the same."""

from weirlab.comparisons.conditions import Condition, Judgement, condition, unmatched
from weirlab.comparisons.differences import Difference, difference
from weirlab.comparisons.pairs import Paired, pairs, pairs_frame
from weirlab.comparisons.quantities import Compared, Quantity, compared
from weirlab.comparisons.settings import Setting, settings

__all__ = [
    "Compared",
    "Condition",
    "Difference",
    "Judgement",
    "Paired",
    "Quantity",
    "Setting",
    "compared",
    "condition",
    "difference",
    "pairs",
    "pairs_frame",
    "settings",
    "unmatched",
]
