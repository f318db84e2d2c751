"""A study over SSH, with a server of its own on loopback."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from weirlab.studies import Study

pytestmark = pytest.mark.live

pytest.importorskip("distributed")
pytest.importorskip("asyncssh")

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@pytest.fixture
def home(tmp_path):
    """The home of a user who reaches two hosts by SSH without a question."""
    if not Path(SSHD).exists() or os.geteuid() != 0:
        pytest.skip("needs sshd, started by root")
    keys = tmp_path / ".ssh"
    keys.mkdir(mode=0o700)
    for name in ("host", "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {keys}/host\nStrictModes no\nPermitRootLogin yes\n"
        f"AuthorizedKeysFile {keys}/id_ed25519.pub\nUsePAM no\nPidFile {tmp_path}/sshd.pid\n"
        f"SetEnv PYTHONPATH={os.environ.get('PYTHONPATH', '')}\n"
    )
    (keys / "config").write_text(f"Host alpha beta\n  HostName 127.0.0.1\n  Port {port}\n")
    kind, key, *_ = (keys / "host.pub").read_text().split()
    (keys / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-f", str(tmp_path / "sshd.conf"), "-E", str(tmp_path / "log")])
    try:
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield tmp_path
    finally:
        server.terminate()
        server.wait()


def test_a_study_over_ssh_finds_what_it_finds_here(home):
    def study(*words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "weirlab", "study", "load-and-buffer", *words],
            cwd=home,
            env={**os.environ, "HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=600,  # no limit of what it may take: the machine may be busy
            check=False,
        )
        assert done.returncode == 0, done.stderr

    study("--out", "far", "--on", "ssh:alpha*2,beta")
    study("--out", "here")
    assert Study.load(home / "far").complete
    for name in ("points", "runs", "measures"):
        far, here = (home / place / "tables" / f"{name}.parquet" for place in ("far", "here"))
        assert far.read_bytes() == here.read_bytes()


RUNNER = """
import time
from weirlab.execution import opened

def hurry(dask_scheduler):
    asked, dask_scheduler.idle_timeout = dask_scheduler.idle_timeout, 1.0
    return asked

executor = opened("ssh:alpha*2")
while executor.workers < 2:
    time.sleep(0.1)
future = executor._client.submit(time.sleep, 600)
while not any(executor._client.processing().values()):
    time.sleep(0.1)
print("there", executor._client.run_on_scheduler(hurry), flush=True)
time.sleep(600)
"""


def test_a_cluster_whose_runner_is_killed_ends_by_itself(home):
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER], env={**os.environ, "HOME": str(home)}, stdout=subprocess.PIPE
    )
    processes: list[psutil.Process] = []
    try:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"there 300\n"
        server = psutil.Process(int((home / "sshd.pid").read_text()))
        processes = [each for each in server.children(recursive=True) if each.name().startswith("python")]
        assert len(processes) >= 5  # the scheduler, and each worker with its nanny
        runner.kill()
        _, there = psutil.wait_procs(processes, timeout=300)
        assert there == []
    finally:
        runner.kill()
        runner.communicate()
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
