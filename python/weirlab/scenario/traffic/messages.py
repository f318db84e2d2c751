"""Messages of a scenario: finite flows that come whether the network keeps up or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_KIND, File, Model
from weirlab.fields.values import Count, Flag, Fraction, Number, PositiveFraction, PositiveSize, PositiveSpan
from weirlab.scenario.traffic.chains import Algorithm, Operation
from weirlab.units import Size, Span

PUBLISHED = Path(__file__).parent / "sizes"
"""Where the published distributions of sizes are, one file for each."""


class PerFlow(Model):
    """A hash of the connection chooses: frames of a message in one direction take one way (per-flow ECMP)."""

    kind: Literal["flow"]
    weighted: Flag = False
    """Whether ports are chosen in proportion to their line rates; otherwise with equal probability."""


class PerFrame(Model):
    """A random one for each frame."""

    kind: Literal["random"]
    weighted: Flag = False
    """Whether ports are chosen in proportion to their line rates; otherwise with equal probability."""


class RoundRobin(Model):
    """Each frame by the next port, for each node and set of equal paths."""

    kind: Literal["round-robin"]


class LeastQueue(Model):
    """For each frame the port where it would start to leave first; of several a random one."""

    kind: Literal["least-queue"]


class Flowlets(Model):
    """By chance after each gap, and the same way until the next (as LetFlow)."""

    kind: Literal["flowlets"]
    gap: PositiveSpan
    """Time without a frame of the connection after which the next one may take another path."""
    weighted: Flag = False
    """Whether ports are chosen in proportion to their line rates; otherwise with equal probability."""


AnyBalancing = Annotated[PerFlow | PerFrame | RoundRobin | LeastQueue | Flowlets, BY_KIND]


class FixedSizes(Model):
    """All alike."""

    kind: Literal["fixed"]
    size: PositiveSize
    """Of each message."""


class PublishedSizes(Model):
    """A distribution as it was published."""

    kind: Literal["published"]
    name: Literal[
        "websearch",
        "websearch-packets",
        "fb-hadoop",
        "fb-hadoop2015",
        "alistorage2019",
        "google-rpc2008",
        "solar2022",
    ]
    """Which one; several digitisations of one workload differ."""


class SizeTable(Model):
    """A cumulative distribution in a file."""

    kind: Literal["table"]
    file: File
    """CSV with a header `bytes,share`: sizes, and the share of messages that are no longer, linear between;
    the last share is 1. Relative to the scenario file."""


AnySizes = Annotated[PublishedSizes | FixedSizes | SizeTable, BY_KIND]


class PoissonGaps(Model):
    """Exponential gaps."""

    kind: Literal["poisson"]


class EqualGaps(Model):
    """Equal gaps; the first event is at the start."""

    kind: Literal["constant"]


class LognormalGaps(Model):
    """Lognormal gaps."""

    kind: Literal["lognormal"]
    sigma: Number = 2.0
    """Standard deviation of the logarithm of the gap."""


class BurstyGaps(Model):
    """Exponential gaps with one of two means, chosen for each gap (hyperexponential, balanced means)."""

    kind: Literal["bursty"]
    variation: Number
    """Squared coefficient of variation of the gaps, at least 1; 1 is Poisson."""


AnyGaps = Annotated[PoissonGaps | EqualGaps | LognormalGaps | BurstyGaps, BY_KIND]


class Packet(Model):
    """Frames of a message without a TCP connection."""

    payload: PositiveSize = Size(1000)
    """Data of a full frame."""
    headers: Size = Size(48)
    """Bytes of each frame beyond its data, with FCS, without preamble and gap."""


class Carried(Model):
    """What all messages share: how they are carried, and what is kept of them."""

    handshake: Flag = False
    """Whether each message opens a connection first. Otherwise its connection is already open, has the window
    of a new one, and knows the round-trip time of the empty network."""
    balancing: AnyBalancing = PerFlow(kind="flow")
    """How nodes choose among equal shortest paths for frames of these messages and for frames that return;
    with tcp and rdma. Raw frames take the path of their sender and receiver, like those of other sources."""
    packet: Packet = Packet()
    """How messages without TCP are divided into frames."""
    rows: Count = 1_000_000
    """Most rows of `messages` in a replicate. If there are more messages, only every second, every fourth,
    ... has a row; all are counted."""


class Messages(Carried):
    """Messages at random times, each sender a separate source; over tcp or rdma, or as raw frames."""

    kind: Literal["messages"]
    sizes: AnySizes
    """How long messages are."""
    load: Fraction | None = None
    """Data of the messages, as a share of the sender's line rate; with `groups` of the sum of the line rates
    of all hosts in `from`. Headers, acknowledgements and retransmissions are added to it. Either `load` or
    `every`."""
    every: PositiveSpan | None = None
    """Mean time between the messages of a sender; with `groups` between the events. Either `load` or
    `every`."""
    gaps: AnyGaps = PoissonGaps(kind="poisson")
    """How times between them are distributed."""


class Collective(Carried):
    """A collective operation of the hosts in `from`, whose ranks are in the order of the hosts: its messages
    wait for each other. It is repeated `iterations` times, each after a computation of every rank."""

    kind: Literal["collective"]
    operation: Operation
    """The operation. The root of broadcast, reduce, gather and scatter is the first host in `from`."""
    algorithm: Algorithm | None = None
    """How. `ring`, `halving-doubling` (2, 4, 8, ... ranks) and, of all-reduce, `tree` (two binary trees);
    of all-to-all `rounds` (to the i-th next rank in round i) and `direct` (all at once); of broadcast and
    reduce `binomial` (a tree) and `ring` (from rank to rank); of gather and scatter `binomial` and `direct`.
    Absent: `ring`, `rounds`, or `binomial`."""
    size: PositiveSize
    """Size of the array: for all-reduce, all-to-all, broadcast and reduce the data of one rank, for the
    others the data of all ranks together."""
    iterations: Count = 1
    """How often."""
    compute: Span = Span(0)
    """Time for which each rank computes before it takes part."""
    pieces: Count = 1
    """Number of parts that pass through a `tree`, or the `ring` of broadcast and reduce, one after the
    other."""


class Program(Carried):
    """Messages and computations of programs in a trace; its ranks are the hosts in `from`, in their order."""

    kind: Literal["goal"]
    file: File
    """A schedule in GOAL, as text. Relative to the scenario file."""


class Algorithms(Model):
    """How the collective operations of a trace are done."""

    all_reduce: Literal["ring", "halving-doubling", "tree"] = Field("ring", alias="all-reduce")
    """See `collective`."""
    reduce_scatter: Literal["ring", "halving-doubling"] = Field("ring", alias="reduce-scatter")
    """See `collective`."""
    all_gather: Literal["ring", "halving-doubling"] = Field("ring", alias="all-gather")
    """See `collective`."""
    all_to_all: Literal["rounds", "direct"] = Field("rounds", alias="all-to-all")
    """See `collective`."""
    broadcast: Literal["binomial", "ring"] = "binomial"
    """See `collective`."""
    reduce: Literal["binomial", "ring"] = "binomial"
    """See `collective`."""
    gather: Literal["binomial", "direct"] = "binomial"
    """See `collective`."""
    scatter: Literal["binomial", "direct"] = "binomial"
    """See `collective`."""
    pieces: Count = 1
    """See `collective`."""

    def of(self, operation: Operation) -> Algorithm:
        """How this one is done."""
        chosen: Algorithm = getattr(self, operation.replace("-", "_"))
        return chosen


class Trace(Carried):
    """Messages and computations in Chakra execution traces; its ranks are the hosts in `from`, in their
    order."""

    kind: Literal["chakra"]
    file: File
    """The traces of all ranks, with `*` for the rank in the name: `job.*.et` for `job.0.et`, `job.1.et`, ...
    Relative to the scenario file."""
    algorithms: Algorithms = Algorithms()
    """Algorithms of collective operations, which a trace leaves to the library."""


class FlowTable(Carried):
    """Messages that are listed in a file: who sends how much to whom, and when."""

    kind: Literal["flow-table"]
    file: File
    """CSV with a header, or Parquet (`.parquet`): columns `start`, `from`, `to`, `bytes`, in the order of
    time. Starts are seconds, or quantities such as `12.5 us`; a column `start_ps`, `start_ns`, `start_us` or
    `start_ms` holds numbers in this unit. Relative to the scenario file."""


class Groups(Model):
    """Events at each of which some hosts send a message to each of some receivers: incast N:1 with
    `senders: N`, all to all with as many senders and receivers as there are hosts."""

    kind: Literal["groups"]
    senders: Count
    """Number of senders per receiver, drawn without repetition for each event; none sends to itself."""
    receivers: Count = 1
    """Number of receivers, drawn without repetition for each event."""


class Local(Model):
    """Each message to a random receiver: some stay below the sender's switch."""

    kind: Literal["local"]
    share: PositiveFraction
    """Of the messages that go to a receiver at the sender's own switch."""


class Matrix(Model):
    """Each message to a random receiver, with weights from a file."""

    kind: Literal["matrix"]
    file: File
    """CSV: the first line names receivers from its second column on; each further line a sender, and the
    weights of its receivers. `load` is that of the sender with the largest sum of weights; others have less
    in proportion. Relative to the scenario file."""
