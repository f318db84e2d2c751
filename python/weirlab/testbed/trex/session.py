"""Who a session is, so that a later one can tell that it is dead.

A TRex server keeps the ports of a session that ended without releasing them, and refuses them to any other,
also of the same user (trex-core, src/stx/common/trex_port.cpp, ``TrexPort::acquire``). Nothing but ``force``
takes them back. So the name under which ports are taken tells which process of which host took them: where
that process is gone, nobody is robbed.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from pathlib import Path

_NAME = re.compile(r"weirlab-.+@(?P<place>[0-9a-f]{10}):(?P<process>[0-9]+)\.(?P<began>[0-9]+)")


def session_name(process: int | None = None) -> str:
    """Such as ``weirlab-alice@0f3c...:1234.56789``: the user, the place, and of the process (None: of this
    one) its number and when it began."""
    number = os.getpid() if process is None else process
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "user"
    return f"weirlab-{user}@{_place()}:{number}.{_began(number) or 0}"


def is_dead(owner: str) -> bool:
    """Whether the owner of a port is a session of this host, in this boot and this space of processes, whose
    process is gone. False wherever that cannot be known."""
    found = _NAME.fullmatch(owner)
    if found is None or found["place"] != _place() or found["began"] == "0":
        return False
    return _began(int(found["process"])) != int(found["began"])


def _place() -> str:
    """Where process numbers mean the same: a host, a boot of it, and its space of processes."""
    boot = _text(Path("/proc/sys/kernel/random/boot_id"))
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return hashlib.sha256(f"{socket.gethostname()} {boot} {space}".encode()).hexdigest()[:10]


def _began(process: int) -> int | None:
    """When a process began, in ticks since the machine was started; None where there is none, or it cannot be
    known.

    Source: Linux accounts, proc.rst, table 1-4, field start_time.
    """
    fields = _text(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
