"""Weirlab: finds out how much a network carries, and what it does when it is asked for more.

    import weirlab

    run = weirlab.run("incast.yaml", replicates=10)
    run.records["flows"]          # facts, as polars frames
    weirlab.evaluate(run)         # the measures that the scenario asks for

Names are loaded when they are first used, so that `import weirlab` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirlab.errors import WeirlabError
    from weirlab.measures import evaluate
    from weirlab.records import Records
    from weirlab.runs import Run, run
    from weirlab.scenario import Scenario, load
    from weirlab.studies import Study, run_study

__all__ = ["Records", "Run", "Scenario", "Study", "WeirlabError", "evaluate", "load", "run", "run_study"]

_HOMES = {
    "Records": "weirlab.records",
    "Run": "weirlab.runs",
    "Scenario": "weirlab.scenario",
    "Study": "weirlab.studies",
    "WeirlabError": "weirlab.errors",
    "evaluate": "weirlab.measures",
    "load": "weirlab.scenario",
    "run": "weirlab.runs",
    "run_study": "weirlab.studies",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from weirlab._core import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"module 'weirlab' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
