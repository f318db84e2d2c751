"""Where a function crosses zero."""

from __future__ import annotations

from collections.abc import Callable


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where `function` crosses 0 between two places with opposite signs, to the last digit, by bisection."""
    rises = function(low) < 0
    if rises == (function(high) < 0):
        raise ValueError(f"no change of sign between {low} and {high}")
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if (function(middle) < 0) == rises else (low, middle)
    return middle
