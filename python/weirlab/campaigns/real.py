"""Measurements between real hosts: ssh starts the iperf3 and ping that they have."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from weirlab.campaigns.hosts import Bed, End, SshEnd, ThisMachine, UnreachableError, output
from weirlab.campaigns.measurement import Measurement
from weirlab.campaigns.plan import Measured
from weirlab.campaigns.reading import read_transfer
from weirlab.campaigns.tools import SYSCTLS, Together, require, together
from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario.network.path import PathPlan
from weirlab.scenario.testbeds import Hosts, Iperf3
from weirlab.testbed.account import Reading

_SHORT_S = 20.0
"""How long a question to a host may take."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of the first line of /proc/stat: user, nice, system, irq, softirq, steal. See proc(5)."""


_BUSY_SERVER = "the server is busy"
"""What iperf3 says while a server serves somebody else, or has not ended the last transfer yet."""
_PATIENCE_S = 30.0
"""How long to wait for such a server."""


_TRIED_S = 5.0
"""How long a server may take to answer before anything is measured."""


def ports_and_commands(port: int, servers: int) -> tuple[str, str]:
    """The ports of so many servers of iperf3, and the commands that start these, in words."""
    ports = [port + number for number in range(max(1, servers))]
    commands = ["'iperf3 -s'" if each == _PORT else f"'iperf3 -s -p {each}'" for each in ports]
    return f"port{'s' * (len(ports) > 1)} {_listed([str(each) for each in ports])}", _listed(commands)


_PORT = 5201
"""Of iperf3, where none is named."""


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


