"""What this machine can do for Weirlab, and what each lack means.

Nothing is changed: what must be tried is tried in a network namespace that is thrown away.

One file: each check is a few lines, and `weir doctor` shows them in this order.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weirlab import _core
from weirlab.errors import MissingCapability
from weirlab.testbed.account import CpuTime, MachineAccount, Reading, thread_waits
from weirlab.testbed.namespaces import Namespace, set_sysctl

Status = Literal["ok", "lack", "unknown"]
"""``unknown``: it could not be found out, for a reason that ``found`` gives."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    section: str
    """What it belongs to: ``system``, ``privileges``, ``kernel``, ``time``, ``tools``."""
    name: str
    status: Status
    found: str
    """What there is: a version, a number, the answer of the system."""
    means: str = ""
    """What cannot be done without it. Empty when nothing is lacking."""
    remedy: str = ""
    """How to get it. Empty when nothing is lacking."""


def examine(*, measure_clock: bool = True) -> list[Check]:
    """Look at everything; takes about two seconds, less without ``measure_clock``."""
    return [
        *_system(),
        *_privileges(),
        *_kernel(),
        *_time(measure=measure_clock),
        *_tools(),
    ]


LIVE_ONLY = "no live testbeds ('netns'): the simulator, device models, searches and reports work"
NEEDS_LINUX = "use a Linux machine, or a virtual one"


def _check(section: str, name: str, found: str, *, lacks: bool | None, means: str, remedy: str = "") -> Check:
    """A check whose meaning and remedy only matter where it lacks something; None: nobody knows."""
    status: Status = "unknown" if lacks is None else "lack" if lacks else "ok"
    matters = status != "ok"
    return Check(
        section=section,
        name=name,
        status=status,
        found=found,
        means=means if matters else "",
        remedy=remedy if matters else "",
    )


def _system() -> Iterator[Check]:
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield _check("system", "platform", system, lacks=not _on_linux(), means=LIVE_ONLY, remedy=NEEDS_LINUX)
    version = f"{platform.python_implementation()} {platform.python_version()}"
    yield _check(
        "system",
        "Python",
        version,
        lacks=sys.version_info < (3, 11),
        means="Weirlab is made for 3.11 and later",
        remedy="install a newer Python",
    )
    yield _check(
        "system",
        "compiled core",
        f"{_core.version()}, {'release' if _core.is_release() else 'debug'} build",
        lacks=not _core.is_release(),
        means="simulations take ten times as long, and a live sender sends less",
        remedy="maturin develop --release",
    )
    yield _place()
    yield _cpus()
    yield from _memory_and_load()
    for name, modules, what in (
        ("report packages", ("altair", "jinja2", "vl_convert"), "no plots and no HTML reports: tables only"),
        ("view packages", ("starlette", "uvicorn"), "no results in the browser: 'weir view'"),
        ("live packages", ("pyroute2",) if _on_linux() else (), LIVE_ONLY),
    ):
        yield _packages(name, modules, what)


def _place() -> Check:
    """Whether other users may start this Python and read this package, each of them below all its parents."""
    roots = {Path(sys.executable).absolute(), Path(sys.prefix).absolute(), Path(__file__).resolve().parent}
    above = sorted({place for root in roots for place in (root, *root.parents)})
    closed = next(
        (place for place in above if place.is_dir() and not place.stat().st_mode & stat.S_IXOTH), None
    )
    return _check(
        "system",
        "installed",
        f"in {sys.prefix}" + (f": {closed} is closed to other users" if closed else ""),
        # The owner of a private place may mean it so; root installs for all.
        lacks=closed is not None and _on_linux() and os.geteuid() == 0,
        means="ordinary users cannot run weir, nor can programs that become the user who called sudo",
        remedy="install it where all may read, such as: python3 -m venv /opt/weirlab",
    )


def _cpus() -> Check:
    count = len(os.sched_getaffinity(0)) if _on_linux() else os.cpu_count() or 1
    return _check(
        "system",
        "CPUs",
        f"{count} usable" + (": the receiver shares the router's" if count == 2 and _on_linux() else ""),
        lacks=count < 2,
        means=(
            "a live router on the only CPU forwards inside the sender's own system calls and never loses: a "
            "search on 'netns' ends with 'no upper bound seen'"
        ),
        remedy="give the machine a second CPU; with three or more the receiver has its own",
    )


