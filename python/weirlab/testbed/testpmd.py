"""``dpdk-testpmd`` as a device: it copies frames between two interfaces of a namespace.

It runs in poll mode over AF_PACKET sockets, without huge pages, and keeps one CPU busy all the time. It ends
with this object, with this process, or at the latest after a stated time, whichever comes first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from weirlab.errors import MissingCapability, TestbedError
from weirlab.files import Closing
from weirlab.testbed.linux_router import RECEIVER, SENDER, LinuxRouter, know, mac_address
from weirlab.testbed.namespaces import Namespace, set_sysctl, switch_off

LARGEST_FRAME_BYTES = 1518
"""The slots of its rings hold 2048 bytes; no larger frame of Ethernet fits."""
LONGEST_S = 7200.0
_PROGRAM = "dpdk-testpmd"
_START_S = 15.0
_STOP_S = 3.0
_PROBE_EVERY_S = 0.05
_PROBE_PORT = 9
"""UDP port "discard"."""


class TestpmdForwarder(Closing):
    """A running ``dpdk-testpmd``; a context manager, or call ``close``."""

    __test__ = False

    def __init__(
        self,
        namespace: Namespace,
        interfaces: tuple[str, str],
        *,
        cpu: int,
        forwards: Callable[[], bool],
        longest_s: float = LONGEST_S,
    ) -> None:
        """Start it, and wait until it forwards.

        Args:
            namespace: Where the interfaces are.
            interfaces: The two that it joins: what one receives, the other sends, unchanged.
            cpu: The CPU that it keeps busy.
            forwards: Tries once whether frames pass.
            longest_s: It is ended after this time even if nobody closes it.

        Raises:
            MissingCapability: There is no ``dpdk-testpmd``.
            TestbedError: It ended at once, or does not forward.
        """
        program, timeout = shutil.which(_PROGRAM), shutil.which("timeout")
        if program is None or timeout is None:
            raise MissingCapability(
                f"'router: testpmd' needs the programs {_PROGRAM} and timeout; on Debian and Ubuntu: "
                f"apt-get install dpdk-dev coreutils"
            )
        self._directory = tempfile.TemporaryDirectory(prefix="weirlab-testpmd-")
        self._log = Path(self._directory.name, "log")
        limit = [timeout, "--kill-after=5", f"{longest_s:g}"]
        self._process = self._start([*limit, program, *_arguments(interfaces, cpu)], namespace)
        try:
            self._wait(forwards)
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raises TestbedError when it does not run any more."""
        code = self._process.poll()
        if code is not None:
            raise TestbedError(f"{_PROGRAM} ended with code {code}{self._said()}")

    def close(self) -> None:
        """End it, at first by closing its input, which it takes for a farewell. May be called twice."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._directory.cleanup()

    def _start(self, command: Sequence[str], namespace: Namespace) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "RUNTIME_DIRECTORY": self._directory.name}
        with self._log.open("wb") as log:
            return namespace.inside(
                lambda: subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            )

    def _wait(self, forwards: Callable[[], bool]) -> None:
        give_up = time.monotonic() + _START_S
        while not forwards():
            self.check()
            if time.monotonic() > give_up:
                raise TestbedError(f"{_PROGRAM} does not forward after {_START_S:g} s{self._said()}")
            time.sleep(_PROBE_EVERY_S)

    def _said(self) -> str:
        """The last line that it printed, for a message."""
        lines = self._log.read_text(errors="replace").split("\n") if self._log.exists() else []
        said = [line.strip() for line in lines if line.strip()]
        return f"; it said: {said[-1][-200:]}" if said else ""


class TestpmdRouter(LinuxRouter):
    """The links and namespaces of a Linux router, with ``dpdk-testpmd`` in the middle instead of the kernel.

    It copies frames as they are: sender and receiver therefore address each other's interfaces, not the
    router's, and no time to live is counted down.
    """

    __test__ = False

    def __init__(self, cpu: int | None, *, longest_s: float = LONGEST_S) -> None:
        """Build it.

        Args:
            cpu: The CPU that testpmd keeps busy.
            longest_s: See `TestpmdForwarder`.

        Raises:
            MissingCapability: not Linux, not root, no ``dpdk-testpmd``, or no CPU to spare.
        """
        if cpu is None:
            raise MissingCapability("'router: testpmd' keeps one CPU busy all the time: it needs two CPUs")
        self._forwarder: TestpmdForwarder | None = None
        super().__init__(cpu)
        try:
            self._join(cpu, longest_s)
        except BaseException:
            self.close()
            raise

    @property
    def largest_frame_bytes(self) -> int:
        """L2 size with FCS of the largest frame that passes."""
        return LARGEST_FRAME_BYTES

    def check(self) -> None:
        """Raises TestbedError when testpmd does not run any more."""
        if self._forwarder is not None:
            self._forwarder.check()

    def close(self) -> None:
        """Take it down. May be called twice."""
        if self._forwarder is not None:
            self._forwarder.close()
            self._forwarder = None
        super().close()

    def _join(self, cpu: int, longest_s: float) -> None:
        router, sender, receiver = (self.namespaces[role] for role in ("router", "sender", "receiver"))
        router.inside(lambda: set_sysctl("ipv4.ip_forward", 0))
        sender.inside(lambda: _address_directly("198.18.0.1", "receiver"))
        receiver.inside(lambda: _address_directly("198.19.0.1", "sender"))
        with (
            sender.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probes,
            receiver.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as arrivals,
        ):
            probes.bind((SENDER, 0))
            arrivals.bind((RECEIVER, _PROBE_PORT))
            arrivals.setblocking(False)

            def forwards() -> bool:
                probes.sendto(b"weirlab", (RECEIVER, _PROBE_PORT))
                time.sleep(_PROBE_EVERY_S)
                try:
                    return bool(arrivals.recv(64))
                except BlockingIOError:
                    return False

            self._forwarder = TestpmdForwarder(
                router, ("sender", "receiver"), cpu=cpu, forwards=forwards, longest_s=longest_s
            )


def _address_directly(gateway: str, far_end: str) -> None:
    """In the namespace of an end: frames for the gateway bear the address of the far end, and whole
    checksums, as nobody on the way completes them."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        know(route, "router", gateway, mac_address(far_end, "router"))
    switch_off("router", ("tx-checksum-ip-generic",))


def _arguments(interfaces: tuple[str, str], cpu: int) -> list[str]:
    """Both of its threads on one CPU: the one that does not forward waits for input."""
    devices = [f"--vdev=net_af_packet{number},iface={name}" for number, name in enumerate(interfaces)]
    memory = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry"]
    forwarding = ["--forward-mode=io", "--auto-start", "--total-num-mbufs=16384", "--nb-cores=1"]
    return [*memory, "--lcores", f"0@{cpu},1@{cpu}", *devices, "--", *forwarding]
