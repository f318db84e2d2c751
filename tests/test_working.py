"""Who works on a result, and how it is asked to end."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from weirlab.errors import InputError
from weirlab.results import new_directory
from weirlab.working import NOTE, PROGRESS, ProgressLog, at_work, left_over, stop, work_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX")

WORKER = """
import signal, sys, time
from pathlib import Path
from weirlab.working import at_work
{before}
try:
    with at_work(Path(sys.argv[1]), "run", "waiting"):
        print("working", flush=True)
        while True:
            time.sleep(60)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.fixture
def started():
    def start(directory, before="signal.signal(signal.SIGINT, signal.default_int_handler)"):
        command = [sys.executable, "-c", WORKER.format(before=before), str(directory)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "working\n"
        return process

    processes = []
    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_note_says_who_works_and_disappears_with_the_work(tmp_path):
    with at_work(tmp_path, "search", "ndr"):
        ProgressLog(tmp_path, None)(1, 10)
        work = work_in(tmp_path)
        assert (work.kind, work.name, work.pid) == ("search", "ndr", os.getpid())
        assert work.goes_on
        assert (tmp_path / PROGRESS).exists()
    assert list(tmp_path.iterdir()) == []
    assert not replace(work, born="another boot:1").goes_on


def test_work_is_stopped_as_by_ctrl_c(tmp_path, started):
    process = started(tmp_path)
    assert stop(tmp_path).pid == process.pid
    assert process.communicate(timeout=60)[0] == "stopped\n"
    assert not (tmp_path / NOTE).exists()
    with pytest.raises(InputError, match="nothing works there"):
        stop(tmp_path)


def test_work_that_a_shell_made_deaf_to_ctrl_c_is_stopped_by_sigterm(tmp_path, started):
    handler = "signal.signal(signal.SIGTERM, signal.default_int_handler)"
    process = started(tmp_path, f"signal.signal(signal.SIGINT, signal.SIG_IGN); {handler}")
    stop(tmp_path)
    assert process.communicate(timeout=60)[0] == "stopped\n"


def test_a_process_that_has_the_number_of_the_worker_is_left_alone(tmp_path, started):
    process = started(tmp_path)
    note = json.loads((tmp_path / NOTE).read_text())
    (tmp_path / NOTE).write_text(json.dumps({**note, "born": note["born"] + "0"}))
    with pytest.raises(InputError, match=f"process {process.pid}, which worked there, has ended"):
        stop(tmp_path)
    assert process.poll() is None


def test_a_worker_that_was_killed_works_no_more_and_its_note_is_in_nobodys_way(tmp_path, started):
    process = started(tmp_path)
    note = tmp_path / NOTE
    assert not left_over(note)
    with pytest.raises(InputError, match="holds other files"):
        new_directory("again", tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not work_in(tmp_path).goes_on
    with pytest.raises(InputError, match="has ended"):
        stop(tmp_path)
    assert left_over(note)
    assert new_directory("again", tmp_path) == tmp_path


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"pid": 1}', '{"kind": 1, "name": 1, "pid": "x", "born": 1, "started": 1}']
)
def test_what_is_no_note_says_nothing(tmp_path, text):
    (tmp_path / NOTE).write_text(text)
    assert work_in(tmp_path) is None
    with pytest.raises(InputError, match="nothing works there"):
        stop(tmp_path)


def test_progress_is_written_now_and_then_and_news_are_never_lost(tmp_path):
    told = []
    log = ProgressLog(tmp_path, lambda done, total: told.append((done, total)))
    for done in range(2000):
        log.news(0, [(done, 1, 2, 3, 4, 5)])
        log(done, 2000)
    log._next = 0.0
    log(2000, 2000)
    lines = [json.loads(line) for line in (tmp_path / PROGRESS).read_text().splitlines()]
    assert len(lines) < 2000
    assert told[-1] == (2000, 2000)
    assert [row[1] for line in lines for row in line["news"]] == list(range(2000))
