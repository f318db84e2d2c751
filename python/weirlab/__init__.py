"""Weirlab: finds out how much a network carries, and what it does when it is asked for more.

    import weirlab

    run = weirlab.run("incast", replicates=10)      # a ready-made scenario, a file, a dict or a Scenario
    run.summary()                                   # what happened, in sentences
    run.tables.flows                                # facts, as Polars frames
    run.plot()                                      # an Altair chart
    run.report()                                    # a page

    weirlab.search("search-knee").rates             # NDR and PDR of a device [frames/s]
    weirlab.scenarios()                             # what is ready to run

The functions are the words of the command line; errors are those of `weirlab.errors`. Names are loaded when
they are first used, so that `import weirlab` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # what it is: to load `typing` takes time on each Tab
if TYPE_CHECKING:
    from weirlab.api.captured import diagnose, trace
    from weirlab.api.catalogue import scenarios
    from weirlab.api.columns import bit_rates, seconds
    from weirlab.api.compared import compare
    from weirlab.api.measured import bulk, path
    from weirlab.api.published import reproduce
    from weirlab.api.reading import plot, read
    from weirlab.api.searched import search
    from weirlab.api.simulated import run, study
    from weirlab.api.timelines import perfetto
    from weirlab.errors import WeirlabError
    from weirlab.scenario import Scenario, load

__all__ = [
    "Scenario",
    "WeirlabError",
    "bit_rates",
    "bulk",
    "compare",
    "diagnose",
    "load",
    "path",
    "perfetto",
    "plot",
    "read",
    "reproduce",
    "run",
    "scenarios",
    "search",
    "seconds",
    "study",
    "trace",
]

_HOMES = {
    "Scenario": "weirlab.scenario",
    "WeirlabError": "weirlab.errors",
    "bit_rates": "weirlab.api.columns",
    "bulk": "weirlab.api.measured",
    "compare": "weirlab.api.compared",
    "diagnose": "weirlab.api.captured",
    "load": "weirlab.scenario",
    "path": "weirlab.api.measured",
    "perfetto": "weirlab.api.timelines",
    "plot": "weirlab.api.reading",
    "read": "weirlab.api.reading",
    "reproduce": "weirlab.api.published",
    "run": "weirlab.api.simulated",
    "scenarios": "weirlab.api.catalogue",
    "search": "weirlab.api.searched",
    "seconds": "weirlab.api.columns",
    "study": "weirlab.api.simulated",
    "trace": "weirlab.api.captured",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from weirlab._core import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"module 'weirlab' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
