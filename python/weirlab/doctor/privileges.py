"""What the user may do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

from weirlab.doctor.checks import LIVE_ONLY, Check, checked, on_linux, read


def checks() -> Iterator[Check]:
    """What live testbeds and threads need."""
    if not on_linux():
        return
    held = capabilities()
    refused = _user_namespace_refused()
    building = [name for name in ("CAP_SYS_ADMIN", "CAP_NET_ADMIN") if name not in held]
    user = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    yield checked(
        "network administration",
        f"{user}, " + ("without " + ", ".join(building) if building else "with all that is needed"),
        lacks=bool(building),
        means=LIVE_ONLY
        if refused
        else "no 'router: linux' or 'testpmd'; emulated paths and 'router: shaped' have a user namespace of "
        "their own",
        remedy="run the command with sudo, or its container with --privileged",
    )
    yield checked(
        "user namespaces",
        refused or "made and left one",
        lacks=bool(refused),
        means="'weir emulate', 'weir bulk' over emulated paths and 'weir search' on routers need root",
        remedy="see what refuses them, or run the command with sudo",
    )
    limit = _real_time_limit()
    yield checked(
        "real-time priority",
        "CAP_SYS_NICE" if "CAP_SYS_NICE" in held else f"RLIMIT_RTPRIO {limit}",
        lacks="CAP_SYS_NICE" not in held and limit < 40,
        means="live senders wait for other programs: late, uneven loads",
        remedy="run the command with sudo, or set 'rtprio 50' in /etc/security/limits.conf",
    )
    runtime = read("/proc/sys/kernel/sched_rt_runtime_us")
    yield checked(
        "real-time share",
        f"sched_rt_runtime_us {runtime}",
        lacks=None if runtime is None else runtime == "0",
        means="real-time threads do not run",
        remedy="sysctl kernel.sched_rt_runtime_us=950000",
    )


def _user_namespace_refused() -> str:
    """Why an ordinary user has no user namespace to make network namespaces in; nothing when that works.
    Tried in another process, which ends in it."""
    program = "from weirlab import privileges; privileges.enter()"
    command = [sys.executable, "-c", program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return "the attempt did not end within 20 s"
    return done.stderr.strip().rpartition("MissingCapability: ")[2] if done.returncode else ""


CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}
"""Bit numbers of include/uapi/linux/capability.h."""


def capabilities() -> set[str]:
    """Those of `CAPABILITIES` that this process has."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", read("/proc/self/status") or "", re.MULTILINE)
    bits = int(match[1], 16) if match else 0
    return {name for name, bit in CAPABILITIES.items() if bits >> bit & 1}


def _real_time_limit() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    return 99 if soft == resource.RLIM_INFINITY else soft
