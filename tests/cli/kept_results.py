"""Where results of commands are, for tests."""

from pathlib import Path


def results(place: Path) -> list[Path]:
    return sorted((place / "results").iterdir())
