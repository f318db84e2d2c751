"""Polars, loaded when something of it is first used: the models of scenarios hold measures, and a command
that only reads a file should not wait a sixth of a second for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["cs", "pl"]

if TYPE_CHECKING:
    import polars as pl
    import polars.selectors as cs
else:

    class _Lazy:
        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, name: str) -> object:
            return getattr(import_module(self._module), name)

    pl = _Lazy("polars")
    cs = _Lazy("polars.selectors")
