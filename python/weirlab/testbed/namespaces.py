"""Network namespaces without names, and what is done inside them.

A namespace lives as long as somebody holds it. Nothing is written to ``/run/netns``: when this process ends,
however it ends, the kernel takes its namespaces down with all their interfaces. To look into one while it
lives::

    nsenter --net=/proc/PID/fd/FD ip -s link
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from weirlab import _core
from weirlab.errors import MissingCapability
from weirlab.privileges import enter

T = TypeVar("T")

UNWANTED = (
    "tx-udp-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
)
"""Offloads that make one frame of many: what a device is asked to forward would not be what was counted."""


class Namespace:
    """A new network namespace of this process. Needs root, or a user namespace (`weirlab.privileges`), which
    a process with one thread enters here by itself.
    """

    def __init__(self) -> None:
        """Raises MissingCapability when this machine or user cannot make one."""
        if sys.platform != "linux":
            raise MissingCapability("network namespaces need Linux")
        try:
            self._fd = self._made()
        except OSError as error:
            raise MissingCapability(f"this system makes no network namespace: {error}") from error
        self._close = weakref.finalize(self, os.close, self._fd)

    @staticmethod
    def _made() -> int:
        try:
            return _core.create_namespace()
        except PermissionError:
            enter()
            return _core.create_namespace()

    @property
    def fd(self) -> int:
        """The descriptor that keeps the namespace alive."""
        return self._fd

    @property
    def path(self) -> str:
        """A path to the namespace that this process can open."""
        return f"/proc/self/fd/{self._fd}"

    def inside(self, work: Callable[[], T]) -> T:
        """What ``work`` returns, called in a thread that stands in the namespace.

        Sockets made there stay there, and so does a child process started there.
        """
        from pyroute2 import netns

        results: list[T] = []
        failures: list[BaseException] = []

        def enter_and_work() -> None:
            try:
                netns.setns(self._fd)
                results.append(work())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=enter_and_work, name=f"namespace-{self._fd}", daemon=True)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    def close(self) -> None:
        """Let go of it. May be called twice."""
        self._close()


def set_sysctl(name: str, value: int | str) -> bool:
    """Set ``net.NAME`` in the namespace of the calling thread; False where the kernel has no such setting.

    Raises MissingCapability in a container that may not.
    """
    path = Path("/proc/sys/net", *name.split("."))
    try:
        path.write_text(f"{value}\n")
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        raise MissingCapability(
            f"{path} is read-only in this container: start it privileged ('docker run --privileged')"
        ) from None
    return True


def switch_off(interface: str, features: Iterable[str] = UNWANTED) -> list[str]:
    """Switch off offloads of ``interface``, which the namespace of the calling thread has.

    Returns those that the interface does not give up.
    """
    from pyroute2.ethtool.ioctl import IoctlEthtool

    wanted = tuple(features)
    device = IoctlEthtool(interface)
    try:
        state = device.get_features()
        present = [name for name in wanted if name in state and state.is_active(name)]
        for name in present:
            state[name] = False
        device.set_features(state)
        state = device.get_features()
        return [name for name in present if state.is_active(name)]
    finally:
        device.close()
