"""A path whose hops the kernel itself delays and thins out, with `tc netem`, where it can.

    near ==veth== bridge ==veth== bridge ==veth== router ==veth== bridge ==veth== bridge ==veth== far

Both bridges of a hop stand in a namespace of their own. Each direction passes two queues where a bridge
forwards: netem at the way out of the first one has the losses, the rate and the buffer, netem at the way out
of the second one the delay, so that what is under way takes no room from what waits. No queue is where a
program sends: there TCP is told of what a full one throws away, waits and sends it, and nothing is lost.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weirlab.errors import InputError, MissingCapability, TestbedError
from weirlab.scenario.network.path import Line, PathPlan
from weirlab.testbed.namespaces import Namespace, set_sysctl, switch_off
from weirlab.testbed.path import EmulatedPath
from weirlab.units import Frames

ANY = 1_000_000
"""Packets that no buffer of ours reaches: netem has no word for a queue without a limit."""
ETHERNET_HEADER = 14
"""What netem counts of a packet beyond its IP length. Source: IEEE 802.3, clause 3.1.1."""
_TIMEOUT_S = 10.0


def netem_refusals(path: PathPlan) -> list[str]:
    """What netem cannot do of a path: where it stands in the file, and why; empty when it can do all."""
    found = ["testbed.hosts: paths of netem have two ends"] if path.hosts else []
    for name, hop in path.hops.items():
        for direction, line in (("forward", hop.forward), ("backward", hop.backward)):
            if line is not None:
                found += [f"testbed.hops.{name}.{direction}.{answer}" for answer in _cannot(line)]
        if hop.strips_window_scale:
            found.append(f"testbed.hops.{name}.strips_window_scale: netem does not look into packets")
    return found


def _cannot(line: Line) -> Iterator[str]:
    if line.steps:
        yield "steps: the rate of netem does not change by itself"
    if line.lanes > 1:
        yield "lanes: netem has one transmitter"
    if line.queue is not None:
        yield "queue: the rate of netem has its own queue, which is drop-tail"
    if line.rate is not None and not isinstance(line.buffer, Frames) and line.buffer != "unlimited":
        yield f"buffer: netem counts packets; write it in frames (got {line.buffer})"
    if line.cross:
        yield "cross: netem makes no traffic"
    if line.delays is not None:
        yield "delays: the delay of netem does not change by itself"
    if line.jitter is not None and line.jitter.distribution != "uniform":
        yield f"jitter.distribution: netem knows 'uniform' (got '{line.jitter.distribution}')"
    if line.jitter is not None and line.jitter.keeps_order:
        yield "jitter.keeps_order: packets of netem overtake each other; write 'keeps_order: false'"
    if line.reorder is not None:
        yield "reorder: netem sends some packets earlier, not later"


def netem_arguments(line: Line) -> tuple[list[str], list[str]]:
    """What `tc qdisc add ... netem` is told in the first bridge of a direction, and in the second.

    The words are those that `tc` of iproute2 6.1 takes.
    """
    sends: list[str] = []
    if line.bursts is not None:
        bursts = line.bursts
        shares = (bursts.to_bad, bursts.to_good, bursts.loss_bad, bursts.loss_good)
        sends += ["loss", "gemodel", *map(_percent, shares)]
    elif line.loss:
        sends += ["loss", "random", _percent(line.loss)]
    if line.duplicate:
        sends += ["duplicate", _percent(line.duplicate)]
    if line.rate is not None:
        sends += ["rate", f"{line.rate.bps}bit", str(line.framing.bytes - ETHERNET_HEADER)]
    # The packet in transmission counts for netem.
    most = line.buffer.count + 1 if line.rate is not None and isinstance(line.buffer, Frames) else ANY
    sends += ["limit", str(most)]
    delay_ps = line.delay.ps
    delays: list[str] = []
    if line.jitter is not None:
        half_ps = line.jitter.size.ps // 2
        delays = ["delay", _microseconds(delay_ps + half_ps), _microseconds(half_ps)]
    elif delay_ps:
        delays = ["delay", _microseconds(delay_ps)]
    return sends, [*delays, "limit", str(ANY)]


def _percent(share: float) -> str:
    return f"{100 * share:.10g}%"


def _microseconds(ps: int) -> str:
    return f"{ps / 1e6:.12g}us"


@dataclass(frozen=True)
class KernelReport:
    """What the kernel counted."""

    queues: tuple[dict[str, object], ...]
    """As `tc -s -j qdisc` reports it, with the hop, the direction and the place of each queue."""

    def as_json(self) -> dict[str, object]:
        """As JSON values."""
        return {"with": "netem", "queues": list(self.queues)}


class KernelPath(EmulatedPath):
    """A path of the kernel's own, from its making to `close_kernel`. Needs root on Linux, `tc`, and a kernel
    with netem.
    """

    def __init__(self, path: PathPlan) -> None:
        """Build it.

        Raises:
            InputError: netem cannot do what the path asks for.
            MissingCapability: not Linux, not root, no `tc`, or a kernel without netem.
        """
        if refusals := netem_refusals(path):
            raise InputError("\n      ".join(refusals))
        self._path = path
        self._ipv6 = False
        self._names = list(path.hops)
        self._kernel_report: KernelReport | None = None
        self._failure = None
        with contextlib.ExitStack() as stack:
            hops = len(self._names)
            spaces = [stack.enter_context(contextlib.closing(Namespace())) for _ in range(2 * hops + 1)]
            self._namespaces = spaces[::2]
            self._bridges = spaces[1::2]
            _try_netem(self._namespaces[0])
            for place, bridge in enumerate(self._bridges):
                _connect(bridge, self._namespaces[place], self._namespaces[place + 1])
            for place, namespace in enumerate(self._namespaces):
                namespace.inside(self._prepared(place))
                namespace.inside(_answer_for_others)
            for hop in range(hops):
                for where, device, _, arguments in self._queues(hop):
                    where.inside(functools.partial(_add_netem, device, arguments))
            self._stack = stack.pop_all()

    def close_kernel(self) -> KernelReport:
        """End it and say what the kernel counted; later calls say the same."""
        if self._kernel_report is None:
            rows = []
            for hop, name in enumerate(self._names):
                for where, device, answer, _ in self._queues(hop):
                    for row in where.inside(functools.partial(_statistics, device)):
                        rows.append({"hop": name, **answer, **row})
            self._kernel_report = KernelReport(tuple(rows))
            self._stack.close()
        return self._kernel_report

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stack.close()

    def _queues(self, hop: int) -> Iterator[tuple[Namespace, str, dict[str, str], list[str]]]:
        """The queues of a hop: where, of which device, what they are, and what they are told."""
        chosen = self._path.hops[self._names[hop]]
        for direction, line, between, last in (
            ("forward", chosen.forward, "onward", "far"),
            ("backward", chosen.backward or chosen.forward, "back", "near"),
        ):
            sends, delays = netem_arguments(line)
            yield self._bridges[hop], between, {"direction": direction, "does": "transmits"}, sends
            yield self._bridges[hop], last, {"direction": direction, "does": "delays"}, delays


def _connect(middle: Namespace, near: Namespace, far: Namespace) -> None:
    """Joins two namespaces by two bridges in a third. Devices are called after the end that they lead to,
    those between the bridges `onward` and `back`.
    """

    def build() -> None:
        from pyroute2 import IPRoute

        with IPRoute() as route:
            for inner, outer, space in (("near", "far", near), ("far", "near", far)):
                route.link("add", ifname=inner, kind="veth", peer={"ifname": outer, "net_ns_fd": space.fd})
                space.inside(functools.partial(switch_off, outer))
            route.link("add", ifname="onward", kind="veth", peer={"ifname": "back"})
            for side, ports in (("near-side", ("near", "onward")), ("far-side", ("far", "back"))):
                route.link("add", ifname=side, kind="bridge")
                (bridge,) = route.link_lookup(ifname=side)
                for name in ports:
                    switch_off(name)
                    (port,) = route.link_lookup(ifname=name)
                    route.link("set", index=port, master=bridge, state="up")
                route.link("set", index=bridge, state="up")

    middle.inside(build)


def _answer_for_others() -> None:
    """Routes name devices and no neighbors: whoever is in between answers for who is behind."""
    for device in ("far", "near"):
        set_sysctl(f"ipv4.conf.{device}.proxy_arp", 1)
        set_sysctl(f"ipv4.neigh.{device}.proxy_delay", 0)


def _try_netem(where: Namespace) -> None:
    """Raises MissingCapability where the kernel has no netem."""
    try:
        where.inside(lambda: _add_netem("lo", ["delay", "1ms"]))
    except TestbedError as refusal:
        raise MissingCapability(
            f"this kernel has no netem ({refusal}); it needs CONFIG_NET_SCH_NETEM, or its modules package: "
            "without '--with netem' the path is emulated by Weirlab itself"
        ) from refusal
    where.inside(lambda: _tc(["qdisc", "del", "dev", "lo", "root"]))


def _add_netem(device: str, arguments: Sequence[str]) -> None:
    _tc(["qdisc", "replace", "dev", device, "root", "netem", *arguments])


def _statistics(device: str) -> list[dict[str, object]]:
    answer = json.loads(_tc(["-s", "-j", "qdisc", "show", "dev", device]) or "[]")
    return [row for row in answer if row.get("kind") == "netem"]


def _tc(arguments: Sequence[str]) -> str:
    """What `tc` answers. Raises TestbedError when it refuses, MissingCapability without it."""
    program = shutil.which("tc") or shutil.which("tc", path="/usr/sbin:/sbin")
    if program is None:
        raise MissingCapability("netem is set up by the program 'tc': apt-get install iproute2")
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise TestbedError((done.stderr.strip() or f"tc ended with {done.returncode}").replace("\n", " "))
    return done.stdout
