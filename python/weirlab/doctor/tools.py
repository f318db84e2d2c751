"""Programs that commands run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from weirlab.doctor.checks import Check, checked


@dataclass(frozen=True)
class _Tool:
    package: str
    """Debian's name."""
    version_option: str
    """Empty: it prints its version only when it begins to work."""
    means: str


TOOLS = {
    "iperf3": _Tool(
        "iperf3", "--version", "no campaigns of 'weir bulk' and no 'weir reproduce bulk' on real stacks"
    ),
    "ping": _Tool(
        "iputils-ping", "-V", "no campaigns of 'weir bulk', nor 'weir reproduce bulk', on real stacks"
    ),
    "timeout": _Tool("coreutils", "--version", "no campaigns on real stacks, no testbed 'testpmd'"),
    "ssh": _Tool(
        "openssh-client", "-V", "no campaigns between real hosts (testbed 'ssh'), no 'weir path --ssh'"
    ),
    "openssl": _Tool("openssl", "version", "no requests over TLS in campaigns ('tls: true')"),
    "tc": _Tool("iproute2", "-V", "no 'weir emulate --with netem'"),
    "slirp4netns": _Tool("slirp4netns", "--version", "no 'weir emulate --internet'"),
    "dpdk-testpmd": _Tool("dpdk-dev", "", "no testbed 'testpmd'"),
    "ip": _Tool("iproute2", "-V", "namespaces and links cannot be looked at by hand"),
    "ethtool": _Tool("ethtool", "--version", "offloads cannot be looked at by hand"),
    "traceroute": _Tool("traceroute", "--version", "the hops of a path cannot be listed by another program"),
    "tcpdump": _Tool("tcpdump", "--version", "no captures of live traffic"),
    "tshark": _Tool("tshark", "--version", "captures are not checked by a second reader"),
    "chromium": _Tool("chromium", "--version", "reports cannot be turned into pictures by a browser"),
}


def checks() -> list[Check]:
    """Each program of `TOOLS`."""
    with ThreadPoolExecutor() as pool:
        return [*pool.map(_tool, TOOLS)]


def _tool(name: str) -> Check:
    tool = TOOLS[name]
    remedy = f"apt-get install {tool.package}"
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    found, works = "not found", False
    if path is not None:
        try:
            found, works = _version_of(path, tool.version_option), True
            if name == "ping":
                lack = _ping_lack(path)
                found, works = f"{found}{lack and ', but '}{lack}", not lack
        except OSError as error:
            found = f"{path} cannot be run: {error.strerror}"
        if not works:
            remedy = (
                "let programs have CAP_NET_RAW: containers often take it away (--cap-add=NET_RAW); elsewhere "
                "sysctl net.ipv4.ping_group_range='0 2147483647'"
                if name == "ping"
                else f"see who may run {path}"
            )
    return checked(name, found, lacks=not works, means=tool.means, remedy=remedy)


_UNKNOWN_VERSION = "of unknown version"


def _version_of(path: str, option: str) -> str:
    """The first number in what a tool says of itself. Raises OSError where it cannot be run."""
    if not option:
        return _UNKNOWN_VERSION
    try:
        answer = _answer([path, option])
    except subprocess.TimeoutExpired:
        return _UNKNOWN_VERSION
    match = re.search(r"\d+\.\d[\w.]*|\d{8}", answer.stdout + answer.stderr)
    return match[0] if match else _UNKNOWN_VERSION


def _ping_lack(path: str) -> str:
    """Why a ping of this host itself is not answered; empty when it is, or takes too long to tell."""
    try:
        answer = _answer([path, "-n", "-c", "1", "-W", "2", "127.0.0.1"])
    except subprocess.TimeoutExpired:
        return ""
    if answer.returncode == 0:
        return ""
    return (answer.stderr.strip() or "this host does not answer it").splitlines()[0]


def _answer(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=5,
        check=False,
        stdin=subprocess.DEVNULL,
    )
