"""Where work goes: a scenario of any form, and a directory that lasts as long as it should."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from weirlab.errors import InputError
from weirlab.files import Scratch
from weirlab.scenario import Scenario, load

AnyScenario = str | Path | Mapping[str, object] | Scenario
"""A file, the name of a ready-made scenario, what a file would hold, or a scenario."""


def scenario_of(scenario: AnyScenario, assign: Mapping[str, object] | None = None) -> Scenario:
    """The scenario that is meant, with other values at dotted paths. Raises ScenarioError or InputError."""
    if isinstance(scenario, Mapping):
        scenario = Scenario(**scenario)
    if isinstance(scenario, Scenario):
        return scenario.assign(assign) if assign else scenario
    if not isinstance(scenario, str | Path):
        raise InputError(
            "a scenario is a file, the name of a ready-made one, a dict of sections or a weirlab.Scenario "
            f"(got {type(scenario).__name__})"
        )
    return load(scenario, assign)


def path_of(place: object, asked: str) -> Path:
    """A path that a user gives for a result. Raises InputError where it is none."""
    if isinstance(place, str | Path):
        return Path(place)
    raise InputError(f"{asked}: a result or its directory is wanted (got {type(place).__name__})")


def place_for(out: str | Path | None) -> tuple[Path, Scratch | None]:
    """The directory that a user names, or one that disappears with the result."""
    if out is not None:
        return Path(out), None
    kept = Scratch()
    place = kept.path / "result"  # who works in it locks it, too
    place.mkdir()
    return place, kept
