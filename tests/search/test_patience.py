"""A search that nobody limits ends all the same, and says why; one that was allowed more goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from weirlab.errors import InputError
from weirlab.searches import ControlledSearch, Irregularity, LoadRange, SearchGoal, run_search
from weirlab.searches.base import Ending
from weirlab.searches.controller import Finding, Outcome, Wish
from weirlab.searches.lab_state import Leak
from weirlab.searches.mlr import Mlr
from weirlab.searches.patience import PATIENCE, patience_s
from weirlab.testbed.devices import Knee
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e6, 16e6)
FEW = SearchGoal(name="NDR", loss_ratio=0.0, width=0.01, duration_s=1.0, exceed_ratio=0.5, duration_sum_s=5.0)
KNEE = Knee(capacity_fps=2e6)


class Endless:
    """A controller that never has enough."""

    phase = "endless"

    def __init__(self) -> None:
        self.goals, self.loads = [FEW], LOADS

    def settings(self) -> Mapping[str, object]:
        return {"kind": "endless"}

    def ask(self) -> Wish | None:
        return Wish(self.loads.max_fps, 1.0)

    def tell(self, outcome: Outcome) -> None:
        pass

    def findings(self) -> Sequence[Finding]:
        return [Finding(lower=None, upper=None, ended=False)]


def endless(*, limited: bool = True) -> ControlledSearch:
    return ControlledSearch(Endless(), frame_size_bytes=64, limited=limited)


def test_patience_is_twice_the_time_of_binary_searches() -> None:
    """The range is 1500 times 1 % of its lowest load: 11 halvings and the first load, 5 trials of each."""
    assert patience_s([FEW], LOADS, 0.5) == pytest.approx(PATIENCE * 12 * 5 * 1.5)
    assert patience_s([FEW, FEW], LOADS, 0.0) == pytest.approx(PATIENCE * 2 * 12 * 5)
    assert patience_s([SearchGoal.ndr(duration_s=60.0, width=0.01)], LOADS, 0.0) == PATIENCE * 12 * 60.0


def test_mlr_on_a_leaking_device_ends_irregular() -> None:
    """With half of the trials of a load allowed to exceed, no rule of it ends: it made 5000 trials."""
    goal, loads = replace(FEW, width=0.005, duration_sum_s=7.0), LoadRange(1e5, 16e6)
    search = ControlledSearch(Mlr([goal], loads), frame_size_bytes=64)
    bed = DeviceTestbed(Leak(life_frames=2e9), overhead_s=0.43)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    result = search.result()
    assert result.ending is Ending.TIMED_OUT
    assert Irregularity.TIMED_OUT in result.goals[0].irregularities
    assert result.time_s == pytest.approx(patience_s([goal], loads, 0.43), abs=1.5)


def test_a_search_without_an_end_ends_for_its_time_and_goes_on_where_it_is_allowed_more(
    tmp_path: Path,
) -> None:
    bed, log = DeviceTestbed(KNEE, overhead_s=0.5), tmp_path / "trials.jsonl"
    most_s = patience_s([FEW], LOADS, 0.5)
    result = run_search(endless(), bed, log=log)
    assert result.ending is Ending.TIMED_OUT
    assert most_s <= result.time_s < most_s + 1.5
    assert set(result.goals[0].irregularities) == {Irregularity.TIMED_OUT}
    assert "search.timeout" in result.message
    longer = run_search(endless(limited=False), bed, log=log, timeout_s=1.5 * most_s)
    assert 1.5 * most_s - 1.5 <= longer.time_s <= 1.5 * most_s
    told = run_search(endless(), bed, log=log)
    assert len(told.trials) == len(longer.trials), "what it was allowed before stays"
    assert told.ending is Ending.TIMED_OUT


def test_a_trial_of_another_search_is_refused_beyond_the_limit_too(tmp_path: Path) -> None:
    bed, log = DeviceTestbed(KNEE, overhead_s=0.5), tmp_path / "trials.jsonl"
    run_search(endless(), bed, log=log)
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines, lines[1]]) + "\n")
    with pytest.raises(InputError, match="is not the one that this search asks for"):
        run_search(endless(), bed, log=log)
