"""Whoever works, however often they die: every point once, and the same results.

Each fault that a study survives, and the test with real processes that shows it, "both" here and on Dask:

| fault | test (`test_...`) |
|---|---|
| a worker killed twice | `a_worker_that_dies_twice_loses_nothing_and_counts_nothing_twice`, both |
| a run that kills every worker | `a_run_that_kills_every_worker_is_given_up_and_the_others_are_not` |
| the scheduler is killed and restarted | `a_scheduler_that_is_killed_and_comes_back_loses_nothing` |
| the runner is killed | `a_runner_that_is_killed_leaves_no_processes_and_the_next_goes_on`, both |
| the disk is full | `a_disk_that_is_full_loses_nothing_that_was_written`: a small file system |
| a run raises | `a_run_that_raises_fails_and_the_others_do_not`, both |
| a run hangs, or eats memory | `a_run_that_needs_too_much_fails_and_the_others_do_not`, both |
| a corrupt result file | `a_damaged_result_is_made_again_and_nothing_else` |
| a clock that jumps | `clocks_of_workers_that_jump_change_no_result`, both |
| workers of another version | `a_worker_with_other_sources_is_given_nothing` |
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from execution_plans import MadePlan
from weirlab.errors import InputError, WeirlabError
from weirlab.execution import Limits, carry, executors as executors_module, opened
from weirlab.execution.batches import OtherEngine
from weirlab.store import Store

needs_processes = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")


@pytest.fixture(autouse=True)
def processes_find_the_plan(monkeypatch):
    here = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store", create=True)


class Dask:
    """A scheduler and its workers, in processes of their own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    def _started(self, name: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{name}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{name}", *words, "--no-dashboard"],
            cwd=self._folder,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        log.close()
        self._processes.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        self.scheduler = self._started("scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        return self.scheduler

    def start_workers(self, many: int = 2, **environment: str) -> subprocess.Popen[bytes]:
        return self._started(
            "worker", self.address, "--nworkers", str(many), "--nthreads", "1", **environment
        )

    def close(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def dask(tmp_path):
    pytest.importorskip("distributed")
    folder = tmp_path / "dask"
    folder.mkdir()
    cluster = Dask(folder)
    yield cluster
    cluster.close()


@pytest.fixture(params=["local", "dask"])
def on(request):
    if request.param == "local":
        return "local:2"
    cluster = request.getfixturevalue("dask")
    cluster.start_workers()
    return cluster.address


def statuses(store, plan_id):
    return dict(store.rows(plan=plan_id)["status"].value_counts().iter_rows())


@needs_processes
def test_results_are_the_same_whoever_executes_them_in_whatever_batches(store, tmp_path, on):
    plan = MadePlan(200, 5, 0.0005)
    carried = carry(plan, store, on)
    assert (carried.done, carried.failed, carried.lost) == (1000, 0, 0)
    here = Store.open(tmp_path / "here", create=True)
    carry(plan, here)
    assert store.digest(carried.plan) == here.digest(carried.plan)


@needs_processes
def test_a_run_that_raises_fails_and_the_others_do_not(store, on):
    carried = carry(MadePlan(30, faults={"7": "raise"}), store, on)
    assert (carried.done, carried.failed) == (29, 1)
    assert carried.first_failure == "point 7, replicate 0: ZeroDivisionError: made so"
    assert statuses(store, carried.plan) == {"ok": 29, "failed": 1}


GONE = r"worker tcp://127\.0\.0\.1:\d+ is gone; \d of its batches start again"


@needs_processes
def test_a_worker_that_dies_twice_loses_nothing_and_counts_nothing_twice(store, tmp_path, on):
    plan = MadePlan(40, seconds=0.01, faults={"7": "2 die"}, marks=str(tmp_path))
    carried = carry(plan, store, on)
    assert (carried.done, carried.failed) == (40, 0)
    assert store.rows(plan=carried.plan)["point"].to_list() == list(range(40))
    if on.startswith("local"):
        assert carried.lost >= 2
        assert any("a batch was lost: its process ended" in note for note in carried.notes)
    else:
        gone = [note for note in carried.notes if " is gone; " in note]
        assert gone, carried.notes
        assert all(re.fullmatch(GONE, note) for note in gone), gone


@needs_processes
def test_a_run_that_kills_every_worker_is_given_up_and_the_others_are_not(store, tmp_path):
    plan = MadePlan(20, seconds=0.01, faults={"7": "die"}, marks=str(tmp_path))
    carried = carry(plan, store, "local:2")
    assert (carried.done, carried.failed) == (19, 1)
    assert statuses(store, carried.plan) == {"ok": 19, "died": 1}
    assert "its worker ended without a word, 3 times" in carried.first_failure


@needs_processes
@pytest.mark.parametrize(
    ("fault", "limits", "status", "message"),
    [
        ("dawdle", Limits(seconds=0.5), "timed-out", r"took longer than 0\.5 s"),
        ("hang", Limits(seconds=0.5), "timed-out", r"took longer than 0\.5 s"),
        ("eat", Limits(memory_bytes=700_000_000), "memory", "MB of memory, and 700 MB is allowed"),
    ],
)
def test_a_run_that_needs_too_much_fails_and_the_others_do_not(store, on, fault, limits, status, message):
    carried = carry(MadePlan(12, faults={"7": fault}), store, on, limits=limits)
    assert statuses(store, carried.plan) == {"ok": 11, status: 1}
    (reason,) = store.rows(plan=carried.plan).filter(status=status)["reason"].to_list()
    import re

    assert re.search(message, reason)


@needs_processes
def test_a_failed_run_is_tried_again_by_the_next_runner_and_a_finished_one_is_not(store, tmp_path):
    plan = MadePlan(10, faults={"3": "1 raise"}, marks=str(tmp_path))
    assert carry(plan, store).failed == 1
    again = carry(plan, store)
    assert (again.kept, again.done, again.failed) == (9, 1, 0)
    assert {file.read_text() for file in tmp_path.glob("?-0")} == {"x", "xx"}
    assert (tmp_path / "3-0").read_text() == "xx"


@needs_processes
def test_two_runners_on_one_store_share_the_work_and_find_the_same(store, tmp_path):
    plan = MadePlan(300, seconds=0.03, marks=str(tmp_path))
    others = []
    thread = threading.Thread(target=lambda: others.append(carry(plan, Store.open(store.url), "local:1")))
    thread.start()
    carried = carry(plan, store, "local:1")
    thread.join()
    assert store.rows(plan=carried.plan)["point"].to_list() == list(range(300))
    ran = sum(len(file.read_text()) for file in tmp_path.glob("*-0"))
    # How much is shared depends on when each writes; nothing at all would be 300 for each.
    assert ran < 600, "both did everything"


@needs_processes
def test_a_runner_that_is_killed_leaves_no_processes_and_the_next_goes_on(store, tmp_path, on):
    script = tmp_path / "runner.py"
    script.write_text(
        "import sys\n"
        "from execution_plans import MadePlan\n"
        "from weirlab.execution import carry\n"
        "from weirlab.store import Store\n"
        "if __name__ == '__main__':\n"
        f"    carry(MadePlan(400, seconds=0.05), Store.open({store.url!r}), {on!r})\n"
    )
    runner = subprocess.Popen([sys.executable, str(script)])
    give_up = time.monotonic() + 60
    while len(store.objects()) < 3 and time.monotonic() < give_up:
        time.sleep(0.05)
    workers = psutil.Process(runner.pid).children(recursive=True)
    runner.kill()
    runner.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive
    carried = carry(MadePlan(400, seconds=0.05), store, "local:3" if on.startswith("local") else on)
    assert carried.kept > 0
    assert carried.kept + carried.done == 400
    assert store.rows(plan=carried.plan).height == 400


@needs_processes
def test_workers_that_end_while_they_are_stopped_leave_no_traceback(monkeypatch):
    """SIGTERM to a group of processes ends them at once, as the runner has them hand work back."""
    thrown = []
    monkeypatch.setattr(threading, "excepthook", thrown.append)
    executor = opened("local:1")
    for seconds in (60, 0, 0):
        executor.submit(time.sleep, seconds)
    children = psutil.Process().children
    give_up = time.monotonic() + 60
    while not (workers := [each for each in children() if "spawn_main" in " ".join(each.cmdline())]):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    executor.stop()
    workers[-1].terminate()
    ended = []
    while executor.busy and time.monotonic() < give_up:
        ended += executor.ended(0.2)
    executor.close()
    assert thrown == []
    assert [each.lost for each in ended] == ["its process ended"] * 3


@needs_processes
def test_a_full_disk_ends_the_work_with_its_reason_and_leaves_a_whole_store(store, monkeypatch):
    carry(MadePlan(5), store)

    def full(_):
        raise OSError(28, "No space left on device")

    from weirlab.store import places

    with monkeypatch.context() as patched:
        patched.setattr(places.os, "fsync", full)
        with pytest.raises(WeirlabError, match="No space left on device"):
            carry(MadePlan(20), store)
    carried = carry(MadePlan(20), store)
    assert store.rows(plan=carried.plan).height == 20
    assert store.damaged == {}


FULL = """
import os, shutil, sys
from execution_plans import MadePlan
from weirlab.errors import WeirlabError
from weirlab.execution import carry
from weirlab.store import Store

if __name__ == "__main__":
    small, kept, on = sys.argv[1:]
    store = Store.open(small, create=True)
    filler = open(os.path.join(small, "filler"), "wb", buffering=0)
    carry(MadePlan(30), store, on)
    try:
        while True:
            filler.write(bytes(4096))
    except OSError as error:
        print(error.strerror)
    try:
        carry(MadePlan(60, seconds=0.01), store, on)
    except WeirlabError as error:
        print(error)
    print(store.rows().unique("point").height, store.damaged)
    filler.truncate(0)
    carried = carry(MadePlan(60, seconds=0.01), store, on)
    print(carried.done + carried.kept, store.rows(plan=carried.plan).height, store.damaged)
    shutil.copytree(small, kept)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces of Linux")
@pytest.mark.parametrize("workers", ["local:1", "local:2"])
def test_a_disk_that_is_full_loses_nothing_that_was_written(tmp_path, workers):
    script, small = tmp_path / "full.py", tmp_path / "small"
    script.write_text(FULL)
    small.mkdir()
    run = f"exec {sys.executable} {script} {small} {tmp_path}/kept {workers}"
    mount = f"mount -t tmpfs -o size=2m none {small} && {run}"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, timeout=300)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    filled, failed, before, after = done.stdout.splitlines()
    assert filled == "No space left on device"
    assert "cannot be written: No space left on device" in failed
    assert before == "30 {}"
    assert after == "60 60 {}"
    here = Store.open(tmp_path / "here", create=True)
    plan = carry(MadePlan(60, seconds=0.01), here).plan
    assert Store.open(tmp_path / "kept").digest(plan) == here.digest(plan)


@needs_processes
def test_a_damaged_result_is_made_again_and_nothing_else(store, tmp_path):
    plan = MadePlan(40, seconds=0.02, marks=str(tmp_path))
    first = carry(plan, store, "local:2")
    digest = store.digest(first.plan)
    names = store.objects()
    assert len(names) > 1
    lost = store.read(names[:1])["point"].to_list()
    (path,) = Path(store.url).rglob(f"{names[0]}*")
    path.write_bytes(path.read_bytes()[:-9])
    again = carry(plan, Store.open(store.url), "local:2")
    assert (again.kept, again.done) == (40 - len(lost), len(lost))
    assert Store.open(store.url).digest(first.plan) == digest
    for point in range(40):
        assert (tmp_path / f"{point}-0").read_text() == ("xx" if point in lost else "x")


JUMPING = """
import time
real, began = time.time, time.monotonic()
time.time = lambda: real() + (0, -3600, 3600)[int(time.monotonic() - began) % 3]  # an hour, every second
"""


@needs_processes
@pytest.mark.parametrize("where", ["local", "dask"])
def test_clocks_of_workers_that_jump_change_no_result(store, tmp_path, monkeypatch, where, request):
    (tmp_path / "jumping").mkdir()
    (tmp_path / "jumping/sitecustomize.py").write_text(JUMPING)
    path = os.pathsep.join([str(tmp_path / "jumping"), os.environ["PYTHONPATH"]])
    address = "local:2"
    if where == "local":
        monkeypatch.setenv("PYTHONPATH", path)
    else:
        cluster = request.getfixturevalue("dask")
        cluster.start_workers(PYTHONPATH=path)
        address = cluster.address
    plan = MadePlan(200, 2, seconds=0.005)
    carried = carry(plan, store, address, limits=Limits(seconds=60.0))
    assert (carried.done, carried.failed, carried.lost) == (400, 0, 0)
    here = Store.open(tmp_path / "here", create=True)
    carry(plan, here)
    assert store.digest(carried.plan) == here.digest(carried.plan)


@needs_processes
def test_a_scheduler_that_is_killed_and_comes_back_loses_nothing(store, dask):
    dask.start_workers()
    plan = MadePlan(300, seconds=0.05)
    found = []
    runner = threading.Thread(target=lambda: found.append(carry(plan, store, dask.address)))
    runner.start()
    give_up = time.monotonic() + 60
    while len(store.objects()) < 3 and time.monotonic() < give_up:
        time.sleep(0.05)
    dask.scheduler.kill()
    dask.scheduler.wait()
    time.sleep(1.0)
    dask.start_scheduler()
    dask.start_workers()
    runner.join(120)
    assert found, "the runner did not come back"
    assert found[0].done == 300
    assert store.rows(plan=found[0].plan)["point"].to_list() == list(range(300))
    assert any("is lost; waiting for it" in note for note in found[0].notes)


@needs_processes
def test_a_worker_with_other_sources_is_given_nothing(store, dask, tmp_path):
    other = tmp_path / "other" / "sitecustomize.py"
    other.parent.mkdir()
    other.write_text(
        "import weirlab.store, weirlab.store.store, weirlab.execution.batches as batches\n"
        "batches.engine = lambda: '0.0.1-other'\n"
    )
    path = os.pathsep.join([str(other.parent), os.environ["PYTHONPATH"]])
    dask.start_workers(1, PYTHONPATH=path)
    executor = opened(dask.address)
    try:
        give_up = time.monotonic() + 60
        while not executor.workers and time.monotonic() < give_up:
            time.sleep(0.1)
        dask.start_workers(1)
        while executor.workers < 2 and time.monotonic() < give_up:
            time.sleep(0.1)
        carried = carry(MadePlan(60, seconds=0.02), store, executor)
    finally:
        executor.close()
    assert carried.done == 60
    assert any("has the engine 0.0.1-other" in note for note in carried.notes)


def test_workers_of_other_sources_alone_end_the_work_with_the_reason(store, monkeypatch):
    def refuse(_):
        raise OtherEngine("a", "b", "tcp://1.2.3.4:5")

    monkeypatch.setattr(executors_module.Local, "submit", lambda self, function, batch: 0)
    monkeypatch.setattr(
        executors_module.Local,
        "ended",
        lambda self, timeout_s: [executors_module.Ended(0, error=OtherEngine("a", "b", "here"))],
    )
    with pytest.raises(InputError, match="has other sources than this process"):
        carry(MadePlan(3), store, "local:1")


@pytest.mark.parametrize(
    "text",
    [
        "remote",
        "local:0",
        "local:",
        "local:many",
        "http://a:1",
        "tcp://a",
        "tcp://:8786",
        "tcp://a:70000",
        "ssh:",
        "ssh:,",
    ],
)
def test_an_executor_that_there_is_not_is_refused_with_those_that_there_are(text):
    with pytest.raises(InputError, match=r"--on .*: write"):
        opened(text)


def test_an_executor_that_there_is_not_is_refused_where_nothing_is_left_to_do(store):
    carry(MadePlan(3), store)
    with pytest.raises(InputError, match=r"--on remote: write"):
        carry(MadePlan(3), store, "remote")


def test_the_page_of_a_scheduler_that_is_told_is_there(dask):
    executor = opened(dask.address)
    try:
        with urllib.request.urlopen(executor.dashboard) as page:
            assert b"workers" in page.read().lower()
    finally:
        executor.close()


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("distributed")
    real = executors_module.OnDask._connected
    monkeypatch.setattr(executors_module.OnDask, "_connected", lambda self, timeout_s: real(self, 1.0))
    with pytest.raises(InputError, match=r"tcp://127\.0\.0\.1:9: no Dask scheduler answers there"):
        opened("tcp://127.0.0.1:9")
