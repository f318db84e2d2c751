"""Where work goes: a scenario of any form, and a directory that lasts as long as it should."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from weirlab.scenario import Scenario, load

AnyScenario = str | Path | Mapping[str, Any] | Scenario
"""A file, the name of a ready-made scenario, what a file would hold, or a scenario."""


class Temporary:
    """A directory that is removed with this object, or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="weirlab-"))
        finalize(self, rmtree, self.path, ignore_errors=True)


def scenario_of(scenario: AnyScenario, assign: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario that is meant, with other values at dotted paths. Raises ScenarioError or InputError."""
    if isinstance(scenario, Mapping):
        scenario = Scenario(**scenario)
    if isinstance(scenario, Scenario):
        return scenario.assign(assign) if assign else scenario
    return load(scenario, assign)


def place_for(out: str | Path | None) -> tuple[Path, Temporary | None]:
    """The directory that a user names, or one that disappears with the result."""
    if out is not None:
        return Path(out), None
    kept = Temporary()
    return kept.path, kept
