"""Whole searches through a TRex server. The server is a fake: see `fake_trex`."""

from __future__ import annotations

from pathlib import Path

import pytest

from weirlab.searches import ControlledSearch, Ending, Irregularity, LoadRange, SearchGoal, run_search
from weirlab.searches.binary import Binary
from weirlab.searches.mdr import Mdr

from .fake_trex_model import Device, Faults
from .test_trex import bed

LOADS = LoadRange(1e6, 1e7)
WIDTH = 0.02
GOALS = [
    SearchGoal.ndr(duration_s=2.0, width=WIDTH),
    SearchGoal.pdr(0.01, duration_s=2.0, width=WIDTH),
]


def search(algorithm: type[Binary] | type[Mdr]) -> ControlledSearch:
    return ControlledSearch(algorithm(GOALS, LOADS), frame_size_bytes=64, directions=2)


@pytest.mark.parametrize("algorithm", [Binary, Mdr])
def test_a_search_finds_the_capacity_of_the_device(algorithm: type[Binary] | type[Mdr]) -> None:
    with bed(Device(capacity_fps=4e6)) as (testbed, _):
        result = run_search(search(algorithm), testbed)
    ndr, pdr = result.goals
    assert result.regular
    assert ndr.lower is not None
    assert ndr.lower.load_fps <= 4e6 <= ndr.upper.load_fps
    assert pdr.lower.load_fps <= 4e6 / 0.99 <= pdr.upper.load_fps


def test_late_counters_and_strays_leave_the_result_as_it_is() -> None:
    faults = Faults(received_late_s=0.3, extra_frames=2)
    with bed(Device(capacity_fps=4e6), faults) as (testbed, _):
        result = run_search(search(Mdr), testbed)
    ndr, _ = result.goals
    assert result.regular
    assert ndr.lower.load_fps <= 4e6 <= ndr.upper.load_fps


def test_a_tester_that_cannot_send_more_is_not_taken_for_the_device() -> None:
    with bed(Device(capacity_fps=8e6), Faults(most_fps=3e6)) as (testbed, _):
        result = run_search(search(Mdr), testbed)
    ndr, _ = result.goals
    assert Irregularity.TESTER_LIMITED in ndr.irregularities
    assert ndr.lower.load_fps <= 6.1e6


def test_a_server_that_dies_keeps_what_was_measured_and_the_search_goes_on_from_its_log(
    tmp_path: Path,
) -> None:
    log = tmp_path / "trials.jsonl"
    with bed(Device(capacity_fps=4e6), timeout_s=1.0, retries=0) as (testbed, server):

        def die_after_five(progress) -> None:
            if progress.trials == 5:
                server.faults.silent_to = "start_traffic"

        broken = run_search(search(Mdr), testbed, log=log, on_progress=die_after_five)
    assert broken.ending is Ending.TESTBED_FAILED
    assert "did not answer start_traffic" in broken.message
    assert len(broken.trials) == 5
    with bed(Device(capacity_fps=4e6)) as (testbed, server):
        result = run_search(search(Mdr), testbed, log=log)
    assert result.regular
    assert list(result.trials[:5]) == list(broken.trials)
    assert 2 * (len(result.trials) - 5) == sum(method == "start_traffic" for method, _ in server.calls)


def test_one_failed_trial_is_tried_again(tmp_path: Path) -> None:
    faults = Faults(silent_to="start_traffic", silent_times=1)
    with bed(Device(capacity_fps=4e6), faults, timeout_s=1.0) as (testbed, _):
        assert run_search(search(Mdr), testbed).regular
