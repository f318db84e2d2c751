"""Traffic of a scenario: who sends what to whom, when, and carried by what.

One file: these models name each other, and the union `AnySource` names all of them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from weirlab.errors import UnitError
from weirlab.fields import values
from weirlab.fields.base import BY_KIND, Model, Selector
from weirlab.scenario.traffic.controllers import AnyController
from weirlab.scenario.traffic.messages import (
    Carried as Carried,
    Collective as Collective,
    FlowTable as FlowTable,
    Groups as Groups,
    Local as Local,
    Matrix as Matrix,
    Messages as Messages,
    Program as Program,
    Trace as Trace,
)
from weirlab.scenario.traffic.probing import Pathload, PbProbe
from weirlab.scenario.traffic.rdma import Rdma as Rdma
from weirlab.units import Frames, Size, Span

UDP_HEADERS_BYTES = 46
"""What UDP over IPv4 over Ethernet adds to a payload: 14 B header and 4 B FCS, 20 B IPv4, 8 B UDP."""

TCP_HEADERS_BYTES = 70
"""What TCP with time stamps over IPv4 over Ethernet adds to a payload: 18 B, 20 B, 32 B."""

IMIX = ((64, 28), (570, 16), (1518, 4))
"""Frame sizes in bytes with their weights: IMIX_v4_1 of FD.io CSIT."""


class SplitMix64(Model):
    """Chance that does not depend on the run's seed, for workloads with published exact counts."""

    kind: Literal["splitmix64"]
    first: values.Natural
    """Initial state of the first sender; the others have the following numbers."""


def _read_mix(value: object) -> object:
    if value == "imix":
        return IMIX
    if not isinstance(value, dict) or not value:
        raise UnitError("write 'imix', or sizes with their weights, such as {64 B: 7, 1518 B: 1}")
    mix = []
    for size, weight in value.items():
        if not str(weight).isdigit() or int(weight) == 0:
            raise UnitError(f"the weight of '{size}' is a whole number of at least 1 (got '{weight}')")
        mix.append((Size.parse(str(size)).bytes, int(weight)))
    return tuple(mix)


Mix = Annotated[
    tuple[tuple[int, int], ...],
    BeforeValidator(lambda value: value if isinstance(value, tuple) else _read_mix(value)),
    PlainSerializer(lambda mix: {str(Size(size)): weight for size, weight in mix}),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "imix"},
                {
                    "type": "object",
                    "propertyNames": {"pattern": Size.pattern()},
                    "additionalProperties": {"type": "integer", "minimum": 1},
                    "minProperties": 1,
                },
            ],
            "examples": ["imix", {"64 B": 7, "570 B": 4, "1518 B": 1}],
        }
    ),
]


class Departing(Model):
    """What the open-loop sources share: how much, and in frames of which size."""

    load: values.Fraction | None = None
    """Share of the sender's line rate, preamble and gap of the frames included. Either `load` or `rate`."""
    rate: values.AnyRate | None = None
    """Frames/s, or bit/s of the named size (frames, or payload). Either `load` or `rate`."""
    frame_size: values.PositiveSize | None = None
    """Size of all frames, with FCS, without preamble and gap. One of `frame_size`, `mix` and `payload`."""
    mix: Mix | None = None
    """Frame sizes with their weights, or `imix`: 64 B, 570 B and 1518 B as 28 : 16 : 4."""
    payload: Size | None = None
    """Payload of each UDP datagram; the frame is 46 B longer, and at least 64 B."""
    stream: SplitMix64 | None = None
    """Source of random numbers. Absent: a stream of the run's seed named after the traffic and the sender."""


class Constant(Departing):
    """Equal gaps; the first frame leaves at the start."""

    kind: Literal["constant"]


class Poisson(Departing):
    """Independent exponential gaps."""

    kind: Literal["poisson"]


class Bernoulli(Departing):
    """In each slot of one frame's transmission time a frame with the probability that gives the load."""

    kind: Literal["bernoulli"]


class OnOff(Departing):
    """Constant gaps while on, silence while off, exponential times. `load` and `rate` are means over both."""

    kind: Literal["on-off"]
    mean_on: values.PositiveSpan
    """Mean length of an on period."""
    mean_off: values.PositiveSpan
    """Mean length of an off period."""
    starts: Literal["on", "chance"] = "on"
    """In an on period, or in either with the probability that it is in it at any time."""


class Bursts(Departing):
    """Bursts of frames back to back, of geometric length, to one destination each; geometric gaps between
    them. Slots as with `bernoulli`."""

    kind: Literal["bursts"]
    mean_burst: values.Number = 1.0
    """Mean length of a burst in frames; 1: single frames."""
    starts: Literal["between", "chance"] = "between"
    """Between two bursts, at the end of one; or with a burst or a gap under way, with the probability that it
    is so at any time."""


