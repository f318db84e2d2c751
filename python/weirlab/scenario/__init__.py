"""Scenarios: files that describe an experiment, and the immutable models that they become.

    scenario = load("incast.yaml", assign={"run.duration": "10 ms"})
    scenario.traffic["load"].source
    scenario.resolve().spec_json

Reading order: `file.document` (YAML with places), `model` (the sections, a room each), `file.problems` and
`checks` (what is wrong, in words), `traffic.flows` and `resolve` (the spec for the simulator).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirlab.scenario.loading import load as load, loads as loads
    from weirlab.scenario.model import Scenario as Scenario
    from weirlab.scenario.resolve import Resolved as Resolved, unsupported as unsupported
    from weirlab.scenario.schema import json_schema as json_schema
    from weirlab.scenario.traffic.offered import Offered as Offered


_HOMES = {
    "Offered": "traffic.offered",
    "Resolved": "resolve",
    "Scenario": "model",
    "json_schema": "schema",
    "load": "loading",
    "loads": "loading",
    "unsupported": "resolve",
}


def __getattr__(name: str) -> object:
    """Loads a name when it is first used: the shell completes names of scenarios without their models."""
    if name not in _HOMES:
        raise AttributeError(f"module 'weirlab.scenario' has no attribute {name!r}")
    return getattr(import_module(f"weirlab.scenario.{_HOMES[name]}"), name)
