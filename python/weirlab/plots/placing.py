"""Geometry of maps: where a text in a cell stands clear of lines, and which pieces of line belong together.

All in one plane with equal scales, such as pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Piece = tuple[Point, Point]
"""A straight piece of line."""

STEP = 4.0
"""Distance of the places that are tried."""


@dataclass(frozen=True)
class Box:
    """A rectangle with sides along the axes."""

    left: float
    right: float
    low: float
    high: float

    def crossed(self, piece: Piece) -> bool:
        """Whether a piece of line has a point inside, or on the edge."""
        (x, y), (to_x, to_y) = piece
        first, last = 0.0, 1.0
        for at, step, low, high in (
            (x, to_x - x, self.left, self.right),
            (y, to_y - y, self.low, self.high),
        ):
            if step == 0:
                if not low <= at <= high:
                    return False
                continue
            enters, leaves = sorted(((low - at) / step, (high - at) / step))
            first, last = max(first, enters), min(last, leaves)
        return first <= last


def clear_place(at: Point, cell: Box, size: tuple[float, float], pieces: Sequence[Piece]) -> Point | None:
    """The middle of a text of this `size` (width, height) inside `cell`, as near to `at` as no piece of line
    crosses it; None where lines leave no room."""
    wide, high = size[0] / 2, size[1] / 2
    near = [piece for piece in pieces if cell.crossed(piece)]

    def is_clear(place: Point) -> bool:
        text = Box(place[0] - wide, place[0] + wide, place[1] - high, place[1] + high)
        return not any(text.crossed(piece) for piece in near)

    if is_clear(at):
        return at
    places = [
        (x, y)
        for x in _steps(at[0], cell.left + wide, cell.right - wide)
        for y in _steps(at[1], cell.low + high, cell.high - high)
    ]
    places.sort(key=lambda place: math.dist(place, at))
    return next((place for place in places if is_clear(place)), None)


def _steps(at: float, low: float, high: float) -> list[float]:
    """Places between two ends, from `at` on in both directions."""
    down = range(1, max(0, math.floor((at - low) / STEP)) + 1)
    up = range(1, max(0, math.floor((high - at) / STEP)) + 1)
    return [at, *(at - STEP * i for i in down), *(at + STEP * i for i in up)]


def chained(pieces: Sequence[Sequence[Point]]) -> list[list[Point]]:
    """The fewest connected lines out of pieces of line, in whatever order and direction these come."""
    lines: list[list[Point]] = []
    for piece in pieces:
        line = list(piece)
        place = 0
        while place < len(lines):
            joined = _joined(lines[place], line)
            if joined is None:
                place += 1
                continue
            line = joined
            del lines[place]
            place = 0
        lines.append(line)
    return lines


def _joined(one: list[Point], other: list[Point]) -> list[Point] | None:
    """Two lines as one where they have an end in common."""
    for first in (one, one[::-1]):
        for second in (other, other[::-1]):
            if all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(first[-1], second[0], strict=True)):
                return first + second[1:]
    return None
