"""Searches for rates: algorithms that ask for trials and receive the results, their log and the loop that
drives them. A controller decides loads (`controller`), `controlled` makes a search of it, `runner` drives it
on a testbed."""

from weirlab.searches.base import (
    Bound,
    Ending,
    GoalResult,
    Irregularity,
    LoadRange,
    Search,
    SearchGoal,
    SearchResult,
    SearchState,
)
from weirlab.searches.build import build
from weirlab.searches.controlled import ControlledSearch
from weirlab.searches.log import read_trials
from weirlab.searches.runner import Progress, run_search

__all__ = [
    "Bound",
    "ControlledSearch",
    "Ending",
    "GoalResult",
    "Irregularity",
    "LoadRange",
    "Progress",
    "Search",
    "SearchGoal",
    "SearchResult",
    "SearchState",
    "build",
    "read_trials",
    "run_search",
]
