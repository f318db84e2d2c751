"""Live measurements on one machine take turns."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from weirlab.errors import TestbedError
from weirlab.testbed.turns import alone_on_this_machine, runtime_directory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks of Unix")

HOLDER = """
import time
from weirlab.testbed import turns

with turns.alone_on_this_machine():
    print("mine", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A place for the lock that no real measurement uses."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(directory):
    """Another process that has the turn and keeps it."""
    command = [sys.executable, "-c", HOLDER]
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


def test_the_lock_is_this_users_own(directory):
    with alone_on_this_machine(longest_wait_s=1.0):
        told = (directory / "weirlab").stat()
        lock = (directory / "weirlab" / "live.lock").stat()
    assert (told.st_mode & 0o777, lock.st_mode & 0o777) == (0o700, 0o600)
    assert told.st_uid == lock.st_uid == os.geteuid()


@pytest.mark.parametrize("what", ["directory", "lock"])
def test_a_link_in_the_place_of_the_lock_is_not_followed(directory, tmp_path_factory, what):
    goal = tmp_path_factory.mktemp("goal")
    if what == "directory":
        (directory / "weirlab").symlink_to(goal)
    else:
        (directory / "weirlab").mkdir(0o700)
        (directory / "weirlab" / "live.lock").symlink_to(goal / "made")
    with pytest.raises(TestbedError, match="cannot lie there"), alone_on_this_machine(longest_wait_s=1.0):
        pytest.fail("followed a link")
    assert list(goal.iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_directory_that_others_may_use_is_refused_with_what_to_do(directory, mode):
    (directory / "weirlab").mkdir()
    (directory / "weirlab").chmod(mode)
    with (
        pytest.raises(TestbedError, match=rf"weirlab: others may use it \(mode {mode:o}\); remove it"),
        alone_on_this_machine(longest_wait_s=1.0),
    ):
        pytest.fail("shared with others")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files away")
def test_a_directory_of_somebody_else_is_refused(directory):
    (directory / "weirlab").mkdir(0o700)
    os.chown(directory / "weirlab", 12345, 12345)
    with (
        pytest.raises(TestbedError, match=r"belongs to another user \(12345\)"),
        alone_on_this_machine(longest_wait_s=1.0),
    ):
        pytest.fail("somebody else's")


def test_without_a_runtime_directory_an_ordinary_user_has_one_among_temporary_files(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runtime_directory() == tmp_path / "weirlab-4711"
