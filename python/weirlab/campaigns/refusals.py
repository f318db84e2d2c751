"""What of an entry of traffic has no form in a campaign, with its place."""

from __future__ import annotations

from collections.abc import Iterator

from weirlab.campaigns.request_program import MOST_WAITING
from weirlab.scenario import Scenario
from weirlab.scenario.network import Path
from weirlab.scenario.testbeds import Hosts, Iperf3, Netns, Sim
from weirlab.scenario.traffic import Bulk, Constant, Ping, Requests, Stamp, Tcp, Traffic
from weirlab.units import Size, Span

_IN_KERNEL = ("bbr", "cubic", "reno")


_SIMULATED = ("bbr", "cubic", "reno")


_LEAST_EVERY = Span.from_s(0.01)


"""Between requests. Source: IPPM responsiveness, section 4.2 (MPS)"""


_MOST_STREAMS = 128


_LARGEST_WINDOW = Size(512 << 20)


"""What iperf3 takes: MAX_TIME, MAX_STREAMS and MAX_TCP_BUFFER of its iperf.h and iperf_api.h."""


_LEAST_PING, _LARGEST_PING = Size(16), Size(65_507)


"""Payloads of ping: less has no room for the time that it puts there, and reports none; of more none leaves.
Either would count as lost."""


_LEAST_DATAGRAM = Size(16)


"""What iperf3 takes: MIN_UDP_BLOCKSIZE of its iperf_api.h. From memory."""


_LEAST_STAMP, _LEAST_STAMPED = Span.from_s(0.001), Size(44)


"""Between test packets, and their payload. Source: RFC 8762, section 4.3"""


_OF_SIMULATOR = "is a setting of the simulator, which real stacks do not have; leave this out"


Beyond = tuple[tuple[str, ...], str]


"""Where in an entry of traffic, and why it has no form in a campaign."""


def placed(scenario: Scenario, traffic: Traffic) -> tuple[str | None, bool]:
    """The host behind the near end that traffic has for an end, if it has one; whether it goes forward."""
    near, _ = _ends(scenario)
    ends = (_only(traffic, "from_"), _only(traffic, "to"))
    hosts = tuple(scenario.testbed.hosts) if isinstance(scenario.testbed, Netns) else ()
    return next((end for end in ends if end in hosts), None), ends[0] in (near, *hosts)


def beyond_ends(scenario: Scenario, traffic: Traffic) -> Iterator[Beyond]:
    """Where and why the ends and the times of traffic have no form in a campaign."""
    near, far = _ends(scenario)
    ends = (_only(traffic, "from_"), _only(traffic, "to"))
    host, forward = placed(scenario, traffic)
    hosts = tuple(scenario.testbed.hosts) if isinstance(scenario.testbed, Netns) else ()
    nears = (near, *hosts)
    if not ((ends[0] in nears and ends[1] == far) or (ends[0] == far and ends[1] in nears)):
        words = near if not hosts else f"{near}' or one of the hosts '{', '.join(hosts)}"
        yield ("from",), f"goes from '{words}' to '{far}', or back"
    if host is not None and not isinstance(traffic.source, Bulk | Constant):
        yield ("from",), f"hosts have transfers and UDP; this starts at '{near}'"
    if isinstance(scenario.testbed, Iperf3) and not forward and isinstance(traffic.source, Ping):
        yield ("from",), f"pings start here, at '{near}': nothing runs at the other end but iperf3"
    for where in ("pattern", "timing"):
        if getattr(traffic, where) is not None:
            yield (where,), "has no form in a campaign; leave this out"
    timed = isinstance(traffic.source, Bulk | Constant) and not isinstance(scenario.testbed, Sim)
    for where, given in (("start", traffic.start.ps > 0), ("stop", traffic.stop is not None)):
        if given and not timed:
            yield (where,), "is for transfers and UDP on real stacks; others run as long as their step"


def beyond_transfers(scenario: Scenario, traffic: Traffic, tcp: Tcp) -> Iterator[Beyond]:
    """Where and why a bulk transfer cannot be made."""
    simulated = isinstance(scenario.testbed, Sim)
    whose, known = ("the simulator", _SIMULATED) if simulated else ("the kernel", _IN_KERNEL)
    if tcp.congestion_control.kind not in known:
        yield ("transport",), f"{whose} has {', '.join(known)}"
    elif not simulated:
        if traffic.streams > _MOST_STREAMS:
            yield ("streams",), f"iperf3 has at most {_MOST_STREAMS} (got {traffic.streams})"
        if tcp.window > _LARGEST_WINDOW:
            yield ("transport", "window"), f"iperf3 asks for at most {_LARGEST_WINDOW} (got {tcp.window})"
        yield from ((("transport", where), _OF_SIMULATOR) for where in _beyond_the_kernel(tcp))


