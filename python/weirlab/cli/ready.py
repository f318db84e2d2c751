"""The ready-made scenarios that come with the package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["needed_by", "ready_made"]

_PLACE = Path(__file__).resolve().parent.parent / "scenarios"


def ready_made() -> dict[str, Path]:
    """Files of the ready-made scenarios by name, in order."""
    return {file.stem: file for file in sorted(_PLACE.glob("*.yaml"))}


def needed_by(scenario: Path) -> list[Path]:
    """Other files beside a ready-made scenario that it names, such as a program that it runs."""
    text = scenario.read_text(encoding="utf-8")
    return [file for file in sorted(_PLACE.iterdir()) if file.suffix != ".yaml" and file.name in text]