class Bulk(Model):
    """As much as the transport carries."""

    kind: Literal["bulk"]
    size: values.PositiveSize | None = None
    """All that each connection carries. Absent: as much as fits until it stops."""
    stop: Span | None = None
    """When the application ends; what it has written is still sent. Absent: at the end of the run."""


class Ping(Model):
    """Echo requests."""

    kind: Literal["ping"]
    every: values.PositiveSpan
    """Time between requests."""
    payload: Size = Size(56)
    """Of each request."""
    timeout: values.PositiveSpan = Span(20 * 10**12)
    """A reply that is later counts as lost."""


class Requests(Model):
    """Small HTTP requests, each on a new TCP connection; for campaigns over an emulated path."""

    kind: Literal["requests"]
    every: values.PositiveSpan
    """Time between requests, whether they are answered or not."""
    timeout: values.PositiveSpan = Span(20 * 10**12)
    """A request that is not answered by then counts as lost."""
    tls: values.Flag | None = None
    """Whether they are made over TLS 1.3, so that its handshake is measured, too. Needs openssl. Absent:
    no."""


class Stamp(Model):
    """Test packets with the times of their departures and arrivals (STAMP, RFC 8762), which give the delay of
    each direction; for campaigns over an emulated path."""

    kind: Literal["stamp"]
    every: values.PositiveSpan
    """Time between packets."""
    payload: Size = Size(44)
    """Of each, 44 B at least."""
    timeout: values.PositiveSpan = Span.from_s(2)
    """How long answers are waited for after the last packet."""


AnySource = Annotated[
    Constant
    | Poisson
    | Bernoulli
    | OnOff
    | Bursts
    | Bulk
    | Messages
    | FlowTable
    | Collective
    | Program
    | Trace
    | Ping
    | Requests
    | Stamp
    | Pathload
    | PbProbe,
    BY_KIND,
]


class Raw(Model):
    """Frames as they are."""

    kind: Literal["raw"]


class Udp(Model):
    """One UDP datagram over IPv4 in each frame."""

    kind: Literal["udp"]


def _read_ecn(value: object) -> object:
    return {"true": "classic", "false": "none"}.get(str(value).lower(), value)


Ecn = Annotated[
    Literal["none", "classic", "dctcp", "accurate"],
    BeforeValidator(_read_ecn),
    WithJsonSchema({"anyOf": [{"enum": ["none", "classic", "dctcp", "accurate"]}, {"type": "boolean"}]}),
]


class ReadingPause(Model):
    """A time in which an application does not read."""

    start: Span
    """From the start of the run."""
    stop: values.PositiveSpan
    """Until then."""


class Reading(Model):
    """A receiving application that reads slowly."""

    rate: values.PositiveRate
    """Data, without headers, as a steady stream."""
    pauses: tuple[ReadingPause, ...] = ()
    """Times in which it does not read, one after the other."""


class Tcp(Model):
    """TCP."""

    kind: Literal["tcp"]
    congestion_control: AnyController
    """What sets the sending rate."""
    recovery: Literal["halving", "prr", "prr-9937", "rate-halving"] | None = None
    """While losses are repaired: `halving` (RFC 6675), `prr` (RFC 6937), `prr-9937` (RFC 9937) or
    `rate-halving` (old Linux). Absent: `prr-9937` with `rack-tlp`, else `prr`."""
    loss_marking: Literal["count", "fack", "rack-tlp"] | None = None
    """A segment is lost if three or more segments after it have arrived (`count`), if it is three before the
    last one that arrived (`fack`), or if it is late when something sent after it has arrived, with tail loss
    probes and D-SACK (`rack-tlp`, RFC 8985; Linux today). Absent: `fack` with `rate-halving`, else
    `count`."""
    lost_retransmissions: Literal["detect", "timeout"] | None = None
    """How a lost retransmission is detected. Absent: `timeout` with `rate-halving`, else `detect`."""
    segment: values.PositiveSize = Size(1448)
    """Payload of a full segment."""
    initial_window: values.Count = 10
    """Segments that may be sent before the first acknowledgement of data."""
    window: values.PositiveSize = Size(16 << 20)
    """Receive buffer: bound of the bytes in flight of each connection."""
    window_scaling: values.Flag = True
    """Whether windows above 65 535 B can be advertised."""
    send_buffer: values.PositiveSize | None = None
    """Data that a bulk sender holds ready, and still sends after its end. Absent: none."""
    sack: values.Flag = True
    """Whether the receiver reports what arrived out of order."""
    timestamps: values.Flag = True
    """Whether segments carry time stamps, which cost 12 B."""
    ecn: Ecn | None = None
    """How the receiver reports marks: not at all (`none`, or false), by an echo until the window is reduced
    (`classic`, RFC 3168, or true), by the state of each run of packets (`dctcp`, RFC 8257), by counters
    (`accurate`, RFC 9768). Absent: `dctcp` with DCTCP, `accurate` with Prague, else `none`."""
    receiver_ecn: Ecn | None = None
    """What the receiver supports; the ends agree on what both support. Absent: the same."""
    accecn_option: values.Flag = True
    """Whether a receiver that counts marks also reports bytes in an option, which takes 8 B."""
    delayed_ack: values.Count = 2
    """Segments per acknowledgement."""
    delayed_ack_timeout: values.PositiveSpan = Span(40 * 10**9)
    """Longest time that an acknowledgement is held back."""
    min_rto: values.PositiveSpan = Span(200 * 10**9)
    """Least retransmission timeout."""
    pacing: values.Flag = False
    """Whether Reno, CUBIC and DCTCP spread the segments of a window over a part of the round trip, as Linux
    does: a half while the window is below half of the threshold, later 1/1.2. BBR and Prague always pace."""
    reading: Reading | None = None
    """How the application at the receiver reads. Absent: everything at once."""
    slow_start_after_idle: values.Flag = True
    """Whether the window of Reno or CUBIC shrinks to the initial one when nothing was sent for longer than
    the timeout (RFC 5681, section 4.1)."""


