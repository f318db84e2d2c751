"""Emulated paths without root: in a user namespace, as the user who asks; and with sudo."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weirlab import _core, privileges
from weirlab.errors import MissingCapability

pytestmark = pytest.mark.live

WAN = """
weirlab: 1
name: wan
testbed: {kind: netns, hops: {wan: {forward: {rate: 20 Mbit/s, delay: 10 ms, buffer: 50 kB}}}}
traffic:
  bulk:
    {from: sender, to: receiver, source: {kind: bulk},
     transport: {kind: tcp, congestion_control: {kind: cubic}}}
  ping: {from: sender, to: receiver, source: {kind: ping, every: 200 ms}}
campaign: {cycles: 1, cycle: [{name: loaded, run: [bulk, ping], for: 1 s}]}
"""
ROOM = Path(__file__).parents[2] / "python"


@pytest.fixture(scope="module")
def nobody(tmp_path_factory):
    """Runs weir as the user `nobody`, in a directory of its own. Skips where there is no way to."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become an ordinary user")
    user = pwd.getpwnam("nobody")
    directory = tmp_path_factory.mktemp("nobody")
    for place in (directory, *directory.parents[:2]):
        place.chmod(0o755)
    os.chown(directory, user.pw_uid, user.pw_gid)
    python = _python_for(user.pw_uid)

    def run(*words, **options):
        become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        command = [*become, "--inh-caps=-all", "--ambient-caps=-all", *python, "-m", "weirlab", *words]
        return subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": _paths(), "HOME": str(directory)},
            **options,
        )

    (directory / "wan.yaml").write_text(WAN)
    probe = run("emulate", "wan.yaml", "--", "true")
    if "user namespaces, which this system refuses" in probe.stderr:
        pytest.skip(probe.stderr)
    run.directory, run.uid = directory, user.pw_uid
    return run


def _paths():
    return os.pathsep.join([str(ROOM), *(path for path in sys.path if path.endswith("site-packages"))])


def _python_for(uid):
    """An interpreter of our version that this user may run."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, shutil.which(name, path="/usr/bin:/usr/local/bin")):
        if path is None:
            continue
        # setpriv itself may still open what the user may not: a shell of the user tries.
        attempt = ["/bin/sh", "-c", '"$0" -c "import weirlab._core"', path]
        become = ["setpriv", f"--reuid={uid}", "--clear-groups"]
        done = subprocess.run(
            [*become, *attempt], env={"PYTHONPATH": _paths()}, capture_output=True, check=False
        )
        if done.returncode == 0:
            return [path]
    return pytest.skip("no interpreter of this version that an ordinary user may run has this package")


def test_an_ordinary_user_runs_a_command_over_a_path_and_stays_who_they_are(nobody):
    script = "id -u; touch made; ping -c 2 -i 0.2 $WEIR_FAR >/dev/null; exit $((3 + $?))"
    done = nobody("emulate", "wan.yaml", "--report", "report.json", "--", "sh", "-c", script)
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"{nobody.uid}\n"
    assert (nobody.directory / "made").stat().st_uid == nobody.uid
    counts = json.loads((nobody.directory / "report.json").read_text())["ways"][0]["counts"]
    assert (counts["arrived"], counts["left"]) == (2, 2)


def test_an_ordinary_user_measures_a_campaign_over_an_emulated_path(nobody):
    for program in ("iperf3", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    done = nobody("bulk", "wan.yaml", "--out", "kept", "--json")
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)["points"]
    assert 5e6 < point["goodput_bps"] < 20e6
    assert point["loaded_min_s"] >= 0.020
    assert (nobody.directory / "kept" / "tools.json").exists()


def test_a_router_that_needs_root_is_refused_in_one_message_that_names_the_remedy(nobody):
    done = nobody("search", "router-ndr")
    if "two CPUs" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "needs root of the machine" in done.stderr
    assert "Run the command with sudo" in done.stderr
    assert not list((nobody.directory / "results").glob("router-ndr*"))


def test_an_ordinary_user_measures_the_router_whose_rate_is_known(nobody):
    limits = ["--set", "search.trial.duration=0.2 s", "--set", "search.between=10 kframe/s .. 20 kframe/s"]
    done = nobody("search", "router-shaped", *limits, "--timeout", "10 s", "--json")
    log = Path(nobody.directory, json.loads(done.stdout)["directory"], "trials.jsonl").read_text()
    first = json.loads(log.splitlines()[1])["trial"]
    assert first["received_frames"] > 0, done.stderr
    assert '"router_cpu":null' in log


def test_a_path_inside_a_path_needs_nothing_either(nobody):
    inner = [*_python_for(nobody.uid), "-m", "weirlab", "emulate", "wan.yaml", "--", "id", "-u"]
    done = nobody("emulate", "wan.yaml", "--", *inner)
    assert (done.returncode, done.stdout) == (0, f"{nobody.uid}\n"), done.stderr


def test_with_sudo_the_command_is_the_one_of_who_called_it(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, as sudo gives it")
    (tmp_path / "wan.yaml").write_text(WAN)
    user = pwd.getpwnam("nobody")
    words = [sys.executable, "-m", "weirlab", "emulate", str(tmp_path / "wan.yaml"), "--far", "id -u", "--"]
    script = "sleep 0.3; id -u; id -g; echo $HOME $USER; ping -c 1 $WEIR_FAR >/dev/null; echo $?"
    done = subprocess.run(
        [*words, "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "SUDO_UID": str(user.pw_uid), "SUDO_GID": str(user.pw_gid)},
    )
    if "need root" in done.stderr:
        pytest.skip(done.stderr)
    uid, gid = str(user.pw_uid), str(user.pw_gid)
    assert done.stdout.splitlines() == [uid, uid, gid, f"{user.pw_dir} nobody", "0"], done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_a_process_with_several_threads_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(privileges, "_threads", lambda: 2)
    with pytest.raises(MissingCapability, match=r"OPENBLAS_NUM_THREADS=1.*or run the command with sudo"):
        privileges.enter()


def test_a_system_that_refuses_user_namespaces_is_told_with_the_setting_that_does(monkeypatch):
    def refused():
        raise PermissionError(1, "make a user namespace: EPERM")

    monkeypatch.setattr(privileges, "_threads", lambda: 1)
    monkeypatch.setattr(_core, "enter_own_user_namespace", refused)
    monkeypatch.setattr(privileges, "_SWITCHES", (("kernel/ostype", "Linux", "user.allowed=1"),))
    with pytest.raises(MissingCapability, match=r"refuses: .*EPERM.*as root: sysctl user\.allowed=1"):
        privileges.enter()


def test_an_ordinary_user_has_a_way_out_with_names_of_its_own(nobody):
    if shutil.which("slirp4netns") is None:
        pytest.skip("needs slirp4netns")
    if "00000000" not in Path("/proc/net/route").read_text().split():
        pytest.skip("this machine has no way out itself")
    done = nobody("emulate", "wan.yaml", "--internet", "--", "cat", "/etc/resolv.conf")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nameserver 10.0.2.3\n"
    with socket.create_server(("", 0)) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        place = f"{probe.getsockname()[0]}/{server.getsockname()[1]}"
        done = nobody("emulate", "wan.yaml", "--internet", "--", "bash", "-c", f"exec 3<>/dev/tcp/{place}")
    assert "No route to host" in done.stderr, "the machine itself is not reached"
