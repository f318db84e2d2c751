"""Where a scenario runs or a trial is measured.

`open_testbed` gives the testbed that a scenario names. A new kind of testbed is a module here, and a model in
`weirlab.scenario.testbeds`, which names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from weirlab.errors import Problem, UnsupportedError
from weirlab.fields.base import kind_of
from weirlab.foreign import blamed, is_foreign
from weirlab.testbed.base import Recalls, Testbed, Trial as Trial, TrialSpec as TrialSpec

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario


GROUP = "weirlab.testbeds"
"""Entry points by which packages of other people add testbeds."""


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
    with _blamed(type(scenario.testbed), "opening the testbed"):
        testbed = _home(scenario).opened(scenario)
    if not is_foreign(type(scenario.testbed)):
        return testbed
    guarded = _RecallingForeign if isinstance(testbed, Recalls) else _Foreign
    return guarded(testbed, type(scenario.testbed))


def unhonoured(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that its testbed cannot honour; empty when it can honour all. Nothing is
    opened, and no privilege needed. Of this machine only the program of a `command` is looked for."""
    with _blamed(type(scenario.testbed), "what the testbed refuses"):
        problems = list(_home(scenario).refusals(scenario))
        if odd := [each for each in problems if not isinstance(each, Problem)]:
            raise TypeError(f"a refusal is a Problem, not {odd[0]!r}")
        return problems


def _blamed(owner: type, what: str) -> AbstractContextManager[None]:
    return blamed(owner, GROUP, kind_of(owner), what)


class _Foreign:
    """The testbed of another package: what goes wrong in it is reported as a fault of that package."""

    def __init__(self, testbed: Testbed, owner: type) -> None:
        self._testbed, self._owner = testbed, owner

    def refuses(self, scenario: Scenario) -> list[Problem]:
        with _blamed(self._owner, "what the testbed refuses"):
            return list(self._testbed.refuses(scenario))

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:
        with _blamed(self._owner, "a run of the testbed"):
            return self._testbed.run(scenario, seeds=seeds)

    def trial(self, spec: TrialSpec) -> Trial:
        with _blamed(self._owner, f"trial {spec.index} of the testbed"):
            trial: object = self._testbed.trial(spec)
            if not isinstance(trial, Trial):
                raise TypeError(f"a trial gives a Trial, not {trial!r}")
            return trial

    def close(self) -> None:
        with _blamed(self._owner, "closing the testbed"):
            self._testbed.close()


class _RecallingForeign(_Foreign):
    def recall(self, trials: Sequence[Trial]) -> None:
        with _blamed(self._owner, "recalling trials"):
            assert isinstance(self._testbed, Recalls)
            self._testbed.recall(trials)


def _home(scenario: Scenario) -> Home:
    return cast(Home, import_module(scenario.testbed.HOME))


def warning(scenario: Scenario) -> str:
    """What speaks against measuring now, as a sentence; empty when nothing does. Takes a quarter of a second
    where the testbed is this machine."""
    from weirlab.scenario.testbeds import Netns
    from weirlab.testbed.account import busy_now

    return busy_now() if isinstance(scenario.testbed, Netns) else ""
