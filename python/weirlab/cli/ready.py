"""The ready-made scenarios that come with the package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ready_made"]


def ready_made() -> dict[str, Path]:
    """Files of the ready-made scenarios by name, in order: those of the package, or of the checkout it runs
    from."""
    package = Path(__file__).resolve().parent.parent
    for directory in (package / "scenarios", package.parent.parent / "scenarios"):
        files = sorted(directory.glob("*.yaml"))
        if files:
            return {file.stem: file for file in files}
    return {}
