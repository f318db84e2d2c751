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
    script = tmp_path / "slow_to_begin.py"
    script.write_text(
        textwrap.dedent(
            """
            import pathlib, sys, time
            from weirlab.execution.mapping import mapped

            if __name__ != "__main__":
                pathlib.Path(sys.argv[1]).touch()
                time.sleep(1.0)

            def work(number):
                return number

            if __name__ == "__main__":
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

            def slow(number):
                time.sleep(0.02)

            if __name__ == "__main__":
                try:
                    mapped(slow, range(100_000), processes=2, on_progress=lambda *_: print("on", flush=True))
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
