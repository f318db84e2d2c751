"""dpdk-testpmd between a sender and a receiver: the second real device."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weirlab.errors import InputError, MissingCapability, TestbedError
from weirlab.testbed.linux_router import THERE, Placement
from weirlab.testbed.netns import NetnsTestbed
from weirlab.testbed.testpmd import TestpmdRouter

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="needs dpdk-testpmd (Debian: dpdk-dev)"),
]


@pytest.fixture
def testpmd(two_cpus: None) -> Iterator[NetnsTestbed]:
    try:
        made = NetnsTestbed(router="testpmd", settle_s=0.1)
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made:
        yield made


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[int]]:
    """The dpdk-testpmd processes that descend from this test, orphans too: they inherit a mark in their
    environment. Other tests start theirs at the same time."""
    name, mark = "WEIRLAB_TEST_DESCENDANT", uuid.uuid4().hex
    monkeypatch.setenv(name, mark)

    def marked() -> set[int]:
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while we looked
                ours = f"{name}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
                if ours and (process / "comm").read_text().startswith("dpdk-testpmd"):
                    found.add(int(process.name))
        return found

    return marked


def test_frames_pass_unchanged_and_are_counted(testpmd, trial_spec):
    """Where a machine takes its CPU away for a tenth of a second, testpmd loses a fifth of such a trial: each
    trial must account for every frame, and one of five must come through."""
    passed = 0.0
    for index in range(5):
        trial = testpmd.trial(trial_spec(10_000, duration_s=0.5, index=index))
        places = ("lost_at_entrance", "lost_at_exit", "lost_elsewhere")
        assert trial.sent_frames == trial.intended_frames == 5000
        assert trial.received_frames + sum(trial.facts[place] for place in places) == trial.sent_frames
        assert trial.duplicated_frames == 0
        passed = max(passed, trial.received_frames / trial.sent_frames)
        if passed > 0.9:
            return
    pytest.fail(f"the best of five trials passed {passed:.1%} of the frames")


def test_a_load_beyond_it_loses_frames_in_the_device_and_not_in_the_tester(testpmd, trial_spec):
    trial = testpmd.trial(trial_spec(600_000, duration_s=0.5))
    assert trial.loss_ratio > 0.01
    assert trial.facts["lost_elsewhere"] + trial.facts["lost_at_entrance"] > 0


def test_the_kernel_does_not_forward_in_its_place(testpmd, trial_spec):
    before = testpmd.trial(trial_spec(5_000)).received_frames
    testpmd._router._forwarder.close()
    with pytest.raises(TestbedError, match="dpdk-testpmd ended"):
        testpmd.trial(trial_spec(5_000))
    (frames,) = testpmd._measure(trial_spec(5_000), (THERE,), [1500])["directions"]
    assert before > 0
    assert frames["received"] == 0


def test_it_copies_frames_both_ways(testpmd, trial_spec):
    trial = testpmd.trial(trial_spec(5_000, directions=2))
    assert [each.received_frames for each in trial.per_direction] == [750, 750]


def test_frames_larger_than_its_slots_are_refused(testpmd, trial_spec):
    assert testpmd.trial(trial_spec(1_000, frame_size_bytes=1518)).received_frames > 0
    with pytest.raises(InputError, match="64 to 1518 B"):
        testpmd.trial(trial_spec(1_000, frame_size_bytes=1519))


def test_nothing_runs_after_it_was_closed(two_cpus, running):
    with NetnsTestbed(router="testpmd"):
        assert running()
    assert not running()


def test_it_ends_with_a_process_that_is_killed(two_cpus, running, tmp_path):
    script = tmp_path / "hold.py"
    script.write_text(
        "import time\n"
        "from weirlab.testbed.netns import NetnsTestbed\n"
        "bed = NetnsTestbed(router='testpmd')\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"up\n"
        assert running()
        holder.kill()
        give_up = time.monotonic() + 10.0
        while running() and time.monotonic() < give_up:
            time.sleep(0.1)
    assert not running()


def test_it_ends_by_itself_after_its_longest_time(two_cpus):
    router = TestpmdRouter(Placement.on([0, 1]).router, longest_s=4.0)
    try:
        router.check()
        time.sleep(4.5)
        with pytest.raises(TestbedError, match="ended with code 124"):
            router.check()
    finally:
        router.close()


def test_one_cpu_is_too_few():
    with pytest.raises(MissingCapability, match="two CPUs"):
        TestpmdRouter(None)


def test_without_the_program_the_message_says_where_to_get_it(two_cpus, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingCapability, match="apt-get install dpdk-dev"):
        NetnsTestbed(router="testpmd")
