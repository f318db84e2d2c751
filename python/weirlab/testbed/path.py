"""An emulated path between two network namespaces, which any program can use.

near 198.18.0.1 ==hop 0== 198.18.0.2 router 198.18.1.1 ==hop 1== 198.18.1.2 far

Each end of a hop is a TUN device; what it is given goes through the path models of the compiled core, with
the monotonic clock, and comes out at the other end. The addresses are those that RFC 2544 (appendix C.2.2)
reserves for benchmarks; those of IPv6, on request, 2001:2:0:HOP::1 and ::2 (RFC 5180). In each namespace a
device is called after the end that it leads to.

One file: an emulated path is one object, from its namespaces to its end.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from weirlab import _core
from weirlab.errors import MissingCapability, TestbedError
from weirlab.scenario.network.path import Line, PathPlan, line_spec
from weirlab.testbed.account import Reading
from weirlab.testbed.namespaces import Namespace, set_sysctl
from weirlab.testbed.path_report import EMULATOR, LATENESS_EDGES_S, LineReport, PathReport

if TYPE_CHECKING:
    from pyroute2 import IPRoute


SPIN_S = 50e-6
"""How long before a packet is due the emulator stays awake."""
QUEUE_PACKETS = 5000
"""Packets that may wait in a device for the emulator."""
DEGRADED_SHARE, DEGRADED_LEAST_S, DEGRADED_MOST_S = 0.01, 1e-4, 1e-3
"""A path is degraded when the 99th percentile of the lateness exceeds this share of the round-trip delay,
within these bounds.
"""
_QUIET_IPV6 = {
    "disable_ipv6": 0,
    "accept_ra": 0,
    "accept_dad": 0,
    "autoconf": 0,
    "addr_gen_mode": 1,
    "router_solicitations": 0,
}
"""IPv6 without packets of the kernel's own, as far as it can be told to."""
FAST_BPS = 500e6
"""Above this rate the stacks of the ends work on other CPUs than the emulator: 42 000 full packets/s at 6 us
each are a quarter of a CPU."""
_CLOSE_S = 10.0
"""How long the emulator may take to end."""


class _Joint(NamedTuple):
    """Where a hop is joined to namespaces, by their places, and as which of their devices."""

    near: int
    near_device: str
    far: int
    far_device: str


