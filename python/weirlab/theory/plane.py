"""A number over two parameters, and where it crosses a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

from weirlab.heavy import np
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.qcn import QcnPoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

Segment = tuple[tuple[float, float], tuple[float, float]]
"""A straight piece of line: both ends, (x, y)."""

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

    def contour(self, level: float) -> list[Segment]:
        """Where the values pass `level`: a piece of line in each cell that it crosses, interpolated linearly
        along the sides. Cells with a corner that has no number are left out."""
        found: list[Segment] = []
        for row in range(len(self.y) - 1):
            for column in range(len(self.x) - 1):
                ends = self._ends(row, column, level)
                found += [(ends[i], ends[i + 1]) for i in range(0, len(ends) - 1, 2)]
        return found

    def _ends(self, row: int, column: int, level: float) -> list[tuple[float, float]]:
        """Points on the sides of a cell, in turn around it."""
        corners = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        above = [float(self.values[corner]) - level for corner in corners]
        if not np.isfinite(above).all():
            return []
        ends = []
        for side in range(4):
            first, second = above[side], above[(side + 1) % 4]
            if (first < 0) == (second < 0):
                continue
            part = first / (first - second)
            (y_at, x_at), (y_to, x_to) = corners[side], corners[(side + 1) % 4]
            x = self.x[x_at] + part * (self.x[x_to] - self.x[x_at])
            y = self.y[y_at] + part * (self.y[y_to] - self.y[y_at])
            ends.append((float(x), float(y)))
        return ends


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
            raise ValueError(f"'{name}' is not one of {', '.join(point.__dataclass_fields__)}")
    if x[0] == y[0]:
        raise ValueError(f"a plane has two parameters (got '{x[0]}' twice)")
    values = [
        [value(type(point)(**asdict(point) | {x[0]: at_x, y[0]: at_y})) for at_x in x[1]] for at_y in y[1]
    ]
    return Plane(np.asarray(x[1], float), np.asarray(y[1], float), np.asarray(values, float))
