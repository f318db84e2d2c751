"""Testbeds of a scenario, and the simulated devices that a search can measure."""

from __future__ import annotations

import ipaddress
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from weirlab.errors import UnitError
from weirlab.fields import values
from weirlab.fields.base import BY_KIND, File, Model, Named, OpenKinds, Text
from weirlab.scenario.network.path import Hop
from weirlab.units import FrameRate, Frames, Size, Span


class Device(Model):
    """What all simulated devices share."""

    overhead: Span = Span(0)
    """Time that a trial takes beyond its duration: waiting for late frames, reading counters."""
    tester_limit: values.PositiveFrameRate | None = None
    """Most that the tester can send, over all directions. Absent: no limit."""


class Knee(Device):
    """Forwards up to its capacity, and loses all that is above it."""

    kind: Literal["knee"]
    capacity: values.PositiveFrameRate
    """Frames/s over all directions."""
    run_spread: values.Fraction = 0.0
    """Relative standard deviation of the capacity between searches (by the seed)."""
    trial_spread: values.Fraction = 0.0
    """Relative standard deviation of the capacity between the trials of a search."""


class Ip4Published(Device):
    """The consistent device of the published MDR comparison: IPv4 base forwarding, one thread, 64 B."""

    kind: Literal["ip4-published"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10.6e6)
    """Mean of the knee; NDR and PDR of that suite."""
    run_spread: values.Fraction = 0.002
    """Relative standard deviation of the knee between searches."""
    trial_spread: values.Fraction = 0.002
    """Relative standard deviation of the knee between trials."""
    burst_every: values.PositiveSpan = Span.from_s(12.5)
    """Mean time between small losses when offered exactly the knee (0.08 a second)."""
    burst_fold: values.PositiveFraction = 0.00043
    """Relative distance below the knee over which that hazard falls by a factor of e."""
    burst_frames: values.Count = 32
    """Frames lost each time."""
    overload_cost: values.Fraction = 0.001
    """Share of the knee that is not forwarded under overload."""


class VhostPublished(Device):
    """The inconsistent device of the published MDR comparison: two vhost interfaces, one virtual machine."""

    kind: Literal["vhost-published"]
    pdr_knee: values.PositiveFrameRate = FrameRate.from_fps(3.7575e6)
    """Mean of the load above which frames are lost in bulk."""
    pdr_knee_spread: FrameRate = FrameRate.from_fps(0.066e6)
    """Its standard deviation between searches."""
    trial_spread: values.Fraction = 0.0005
    """Relative standard deviation of the knee between trials."""
    ndr_knee: values.PositiveFrameRate = FrameRate.from_fps(3.66e6)
    """Mean of the load at which small losses have the hazard that `burst_every` gives."""
    ndr_knee_spread: FrameRate = FrameRate.from_fps(0.109e6)
    """Its standard deviation between searches, in addition to what it shares with the PDR knee."""
    shared_spread: values.Fraction = 0.65
    """Share of the PDR knee's deviation that the NDR knee follows."""
    burst_every: values.PositiveSpan = Span.from_s(1 / 0.0693)
    """Mean time between small losses when offered exactly the NDR knee (0.0693 a second)."""
    burst_fold: values.PositiveFrameRate = FrameRate.from_fps(0.0616e6)
    """Distance from the NDR knee over which that hazard changes by a factor of e."""
    burst_frames: values.Count = 32
    """Frames lost each time."""
    overload_low: values.Number = 0.86
    """Least share of the PDR knee that is forwarded under overload."""
    overload_high: values.Number = 1.005
    """Greatest share of it."""


class RandomDrops(Device):
    """Forwards up to its capacity, and loses a single frame at random times below it."""

    kind: Literal["random-drops"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10e6)
    """Frames/s over all directions."""
    drop_every: values.PositiveSpan = Span.from_s(2)
    """Mean time between drops at the capacity; in proportion longer below it."""


class Gradual(Device):
    """Loses a share of the frames that grows with the load from `onset` to `capacity`, and all above."""

    kind: Literal["gradual"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10e6)
    """Frames/s that are never exceeded."""
    onset: FrameRate = FrameRate.from_fps(8e6)
    """Load at which losses start."""
    loss_at_capacity: values.Fraction = 0.01
    """Loss ratio at the capacity; it grows with the square of the distance from the onset."""


class DeepBuffer(Device):
    """Forwards up to its capacity behind a buffer that hides overload from short trials."""

    kind: Literal["deep-buffer"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10e6)
    """Frames/s over all directions."""
    buffer: Frames = Frames(600_000)
    """Frames that may wait."""


class Inversion(Device):
    """A knee that also loses frames in a band of loads below it: loss inversion."""

    kind: Literal["inversion"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10e6)
    """Frames/s over all directions."""
    run_spread: values.Fraction = 0.002
    """Relative standard deviation of the capacity between searches."""
    trial_spread: values.Fraction = 0.0005
    """Relative standard deviation of the capacity between the trials of a search."""
    band_low: values.Fraction = 0.80
    """Lower end of the band, as a share of the capacity."""
    band_high: values.Fraction = 0.83
    """Where it ends."""
    band_loss: values.Fraction = 0.01
    """Loss ratio within the band."""


