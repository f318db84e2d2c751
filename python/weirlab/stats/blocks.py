"""Values of several treatments in the same blocks, such as candidates under the same seeds."""

from __future__ import annotations

from collections.abc import Sequence

from weirlab.heavy import np
from weirlab.stats.distributions import f_tail


def block_probability(values: Sequence[Sequence[float]]) -> float:
    """The probability of differences as large as these between the means of rows, if rows differ by chance
    alone and columns add the same to all: the F test of a two-way layout with one value in each cell.

    Args:
        values: Shape (rows, columns), two of each at least.

    Returns 0 where nothing is left to chance and rows differ, and 1 where they do not differ at all.

    Source: Fisher 1935, sections 24 to 26.
    """
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError(f"two rows and two columns are needed (got the shape {table.shape})")
    rows, columns = table.shape
    off = table - table.mean()
    by_row, by_column = off.mean(axis=1), off.mean(axis=0)
    between = columns * float(by_row @ by_row) / (rows - 1)
    rest = off - by_row[:, np.newaxis] - by_column
    within = float((rest * rest).sum()) / ((rows - 1) * (columns - 1))
    tiny = 1e-24 * float(np.abs(table).max()) ** 2
    if between <= tiny:
        return 1.0
    return f_tail(between / within, rows - 1, (rows - 1) * (columns - 1)) if within > tiny else 0.0