class RealHosts:
    """Two hosts; the near one may be this machine."""

    def __init__(self, bed: Hosts, beside: Path) -> None:
        """Args: beside: Where the scenario file is.

        Raises MissingCapability when a program is missing here.
        """
        if isinstance(bed, Iperf3):
            require()
            self._ends: dict[str, End] = {"near": ThisMachine()}
            self._bed = Bed(ThisMachine(), None, "", bed.server, bed.port)
            return
        if shutil.which("ssh") is None:
            raise MissingCapability(
                "real hosts need OpenSSH; on Debian and Ubuntu: apt-get install openssh-client"
            )
        if bed.near is None:
            require()
        config = None if bed.config is None else str(beside / bed.config)
        near: End = ThisMachine() if bed.near is None else SshEnd(bed.near, config)
        self._ends = {"near": near, "far": SshEnd(bed.far, config)}
        near_address = bed.near_address or (None if bed.near is None else _address(bed.near, config))
        self._bed = Bed(
            near,
            self._ends["far"],
            near_address or "",
            bed.far_address or _address(bed.far, config),
            bed.port,
            listens_everywhere=bed.listen == "everywhere",
        )

    def measure(self, what: Measured, path: PathPlan | None, seed: int) -> Measurement:  # noqa: ARG002 (of `Measure`)
        """Make one measurement. Raises TestbedError when a host or a program fails."""
        parts = [*what.loads, *(() if what.probe is None else (what.probe,))]
        needs_address = self._bed.far is not None and not self._bed.near_address
        if needs_address and not all(part.forward for part in parts):
            raise MissingCapability("traffic to the near end needs its address: write 'testbed.near_address'")
        here = isinstance(self._bed.near, ThisMachine)
        reading = Reading.now() if here else None
        began, before = time.time(), self._busy_s()
        found = self._together(what)
        seconds, after = time.time() - began, self._busy_s()
        account = None if reading is None else Reading.now() - reading
        busy, foreign = _cpus(before, after, seconds, what, found)
        return Measurement(
            transfer=found.transfer,
            beside=found.beside,
            pings=found.pings,
            began=began,
            seconds=seconds,
            busy_cpus=busy,
            foreign_cpus=foreign,
            degraded=(),
            disturbance="" if account is None else account.disturbance,
            account={} if account is None else account.facts(),
            lateness_p99_s=None,
            lost=0,
            dropped=0,
        )

    def _together(self, what: Measured) -> Together:
        """What ran at the same time; a server that is busy is asked again."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return together(what, self._bed)
            except TestbedError as error:
                if _BUSY_SERVER not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(1.0)

    def reach(self, servers: int) -> None:
        """Try every server that has to run at the far end already, with a transfer of a byte. Raises
        TestbedError with all that did not answer; a busy one did.
        """
        if self._bed.far is not None:
            return
        failures = {}
        for port in range(self._bed.port, self._bed.port + servers):
            wait = ["--connect-timeout", f"{1000 * _TRIED_S:.0f}"]
            command = ["iperf3", "-J", "-c", self._bed.far_address, "-p", str(port), "-n", "1", *wait]
            try:
                read_transfer(output(self._bed.near, command, _SHORT_S, fine=(0, 1)))
            except TestbedError as error:
                if _BUSY_SERVER not in str(error):
                    failures[port] = error
        if failures:
            ports, commands = ports_and_commands(self._bed.port, servers)
            message = "; ".join(f"port {port}: {error}" for port, error in failures.items())
            raise TestbedError(
                f"{self._bed.far_address}: a server of iperf3 has to run at {ports}, one for each load at a "
                f"time: start {commands} there ({message})"
            )

    def facts(self) -> Mapping[str, object]:
        """Kernel, programs, load and settings of both ends, as far as known."""
        return {name: _facts(end) for name, end in self._ends.items()}

    def _busy_s(self) -> dict[str, float | None]:
        """CPU time that each end has spent since it was started."""
        return {name: _busy_s(end) for name, end in self._ends.items()}


def _address(host: str, config: str | None) -> str:
    """Where ssh would connect to for a host: without user and port, and under the name that its
    configuration gives. Raises TestbedError.
    """
    options = ["-F", config] if config is not None else []
    try:
        message = output(ThisMachine(), ["ssh", "-G", *options, host], _SHORT_S)
    except TestbedError as error:
        raise TestbedError(f"{host}: {error}") from error
    found = re.search(r"^hostname (\S+)$", message, re.MULTILINE)
    if found is None:
        raise TestbedError(f"ssh -G {host}: reports no host name: {message.strip()[-300:]}")
    return found[1]


def _facts(end: End) -> dict[str, str]:
    questions = {
        "system": ["uname", "-srm"],
        "iperf3": ["iperf3", "--version"],
        "ping": ["ping", "-V"],
        "load": ["cat", "/proc/loadavg"],
        "cpus": ["getconf", "_NPROCESSORS_ONLN"],
        "sysctls": ["sysctl", "-e", *(f"net.ipv4.{name}" for name in SYSCTLS)],
    }
    found = {}
    for name, command in questions.items():
        try:
            found[name] = output(end, command, _SHORT_S).strip()
        except UnreachableError:
            raise
        except TestbedError as error:
            if name in ("iperf3", "ping"):
                raise
            found[name] = f"not known: {error}"
    return found


def _busy_s(end: End) -> float | None:
    try:
        first = output(end, ["cat", "/proc/stat"], _SHORT_S).split("\n", 1)[0].split()
        return sum(float(first[1 + column]) for column in _BUSY) / _TICKS_PER_S
    except (TestbedError, IndexError, ValueError):
        return None  # not Linux


def _cpus(
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    seconds: float,
    what: Measured,
    found: Together,
) -> tuple[float | None, float | None]:
    """CPUs busy at the busier end, and those that no transfer explains at the worse one."""
    main = [] if what.load is None or found.transfer is None else [(what.load, found.transfer)]
    pairs = [*main, *((load, found.beside[name]) for name, load in what.beside.items())]
    busy, foreign = [], []
    for name, near in (("near", True), ("far", False)):
        start, end = before.get(name), after.get(name)
        if start is None or end is None:
            continue
        busy.append((end - start) / seconds)
        used = 0.0
        for load, transfer in pairs:
            sends = load.forward == near
            share = transfer.sender_cpu_percent if sends else transfer.receiver_cpu_percent
            used += share["total"] / 100 * min(1.0, load.seconds(what.duration_s) / seconds)
        foreign.append(max(0.0, busy[-1] - used))
    return max(busy, default=None), max(foreign, default=None)
