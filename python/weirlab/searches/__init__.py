"""Searches for rates: algorithms that ask for trials and receive the results, their log and the loop that
drives them. A controller decides loads (`controller`), `controlled` makes a search of it, `runner` drives it
on a testbed."""

from weirlab.searches.base import (
    Bound as Bound,
    Ending as Ending,
    FoundRates as FoundRates,
    GoalResult as GoalResult,
    Irregularity as Irregularity,
    LoadRange as LoadRange,
    Search as Search,
    SearchGoal as SearchGoal,
    SearchState as SearchState,
)
from weirlab.searches.build import build as build
from weirlab.searches.controlled import ControlledSearch as ControlledSearch
from weirlab.searches.log import read_trials as read_trials
from weirlab.searches.runner import Progress as Progress, run_search as run_search