def _memory_and_load() -> Iterator[Check]:
    import psutil

    available = psutil.virtual_memory().available
    yield _check(
        "system",
        "memory",
        f"{available / 1e9:.1f} GB available",
        lacks=available < 1e9,
        means="large networks, many replicates at once and fast live trials may not fit",
        remedy="end other programs",
    )
    load, count = psutil.getloadavg()[0], os.cpu_count() or 1
    yield _check(
        "system",
        "other work",
        f"{load:.2f} waiting or running on {count} CPUs in the last minute",
        lacks=load > 0.5 * count,
        means="live results are uneven: losses and delays also show what else this machine does",
        remedy="wait until it is idle",
    )


def _packages(name: str, modules: Sequence[str], means: str) -> Check:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    present = [f"{module} {_package_version(module)}" for module in modules if module not in missing]
    return _check(
        "system",
        name,
        ", ".join([*present, *(f"no {module}" for module in missing)]) or "none needed",
        lacks=bool(missing),
        means=means,
        remedy=f"in a checkout: pip install -e '.[{name.split()[0]}]'"
        if name.split()[0] in ("report", "view")
        else "in a checkout: pip install .",
    )


def _package_version(module: str) -> str:
    names = importlib.metadata.packages_distributions().get(module, [module])
    try:
        return importlib.metadata.version(names[0])
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}
"""Bit numbers of include/uapi/linux/capability.h."""


