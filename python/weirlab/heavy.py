"""Polars and NumPy, loaded when first used. Many modules have a function that needs them;
a command that only reads a file should not wait for both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING


class Lazy:
    """Stands for a module, which is loaded when one of its names is first used."""

    def __init__(self, load: Callable[[], ModuleType]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> object:
        value = getattr(self._load(), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    import polars.selectors as cs

    __all__ = ["Lazy", "cs", "np", "pl"]
else:
    np, pl, cs = (Lazy(partial(import_module, name)) for name in ("numpy", "polars", "polars.selectors"))
