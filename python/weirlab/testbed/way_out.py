"""A way from an emulated path to the network that this machine has.

near ==path== far --tap-- slirp4netns --sockets--> whatever this machine reaches

What the far end does not know goes to slirp4netns, which opens a socket of this machine for each connection:
nothing of the machine's own network is changed, no privilege over it is needed, and what comes back crosses
the path, too. Names are resolved by 10.0.2.3, which asks the machine's own resolver. IPv4 only: TCP, UDP, and
echo requests where the machine lets their user send them.

Programs on this machine itself are not reached: slirp4netns leaves out the loopback, and the far end has
unreachable routes for what the machine takes for itself when the path is made. Addresses that it gets later
have none.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab import _core
from weirlab.errors import MissingCapability, TestbedError
from weirlab.testbed.namespaces import set_sysctl

if TYPE_CHECKING:
    from weirlab.testbed.namespaces import Namespace
    from weirlab.testbed.path import EmulatedPath


DEVICE = "out"
RESOLVER = "10.0.2.3"
"""Address of what resolves names. Source: slirp4netns, default network"""
_PATIENCE_S = 10.0
_RESOLV_CONF = Path("/etc/resolv.conf")
_ROOM = Path("/dev")
"""Where a file system is mounted for as long as it takes to bind a file of it elsewhere."""
_NEW_MOUNTS, _BIND, _PRIVATE, _PLAIN, _DETACH = 0x00020000, 0x1000, 0x44000, 0xE, 2
"""CLONE_NEWNS of unshare(2); MS_BIND, MS_REC | MS_PRIVATE and MS_NOSUID | MS_NODEV | MS_NOEXEC of mount(2);
MNT_DETACH of umount2(2). From memory: linux/sched.h, linux/mount.h, linux/fs.h."""
_OWN = (2, 3, 4)
"""Types of routes to this machine itself: RTN_LOCAL, RTN_BROADCAST, RTN_ANYCAST. From memory:
linux/rtnetlink.h."""
_MAIN, _LOCAL = 254, 255
"""RT_TABLE_MAIN and RT_TABLE_LOCAL of the same."""
_MULTICAST = ipaddress.IPv4Network("224.0.0.0/4")
"""Groups, in which programs of this machine may be, too. Source: RFC 5771, section 3."""
_SANDBOX, _FEWER_CALLS = "--enable-sandbox", "--enable-seccomp"
"""What leaves slirp4netns without files and capabilities, and without system calls that it does not need.
The sandbox is for root alone: it becomes the root of its user namespace, and ours have none.
"""


@contextlib.contextmanager
def way_out(path: EmulatedPath) -> Iterator[None]:
    """Lets the ends of a path reach what this machine reaches, as long as the block runs.

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
    own = _own_networks()
    with _slirp(program, path.far):
        path.far.inside(lambda: _bar(own))
        path.far.inside(_forward)
        for namespace in (path.near, *path.routers):
            namespace.inside(_go_far)
        yield


def show_resolver(address: str) -> None:
    """Programs that the calling thread starts from now on find a file with this resolver at /etc/resolv.conf;
    nobody else does, and it goes with the last of them. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(libc, name)(*arguments) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"cannot give programs a resolver of their own ({name}): {os.strerror(code)}")

    target, room = os.fsencode(_RESOLV_CONF.resolve()), os.fsencode(_ROOM)
    call("unshare", _NEW_MOUNTS)
    call("mount", None, b"/", None, _PRIVATE, None)
    call("mount", b"weir", room, b"tmpfs", _PLAIN, b"mode=755,size=64k")
    file = _ROOM / "resolv.conf"
    file.write_text(f"nameserver {address}\n", encoding="ascii")
    file.chmod(0o644)
    call("mount", os.fsencode(file), target, None, _BIND, None)
    call("umount2", room, _DETACH)


@contextlib.contextmanager
def _slirp(program: str, far: Namespace) -> Iterator[None]:
    """slirp4netns at work in a namespace: it ends with us, as it holds the other end of a pipe."""
    with contextlib.ExitStack() as stack:
        ready, says_ready = os.pipe()
        says_end, end = os.pipe()
        for each in (ready, says_end, end):
            stack.callback(os.close, each)
        command = [
            *(program, "--configure", "--disable-host-loopback", "--mtu=65520", *_confinement(program)),
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


def _confinement(program: str) -> list[str]:
    """Which options that confine it the installed version has."""
    try:
        answer = subprocess.run([program, "--help"], capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TestbedError(f"slirp4netns cannot be started: {error}") from error
    words = (answer.stdout + answer.stderr).decode(errors="replace").split()
    wanted = (_SANDBOX, _FEWER_CALLS) if os.geteuid() == 0 else (_FEWER_CALLS,)
    return [option for option in wanted if option in words]


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


def _own_networks() -> list[ipaddress.IPv4Network]:
    """What the kernel delivers to this machine itself: its addresses and broadcasts, and groups."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        answer = list(route.get_routes(family=socket.AF_INET, table=_LOCAL))
    own = {_network(each) for each in answer if each["type"] in _OWN}
    return list(ipaddress.collapse_addresses({*own, _MULTICAST}))


def _network(route: Any) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network((route.get_attr("RTA_DST") or "0.0.0.0", route["dst_len"]))


def _bar(own: Sequence[ipaddress.IPv4Network]) -> None:
    """In the namespace of the far end: what belongs to the machine does not leave for it. Networks that this
    namespace has itself are its own, whatever the machine has there."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        answer = route.get_routes(family=socket.AF_INET, table=_MAIN)
        known = [_network(each) for each in answer if each["dst_len"]]
        for network in own:
            if not any(network.overlaps(each) for each in known):
                route.route("add", dst=str(network), type="unreachable")


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
