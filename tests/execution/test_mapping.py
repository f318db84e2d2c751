"""Work on all CPUs: order, independence of the number of workers, and how it ends when something fails."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import pytest

from weirlab.errors import RunFailed
from weirlab.execution.mapping import mapped


def doubled(number: int) -> int:
    return 2 * number


def worker_that_dies(number: int) -> int:
    if number == 30:
        os._exit(3)
    return number


def worker_that_fails(number: int) -> int:
    return 1 // (number - 25)


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_results_stand_in_the_order_of_the_items(processes):
    assert mapped(doubled, range(95), processes=processes) == [2 * number for number in range(95)]


def test_progress_ends_at_all_items():
    told: list[tuple[int, int]] = []
    mapped(doubled, range(50), processes=1, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(20, 50), (40, 50), (50, 50)]


def test_a_worker_takes_as_many_at_once_as_it_is_told():
    told: list[int] = []
    mapped(doubled, range(10), processes=1, at_once=4, on_progress=lambda done, _: told.append(done))
    assert told == [4, 8, 10]


def test_no_items_are_no_work():
    assert mapped(doubled, []) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_a_worker_is_passed_on(processes):
    with pytest.raises(ZeroDivisionError):
        mapped(worker_that_fails, range(60), processes=processes)


def test_a_worker_that_dies_is_said_to_have_died():
    with pytest.raises(RunFailed, match="a worker process ended without an answer"):
        mapped(worker_that_dies, range(60), processes=2)


def worker_that_dies_once(mark: str, number: int) -> int:
    if number == 30 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(3)
    return number


def test_a_worker_that_dies_is_replaced_and_nothing_is_missing(tmp_path):
    function = partial(worker_that_dies_once, str(tmp_path / "died"))
    assert mapped(function, range(60), processes=2) == list(range(60))
    assert (tmp_path / "died").exists()


def test_another_executor_gives_the_same():
    assert mapped(doubled, range(45), on="local:2") == mapped(doubled, range(45), processes=1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_workers_that_are_interrupted_while_they_begin_do_not_complain(tmp_path):
    """As long as a worker imports what it needs it cannot ignore Ctrl-C by itself."""
    work = tmp_path / "slow_to_begin.py"
    work.write_text(
        textwrap.dedent(
            """
            import multiprocessing, pathlib, sys, time

            if multiprocessing.parent_process():
                pathlib.Path(sys.argv[1]).touch()
                time.sleep(1.0)

            def work(number):
                return number
            """
        )
    )
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from slow_to_begin import work
            from weirlab.execution.mapping import mapped

            try:
                mapped(work, range(100_000), processes=2)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """
        )
    )
    begun = tmp_path / "begun"
    process = subprocess.Popen(
        [sys.executable, str(script), str(begun)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60.0
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (out, err) == ("interrupted\n", "")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_an_interruption_ends_the_workers_and_is_passed_on(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(
        textwrap.dedent(
            """
            import time
            from weirlab.execution.mapping import mapped

            try:
                slow = [0.02] * 100_000
                mapped(time.sleep, slow, processes=2, on_progress=lambda *_: print("on", flush=True))
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "on\n"
        # As a terminal does: to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        # The whole work takes a thousand seconds.
        rest, _ = process.communicate(timeout=60)
        assert rest.endswith("interrupted\n")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_workers_do_not_run_the_script_that_started_them_again(tmp_path):
    """As `multiprocessing` does with a script whose calls are not below `if __name__ == "__main__"`."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import weirlab

            print("begun", flush=True)
            network = {"kind": "star", "hosts": 2, "link": {"rate": "10 Gbit/s"}}
            source = {"kind": "poisson", "load": "40 %", "frame_size": "1500 B"}
            load = {"from": "host-0", "to": "host-1", "source": source}
            study = weirlab.study(
                {
                    "weirlab": 1,
                    "name": "unguarded",
                    "network": network,
                    "traffic": {"load": load},
                    "run": {"duration": "100 us"},
                    "study": {"factors": {"traffic.load.source.load": ["20 %", "40 %"]}},
                },
                on="local:2",
            )
            print(study.tables.runs.height, flush=True)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n2\n", "")
