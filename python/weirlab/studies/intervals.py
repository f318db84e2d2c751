"""How precise the measures of a study are while it runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import polars as pl

from weirlab.stats import t_quantile

_t_quantile = functools.cache(t_quantile)


class Intervals:
    """Says which mean of a measure at a point is known least precisely; see `weirlab.execution.Reader`."""

    columns: Sequence[str] = ("measures",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[int, float, float, float]] = {}
        """Count, first value, and sum and sum of squares of the differences from it: squares of large numbers
        that lie close together would lose these."""

    def read(self, rows: pl.DataFrame) -> None:
        """Rows of results, each once."""
        values = (
            rows.select("point", "measures").explode("measures").drop_nulls("measures").unnest("measures")
        )
        for point, measure, value in values.select("point", "measure", "value").iter_rows():
            if value is None or not math.isfinite(value):
                continue
            count, first, total, squares = self._known.get((point, measure), (0, value, 0.0, 0.0))
            off = value - first
            self._known[point, measure] = (count + 1, first, total + off, squares + off * off)

    def widest(self) -> tuple[float, str, int] | None:
        """Half the width of the widest 95 % interval of a mean, relative to the mean, with its measure and
        point; None before a point has two values."""
        found: tuple[float, str, int] | None = None
        for (point, measure), (count, first, total, squares) in self._known.items():
            mean = first + total / count
            if count < 2 or mean == 0:
                continue
            variance = max(0.0, squares - total * total / count) / (count - 1)
            half = _t_quantile(0.975, count - 1) * math.sqrt(variance / count) / abs(mean)
            if found is None or half > found[0]:
                found = half, measure, point
        return found

    def remark(self) -> str:
        """The widest interval in words."""
        widest = self.widest()
        if widest is None:
            return ""
        half, measure, point = widest
        share = f"{100 * half:.2g}" if half < 0.995 else f"{100 * half:.0f}"
        return f"widest interval ±{share} % ({measure}, point {point})"
