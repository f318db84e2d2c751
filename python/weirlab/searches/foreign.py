"""The controller of another package: what it does against the protocol is reported as its fault."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import get_args

from weirlab.errors import ForeignFault
from weirlab.fields.base import kind_of
from weirlab.foreign import blamed, source
from weirlab.scenario.plan import CONTROLLERS, Algorithm
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.controller import Controller, Finding, Outcome, Wish
from weirlab.searches.evidence import Evidence
from weirlab.testbed.base import Purpose

_OPTIONAL = ("loss_budget", "look_s")
"""Fields of a wish that may be None."""


class ForeignController:
    """A controller that an algorithm of another package makes. Each call may raise ForeignFault."""

    def __init__(self, algorithm: Algorithm, make: Callable[[], Controller]) -> None:
        self._algorithm = algorithm
        with self._blamed("making the controller"):
            self._inner = make()
        with self._blamed("reading its goals and loads"):
            self.goals: Sequence[SearchGoal] = list(self._inner.goals)
            self.loads: LoadRange = self._inner.loads
            ranged = isinstance(self.loads, LoadRange)
        if not ranged or not all(isinstance(goal, SearchGoal) for goal in self.goals):
            raise self._wrong("'goals' and 'loads' are not those that it was given")

    def settings(self) -> Mapping[str, object]:
        """Its name and its parameters."""
        with self._blamed("'settings'"):
            settings = dict(self._inner.settings())
            json.dumps(settings, allow_nan=False)
        if "kind" not in settings:
            raise self._wrong("'settings' has no 'kind'")
        return settings

    def ask(self) -> Wish | None:
        """The next trial, within the loads."""
        with self._blamed("'ask'"):
            wish = self._inner.ask()
            if wish is not None:
                self._check(wish)
        return wish

    def _check(self, wish: object) -> None:
        if not isinstance(wish, Wish):
            raise self._wrong(f"'ask' gave {wish!r}, which is no Wish")
        for name in ("load_fps", "duration_s", "loss_budget", "look_s", "following"):
            value = getattr(wish, name)
            if not isinstance(value, int | float) and not (name in _OPTIONAL and value is None):
                raise self._wrong(f"'ask' gave {wish!r}, whose {name} is no number")
        if wish.purpose not in get_args(Purpose):
            raise self._wrong(
                f"'ask' gave {wish!r}, whose purpose is not one of {', '.join(get_args(Purpose))}"
            )
        if not self.loads.min_fps <= wish.load_fps <= self.loads.max_fps:
            raise self._wrong(
                f"'ask' wants {wish.load_fps:g} frames/s, outside of {self.loads.min_fps:g} .. "
                f"{self.loads.max_fps:g}"
            )
        if not 0.0 < wish.duration_s < math.inf:
            raise self._wrong(f"'ask' wants a trial of {wish.duration_s:g} s")
        if wish.loss_budget is not None and not 0.0 <= wish.loss_budget <= 1.0:
            raise self._wrong(f"'ask' wants a loss budget of {wish.loss_budget:g}, outside of 0 .. 1")
        if wish.look_s is not None and not 0.0 < wish.look_s < wish.duration_s:
            raise self._wrong(
                f"'ask' wants a look after {wish.look_s:g} s, outside of a trial of {wish.duration_s:g} s"
            )

    def tell(self, outcome: Outcome) -> None:
        """Take what came of the last wish."""
        with self._blamed("'tell'"):
            self._inner.tell(outcome)

    @property
    def phase(self) -> str:
        """Where it stands."""
        with self._blamed("'phase'"):
            return str(self._inner.phase)

    def findings(self) -> Sequence[Finding]:
        """What it holds, in the order of the goals."""
        with self._blamed("'findings'"):
            findings = list(self._inner.findings())
            for each in findings:
                if isinstance(each, Finding):
                    self._check_finding(each)
        if len(findings) != len(self.goals) or not all(isinstance(each, Finding) for each in findings):
            raise self._wrong(
                f"'findings' gave {len(findings)}, not a Finding for each of the {len(self.goals)} goals"
            )
        return findings

    def _check_finding(self, finding: Finding) -> None:
        rate, evidence = finding.conditional_throughput_fps, finding.evidence
        for name, fits in {
            "lower": finding.lower is None or isinstance(finding.lower, Outcome),
            "upper": finding.upper is None or isinstance(finding.upper, Outcome),
            "timed_out": isinstance(finding.timed_out, str),
            "not_stationary": isinstance(finding.not_stationary, str),
            "conditional_throughput_fps": rate is None or isinstance(rate, int | float),
            "evidence": evidence is None or isinstance(evidence, Evidence),
        }.items():
            if not fits:
                wrong = getattr(finding, name)
                raise self._wrong(f"'findings' gave a Finding whose {name} cannot be {wrong!r}")

    def __deepcopy__(self, memo: dict[int, object]) -> ForeignController:
        with self._blamed("copying the controller"):
            inner = copy.deepcopy(self._inner, memo)
        return ForeignController(self._algorithm, lambda: inner)

    def _blamed(self, what: str) -> AbstractContextManager[None]:
        owner = type(self._algorithm)
        return blamed(owner, CONTROLLERS, kind_of(owner), what)

    def _wrong(self, what: str) -> ForeignFault:
        return ForeignFault(f"{what}: {source(CONTROLLERS, kind_of(type(self._algorithm)))}")
