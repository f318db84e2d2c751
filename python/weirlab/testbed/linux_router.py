"""A Linux router between two ends, each in a network namespace of its own.

    sender  198.18.0.2 ---- 198.18.0.1  router  198.19.0.1 ---- 198.19.0.2  receiver

The links are veth pairs, the addresses those that RFC 2544 (appendix C.2.2) reserves for benchmarks. In each
namespace an interface is called after whom it leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _core
from weirlab.errors import MissingCapability
from weirlab.privileges import BY_ROOT
from weirlab.testbed.namespaces import Namespace, set_sysctl, switch_off

if TYPE_CHECKING:
    from pyroute2 import IPRoute


MTU = 9000
"""Of all links, in bytes."""
SENDER, ROUTER_IN = "198.18.0.2", "198.18.0.1"
ROUTER_OUT, RECEIVER = "198.19.0.1", "198.19.0.2"
PREFIX = 24
NETWORK = "198.18.0.0/15"
ROLES = ("sender", "router", "receiver")


@dataclass(frozen=True)
class Route:
    """From one end to the other."""

    source: str
    """Role of the end that sends."""
    target: str
    source_address: str
    target_address: str

    @property
    def name(self) -> str:
        """Such as ``sender-receiver``."""
        return f"{self.source}-{self.target}"


THERE = Route("sender", "receiver", SENDER, RECEIVER)
BACK = Route("receiver", "sender", RECEIVER, SENDER)


@dataclass(frozen=True)
class Placement:
    """Which CPU does what."""

    sender: int
    """All that sends, in both directions."""
    router: int | None
    """None: the router's work is done by whoever hands it a frame, here the sender."""
    receiver: int
    """All that receives, in both directions."""

    @classmethod
    def on(cls, cpus: Sequence[int]) -> Placement:
        """The best use of ``cpus``: the router away from the sender, so that the sender can offer more than
        the router forwards; the receiver beside both where there are three."""
        match sorted(cpus):
            case [only]:
                return cls(sender=only, router=None, receiver=only)
            case [first, second]:
                return cls(sender=second, router=first, receiver=first)
            case [first, second, *_, last]:
                return cls(sender=last, router=first, receiver=second)
            case _:
                raise MissingCapability("this process may not run on any CPU")


@dataclass(frozen=True)
class Losses:
    """Where frames of one direction got lost: counts since the links were made."""

    handed_over: int
    """Frames that left the interface of the sending end, lost or not."""
    at_entrance: int
    """Frames for which the router had no room when they arrived."""
    at_exit: int
    """Frames for which the far side of the router's outgoing link had no room."""

    def __sub__(self, before: Losses) -> Losses:
        return Losses(
            handed_over=self.handed_over - before.handed_over,
            at_entrance=self.at_entrance - before.at_entrance,
            at_exit=self.at_exit - before.at_exit,
        )


