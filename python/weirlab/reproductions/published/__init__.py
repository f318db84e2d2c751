"""Numbers as they were published, in one TOML file per publication part."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

__all__ = ["read"]


def read(name: str) -> dict[str, Any]:
    """The content of ``NAME.toml``."""
    return tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))
