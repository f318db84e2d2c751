"""Live measurements on one machine take turns."""

from __future__ import annotations

import subprocess
import sys

import pytest

from weirlab.errors import TestbedError
from weirlab.testbed import turns
from weirlab.testbed.turns import alone_on_this_machine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks of Unix")

HOLDER = """
import sys, time
from pathlib import Path
from weirlab.testbed import turns

turns.LOCK_DIRECTORY = Path(sys.argv[1])
with turns.alone_on_this_machine():
    print("mine", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A place for the lock that no real measurement uses."""
    monkeypatch.setattr(turns, "LOCK_DIRECTORY", tmp_path)
    return tmp_path


@pytest.fixture
def holder(directory):
    """Another process that has the turn and keeps it."""
    command = [sys.executable, "-c", HOLDER, str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    yield process
    process.kill()
    process.communicate()


def test_a_measurement_waits_for_another_one_and_says_when_it_waited_too_long(holder):
    with (
        pytest.raises(TestbedError, match=r"did not end within 0\.1 s"),
        alone_on_this_machine(longest_wait_s=0.1),
    ):
        pytest.fail("two measurements at once")


def test_the_turn_of_a_process_that_was_killed_is_free(holder):
    holder.kill()
    holder.wait(timeout=5)
    with alone_on_this_machine(longest_wait_s=1.0):
        assert holder.returncode != 0


def test_the_turn_comes_back_after_an_error():
    with pytest.raises(ZeroDivisionError), alone_on_this_machine():
        raise ZeroDivisionError
    with alone_on_this_machine(longest_wait_s=1.0):
        pass