class RegimeSwitch(Device):
    """A knee whose capacity switches between two values at random times."""

    kind: Literal["regime-switch"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10e6)
    """Frames/s over all directions, the greater value."""
    run_spread: values.Fraction = 0.002
    """Relative standard deviation of the capacity between searches."""
    deficit: values.Fraction = 0.05
    """How much less the lower value is, as a share of the greater."""
    high: values.PositiveSpan = Span.from_s(60)
    """Mean time at the greater value."""
    low: values.PositiveSpan = Span.from_s(15)
    """Mean time at the lower value."""


class WarmUp(Device):
    """Starts below its capacity and approaches it exponentially with the time under traffic."""

    kind: Literal["warm-up"]
    capacity: values.PositiveFrameRate = FrameRate.from_fps(10e6)
    """Frames/s of the warm device."""
    deficit: values.Fraction = 0.15
    """Share of the capacity that the cold device lacks."""
    time_constant: values.PositiveSpan = Span.from_s(8)
    """Time under traffic after which the deficit has fallen by a factor of e."""


AnyDevice = Annotated[
    Knee
    | Ip4Published
    | VhostPublished
    | RandomDrops
    | Gradual
    | DeepBuffer
    | WarmUp
    | Inversion
    | RegimeSwitch,
    BY_KIND,
]


class Testbed(Model):
    """Where a scenario runs, or what a search measures."""

    HOME: ClassVar[str]
    """The module that opens it, loaded when it is used; see `weirlab.testbed.Home`."""
    OWN_NETWORK: ClassVar[str] = ""
    """What messages call it where it stands already, between the hosts `sender` and `receiver`; empty: the
    scenario describes the network."""


class Sim(Testbed):
    """The packet-level simulator; with `device` a simulated device that a search measures; with `path` or
    `hops` a path that a campaign loads, in virtual time."""

    HOME = "weirlab.testbed.simulated"

    kind: Literal["sim"]
    device: AnyDevice | None = None
    """A device instead of a network."""
    path: Literal["emulator"] | None = None
    """`emulator`: the network of the scenario, two hosts and a link, with the models of the emulator."""
    hops: Named[Hop] = Named()
    """A path in full, from its near end to its far one."""
    mtu: Size = Size(1500)
    """Longest IP packet of such a path."""
    ip: Literal["ipv4", "ipv6"] = "ipv4"
    """What packets of such a path are: headers of IPv6 are 20 B longer."""
    window_factor: values.Number = 1.0
    """Ratio of the window that a connection over such a path gets to the one it requests. Systems round it up
    or down; Linux 6.18 gives 1.05 to 1.23, and 1.2 from 64 KiB on."""

    @property
    def on_path(self) -> bool:
        """Whether a campaign loads a path."""
        return self.path is not None or bool(self.hops)


class Netns(Testbed):
    """Real Linux stacks in network namespaces of this machine."""

    HOME = "weirlab.testbed.netns"

    kind: Literal["netns"]
    router: Literal["linux", "shaped", "testpmd"] | None = None
    """`linux`: the kernel forwards between `sender` and `receiver`. `shaped`: the same with a token bucket of
    24 Mbit/s (frames without FCS) on each way out, a device whose rate is known. `testpmd`: the program
    dpdk-testpmd copies frames between them, and keeps one CPU busy all the time."""
    path: Literal["emulator"] | None = None
    """`emulator`: the network of the scenario, two hosts and a link, emulated for real programs."""
    hops: Named[Hop] = Named()
    """An emulated path in full, from its near end to its far one, for real programs."""
    hosts: Named[Hop] = Named()
    """Hosts behind the near end of `hops`, each over its own hop, `forward` from the host. Traffic of a
    campaign comes from them, or goes to them, by their names."""
    mtu: Size = Size(1500)
    """Longest IP packet of an emulated path."""
    ip: Literal["ipv4", "ipv6"] = "ipv4"
    """What a campaign sends over an emulated path. With `ipv6` its ends have addresses of both."""
    joined: values.Flag = True
    """Whether an emulated path moves packets of a connection joined where the kernel can. The models see
    each packet either way; the ends spend less CPU."""

    @property
    def on_path(self) -> bool:
        """Whether it emulates a path."""
        return self.router is None


class Command(Testbed):
    """Any program: arguments in, one JSON object out."""

    HOME = "weirlab.testbed.command"
    OWN_NETWORK = "a command"

    kind: Literal["command"]
    run: tuple[Text, ...] = Field(min_length=1, examples=[["./my-tester", "--load", "{load_fps}"]])
    """The program and its arguments, with fields of the trial in braces. No shell is involved."""
    directory: File | None = None
    """Where it runs. Absent: the directory of the scenario file."""
    timeout: values.PositiveSpan = Span.from_s(60)
    """A trial fails when the program takes this much longer than the trial lasts."""


