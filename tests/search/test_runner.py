"""Driving a search: progress, timeouts, beds that fail, Ctrl-C, and resuming after any of these."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from weirlab.errors import (
    ImpossibleTrial,
    InputError,
    Interrupted,
    MissingCapability,
    RunFailed,
    TestbedError,
    TrialTimeout,
)
from weirlab.searches import ControlledSearch, Ending, Irregularity, LoadRange, SearchGoal, run_search
from weirlab.searches.log import read_trials, trial_to_json
from weirlab.searches.mdr import Mdr
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Knee, WarmUp
from weirlab.testbed.sim import DeviceTestbed

COLD = WarmUp(capacity_fps=4e5, deficit=0.2, time_constant_s=20.0)
"""A device whose answers depend on the time under test: a resumed search must not start it cold again."""


def search(width: float = 0.01) -> ControlledSearch:
    goals = [SearchGoal.ndr(duration_s=10.0, width=width), SearchGoal.pdr(duration_s=10.0, width=width)]
    return ControlledSearch(Mdr(goals, LoadRange(1e4, 1e6)), frame_size_bytes=64)


def device_bed() -> DeviceTestbed:
    return DeviceTestbed(COLD, overhead_s=0.5)


class Bed(DeviceTestbed):
    """A testbed on which something happens before some of the attempts."""

    def __init__(self, happens: Callable[[int], None]) -> None:
        super().__init__(COLD, overhead_s=0.5)
        self.attempts: list[TrialSpec] = []
        self._happens = happens

    def trial(self, spec: TrialSpec) -> Trial:
        self.attempts.append(spec)
        self._happens(len(self.attempts) - 1)
        return super().trial(spec)


def raising(error: BaseException, *attempts: int) -> Callable[[int], None]:
    def happens(attempt: int) -> None:
        if attempt in attempts:
            raise error

    return happens


UNDISTURBED = run_search(search(), device_bed())


def test_an_undisturbed_search_finds_the_device():
    assert UNDISTURBED.ending is Ending.FINISHED
    assert UNDISTURBED.regular
    assert UNDISTURBED.goals[0].lower.load_fps == pytest.approx(4e5, rel=0.02)
    assert len(UNDISTURBED.trials) > 12


def test_progress_is_told_before_the_first_and_after_every_trial():
    told = []
    result = run_search(search(), device_bed(), on_progress=told.append)
    assert len(told) == len(result.trials) + 1
    assert told[0].trial is None
    assert told[0].next.index == 0
    assert told[0].time_left_s is None
    for place, progress in enumerate(told[1:], start=1):
        assert progress.trial == result.trials[place - 1]
        assert progress.trials == place
        assert progress.resumed_trials == 0
        assert progress.time_used_s == pytest.approx(
            sum(t.effective_duration_s for t in result.trials[:place])
        )
    assert told[-1].next is None
    assert told[-1].time_left_s == 0.0
    assert told[-1].state.phase == "done"


@pytest.mark.parametrize(
    "error", [TestbedError("link down"), TrialTimeout("no answer"), ImpossibleTrial("received too much")]
)
def test_a_trial_that_fails_once_is_made_again(tmp_path, error):
    bed = Bed(raising(error, 0, 5))
    told = []
    result = run_search(search(), bed, log=tmp_path / "log", on_progress=told.append)
    assert result == UNDISTURBED
    assert bed.attempts[0] == bed.attempts[1]
    assert [progress.failure for progress in told if progress.failure] == [str(error)] * 2
    failures = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if "failure" in line]
    assert [entry["failure"]["index"] for entry in failures] == [0, 4]
    assert failures[0]["failure"]["kind"] == type(error).__name__


def test_a_trial_that_fails_twice_ends_the_search_and_keeps_what_was_measured(tmp_path):
    result = run_search(search(), Bed(raising(TestbedError("link down"), 8, 9)), log=tmp_path / "log")
    assert result.ending is Ending.TESTBED_FAILED
    assert result.message == "link down"
    assert list(result.trials) == list(UNDISTURBED.trials)[:8]
    assert read_trials(tmp_path / "log") == list(result.trials)
    for goal in result.goals:
        assert not goal.regular
        assert goal.remark.startswith("testbed failed: link down")
        assert Irregularity.UNFINISHED not in goal.irregularities
    assert result.goals[0].lower is not None


def test_a_trial_that_the_search_cannot_believe_is_made_again_and_then_ends_it():
    class Oversender(DeviceTestbed):
        def trial(self, spec: TrialSpec) -> Trial:
            sent = 2 * spec.intended_frames
            return Trial(
                spec=spec,
                intended_frames=spec.intended_frames,
                sent_frames=sent,
                received_frames=0,
                effective_duration_s=spec.duration_s,
                offered_load_fps=sent / spec.duration_s,
            )

    result = run_search(search(), Oversender(COLD))
    assert result.ending is Ending.TESTBED_FAILED
    assert "2000000 frames were sent where 1000000 were intended" in result.message
    assert result.trials == []


def test_a_simulation_that_breaks_a_law_ends_the_search_without_a_second_attempt():
    bed = Bed(raising(RunFailed("conservation broken"), 3))
    result = run_search(search(), bed)
    assert (result.ending, result.message) == (Ending.TESTBED_FAILED, "conservation broken")
    assert len(bed.attempts) == 4


@pytest.mark.parametrize("error", [InputError("no such port"), MissingCapability("needs root")])
def test_what_the_user_must_mend_is_raised_and_the_log_kept(tmp_path, error):
    with pytest.raises(type(error), match=str(error)):
        run_search(search(), Bed(raising(error, 4)), log=tmp_path / "log")
    assert read_trials(tmp_path / "log") == list(UNDISTURBED.trials)[:4]
    assert run_search(search(), device_bed(), log=tmp_path / "log") == UNDISTURBED


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("stopped")])
@pytest.mark.parametrize("attempt", [0, 7])
def test_ctrl_c_gives_an_unfinished_result_with_everything_measured(tmp_path, error, attempt):
    result = run_search(search(), Bed(raising(error, attempt)), log=tmp_path / "log")
    assert result.ending is Ending.INTERRUPTED
    assert list(result.trials) == list(UNDISTURBED.trials)[:attempt]
    assert all(
        goal.remark.startswith(f"interrupted: stopped after {attempt} trials") for goal in result.goals
    )
    assert run_search(search(), device_bed(), log=tmp_path / "log") == UNDISTURBED


def test_a_timeout_ends_the_search_before_the_trial_that_would_exceed_it(tmp_path):
    result = run_search(search(), device_bed(), log=tmp_path / "log", timeout_s=60.0)
    assert result.ending is Ending.TIMED_OUT
    used_s = result.time_s
    following = UNDISTURBED.trials[len(result.trials)]
    assert used_s <= 60.0 < used_s + following.spec.duration_s
    assert f"{used_s:.1f} of 60 s used, next trial 10 s" in result.goals[0].remark
    again = run_search(search(), device_bed(), log=tmp_path / "log", timeout_s=60.0)
    assert again == result
    assert run_search(search(), device_bed(), log=tmp_path / "log", timeout_s=6000.0) == UNDISTURBED


def test_a_timeout_that_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="timeout of a search must be above 0 s"):
        run_search(search(), device_bed(), timeout_s=0.0)


def test_resuming_from_any_prefix_of_the_log_gives_the_identical_rest(tmp_path):
    whole_log = tmp_path / "whole"
    assert run_search(search(), device_bed(), log=whole_log) == UNDISTURBED
    lines = whole_log.read_bytes().splitlines(keepends=True)
    for kept in range(len(lines) + 1):
        log = tmp_path / f"log-{kept}"
        log.write_bytes(b"".join(lines[:kept]))
        bed = Bed(lambda attempt: None)
        told = []
        assert run_search(search(), bed, log=log, on_progress=told.append) == UNDISTURBED
        resumed = max(0, kept - 1)
        assert len(bed.attempts) == len(UNDISTURBED.trials) - resumed
        assert told[0].trials == told[0].resumed_trials == resumed
        assert log.read_bytes() == whole_log.read_bytes()


def test_a_search_on_a_cold_device_would_notice_a_resume_that_forgets_the_time():
    """The test above can fail: the device does depend on the time under test."""

    class Forgetful(DeviceTestbed):
        def trial(self, spec: TrialSpec) -> Trial:
            return super().trial(TrialSpec(**{**vars(spec), "elapsed_s": 0.0}))

    specs = [trial.spec for trial in UNDISTURBED.trials]
    forgotten = [Forgetful(COLD).trial(spec).received_frames for spec in specs]
    assert forgotten != [trial.received_frames for trial in UNDISTURBED.trials]


def test_a_finished_search_is_not_measured_again(tmp_path):
    run_search(search(), device_bed(), log=tmp_path / "log")
    bed = Bed(raising(AssertionError("a trial was made"), *range(100)))
    assert run_search(search(), bed, log=tmp_path / "log") == UNDISTURBED


def test_the_log_of_another_search_is_refused(tmp_path):
    run_search(search(), device_bed(), log=tmp_path / "log", about={"seed": 1})
    with pytest.raises(InputError, match=r"search.goals\[0\].width was 0.01 there and is 0.02 here"):
        run_search(search(0.02), device_bed(), log=tmp_path / "log", about={"seed": 1})
    with pytest.raises(InputError, match=r"about.seed was 1 there and is 2 here"):
        run_search(search(), device_bed(), log=tmp_path / "log", about={"seed": 2})


def test_a_log_whose_trials_were_exchanged_is_refused(tmp_path):
    log = tmp_path / "log"
    run_search(search(), device_bed(), log=log)
    lines = log.read_bytes().splitlines(keepends=True)
    lines[3], lines[4] = lines[4], lines[3]
    log.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"trial 3 of \d+ is not the one that this search asks for"):
        run_search(search(), device_bed(), log=log)


def test_a_log_in_which_the_tester_sent_too_much_is_refused_by_its_name(tmp_path):
    log = tmp_path / "trials.jsonl"
    run_search(search(), device_bed(), log=log)
    lines = log.read_text().splitlines()
    entry = json.loads(lines[2])
    entry["trial"]["sent_frames"] *= 2
    log.write_text("\n".join([*lines[:2], json.dumps(entry), *lines[3:]]) + "\n")
    with pytest.raises(
        InputError, match=r"trials\.jsonl: trial 1: \d+ frames were sent .*the log was edited"
    ):
        run_search(search(), device_bed(), log=log)


def test_a_log_with_trials_after_the_end_is_refused(tmp_path):
    log = tmp_path / "log"
    run_search(search(), device_bed(), log=log)
    with log.open("ab") as file:
        file.write(log.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(InputError, match="asked is no trial"):
        run_search(search(), device_bed(), log=log)


def test_a_bed_that_never_loses_ends_with_no_upper_bound_seen():
    result = run_search(search(), DeviceTestbed(Knee(capacity_fps=1e12)))
    assert result.ending is Ending.FINISHED
    assert all(goal.remark.startswith("no upper bound seen") for goal in result.goals)


SLOW_SEARCH = """
    import json, sys, time
    from pathlib import Path
    from weirlab.searches import ControlledSearch, LoadRange, SearchGoal, run_search
    from weirlab.searches.log import trial_to_json
    from weirlab.searches.mdr import Mdr
    from weirlab.testbed.devices import WarmUp
    from weirlab.testbed.sim import DeviceTestbed

    class Slow(DeviceTestbed):
        def trial(self, spec):
            time.sleep(0.02)
            return super().trial(spec)

    goals = [SearchGoal.ndr(duration_s=10.0, width=0.01), SearchGoal.pdr(duration_s=10.0, width=0.01)]
    search = ControlledSearch(Mdr(goals, LoadRange(1e4, 1e6)), frame_size_bytes=64)
    device = WarmUp(capacity_fps=4e5, deficit=0.2, time_constant_s=20.0)
    result = run_search(search, Slow(device, overhead_s=0.5), log=Path(sys.argv[1]))
    print(json.dumps({
        "trials": [trial_to_json(trial) for trial in result.trials],
        "bounds": [[goal.lower.load_fps, goal.upper.load_fps] for goal in result.goals],
    }))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_a_search_that_is_killed_again_and_again_ends_with_the_result_of_an_undisturbed_one(tmp_path):
    script, log = tmp_path / "search.py", tmp_path / "log"
    script.write_text(textwrap.dedent(SLOW_SEARCH))
    kills = 0
    for lines_to_wait_for in (4, 11, None):
        process = subprocess.Popen([sys.executable, str(script), str(log)], stdout=subprocess.PIPE, text=True)
        try:
            if lines_to_wait_for is not None:
                deadline = time.monotonic() + 60.0
                while not (log.exists() and log.read_bytes().count(b"\n") >= lines_to_wait_for):
                    assert process.poll() is None, "ended before it could be killed"
                    assert time.monotonic() < deadline
                    time.sleep(0.002)
                os.kill(process.pid, signal.SIGKILL)
                assert process.wait(60) == -signal.SIGKILL
                kills += 1
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
    assert kills == 2
    answer = json.loads(printed)
    assert answer["trials"] == [trial_to_json(trial) for trial in UNDISTURBED.trials]
    assert answer["bounds"] == [[goal.lower.load_fps, goal.upper.load_fps] for goal in UNDISTURBED.goals]
    assert read_trials(log) == list(UNDISTURBED.trials)


def test_a_process_that_is_interrupted_keeps_its_log_and_says_how_far_it_came(tmp_path: Path):
    script, log = tmp_path / "search.py", tmp_path / "log"
    script.write_text(textwrap.dedent(SLOW_SEARCH).replace('"bounds"', '"ending": result.ending, "bounds"'))
    script.write_text(
        script.read_text().replace("goal.lower.load_fps", "0").replace("goal.upper.load_fps", "0")
    )
    process = subprocess.Popen([sys.executable, str(script), str(log)], stdout=subprocess.PIPE, text=True)
    try:
        while not (log.exists() and log.read_bytes().count(b"\n") >= 5):
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    answer = json.loads(printed)
    assert answer["ending"] == "interrupted"
    assert len(answer["trials"]) == len(read_trials(log)) < len(UNDISTURBED.trials)