def _privileges() -> Iterator[Check]:
    if not _on_linux():
        return
    held = _capabilities()
    refused = _user_namespace_refused()
    building = [name for name in ("CAP_SYS_ADMIN", "CAP_NET_ADMIN") if name not in held]
    user = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    yield _check(
        "privileges",
        "network administration",
        f"{user}, " + ("without " + ", ".join(building) if building else "with all that is needed"),
        lacks=bool(building),
        means=LIVE_ONLY
        if refused
        else "no 'router: linux' or 'testpmd'; emulated paths and 'router: shaped' have a user namespace of "
        "their own",
        remedy="run the command with sudo; in a container, grant CAP_SYS_ADMIN and CAP_NET_ADMIN",
    )
    yield _check(
        "privileges",
        "user namespaces",
        refused or "made and left one",
        lacks=bool(refused),
        means="'weir emulate', 'weir bulk' over emulated paths and 'weir search' on routers need root",
        remedy="see what refuses them, or run the command with sudo",
    )
    limit = _real_time_limit()
    yield _check(
        "privileges",
        "real-time priority",
        "CAP_SYS_NICE" if "CAP_SYS_NICE" in held else f"RLIMIT_RTPRIO {limit}",
        lacks="CAP_SYS_NICE" not in held and limit < 40,
        means="live senders wait for other programs: late, uneven loads",
        remedy="run the command with sudo, or set 'rtprio 50' in /etc/security/limits.conf",
    )
    runtime = _read("/proc/sys/kernel/sched_rt_runtime_us")
    yield _check(
        "privileges",
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


def _capabilities() -> set[str]:
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", _read("/proc/self/status") or "", re.MULTILINE)
    bits = int(match[1], 16) if match else 0
    return {name for name, bit in CAPABILITIES.items() if bits >> bit & 1}


def _real_time_limit() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    return 99 if soft == resource.RLIM_INFINITY else soft


FEATURES = {
    "veth pairs": ("no 'netns' testbed", "a kernel with CONFIG_VETH"),
    "receive steering": (
        "'router: linux' and 'testpmd' would share the sender's CPU and rarely lose: they are not built",
        "run the command with sudo; a kernel with CONFIG_RPS",
    ),
    "network settings": (
        "no testbed with emulated routers or paths",
        "a privileged container ('docker run --privileged')",
    ),
    "tun devices": ("no emulated paths in user space", "a kernel with CONFIG_TUN, and /dev/net/tun"),
    "qdisc tbf": ("links cannot be shaped by the kernel", "a kernel with CONFIG_NET_SCH_TBF"),
    "qdisc htb": ("links cannot be shared by classes", "a kernel with CONFIG_NET_SCH_HTB"),
    "qdisc netem": (
        "the kernel itself adds no delay or loss to a path",
        "a kernel with CONFIG_NET_SCH_NETEM, or its modules package",
    ),
    "qdisc fq": ("TCP paces itself with its own timers", "a kernel with CONFIG_NET_SCH_FQ"),
}
"""What is tried in a namespace: what cannot be done without it, and where it comes from."""


def _kernel() -> Iterator[Check]:
    if not _on_linux():
        return
    tried, refused = _try_features()
    yield _check(
        "kernel",
        "network namespaces",
        refused or "made and removed one",
        lacks=bool(refused),
        means=LIVE_ONLY,
        remedy="run the command with sudo, or in a privileged container; a kernel with CONFIG_NET_NS",
    )
    for name, (means, remedy) in FEATURES.items():
        answer = tried.get(name, "not tried: no network namespace")
        lacks = None if name not in tried else answer != ""
        yield _check("kernel", name, answer or "works", lacks=lacks, means=means, remedy=remedy)
    yield _probes()
    yield _congestion_controls()
    for name in ("rmem_max", "wmem_max"):
        limit = _read(f"/proc/sys/net/core/{name}")
        small = limit is None or ("CAP_NET_ADMIN" not in _capabilities() and int(limit) < 4 << 20)
        yield _check(
            "kernel",
            f"net.core.{name}",
            f"{limit} B",
            lacks=None if limit is None else small,
            means="sockets of the live tester overflow at high rates",
            remedy=f"sysctl net.core.{name}={4 << 20}, or run the command with sudo",
        )


def _probes() -> Check:
    """Whether the kernel reports to a socket what became of its packets: what `weir path` rests on."""
    found, lacks = _probe_loopback()
    return _check(
        "kernel",
        "path probes",
        found,
        lacks=lacks,
        means="'weir path' hears no router: messages of ICMP do not come back to who sent a probe",
        remedy="let a firewall on this host pass ICMP errors (destination unreachable, time exceeded)",
    )


def _probe_loopback() -> tuple[str, bool]:
    """What became of a probe to a port of this host where nobody listens, and whether it failed."""
    try:
        reported = _core.probe_path(
            destination="127.0.0.1",
            port=33434,
            rotating=False,
            source_port=0,
            token=1,
            at_ps=[0],
            hops=[1],
            size_bytes=[100],
            timeout_ps=200 * 10**9,
            real_time=False,
        )
    except OSError as error:
        return str(error.strerror or error), True
    (word,) = reported["word"]
    if not word:
        return "a probe of this host itself was not answered", True
    return f"answered after {reported['rtt_ps'][0] / 1e6:.0f} us, as the kernel stamped it", False


def _congestion_controls() -> Check:
    available = (_read("/proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    default = _read("/proc/sys/net/ipv4/tcp_congestion_control")
    missing = [name for name in ("reno", "cubic") if name not in available]
    return _check(
        "kernel",
        "TCP congestion control",
        f"{' '.join(available) or 'none'}; default {default}",
        lacks=bool(missing),
        means=f"live TCP with {' or '.join(missing)} cannot be compared",
        remedy="a kernel with CONFIG_TCP_CONG_CUBIC, or modprobe tcp_cubic",
    )


def _try_features() -> tuple[dict[str, str], str]:
    """For each feature the refusal of the system, or nothing; and why nothing could be tried, or nothing."""
    try:
        place = Namespace()
    except MissingCapability as error:
        return {}, str(error)
    try:
        tried = place.inside(_try_links)
        if tried["veth pairs"] == "":
            tried["receive steering"] = _refusal(lambda: _core.steer_receive(place.path, "left", [0]))
        return tried, ""
    finally:
        place.close()


def _try_links() -> dict[str, str]:
    """In a namespace of the calling thread that nobody else uses."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        tried = {"veth pairs": _refusal(lambda: route.link("add", ifname="left", kind="veth", peer="right"))}
        (loopback,) = route.link_lookup(ifname="lo")
        options = {
            "tbf": {"rate": "1mbit", "burst": 2000, "latency": "10ms"},
            "htb": {},
            "netem": {},
            "fq": {},
        }
        for number, (kind, values) in enumerate(options.items(), start=1):
            add = functools.partial(route.tc, "replace", kind, loopback, handle=f"{number}:", **values)
            tried[f"qdisc {kind}"] = _refusal(add)
    tried["network settings"] = _refusal(lambda: set_sysctl("ipv4.ip_forward", 1))
    tried["tun devices"] = _refusal(_make_tun)
    return tried


def _make_tun() -> None:
    """Make and remove a TUN interface (linux/if_tun.h: TUNSETIFF, IFF_TUN | IFF_NO_PI)."""
    import fcntl
    import struct

    device = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"weirlab", 0x1001))
    finally:
        os.close(device)


def _refusal(attempt: Callable[[], object]) -> str:
    """What the system says against ``attempt``; nothing when it succeeds."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        attempt()
    except (NetlinkError, OSError, MissingCapability) as error:
        return str(error.args[-1])
    return ""


def _time(*, measure: bool) -> Iterator[Check]:
    if not _on_linux():
        return
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    slow = source in ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
    yield _check(
        "time",
        "time source",
        str(source),
        lacks=None if source is None else slow,
        means="reading the clock costs as much as sending a frame",
        remedy="boot with clocksource=tsc where the machine allows it",
    )
    if not measure:
        return
    before, waits = Reading.now(), thread_waits()
    quality = _core.clock_quality()
    account = Reading.now() - before
    waited = [waited_s - waits.get(thread, 0.0) for thread, waited_s in thread_waits().items()]
    yield _taken(account.with_waits({"a normal thread": max(waited, default=None)}), before)
    normal, real_time = quality["overshoot_ns"], quality["real_time_overshoot_ns"]
    yield _check(
        "time",
        "clock",
        f"resolution {quality['resolution_ns']} ns, {quality['reading_ns']} ns to read",
        lacks=quality["resolution_ns"] > 1_000 or quality["reading_ns"] > 1_000,
        means="departures and delays are coarser than a microsecond",
        remedy="another machine: the clock is part of it",
    )
    yield _check(
        "time",
        "sleep",
        f"wakes {_overshoot(normal)} late",
        lacks=normal["p99"] > 5_000_000,
        means="normal threads wait long for a CPU: the machine is busy",
        remedy="end other programs",
    )
    yield _check(
        "time",
        "real-time sleep",
        f"wakes {_overshoot(real_time)} late" if real_time else "no real-time priority",
        lacks=real_time is None or real_time["p99"] > 1_000_000,
        means="live loads come in bursts after pauses; results carry the lateness",
        remedy="run with sudo, on a dedicated machine, or with CPUs that a hypervisor does not share",
    )


def _taken(account: MachineAccount, since_boot: Reading) -> Check:
    """What others took from the time in which the clock was measured, and what a hypervisor took so far."""
    total = sum(since_boot.cpus.values(), CpuTime())
    all_s = total.programs_s + total.interrupts_s + total.stolen_s + total.idle_s
    stolen = (
        f"{total.stolen_s / all_s:.2%} stolen by a hypervisor since the start" if all_s else "steal unknown"
    )
    return _check(
        "time",
        "taken by others",
        f"in {account.duration_s:.1f} s: {account.disturbance or 'nothing that matters'}; {stolen}",
        lacks=bool(account.disturbance) if account.cpus else None,
        means="emulated packets are late, live loads uneven; results say how much was taken from them",
        remedy="end other programs; steal ends on a machine whose CPUs a hypervisor does not share",
    )


def _overshoot(late: dict[str, int]) -> str:
    return f"{late['p50'] / 1e3:.0f} us (median), {late['p99'] / 1e3:.0f} us (99 %)"


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


def _tools() -> list[Check]:
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
    return _check("tools", name, found, lacks=not works, means=tool.means, remedy=remedy)


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


def _read(path: str) -> str | None:
    """The text of a small file; None where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _on_linux() -> bool:
    return sys.platform == "linux"
