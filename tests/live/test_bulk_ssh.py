"""A campaign between this machine and a host behind a real sshd, over an emulated path."""

from __future__ import annotations

import contextlib
import getpass
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weirlab.campaigns import run_campaign, summaries
from weirlab.campaigns.hosts import SshEnd, kill, output
from weirlab.campaigns.path import way_back
from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario import loads
from weirlab.scenario.network.path import Hop, Line, PathPlan
from weirlab.testbed.path import EmulatedPath
from weirlab.units import Rate, Size, Span

pytestmark = pytest.mark.live

PORT = 2222
FILE = """
weirlab: 1
name: hosts
testbed: {{kind: ssh, far: box, far_address: {address}, config: {config}}}
traffic:
  bulk:
    from: sender
    to: receiver
    streams: 2
    source: {{kind: bulk}}
    transport: {{kind: tcp, congestion_control: {{kind: reno}}, window: 16 KiB}}
  ping: {{from: sender, to: receiver, source: {{kind: ping, every: 200 ms}}}}
campaign:
  cycles: 1
  cycle: [{{name: loaded, run: [bulk, ping], for: 2 s}}, {{name: unloaded, run: ping, for: 1 s}}]
"""


@pytest.fixture
def bed() -> Iterator[EmulatedPath]:
    for program in ("iperf3", "ping", "ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"needs the program {program}")
    line = Line(rate=Rate.parse("50 Mbit/s"), delay=Span.from_s(0.005), buffer=Size(100_000))
    try:
        made = EmulatedPath(PathPlan({"hop": Hop(forward=line)}, 1500))
    except MissingCapability as lack:
        pytest.skip(str(lack))
    with made:
        yield made


@pytest.fixture
def box(bed: EmulatedPath, tmp_path: Path) -> Iterator[Path]:
    """A configuration of ssh that knows the far end as `box`."""
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(sshd).exists():
        pytest.skip("needs sshd: apt-get install openssh-server")
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(key, check=True, timeout=20)
    Path("/run/sshd").mkdir(exist_ok=True)
    (tmp_path / "authorized").write_text((tmp_path / "user.pub").read_text())
    host = (tmp_path / "host.pub").read_text()
    (tmp_path / "known").write_text(f"[{bed.far_address}]:{PORT} {host}")
    (tmp_path / "sshd").write_text(
        f"Port {PORT}\nListenAddress {bed.far_address}\nHostKey {tmp_path / 'host'}\nStrictModes no\n"
        f"AuthorizedKeysFile {tmp_path / 'authorized'}\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
    )
    (tmp_path / "config").write_text(
        f"Host box\n  HostName {bed.far_address}\n  Port {PORT}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {tmp_path / 'user'}\n  UserKnownHostsFile {tmp_path / 'known'}\n"
        "  StrictHostKeyChecking yes\n  IdentitiesOnly yes\n"
    )
    command = [sshd, "-D", "-e", "-f", str(tmp_path / "sshd")]
    with (tmp_path / "sshd.log").open("w") as log:
        server = bed.far.inside(lambda: subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL))
    try:
        bed.near.inside(lambda: _listens(bed.far_address))
        yield tmp_path / "config"
    finally:
        server.kill()
        server.wait()


def _listens(address: str) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection((address, PORT), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("sshd does not listen")


def test_a_campaign_over_ssh_needs_nothing_there_but_iperf3_and_ping(bed, box, tmp_path):
    scenario = loads(FILE.format(address=bed.far_address, config=box))
    campaign = bed.near.inside(lambda: run_campaign(scenario, tmp_path / "campaign"))
    assert [kept.failures for kept in campaign.kept] == [(), ()]
    (point,) = summaries(campaign)
    # Two windows of 16 KiB in 10 ms, which systems round up by less than half.
    assert 5e6 < point.goodput_bps < 1.5 * 2 * 8 * 16384 / 0.010
    assert point.unloaded_min_s >= 0.010
    assert campaign.kept[0].measurement.busy_cpus > 0
    facts = json.loads((tmp_path / "campaign" / "tools.json").read_text())
    assert facts["near"]["system"] == facts["far"]["system"]
    assert "iperf" in facts["far"]["iperf3"]
    assert "tcp_congestion_control" in facts["far"]["sysctls"]


def test_a_host_that_does_not_let_us_in_is_told_as_ssh_tells_it(bed, box):
    box.write_text(box.read_text().replace("user", "host").replace("known", "nowhere"))
    with pytest.raises(TestbedError, match=r"(?s)ssh box: .*verification failed"):
        bed.near.inside(lambda: output(SshEnd("box", str(box)), ["true"], 10))


def test_a_program_ends_when_its_connection_does(bed, box):
    end = SshEnd("box", str(box))
    process = bed.near.inside(lambda: end.started(["sh", "-c", "echo $$; exec sleep 50"], 60))
    there = int(process.stdout.readline())
    assert Path(f"/proc/{there}").exists()
    kill(process)
    process.stdout.close()
    for _ in range(100):
        if not Path(f"/proc/{there}").exists():
            return
        time.sleep(0.1)
    raise AssertionError("the program lives on")


def test_the_way_back_is_traced_at_the_other_end(bed, box):
    if shutil.which("traceroute") is None:
        pytest.skip("needs the program traceroute")
    back = bed.near.inside(lambda: way_back(SshEnd("box", str(box)), "box", bed.near_address))
    assert back.reached
    assert [hop.routers for hop in back.hops] == [(bed.near_address,)]
    assert back.hops[0].rtt_s > 0.010