class LinuxRouter:
    """Three namespaces, two links, and forwarding between them. Needs root on Linux."""

    needs_cpu = True
    """Whether it loses frames only while senders do not wait for it."""

    def __init__(self, router_cpu: int | None) -> None:
        """Build it.

        Args:
            router_cpu: The CPU that does the router's work; None: whichever hands it a frame.

        Raises:
            MissingCapability: not Linux, not root, or the kernel lacks something.
        """
        self._namespaces = {role: Namespace() for role in ROLES}
        self._cpu: int | None = None
        try:
            self._build(router_cpu)
        except BaseException:
            self.close()
            raise

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """The namespaces of ``sender``, ``router`` and ``receiver``."""
        return self._namespaces

    @property
    def cpu(self) -> int | None:
        """The CPU that does its work; None: whichever hands it a frame."""
        return self._cpu

    @property
    def largest_frame_bytes(self) -> int:
        """L2 size with FCS of the largest frame that passes."""
        return MTU + 14 + 4

    def check(self) -> None:
        """Raises TestbedError when nothing forwards any more. A kernel always does."""

    def losses(self, route: Route) -> Losses:
        """Where frames of a direction got lost so far."""
        entrance = self._namespaces[route.source].inside(_transmitted)["router"]
        way_out = self._namespaces["router"].inside(_transmitted)[route.target]
        return Losses(
            handed_over=entrance.frames + entrance.drops,
            at_entrance=entrance.drops,
            at_exit=way_out.drops,
        )

    def close(self) -> None:
        """Take it down. May be called twice."""
        for namespace in self._namespaces.values():
            namespace.close()

    def _build(self, router_cpu: int | None) -> None:
        self._namespaces["router"].inside(self._build_router)
        self._namespaces["sender"].inside(lambda: _build_end("sender", SENDER, ROUTER_IN))
        self._namespaces["receiver"].inside(lambda: _build_end("receiver", RECEIVER, ROUTER_OUT))
        if router_cpu is not None:
            try:
                for end in ("sender", "receiver"):
                    _core.steer_receive(self._namespaces["router"].path, end, [router_cpu])
                self._cpu = router_cpu
            except PermissionError as error:
                if not self.needs_cpu:
                    return
                raise MissingCapability(
                    "this router needs root of the machine, who alone may keep it off the senders' CPU "
                    f"(receive packet steering); a user namespace is not enough. {BY_ROOT}. 'router: "
                    "shaped' and simulated devices (weir search search-knee) need no root"
                ) from error
            except OSError as error:
                raise MissingCapability(
                    f"the router cannot be kept off the senders' CPU (receive packet steering): {error}"
                ) from error

    def _build_router(self) -> None:
        """Both links, from the router's side, and forwarding between them."""
        from pyroute2 import IPRoute
        from pyroute2.netlink.exceptions import NetlinkError

        _prepare_stack()
        set_sysctl("ipv4.ip_forward", 1)
        with IPRoute() as route:
            for end in ("sender", "receiver"):
                far_side = {
                    "ifname": "router",
                    "net_ns_fd": self._namespaces[end].fd,
                    "address": mac_address(end, "router"),
                }
                try:
                    route.link(
                        "add", ifname=end, kind="veth", address=mac_address("router", end), peer=far_side
                    )
                except NetlinkError as error:
                    raise MissingCapability(f"this kernel makes no veth pair: {error}") from error
            _raise_interface(route, "sender", ROUTER_IN)
            _raise_interface(route, "receiver", ROUTER_OUT)
            know(route, "sender", SENDER, mac_address("sender", "router"))
            know(route, "receiver", RECEIVER, mac_address("receiver", "router"))


@dataclass(frozen=True)
class _Transmitted:
    """What an interface handed to its peer, and what the peer had no room for."""

    frames: int
    drops: int


def _prepare_stack() -> None:
    """In the namespace of the calling thread: nothing but what is measured sends, and nothing is filtered."""
    for scope in ("all", "default"):
        set_sysctl(f"ipv6.conf.{scope}.disable_ipv6", 1)
        set_sysctl(f"ipv4.conf.{scope}.rp_filter", 0)
        set_sysctl(f"ipv4.conf.{scope}.send_redirects", 0)


def _build_end(role: str, own: str, gateway: str) -> None:
    """The sender's or the receiver's side, in its namespace."""
    from pyroute2 import IPRoute

    _prepare_stack()
    with IPRoute() as route:
        _raise_interface(route, "router", own)
        know(route, "router", gateway, mac_address("router", role))
        route.route("add", dst=NETWORK, gateway=gateway)


def _raise_interface(route: IPRoute, name: str, address: str) -> None:
    (index,) = route.link_lookup(ifname=name)
    route.link("set", index=index, mtu=MTU)
    switch_off(name)
    route.addr("add", index=index, address=address, prefixlen=PREFIX)
    route.link("set", index=index, state="up")


def know(route: IPRoute, interface: str, address: str, mac: str) -> None:
    """A neighbour entry for ever: no ARP in the middle of a trial."""
    (index,) = route.link_lookup(ifname=interface)
    route.neigh("replace", dst=address, lladdr=mac, ifindex=index, state="permanent")


def mac_address(owner: str, towards: str) -> str:
    """A locally administered address for each end of each link."""
    return f"02:00:00:00:{ROLES.index(owner):02x}:{ROLES.index(towards):02x}"


def _transmitted() -> dict[str, _Transmitted]:
    """Of the interfaces in the namespace of the calling thread."""
    found = {}
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        # Eight numbers for reception, then bytes, packets, errors, drops for transmission.
        columns = [int(number) for number in numbers.split()]
        found[name.strip()] = _Transmitted(frames=columns[9], drops=columns[11])
    return found


def softnet_drops() -> int:
    """Frames that the receive backlogs of all CPUs dropped since the machine started."""
    return sum(int(line.split()[1], 16) for line in Path("/proc/net/softnet_stat").read_text().splitlines())
