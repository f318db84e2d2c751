"""What a search is: it asks for a trial and is told the result. It owns no loop and reads no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from weirlab.testbed.base import Trial, TrialSpec

if TYPE_CHECKING:
    from weirlab.search.evidence import Evidence

__all__ = ["Bound", "GoalResult", "Search", "SearchGoal", "SearchResult", "SearchState"]


@dataclass(frozen=True, kw_only=True)
class SearchGoal:
    """A rate to find: the highest load whose loss ratio does not exceed ``loss_ratio`` (RFC 9971 section 4.4)."""

    name: str
    loss_ratio: float
    """In [0, 1). 0: NDR."""
    width: float
    """Relative distance of the bounds at which the search ends: (upper - lower) / upper, in (0, 1)."""
    duration_s: float
    """Final trial duration."""
    exceed_ratio: float = 0.0
    """Share of the duration sum that may be spent in trials with more loss, in [0, 1). 0: no such trial."""
    duration_sum_s: float | None = None
    """Summed duration of the final trials that decide about a load. None: one trial of ``duration_s``."""
    initial_duration_s: float | None = None
    """Shortest trial worth making. None: 1 s, or ``duration_s`` where that is less."""


@dataclass(frozen=True)
class Bound:
    """A load that was measured, and the trial that says so."""

    load_fps: float
    trial: Trial


@dataclass(frozen=True, kw_only=True)
class GoalResult:
    """What a search found for one goal."""

    goal: SearchGoal
    lower: Bound | None
    """Highest load that met the goal; the result of the search."""
    upper: Bound | None
    """Lowest load above it that did not. None when none was seen."""
    regular: bool
    """Whether both bounds exist, are valid and lie within the goal's width."""
    remark: str = ""
    """Why the result is irregular: ``no upper bound seen``, ``no lower bound seen``, ``timed out`` ..."""
    conditional_throughput_fps: float | None = None
    """Forwarding rate at the lower bound that the exceed ratio promises (RFC 9971 section 4.6.3). None where the
    algorithm does not classify loads, or without a lower bound."""
    evidence: Evidence | None = None
    """What speaks for the two bounds. None where the algorithm does not classify loads."""


@dataclass(frozen=True)
class SearchState:
    """Where a search stands, for a display."""

    phase: str
    bounds: dict[str, tuple[float | None, float | None]]
    """Current lower and upper bound [frames/s] by goal."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    goals: list[GoalResult]
    trials: list[Trial] = field(default_factory=list)
    status: Literal["finished", "unfinished"] = "finished"


class Search(Protocol):
    """A search algorithm: pure, deterministic, resumable by telling it the trials of its log again."""

    def ask(self) -> TrialSpec | None:
        """The next trial to measure, or None when the search has ended. Asking twice gives the same answer."""
        ...

    def tell(self, trial: Trial) -> None:
        """Take the result of the trial that ``ask`` gave last."""
        ...

    def state(self) -> SearchState:
        """Where the search stands."""
        ...

    def result(self) -> SearchResult:
        """What has been found so far; irregular while the search has not ended."""
        ...