AnyTransport = Annotated[Raw | Udp | Tcp | Rdma, BY_KIND]


class Incast(Model):
    """All senders to the one receiver; a receiver that is among the senders does not send."""

    kind: Literal["incast"]


class Pairs(Model):
    """The first sender to the first receiver, the second to the second, and so on."""

    kind: Literal["pairs"]


class Permutation(Model):
    """Each host to the one `shift` places after it in the list, cyclically."""

    kind: Literal["permutation"]
    shift: values.Count | None = None
    """Absent: half of the number of hosts."""


class Uniform(Model):
    """Each frame to a random receiver, all with the same probability."""

    kind: Literal["uniform"]
    own: values.Flag = False
    """Whether a sender that is also a receiver may choose itself."""


def _read_flow(value: object) -> object:
    if isinstance(value, str) and value.count("->") == 1:
        sender, receiver = value.split("->")
        return (sender.strip(), receiver.strip())
    if isinstance(value, tuple):
        return value
    raise UnitError(f"write a flow as 'host-0->host-3' (got '{value}')")


FlowEnds = Annotated[
    tuple[str, str],
    BeforeValidator(_read_flow),
    PlainSerializer("->".join),
    WithJsonSchema({"type": "string", "pattern": "^.+->.+$", "examples": ["host-0->host-3"]}),
]


class Listed(Model):
    """Senders and receivers one by one."""

    kind: Literal["list"]
    flows: tuple[FlowEnds, ...]
    """As `sender->receiver`; each sender occurs once."""


AnyPattern = Annotated[Incast | Pairs | Permutation | Uniform | Listed | Groups | Local | Matrix, BY_KIND]


class Timing(Model):
    """A paced sender whose timers are coarse, or late now and then."""

    late: values.Fraction = 0.0
    """Share of the timers."""
    by: Span = Span(0)
    """Mean lateness of those; it is exponential."""
    tick: Span = Span(0)
    """Timers run out at multiples of it. 0 s: at any time."""


class HostAdapter(Model):
    """The network adapters of the hosts of a connection."""

    queue: Frames | None = None
    """Limit of the queue of the sender's adapter; while it is full, nothing is added. Absent: unlimited."""
    coalescing: values.PositiveSpan | None = None
    """Time for which the receiver's adapter gathers frames, from the first one on, before it interrupts.
    Absent: it does not gather."""


class Traffic(Model):
    """One kind of traffic between some hosts."""

    from_: Selector | None = Field(None, alias="from")
    """Senders. Not with `pattern: {kind: list}`."""
    to: Selector | None = None
    """Receivers. Not with `pattern: {kind: list}`; with `permutation` absent: the senders."""
    pattern: AnyPattern | None = None
    """Who sends to whom. Absent: `incast`, which needs a single receiver."""
    source: AnySource
    """When frames are generated, and how long they are; each sender is a separate source."""
    transport: AnyTransport = Raw(kind="raw")
    """What carries them."""
    class_: values.Natural = Field(0, alias="class")
    """Traffic class of the frames, 0 to 7, including those that return to the senders. It selects the queue
    at ports with `kind: classes`."""
    start: Span = Span(0)
    """Nothing is sent before."""
    stop: Span | None = None
    """Nothing is sent then or later. Absent: the end of the run."""
    streams: values.Count = 1
    """Connections of each sender."""
    timing: Timing | None = None
    """Faults of the timers that hold the packets of a paced sender back. Absent: none."""
    adapter: HostAdapter | None = None
    """Network adapter of the hosts of TCP connections and estimators. Absent: ideal."""
