"""The trial log of a search: a journal with one line per trial, on disk before the next trial begins.

    {"weirlab_trials": 1, "weirlab": "0.1.0", "search": {...}, "about": {...}}
    {"trial": {"spec": {...}, "intended_frames": 10600000, ...}}
    {"failure": {"index": 1, "error": "..."}}

A log of another search is refused, with the first difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from weirlab.documents import section, typed
from weirlab.files import Closing
from weirlab.journal import Journal, JournalKind, read_journal
from weirlab.testbed.base import Trial, TrialSpec

FORMAT = 1
"""Version of the log. A reader refuses any other."""


def _filled(kept: Mapping[str, object]) -> dict[str, object]:
    """What an earlier version kept of a search, with its scenario as this version has it."""
    from weirlab.scenario import Scenario

    about = section(kept, "about")
    return {**kept, "about": {**about, "scenario": Scenario(**section(about, "scenario")).dump()}}


_KIND = JournalKind("weirlab_trials", FORMAT, "trial log", "search", _filled)


def trial_to_json(trial: Trial) -> dict[str, object]:
    """A trial as JSON values. ``trial_from_json`` gives an equal one back: no figure is rounded."""
    return {**asdict(trial), "per_direction": [asdict(each) for each in trial.per_direction]}


def trial_from_json(content: object) -> Trial:
    """The trial that ``trial_to_json`` wrote. Raises ValueError or WeirlabError when it is none."""
    return typed(Trial, content)


def read_trials(path: Path) -> list[Trial]:
    """All trials of a log, whatever search it belongs to. Raises InputError when it is no log."""
    return [trial for trial in read_journal(path, _KIND, _trial_of) if trial is not None]


class TrialLog(Closing):
    """A trial log that is open for appending. Use it in a `with` statement."""

    def __init__(self, path: Path, search: Mapping[str, object], about: Mapping[str, object]) -> None:
        """Open the log of a search, or begin it. ``trials`` then holds what was measured before.

        ``search`` are the settings of the search, ``about`` what else must not change between two sittings,
        such as the resolved scenario; both JSON values. Raises InputError when the file is no trial log, the
        log belongs to another search, is damaged before its end, or is being written by another process."""
        self._journal = Journal(path, _KIND, {"search": search, "about": about}, _trial_of)
        self.path = path
        self.trials: Sequence[Trial] = [trial for trial in self._journal.entries if trial is not None]

    def close(self) -> None:
        self._journal.close()

    def append(self, trial: Trial) -> None:
        """Write a trial; it is on disk when this returns."""
        self._journal.append({"trial": trial_to_json(trial)})

    def note_failure(self, spec: TrialSpec, error: Exception) -> None:
        """Write that a trial gave no result. A resumed search makes it again."""
        self._journal.append(
            {"failure": {"index": spec.index, "kind": type(error).__name__, "error": str(error)}}
        )


def _trial_of(entry: Mapping[str, object]) -> Trial | None:
    """The trial of a line; None of a failure."""
    if "trial" in entry:
        return trial_from_json(entry["trial"])
    if "failure" not in entry:
        raise ValueError("neither a trial nor a failure")
    return None
