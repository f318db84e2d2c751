"""Searches for rates: algorithms that ask for trials and are told the results, their log and the loop that
drives them. A controller decides loads (`controller`), `controlled` makes a search of it, `runner` drives it
on a testbed."""

from weirlab.search.base import (
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
from weirlab.search.build import build
from weirlab.search.controlled import ControlledSearch
from weirlab.search.log import read_trials
from weirlab.search.runner import Progress, run_search

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
