"""Where a scenario runs or a trial is measured.

`open_testbed` gives the testbed that a scenario names. A new kind of testbed is a module here, and a model in
`weirlab.scenario.testbeds`, which names it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from weirlab.errors import Problem, UnsupportedError
from weirlab.testbed.base import Testbed, Trial, TrialSpec

if TYPE_CHECKING:
    from weirlab.scenario import Scenario

__all__ = ["Testbed", "Trial", "TrialSpec", "open_testbed", "unhonoured", "warning"]


class Home(Protocol):
    """What a module of a testbed offers."""

    def refusals(self, scenario: Scenario) -> list[Problem]:
        """Every part of a scenario that the testbed cannot honour. Opens nothing and needs no privilege."""

    def opened(self, scenario: Scenario) -> Testbed:
        """The testbed, ready for a scenario of which it refuses nothing."""


def open_testbed(scenario: Scenario) -> Testbed:
    """The testbed that ``scenario`` names, ready to run it or to measure its trials. Close it after use.

    Raises:
        UnsupportedError: It cannot honour a part of the scenario; every such part with its place.
        MissingCapability: This machine lacks what it needs.
        InputError: It is set up wrongly: a program that does not exist, say.
    """
    if problems := unhonoured(scenario):
        raise UnsupportedError(problems)
    return _home(scenario).opened(scenario)


def unhonoured(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that its testbed cannot honour; empty when it can honour all. Nothing is
    opened, and no privilege needed. Of this machine only the program of a `command` is looked for."""
    return _home(scenario).refusals(scenario)


def _home(scenario: Scenario) -> Home:
    return cast(Home, import_module(scenario.testbed.HOME))


def warning(scenario: Scenario) -> str:
    """What speaks against measuring now, as a sentence; empty when nothing does. Takes a quarter of a second
    where the testbed is this machine."""
    from weirlab.scenario.testbeds import Netns
    from weirlab.testbed.account import busy_now

    return busy_now() if isinstance(scenario.testbed, Netns) else ""
