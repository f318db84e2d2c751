"""The way back, as traceroute sees it from the other end, which ssh reaches."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weirlab.campaigns.hosts import End, output
from weirlab.errors import TestbedError

_LIMIT_S = 90.0


@dataclass(frozen=True)
class BackHop:
    """A hop on the way back."""

    hops: int
    routers: tuple[str, ...]
    """None: silent."""
    rtt_s: float | None
    """Least of the round-trip times seen from there."""


@dataclass(frozen=True)
class WayBack:
    """From the other end to this host."""

    host: str
    """Where it was asked."""
    target: str
    hops: tuple[BackHop, ...]
    reached: bool


def way_back(end: End, host: str, target: str) -> WayBack:
    """Run traceroute at the other end. Raises TestbedError when that is not possible."""
    version = "-6" if ":" in target else "-4"
    command = ["traceroute", version, "-n", "-q", "3", "-w", "2", target]
    return read_traceroute(output(end, command, _LIMIT_S), host, target)


def read_traceroute(text: str, host: str, target: str) -> WayBack:
    """What traceroute printed. Raises TestbedError when there is no hop in it."""
    hops = []
    for line in text.splitlines():
        reported = re.match(r"\s*(\d+)\s+(.*)", line)
        if reported is None:
            continue
        addresses = re.findall(r"(?<![\w.:])(\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f:.]+)(?=\s|$)", reported[2])
        times = [float(time_ms) / 1e3 for time_ms in re.findall(r"([\d.]+) ms", reported[2])]
        hops.append(BackHop(int(reported[1]), tuple(dict.fromkeys(addresses)), min(times, default=None)))
    if not hops:
        raise TestbedError(f"traceroute on {host}: {text.strip()[-300:] or 'no word'}")
    return WayBack(host, target, tuple(hops), target in hops[-1].routers)
