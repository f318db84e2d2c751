"""A tester does not outlive the search that started it; one that does keeps the search from going on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weirlab.errors import InputError
from weirlab.searches import ControlledSearch, LoadRange, SearchGoal, run_search
from weirlab.searches.binary import Binary
from weirlab.testbed.command import CommandTestbed

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are those of POSIX")

SEARCH = """
import sys
from pathlib import Path
from weirlab.searches import ControlledSearch, LoadRange, SearchGoal, run_search
from weirlab.searches.binary import Binary
from weirlab.testbed.command import CommandTestbed

goals = [SearchGoal.ndr(duration_s=1.0, width=0.1)]
search = ControlledSearch(Binary(goals, LoadRange(1e3, 1e6)), frame_size_bytes=64)
run_search(search, CommandTestbed([sys.executable, sys.argv[1]]), log=Path(sys.argv[2]))
"""
HANGS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"] {options})
with open("pids.part", "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
os.replace("pids.part", "pids")
time.sleep(600)
"""
ANSWERS = 'print(\'{"sent_frames": 1000000, "received_frames": 1000000, "intended_frames": 1000000}\')'
PATIENCE_S = 60.0
"""A bound against hanging, not a measurement."""


def wait_until(true: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def is_gone(process: int) -> bool:
    """Whether it has ended, waited for or not."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@contextlib.contextmanager
def killed_search(place: Path, tester: str) -> Iterator[list[int]]:
    """The processes of a tester whose search was killed in its first trial."""
    (place / "tester.py").write_text(textwrap.dedent(tester))
    search = subprocess.Popen(
        [sys.executable, "-c", SEARCH, "tester.py", "trials.jsonl"], cwd=place, start_new_session=True
    )
    pids: list[int] = []
    try:
        wait_until(lambda: (place / "pids").exists() or search.poll() is not None)
        pids = [int(pid) for pid in (place / "pids").read_text().split()]
        search.send_signal(signal.SIGKILL)
        assert search.wait(PATIENCE_S) == -signal.SIGKILL
        yield pids
    finally:
        search.kill()
        search.wait()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def go_on(place: Path) -> None:
    """Resume the search with a tester that answers once."""
    (place / "answers.py").write_text(ANSWERS)
    goals = [SearchGoal.ndr(duration_s=1.0, width=0.1)]
    search = ControlledSearch(Binary(goals, LoadRange(1e3, 1e6)), frame_size_bytes=64)
    bed = CommandTestbed([sys.executable, str(place / "answers.py")])
    try:
        run_search(search, bed, log=place / "trials.jsonl")
    finally:
        bed.close()


def test_a_tester_and_its_children_die_with_a_search_that_is_killed(tmp_path: Path) -> None:
    with killed_search(tmp_path, HANGS.format(options="")) as pids:
        assert len(pids) == 2
        wait_until(lambda: all(is_gone(pid) for pid in pids))
        go_on(tmp_path)


def test_a_tester_that_escaped_keeps_the_search_from_going_on_and_is_named(tmp_path: Path) -> None:
    """It left the process group, with the lock that it had inherited."""
    tester = HANGS.format(options=", start_new_session=True, close_fds=False")
    with killed_search(tmp_path, tester) as (inside, escaped):
        wait_until(lambda: is_gone(inside))
        assert not is_gone(escaped)
        with pytest.raises(InputError, match="another search is writing this log") as caught:
            go_on(tmp_path)
        if Path("/proc/self/fd").exists():
            assert f"(process {escaped}); wait until it ends, or end it:  kill {escaped}" in str(caught.value)
        os.kill(escaped, signal.SIGKILL)
        wait_until(lambda: is_gone(escaped))
        go_on(tmp_path)


def test_a_testbed_that_is_not_closed_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    script = """
    import sys
    from weirlab.testbed import TrialSpec
    from weirlab.testbed.command import CommandTestbed
    bed = CommandTestbed([sys.executable, sys.argv[1]])
    bed.trial(TrialSpec(index=0, intended_load_fps=1e6, duration_s=1.0, frame_size_bytes=64))
    print(bed._watchdog._shell.pid)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "answers.py")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    wait_until(lambda: is_gone(int(done.stdout)))
    assert done.stderr == ""
