"""A number over two parameters, and where it crosses a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weirlab.theory.bcn import BcnPoint
from weirlab.theory.qcn import QcnPoint

__all__ = ["Plane", "margin_plane"]

P = TypeVar("P", bound=BcnPoint | QcnPoint)


@dataclass(frozen=True)
class Plane:
    """Values over the points of a grid."""

    x: NDArray[np.float64]
    """Levels of the first parameter; shape (columns,)."""
    y: NDArray[np.float64]
    """Levels of the second; shape (rows,)."""
    values: NDArray[np.float64]
    """Shape (rows, columns)."""

    def crossings(self, level: float) -> list[tuple[float, float]]:
        """Points (x, y) where the values pass `level`, by linear interpolation along each column."""
        found: list[tuple[float, float]] = []
        for column, x in enumerate(self.x):
            above = self.values[:, column] - level
            for row in range(len(self.y) - 1):
                low, high = above[row], above[row + 1]
                if low * high < 0 or (low == 0 and high != 0):
                    part = low / (low - high)
                    found.append((float(x), float(self.y[row] + part * (self.y[row + 1] - self.y[row]))))
        return found


def margin_plane(
    point: P,
    x: tuple[str, Sequence[float]],
    y: tuple[str, Sequence[float]],
    value: Callable[[P], float],
) -> Plane:
    """`value` of `point` with two of its fields, given by name, set to all levels.

    Raises ValueError for a name that is no field of the point, or the same name twice.
    """
    for name, _ in (x, y):
        if name not in point.__dataclass_fields__:
            raise ValueError(f"'{name}' is none of {', '.join(point.__dataclass_fields__)}")
    if x[0] == y[0]:
        raise ValueError(f"a plane has two parameters (got '{x[0]}' twice)")
    values = [[value(_with(point, {x[0]: at_x, y[0]: at_y})) for at_x in x[1]] for at_y in y[1]]
    return Plane(np.asarray(x[1], float), np.asarray(y[1], float), np.asarray(values, float))


def _with(point: P, changes: dict[str, Any]) -> P:
    return replace(point, **changes)
