"""Where programs run: a namespace, this machine, or a host that ssh reaches.

Each program runs in a process group of its own, with a deadline after which the group is killed; a little
later it ends by itself, should nobody be there to kill it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from weirlab.errors import TestbedError
from weirlab.testbed.namespaces import Namespace

_START_S = 10.0
"""How long a server may take to listen."""
_ORPHAN_S = 5.0
"""How much longer a program may live whose weir was killed."""
_CONNECT_S = 15
"""How long ssh may take to connect."""
SSH_FAILED = 255
"""What ssh itself ends with when it fails, as its manual says."""


class UnreachableError(TestbedError):
    """A host that ssh did not come to."""


class End(Protocol):
    """Where programs run."""

    def started(self, command: Sequence[str], limit_s: float) -> subprocess.Popen[str]:
        """A command that ends after this time even if this process is not there any more; what it prints is
        its `stdout`.
        """


@dataclass(frozen=True)
class NamespaceEnd:
    """A namespace of this machine."""

    namespace: Namespace

    def started(self, command: Sequence[str], limit_s: float) -> subprocess.Popen[str]:
        """See `End`."""
        return self.namespace.inside(lambda: _spawned(_limited(command, limit_s)))


@dataclass(frozen=True)
class ThisMachine:
    """This machine as it is."""

    def started(self, command: Sequence[str], limit_s: float) -> subprocess.Popen[str]:
        """See `End`."""
        return _spawned(_limited(command, limit_s))


@dataclass(frozen=True)
class SshEnd:
    """A host on which OpenSSH starts programs, as its user's configuration says."""

    host: str
    config: str | None = None

    def started(self, command: Sequence[str], limit_s: float) -> subprocess.Popen[str]:
        """See `End`. When the connection ends, so does the command with what it started: a shell waits for
        the end of input, and `timeout` passes its signal on to its group.
        """
        there = shlex.join(_limited(command, limit_s))
        script = (
            f"exec 3<&0; LC_ALL=C {there} </dev/null 3<&- & p=$!; "
            "(cat <&3; kill $p) >/dev/null 2>&1 & w=$!; exec 3<&-; "
            "wait $p; r=$?; kill $w 2>/dev/null; exit $r"
        )
        options = ["-F", self.config] if self.config is not None else []
        batch = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_S}"]
        ssh = ["ssh", "-T", *options, *batch, self.host, f"sh -c {shlex.quote(script)}"]
        return _spawned(_limited(ssh, limit_s + _CONNECT_S), talks=True)


@dataclass(frozen=True)
class Bed:
    """Two ends, and where they are reached."""

    near: End
    far: End | None
    """None: nothing is started there, where a server of iperf3 runs already."""
    near_address: str
    far_address: str
    port: int = 5201
    """Of the iperf3 server."""
    behind: Mapping[str, tuple[End, str]] = field(default_factory=dict)
    """Hosts behind the near end, by name, and where they are reached."""
    listens_everywhere: bool = False
    """Whether that server takes connections at every address of its host, not only at the one above."""


def output(end: End, command: Sequence[str], limit_s: float, *, fine: tuple[int, ...] = (0,)) -> str:
    """What a command prints. Raises TestbedError when it fails or does not end in time."""
    process = end.started(command, limit_s)
    try:
        text = _read(process, limit_s + (_CONNECT_S if isinstance(end, SshEnd) else 0))
    except subprocess.TimeoutExpired:
        raise TestbedError(f"{command[0]} did not end within {limit_s:g} s") from None
    finally:
        kill(process)
        if process.stdout is not None:
            process.stdout.close()
    where = f" on {end.host}" if isinstance(end, SshEnd) else ""
    if isinstance(end, SshEnd) and process.returncode == SSH_FAILED:
        raise UnreachableError(f"ssh {end.host}: {text.strip()[-300:] or 'no connection'}")
    if process.returncode not in fine:
        raise TestbedError(f"{command[0]}{where} ended with code {process.returncode}: {text.strip()[-300:]}")
    return text


@contextlib.contextmanager
def listening(end: End, command: Sequence[str], says: str, limit_s: float) -> Iterator[None]:
    """A server that listens as soon as a line of its own begins so, and is ended afterwards. Raises
    TestbedError when it does not say so within seconds.
    """
    process = end.started(command, limit_s + _START_S)
    drain = None
    try:
        late = threading.Timer(_START_S, kill, (process,))
        late.start()
        assert process.stdout is not None
        said: list[str] = []
        listens = False
        for line in process.stdout:
            said.append(line)
            if listens := line.startswith(says):
                break
        late.cancel()
        if not listens:
            raise TestbedError(
                f"{Path(command[0]).name} did not start to listen: "
                f"{' '.join(said).strip()[-300:] or 'no word'}"
            )
        drain = threading.Thread(target=process.stdout.read, name=f"{command[0]}-server", daemon=True)
        drain.start()
        yield
    finally:
        kill(process)
        if drain is not None:
            drain.join()
        if process.stdout is not None:
            process.stdout.close()


def kill(process: subprocess.Popen[str]) -> None:
    """End a command with everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _read(process: subprocess.Popen[str], limit_s: float) -> str:
    """All that a process prints. Its input stays open until it has ended."""
    if process.stdin is None:
        return process.communicate(timeout=limit_s)[0]
    stdin, process.stdin = process.stdin, None  # communicate would close it
    try:
        return process.communicate(timeout=limit_s)[0]
    finally:
        process.stdin = stdin


def _limited(command: Sequence[str], limit_s: float) -> list[str]:
    return ["timeout", "--signal=KILL", f"{limit_s + _ORPHAN_S:g}", *command]


def _spawned(command: Sequence[str], *, talks: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",  # what other hosts say is in any encoding
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    )
