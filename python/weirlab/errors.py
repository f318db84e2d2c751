"""Everything that Weirlab raises on purpose.

    WeirlabError                what a user can cause or meet; exit code 1
    ├── InputError              a file, an option or a value is wrong; exit code 2
    │   ├── ScenarioError       a scenario file is not legal: all problems at once, each with its place
    │   ├── UnitError           a text is not the quantity that was asked for
    │   └── UnsupportedError    the scenario is legal, but this testbed cannot honour a part of it
    ├── RunFailed               a run broke a law (conservation) or could not finish
    ├── TestbedError            a testbed did not give a trial that can be believed
    │   ├── TrialTimeout        it did not answer in time
    │   └── ImpossibleTrial     its counts contradict each other
    ├── ForeignFault            code of another package failed, or gave what cannot be used
    ├── MissingCapability       this machine lacks a privilege, a tool, a kernel feature or a package
    └── Interrupted             Ctrl-C; what was measured is kept; exit code 130

Exit codes of the command: 0 well, 1 a run failed, 2 the input is wrong, 130 interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class WeirlabError(Exception):
    """What a user can cause or meet. Printed as a message, never as a traceback."""

    exit_code: ClassVar[int] = 1


class InputError(WeirlabError):
    """A file, an option or a value is wrong."""

    exit_code = 2


@dataclass(frozen=True)
class Problem:
    """One fault of a scenario file: where it stands and what is wrong."""

    message: str
    path: str = ""
    """Dotted path of the field, such as ``network.link.rate``."""
    file: str = ""
    line: int = 0
    """From 1; 0 when the place is not known, as in a scenario made in Python."""
    column: int = 0
    """From 1."""

    def __str__(self) -> str:
        place = (
            f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        )
        return f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"


class _Problems(InputError):
    """Several faults, reported at once."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class ScenarioError(_Problems):
    """A scenario file is not legal. ``problems`` holds every fault, in the order of the file."""


class UnitError(InputError, ValueError):
    """A text is not the quantity that was asked for. Also a ``ValueError``, so that pydantic collects it."""


class UnsupportedError(_Problems):
    """The scenario is legal, but the chosen testbed cannot honour the parts named in ``problems``."""


class RunFailed(WeirlabError):
    """A run broke a law or could not finish."""


class TestbedError(WeirlabError):
    """A testbed did not give a trial that can be believed."""

    __test__ = False


class TrialTimeout(TestbedError):
    """A testbed did not answer in time."""


class ImpossibleTrial(TestbedError):
    """The counts of a trial contradict each other."""


class ForeignFault(WeirlabError):
    """Code of another package failed, or gave what cannot be used: the message names the package."""


class MissingCapability(WeirlabError):
    """This machine lacks something: the message says what, and how to get it."""


class Interrupted(WeirlabError):
    """The user stopped the work. What was measured is kept."""

    exit_code = 130
