"""What a run writes down besides its totals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_FIELD, Model, PortSelector, Selector, TrafficSelector
from weirlab.fields.values import Count, Flag, PositiveSize, PositiveSpan, Window
from weirlab.units import Size


class QueueRecord(Model):
    """Table `intervals`: queue, throughput and drops of ports."""

    queue: PortSelector
    """The ports."""
    every: PositiveSpan
    """Length of an interval."""


class FlowRecord(Model):
    """Table `deliveries`, or `flow_deliveries` by flow: what arrived, over time."""

    flow: TrafficSelector
    """Names of traffic, or globs of them."""
    every: PositiveSpan
    """Length of an interval."""
    by: Literal["traffic", "flow"] = "traffic"
    """`traffic`: one series for all its flows together; `flow`: one for each. Messages of an entry over tcp
    or rdma are one flow."""


class TcpRecord(Model):
    """Table `tcp`: the window, the round-trip time and the progress of each sender."""

    tcp: TrafficSelector
    """Names of traffic, or globs of them."""
    every: PositiveSpan
    """Length of an interval."""


class DelayRecord(Model):
    """Table `delays`: the distribution of the one-way delay of each flow."""

    delays: TrafficSelector
    """Names of traffic, or globs of them."""


class LevelRecord(Model):
    """Table `queue_levels`: for how long how much waited at ports."""

    levels: PortSelector
    """The ports."""
    window: Window | None = None
    """Time that counts. Absent: the whole run."""
    bin: PositiveSize = Size(1500)
    """Width of a bin of the distribution."""


class LimiterRecord(Model):
    """Table `limiters`: the rate of rate limiters over time."""

    limiter: Selector
    """Hosts that obey congestion control: one series for each of their flows."""
    every: PositiveSpan
    """Length of an interval."""


class PStreamRecord(Model):
    """Tables `probe_streams`, `probe_states` and `probe_packets`: probe streams one by one."""

    p_streams: TrafficSelector
    """Names of traffic, or globs of them."""
    packets: Flag = False
    """Whether each of their packets is written down."""


class FrameRecord(Model):
    """The frames themselves, as a capture file `NAME-REPLICATE.pcapng` next to the tables of the run: each
    when its transmission starts, its headers without its payload."""

    frames: PortSelector
    """The ports; each is an interface of the file. A port has at most one capture."""
    as_: Literal["pcapng"] = Field(alias="as")
    """Format of the file."""
    window: Window | None = None
    """Time that counts. Absent: the whole run."""
    at_most: Count = 1_000_000
    """Most frames that are kept. The file says how many were left out."""


AnyRecord = Annotated[
    QueueRecord
    | FlowRecord
    | TcpRecord
    | DelayRecord
    | LevelRecord
    | LimiterRecord
    | PStreamRecord
    | FrameRecord,
    BY_FIELD,
]
