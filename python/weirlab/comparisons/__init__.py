"""Results compared: quantities, their differences with intervals, and what else is not the same."""

from weirlab.comparisons.conditions import (
    Condition as Condition,
    Judgement as Judgement,
    condition as condition,
    unmatched as unmatched,
)
from weirlab.comparisons.differences import Difference as Difference, difference as difference
from weirlab.comparisons.pairs import Paired as Paired, pairs as pairs, pairs_frame as pairs_frame
from weirlab.comparisons.quantities import Compared as Compared, Quantity as Quantity, compared as compared
from weirlab.comparisons.settings import Setting as Setting, settings as settings
