"""Polars and NumPy, loaded when first used. Many modules have a function that needs them;
a command that only reads a file should not wait for both."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    import polars.selectors as cs
else:

    class _Lazy:
        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, name: str) -> object:
            value = getattr(import_module(self._module), name)
            setattr(self, name, value)
            return value

    np = _Lazy("numpy")
    pl = _Lazy("polars")
    cs = _Lazy("polars.selectors")

__all__ = ["cs", "np", "pl"]
