"""Drive a search on a testbed: the loop, the log, the failures, the clock that the search itself does not
read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weirlab.errors import ImpossibleTrial, InputError, Interrupted, RunFailed, TestbedError
from weirlab.searches.base import Ending, FoundRates, Search, SearchState
from weirlab.searches.log import TrialLog
from weirlab.testbed.base import Recalls, Testbed, Trial, TrialSpec

ATTEMPTS = 2
"""How often a trial is tried before the testbed counts as failed."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a search stands: reported when it begins, after every trial, and when a trial gave no result."""

    trial: Trial | None
    """The trial that has just ended; None at the beginning and after a failure."""
    next: TrialSpec | None
    """The trial that begins now; None when the search has ended."""
    state: SearchState
    trials: int
    """Trials so far, those read from the log included."""
    resumed_trials: int
    """How many of them came from the log."""
    time_used_s: float
    """Sum of the effective durations of all trials."""
    time_left_s: float | None
    """An estimate; None before the first trial, and where there is nothing to go by."""
    failure: str = ""
    """Why the last attempt gave no result; the trial is then tried again."""


def run_search(
    search: Search,
    testbed: Testbed,
    *,
    log: Path | None = None,
    about: Mapping[str, object] | None = None,
    on_begin: Callable[[], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    timeout_s: float | None = None,
) -> FoundRates:
    """Search until the end, and return what was found: also after Ctrl-C, a timeout or the failure of the
    testbed, then as an unfinished result with its reason in ``ending``, ``message`` and the irregularities of
    its goals.

    A trial whose testbed fails (TestbedError) is tried once more; a second failure ends the search.

    Args:
        search: A fresh search: one that has received nothing.
        testbed: Where the trials are made. It stays open.
        log: Where trials are kept. If it exists, its trials are given to the search first and not repeated.
        about: What else must agree for a log to be resumed, as JSON values: the resolved scenario, say.
        on_begin: Called once, before the first trial, when the log was opened and found to fit.
        on_progress: Called at the beginning, after every trial and after every failure.
        timeout_s: Most time that all trials together may take, waits and resumed trials included. A trial
            that would go beyond is not begun.

    Raises:
        InputError: ``log`` belongs to another search or is damaged; or the testbed was set up wrongly.
        MissingCapability: This machine cannot do what the testbed needs.
        WeirlabError: ``log`` cannot be written. The trials that it holds are kept.
    """
    if timeout_s is not None and not timeout_s > 0.0:
        raise InputError(f"the timeout of a search must be above 0 s (got {timeout_s:g})")
    with contextlib.ExitStack() as stack:
        trial_log = None
        resumed: list[Trial] = []
        if log is not None:
            trial_log = stack.enter_context(TrialLog(log, search.settings(), about or {}))
            resumed = list(trial_log.trials)
            _retell(search, resumed, log)
            if isinstance(testbed, Recalls):
                testbed.recall(resumed)
        if on_begin is not None:
            on_begin()
        sitting = _Sitting(search, testbed, trial_log, resumed, on_progress)
        return sitting.run(timeout_s)


def _retell(search: Search, trials: list[Trial], log: Path) -> None:
    for number, trial in enumerate(trials, start=1):
        asked = search.ask()
        try:
            if asked is not None and asked != trial.spec:
                raise ValueError
            # One that has ended for its time takes further trials all the same: it was allowed more before.
            search.tell(trial)
        except ValueError:
            raise InputError(
                f"{log}: trial {number} of {len(trials)} is not the one that this search asks for: it has "
                f"{_brief(trial.spec)}, asked is {_brief(asked)}; the log was edited, or written by another "
                f"version"
            ) from None
        except ImpossibleTrial as error:
            raise InputError(f"{log}: {error}; the log was edited, or written by another version") from error


def _brief(spec: TrialSpec | None) -> str:
    return "no trial" if spec is None else f"{spec.intended_load_fps!r} frames/s for {spec.duration_s!r} s"


class _Sitting:
    """One uninterrupted stretch of a search."""

    def __init__(
        self,
        search: Search,
        testbed: Testbed,
        log: TrialLog | None,
        resumed: list[Trial],
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._search = search
        self._testbed = testbed
        self._log = log
        self._resumed = len(resumed)
        self._trials = len(resumed)
        self._used_s = sum(trial.effective_duration_s for trial in resumed)
        self._on_progress = on_progress

    def run(self, timeout_s: float | None) -> FoundRates:
        try:
            self._report()
            while (spec := self._search.ask()) is not None:
                if timeout_s is not None and self._used_s + spec.duration_s > timeout_s:
                    why = f"{self._used_s:.1f} of {timeout_s:g} s used, next trial {spec.duration_s:g} s"
                    return self._search.result().ended(Ending.TIMED_OUT, why)
                self._report(self._measure(spec))
        except (KeyboardInterrupt, Interrupted):
            return self._search.result().ended(Ending.INTERRUPTED, f"stopped after {self._trials} trials")
        except (TestbedError, RunFailed) as error:
            return self._search.result().ended(Ending.TESTBED_FAILED, str(error))
        return self._search.result()

    def _measure(self, spec: TrialSpec) -> Trial:
        """A trial that the search accepted and the log holds."""
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                trial = self._testbed.trial(spec)
                self._search.tell(trial)
            except TestbedError as error:
                if self._log:
                    self._log.note_failure(spec, error)
                if not attempts_left:
                    raise
                self._report(failure=str(error))
            else:
                break
        self._trials += 1
        self._used_s += trial.effective_duration_s
        if self._log:
            self._log.append(trial)
        return trial

    def _report(self, trial: Trial | None = None, failure: str = "") -> None:
        if self._on_progress is None:
            return
        self._on_progress(
            Progress(
                trial=trial,
                next=self._search.ask(),
                state=self._search.state(),
                trials=self._trials,
                resumed_trials=self._resumed,
                time_used_s=self._used_s,
                time_left_s=self._search.time_left_s(),
                failure=failure,
            )
        )