class EmulatedPath:
    """A path at work, from its making to `close`. Needs Linux, and what `Namespace` needs."""

    def __init__(
        self,
        path: PathPlan,
        *,
        seed: int = 1,
        record: int = 0,
        real_time: bool = True,
        cpu: int | None = None,
        ipv6: bool = False,
        joined: bool | None = None,
    ) -> None:
        """Build it and let it work.

        Args:
            path: What to emulate.
            seed: Of all its chance.
            record: How many arrivals of each direction to keep, with what became of them.
            real_time: Whether the emulator asks for SCHED_FIFO. Without it packets are late by milliseconds
                when the machine is busy.
            cpu: The CPU of the emulator. None: on a fast path one of those that this process may use, which
                the stacks of the ends then leave to it, where it has real-time priority; else any.
            ipv6: Whether the ends have addresses of IPv6, too. Their kernels send a few packets of their
                own then.
            joined: Whether the devices give and take packets of a connection joined, where the kernel can:
                several times as fast without a rate, and the same for the models. Captures at the ends then
                show joined packets, and checksums that are not completed. None: as the path says.

        Raises:
            MissingCapability: not Linux, no namespaces for this user, or no TUN devices.
        """
        self._path = path
        self._ipv6 = ipv6 or path.ipv6
        self._names = [*path.hops, *path.hosts]
        self._ends = self._joints()
        self._report: PathReport | None = None
        self._outcome: _core.Emulated | None = None
        self._failure: BaseException | None = None
        self._drops: list[dict[str, tuple[int, int]]] | None = None
        self._meters = _core.Meters(len(self._names))
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            count = len(self._names) + 1  # those of the path, then those of the hosts
            self._namespaces = [stack.enter_context(contextlib.closing(Namespace())) for _ in range(count)]
            devices = self._made(stack, joined=path.joined if joined is None else joined)
            for place, namespace in enumerate(self._namespaces):
                namespace.inside(self._prepared(place))
            self._cpu, others = _places(cpu, real_time=real_time) if _is_fast(path) else (cpu, ())
            self._steered = others if others and self._steer(others) else ()
            stop, self._stop = os.pipe()
            stack.callback(os.close, stop)
            self._hops = [self._hop(name, ends) for name, ends in zip(self._names, devices, strict=True)]
            emulate = partial(
                _core.emulate,
                hops=self._hops,
                seed=seed,
                stop=stop,
                real_time=real_time,
                cpu=self._cpu,
                spin_ps=round(SPIN_S * 1e12),
                mtu=path.mtu_bytes,
                joined=bool(self._joined),
                record=record,
                edges_ps=[round(edge * 1e12) for edge in LATENESS_EDGES_S],
                meters=self._meters,
            )
            self._before = Reading.now()
            self._thread = threading.Thread(target=self._emulate, args=(emulate,), name="path", daemon=True)
            self._thread.start()
            self._stack = stack.pop_all()

    @property
    def near(self) -> Namespace:
        """The namespace of the near end."""
        return self._namespaces[0]

    @property
    def far(self) -> Namespace:
        """The namespace of the far end."""
        return self._namespaces[len(self._path.hops)]

    @property
    def routers(self) -> tuple[Namespace, ...]:
        """The namespaces between both ends."""
        return tuple(self._namespaces[1 : len(self._path.hops)])

    def host(self, name: str) -> tuple[Namespace, str, str]:
        """The namespace of a host behind the near end, and its addresses of IPv4 and IPv6."""
        hop = self._names.index(name, len(self._path.hops))
        return self._namespaces[hop + 1], _address(hop, 1), _address6(hop, 1)

    @property
    def joined(self) -> tuple[str, ...]:
        """Transports whose packets the devices give and take joined."""
        return self._joined

    @property
    def near_address6(self) -> str:
        """IPv6 address of the near end, where there is one."""
        return _address6(0, 1)

    @property
    def far_address6(self) -> str:
        """IPv6 address of the far end, where there is one."""
        return _address6(len(self._path.hops) - 1, 2)

    @property
    def near_address(self) -> str:
        """IPv4 address of the near end."""
        return _address(0, 1)

    @property
    def far_address(self) -> str:
        """IPv4 address of the far end."""
        return _address(len(self._path.hops) - 1, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            with contextlib.suppress(TestbedError):
                self.close()

    def readings(self) -> list[dict[str, int]]:
        """What the emulator has counted so far of each direction: of the first hop forward and backward, of
        the second, and so on.
        """
        return self._meters.read()

    def check(self) -> None:
        """Raises TestbedError when the emulator has failed."""
        if self._failure is not None:
            raise TestbedError(f"the path emulator failed: {self._failure}") from self._failure

    def close(self) -> PathReport:
        """End it and say how it was; later calls say the same. Raises TestbedError when it has failed."""
        if self._report is None:
            if self._drops is None:
                self._drops = [namespace.inside(_device_drops) for namespace in self._namespaces]
                os.close(self._stop)
                self._thread.join(_CLOSE_S)
                self._account = Reading.now() - self._before
                self._stack.close()
            self.check()
            if self._thread.is_alive():
                raise TestbedError(f"the path emulator did not end within {_CLOSE_S:g} s")
            self._report = self._report_of(self._drops)
        return self._report

    def _joints(self) -> list[_Joint]:
        """Where each hop lies: those of the path one after the other, those of hosts all at the near end."""
        last = len(self._path.hops)
        chain = [_Joint(hop, "far", hop + 1, "near") for hop in range(last)]
        hosts = [
            _Joint(last + 1 + number, "far", 0, f"host{number}") for number in range(len(self._path.hosts))
        ]
        return [*chain, *hosts]

    def _made(self, stack: contextlib.ExitStack, *, joined: bool) -> list[tuple[int, int]]:
        """Descriptors of both ends of each hop. All devices join the same packets."""
        with contextlib.ExitStack() as attempt:
            made = [self._devices(hop, attempt, joined=joined) for hop in range(len(self._names))]
            transports = {reported for hop in made for _, reported in hop}
            if len(transports) == 1:
                stack.push(attempt.pop_all())
                (self._joined,) = transports
                return [(near, far) for (near, _), (far, _) in made]
        return self._made(stack, joined=False)

    def _devices(
        self, hop: int, stack: contextlib.ExitStack, *, joined: bool
    ) -> list[tuple[int, tuple[str, ...]]]:
        """Descriptors of both ends of a hop, and of which transports they join packets."""
        joint = self._ends[hop]
        found = []
        for place, name in ((joint.near, joint.near_device), (joint.far, joint.far_device)):
            namespace = self._namespaces[place]
            try:
                fd, transports = _core.create_device(namespace.path, name, joined=joined)
            except OSError as error:
                raise MissingCapability(
                    f"an emulated path needs /dev/net/tun: {error}. Load it (as root: modprobe tun), or run "
                    "the container with --privileged"
                ) from error
            stack.callback(os.close, fd)
            found.append((fd, tuple(transports)))
        return found

    def _prepared(self, place: int) -> Callable[[], None]:
        """What sets up the namespace at `place`, called inside it."""
        last, everything = len(self._path.hops), len(self._path.hops) + len(self._path.hosts)
        forwards = 0 < place < last or (place == 0 and everything > last)

        def prepare() -> None:
            from pyroute2 import IPRoute

            for scope in ("all", "default"):
                for name, value in _QUIET_IPV6.items() if self._ipv6 else (("disable_ipv6", 1),):
                    set_sysctl(f"ipv6.conf.{scope}.{name}", value)
                set_sysctl(f"ipv4.conf.{scope}.rp_filter", 0)
            # Connections know nothing of those before them, and routers answer every probe.
            set_sysctl("ipv4.tcp_no_metrics_save", 1)
            set_sysctl("ipv4.icmp_ratelimit", 0)
            set_sysctl("ipv4.icmp_msgs_per_sec", 1_000_000)
            set_sysctl("ipv6.icmp.ratelimit", 0)
            _let_everybody_ping()
            set_sysctl("ipv4.ip_forward", int(forwards))
            if self._ipv6:
                set_sysctl("ipv6.conf.all.forwarding", int(forwards))
            with IPRoute() as route:
                (loopback,) = route.link_lookup(ifname="lo")
                route.link("set", index=loopback, state="up")
                if place < last:
                    self._raise_device(route, "far", (place, 1), range(place + 1, last))
                if 0 < place <= last:
                    beyond = [*range(place - 1), *range(last, everything)]
                    self._raise_device(route, "near", (place - 1, 2), beyond)
                if place > last:
                    others = [hop for hop in range(everything) if hop != place - 1]
                    self._raise_device(route, "far", (place - 1, 1), others)
                if place == 0:
                    for hop in range(last, everything):
                        self._raise_device(route, self._ends[hop].far_device, (hop, 2), ())

        return prepare

    def _raise_device(self, route: IPRoute, name: str, end: tuple[int, int], beyond: Iterable[int]) -> None:
        """Gives a device its addresses, and routes to the hops beyond its own."""
        (index,) = route.link_lookup(ifname=name)
        route.link("set", index=index, mtu=self._path.mtu_bytes, txqlen=QUEUE_PACKETS)
        route.addr("add", index=index, address=_address(*end), prefixlen=24)
        route.link("set", index=index, state="up")
        if self._ipv6:
            route.addr("add", index=index, address=_address6(*end), prefixlen=64)
        for hop in beyond:
            route.route("add", dst=f"{_address(hop, 0)}/24", oif=index)
            if self._ipv6:
                route.route("add", dst=f"{_address6(hop, 0)}/64", oif=index)

    def _steer(self, cpus: Sequence[int]) -> bool:
        """Let the stacks that take packets from the devices work on ``cpus``, and not within the emulator's
        writes. False where the system refuses it."""
        try:
            for joint in self._ends:
                for place, name in ((joint.near, joint.near_device), (joint.far, joint.far_device)):
                    _core.steer_receive(self._namespaces[place].path, name, list(cpus))
        except OSError:
            return False
        return True

    def _hop(self, name: str, ends: tuple[int, int]) -> _core.Hop:
        hop = self._path.hops[name] if name in self._path.hops else self._path.hosts[name]
        forward = line_spec(hop.forward).json()
        backward = forward if hop.backward is None else line_spec(hop.backward).json()
        return {
            "near": ends[0],
            "far": ends[1],
            "forward": forward,
            "backward": backward,
            "strips_window_scale": hop.strips_window_scale,
        }

    def _emulate(self, emulate: Callable[[], _core.Emulated]) -> None:
        try:
            self._outcome = emulate()
        except BaseException as error:
            self._failure = error

    def _report_of(self, drops: list[dict[str, tuple[int, int]]]) -> PathReport:
        outcome = self._outcome
        assert outcome is not None
        reports = []
        for line in outcome["lines"]:
            hop, direction = line["hop"], line["direction"]
            joint = self._ends[hop]
            ends = ((joint.near, joint.near_device), (joint.far, joint.far_device))
            (source, towards), (target, back) = ends if direction == "forward" else ends[::-1]
            device_drops, _ = drops[source][towards]
            _, stack_drops = drops[target][back]
            counts = {name: value for name, value in line.items() if isinstance(value, int) and name != "hop"}
            lateness = line["lateness_ns"]
            reports.append(
                LineReport(
                    hop=self._names[hop],
                    direction=direction,
                    name=line["name"],
                    line=self._hops[hop]["forward" if direction == "forward" else "backward"],
                    counts={**counts, "device_drops": device_drops, "stack_drops": stack_drops},
                    transmitters=tuple(line["transmitters"]),
                    lateness_s=lateness and {name: value / 1e9 for name, value in lateness.items()},
                    lateness_counts=tuple(line["lateness_counts"]),
                    record=line["record"],
                )
            )
        hops = self._path.hops.values()
        lines = [line for hop in hops for line in (hop.forward, hop.backward or hop.forward)]
        rtt_s = sum(line.least_delay.s for line in lines)
        waited_ns = outcome["waited_ns"]
        waits_s = {EMULATOR: None if waited_ns is None else waited_ns / 1e9}
        return PathReport(
            real_time=outcome["real_time"],
            elapsed_s=outcome["elapsed_ns"] / 1e9,
            on_cpu_s=outcome["on_cpu_ns"] / 1e9,
            joined=self._joined,
            threshold_s=min(max(DEGRADED_SHARE * rtt_s, DEGRADED_LEAST_S), DEGRADED_MOST_S),
            lines=tuple(reports),
            account=self._account.with_waits(waits_s),
            cpu=self._cpu,
            stack_cpus=self._steered,
        )


def _address(hop: int, end: int) -> str:
    return f"198.18.{hop}.{end}"


def _address6(hop: int, end: int) -> str:
    return f"2001:2:0:{hop:x}::{end or ''}"


def _let_everybody_ping() -> None:
    """Users need no privilege for echo requests in the namespace of the calling thread."""
    groups = "ipv4.ping_group_range"
    try:
        set_sysctl(groups, "0 2147483647")
    except OSError:  # of a user namespace with one's own group alone
        set_sysctl(groups, f"{os.getegid()} {os.getegid()}")


def _is_fast(path: PathPlan) -> bool:
    """Whether so many packets may come that the emulator has no time for the work of the ends' stacks. The
    slowest hop bounds what comes; a way back without a rate makes a slow path no fast one."""
    hops = path.hops.values()
    lines = [line for hop in hops for line in (hop.forward, hop.backward or hop.forward)]
    slowest_bps = min(map(_most_bps, lines))
    return slowest_bps > FAST_BPS


def _most_bps(line: Line) -> float:
    if line.steps:
        return max(step.rate.bps for step in line.steps) * line.lanes
    return math.inf if line.rate is None else line.rate.bps * line.lanes


def _places(cpu: int | None, *, real_time: bool) -> tuple[int | None, tuple[int, ...]]:
    """The CPU of an emulator (None: any), and those for the stacks of the ends.

    A stack that works on the emulator's CPU makes packets late: either within the emulator's own writes, 6 us
    for each packet, or, where that is left to a thread, not before the emulator rests. Emulators of other
    processes get other CPUs by their number, as far as there are any. A thread without real-time priority
    waits less where it may go anywhere.
    """
    usable = sorted(os.sched_getaffinity(0))
    if cpu is None and len(usable) > 1 and real_time and _gets_real_time():
        cpu = usable[-1 - os.getpid() % len(usable)]
    others = tuple(each for each in usable if each != cpu)
    return cpu, others or tuple(usable)


def _gets_real_time() -> bool:
    """Whether threads of this process may have real-time priority: tried in one that ends."""
    granted = []

    def ask() -> None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
            granted.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return bool(granted)


def _device_drops() -> dict[str, tuple[int, int]]:
    """Packets that the devices of the calling thread's namespace had no room for on their way out, and those
    for which there was no room before the stack, by device."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        links = route.get_links()
    counts = {link.get_attr("IFLA_IFNAME"): link.get_attr("IFLA_STATS64") for link in links}
    return {name: (int(each["tx_dropped"]), int(each["rx_dropped"])) for name, each in counts.items()}
