"""How the statistics take their numbers: finite values, and enough of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from weirlab.heavy import np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
else:
    Array = object


def sample(values: Iterable[float], what: str, *, least: int = 1) -> Array:
    """`values` as an array [n].

    Raises ValueError, naming `what`, with fewer than `least` values or with one that is not finite.
    """
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    if array.ndim != 1 or array.size < least:
        raise ValueError(f"{what}: {least} or more values are needed (got {array.size})")
    odd = array[~np.isfinite(array)]
    if odd.size:
        raise ValueError(f"{what}: every value must be finite (got {odd[0]})")
    return array


def paired(x: Iterable[float], y: Iterable[float], what: str, *, least: int = 2) -> tuple[Array, Array]:
    """Two samples [n] that belong together, value by value.

    Raises ValueError, naming `what`, as `sample` does, and when they are not equally many.
    """
    first, second = sample(x, what, least=least), sample(y, what, least=least)
    if first.size != second.size:
        raise ValueError(f"{what}: values must come in pairs (got {first.size} and {second.size})")
    return first, second
