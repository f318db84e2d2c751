"""What is left of a testbed whose process was killed: nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from weirlab.errors import MissingCapability
from weirlab.testbed.namespaces import Namespace

pytestmark = pytest.mark.live

VICTIM = """
import sys
from pyroute2 import IPRoute
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.netns import NetnsTestbed

witness = int(sys.argv[1])
bed = NetnsTestbed()

def tie():
    with IPRoute() as route:
        route.link("add", ifname="tie", kind="veth", peer={"ifname": "tied", "net_ns_fd": witness})

bed.namespaces["router"].inside(tie)
print("measuring", flush=True)
bed.trial(TrialSpec(index=0, intended_load_fps=1000, duration_s=60, frame_size_bytes=64))
"""


def interfaces() -> list[str]:
    from pyroute2 import IPRoute

    with IPRoute() as route:
        return sorted(link.get("ifname") for link in route.get_links())


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_namespaces_and_links_are_gone_after_their_process_was_killed(how, code):
    try:
        witness = Namespace()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(witness.fd)],
        pass_fds=[witness.fd],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "measuring\n"
        assert witness.inside(interfaces) == ["lo", "tied"]
        time.sleep(0.2)
        victim.send_signal(how)
        assert victim.wait(timeout=5) == -how
        # The kernel takes namespaces down a little later, and with them the links that lead there.
        patience = time.monotonic() + 5
        while witness.inside(interfaces) != ["lo"] and time.monotonic() < patience:
            time.sleep(0.05)
        assert witness.inside(interfaces) == ["lo"]
    finally:
        victim.kill()
        victim.communicate()
        witness.close()
