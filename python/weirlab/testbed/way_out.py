"""A way from an emulated path to the network that this machine has.

near ==path== far --tap-- slirp4netns --sockets--> whatever this machine reaches

What the far end does not know goes to slirp4netns, which opens a socket of this machine for each connection:
nothing of the machine's own network is changed, no privilege over it is needed, and what comes back crosses
the path, too. Names are resolved by 10.0.2.3, which asks the machine's own resolver. IPv4 only: TCP, UDP, and
echo requests where the machine lets their user send them. Programs on this machine itself are not reached.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _core
from weirlab.errors import MissingCapability, TestbedError
from weirlab.testbed.namespaces import set_sysctl

if TYPE_CHECKING:
    from weirlab.testbed.namespaces import Namespace
    from weirlab.testbed.path import EmulatedPath

__all__ = ["RESOLVER", "show_resolver", "way_out"]

DEVICE = "out"
RESOLVER = "10.0.2.3"
"""Address of what resolves names. Source: slirp4netns, default network"""
_PATIENCE_S = 10.0
_RESOLV_CONF = Path("/etc/resolv.conf")
_NEW_MOUNTS, _BIND, _PRIVATE = 0x00020000, 0x1000, 0x44000
"""CLONE_NEWNS of unshare(2), MS_BIND and MS_REC | MS_PRIVATE of mount(2). From memory: linux/sched.h,
linux/mount.h."""


@contextlib.contextmanager
def way_out(path: EmulatedPath) -> Iterator[Path]:
    """Lets the ends of a path reach what this machine reaches, as long as the block runs. Gives a file for
    `show_resolver`.

    Raises MissingCapability: this machine has no way out itself, or no slirp4netns.
    """
    if not _has_default_route():
        raise MissingCapability(
            "this machine has no way out itself: it has no default route for IPv4 ('ip route' shows none)"
        )
    program = shutil.which("slirp4netns")
    if program is None:
        raise MissingCapability(
            "a way out needs slirp4netns; on Debian and Ubuntu: apt-get install slirp4netns"
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(_slirp(program, path.far))
        path.far.inside(_forward)
        for namespace in (path.near, *path.routers):
            namespace.inside(_go_far)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-resolver-")))
        directory.chmod(0o755)
        file = directory / "resolv.conf"
        file.write_text(f"nameserver {RESOLVER}\n", encoding="ascii")
        yield file


def show_resolver(file: Path) -> None:
    """Programs that the calling thread starts from now on find ``file`` at /etc/resolv.conf; nobody else
    does. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(libc, name)(*arguments) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"cannot give programs a resolver of their own ({name}): {os.strerror(code)}")

    call("unshare", _NEW_MOUNTS)
    call("mount", None, b"/", None, _PRIVATE, None)
    call("mount", os.fsencode(file), os.fsencode(_RESOLV_CONF.resolve()), None, _BIND, None)


@contextlib.contextmanager
def _slirp(program: str, far: Namespace) -> Iterator[None]:
    """slirp4netns at work in a namespace: it ends with us, as it holds the other end of a pipe."""
    with contextlib.ExitStack() as stack:
        ready, says_ready = os.pipe()
        says_end, end = os.pipe()
        for each in (ready, says_end, end):
            stack.callback(os.close, each)
        command = [
            *(program, "--configure", "--disable-host-loopback", "--mtu=65520"),
            *(f"--ready-fd={says_ready}", f"--exit-fd={says_end}", "--netns-type=path"),
            *(f"/proc/self/fd/{far.fd}", DEVICE),
        ]
        log = stack.enter_context(tempfile.TemporaryFile())
        child = _started(command, (says_ready, says_end, far.fd), log.fileno())
        os.close(says_ready)
        try:
            found, _, _ = select.select([ready], [], [], _PATIENCE_S)
            if not found or os.read(ready, 1) != b"1":
                child.kill()
                child.wait()
                log.seek(0)
                said = log.read().decode(errors="replace").strip().splitlines()
                raise TestbedError(f"slirp4netns makes no way out: {said[0] if said else 'it says nothing'}")
            yield
        finally:
            child.kill()
            child.wait()


def _started(command: Sequence[str], pass_fds: Sequence[int], log: int) -> subprocess.Popen[bytes]:
    """A program that may enter our namespaces, also where they are those of an ordinary user."""
    made: list[subprocess.Popen[bytes]] = []
    failures: list[OSError] = []

    def start() -> None:
        try:
            if os.geteuid() != 0:
                _core.keep_administration()  # of this thread alone, and of what it starts
            made.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=pass_fds,
                    start_new_session=True,
                )
            )
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=start, name="way-out")
    thread.start()
    thread.join()
    if failures:
        raise TestbedError(f"slirp4netns cannot be started: {failures[0]}") from failures[0]
    return made[0]


def _has_default_route() -> bool:
    """Whether the namespace of this process has one that is up. Source: Linux, proc(5), /proc/net/route."""
    try:
        lines = Path("/proc/self/net/route").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return False
    columns = [line.split() for line in lines]
    return any(each[1] == each[7] == "00000000" and int(each[3], 16) & 1 for each in columns)


def _forward() -> None:
    """In the namespace of the far end: pass on what is not for it, and answer for the ends behind it, whose
    addresses slirp4netns asks for on its link."""
    set_sysctl("ipv4.ip_forward", 1)
    set_sysctl(f"ipv4.conf.{DEVICE}.proxy_arp", 1)
    set_sysctl(f"ipv4.conf.{DEVICE}.rp_filter", 0)


def _go_far() -> None:
    """In any other namespace of the path: what nobody knows is sent to the far end."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        (index,) = route.link_lookup(ifname="far")
        route.route("add", dst="0.0.0.0/0", oif=index)
