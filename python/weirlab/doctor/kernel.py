"""What the kernel can do, tried in a network namespace that is thrown away."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

from weirlab import _core
from weirlab.doctor.checks import LIVE_ONLY, Check, checked, on_linux, read
from weirlab.doctor.privileges import capabilities
from weirlab.errors import MissingCapability
from weirlab.testbed.namespaces import Namespace, set_sysctl

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
    "tun devices": (
        "no emulated paths in user space",
        "a kernel with CONFIG_TUN, and /dev/net/tun; run the container with --privileged",
    ),
    "qdisc tbf": ("links cannot be shaped by the kernel", "a kernel with CONFIG_NET_SCH_TBF"),
    "qdisc htb": ("links cannot be shared by classes", "a kernel with CONFIG_NET_SCH_HTB"),
    "qdisc netem": (
        "the kernel itself adds no delay or loss to a path",
        "a kernel with CONFIG_NET_SCH_NETEM, or its modules package",
    ),
    "qdisc fq": ("TCP paces itself with its own timers", "a kernel with CONFIG_NET_SCH_FQ"),
}
"""What is tried in a namespace: what cannot be done without it, and where it comes from."""


def checks() -> Iterator[Check]:
    """Namespaces, links and queues, probes, congestion controls, limits of sockets."""
    if not on_linux():
        return
    tried, refused = _try_features()
    yield checked(
        "network namespaces",
        refused or "made and removed one",
        lacks=bool(refused),
        means=LIVE_ONLY,
        remedy="run the command with sudo, or its container with --privileged; a kernel with CONFIG_NET_NS",
    )
    for name, (means, remedy) in FEATURES.items():
        answer = tried.get(name, "not tried: no network namespace")
        lacks = None if name not in tried else answer != ""
        yield checked(name, answer or "works", lacks=lacks, means=means, remedy=remedy)
    yield _probes()
    yield _congestion_controls()
    for name in ("rmem_max", "wmem_max"):
        limit = read(f"/proc/sys/net/core/{name}")
        small = limit is None or ("CAP_NET_ADMIN" not in capabilities() and int(limit) < 4 << 20)
        yield checked(
            f"net.core.{name}",
            f"{limit} B",
            lacks=None if limit is None else small,
            means="sockets of the live tester overflow at high rates",
            remedy=f"sysctl net.core.{name}={4 << 20}, or run the command with sudo",
        )


def _probes() -> Check:
    """Whether the kernel reports to a socket what became of its packets: what `weir path` rests on."""
    found, lacks = _probe_loopback()
    return checked(
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
    available = (read("/proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    default = read("/proc/sys/net/ipv4/tcp_congestion_control")
    missing = [name for name in ("reno", "cubic") if name not in available]
    return checked(
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