def _read_server(value: str) -> str:
    name, colon, port = value.partition(":")
    if not name or "/" in name or (colon and not (port.isdigit() and 0 < int(port) < 65536)):
        raise UnitError(f"write a name or an address, with ':PORT' if it is not 4501 (got '{value}')")
    return value


def _read_pairs(value: tuple[int, ...]) -> tuple[int, ...]:
    if not value or len(value) % 2 or len(set(value)) < len(value):
        raise UnitError(f"ports are different numbers in pairs, such as [0, 1] (got {list(value)})")
    return value


def _read_address(value: str) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        raise UnitError(f"write an IPv4 address, such as '16.0.0.1' (got '{value}')") from None


_ADDRESS: dict[str, object] = {"type": "string", "format": "ipv4", "examples": ["16.0.0.1"]}
Address = Annotated[Text, AfterValidator(_read_address), WithJsonSchema(_ADDRESS)]


class Trex(Testbed):
    """A TRex server in stateless mode, with the device between its ports."""

    HOME = "weirlab.testbed.trex"
    OWN_NETWORK = "a TRex server"

    kind: Literal["trex"]
    server: Annotated[Text, AfterValidator(_read_server)] = Field(examples=["trex-1", "192.0.2.7:4501"])
    """Name or address of the machine that runs TRex, and the port of its RPC interface if that is not
    4501."""
    ports: Annotated[tuple[values.Natural, ...], AfterValidator(_read_pairs)] = (0, 1)
    """Pairs of ports, those on the side of `sender` first; several pairs share the load."""
    force: values.Flag = False
    """Whether to take ports that another client holds."""
    timeout: values.PositiveSpan = Span.from_s(3)
    """How long to wait for an answer of the server."""
    retries: values.Natural = 2
    """How often a request without an answer is repeated."""
    stable: values.PositiveSpan = Span.from_s(0.25)
    """How long all counters must be unchanged, after the time to settle, before they are used."""
    ramp_up: Span = Span(0)
    """How long the load grows before each trial. Its frames do not count."""
    count: Literal["ports", "groups"] = "ports"
    """`ports`: all frames that the ports see. `groups`: only those of the trial, if the server can
    distinguish them."""
    stray_frames: values.Natural = 10
    """Frames of others that a port may receive in a trial; more are a fault."""
    latency: values.PositiveFrameRate | None = None
    """Frames/s in each direction that measure the delay, as a part of the load. Absent: it is not
    measured."""
    flows: values.Count = 1
    """Source addresses in each direction."""
    addresses: tuple[Address, Address] = ("16.0.0.1", "48.0.0.1")
    """IPv4 addresses on the sides of `sender` and `receiver`."""
    cores: Annotated[tuple[values.Natural, ...], Field(min_length=1)] | None = None
    """Which of its sending cores the server uses for each port. Absent: all."""


def _read_host(value: str) -> str:
    if not value or value.startswith("-") or any(letter.isspace() for letter in value):
        raise UnitError(f"write a name or an address, with ssh also 'me@example.net' (got '{value}')")
    return value


_HOST: dict[str, object] = {"type": "string", "pattern": r"^[^-\s][^\s]*$", "examples": ["far.example.net"]}
Host = Annotated[Text, AfterValidator(_read_host), WithJsonSchema(_HOST)]


class Ssh(Testbed):
    """Real hosts, on which OpenSSH starts the iperf3 and ping that they have; for campaigns."""

    HOME = "weirlab.testbed.hosts"

    kind: Literal["ssh"]
    far: Host
    """The far end, as the user's ssh knows it: keys, users and ports are those of its configuration."""
    near: Host | None = None
    """The near end. Absent: this machine."""
    far_address: Host | None = None
    """Where connections and pings to the far end go. Absent: where ssh connects to for `far`."""
    near_address: Host | None = None
    """The same for the near end, for traffic that goes there."""
    config: File | None = None
    """A configuration file of ssh instead of the user's; relative to the scenario file."""
    port: values.PortNumber = 5201
    """Port of the iperf3 server."""
    listen: Literal["address", "everywhere"] = "address"
    """Where that server accepts connections: only at the address to which the traffic goes, if that is
    numeric; or at every address of its host, which address translation requires."""


class Iperf3(Testbed):
    """This machine, and a host on which `iperf3 -s` runs already; for campaigns."""

    HOME = "weirlab.testbed.hosts"

    kind: Literal["iperf3"]
    server: Host
    """Where it runs: a name or an address."""
    port: values.PortNumber = 5201
    """Of that server. A step with several loads at a time takes a server for each, at this port and those
    after it."""


Hosts = Ssh | Iperf3
"""Real hosts."""
AnyTestbed = Annotated[Sim | Netns | Command | Trex | Ssh | Iperf3, OpenKinds("weirlab.testbeds", Testbed)]
"""Packages of other people add to them: entry points of the group name subclasses of `Testbed` by kind."""