def beyond_pings(scenario: Scenario, traffic: Traffic, ping: Ping) -> Iterator[Beyond]:
    """Where and why a series of pings cannot be made."""
    if traffic.streams != 1:
        yield ("streams",), "of pings there is one"
    if not isinstance(scenario.testbed, Sim) and not _LEAST_PING <= ping.payload <= _LARGEST_PING:
        message = f"ping times requests of {_LEAST_PING} to {_LARGEST_PING} (got {ping.payload})"
        yield ("source", "payload"), message


def beyond_requests(scenario: Scenario, traffic: Traffic, requests: Requests) -> Iterator[Beyond]:
    """Where and why a series of requests cannot be made."""
    lack = ""
    if isinstance(scenario.testbed, Sim):
        lack = "the simulator's campaigns have no HTTP requests"
    elif isinstance(scenario.testbed, Hosts):
        lack = "between real hosts nothing but OpenSSH, iperf3 and ping is used, none of which makes requests"
    if lack:
        yield ("source",), f"{lack}; leave this entry out, or write 'testbed: {{kind: netns, ...}}'"
    if traffic.streams != 1:
        yield ("streams",), "of requests there is one series"
    if requests.every < _LEAST_EVERY:
        yield ("source",), f"'every' is {_LEAST_EVERY} or more (got {requests.every})"
    elif requests.timeout.s / requests.every.s > MOST_WAITING:
        message = (
            f"unanswered, more than {MOST_WAITING} connections would wait at a time: lengthen 'every' or "
            f"shorten 'timeout' (got {requests.timeout} of {requests.every} each)"
        )
        yield ("source",), message


def beyond_stamps(scenario: Scenario, traffic: Traffic, source: Stamp, *, forward: bool) -> Iterator[Beyond]:
    """Where and why one-way delays cannot be measured."""
    if isinstance(scenario.testbed, Sim):
        lack = "the simulator's campaigns have no test packets; write 'testbed: {kind: netns, ...}'"
        yield ("source",), lack
    elif isinstance(scenario.testbed, Hosts):
        lack = "one-way delays need one clock at both ends, as those of an emulated path have; leave this out"
        yield ("source",), lack
    if not forward:
        yield ("from",), "test packets start at the near end; their replies measure the way back"
    if traffic.streams != 1:
        yield ("streams",), "of test packets there is one series"
    if source.every < _LEAST_STAMP:
        yield ("source", "every"), f"is {_LEAST_STAMP} or more (got {source.every})"
    if not _LEAST_STAMPED <= source.payload <= _LARGEST_PING:
        got = f"test packets have {_LEAST_STAMPED} to {_LARGEST_PING} (got {source.payload})"
        yield ("source", "payload"), got


def beyond_datagrams(scenario: Scenario, source: Constant) -> Iterator[Beyond]:
    """Where and why UDP at a rate cannot be sent."""
    if isinstance(scenario.testbed, Sim):
        yield ("source",), "the simulator's campaigns have no UDP; write 'testbed: {kind: netns, ...}'"
    if source.payload is None:
        yield ("source",), "UDP of a campaign has a 'payload', such as 1200 B, and no 'frame_size' or 'mix'"
    elif not _LEAST_DATAGRAM <= source.payload <= _LARGEST_PING:
        got = f"iperf3 sends datagrams of {_LEAST_DATAGRAM} to {_LARGEST_PING} (got {source.payload})"
        yield ("source", "payload"), got
    if source.rate is None:
        yield ("source",), "UDP of a campaign has a 'rate', in bit/s of its payload or in frames/s"


def _ends(scenario: Scenario) -> tuple[str, str]:
    if isinstance(scenario.network, Path):
        return scenario.network.ends
    return "sender", "receiver"


def _beyond_the_kernel(tcp: Tcp) -> list[str]:
    """Settings of a connection that are not as they are by default, and that a kernel is not given."""
    reported = {"kind", "congestion_control", "window"}
    own = [name for name in type(tcp).model_fields if name not in reported]
    defaults = {name: type(tcp).model_fields[name].default for name in own}
    changed = [name for name in own if getattr(tcp, name) != defaults[name]]
    control = tcp.congestion_control
    settings = [name for name in type(control).model_fields if name != "kind"]
    plain = all(getattr(control, name) == type(control).model_fields[name].default for name in settings)
    return changed if plain else [*changed, "congestion_control"]


def _only(traffic: Traffic, field: str) -> str | None:
    """The one node of a selector, as it is written."""
    selector = getattr(traffic, field)
    if isinstance(selector, str):
        return selector
    return selector[0] if selector is not None and len(selector) == 1 else None
