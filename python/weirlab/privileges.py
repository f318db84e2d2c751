"""What a user needs to make network namespaces: to be root, or a user namespace of one's own.

An ordinary user has one by default on most systems, and nothing has to be installed for it: the process moves
into it, remains the same user, and has all capabilities over the namespaces that it makes there and none over
anything else. That takes a process with one thread. A command whose libraries have started threads runs
itself once more, and enters as its first act.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypedDict

from weirlab.errors import MissingCapability

_AGAIN = "WEIRLAB_STARTED_AGAIN"
"""Is in the environment of a command that runs itself once more."""
_SWITCHES = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
)
"""Settings that keep user namespaces from ordinary users: where, the value that does, and the remedy."""
BY_ROOT = "Run the command with sudo, or its container with --privileged"
"""The remedy that always helps."""


class _Process:
    is_command = False
    """Whether this process is a command that may run itself once more."""


def may_make_namespaces() -> bool:
    """Whether this process may make network namespaces as it is. Tries it."""
    from weirlab import _core

    try:
        os.close(_core.create_namespace())
    except PermissionError:
        return False
    except OSError:
        return True  # refused for another reason, which a user namespace does not change
    return True


def enter() -> None:
    """Move this process into a user namespace of its own.

    Raises MissingCapability where the system lets ordinary users have none, or the process has several
    threads.
    """
    from weirlab import _core

    if _threads() > 1:
        raise MissingCapability(
            "network namespaces need root, or a user namespace, which only a process with one thread can "
            "enter: set OPENBLAS_NUM_THREADS=1, or call weirlab.privileges.enter() before numpy is imported; "
            f"or {_by_root()}"
        )
    try:
        _core.enter_own_user_namespace()
    except OSError as error:
        raise MissingCapability(
            f"network namespaces need root, or user namespaces, which this system refuses: {error}. "
            f"{_remedy()}"
        ) from error
    if not may_make_namespaces():
        raise MissingCapability(
            "network namespaces need root: in a user namespace, too, this system refuses them. " + _remedy()
        )


def acquire() -> None:
    """Make sure that this command may make network namespaces: as it is, in a user namespace, or in one that
    it enters after it has run itself once more, which does not return.

    Whatever the command has done so far is done again then. Raises MissingCapability.
    """
    if sys.platform != "linux" or may_make_namespaces():
        return  # what is no Linux is reported where namespaces are made
    if _threads() > 1 and _Process.is_command:
        _start_again()
    enter()


def enter_if_started_again() -> None:
    """The first act of a command that has a process to itself: what `acquire` has run it once more for."""
    _Process.is_command = True
    if os.environ.pop(_AGAIN, None):
        _Process.is_command = False  # twice is enough
        enter()


def _start_again() -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, _AGAIN: "1"})


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _by_root() -> str:
    return BY_ROOT[0].lower() + BY_ROOT[1:]


def _remedy() -> str:
    """Which setting of this system is in the way."""
    for place, value, setting in _SWITCHES:
        with contextlib.suppress(OSError):
            if Path("/proc/sys", place).read_text(encoding="ascii").strip() == value:
                return f"Allow them (as root: sysctl {setting}), or {_by_root()}"
    return BY_ROOT


class Ownership(TypedDict, total=False):
    """Options of `subprocess.Popen` that make a program somebody's."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class User:
    """Who has called `sudo`."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str
    shell: str

    @property
    def popen(self) -> Ownership:
        """Options of `subprocess.Popen` that make a program this user's."""
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """An environment of root as this user would have it."""
        kept = {name: value for name, value in given.items() if not name.startswith("SUDO_")}
        own = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}
        return kept | own


def invoking_user() -> User | None:
    """Who has called `sudo` to become root; None where nobody has, or root itself."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return None
    import pwd

    try:
        uid, gid = (int(os.environ[name]) for name in ("SUDO_UID", "SUDO_GID"))
        if uid == 0:
            return None
        entry = pwd.getpwuid(uid)
    except (KeyError, ValueError):
        return None
    groups = tuple(os.getgrouplist(entry.pw_name, gid))
    return User(uid, gid, groups, entry.pw_name, entry.pw_dir, entry.pw_shell or "/bin/sh")
